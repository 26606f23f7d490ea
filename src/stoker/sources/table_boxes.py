"""Boxes of images: where they come from, and those that a listing has read, which are columns of its table."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

import numpy as np

from stoker import _native
from stoker.errors import SourceError
from stoker.recipe import dimensions, is_turned, orientation, sniff, turn_box
from stoker.sources.columns import Blobs
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from stoker.sources.items import Item, ItemTable

_BACK = {5: 5, 6: 8, 7: 7, 8: 6}
"""By which orientation an upright image becomes the stored one, where that changes its width and height."""

BOX = np.dtype([("corners", "<f8", 4), ("label", "<i4")])
"""A box in the column ``boxes``: xmin, ymin, xmax, ymax as fractions of the image's sides, and its class or -1."""


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

    def read(self, item: Item, class_name: bytes) -> list[Box]:
        """Return the boxes of one image; an image without annotation has none.

        Args:
            item: The image.
            class_name: Its class; empty when it has none.

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

    def read(self, item: Item, class_name: bytes) -> list[Box]:  # noqa: ARG002 - as all `Annotations`
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
