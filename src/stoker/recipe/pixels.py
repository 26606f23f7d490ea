"""Turning and cropping pixels, and the boxes with them."""

from __future__ import annotations

import io
import math
import struct
import threading
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from PIL import Image
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from stoker.errors import ImageError
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from numpy.typing import NDArray
    from PIL.ImageFile import ImageFile


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

Corners = tuple[int, int, int, int]
"""Left, top, right and bottom in pixels; right and bottom lie outside."""

# EXIF 2.3, tag 274: what to do to stored pixels (H, W, 3) to see them upright.
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


# Of a pixel. An edge that was a whole number of pixels may come back from a float32 fraction as a little more or less;
# it must not take in a column that the annotator left out. The native transforms have the same number.
_EDGE_TOLERANCE = 1 / 1024


def turn(pixels: Pixels, orientation: int) -> Pixels:
    """Return pixels (H, W, 3) the way an EXIF orientation of 1..8 says they are meant to be seen; contiguous."""
    return np.ascontiguousarray(_TURN_PIXELS[orientation](pixels)) if orientation != 1 else pixels


def centre_square(width: int, height: int) -> Corners:
    """Return (left, top, right, bottom) of the largest centred square; an odd pixel stays right or below."""
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def object_corners(box: Box, width: int, height: int) -> Corners:
    """Return the pixels of a box: all that it touches, within the image, and at least one.

    The box may come from anyone's record: whatever its numbers are, infinite or none at all, the result is valid.
    """
    left = min(math.floor(_fraction(box.xmin) * width + _EDGE_TOLERANCE), width - 1)
    top = min(math.floor(_fraction(box.ymin) * height + _EDGE_TOLERANCE), height - 1)
    right = max(math.ceil(_fraction(box.xmax) * width - _EDGE_TOLERANCE), left + 1)
    bottom = max(math.ceil(_fraction(box.ymax) * height - _EDGE_TOLERANCE), top + 1)
    return left, top, right, bottom


def _fraction(value: float) -> float:
    return min(max(0.0, value), 1.0)  # in this order, what is not a number becomes 0, as in the native transforms


def window_of(corners: Corners, width: int, height: int, orientation: int) -> tuple[float, float, float, float]:
    """Return a part of an image of ``width`` x ``height`` pixels in fractions of that image turned."""
    turn_point = _TURN_POINT[orientation]
    first = turn_point(corners[0] / width, corners[1] / height)
    second = turn_point(corners[2] / width, corners[3] / height)
    return min(first[0], second[0]), min(first[1], second[1]), max(first[0], second[0]), max(first[1], second[1])


@dataclass(frozen=True, slots=True)
class Geometry:
    """How the stored image lies in the source image; resizing does not change fractions.

    Attributes:
        orientation: EXIF orientation that was applied; 1 for none.
        window: Part that was kept (left, top, right, bottom), in fractions of the turned image.
    """

    orientation: int = 1
    window: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)

    def place(self, boxes: Iterable[Box]) -> list[Box]:
        """Return the boxes of the source image in fractions of the stored one; those cut away are dropped."""
        if self == Geometry():
            return list(boxes)
        placed = (self._place(box) for box in boxes)
        return [box for box in placed if box.xmin < box.xmax and box.ymin < box.ymax]

    def _place(self, box: Box) -> Box:
        turn_point = _TURN_POINT[self.orientation]
        corners = [turn_point(box.xmin, box.ymin), turn_point(box.xmax, box.ymax)]
        left, top, right, bottom = self.window
        x = sorted(_within(corner[0], left, right) for corner in corners)
        y = sorted(_within(corner[1], top, bottom) for corner in corners)
        return Box(x[0], y[0], x[1], y[1])


def _within(value: float, low: float, high: float) -> float:
    return min(max((value - low) / (high - low), 0.0), 1.0)


# Keeping a third-party decoder's warnings out of a build's output.


class QuietPillow:
    """Silences Pillow's warnings while at least one thread is inside.

    ``warnings.catch_warnings`` alone must not be used from several threads: the first to leave would restore the
    filters under the others. Here the first to enter installs the filter and the last to leave removes it.
    """

    _lock = threading.Lock()
    _inside = 0
    _caught: warnings.catch_warnings[None] | None = None

    def __enter__(self) -> Self:
        cls = QuietPillow
        with cls._lock:
            if cls._inside == 0:
                cls._caught = warnings.catch_warnings()
                cls._caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            cls._inside += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cls = QuietPillow
        with cls._lock:
            cls._inside -= 1
            if cls._inside == 0 and cls._caught is not None:
                cls._caught.__exit__(kind, error, trace)
                cls._caught = None


