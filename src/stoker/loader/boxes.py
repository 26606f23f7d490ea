"""Boxes of a batch: the annotated objects, where the pixels went."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import check_range
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from numpy.typing import NDArray


NativeBoxes = tuple["NDArray[np.float32]", "NDArray[np.int64]", "NDArray[np.int32]", "NDArray[np.int64]"]
"""Corners (4 T,), labels (T,), objects (T,) and offsets (B + 1,), as the core gives them."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """The boxes of a batch, end to end: those of sample ``i`` are rows ``offsets[i]`` to ``offsets[i + 1]``.

    ========  =================  =====================================================================
    field     dtype and shape    meaning
    ========  =================  =====================================================================
    corners   float32 (T, 4)     xmin, ymin, xmax, ymax in pixels of the transform's result, inside it
    labels    int64 (T,)         class of each object, or that of its image where records store no other
    objects   int32 (T,)         which of its sample's boxes each is, in the order they are stored
    offsets   int64 (B + 1,)     where the boxes of each sample begin
    ========  =================  =====================================================================
    """

    corners: NDArray[np.float32]
    labels: NDArray[np.int64]
    objects: NDArray[np.int32]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PaddedBoxes:
    """The boxes of a batch as arrays of one shape, in the order they are stored; the rest is filled up.

    ========  =================  =====================================================================
    field     dtype and shape    meaning
    ========  =================  =====================================================================
    corners   float32 (B, M, 4)  xmin, ymin, xmax, ymax in pixels of the transform's result; 0 in the rest
    labels    int64 (B, M)       class of each object; -1 in the rest
    objects   int32 (B, M)       which of its sample's boxes each is; -1 in the rest
    counts    int64 (B,)         boxes that each sample has; above M, the last ones are left out
    ========  =================  =====================================================================
    """

    corners: NDArray[np.float32]
    labels: NDArray[np.int64]
    objects: NDArray[np.int32]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BoxOutput:
    """That batches have boxes, and in which form.

    Boxes are cropped, scaled, clipped and mirrored as the pixels are; one of which nothing is
    left in the result is omitted.

    Attributes:
        pad_to: Boxes of every sample in `PaddedBoxes`, 1 to 65,536; None for `Boxes` of any number.
        min_visible: A box with less than this share of its area in the result is omitted, 0 to 1.

    Raises:
        ConfigError: A value is out of range.
    """

    pad_to: int | None = None
    min_visible: float = 0.0

    def __post_init__(self) -> None:
        if self.pad_to is not None:
            check_range("pad_to", self.pad_to, 1, 1 << 16)
        if not 0.0 <= self.min_visible <= 1.0:
            raise ConfigError(f"min_visible is {self.min_visible}; it must be between 0 and 1")

    def form(self, native: NativeBoxes) -> Boxes | PaddedBoxes:
        """Return what the core gives in the form that is wanted."""
        corners, labels, objects, offsets = native
        ragged = Boxes(corners.reshape(-1, 4), labels, objects, offsets)
        return ragged if self.pad_to is None else _padded(ragged, self.pad_to)


NO_BOXES: NativeBoxes = (
    np.empty(0, np.float32),
    np.empty(0, np.int64),
    np.empty(0, np.int32),
    np.zeros(1, np.int64),
)
"""Of a batch without samples."""


def box_arrays(boxes: Boxes | PaddedBoxes | tuple[Boxes | PaddedBoxes, ...]) -> Any:
    """Return boxes as dicts of their arrays, for frameworks that take nested dicts and tuples; copies nothing."""
    if isinstance(boxes, tuple):
        return tuple(map(box_arrays, boxes))
    return {field.name: getattr(boxes, field.name) for field in fields(boxes)}


def _padded(boxes: Boxes, most: int) -> PaddedBoxes:
    counts = np.diff(boxes.offsets)
    place = np.arange(len(boxes.labels)) - np.repeat(boxes.offsets[:-1], counts)
    sample = np.repeat(np.arange(len(counts)), counts)
    fits = place < most
    to = sample[fits], place[fits]
    corners = np.zeros((len(counts), most, 4), np.float32)
    labels = np.full((len(counts), most), -1, np.int64)
    objects = np.full((len(counts), most), -1, np.int32)
    corners[to], labels[to], objects[to] = boxes.corners[fits], boxes.labels[fits], boxes.objects[fits]
    return PaddedBoxes(corners, labels, objects, counts)
