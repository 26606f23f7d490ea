"""Boxes of images: their formats, where annotations are looked for, and how they are read with the images.

- Pascal VOC's XML in a folder (`BoxFolder`) or where the images lie (`MappedBoxes`), read image by image
- XML in a tar (`read_box_tar`), the CSV that the ImageNet build scripts make (`read_box_csv`), and Tiny ImageNet's
  lists (`read_tiny_boxes`), read once and put into the table of the images by a `BoxTable`
- boxes that other kinds of sources read themselves (`TableBoxes`), collected by `BoxColumns`
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import math
import os
import struct
from abc import ABC, abstractmethod
from array import array
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from stoker.config import format_some, option, option_with
from stoker.errors import ImageError, SourceError
from stoker.recipe import dimensions, is_turned, orientation, sniff, turn_box
from stoker.sources.files import (
    first_file,
    folders_in,
    in_order,
    nonblank_lines,
    numbered_lines,
    read_annotation,
    some_entries,
)
from stoker.sources.items import Blobs, Column, GrowingBlobs, Item, ItemTable, chunks
from stoker.sources.labels import has_control_character
from stoker.sources.names import ANNOTATION_FOLDERS, divide_suffix, image_stem, replace_last, shown_names
from stoker.sources.reader import to_bytes, to_text
from stoker.sources.tar_format import FileWindow, may_be_tar, open_stream, read_member, tar_members
from stoker.storage import Location, from_uri, join, location, split_bucket
from stoker.types import MAX_CLASSES, Box, Progress

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray


TINY_LIST, TINY_BOXES = "val_annotations.txt", "_boxes.txt"
"""The classes and the boxes of Tiny ImageNet's validation images."""

KAGGLE_BOXES = "LOC_train_solution.csv"
_FILES = (
    "ILSVRC2012_bbox_train_v2.tar.gz",
    "annotations.tar.gz",
    "annotation.tar",
    "imagenet_2012_bounding_boxes.csv",
)
_VALIDATION_FILES = ("ILSVRC2012_bbox_val_v3.tgz", "ILSVRC2012_bbox_val_v3.tar.gz")
_TINY_SIDE = 64
_PROGRESS_MEMBERS = 1024
_SHOWN_LINES = 5

_HEADER_BYTES = 2**16
_WITHOUT_AREA = "boxes without area inside the image"
_OF_OTHER_SHAPE = "images of other shapes than annotations state, with wrong boxes unless they were merely stretched"
_TURNED = "images that were annotated as their EXIF orientation shows them, whose boxes are turned to lie as stored"
_BACK = {5: 5, 6: 8, 7: 7, 8: 6}
"""Orientations that turn an upright image into the stored one, for those that swap width and height."""

BOX = np.dtype([("corners", "<f8", 4), ("label", "<i4")])
"""A box in the column ``boxes``: xmin, ymin, xmax, ymax as fractions of the image's sides, and its class or -1."""

OUTSIDE, EMPTY = 1, 2
"""Flaws of boxes: a part is outside the image; the area is 0."""

_ROUNDING = 1e-4  # error of corners, which records hold in single precision

MAX_XML_BYTES = 2**22
"""Longest annotation that is read."""

_KEY_BYTES = 16
_ROW = np.dtype(
    [("key", f"S{_KEY_BYTES}"), ("stem", f"S{_KEY_BYTES}"), ("box", BOX), ("annotation", "<i4"), ("name", "<i4")]
)
"""A box in a `BoxTable`: digests of the folder and stem of its annotation, and of the stem alone; the box; the number
of the annotation; and the number of the object's name, or -1 for an annotation without boxes."""
_PACKED_ROW = struct.Struct(f"<{_KEY_BYTES}s{_KEY_BYTES}s4diii")
_MAX_KEY_BYTES = 255  # of a file name
_MAX_BOXES = 2**24
_MAX_NAMES = 2**16
_MAX_DAMAGED = 2**18


