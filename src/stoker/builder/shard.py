"""One shard from its first item to its final name: what an engine runs wherever it likes."""

from __future__ import annotations

import errno
import threading
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import ExampleError, ImageError, ShardError, SourceError, StorageError
from stoker.format import Sample, ShardWriter
from stoker.recipe import convert
from stoker.sources import ItemTableBuilder, SourceTree
from stoker.storage import check_stacks, location, stop_waiting_when

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from stoker.format import Schema, Shard
    from stoker.recipe import Recipe, StoredImage
    from stoker.sources import Item, ItemTable, Source, SourceImage
    from stoker.storage import Location
    from stoker.types import Box, Compression


# Whether an item is at fault when it cannot be read, or whatever it is read from.


# The machine, or the server of its file system, not the item, is at fault: going on would reject everything.
_OF_THE_MACHINE = frozenset(
    {
        errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.ENODEV,
        errno.ENXIO, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ECONNREFUSED,
    }
)  # fmt: skip


def is_of_the_machine(error: OSError) -> bool:
    """Return whether the process has run out of files or memory, or the server of a file system does not answer."""
    return error.errno in _OF_THE_MACHINE


def is_of_the_item(error: OSError, root: str) -> bool:
    """Return whether the next item may still be read after this error.

    Args:
        error: What an item met.
        root: Where the source lies. A store that refuses one item is asked whether it refuses everything, as it does
            when credentials have expired; on this machine it is seen whether the folder of the item has gone as well,
            as those of a disk have that was taken away.

    Raises:
        StorageError: The store fails now.
    """
    if isinstance(error, StorageError) or is_of_the_machine(error):
        return False
    return location(root).still_answers(error)


def as_reason(error: OSError) -> str:
    """Return what the rejects say about an item that cannot be read."""
    if error.errno == errno.ENOENT:
        return "the file is not there: it has been removed since it was listed, or is a link to nowhere"
    return f"the file cannot be read: {error.strerror or error}"


# A shard is a pure function of its slice of the plan, the recipe and the schema.


@dataclass(frozen=True, slots=True, eq=False)
class ShardJob:
    """One shard to build.

    Attributes:
        name: Its name, relative to the destination.
        split: Its split.
        items: What goes into it, in order.
        compression: Of the whole file.
    """

    name: str
    split: str
    items: ItemTable
    compression: Compression = "none"


@dataclass(frozen=True, slots=True)
class ItemReject:
    """An item that did not become a record; ``label`` is its class index."""

    key: str
    label: int
    reason: str


@dataclass(slots=True)
class Outcome:
    """What became of some consecutive items.

    Attributes:
        frames: The framed records, in the order of the items.
        rejects: The items that have none.
        converted: Records whose image could not be kept, counted by the format of their source.
        annotation_errors: Damaged annotations, whose images are in ``frames`` without boxes.
    """

    frames: list[bytes] = field(default_factory=list)
    rejects: list[ItemReject] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)
    annotation_errors: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Append what became of the items that follow."""
        self.frames += other.frames
        self.add_notes(other)

    def add_notes(self, other: Outcome) -> None:
        """Append everything of an outcome but its records."""
        self.rejects += other.rejects
        self.converted += other.converted
        self.annotation_errors += other.annotation_errors


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A shard that is complete in the destination, and what did not get into it."""

    file: Shard
    split: str
    rejects: tuple[ItemReject, ...]
    converted: Mapping[str, int]
    annotation_errors: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ItemConverter:
    """Turns items into framed records. Safe in any thread.

    It can be pickled, and travels without the list of items: who converts some of them is given these.

    Attributes:
        tree: Where the items come from.
        recipe: What happens to pixels.
        schema: What a record says.
        known: Outcomes of single items of a split that are there already; each is handed out once.
    """

    tree: Source
    recipe: Recipe
    schema: Schema
    known: dict[tuple[Item, str], Outcome] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type[ItemConverter], tuple[Source, Recipe, Schema]]:
        tree = self.tree
        if isinstance(tree, SourceTree):
            tree = replace(tree, table=ItemTableBuilder().finish(), splits={}, ignored={}, warnings=())
        return ItemConverter, (tree, self.recipe, self.schema)

    def convert(
        self, items: Iterable[Item], split: str, stopped: Callable[[], bool] | None = None, load: Load | None = None
    ) -> Outcome:
        """Convert items one after another, until ``stopped()``; ``load`` gives them if they are loaded ahead.

        Raises:
            OSError: The process has run out of files or memory, or the store of the source fails or refuses
                everything. Whatever is wrong with an item itself is a reject.
        """
        outcome = Outcome()
        for item in items:
            if stopped is not None and stopped():
                break
            if self.known and (known := self.known.pop((item, split), None)) is not None:
                outcome.add(known)
                continue
            try:
                outcome.frames.append(self._record(item, (load or self.tree.load)(item, split), outcome))
            except (ImageError, ExampleError, ShardError, SourceError) as error:
                outcome.rejects.append(ItemReject(item.key, item.label, str(error)))
            except OSError as error:
                if not is_of_the_item(error, self.tree.root):
                    raise
                outcome.rejects.append(ItemReject(item.key, item.label, as_reason(error)))
        return outcome

    def _record(self, item: Item, source: SourceImage, outcome: Outcome) -> bytes:
        boxes = source.boxes
        if source.annotation_error is not None:
            outcome.annotation_errors.append(f"{item.key}: {source.annotation_error}")
        if item.object >= len(boxes):
            raise SourceError(f"its annotation has {len(boxes)} objects, fewer than when it was listed; build again")
        crop = boxes[item.object] if item.object >= 0 else None
        image = convert(source.data, self.recipe, crop)
        sample = self._sample(item, source.filename, image, image.geometry.place(boxes) if boxes else boxes)
        frame = _native.frame_example(self.schema.to_features(sample))
        if image.converted is not None:
            outcome.converted[image.converted] += 1
        return frame

    def _sample(self, item: Item, filename: bytes, image: StoredImage, boxes: Sequence[Box]) -> Sample:
        classes, label = self.tree.classes, item.label
        return Sample(
            image=image.data,
            width=image.width,
            height=image.height,
            order=image.order,
            filename=filename,
            label=label,
            classes=len(classes),
            class_name=classes[label] if label >= 0 else b"",
            class_text=self.tree.texts[label] if label >= 0 else b"",
            boxes=boxes,
        )


