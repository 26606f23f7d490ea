"""A shard is a pure function of its slice of the plan, the recipe and the schema."""

from __future__ import annotations

import errno
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import ImageError, SourceError
from stoker.recipe import Recipe, convert
from stoker.records.writer import ShardFile, ShardWriter
from stoker.schema import Sample, Schema
from stoker.sources import BoxFolder, Item, ItemTable, SourceTree, read_boxes, read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from stoker.types import Box

# The machine, not the item, is at fault: going on would reject everything.
_NOT_THE_ITEMS_FAULT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@dataclass(frozen=True, slots=True, eq=False)
class ShardJob:
    """One shard to build.

    Attributes:
        name: File name.
        split: Its split.
        items: What goes into it, in order.
    """

    name: str
    split: str
    items: ItemTable


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


@dataclass(frozen=True, slots=True)
class ShardResult:
    """A shard that is on the disk, and what did not get into it."""

    file: ShardFile
    split: str
    rejects: tuple[ItemReject, ...]
    converted: Mapping[str, int]
    annotation_errors: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ItemConverter:
    """Turns items into framed records. Immutable; safe in any thread.

    Attributes:
        root: Tree that the items' paths are relative to.
        classes: Class names by label.
        texts: Class texts by label.
        boxes: Annotations of each split that has them.
        recipe: What happens to pixels.
        schema: What a record says.
    """

    root: bytes
    classes: tuple[bytes, ...]
    texts: tuple[bytes, ...]
    boxes: Mapping[str, BoxFolder]
    recipe: Recipe
    schema: Schema
    class_set: frozenset[bytes]

    @classmethod
    def of(cls, tree: SourceTree, recipe: Recipe, schema: Schema) -> ItemConverter:
        """Return the converter of a tree."""
        root = os.path.realpath(os.fsencode(tree.root))
        return cls(root, tree.classes, tree.texts, tree.boxes, recipe, schema, frozenset(tree.classes))

    def convert(self, items: Iterable[Item], split: str, stopped: Callable[[], bool]) -> Outcome:
        """Convert items one after another, until ``stopped()``.

        Raises:
            OSError: The process has run out of files or memory. Whatever is wrong with an item itself is a reject.
        """
        outcome = Outcome()
        for item in items:
            if stopped():
                break
            try:
                outcome.frames.append(self._record(item, split, outcome))
            except (ImageError, SourceError) as error:
                outcome.rejects.append(ItemReject(item.key, item.label, str(error)))
            except OSError as error:
                if error.errno in _NOT_THE_ITEMS_FAULT:
                    raise
                outcome.rejects.append(ItemReject(item.key, item.label, _unreadable(error)))
        return outcome

    def _record(self, item: Item, split: str, outcome: Outcome) -> bytes:
        image = convert(read_file(self.root + b"/" + item.path, item.size_bytes), self.recipe)
        boxes = self._boxes(item, split, outcome)
        sample = Sample(
            image=image.data,
            width=image.width,
            height=image.height,
            filename=item.path[item.path.rfind(b"/") + 1 :],
            label=item.label,
            class_name=self.classes[item.label],
            class_text=self.texts[item.label],
            boxes=image.geometry.place(boxes) if boxes else boxes,
        )
        frame = _native.frame_record(_native.write_example(self.schema.to_features(sample)))
        if image.converted is not None:
            outcome.converted[image.converted] += 1
        return frame

    def _boxes(self, item: Item, split: str, outcome: Outcome) -> list[Box]:
        folder = self.boxes.get(split)
        if folder is None:
            return []
        name = self.classes[item.label]
        try:
            return read_boxes(folder.locate(name, item.path), name, self.class_set)
        except SourceError as error:
            outcome.annotation_errors.append(f"{item.key}: {error}")
            return []


def _unreadable(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "the file is not there: it has been removed since it was listed, or is a link to nowhere"
    return f"the file cannot be read: {error.strerror}"


class ShardAssembler:
    """Puts outcomes into a shard, in order. For one thread at a time."""

    def __init__(self, directory: Path, job: ShardJob) -> None:
        self._job = job
        self._tally = Outcome()
        self._writer = ShardWriter(directory, job.name)

    def add(self, outcome: Outcome) -> None:
        """Write the records of the next items.

        Raises:
            OSError: The disk is full, or the like.
        """
        self._writer.append_frames(outcome.frames)
        self._tally.rejects += outcome.rejects
        self._tally.converted += outcome.converted
        self._tally.annotation_errors += outcome.annotation_errors

    def commit(self) -> ShardResult:
        """Bring the shard to the disk under its final name.

        Raises:
            OSError: The disk is full, or the like.
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
