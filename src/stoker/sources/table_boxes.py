"""Boxes of images: how Pascal VOC's XML states them, and where they come from while images are read.

A `TableBoxes` has those that a listing has read, which are columns of its table; a `BoxTable` puts them there.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from stoker import _native
from stoker.errors import SourceError
from stoker.recipe import dimensions, is_turned, orientation, sniff, turn_box
from stoker.sources.columns import Blobs, chunks
from stoker.sources.reading import read_annotation
from stoker.sources.walking import image_stem
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.sources.items import Item, ItemTable

_BACK = {5: 5, 6: 8, 7: 7, 8: 6}
"""By which orientation an upright image becomes the stored one, where that changes its width and height."""

BOX = np.dtype([("corners", "<f8", 4), ("label", "<i4")])
"""A box in the column ``boxes``: xmin, ymin, xmax, ymax as fractions of the image's sides, and its class or -1."""

MAX_XML_BYTES = 2**22
"""Longest annotation that is read."""

_KEY_BYTES = 16
_ROW = np.dtype(
    [("key", f"S{_KEY_BYTES}"), ("stem", f"S{_KEY_BYTES}"), ("box", BOX), ("annotation", "<i4"), ("name", "<i4")]
)
"""A box in a `BoxTable`: what stands for the folder and the stem of its annotation, and for the stem alone; which
annotation it was read from, and which name the object has there."""
_PACKED_ROW = struct.Struct(f"<{_KEY_BYTES}s{_KEY_BYTES}s4diii")
_MAX_KEY_BYTES = 255  # of a file name
_MAX_BOXES = 2**24
_MAX_NAMES = 2**16
_MAX_DAMAGED = 2**18


