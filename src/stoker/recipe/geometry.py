"""Turning and cropping pixels, and the boxes with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Pixels = NDArray[Any]
    """uint8 or uint16, (H, W, channels)."""

Corners = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels; right and bottom lie outside."""

# EXIF 2.3, tag 274: what to do to stored pixels to see them upright.
_TURN_PIXELS: dict[int, Callable[[Pixels], Pixels]] = {
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: lambda pixels: pixels[::-1].transpose(1, 0, 2),
    7: lambda pixels: pixels[::-1, ::-1].transpose(1, 0, 2),
    8: lambda pixels: pixels[:, ::-1].transpose(1, 0, 2),
}

# The same for a point in fractions of width and height.
_TURN_POINT: dict[int, Callable[[float, float], tuple[float, float]]] = {
    1: lambda x, y: (x, y),
    2: lambda x, y: (1 - x, y),
    3: lambda x, y: (1 - x, 1 - y),
    4: lambda x, y: (x, 1 - y),
    5: lambda x, y: (y, x),
    6: lambda x, y: (1 - y, x),
    7: lambda x, y: (1 - y, 1 - x),
    8: lambda x, y: (y, 1 - x),
}


# In pixels. An edge at a whole number of pixels may come back from a float32 fraction as a little more or less; it must
# not take in a column that the annotator left out. The native transforms have the same number.
_EDGE_TOLERANCE = 1 / 1024


def turn(pixels: Pixels, orientation: int) -> Pixels:
    """Return pixels turned upright by an EXIF orientation of 1..8; contiguous."""
    return np.ascontiguousarray(_TURN_PIXELS[orientation](pixels)) if orientation != 1 else pixels


def centre_square(width: int, height: int) -> Corners:
    """Return (left, top, right, bottom) of the largest centred square; an odd pixel stays right or below."""
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def object_corners(box: Box, width: int, height: int) -> Corners:
    """Return the pixels of a box: all that it touches, within the image, and at least one.

    The box may come from any record: the result is valid whatever its numbers are, even infinite or not a number.
    """
    left = min(math.floor(_fraction(box.xmin) * width + _EDGE_TOLERANCE), width - 1)
    top = min(math.floor(_fraction(box.ymin) * height + _EDGE_TOLERANCE), height - 1)
    right = max(math.ceil(_fraction(box.xmax) * width - _EDGE_TOLERANCE), left + 1)
    bottom = max(math.ceil(_fraction(box.ymax) * height - _EDGE_TOLERANCE), top + 1)
    return left, top, right, bottom


def _fraction(value: float) -> float:
    return min(max(0.0, value), 1.0)  # in this order, what is not a number becomes 0, as in the native transforms


def turn_box(box: Box, orientation: int) -> Box:
    """Return a box of an image in fractions of the turned image; its numbers may be anything."""
    turn_point = _TURN_POINT[orientation]
    origin, first, second = turn_point(0, 0), turn_point(box.xmin, box.ymin), turn_point(box.xmax, box.ymax)
    (left, right), (top, bottom) = ((b, a) if o else (a, b) for o, a, b in zip(origin, first, second, strict=True))
    return Box(left, top, right, bottom, box.label)


def window_of(corners: Corners, width: int, height: int, orientation: int) -> tuple[float, float, float, float]:
    """Return a part of an image of ``width`` x ``height`` pixels in fractions of the turned image."""
    turn_point = _TURN_POINT[orientation]
    first = turn_point(corners[0] / width, corners[1] / height)
    second = turn_point(corners[2] / width, corners[3] / height)
    return min(first[0], second[0]), min(first[1], second[1]), max(first[0], second[0]), max(first[1], second[1])


def turn_corners(corners: Corners, width: int, height: int, orientation: int) -> Corners:
    """Return a part of an image of ``width`` x ``height`` pixels in pixels of the turned image."""
    left, top, right, bottom = window_of(corners, width, height, orientation)
    wide, high = (height, width) if orientation >= 5 else (width, height)
    return round(left * wide), round(top * high), round(right * wide), round(bottom * high)


@dataclass(frozen=True, slots=True)
class Geometry:
    """How the stored image lies in the source image; resizing does not change fractions."""

    orientation: int = 1  # EXIF orientation that was applied; 1 for none
    # part that was kept (left, top, right, bottom), in fractions of the turned image
    window: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)

    def place(self, boxes: Iterable[Box]) -> list[Box]:
        """Return the boxes of the source image in fractions of the stored one; boxes that are cut away are dropped."""
        if self == Geometry():
            return list(boxes)
        placed = (self._place(box) for box in boxes)
        return [box for box in placed if box.xmin < box.xmax and box.ymin < box.ymax]

    def _place(self, box: Box) -> Box:
        turned = turn_box(box, self.orientation)
        left, top, right, bottom = self.window
        x = sorted(_within(edge, left, right) for edge in (turned.xmin, turned.xmax))
        y = sorted(_within(edge, top, bottom) for edge in (turned.ymin, turned.ymax))
        return Box(x[0], y[0], x[1], y[1], box.label)


def _within(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)
