"""What a source is once it is listed: the same table of items, however the images lie."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import struct
import warnings
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import LabelWarning, SourceError, SourceWarning
from stoker.format import ClassLabel
from stoker.sources.boxes import Annotations, TableBoxes, turn_back
from stoker.sources.files import AT_ONCE, in_order
from stoker.sources.items import GrowingColumn, chunks, row_range
from stoker.sources.reader import IndexedReader, Latency, Reader, SourceImage, StoredReader
from stoker.storage import location, without_signature

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from stoker.sources.items import Item, ItemTable
    from stoker.types import Box, Field, Progress


_HASHED_ROWS = 2**14
_PROGRESS_ITEMS = 256
_READ_ANNOTATIONS = 4096  # of more images of a split so many, spread evenly: a build reads all of them, but once


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Images to build from, however they are stored. Read-only; safe in any thread.

    Attributes:
        root: What the user named. If it is a file, such as a list, an image that is missing is a reject wherever its
            folder should be; if it is a folder, one whose folder is gone, too, ends the build
            (`Location.is_readable_after`).
        classes: Names of all classes; the index is the label. In the order of the label map if one was given,
            otherwise by their bytes.
        texts: What each class is called in words; empty where unknown.
        table: All items: by split, then by label, then by the bytes of the path below the class.
        splits: For each split that is there, the rows of ``table`` that belong to it (int64, ascending).
        reader: What reads them.
        ignored: Files that are not items, counted by suffix or by kind.
        listing_warnings: Warnings for the user about the listing.
        boxes: The annotations of each split that has some.
        label_warnings: Those of ``listing_warnings`` that are about the labels of the classes.
        label_base: Number of the first class in records that the images come from.
        is_ordered: Whether the items have an order of their own, that of their ``numbers``: those of folders have not.
    """

    root: str
    classes: tuple[bytes, ...]
    texts: tuple[bytes, ...]
    table: ItemTable
    splits: dict[str, NDArray[np.int64]]
    reader: Reader
    ignored: Mapping[str, int] = field(default_factory=dict)
    listing_warnings: tuple[str, ...] = ()
    boxes: Mapping[str, Annotations] = field(default_factory=dict)
    label_warnings: tuple[str, ...] = ()
    label_base: int = 0
    is_ordered: bool = False
    _label_set: list[frozenset[bytes]] = field(default_factory=list, init=False, repr=False)
    _fingerprints: list[str] = field(default_factory=list, init=False, repr=False)
    _turned_back: set[bytes] = field(default_factory=set, init=False, repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user: those of the listing, and of the items that were read so far."""
        first = min(self._turned_back, default=None)
        message = f"images that were annotated as their EXIF orientation shows them: {len(self._turned_back):,}"
        message = f"{message}, such as {os.fsdecode(first or b'')}; their boxes are turned to lie in them as stored"
        return (*self.listing_warnings, *self.reader.warnings, *([message] if first is not None else []))

    @property
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """Its classes as a dataset has them."""
        texts = (text.decode("utf-8", "surrogateescape") for text in self.texts)
        return tuple(map(ClassLabel, (name.decode("utf-8", "surrogateescape") for name in self.classes), texts))

    def warn(self, stacklevel: int) -> None:
        """Warn of what a person should know, with the ``stacklevel`` of a `warnings.warn` in place of this call."""
        for message in self.warnings:
            warnings.warn(message, LabelWarning if message in self.label_warnings else SourceWarning, stacklevel + 1)

    @property
    def stored(self) -> StoredReader:
        """The reader of images that lie somewhere, which can be opened and saved; records of a program cannot."""
        assert isinstance(self.reader, StoredReader), "the images lie nowhere"
        return self.reader

    @property
    def indexed(self) -> IndexedReader:
        """The reader of images that are read in any order; those of a stream cannot."""
        assert isinstance(self.reader, IndexedReader), "the images come once"
        return self.reader

    @property
    def fields(self) -> Mapping[str, Field]:
        """What every item has beside its image, its class and its boxes, by name."""
        return self.reader.fields

    @property
    def latency(self) -> Latency:
        """What reading an image or an annotation waits for."""
        boxes_are_local = all(location(boxes.where).is_local for boxes in self.boxes.values())
        return "store" if self.reader.latency == "disk" and not boxes_are_local else self.reader.latency

    @property
    def requests_at_once(self) -> int:
        """How many annotations are worth being read at the same time."""
        return 1 if self.latency == "disk" else AT_ONCE

    def fingerprint(self) -> str:
        """Return 32 hex digits that change with any file name, size, label, object, class, text, split or value.

        Of annotations without classes those of `_READ_ANNOTATIONS` images of each split decide. It does not change with
        dates or paths, but for URLs of web servers: the same images have the same fingerprint in folders and in tars.
        """
        if self.reader.identity:
            return self.reader.identity
        if not self._fingerprints:
            self._fingerprints.append(self._digest())
        return self._fingerprints[0]

    def _digest(self) -> str:
        digest = hashlib.sha256()
        for part in (*self.classes, b"", *self.texts):
            digest.update(len(part).to_bytes(8, "little") + part)
        digest.update(f"\nboxes {bool(self.boxes)}\n".encode())
        for boxes in filter(None, map(_labelled, self.boxes.values())):
            digest.update(boxes.digest(self.table))
        digest.update(self._read_digest())
        for split, rows in self.splits.items():
            digest.update(f"\n{split} {len(rows)}\n".encode())
            for first, end in chunks(len(rows)):
                digest.update(rows[first:end].astype("<i8").tobytes())
        for column in (self.table.labels, self.table.sizes, self.table.objects):
            for first, end in chunks(len(column)):
                digest.update(column[first:end].astype("<i8").tobytes())
        for names in _file_names(self.table, whole=self.reader.is_named_by_path):
            digest.update(names)
        digest.update(self.stored.digest(self.table))
        return digest.hexdigest()[:32]

    def _read_digest(self) -> bytes:
        """Return bytes that change with the boxes of some images; nothing where all are known."""
        digest = hashlib.sha256()
        for split, rows in self.splits.items():
            if split in self.boxes and not _labelled(self.boxes[split]):
                count = min(len(rows), _READ_ANNOTATIONS)
                some = rows[np.arange(count) * len(rows) // max(1, count)].tolist()
                items = (self.table[row] for row in some)
                for known in in_order(partial(self._boxes_as_bytes, split), items, self.requests_at_once):
                    digest.update(known)
        is_read = not all(map(_labelled, self.boxes.values()))
        return digest.digest() if is_read else b""

    def _boxes_as_bytes(self, split: str, item: Item) -> bytes:
        boxes = self._sound_boxes(split, item)
        if boxes is None:
            return b"damaged"
        numbers = [box.corners for box in boxes]
        labels = [box.label for box in boxes if box.label is not None]
        columns = np.asarray(numbers, "<f8"), np.asarray(labels, "<i4")
        return struct.pack("<q", len(boxes)) + b"".join(column.tobytes() for column in columns)

    def _sound_boxes(self, split: str, item: Item) -> list[Box] | None:
        """Return the boxes of an image; None if its annotation is damaged, which the build meets again, and reports."""
        try:
            return self.read_boxes(item, split)
        except SourceError:
            return None

    def box_counts(self) -> dict[str, list[int]]:
        """Return how many boxes each class has in each split, where they have classes of their own.

        Those in files of their own are read for it, unless these lie in a store.
        """
        counts = {}
        for split, boxes in self.boxes.items():
            rows = self.splits.get(split, np.empty(0, np.int64))
            if (known := _labelled(boxes)) is not None:
                counts[split] = known.counts(self.table, rows, len(self.classes))
            elif boxes.has_labels and self.latency == "disk":
                counts[split] = [0] * len(self.classes)
                for row in rows[self.table.objects[rows] <= 0].tolist():
                    for box in self._sound_boxes(split, self.table[row]) or ():
                        counts[split][box.label or 0] += 1
        return counts

    def rows_as_listed(self, split: str) -> NDArray[np.int64]:
        """Return the rows of a split in the order in which its tables, lists or archives have them.

        Of folders, which have no order, that is the order of ``table``.
        """
        rows = self.splits[split]
        return rows[np.argsort(self.table.numbers[rows], kind="stable")] if self.is_ordered else rows

    def without_items(self) -> Source:
        """Return the source with an empty table: what is needed to load items that somebody else has."""
        table = self.table.take(np.empty(0, np.int64))
        return dataclasses.replace(self, table=table, splits={}, ignored={}, listing_warnings=())

    def load(self, item: Item, split: str) -> SourceImage:
        """Return one image and its annotation."""
        image = self.reader.load(item)
        if split not in self.boxes:
            return image
        try:
            boxes = self.read_boxes(item, split, image.data)
        except SourceError as error:
            return dataclasses.replace(image, annotation_error=str(error))
        label = boxes[item.object].label if 0 <= item.object < len(boxes) else None
        return dataclasses.replace(image, boxes=boxes, label=label)

    def plain_file(self, item: Item, split: str) -> bytes | None:
        """Return the path of a file on this machine that is all there is of an item; None if there is more, or none."""
        return None if item.object >= 0 or split in self.boxes else self.reader.plain_file(item)

    def flaws_of_boxes(self, item: Item, split: str) -> int:
        """Return what is wrong with boxes of one image that `read_boxes` cuts off or drops, as `Annotations` says."""
        source = self.boxes.get(split)
        return 0 if source is None else source.flaws(item, self.classes[item.label] if item.label >= 0 else b"")

    def read_boxes(self, item: Item, split: str, data: object = None) -> list[Box]:
        """Return the boxes of one image; if its file is given, those of an upright image as it is stored."""
        source = self.boxes.get(split)
        if source is None:
            return self.reader.boxes(item)
        if not self._label_set:
            self._label_set.append(frozenset(self.classes))
        boxes = source.read(item, self.classes[item.label] if item.label >= 0 else b"", self._label_set[0])
        turned = turn_back(boxes, item, data)
        self._turned_back.update([item.path] if turned != boxes else ())
        return turned


def _labelled(boxes: Annotations) -> TableBoxes | None:
    """Return boxes with classes of their own, which are known as a whole; None for others."""
    return boxes if isinstance(boxes, TableBoxes) and boxes.has_labels else None


def _file_names(table: ItemTable, *, whole: bool) -> Iterator[bytes]:
    """Yield the names of the files, each after its length, many at a time; ``whole`` ones with their folders."""
    names = table.paths.data
    for first in range(0, len(table), _HASHED_ROWS):
        starts = table.paths.starts[first : first + _HASHED_ROWS + 1].tolist()
        parts = []
        for start, end in pairwise(starts):
            name = names[start if whole else max(start, names.rfind(b"/", start, end) + 1) : end]
            name = without_signature(name) if whole else name
            parts += [len(name).to_bytes(4, "little"), name]
        yield b"".join(parts)


def with_objects(tree: Source, progress: Progress | None = None) -> Source:
    """Return the source with one row for each annotated object of each image.

    An image without boxes, or with a damaged annotation, stays one row that means the whole image. The objects of an
    image follow one another in the order of its annotation. Every annotation is read once.
    """
    images, objects = GrowingColumn("q"), GrowingColumn("i")
    splits = {}
    for split, rows in tree.splits.items():
        first = len(images)
        items = (tree.table[row] for row in _values(rows))
        boxes = in_order(partial(tree._sound_boxes, split), items, tree.requests_at_once)
        for done, (row, of_image) in enumerate(zip(_values(rows), boxes, strict=True)):
            for number in range(len(of_image or ())) or (-1,):
                images.append(row)
                objects.append(number)
            if progress is not None and done % _PROGRESS_ITEMS == 0:
                progress(done=row, total=len(tree.table), size_bytes=0, rejects=0)
        splits[split] = row_range(first, len(images) - first)
    table = tree.table.take(images.finish())
    return dataclasses.replace(tree, table=dataclasses.replace(table, objects=objects.finish()), splits=splits)


def _values(column: NDArray[np.int64]) -> Iterator[int]:
    for first, end in chunks(len(column)):
        yield from column[first:end].tolist()