@dataclass(frozen=True, slots=True)
class Annotations(ABC):
    """The annotations of one split. Read-only; safe in any thread; can be pickled.

    A saved listing has the ``name`` of the class and its fields.
    """

    name: ClassVar[str]

    @property
    @abstractmethod
    def where(self) -> str:
        """The file or the folder they come from."""

    @property
    def has_labels(self) -> bool:
        """Whether boxes have classes of their own."""
        return False

    @abstractmethod
    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> Sequence[Box | None]:
        """Return the boxes of one image, perhaps None for one without area; an image without annotation has none.

        Args:
            item: The image.
            class_name: Its class; empty without one.
            class_names: The whole label set.

        Raises:
            SourceError: The annotation is damaged.
        """

    @abstractmethod
    def flaws(self, item: Item, class_name: bytes) -> int:
        """Return the flaws of boxes of one image that `read` clips or drops: `OUTSIDE`, `EMPTY`, both or 0."""

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `from_json` makes the same annotations."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {name: to_text(value) if isinstance(value, bytes) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:
        """Return the annotations that `to_json` has described, given the table of images and the number of classes.

        Raises:
            KeyError, TypeError, ValueError: It is damaged, or the table lacks a column.
        """
        kinds: dict[str, Callable[[Any], Any]] = {"bool": bool, "bytes": to_bytes, "str": str}
        annotations = cls(
            **{each.name: kinds[str(each.type)](described[each.name]) for each in dataclasses.fields(cls)}
        )
        annotations.check(table, classes)
        return annotations

    def check(self, table: ItemTable, classes: int) -> None:  # noqa: B027 - of most there is nothing
        """Check their columns in the table of a saved listing."""