class Annotations(Protocol):
    """The annotations of one split. Read-only; safe in any thread; can be pickled.

    Attributes:
        name: Of their kind, in saved listings.
    """

    name: ClassVar[str]

    @property
    def where(self) -> str:
        """The file or the folder they come from."""

    @property
    def has_labels(self) -> bool:
        """Whether boxes have classes of their own."""

    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
        """Return the boxes of one image; an image without annotation has none.

        Args:
            item: The image.
            class_name: Its class; empty when it has none.
            class_names: The whole label set.

        Raises:
            SourceError: The annotation is damaged.
        """

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` makes the same annotations of, as JSON has it."""

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:
        """Return what `to_json` has described.

        Args:
            described: By `to_json`.
            table: Of the images.
            classes: How many classes there are.

        Raises:
            KeyError, TypeError, ValueError: It is damaged, or the table lacks a column.
        """


@dataclass(frozen=True, slots=True)
class TableBoxes:
    """`Annotations` that the listing has read.

    The column ``boxes`` has an array of `BOX` for each item, ``damaged`` what is wrong with its annotation; empty where
    that is nothing; ``annotated`` what `turn_back` needs.
    """

    where: str  # file they come from
    has_labels: bool = False  # whether boxes have classes of their own
    name: ClassVar[str] = "table"

    def read(self, item: Item, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:  # noqa: ARG002
        if item.columns["damaged"]:
            raise SourceError(f"damaged annotation: {item.columns['damaged'].decode()}", path=self.where)
        boxes = np.frombuffer(item.columns["boxes"], BOX)
        corners, labels = boxes["corners"].tolist(), boxes["label"].tolist()
        pairs = zip(corners, labels, strict=True)
        return [Box(x0, y0, x1, y1, label if self.has_labels else None) for (x0, y0, x1, y1), label in pairs]

    def counts(self, table: ItemTable, rows: NDArray[np.int64], classes: int) -> list[int]:
        """Return how many boxes each of so many classes has in some rows; those of several objects count once."""
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

    def to_json(self) -> dict[str, Any]:
        return {"where": self.where, "has_labels": self.has_labels}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable, classes: int) -> Self:
        boxes, damaged = table.columns["boxes"], table.columns["damaged"]
        if not isinstance(boxes, Blobs) or not isinstance(damaged, Blobs) or (boxes.starts % BOX.itemsize).any():
            raise ValueError("boxes that are not there")
        annotated = table.columns.get("annotated")
        if isinstance(annotated, Blobs) or (annotated is not None and annotated.shape[1:] != (2,)):
            raise ValueError("sizes that are none")
        labels = np.frombuffer(boxes.data, BOX)["label"]
        has_labels = bool(described["has_labels"])
        if has_labels and len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < classes:
            raise ValueError("classes of boxes out of range")
        return cls(str(described["where"]), has_labels)


def turn_back(boxes: list[Box], item: Item, data: object) -> list[Box]:
    """Return boxes as they lie in the image as it is stored.

    Annotation tools show photographs as their EXIF orientation says. The column ``annotated`` has the width and the
    height that the annotation states: where these are those of the image turned, the boxes are turned back.

    Args:
        boxes: As the annotation has them.
        item: The image.
        data: The bytes of its file, or at least its header; pixels have no orientation.
    """
    width, height = item.columns.get("annotated", (0, 0))
    if width == height or not boxes or not isinstance(data, bytes) or not is_turned(data):
        return boxes
    kind = sniff(data)
    turned = orientation(data, kind)
    info = _native.probe_jpeg(data) if kind == "jpeg" else None
    stored = (info.width, info.height) if info else dimensions(data, kind)
    return [turn_box(box, _BACK[turned]) for box in boxes] if turned in _BACK and stored == (height, width) else boxes


def _boxes_of(table: ItemTable, rows: NDArray[np.int64]) -> Blobs:
    return cast("Blobs", table.columns["boxes"]).take(rows)


@dataclass(frozen=True, slots=True)
class NamedBox:
    """A box, and what its annotation says of the object: its name, and whether it is difficult or truncated.

    ``size`` is the width and the height of the image that the annotation states.
    """

    name: bytes
    box: Box
    difficult: bool = False
    truncated: bool = False
    size: tuple[float, float] = (0, 0)


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
    text = read_annotation(path)
    if text is None:
        return []
    try:
        return [named.box for named in parse_annotation(text) if _is_of(named.name, class_name, class_names)]
    except ValueError as error:
        raise SourceError(f"damaged annotation: {error}", path=os.fsdecode(path)) from error


def _is_of(name: bytes, class_name: bytes, class_names: Collection[bytes]) -> bool:
    """Return whether an object of a name belongs to an image of a class, by the rule of `read_boxes`."""
    return name == class_name or name not in class_names


def parse_annotation(text: bytes) -> list[NamedBox]:
    """Return all boxes of an annotation.

    Coordinates are divided by the size that the XML states (annotators saw scaled pictures, so it may differ from the
    image's), put in order and clamped to 0..1; empty boxes are dropped.

    Raises:
        ValueError: It is not such an XML document, or a number in it is not finite.
    """
    if len(text) > MAX_XML_BYTES:
        raise ValueError(f"{len(text)} bytes of XML, more than {MAX_XML_BYTES}")
    try:
        root: Element = fromstring(text)
    except (ParseError, DefusedXmlException, LookupError) as error:  # the last: of an encoding that Python lacks
        raise ValueError(str(error)) from error
    return list(_boxes(root))


def place_box(x: Sequence[float], y: Sequence[float], width: float, height: float) -> Box | None:
    """Return the box between two corners, as fractions of a width and a height; None if nothing of it is inside.

    The edges ``x`` and ``y`` are in any order.
    """
    left, right = sorted(min(max(value / width, 0.0), 1.0) for value in x)
    top, bottom = sorted(min(max(value / height, 0.0), 1.0) for value in y)
    return Box(left, top, right, bottom) if left < right and top < bottom else None


def _boxes(root: Element) -> Iterator[NamedBox]:
    width, height = (_number(root, f"size/{side}") for side in ("width", "height"))
    if width <= 0 or height <= 0:
        raise ValueError(f"size is {width:g} x {height:g}")
    for item in root.iterfind("object"):
        name = (item.findtext("name") or "").strip().encode()
        flags = [(item.findtext(tag) or "").strip().lower() in ("1", "true") for tag in ("difficult", "truncated")]
        for corners in item.iterfind("bndbox"):
            x = [_number(corners, tag) for tag in ("xmin", "xmax")]
            y = [_number(corners, tag) for tag in ("ymin", "ymax")]
            box = place_box(x, y, width, height)
            if box is not None:
                yield NamedBox(name, box, flags[0], flags[1], (width, height))


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
    """Boxes of all annotations in a file, by the names of images, on their way into the columns of a table.

    Args:
        where: File they come from.
        replacing: Whether an annotation replaces an earlier one of the same name, as a member of a tar does when it is
            unpacked; otherwise its boxes are added to those.
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

    def add(self, folder: bytes, stem: bytes, boxes: Iterable[NamedBox]) -> None:
        """Add the boxes of one image, given the folder, which may be the class, and the stem of its annotation."""
        key, by_stem = self._key(folder, stem), _digest(stem)
        by_key = _digest(key) if folder else by_stem
        self._annotations += self._replacing
        for named in boxes:
            if self._rows.tell() == _MAX_BOXES * _ROW.itemsize:
                raise SourceError(f"{self.where} holds more than {_MAX_BOXES} boxes", path=self.where)
            box, name = named.box, named.name if len(self._names) < _MAX_NAMES or named.name in self._names else b""
            number = self._names.setdefault(name, len(self._names))
            corners = box.xmin, box.ymin, box.xmax, box.ymax
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
        """Yield what `TableBoxes` has of some images that follow one another in a table; no box is added afterwards.

        Their boxes are chosen as `read_boxes` chooses them. Annotations that lie in folders named after classes are
        looked up by class.
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
                chosen = [row for row, number in own if _is_of(names_of_boxes[number], name, class_names)]
                yield boxes[chosen].tobytes(), problem.encode("utf-8", "backslashreplace")

    def _newest(self, by: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return all keys, ascending, with the numbers of names and the boxes, of the last annotation of each alone."""
        rows = np.frombuffer(self._rows.getbuffer(), _ROW)
        rows = rows[np.argsort(rows[by], kind="stable")]
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
    """Return what stands for a name of any length in a table that is searched."""
    return hashlib.blake2b(key, digest_size=_KEY_BYTES).digest()
