"""A shard is a pure function of its slice of the plan, the recipe and the schema."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from stoker import _native
from stoker.build.blame import as_reason, is_of_the_item
from stoker.errors import ExampleError, ImageError, ShardError, SourceError
from stoker.recipe import convert
from stoker.records.writer import ShardWriter
from stoker.schema import Sample
from stoker.sources import ItemTableBuilder, SourceTree

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from stoker.build.loading import Load
    from stoker.recipe import Recipe, StoredImage
    from stoker.records.manifest import Shard
    from stoker.schema import Schema
    from stoker.sources import Item, ItemTable, Source, SourceImage
    from stoker.storage import Location
    from stoker.types import Box, Compression


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