@dataclass(frozen=True, slots=True)
class TableBoxes(Annotations):
    """Annotations that the listing has read into the table.

    The column ``boxes`` has an array of `BOX` for each item. ``damaged`` says what is wrong with its annotation, and is
    empty if nothing is; ``annotated`` has the sizes for `turn_back`; ``flaws`` has the results of `flaws`.
    """

    name: ClassVar[str] = "table"
    where: str = dataclasses.field()  # so that the property of `Annotations` is not its default
    has_labels: bool = False

    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:  # noqa: ARG002
        if item.columns["damaged"]:
            raise SourceError(f"damaged annotation: {item.columns['damaged'].decode()}", path=self.where)
        boxes = np.frombuffer(item.columns["boxes"], BOX)
        corners, labels = boxes["corners"].tolist(), boxes["label"].tolist()
        pairs = zip(corners, labels, strict=True)
        return [Box(x0, y0, x1, y1, label if self.has_labels else None) for (x0, y0, x1, y1), label in pairs]

    def flaws(self, item: Item, class_name: bytes) -> int:  # noqa: ARG002
        return int(item.columns.get("flaws", 0))

    def counts(self, table: ItemTable, rows: NDArray[np.int64], classes: int) -> list[int]:
        """Return how many boxes each class has in some rows; an image with a row for each object counts once."""
        boxes = _boxes_of(table, rows[table.objects[rows] <= 0])
        return [int(count) for count in np.bincount(np.frombuffer(boxes.data, BOX)["label"], minlength=classes)]

    def digest(self, table: ItemTable) -> bytes:
        """Return 32 bytes that change with any box."""
        rows = table.image_rows()
        boxes, damaged = _boxes_of(table, rows), cast("Blobs", table.columns["damaged"])
        bounds = (boxes.starts // BOX.itemsize).tolist()
        extents = [(table.paths[row], (bounds[at], bounds[at + 1])) for at, row in enumerate(rows.tolist())]
        problems = [(table.paths[row], damaged[row].decode()) for row in rows.tolist() if damaged[row]]
        some = [(path, extent) for path, extent in extents if extent[0] < extent[1]]
        digest = hashlib.sha256(repr((sorted(some), sorted(problems))).encode())
        values = np.frombuffer(boxes.data, BOX)
        digest.update(values["corners"].tobytes())
        digest.update(values["label"].tobytes())
        return digest.digest()

    def check(self, table: ItemTable, classes: int) -> None:
        boxes, damaged = table.columns["boxes"], table.columns["damaged"]
        if not isinstance(boxes, Blobs) or not isinstance(damaged, Blobs) or (boxes.starts % BOX.itemsize).any():
            raise ValueError("boxes that are not there")
        annotated = table.columns.get("annotated")
        if isinstance(annotated, Blobs) or (annotated is not None and annotated.shape[1:] != (2,)):
            raise ValueError("sizes that are none")
        labels = np.frombuffer(boxes.data, BOX)["label"]
        if self.has_labels and len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise ValueError("classes of boxes out of range")


def place_in_stored(read: Sequence[Box | None], item: Item, data: object) -> tuple[list[Box], dict[str, int]]:
    """Return boxes as they lie in the stored image, given its file or its header, and the number of each flaw to tell.

    Annotation tools show photographs turned by their EXIF orientation: their boxes are turned back.
    """
    boxes = [box for box in read if box is not None]
    turn = _turn_of_annotation(item, data) if boxes else 1
    told = {_WITHOUT_AREA: len(read) - len(boxes), _OF_OTHER_SHAPE: turn == 0, _TURNED: turn > 1}
    return [turn_box(box, _BACK[turn]) for box in boxes] if turn > 1 else boxes, told


def problem_of_shape(base: bytes, item: Item) -> str:
    """Return what is wrong with the size that the annotation of an image states, or if it states none; else nothing."""
    image = from_uri(join(base, item.path))
    with contextlib.suppress(OSError):  # the build reports it
        head = image.read_head(_HEADER_BYTES)
        if "annotated" not in item.columns and is_turned(head):
            message = f"EXIF turns images, such as {image}, and their boxes state no size of the image; they are read"
            message += " as of images as stored; if they were drawn on upright ones, save the images upright, for"
            return f"{message} example with 'mogrify -auto-orient' of ImageMagick"
        if not _turn_of_annotation(item, head):
            sizes = ("x".join(map(str, size)) for size in (dimensions(head, sniff(head)), item.columns["annotated"]))
            return "{}: {} is {}, not {}; mend the annotations".format(_OF_OTHER_SHAPE, image, *sizes)
    return ""


def _turn_of_annotation(item: Item, data: object) -> int:
    """Return the EXIF orientation in which an annotation shows its image.

    The column ``annotated`` has the width and the height that it states: of the image, which may be turned, or of a
    copy of that as stored. The result is 1 for this and for pixels, which have no orientation; 0 for another shape.
    """
    width, height = map(int, item.columns.get("annotated", (0, 0)))
    if not (width and height and isinstance(data, bytes)):
        return 1
    with contextlib.suppress(ImageError):  # the build reports it
        kind = sniff(data)
        stored = dimensions(data, kind)
        if stored == (height, width) != (width, height) and (turn := orientation(data, kind)) in _BACK:
            return turn
        rounding = max(width + height, sum(stored))  # of the sides of a copy to whole pixels
        return int(abs(width * stored[1] - height * stored[0]) <= rounding)
    return 1


def _boxes_of(table: ItemTable, rows: NDArray[np.int64]) -> Blobs:
    return cast("Blobs", table.columns["boxes"]).take(rows)


class BoxColumns:
    """Collects the columns of `TableBoxes` while annotations are read; each image is added, in order, before its boxes.

    Attributes:
        names: The classes that boxes have, each with a number.
        damaged: What is wrong with annotations, by the number of their image.
        flaws: What `Annotations.flaws` returns, of each image.
    """

    def __init__(self) -> None:
        self.names: dict[bytes, int] = {}
        self.damaged: dict[int, str] = {}
        self.flaws = array("i")
        self._sizes = array("d")
        self._corners, self._names, self._images = array("d"), array("i"), array("q")

    def add_image(self, size: tuple[float, float] = (0, 0), flaws: int = 0) -> int:
        """Return the number of the next image, given the width and the height that its annotation states."""
        self._sizes.extend(size)
        self.flaws.append(flaws)
        return len(self.flaws) - 1

    def add(self, image: int, name: bytes, box: Box) -> None:
        """Add a box of the class with a name."""
        self._corners.extend(box.corners)
        self._names.append(self.names.setdefault(name, len(self.names)))
        self._images.append(image)

    def classes(self, root: str, names: Sequence[bytes] = ()) -> tuple[bytes, ...]:
        """Return ``names``, or else the names of all boxes, sorted; refuse names that cannot be classes of a source."""
        classes = tuple(names) or tuple(sorted(self.names))
        wrong = [name for name in classes if not name or has_control_character(name)]
        if wrong or len(classes) > MAX_CLASSES:
            what = f"an object called {os.fsdecode(wrong[0])!r}" if wrong else f"{len(classes)} classes"
            message = f"{root} has annotations with {what}; give every object the name of one of up to {MAX_CLASSES}"
            raise SourceError(message, path=root)
        return classes

    def finish(self, classes: Sequence[bytes]) -> dict[str, Column]:
        """Return the columns, given all classes in the order of their labels."""
        label_of = {name: label for label, name in enumerate(classes)}
        labels = np.array([label_of[name] for name in self.names], np.int32)
        boxes = np.empty(len(self._names), BOX)
        boxes["corners"] = np.array(self._corners, np.float64).reshape(-1, 4)
        boxes["label"] = labels[np.array(self._names, np.int32)]
        order = np.argsort(self._images, kind="stable")
        bounds = BOX.itemsize * np.searchsorted(self._images, np.arange(len(self.flaws) + 1), sorter=order)
        own, damaged = GrowingBlobs(), GrowingBlobs()
        own.extend(boxes[order].tobytes(), np.diff(bounds))
        for image in range(len(self.flaws)):
            damaged.append(self.damaged.get(image, "").encode("utf-8", "backslashreplace"))
        sizes = np.clip(np.array(self._sizes), 0, 2**31 - 1).astype(np.int32).reshape(-1, 2)
        flaws = np.array(self.flaws, np.int32)
        return {"boxes": own.finish(), "damaged": damaged.finish(), "annotated": sizes, "flaws": flaws}


@dataclass(frozen=True, slots=True)
class NamedBox:
    """A box, and the name of its object in the annotation, and whether that is marked as difficult or truncated."""

    name: bytes
    box: Box
    difficult: bool = False
    truncated: bool = False


class NamedBoxes(list[NamedBox]):
    """The boxes of an annotation, the ``size`` it states, `flaws_of` them, and how many without area were dropped."""

    size: tuple[float, float] = (0, 0)
    flaws = dropped = 0


def read_boxes(path: bytes, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
    """Return the boxes of one image, as fractions of its width and height.

    Boxes that name another class of the label set are dropped; names outside it are kept, because ImageNet's files
    often carry a breed's name instead of its id.

    Args:
        path: The XML file, or its URL. An image without one has no boxes.
        class_name: Class of the image.
        class_names: The whole label set.

    Raises:
        SourceError: The file is damaged, or a number in it is not finite.
        StorageError: Its store cannot be reached.
    """
    return [named.box for named in _read(path) if _is_of(named.name, class_name, class_names)]


def _read(path: bytes) -> NamedBoxes:
    text = read_annotation(path)
    try:
        return NamedBoxes() if text is None else parse_annotation(text)
    except ValueError as error:
        raise SourceError(f"damaged annotation: {error}", path=os.fsdecode(path)) from error


def _is_of(name: bytes, class_name: bytes, class_names: Collection[bytes]) -> bool:
    """Return whether an object of a name belongs to an image of a class, by the rule of `read_boxes`."""
    return name == class_name or name not in class_names


def parse_annotation(text: bytes) -> NamedBoxes:
    """Return all boxes of an annotation; ``ValueError`` if it is not such XML, or a number in it is not finite.

    Coordinates are divided by the size that the XML states (annotators saw scaled pictures, so it may differ from the
    image's), put in order and clamped to 0..1; empty boxes are dropped.
    """
    if len(text) > MAX_XML_BYTES:
        raise ValueError(f"{len(text)} bytes of XML, more than {MAX_XML_BYTES}")
    try:
        root: Element = fromstring(text)
    except (ParseError, DefusedXmlException, LookupError) as error:  # the last: of an encoding that Python lacks
        raise ValueError(str(error)) from error
    boxes = NamedBoxes()
    boxes.size = size = width, height = _number(root, "size/width"), _number(root, "size/height")
    if width <= 0 or height <= 0:
        raise ValueError(f"size is {width:g} x {height:g}")
    for item in root.iterfind("object"):
        name = (item.findtext("name") or "").strip().encode()
        flags = [(item.findtext(tag) or "").strip().lower() in ("1", "true") for tag in ("difficult", "truncated")]
        corners_of_all = item.findall("bndbox")
        if not corners_of_all:  # a polygon of CVAT's, or a rotated box
            others = format_some([child.tag for child in item if len(child)], _SHOWN_LINES) or "no other"
            shown = name.decode()[:40]
            raise ValueError(f"an object {shown!r} has no <bndbox>, but {others}; write the box around it")
        for corners in corners_of_all:
            x = [_number(corners, tag) for tag in ("xmin", "xmax")]
            y = [_number(corners, tag) for tag in ("ymin", "ymax")]
            boxes.flaws |= flaws_of(x, y, *size)
            if (box := place_box(x, y, *size)) is not None:
                boxes.append(NamedBox(name, box, flags[0], flags[1]))
            else:
                boxes.dropped += 1
    return boxes


def place_box(x: Sequence[float], y: Sequence[float], width: float, height: float) -> Box | None:
    """Return the box between two corners, as fractions of a width and a height; None if nothing of it is inside.

    The edges ``x`` and ``y`` are in any order.
    """
    left, right = sorted(min(max(value / width, 0.0), 1.0) for value in x)
    top, bottom = sorted(min(max(value / height, 0.0), 1.0) for value in y)
    return Box(left, top, right, bottom) if left < right and top < bottom else None


def flaws_of(x: Sequence[float], y: Sequence[float], width: float = 1.0, height: float = 1.0) -> int:
    """Return whether a box, as `place_box` takes it, is `OUTSIDE` or `EMPTY`, both, or 0."""
    edges = [*(value / width for value in x), *(value / height for value in y)]
    is_inside = all(-_ROUNDING <= edge <= 1 + _ROUNDING for edge in edges)
    return (0 if is_inside else OUTSIDE) | (EMPTY if x[0] == x[1] or y[0] == y[1] else 0)


def _number(element: Element, path: str) -> float:
    text = element.findtext(path)
    if text is None:
        raise ValueError(f"no <{path}>")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"<{path}> is {text.strip()[:40]!r}, which is not a finite number")
    return value


class BoxTable:
    """The boxes of all annotations in a file, by names of images, before they become columns of a table.

    With ``replacing`` an annotation replaces an earlier one of the same name, as members of a tar do in unpacking;
    otherwise the boxes of both count.
    """

    def __init__(self, where: str, *, replacing: bool) -> None:
        self.where = where
        self.damaged: dict[bytes, str] = {}
        self._rows = io.BytesIO()
        self._names: dict[bytes, int] = {}
        self._folders: set[bytes] = set()
        self._replacing = replacing
        self._annotations = 0
        self._sorted: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None

    def add(self, folder: bytes, stem: bytes, boxes: Sequence[NamedBox]) -> None:
        """Add the boxes of one image, given the folder, which may be the class, and the stem of its annotation."""
        key, by_stem = self._key(folder, stem), _digest(stem)
        by_key = _digest(key) if folder else by_stem
        if self._replacing:
            self._annotations += 1
            self.damaged.pop(key, None)
        for named in boxes or (None,) * self._replacing:  # an annotation without boxes replaces others, too
            if self._rows.tell() == _MAX_BOXES * _ROW.itemsize:
                raise SourceError(f"{self.where} holds more than {_MAX_BOXES} boxes", path=self.where)
            corners, number = (0.0, 0.0, 0.0, 0.0), -1
            if named is not None:
                name = named.name if len(self._names) < _MAX_NAMES or named.name in self._names else b""
                number = self._names.setdefault(name, len(self._names))
                corners = named.box.corners
            self._rows.write(_PACKED_ROW.pack(by_key, by_stem, *corners, -1, self._annotations, number))

    def add_damaged(self, folder: bytes, stem: bytes, problem: str) -> None:
        """Note that the annotation of an image is damaged."""
        if len(self.damaged) == _MAX_DAMAGED:
            message = f"{self.where} holds more than {_MAX_DAMAGED} damaged annotations; is it the right file?"
            raise SourceError(message, path=self.where)
        self.damaged[self._key(folder, stem)] = problem

    def columns(
        self, table: ItemTable, rows: NDArray[np.int64], classes: Sequence[bytes]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Yield the columns of `TableBoxes` for consecutive images of a table; no box can be added afterwards.

        Boxes are chosen as in `read_boxes`. Annotations in folders named after classes are looked up by class.
        """
        per_class = not self._folders.isdisjoint(classes)
        damaged = self.damaged if per_class else {key.rpartition(b"/")[2]: what for key, what in self.damaged.items()}
        if self._sorted is None:
            self._sorted = self._newest("key" if per_class else "stem")
        known, numbers, boxes = self._sorted
        class_names, names_of_boxes = frozenset(classes), tuple(self._names)
        for start, end in chunks(len(rows)):
            labels = table.labels[rows[start:end]].tolist()
            names = [classes[label] if label >= 0 else b"" for label in labels]
            stems = map(image_stem, table.paths.values(int(rows[start]), int(rows[start]) + len(labels)))
            keys = [name + b"/" + stem if per_class and name else stem for name, stem in zip(names, stems, strict=True)]
            wanted = np.array([_digest(key) for key in keys], known.dtype)
            bounds = (np.searchsorted(known, wanted, side).tolist() for side in ("left", "right"))
            for key, name, first, last in zip(keys, names, *bounds, strict=True):
                problem = damaged.get(key, "")
                own = enumerate(numbers[first:last].tolist() if not problem else (), first)
                known_names = ((row, names_of_boxes[number]) for row, number in own if number >= 0)
                chosen = [row for row, own_name in known_names if _is_of(own_name, name, class_names)]
                yield boxes[chosen].tobytes(), problem.encode("utf-8", "backslashreplace")

    def _newest(self, by: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return all keys, ascending, with the numbers of names and the boxes; only the last annotation of each key."""
        rows = np.frombuffer(self._rows.getbuffer(), _ROW)
        rows = rows[np.argsort(rows[by], kind="stable")]
        alike = (rows[by][1:] == rows[by][:-1]) & (rows["key"][1:] != rows["key"][:-1])
        if self._replacing and alike.any():
            folders = shown_names(sorted(self._folders - {b""}))
            message = (
                f"{self.where} has annotations of one name in several folders ({folders}), none of which is a class"
            )
            raise SourceError(f"{message}; unpack it, and give the folder of the data set", path=self.where)
        is_last = np.append(rows[by][1:] != rows[by][:-1], True)[: len(rows)]
        newest = np.repeat(rows["annotation"][is_last], np.diff(np.flatnonzero(is_last), prepend=-1))
        rows = rows[rows["annotation"] == newest]
        return np.ascontiguousarray(rows[by]), np.ascontiguousarray(rows["name"]), np.ascontiguousarray(rows["box"])

    def _key(self, folder: bytes, stem: bytes) -> bytes:
        if len(stem) > _MAX_KEY_BYTES or len(folder) > _MAX_KEY_BYTES:
            name = (folder + b"/" + stem)[:64].decode("utf-8", "replace")
            message = f"{self.where} names an image {name}..., longer than any file name; is it the right file?"
            raise SourceError(message, path=self.where)
        self._folders.add(folder)
        return folder + b"/" + stem if folder else stem


def _digest(key: bytes) -> bytes:
    """Return a short digest of a name, to search for in place of the name."""
    return hashlib.blake2b(key, digest_size=_KEY_BYTES).digest()


def find_boxes(
    explicit: str | None,
    tops: tuple[Location, ...],
    base: Location,
    folders: Mapping[str, bytes],
    warnings: list[str],
    progress: Progress | None,
) -> dict[str, Annotations | BoxTable]:
    """Return the annotations of each split; a split without annotations is absent.

    Searched in this order: ``explicit``, the user's folder of XML files, tar of them, or CSV file; a folder of
    `ANNOTATION_FOLDERS` in the first of ``tops``; the path of the images with its last component ``Data`` replaced by
    ``Annotations``; such a folder in the other tops; a file with a name under which the annotations of ImageNet or
    Stanford Dogs are distributed. In a folder of annotations, its folder for the split comes first. The ``folders`` of
    the splits are relative to ``base``, the folder of the images: empty, or ending in a slash.
    """
    path = location(explicit).resolve() if explicit is not None else _find_annotations(tops, base)
    if explicit is not None and not location(explicit).exists():
        message = f"{option('boxes')} {explicit} does not exist; give a folder of XML files, a tar of them or a CSV"
        raise SourceError(message, path=explicit)
    if path is None:
        if kaggle := first_file(tops, (KAGGLE_BOXES,)):
            message = f"{kaggle} has boxes, which are not read; the same are in Annotations/ of its download"
            warnings.append(f"{message}: give {option_with('boxes', 'FOLDER')}")
        return {}
    boxes: dict[str, Annotations | BoxTable]
    if path.is_dir():
        boxes = {split: _boxes_in(path, os.fsdecode(folder)) for split, folder in folders.items()}
    else:
        boxes = dict.fromkeys(folders, _read_file(path, warnings, progress))
    validation = first_file(tops, _VALIDATION_FILES)
    if explicit is None and validation is not None and "validation" in boxes:
        boxes["validation"] = _read_file(validation, warnings, progress)
    return boxes


def _find_annotations(tops: tuple[Location, ...], base: Location) -> Location | None:
    mirrored = annotations_beside(os.fsencode(str(base)))
    mirrors = [] if mirrored is None else [from_uri(mirrored)]
    below = [[top / os.fsdecode(name) for name in sorted(ANNOTATION_FOLDERS)] for top in tops]
    # In ILSVRC's layout the folder that mirrors the folder of the images is more exact than its parent.
    candidates = chain(*below[:1], mirrors, *below[1:])
    folder = next((candidate for candidate in candidates if candidate.is_dir()), None)
    if folder is None:
        return first_file(tops, _FILES)
    if any(is_folder or name.endswith(b".xml") for name, is_folder in some_entries(folder.to_uri())):
        return folder
    return first_file((folder,), _FILES) or folder


def _read_file(path: Location, warnings: list[str], progress: Progress | None) -> BoxTable:
    if may_be_tar(path):
        return read_box_tar(path, progress)
    boxes, notes = read_box_csv(path)
    warnings += notes
    return boxes


def _boxes_in(top: Location, split_folder: str) -> BoxFolder:
    inner = top / split_folder
    where = (inner if split_folder and inner.is_dir() else top).to_uri()
    folders = folders_in(where)
    names = [name for name, _ in some_entries(where + b"/" + folders[0])] if folders else []  # one folder shows enough
    suffix = b"" if names and not any(name.endswith(b".xml") for name in names) else b".xml"
    return BoxFolder(where, per_class=bool(folders), suffix=suffix)


@dataclass(frozen=True, slots=True)
class _XmlFiles(Annotations):
    """Annotations in XML files, read image by image."""

    @abstractmethod
    def locate(self, class_name: bytes, image_path: bytes) -> bytes | None:
        """Return where the XML of an image must be, whether or not it exists; None if it cannot have one."""

    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
        path = self.locate(class_name, item.path)
        return [] if path is None else read_boxes(path, class_name, class_names)

    def flaws(self, item: Item, class_name: bytes) -> int:
        path = self.locate(class_name, item.path)
        return 0 if path is None else _read(path).flaws


@dataclass(frozen=True, slots=True)
class BoxFolder(_XmlFiles):
    """XML files in one folder, or in a folder for each class; those of Stanford Dogs have no suffix."""

    name: ClassVar[str] = "folder"
    path: bytes  # the folder: an absolute path or a URL
    per_class: bool
    suffix: bytes = b".xml"

    @property
    def where(self) -> str:
        return os.fsdecode(self.path)

    def locate(self, class_name: bytes, image_path: bytes) -> bytes:
        stem = image_stem(image_path)
        parts = (self.path, class_name, stem) if self.per_class and class_name else (self.path, stem)
        return b"/".join(parts) + self.suffix


@dataclass(frozen=True, slots=True)
class MappedBoxes(_XmlFiles):
    """XML files at the paths of the images, with ``Annotations`` instead of ``Data`` (ILSVRC's own layout)."""

    name: ClassVar[str] = "mapped"
    base: bytes  # folder that paths of images are relative to

    @property
    def where(self) -> str:
        return "Data -> Annotations"

    def locate(self, class_name: bytes, image_path: bytes) -> bytes | None:  # noqa: ARG002
        mapped = annotations_beside(join(self.base, image_path))
        return None if mapped is None else divide_suffix(mapped)[0] + b".xml"


def annotations_beside(where: bytes) -> bytes | None:
    """Return a path or URL with its last part ``Data`` replaced by ``Annotations``; None if it has no such part."""
    bucket, rest = split_bucket(where)
    parts = rest.split(b"/")
    if not replace_last(parts, b"Data", b"Annotations"):
        return None
    return (bucket and bucket + b"/") + b"/".join(parts)


def read_box_tar(path: Location, progress: Progress | None) -> BoxTable:
    """Read every annotation of a tar, which may be compressed with gzip.

    A damaged annotation is an error of its image, not of the tar. Members with a suffix other than ``.xml`` are skipped
    (those of Stanford Dogs have none).
    """
    boxes = BoxTable(str(path), replacing=True)
    total = path.size()
    with open_stream(path) as stream:
        source = FileWindow(stream, 0, None, str(path))
        for done, member in enumerate(tar_members(source)):
            if member.isreg() and not member.issparse():
                _add_member(boxes, source, member)
            if progress is not None and done % _PROGRESS_MEMBERS == 0:
                progress(done=done, total=max(done, total // 512), size_bytes=source.tell(), rejects=0)
        source.finish()
    return boxes


def _add_member(boxes: BoxTable, source: FileWindow, member: tarfile.TarInfo) -> None:
    folder, _, name = member.name.encode("utf-8", "surrogateescape").rpartition(b"/")
    stem, dot, ending = name.rpartition(b".")
    if not dot:
        stem = name
    elif ending.lower() != b"xml":
        return
    if not stem or name.startswith(b"."):
        return
    folder = folder[folder.rfind(b"/") + 1 :]
    try:
        boxes.add(folder, stem, parse_annotation(read_member(source, member, MAX_XML_BYTES)))
    except ValueError as error:
        boxes.add_damaged(folder, stem, str(error))


def read_box_csv(path: Location) -> tuple[BoxTable, list[str]]:
    """Read lines of ``NAME.JPEG,xmin,ymin,xmax,ymax``, in fractions of the image's sides; warn of other lines.

    Boxes are put in order, clamped and dropped when empty, as those of XML files are.
    """
    boxes = BoxTable(str(path), replacing=False)
    bad: list[int] = []
    good = False
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        parts = line.strip().split(b",")
        try:
            x0, y0, x1, y1 = (_fraction(part) for part in parts[1:])
        except ValueError:
            bad.append(number)
            continue
        good = True
        box = place_box((x0, x1), (y0, y1), 1.0, 1.0)
        if box is not None:
            boxes.add(b"", image_stem(parts[0]), [NamedBox(b"", box)])
    if bad and not good:
        raise SourceError(f"{path} has no line of the form NAME.JPEG,xmin,ymin,xmax,ymax", path=str(path))
    lines = f"line {format_some(bad, _SHOWN_LINES)}"
    note = f"{path}: {len(bad)} lines are not NAME.JPEG,xmin,ymin,xmax,ymax and are not used: {lines}"
    return boxes, [note] if bad else []


def _fraction(text: bytes) -> float:
    value = float(text)
    if not -1e6 < value < 1e6:  # also false for NaN
        raise ValueError
    return value


def read_tiny_boxes(base: Location, class_names: Iterable[bytes], warnings: list[str]) -> BoxTable | None:
    """Return the boxes of all images of Tiny ImageNet; None if there is no such file.

    They lie in ``<wnid>_boxes.txt`` in each class folder and in `TINY_LIST`. A line is
    ``NAME.JPEG<TAB>x0<TAB>y0<TAB>x1<TAB>y1``; in `TINY_LIST` the class follows the name. The numbers are pixels of the
    64 x 64 image, from 0 to 63, the last one included (a whole image is ``0 0 63 63``), even if the columns have other
    names elsewhere.
    """
    names = [name.decode("utf-8", "surrogateescape") for name in sorted(class_names)]
    lists = [base / "train" / name / f"{name}{TINY_BOXES}" for name in names]
    boxes = BoxTable(str(base), replacing=False)
    bad = files = 0
    for lines in in_order(_lines_of, (*lists, base / "val" / TINY_LIST), base.requests_at_once):
        files += lines is not None
        bad += _add_list(lines or [], boxes)
    if bad:
        warnings.append(f"{bad} lines of the lists of boxes in {base} are not boxes and are not used")
    return boxes if files else None


def _lines_of(path: Location) -> list[bytes] | None:
    return [line for _, line in nonblank_lines(path)] if path.is_file() else None


def _add_list(lines: Iterable[bytes], boxes: BoxTable) -> int:
    """Add the boxes of one file; return how many lines are not boxes."""
    seen: set[bytes] = set()
    bad = 0
    for line in lines:
        if line in seen:  # a repeated line is one box
            continue
        seen.add(line)
        columns = line.split(b"\t")
        try:
            x0, y0, x1, y1 = (int(column) for column in columns[-4:])
            box = place_box(_edges(x0, x1), _edges(y0, y1), _TINY_SIDE, _TINY_SIDE)
        except (ValueError, OverflowError):
            bad += 1
            continue
        if box is not None:
            boxes.add(b"", image_stem(columns[0].strip()), [NamedBox(b"", box)])
    return bad


def _edges(first: int, last: int) -> tuple[int, int]:
    return min(first, last), max(first, last) + 1