class ShardAssembler:
    """Puts outcomes into a shard, in order. For one thread at a time.

    Args:
        directory: The dataset.
        job: The shard.
        stop: Ends the waits for a store that does not answer.
    """

    def __init__(self, directory: Location, job: ShardJob, stop: threading.Event | None = None) -> None:
        self._job = job
        self._tally = Outcome()
        self._writer = ShardWriter(directory, job.name, job.compression, stop)

    def add(self, outcome: Outcome) -> None:
        """Write the records of the next items.

        Raises:
            OSError: The disk is full, or the like.
        """
        self._writer.append_frames(outcome.frames)
        self._tally.add_notes(outcome)

    def commit(self) -> ShardResult:
        """Give the shard its final name.

        Raises:
            OSError: The disk is full, the store has gone, or the like.
        """
        with self._writer:
            file = self._writer.commit()
        tally = self._tally
        return ShardResult(
            file, self._job.split, tuple(tally.rejects), dict(tally.converted), tuple(tally.annotation_errors)
        )

    def abort(self) -> None:
        """Remove what was written."""
        self._writer.abort()


# Loading images before their turn, where each of them has to wait for a network.


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stoker.sources import Item, Source, SourceImage

    Load = Callable[[Item, str], SourceImage]
    """Returns the image of an item of a split, as `stoker.sources.Source.load` does."""

AT_ONCE = 64
"""Images that are asked for at the same time: at 200 ms an answer these are 320 a second."""


def request_threads(tree: Source, threads: int) -> int:
    """Return how many threads look at images of a source that are loaded and dealt with in one thread.

    Args:
        tree: The source.
        threads: How many there should be if nothing has to wait.
    """
    return threads if tree.is_local else max(threads, AT_ONCE)


class LoadingAhead:
    """Loads many images at a time, in the order in which they are asked for. For one thread, but for what it returns.

    Args:
        tree: Where they come from.
        stop: Set by the owner before `close`, so that no load goes on waiting for its store.
    """

    def __init__(self, tree: Source, stop: threading.Event) -> None:
        check_stacks(AT_ONCE)
        self._tree = tree
        self._pool = ThreadPoolExecutor(AT_ONCE, "stoker-load", initializer=stop_waiting_when, initargs=(stop,))

    def begin(self, items: Iterable[Item], split: str) -> Load:
        """Begin to load some items of a split.

        Returns:
            What gives each of them, in any thread; it waits for the image and raises what loading it raised. The images
            are held as long as it is.
        """
        loads: dict[Item, Future[SourceImage]] = {}
        for item in items:
            if item not in loads:
                loads[item] = self._pool.submit(self._tree.load, item, split)

        def load(item: Item, _split: str) -> SourceImage:
            return loads[item].result()

        return load

    def close(self) -> None:
        """End the threads; waits for at most one request of each."""
        self._pool.shutdown(cancel_futures=True)


_CHUNK_ITEMS = 16


def build_shard(
    converter: ItemConverter,
    destination: Location,
    job: ShardJob,
    *,
    load_ahead: bool = False,
    before_commit: Callable[[], None] | None = None,
) -> ShardResult:
    """Build one shard in this thread, from the first item to its final name.

    Two attempts at the same job may run at once, on any machines: what each writes has a name of its own until it is
    complete, and both write the same bytes.

    Args:
        converter: Turns items into records.
        destination: The dataset.
        job: The shard.
        load_ahead: Whether images are loaded many at a time, as they should be where each has to wait for a network.
        before_commit: Called when all is written and nothing has its final name yet; raises to keep it so.

    Raises:
        OSError: The source or the destination failed; nothing of this attempt is left.
    """
    shard = ShardAssembler(destination, job)
    try:
        with closing(_outcomes(converter, job, ahead=load_ahead)) as outcomes:
            for outcome in outcomes:
                shard.add(outcome)
        if before_commit is not None:
            before_commit()
        return shard.commit()
    finally:
        shard.abort()


def _outcomes(converter: ItemConverter, job: ShardJob, *, ahead: bool) -> Generator[Outcome, None, None]:
    """Yield what becomes of a few items at a time, in order; with ``ahead`` the next are loaded meanwhile."""
    if not ahead:
        for item in job.items:
            yield converter.convert([item], job.split)
        return
    stop = threading.Event()
    loading = LoadingAhead(converter.tree, stop)
    window: deque[tuple[list[Item], Load]] = deque()
    try:
        items = iter(job.items)
        while chunk := list(islice(items, _CHUNK_ITEMS)):
            window.append((chunk, loading.begin(chunk, job.split)))
            if len(window) * _CHUNK_ITEMS > AT_ONCE:
                chunk, load = window.popleft()
                yield converter.convert(chunk, job.split, load=load)
        for chunk, load in window:
            yield converter.convert(chunk, job.split, load=load)
    finally:
        stop.set()
        loading.close()
