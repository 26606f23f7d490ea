"""Image files of any format: telling which one it is, its size, and, but for JPEG, its pixels by Pillow."""

from __future__ import annotations

import io
import re
import struct
import threading
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
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
from stoker.forks import PerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from numpy.typing import NDArray
    from PIL.ImageFile import ImageFile

SNIFF_BYTES = 32
"""How many leading bytes `sniff` looks at."""

_MAGIC: tuple[tuple[str, re.Pattern[bytes]], ...] = tuple(
    (name, re.compile(pattern, re.DOTALL))
    for name, pattern in (
        ("jpeg", rb"\xff\xd8\xff"),
        ("png", rb"\x89PNG\r\n\x1a\n"),
        ("gif", rb"GIF8[79]a"),
        ("bmp", rb"BM.{12}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\x00\x00\x00"),
        ("webp", rb"RIFF.{4}WEBP"),
        ("tiff", rb"II\*\x00|MM\x00\*"),
        ("jpeg2000", rb"\x00\x00\x00\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"),
        ("ppm", rb"P[1-6][ \t\r\n#]"),
        ("heif", rb".{4}ftyp(?:heic|heix|hevc|mif1|msf1|avif|avis)"),
        ("pdf", rb"%PDF-"),
    )
)

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
"""What `decode_with_pillow` reads, in the words of `sniff`."""

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


def sniff(head: bytes) -> str:
    """Return the format that a file starts like.

    Args:
        head: The first `SNIFF_BYTES` bytes of the file, or more.

    Returns:
        ``jpeg``, ``png``, ``gif``, ``bmp``, ``webp``, ``tiff``, ``jpeg2000``, ``ppm``, ``heif`` (also AVIF), ``pdf``,
        ``empty``, ``text`` or ``unknown``.
    """
    for name, magic in _MAGIC:
        if magic.match(head):
            return name
    if not head:
        return "empty"
    start = head[:SNIFF_BYTES]
    return "text" if all(32 <= byte < 127 or byte in b"\t\n\r" for byte in start) else "unknown"


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
    with _as_image_error(kind):
        if kind == "webp":  # its plugin takes the memory while it opens
            check_pixels(*_webp_size(data))
        with _READERS[kind](io.BytesIO(data)) as image:
            check_pixels(*image.size)
            _refuse_missing_data(image, kind, len(data))
            image.load()
            orientation = image.getexif().get(_ORIENTATION_TAG, 1) if kind != "tiff" else 1
            return _rgb(image, kind), orientation if orientation in range(1, 9) else 1


def dimensions(data: bytes, kind: str) -> tuple[int, int]:
    """Return (width, height) of an image that is not a JPEG, as its header says; nothing is decoded.

    Args:
        data: The whole file.
        kind: What `sniff` says.

    Raises:
        ImageError: ``kind`` is not among `FORMATS`, or its header is damaged.
    """
    if kind not in FORMATS:
        raise ImageError(f"not an image: {kind}" if kind in ("empty", "text") else f"not a readable image: {kind}")
    with _as_image_error(kind):
        if kind == "webp":
            return _webp_size(data)
        with _READERS[kind](io.BytesIO(data)) as image:
            return image.size


# Bytes of pixels that are believed of a file, beside so many for each of its own. Its decoder takes memory for what the
# header claims before it has seen the data; that of the other formats takes it row by row. JPEG 2000 has no lower
# bound of data for a blank image, and some codings of TIFF have none; photographs have 50 times as much and more.
_BELIEVED = 2**23
_BELIEVED_A_BYTE = {"jpeg2000": 2**9, "tiff": 2**12}


def _refuse_missing_data(image: Image.Image, kind: str, size_bytes: int) -> None:
    """Refuse an image that claims far more pixels than its file can hold.

    Raises:
        ImageError: It does.
    """
    factor = _BELIEVED_A_BYTE.get(kind)
    bits = 1 if image.mode == "1" else 16 if image.mode.startswith("I;16") else 8 * len(image.getbands())
    width, height = image.size
    if factor is not None and width * height * bits // 8 > _BELIEVED + factor * size_bytes:
        claim = f"its header claims {width} x {height} pixels, and {size_bytes} bytes cannot hold them"
        raise ImageError(f"the {kind} is cut short: {claim}")


@contextmanager
def _as_image_error(kind: str) -> Iterator[None]:
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


@dataclass(slots=True)
class _Quiet:
    """The threads of a process that are inside a `QuietPillow`."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: int = 0
    caught: warnings.catch_warnings[None] | None = None


_quiet = PerProcess(_Quiet)


class QuietPillow:
    """Keeps Pillow's warnings out of the output of a build while at least one thread is inside.

    ``warnings.catch_warnings`` alone must not be used from several threads: the first to leave would restore the
    filters under the others. Here the first to enter installs the filter and the last to leave removes it.
    """

    def __enter__(self) -> Self:
        quiet = _quiet.get()
        with quiet.lock:
            if quiet.inside == 0:
                quiet.caught = warnings.catch_warnings()
                quiet.caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            quiet.inside += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        quiet = _quiet.get()
        with quiet.lock:
            quiet.inside -= 1
            if quiet.inside == 0 and quiet.caught is not None:
                quiet.caught.__exit__(kind, error, trace)
                quiet.caught = None
