"""What is measured of one image: one row of a table, in 99 bytes.

All numbers are integers, and the same on every machine and for every number of threads. ``hash`` says what an image
shows: the signs of the 64 lowest frequencies of its grey, averaged to 32 x 32 cells (`stoker._native.measure_image`).
``strong`` says which of them are further from 0 than half of them. Copies that were encoded again, resized, or changed
in colour differ from the image in a few bits of ``hash``; where edges were cut off in more, of which few are strong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.errors import ImageError
from stoker.recipe import (
    FORMATS,
    MAX_PIXELS,
    NATIVE_FORMATS,
    Recipe,
    decode_with_pillow,
    is_animated,
    not_an_image,
    orientation,
    own_mode,
    sniff,
)
from stoker.sources import image_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.types import Box

FORMAT_NAMES = ("", "unreadable", "pixels", "jpeg", *sorted(FORMATS))
"""What the column ``format`` counts; 0 where nothing is measured yet."""

MODE_NAMES = ("", "L", "LA", "RGB", "RGBA", "I;16", "CMYK")
"""What the column ``mode`` counts: the channels that an image has itself."""

MEASURES = np.dtype(
    [
        ("digest", "V16"),  # as `stoker.sources.image_digest` has it
        ("hash", "<u8"),
        ("strong", "<u8"),
        ("sums", "<u8", 3),  # of its pixels in RGB
        ("squares", "<u8", 3),
        ("width", "<u4"),
        ("height", "<u4"),
        ("size", "<u4"),  # in bytes; of 4 GiB and more the largest number
        ("format", "u1"),
        ("mode", "u1"),
        ("bits", "u1"),  # of a channel, or of an index into a palette
        ("orientation", "u1"),  # EXIF tag 274; 1 where there is none
        ("animated", "?"),
        ("outside", "?"),  # whether a box leaves the image
        ("empty", "?"),  # whether a box has no area
    ]
)

UNREADABLE = FORMAT_NAMES.index("unreadable")
_ROUNDING = 1e-4  # of corners that records hold in single precision
_PNG_BITS = 24  # where a PNG says how many
_RECIPE = Recipe()
_JPEG_MODES = {"grey": "L", "cmyk": "CMYK", "ycck": "CMYK"}


def measure(data: bytes | NDArray[Any], boxes: Sequence[Box] = ()) -> tuple[Any, ...]:
    """Return what is known of one image, a file or pixels (H, W, 3), all of which is decoded: a row of `MEASURES`."""
    outside, empty = _flaws(boxes)
    if not isinstance(data, bytes):
        pixels = np.ascontiguousarray(data)
        width, height, sums, squares, image_hash, strong = _native.measure_pixels(pixels)
        kind, mode, bits, turned, animated, size = "pixels", "RGB", 8, 1, False, pixels.nbytes
    else:
        kind, size = sniff(data), len(data)
        if kind == "jpeg":
            info = _native.probe_jpeg(data)
            mode, bits, turned, animated = _JPEG_MODES.get(info.color, "RGB"), info.bits, info.orientation, False
        elif kind not in FORMATS:
            raise ImageError(not_an_image(kind, data))
        if kind in NATIVE_FORMATS:
            width, height, sums, squares, image_hash, strong = _native.measure_image(data, MAX_PIXELS)
        else:
            pixels, turned = decode_with_pillow(data, kind, _RECIPE.check_pixels)
            width, height, sums, squares, image_hash, strong = _native.measure_pixels(pixels)
        if kind != "jpeg":
            mode, animated = own_mode(data, kind), is_animated(data, kind)
            bits = data[_PNG_BITS] if kind == "png" else 16 if mode == "I;16" else 8
            turned = orientation(data, kind) if kind in NATIVE_FORMATS else turned
    return (
        image_digest(data),
        image_hash,
        strong,
        sums,
        squares,
        width,
        height,
        min(size, 2**32 - 1),
        FORMAT_NAMES.index(kind),
        MODE_NAMES.index(mode),
        bits,
        turned,
        animated,
        outside,
        empty,
    )


def unreadable() -> tuple[Any, ...]:
    """Return the row of an image that cannot be measured."""
    return (bytes(16), 0, 0, (0, 0, 0), (0, 0, 0), 0, 0, 0, UNREADABLE, 0, 0, 0, False, False, False)


def _flaws(boxes: Sequence[Box]) -> tuple[bool, bool]:
    """Return whether a box leaves the image, and whether one has no area."""
    outside = empty = False
    for box in boxes:
        corners = (box.xmin, box.ymin, box.xmax, box.ymax)
        outside |= not all(-_ROUNDING <= corner <= 1 + _ROUNDING for corner in corners)
        empty |= not (box.xmin < box.xmax and box.ymin < box.ymax and all(map(math.isfinite, corners)))
    return outside, empty
