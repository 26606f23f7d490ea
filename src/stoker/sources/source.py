"""`Source`, a listed source, the same for every kind; `SourceBuilder`, which a kind fills; and `Kind` itself."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import re
import struct
import unicodedata
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice, pairwise, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import format_count, option, option_with
from stoker.errors import LabelWarning, SourceError, SourceWarning
from stoker.format import ClassLabel, is_dataset
from stoker.sources.boxes import Annotations, BoxTable, TableBoxes, find_boxes, place_in_stored, problem_of_shape
from stoker.sources.files import AT_ONCE, Skipped, Walk, folders_in, in_order, nonblank_lines, some_entries
from stoker.sources.items import GrowingBlobs, GrowingColumn, ItemCollector, ItemTable, chunks, counts_of, row_range
from stoker.sources.labels import (
    BUNDLED_LIST,
    CLASS_LISTS,
    bundled_label_map,
    class_texts,
    has_control_character,
    imagenet_classes,
    is_wordnet_id,
    read_label_map,
)
from stoker.sources.names import IMAGES_FOLDER, NOT_CLASSES, is_sidecar, shown_names
from stoker.sources.reader import Cells, FileReader, IndexedReader, Latency, Reader, SourceImage, StoredReader
from stoker.splits import SPLIT_FOLDERS
from stoker.storage import Location, from_uri, is_absolute, join, location, without_signature
from stoker.types import MAX_CLASSES, Box, Field, Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.sources.items import Item
    from stoker.sources.labels import LabelMap
    from stoker.sources.look import Look


_HASHED_ROWS = 2**14
_PROGRESS_ITEMS = 256
_SAMPLED_ANNOTATIONS = 4096  # images of a split, spread evenly, whose annotations a fingerprint reads

LABEL_OPTIONS = frozenset({"class_names", "labels", "imagenet_labels"})
"""Names of the options that apply to every kind of source whose images have classes."""

COLUMN_OPTIONS = frozenset({"image_column", "label_column", "columns"})
"""Names of the options that apply to every table."""

TABLE_OPTIONS = COLUMN_OPTIONS | {"label_separator", "split_column", "separator", "image_root"}
"""Names of the options that apply to a table beside images."""

_NAMED_CLASSES, _LOOKED_AT = 5, 100
_HEADERS = 32  # images whose headers are read for their size and EXIF orientation
_NO_CLASSES = NOT_CLASSES | SPLIT_FOLDERS.keys() | {IMAGES_FOLDER}
_OF_COPY = re.compile(r"[-_ ]+(copy([-_ ]*\(?[0-9]+\)?)?|\([0-9]+\)|aug(mented)?|backup|bak)$")
"""Endings that people and programs give to the names of copied folders."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Images to build from, however they are stored. Read-only; safe in any thread.

    Attributes:
        root: The path or URL that the user gave. If it is a file, such as a list, a missing image is always a reject.
            If it is a folder, a missing image ends the build when the folder of the image is gone, too
            (`Location.is_readable_after`).
        classes: Names of all classes; the index is the label. In the order of the label map if one was given,
            otherwise by their bytes.
        texts: The text of each class, which names it in words; empty where unknown.
        table: All items: by split, then by label, then by the bytes of the path below the class.
        splits: The rows of ``table`` in each split that exists (int64, ascending).
        reader: Reads the items.
        ignored: Numbers of files that are not items, by suffix or by kind.
        listing_warnings: Warnings for the user about the listing.
        boxes: The annotations of each split that has some.
        label_warnings: Those of ``listing_warnings`` that are about the labels of the classes.
        label_base: Number of the first class in the records that the images come from.
        is_ordered: Whether the source itself orders its items, by their ``numbers``; folders do not.
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
    # how many boxes or images of each path there are to tell of, by what is told of them
    _told: dict[str, dict[bytes, int]] = field(default_factory=dict, init=False, repr=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user, from the listing and from the items read so far."""
        messages = [*self.listing_warnings, *self.reader.warnings]
        for what, paths in sorted(self._told.items()):
            if not any(message.startswith(what) for message in self.listing_warnings):
                messages.append(f"{what}: {sum(paths.values()):,}, such as {os.fsdecode(min(paths))}")
        return tuple(messages)

    @property
    def without_images(self) -> str:
        """What is said of a source without any item."""
        return "holds class folders but no image in them" if self.classes else "names no image"

    @property
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """The classes in the form that datasets have."""
        texts = (text.decode("utf-8", "surrogateescape") for text in self.texts)
        return tuple(map(ClassLabel, (name.decode("utf-8", "surrogateescape") for name in self.classes), texts))

    def warn(self, stacklevel: int) -> None:
        """Issue all warnings; ``stacklevel`` counts as in a call of `warnings.warn` in place of this one."""
        for message in self.warnings:
            warnings.warn(message, LabelWarning if message in self.label_warnings else SourceWarning, stacklevel + 1)

    @property
    def stored(self) -> StoredReader:
        """The reader of images that have paths or URLs, so that it can be saved; records of a program have none."""
        assert isinstance(self.reader, StoredReader), "the images lie nowhere"
        return self.reader

    @property
    def indexed(self) -> IndexedReader:
        """The reader of images that can be read in any order, unlike those of a stream."""
        assert isinstance(self.reader, IndexedReader), "the images come once"
        return self.reader

    @property
    def fields(self) -> Mapping[str, Field]:
        """The extra fields of the items, beside image, class and boxes, by name."""
        return self.reader.fields

    @property
    def latency(self) -> Latency:
        """What reading an image or an annotation waits for."""
        boxes_are_local = all(location(boxes.where).is_local for boxes in self.boxes.values())
        return "store" if self.reader.latency == "disk" and not boxes_are_local else self.reader.latency

    @property
    def requests_at_once(self) -> int:
        """How many annotations to read at the same time."""
        return 1 if self.latency == "disk" else AT_ONCE

    def fingerprint(self) -> str:
        """Return 32 hex digits that change with any file name, size, label, object, class, text, split or value.

        Where boxes have no classes of their own, it covers the annotations of `_SAMPLED_ANNOTATIONS` images of each
        split. Dates and paths do not count, except URLs of web servers: the same images have the same fingerprint in
        folders and in tars.

        Raises:
            StorageError: The store of the annotations cannot be reached.
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
        """Return bytes that change with the boxes of sampled images; empty if the listing has read all boxes."""
        digest = hashlib.sha256()
        for split, rows in self.splits.items():
            if split in self.boxes and not _labelled(self.boxes[split]):
                count = min(len(rows), _SAMPLED_ANNOTATIONS)
                some = rows[np.arange(count) * len(rows) // max(1, count)].tolist()
                items = (self.table[row] for row in some)
                for known in in_order(partial(self._boxes_as_bytes, split), items, self.requests_at_once):
                    digest.update(known)
        is_read = not all(map(_labelled, self.boxes.values()))
        return digest.digest() if is_read else b""

    def _boxes_as_bytes(self, split: str, item: Item) -> bytes:
        boxes = self._boxes_or_none(split, item)
        if boxes is None:
            return b"damaged"
        numbers = [box.corners for box in boxes]
        labels = [box.label for box in boxes if box.label is not None]
        columns = np.asarray(numbers, "<f8"), np.asarray(labels, "<i4")
        return struct.pack("<q", len(boxes)) + b"".join(column.tobytes() for column in columns)

    def _boxes_or_none(self, split: str, item: Item) -> list[Box] | None:
        """Return the boxes of an image; None if its annotation is damaged, which the build reports when it reads it."""
        try:
            return self.read_boxes(item, split)
        except SourceError:
            return None

    def box_counts(self) -> dict[str, list[int]]:
        """Return how many boxes each class has in each split, where boxes have classes of their own.

        Annotation files are read for this, unless they lie in a store.
        """
        counts = {}
        for split, boxes in self.boxes.items():
            rows = self.splits.get(split, np.empty(0, np.int64))
            if (known := _labelled(boxes)) is not None:
                counts[split] = known.counts(self.table, rows, len(self.classes))
            elif boxes.has_labels and self.latency == "disk":
                counts[split] = [0] * len(self.classes)
                for row in rows[self.table.objects[rows] <= 0].tolist():
                    for box in self._boxes_or_none(split, self.table[row]) or ():
                        counts[split][box.label or 0] += 1
        return counts

    def rows_as_listed(self, split: str) -> NDArray[np.int64]:
        """Return the rows of a split in the order in which its tables, lists or archives have them.

        Folders have no such order; for them it is the order of ``table``.
        """
        rows = self.splits[split]
        return rows[np.argsort(self.table.numbers[rows], kind="stable")] if self.is_ordered else rows

    def without_items(self) -> Source:
        """Return the source with an empty table, which is enough to load items that another process sends."""
        table = self.table.take(np.empty(0, np.int64))
        return dataclasses.replace(self, table=table, splits={}, ignored={}, listing_warnings=())

    def load(self, item: Item, split: str) -> SourceImage:
        """Return one image and its annotation.

        Raises:
            OSError: It cannot be read; a ``StorageError``, if its store cannot be reached.
            StokerError: It is larger than 1 GiB, its archive is shorter than it was, its URL leads to no image, or its
                record is damaged.
        """
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
        """Return the path of the local file that an item consists of; None if there is no such file."""
        return None if item.object >= 0 or split in self.boxes else self.reader.plain_file(item)

    def flaws_of_boxes(self, item: Item, split: str) -> int:
        """Return the flaws of boxes that `read_boxes` clips or drops in one image, as `Annotations.flaws` does."""
        source = self.boxes.get(split)
        return 0 if source is None else source.flaws(item, self.classes[item.label] if item.label >= 0 else b"")

    def read_boxes(self, item: Item, split: str, data: object = None) -> list[Box]:
        """Return the boxes of one image.

        Args:
            item: The image.
            split: Its split.
            data: The bytes of its file, needed to turn boxes of the upright image into the orientation that is stored.
                Default: boxes stay as the annotation has them.

        Raises:
            SourceError: The annotation is damaged.
        """
        source = self.boxes.get(split)
        if source is None:
            return self.reader.boxes(item)
        if not self._label_set:
            self._label_set.append(frozenset(self.classes))
        read = source.read(item, self.classes[item.label] if item.label >= 0 else b"", self._label_set[0])
        boxes, told = place_in_stored(read, item, data)
        for what in filter(told.get, told):
            self._told.setdefault(what, {})[item.path] = told[what]
        return boxes


def _labelled(boxes: Annotations) -> TableBoxes | None:
    """Return boxes that the listing has read with classes of their own; None for other annotations."""
    return boxes if isinstance(boxes, TableBoxes) and boxes.has_labels else None


def _file_names(table: ItemTable, *, whole: bool) -> Iterator[bytes]:
    """Yield the lengths and the names of files, many at a time; with ``whole`` the whole paths in place of names."""
    names = table.paths.data
    for first in range(0, len(table), _HASHED_ROWS):
        starts = table.paths.starts[first : first + _HASHED_ROWS + 1].tolist()
        parts = []
        for start, end in pairwise(starts):
            name = names[start if whole else max(start, names.rfind(b"/", start, end) + 1) : end]
            name = without_signature(name) if whole else name
            parts += [len(name).to_bytes(4, "little"), name]
        yield b"".join(parts)


def with_objects(source: Source, progress: Progress | None = None) -> Source:
    """Return the source with one row for each annotated object of each image.

    An image without boxes, or with a damaged annotation, keeps one row, which stands for the whole image. The objects
    of an image are consecutive, in the order of its annotation. Every annotation is read once.

    Args:
        source: A source of whole images.
        progress: Called after every few images.
    """
    images, objects = GrowingColumn("q"), GrowingColumn("i")
    splits = {}
    for split, rows in source.splits.items():
        first = len(images)
        items = (source.table[row] for row in _values(rows))
        boxes = in_order(partial(source._boxes_or_none, split), items, source.requests_at_once)
        for done, (row, of_image) in enumerate(zip(_values(rows), boxes, strict=True)):
            for number in range(len(of_image or ())) or (-1,):
                images.append(row)
                objects.append(number)
            if progress is not None and done % _PROGRESS_ITEMS == 0:
                progress(done=row, total=len(source.table), size_bytes=0, rejects=0)
        splits[split] = row_range(first, len(images) - first)
    table = source.table.take(images.finish())
    return dataclasses.replace(source, table=dataclasses.replace(table, objects=objects.finish()), splits=splits)


def _values(column: NDArray[np.int64]) -> Iterator[int]:
    for first, end in chunks(len(column)):
        yield from column[first:end].tolist()


class SourceBuilder:
    """Collects what a kind of source lists: the kind fills it and then calls `finish`.

    The paths of files are relative to ``folder``; lists of texts are looked for in ``text_folders``. Images of folders
    have no order of their own; others are ordered as they were added.
    """

    def __init__(
        self, look: Look, folder: Location, text_folders: tuple[Location, ...] = (), *, is_ordered: bool = True
    ) -> None:
        self.root, self.options, self.progress, self._layout = look.root, look.options, look.progress, look.layout
        self.base = folder.to_uri()
        self.folder = from_uri(self.base)  # the same, absolute
        self.walk = Walk(self.base, look.without)
        # the label map that the user gives, or that the classes turn out to have
        self.labels: LabelMap | None = None if self.options.labels is None else read_label_map(self.options.labels)
        self.collector = ItemCollector()
        self.skipped = Skipped()  # what is not an image
        self.warnings = self.skipped.warnings  # for the user, in the order in which they are shown
        self.archives: list[bytes] = []  # the tars the images lie in
        self.classes: set[bytes] = set()  # classes besides those of the images
        self.label_warnings: list[str] = []  # about the labels of the classes
        # folders that hold class folders, and perhaps folders of classes that the source lacks
        self.class_parents: list[Location] = []
        # whether the class names in the collector are ids: numbers from 0, or -1 for no class
        self.numbered = False
        # whether such ids are read as names if all of them are names in the label map
        self.names_may_be_numbers = True
        self.takes_root = False  # whether the option ``image_root`` may replace ``base``
        self._text_folders, self._is_ordered = text_folders, is_ordered
        self._names: list[bytes] = []
        self._table: ItemTable | None = None
        self._splits: dict[str, NDArray[np.int64]] = {}

    def sizes_in(self, folders: Sequence[bytes]) -> dict[bytes, int]:
        """Return the size of each item in some folders, by path below the base; count files that are skipped."""
        sizes: dict[bytes, int] = {}
        for folder, listing in zip(folders, self.walk.list_folders(folders), strict=True):
            self.skipped.add(listing.skipped)
            sizes.update((folder + path, size) for path, size in listing.files)
        return sizes

    def settle(self) -> int:
        """Number classes and images, and return how many classes there are; `finish` does so if it was not called."""
        ids = self._ids() if self.numbered else None
        self._names = self._class_names() if ids is None else self._names_of(ids)
        if self.labels is not None and self.labels.counts_from_1:
            message = f"{self.labels.where} counts its classes from 1"
            self.warnings.append(f"{message}; they have these numbers only with {option('label_base')} 1")
        self._table, self._splits = self.collector.finish(
            {name: label for label, name in enumerate(self._names)} if ids is None else ids
        )
        if self.collector.repeated:
            message = f"{self.collector.repeated} members of tars come again under the same name: the last one counts"
            self.warnings.append(message)
        self._warn_about_classes(self._table)
        return len(self._names)

    def finish(
        self,
        boxes: Mapping[str, Annotations | BoxTable] = MappingProxyType({}),
        reader: StoredReader | None = None,
        cells: Cells | None = None,
        box_classes: tuple[bytes, ...] = (),
    ) -> Source:
        """Return the source, with annotations by split (``boxes``) and, if only boxes have classes, ``box_classes``.

        Without a ``reader`` images are files; ``cells`` says how their values in a table are read.
        """
        if self._table is None:
            self.settle()
        table = self._table
        assert table is not None, "the source is settled"
        known = zip(self.labels.names, self.labels.texts, strict=True) if self.labels else ()
        texts = {name: text for name, text in known if text}
        warnings = self.warnings
        self._warn_of_alike(box_classes or (self._names if self.labels is None and not self.numbered else ()))
        if boxes and box_classes:
            some = [table[row] for row in range(0, len(table), 1 + len(table) // _HEADERS)]
            problems = in_order(partial(problem_of_shape, self.base), some, self.folder.requests_at_once)
            warnings += [problem for problem in problems if problem][:1]
        if reader is None:
            self._warn_of_missing_files(table)
            is_local = self.folder.is_local and table.paths.data.find(b"://") < 0
            reader = FileReader(self.base, "disk" if is_local else "store", cells)
        texts_of = class_texts(self._text_folders, self._names, self.options.class_names, texts, warnings)
        layout = self._layout
        if layout is not None and layout.is_alone and self.base == layout.base.to_uri():
            warnings.insert(0, f"{self.root} holds one folder alone, which is read: {layout.base.name}")
        return Source(
            root=self.root,
            classes=box_classes or tuple(self._names),
            texts=(b"",) * len(box_classes) or texts_of,
            table=self._with_boxes(table, boxes),
            splits=self._splits,
            ignored=dict(sorted((+self.skipped.ignored).items())),
            listing_warnings=(*warnings, *self.label_warnings),
            boxes={
                split: TableBoxes(split_boxes.where) if isinstance(split_boxes, BoxTable) else split_boxes
                for split, split_boxes in boxes.items()
            },
            reader=reader,
            label_warnings=tuple(self.label_warnings),
            is_ordered=self._is_ordered,
        )

    def finish_in(self, reader: StoredReader | None = None, cells: Cells | None = None) -> Source:
        """Return the source with the annotations that are found beside it; see `settle` and `finish`."""
        self.settle()
        splits = {group.split: b"" for group in self.collector.groups if group.split is not None}
        return self.finish(self.find_boxes(self._text_folders, self.folder.resolve(), splits), reader, cells)

    def find_boxes(
        self, tops: tuple[Location, ...], base: Location, folders: Mapping[str, bytes]
    ) -> dict[str, Annotations | BoxTable]:
        """Return the annotations that the user names, or that lie in a source; see `stoker.sources.boxes`."""
        return find_boxes(self.options.boxes, tops, base, folders, self.warnings, self.progress)

    def _with_boxes(self, table: ItemTable, boxes: Mapping[str, Annotations | BoxTable]) -> ItemTable:
        if not any(isinstance(split_boxes, BoxTable) for split_boxes in boxes.values()):
            return table
        column, damaged = GrowingBlobs(), GrowingBlobs()
        for split, rows in self._splits.items():
            split_boxes = boxes.get(split)
            known = split_boxes.columns(table, rows, self._names) if isinstance(split_boxes, BoxTable) else ()
            for own, problem in known or repeat((b"", b""), len(rows)):
                column.append(own)
                damaged.append(problem)
        return replace(table, columns={**table.columns, "boxes": column.finish(), "damaged": damaged.finish()})

    def _ids(self) -> dict[bytes, int] | None:
        """Return the id of each class name, which is a number; None if all are names of classes in the label map."""
        names = self.collector.class_names()
        if self.labels is not None and self.names_may_be_numbers and names <= {*self.labels.names}:
            return None
        first = 0 if self.labels is None else int(self.labels.counts_from_1)
        ids = {name: int(name) - first for name in names}
        counts = Counter(ids.values())
        same = sorted(name for name, number in ids.items() if counts[number] > 1)
        self.skipped.warn(same, "labels that are the same number are one class: {names}")
        return ids

    def _names_of(self, ids: Mapping[bytes, int]) -> list[bytes]:
        """Return the name of every class up to the largest id: as the label map has it, or else its number."""
        most = max(ids.values(), default=-1)
        if self.labels is not None:
            where, first = self.labels.where, int(self.labels.counts_from_1)
            wrong = [label for label in (most, min(ids.values(), default=0)) if not 0 <= label < len(self.labels.names)]
            if wrong:
                message = f"{self.root} has the class id {wrong[0] + first}, but the label map {where} has"
                message += f" {format_count(len(self.labels.names), 'class')}, the first of which is {first}"
                raise SourceError(f"{message}; give the label map of this data set", path=where)
            return list(self.labels.names)
        if most >= MAX_CLASSES:
            message = f"{self.root} has the class id {most}; the largest is {MAX_CLASSES - 1}"
            raise SourceError(f"{message}; number the classes from 0, or give their names", path=self.root)
        held = set(ids.values())
        names = [b"%d" % label for label in range(most + 1)]
        empty = [name for label, name in enumerate(names) if label not in held]
        self.skipped.warn(empty, f"class ids run from 0 to {most}, and these have no images: {{names}}")
        return names

    def _class_names(self) -> list[bytes]:
        classes = self.collector.class_names() | self.classes
        for name in classes:
            if has_control_character(name):
                message = f"the class {os.fsdecode(name)!r} has a control character in its name; rename it"
                raise SourceError(message, path=self.root)
        if self.labels is None and self.options.imagenet_labels:
            self._number_as_imagenet(classes)
        if self.labels is None:
            if self.options.imagenet_labels is not False:
                self._warn_of_part(classes)
            self._warn_of_missing(classes)
            return sorted(classes)
        unknown = sorted(classes.difference(self.labels.names))
        if unknown:
            where = self.labels.where
            message = f"the label map {where} does not name {len(unknown)} of the classes: {shown_names(unknown)}"
            raise SourceError(f"{message}; add them, or give the label map of this data set", path=where)
        return list(self.labels.names)

    def _number_as_imagenet(self, classes: set[bytes]) -> None:
        """Give the classes the labels of ImageNet's 1,000 if they are all among them."""
        bundled = bundled_label_map()
        if not classes or not classes.issubset(bundled.names):
            return
        self.labels = bundled
        if len(classes) < len(bundled.names):
            few = f"the source has {len(classes)} of ImageNet's 1,000 classes; they keep their labels in the full list"
            self.warnings.append(f"{few}, as the preset asks; give {option('labels')} FILE for others")

    def _warn_of_part(self, classes: set[bytes]) -> None:
        """Warn of classes that may be a part of ImageNet, or contain it, and whose labels differ from its own."""
        whole = imagenet_classes().texts
        if not classes or classes == whole.keys() or self._are_listed(classes):
            return
        others = sorted(classes.difference(whole))
        count, of_imagenet = len(classes), f"ImageNet's {len(whole):,}"
        numbered = f"numbered 0 to {count - 1} by name"
        if not others:
            message = f"{self.root} has {count} of {of_imagenet} classes; they are {numbered}, not as in the full list"
            message = f"{message}; for its numbers give {option_with('labels', BUNDLED_LIST)}"
        elif 2 * len(others) < count:
            message = f"{len(others)} of the {count:,} classes of {self.root} are not among {of_imagenet}"
            message = f"{message}: {shown_names(others)}; all are {numbered}, not as in the full list"
            message = f"{message}; move those away, or give {option_with('labels', 'FILE')}"
        elif count < len(whole) and all(map(is_wordnet_id, classes)):
            message = f"the {count} classes of {self.root} are called by WordNet ids; they are {numbered}"
            given = option_with("labels", "FILE")
            message = f"{message}; if they are a part of a larger data set, give {given} for its numbers"
        else:
            return
        self.label_warnings.append(message)

    def _warn_of_missing(self, classes: set[bytes]) -> None:
        """Warn of folders of other classes beside those of the source: with them the labels would differ."""
        missing = list(islice(_classes_beside(self.class_parents, classes), _NAMED_CLASSES))
        if missing:
            message = f"{self.root} lacks classes whose folders lie beside those of its images: {shown_names(missing)}"
            message = f"{message}; it numbers its own 0 to {len(classes) - 1} without them"
            advice = f"to number all classes alike in every source give {option_with('labels', 'FILE')}"
            self.label_warnings.append(f"{message}; {advice}")

    def _are_listed(self, names: set[bytes]) -> bool:
        below = (*self.class_parents, self.folder)
        folders = dict.fromkeys((*self._text_folders, *below, *(folder.parent for folder in below)))
        paths = (folder / name for folder in folders for name in CLASS_LISTS)
        return any(path.is_file() and {line.split()[0] for _, line in nonblank_lines(path)} == names for path in paths)

    def _warn_of_missing_files(self, table: ItemTable) -> None:
        missing = np.flatnonzero(table.sizes == 0)
        if not len(missing):
            return
        names = [table.paths[row] for row in missing[:_NAMED_CLASSES].tolist()]
        message = f"images that are missing or empty, or links that lead nowhere: {len(missing):,} of {len(table):,},"
        message += f" such as {shown_names(names)}"
        message += "" if is_absolute(names[0]) else f" in {os.fsdecode(self.base)}"
        if self.takes_root and len(missing) == len(table) and not is_absolute(names[0]):
            message += f"; if their paths are relative to another folder, give {option_with('image_root', 'FOLDER')}"
        self.warnings.append(message)

    def _warn_about_classes(self, table: ItemTable) -> None:
        counts = counts_of(table.labels, self._splits.values(), len(self._names))[1:].tolist()
        classes = self.collector.class_names()
        empty = [name for name, count in zip(self._names, counts, strict=True) if not count]
        listed = [name for name in empty if name not in classes]
        if listed and self.labels and self.labels.where != BUNDLED_LIST:  # a part of ImageNet is meant
            self.warnings.append(f"the list of labels has {format_count(len(listed), 'class')} without images")
        empty = [name for name in empty if name in classes]
        if empty and self.labels is None and len(table):
            message = f"{self.root} has classes without images in any split: {shown_names(empty)}; move their"
            advice = f"to keep their labels, name every class in a file and give {option_with('labels', 'FILE')}"
            raise SourceError(
                f"{message} folders away (annotations in them are not read), or, {advice}", path=self.root
            )
        self.skipped.warn(empty, "no images in class {names}; it keeps its label")
        train = {group.class_name for group in self.collector.groups if group.split == "train"}
        if train:
            extra = sorted(classes.difference(name for name in train if name is not None))
            self.skipped.warn(extra, "classes that are not in train get labels all the same: {names}")

    def _warn_of_alike(self, names: Sequence[bytes]) -> None:
        alike: dict[str, list[bytes]] = {}
        for name in names:
            text = _OF_COPY.sub("", unicodedata.normalize("NFKC", os.fsdecode(name)).casefold())
            alike.setdefault("".join(text.split()), []).append(name)
        same = [b" and ".join(names) for names in alike.values() if len(names) > 1]
        what = "case, blanks, Unicode form or an ending of copies"
        self.skipped.warn(same, f"classes whose names differ in {what} alone have labels of their own: {{names}}")


def _classes_beside(parents: Iterable[Location], known: set[bytes]) -> Iterator[bytes]:
    """Yield, sorted, the names of folders in ``parents`` that seem to hold images and are not ``known`` classes.

    Only some entries of the first hundred folders are looked at, so that the warning is cheap.
    """
    others: dict[bytes, bytes] = {}
    for parent in parents:
        where = parent.to_uri()
        with contextlib.suppress(SourceError):
            names = (name for name in folders_in(where) if name not in known and name not in _NO_CLASSES)
            others |= {name: join(where, name) for name in names if not name.startswith(b".")}
    for name, folder in sorted(others.items())[:_LOOKED_AT]:
        with contextlib.suppress(SourceError):
            if _may_hold_images(folder) and not is_dataset(from_uri(folder)):
                yield name


def _may_hold_images(folder: bytes) -> bool:
    return any(
        name == IMAGES_FOLDER if is_folder else not is_sidecar(name) and not name.startswith(b".")
        for name, is_folder in islice(some_entries(folder), _LOOKED_AT)
    )


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source."""

    name: str  # what help and messages call it
    claim: Callable[[Look], Any]  # returns what ``list`` needs; None or something empty for a path of another kind
    list: Callable[[Look, Any], Source]  # lists a path; both raise the errors of `stoker.sources.list_source`
    # names of the `stoker.sources.SourceOptions` that apply to it; others are refused
    options: frozenset[str] = LABEL_OPTIONS | {"boxes", "validation_labels"}
    reader: type[StoredReader] = FileReader  # the reader that saved listings name
    annotations: tuple[type[Annotations], ...] = ()  # annotations that only this kind has, for saved listings, too