# Pixels of the formats that are not JPEG, by Pillow.
#
# The plugin of a format is used directly: `Image.open` would apply Pillow's own limit on pixels, a process-wide
# setting, where a recipe has its own.


_READERS: dict[str, Callable[[io.BytesIO], ImageFile]] = {
    "bmp": BmpImageFile,
    "gif": GifImageFile,
    "jpeg2000": Jpeg2KImageFile,
    "png": PngImageFile,
    "ppm": PpmImageFile,
    "tiff": TiffImageFile,
    "webp": WebPImageFile,
}
FORMATS = frozenset(_READERS)
"""What `decode_with_pillow` reads, in the words of `stoker.recipe.convert`."""

_ORIENTATION_TAG = 274
# What Pillow's decoders are known to raise on damaged files; none of it may stop a build.
_DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    Image.DecompressionBombError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)


def decode_with_pillow(
    data: bytes, kind: str, check_pixels: Callable[[int, int], None]
) -> tuple[NDArray[np.uint8], int]:
    """Return the pixels of the first frame as RGB uint8 (H, W, 3), and the EXIF orientation (1 when absent).

    Colours are those of Pillow's ``convert("RGB")``: palettes are looked up, transparency is dropped (not composited).
    16-bit grey is scaled to 8 bits, ``round(value / 257)``; of 16-bit RGB Pillow itself keeps the high bytes.
    TIFF is turned upright by Pillow while it decodes, so its orientation is always 1.

    Args:
        data: The whole file.
        kind: One of `FORMATS`.
        check_pixels: Called with (width, height) before memory is taken; raises to refuse.

    Raises:
        ImageError: The file is damaged, cut short, or of a kind that has no defined 8-bit form.
    """
    with _blaming(kind):
        if kind == "webp":  # its plugin takes the memory while it opens
            check_pixels(*_webp_size(data))
        with _READERS[kind](io.BytesIO(data)) as image:
            check_pixels(*image.size)
            image.load()
            orientation = image.getexif().get(_ORIENTATION_TAG, 1) if kind != "tiff" else 1
            return _rgb(image, kind), orientation if orientation in range(1, 9) else 1


def dimensions(data: bytes, kind: str) -> tuple[int, int]:
    """Return (width, height) of an image that is no JPEG, as its header says; nothing is decoded.

    Args:
        data: The whole file.
        kind: What `stoker.recipe.convert` takes it for.

    Raises:
        ImageError: It is none of `FORMATS`, or its header is damaged.
    """
    if kind not in FORMATS:
        raise ImageError(f"not an image: {kind}" if kind in ("empty", "text") else f"no image that can be read: {kind}")
    with _blaming(kind):
        if kind == "webp":
            return _webp_size(data)
        with _READERS[kind](io.BytesIO(data)) as image:
            return image.size


@contextmanager
def _blaming(kind: str) -> Iterator[None]:
    """Keep Pillow quiet, and turn whatever it raises on a damaged file into one kind of error."""
    try:
        with QuietPillow():
            yield
    except ImageError:
        raise
    except _DAMAGED as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"damaged {kind}: {detail}") from error


def _rgb(image: Image.Image, kind: str) -> NDArray[np.uint8]:
    if image.mode.startswith("I;16") or (image.mode == "I" and kind in ("png", "ppm")):
        wide = np.asarray(image).astype(np.uint32)
        grey = ((wide * 255 + 32_767) // 65_535).astype(np.uint8)
        return np.ascontiguousarray(np.broadcast_to(grey[:, :, None], (*grey.shape, 3)))
    if image.mode in ("I", "F"):
        raise ImageError(f"this {kind} has 32-bit samples, which have no defined 8-bit form; convert it first")
    return np.ascontiguousarray(np.asarray(image.convert("RGB")))


def _webp_size(data: bytes) -> tuple[int, int]:
    """Return (width, height) from a WebP header (RFC 9649 section 2)."""
    chunk = data[12:16]
    if chunk == b"VP8X" and len(data) >= 30:
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if chunk == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if chunk == b"VP8 " and len(data) >= 30:
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    raise ImageError("damaged webp: it ends inside its header")
