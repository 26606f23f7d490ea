"""Items to framed records: reading, converting, framing, and what becomes of an item that cannot be read."""

from __future__ import annotations

import errno
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from stoker import _native
from stoker.errors import ExampleError, ImageError, ShardError, SourceError, StorageError
from stoker.format import ItemReject, StoredSample
from stoker.recipe import SNIFF_BYTES, check, convert, sniff
from stoker.sources import ItemTableBuilder, SourceTree
from stoker.storage import location, new_pool

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from stoker.format import Schema
    from stoker.recipe import Recipe, StoredImage
    from stoker.sources import Item, Source, SourceImage
    from stoker.types import Box

    Load = Callable[[Item, str], SourceImage]
    """Returns the image of an item of a split, as `stoker.sources.Source.load` does."""

AT_ONCE = 64
"""Images of a store that are requested at the same time: at 200 ms a request these are 320 a second."""

UNREADABLE = "unreadable"
"""What an item holds whose file cannot be read."""

_ITEM_ERRORS = (ImageError, ExampleError, ShardError, SourceError, OSError)
"""What is wrong with an item; of an ``OSError`` see `is_item_error`."""

# The machine, or the server of its file system, not the item, is at fault: to continue would reject everything.
_OF_THE_MACHINE = frozenset(
    {
        errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.ENODEV,
        errno.ENXIO, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ECONNREFUSED,
    }
)  # fmt: skip


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


class ItemConverter:
    """Turns items into framed records. Safe in any thread.

    It can be pickled, and travels without the list of items and without ``known``.

    Args:
        tree: Where the items come from.
        recipe: What happens to pixels.
        schema: What a record says.

    Attributes:
        is_local: Whether no image waits for a network.
        known: Outcomes of single items of a split that are there already. Read-only once items are converted.
    """

    def __init__(self, tree: Source, recipe: Recipe, schema: Schema) -> None:
        self.tree = tree
        self.recipe = recipe
        self.schema = schema
        self.is_local = tree.is_local
        self.known: Mapping[tuple[Item, str], Outcome] = {}

    def __getstate__(self) -> dict[str, Any]:
        tree = self.tree
        if isinstance(tree, SourceTree):
            tree = replace(tree, table=ItemTableBuilder().finish(), splits={}, ignored={}, warnings=())
        return {**self.__dict__, "tree": tree, "known": {}}

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
            known = self.known.get((item, split))
            if known is not None:
                outcome.add(known)
                continue
            try:
                outcome.frames.append(self._record(item, (load or self.tree.load)(item, split), outcome))
            except _ITEM_ERRORS as error:
                if isinstance(error, OSError) and not is_item_error(error, self.tree.root):
                    raise
                outcome.rejects.append(ItemReject(item.key, item.label, _reason(error)))
        return outcome

    def check(self, item: Item, split: str) -> tuple[str, ItemReject | None]:
        """Return what an item of a split holds, and its reject if it will be one, without converting it.

        Damage inside a JPEG is seen only where the recipe's ``check`` is ``entropy`` or ``decode``.

        Returns:
            The format in the words of `stoker.recipe.sniff`, or ``unreadable``, ``pixels`` of a record; and the reject.

        Raises:
            OSError: As `convert`.
        """
        kind = UNREADABLE
        try:
            source = self.tree.load(item, split)
            kind = sniff(source.data[:SNIFF_BYTES]) if isinstance(source.data, bytes) else "pixels"
            _refuse_missing_object(item, source)
            if isinstance(source.data, bytes):
                check(source.data, self.recipe)
        except _ITEM_ERRORS as error:
            if isinstance(error, OSError) and not is_item_error(error, self.tree.root):
                raise
            return kind, ItemReject(item.key, item.label, _reason(error))
        return kind, None

    def _record(self, item: Item, source: SourceImage, outcome: Outcome) -> bytes:
        boxes = source.boxes
        if source.annotation_error is not None:
            outcome.annotation_errors.append(f"{item.key}: {source.annotation_error}")
        _refuse_missing_object(item, source)
        crop = boxes[item.object] if item.object >= 0 else None
        image = convert(source.data, self.recipe, crop)
        sample = self._sample(item, source.filename, image, image.geometry.place(boxes) if boxes else boxes)
        frame = _native.frame_example(self.schema.to_features(sample))
        if image.converted is not None:
            outcome.converted[image.converted] += 1
        return frame

    def _sample(self, item: Item, filename: bytes, image: StoredImage, boxes: Sequence[Box]) -> StoredSample:
        classes, label = self.tree.classes, item.label
        return StoredSample(
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


class LoadingAhead:
    """Loads many images at a time, in the order in which they are asked for. For one thread, but for what it returns.

    Args:
        converter: For whose items; those that it knows are not loaded.
        stop: Set by the owner before `close`, so that no load waits for its store any longer.
    """

    def __init__(self, converter: ItemConverter, stop: threading.Event) -> None:
        self._converter = converter
        self._pool = new_pool(AT_ONCE, "stoker-load", stop)

    def begin(self, items: Iterable[Item], split: str) -> Load:
        """Begin to load some items of a split.

        Returns:
            What gives each of them, in any thread; it waits for the image and raises what loading it raised. The images
            are held as long as it is.
        """
        loads: dict[Item, Future[SourceImage]] = {}
        for item in items:
            if item not in loads and (item, split) not in self._converter.known:
                loads[item] = self._pool.submit(self._converter.tree.load, item, split)

        def load(item: Item, _split: str) -> SourceImage:
            return loads[item].result()

        return load

    def close(self) -> None:
        """End the threads; waits for at most one request of each."""
        self._pool.shutdown(cancel_futures=True)


def request_threads(tree: Source, threads: int) -> int:
    """Return how many threads look at images of a source that are loaded and dealt with in one thread.

    Args:
        tree: The source.
        threads: How many there should be if nothing has to wait.
    """
    return threads if tree.is_local else max(threads, AT_ONCE)


def is_machine_error(error: OSError) -> bool:
    """Return whether the process has run out of files or memory, or the server of a file system does not answer."""
    return error.errno in _OF_THE_MACHINE


def is_item_error(error: OSError, root: str) -> bool:
    """Return whether the next item may still be read after this error.

    Args:
        error: What an item met.
        root: Where the source lies. A store that refuses one item is asked whether it refuses everything, as it does
            when credentials have expired; on this machine it is seen whether the folder of the item has gone as well,
            as those of a disk have that was taken away.

    Raises:
        StorageError: The store fails now.
    """
    if isinstance(error, StorageError) or is_machine_error(error):
        return False
    return location(root).still_answers(error)


def _refuse_missing_object(item: Item, source: SourceImage) -> None:
    if item.object >= len(source.boxes):
        message = f"its annotation has {len(source.boxes)} objects, fewer than when it was listed; build again"
        raise SourceError(message)


def _reason(error: Exception) -> str:
    """Return what the rejects say about an item that cannot be read or stored."""
    if not isinstance(error, OSError):
        return str(error)
    if error.errno == errno.ENOENT:
        return "the file is not there: it has been removed since it was listed, or is a link that leads nowhere"
    return f"the file cannot be read: {error.strerror or error}"
