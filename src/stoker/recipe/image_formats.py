"""Image files of any format: which format, size and mode they have, and decoding and encoding with Pillow."""

from __future__ import annotations

import io
import re
import struct
import threading
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
import PIL
from PIL import Image, features
from PIL.AvifImagePlugin import AvifImageFile
from PIL.BmpImagePlugin import BmpImageFile
from PIL.GifImagePlugin import GifImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.PpmImagePlugin import PpmImageFile
from PIL.TiffImagePlugin import TiffImageFile
from PIL.WebPImagePlugin import WebPImageFile

from stoker import _native
from stoker.errors import ImageError, ImageTooLargeError
from stoker.forks import PerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray
    from PIL.ImageFile import ImageFile

    from stoker.types import Mode

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
        ("avif", rb".{4}ftyp(?:avi[fs]|m[is]f1.{4}(?:.{4}){0,3}avi[fs])"),
        ("heif", rb".{4}ftyp(?:hei[cxms]|hev[cxms]|m[is]f[12])"),
        ("pdf", rb"%PDF-"),
    )
)

# The plugin of a format is used directly: `Image.open` would apply Pillow's own limit on pixels, a process-wide
# setting, where a recipe has its own.
_READERS: dict[str, Callable[[io.BytesIO], ImageFile]] = {
    "avif": AvifImageFile,
    "bmp": BmpImageFile,
    "gif": GifImageFile,
    "jpeg2000": Jpeg2KImageFile,
    "png": PngImageFile,
    "ppm": PpmImageFile,
    "tiff": TiffImageFile,
    "webp": WebPImageFile,
}
FORMATS = frozenset(_READERS) | {"heif"}
"""Formats that `decode_with_pillow` reads, as `sniff` names them; AVIF and HEIF (HEIC) only with their libraries."""
NATIVE_FORMATS = frozenset(_native.image_formats())
"""Formats that the core decodes; if it was built without the library of a format, Pillow decodes that."""
_PACKAGES = {  # with the libraries that a build of the core may lack
    "png": "libpng-dev (Debian, Ubuntu), libpng-devel (Fedora) or libpng (Homebrew)",
    "webp": "libwebp-dev (Debian, Ubuntu), libwebp-devel (Fedora) or webp (Homebrew)",
}

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


def sniff(head: bytes | memoryview) -> str:
    """Return the format of a file by its first bytes, of which at least `SNIFF_BYTES` are given.

    It is ``jpeg``, ``png``, ``gif``, ``bmp``, ``webp``, ``tiff``, ``jpeg2000``, ``ppm``, ``avif``, ``heif`` (HEIC),
    ``pdf``, ``empty``, ``text`` or ``unknown``.
    """
    for name, magic in _MAGIC:
        if magic.match(head):
            return name
    if not head:
        return "empty"
    start = head[:SNIFF_BYTES]
    return "text" if all(32 <= byte < 127 or byte in b"\t\n\r" for byte in start) else "unknown"


def by_decoder(formats: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the formats that the core decodes, and those that Pillow decodes for it, with their counts."""
    return (
        {name: count for name, count in formats.items() if name in NATIVE_FORMATS},
        {name: count for name, count in formats.items() if name not in NATIVE_FORMATS},
    )


def decode_with_pillow(
    data: bytes, kind: str, check_pixels: Callable[[int, int], None], mode: Mode | frozenset[str] = "RGB"
) -> tuple[NDArray[Any], int]:
    """Return the pixels of the first frame in a mode, and the EXIF orientation (1 when absent).

    They are uint8 (H, W, C), where C is 3 in mode RGB, 1 in L and 4 in RGBA, or uint16 (H, W, 1) in I;16: those of
    Pillow's ``convert(mode)``. Palettes are looked up, transparency is kept in RGBA and otherwise dropped (not
    composited). 16-bit grey stays as it is in I;16, whatever the order of its bytes, and is otherwise scaled to 8 bits,
    ``round(value / 257)``; of 16-bit RGB Pillow itself keeps the high bytes. TIFF is turned upright by Pillow while it
    decodes, so its orientation is always 1. If several modes are given, `mode_among` chooses one of them; pixels of LA
    are uint8 (H, W, 2).

    ``check_pixels`` is called with (width, height) before memory is taken, and raises to refuse. `ImageError` is raised
    for a file that is damaged, cut short, or of a kind that has no defined form in this mode.
    """
    with loaded(data, kind, check_pixels) as image:
        chosen = mode if isinstance(mode, str) else mode_among(_own_mode(image), mode)
        pixels = pixels_of(image, "LA") if chosen == "LA" else _in_mode(image, kind, cast("Mode", chosen))
        return pixels, _orientation(image) if kind != "tiff" else 1


@contextmanager
def loaded(data: bytes, kind: str, check_pixels: Callable[[int, int], None]) -> Iterator[ImageFile]:
    """Open the first frame of a file with Pillow and decode it; as `decode_with_pillow`."""
    if kind in _PACKAGES and kind not in NATIVE_FORMATS:
        _warn_of_pillow(kind)
    with as_image_error(kind):
        if kind == "webp":  # its plugin takes the memory while it opens
            check_pixels(*_webp_size(data))
        with _reader(kind)(io.BytesIO(data)) as image:
            check_pixels(*image.size)
            if isinstance(image, TiffImageFile):
                _refuse_missing_data(image, len(data))
            elif kind in ("avif", "heif", "jpeg2000"):
                _check_memory(data, kind, image.size, check_pixels)
            image.load()
            yield image


def mode_among(own: str, modes: frozenset[str]) -> str:
    """Return the mode to decode an image in: its own, if among ``modes``; else RGBA for transparency, or RGB."""
    if own in modes:
        return own
    return "RGBA" if "A" in own and "RGBA" in modes else "RGB"


def _own_mode(image: Image.Image) -> str:
    if image.mode.startswith("I"):
        return "I;16"
    return _named(is_grey=image.mode in ("1", "L", "LA", "La"), has_alpha=image.has_transparency_data)


def _named(*, is_grey: bool, has_alpha: bool) -> str:
    return ("LA" if has_alpha else "L") if is_grey else ("RGBA" if has_alpha else "RGB")


# Measured in docs/decisions/png-and-webp.md.
_PNG_LEVEL = 4
_WEBP_METHOD = 4
_LOSSLESS_WEBP_EFFORT = 50


def encode_png(pixels: NDArray[Any]) -> bytes:
    """Return a PNG of pixels as `decode_with_pillow` gives them."""
    out = io.BytesIO()
    image_of(pixels).save(out, "PNG", compress_level=_PNG_LEVEL)
    return out.getvalue()


def as_file(image: Image.Image) -> bytes:
    """Return a PIL image as a PNG, without loss; `ImageError` if PNG does not have its mode."""
    if image.mode not in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        raise ImageError(f"a PIL image of mode {image.mode!r} has no lossless file; convert it to RGB or L first")
    out = io.BytesIO()
    with as_image_error("image"):
        image.save(out, "PNG", compress_level=1)
    return out.getvalue()


def encode_webp(pixels: NDArray[np.uint8], quality: int | None) -> bytes:
    """Return a WebP of pixels (H, W, 3) or (H, W, 4) with sides up to 16,383.

    A quality of None stores them without loss, even the colours of transparent pixels.
    """
    lossless = quality is None
    settings = {"lossless": lossless, "quality": _LOSSLESS_WEBP_EFFORT if quality is None else quality}
    out = io.BytesIO()
    image_of(pixels).save(out, "WEBP", method=_WEBP_METHOD, exact=lossless, **settings)
    return out.getvalue()


def resize_with_pillow(pixels: NDArray[Any], width: int, height: int, filter_name: str) -> NDArray[Any]:
    """Return pixels (H, W, C) in another size, as Pillow resizes the mode that they have."""
    resampling = Image.Resampling[filter_name.upper()]
    return pixels_of(image_of(pixels).resize((width, height), resampling))


def image_of(pixels: NDArray[Any]) -> Image.Image:
    """Return pixels (H, W, C) as Pillow's image."""
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)


def encoder_versions() -> dict[str, str]:
    """Return the versions of the libraries that make the bytes of a PNG or a WebP, by name."""
    zlib_ng = features.version("zlib_ng")
    versions = {"Pillow": PIL.__version__, "libwebp": features.version("webp")}
    versions |= {"zlib-ng": zlib_ng} if zlib_ng else {"zlib": features.version("zlib")}
    return {name: version for name, version in sorted(versions.items()) if version}


@cache
def _warn_of_pillow(kind: str) -> None:
    """Warn once per process, since pip does not show the warnings of a build."""
    warnings.warn(_missing_library(kind), stacklevel=2)


def missing_libraries() -> tuple[str, ...]:
    """Return a sentence for each library that the core was built without: what it costs, and what to install."""
    return tuple(_missing_library(kind) for kind in _PACKAGES if kind not in NATIVE_FORMATS)


def _missing_library(kind: str) -> str:
    message = f"this Stoker was built without lib{kind}, so Pillow decodes {kind} images, slower and under the GIL"
    return f"{message}; install {_PACKAGES[kind]}, then Stoker again, or use a wheel"


def orientation(data: bytes, kind: str) -> int:
    """Return the orientation of an image by EXIF or XMP, 1 to 8; 1 when absent, and for TIFF, which Pillow turns."""
    if kind in NATIVE_FORMATS:
        return _native.exif_orientation(data)
    if kind == "tiff":
        return 1
    with as_image_error(kind), _reader(kind)(io.BytesIO(data)) as image:
        return _orientation(image)


def is_turned(data: bytes) -> bool:
    """Return whether an image has an EXIF orientation that turns or mirrors it, and that decoding does not apply.

    A damaged header counts as none.
    """
    kind = sniff(data)
    try:
        return kind in FORMATS | NATIVE_FORMATS and orientation(data, kind) != 1
    except ImageError:
        return False


def _orientation(image: Image.Image) -> int:
    value = image.getexif().get(_ORIENTATION_TAG, 1)
    return value if value in range(1, 9) else 1


def dimensions(data: bytes, kind: str) -> tuple[int, int]:
    """Return (width, height) of an image, as its header says; `ImageError` if that is damaged. Nothing is decoded."""
    if kind == "jpeg":
        info = _native.probe_jpeg(data)
        return info.width, info.height
    if kind not in FORMATS:
        raise ImageError(f"not an image: {kind}" if kind in ("empty", "text") else f"not a readable image: {kind}")
    with as_image_error(kind):
        if kind == "png":
            return _png_size(data)
        if kind == "webp":
            return _webp_size(data)
        with _reader(kind)(io.BytesIO(data)) as image:
            return image.size


def _reader(kind: str) -> Callable[[io.BytesIO], ImageFile]:
    if kind == "avif" and not features.check("avif"):
        message = "avif is read only by a Pillow that was built with libavif, as its wheels are"
        raise ImageError(f"{message}; install one, or convert the image to JPEG or PNG first")
    if kind != "heif":
        return _READERS[kind]
    try:
        from pillow_heif import HeifImageFile  # noqa: PLC0415 - an optional plug-in
    except ModuleNotFoundError:
        message = "heif (HEIC) is read only with the plug-in pillow-heif"
        raise ImageError(f"{message}; run pip install pillow-heif, or convert the image to JPEG or PNG first") from None
    return cast("Callable[[io.BytesIO], ImageFile]", HeifImageFile)


# libtiff fills memory for a strip or a tile before it has seen the data. The most bytes that a coding can make of one:
# PackBits makes 128 of two bytes, deflate 258 of two bits, LZW a string as long as its table of nine bits. Other
# codings have no such limit, nor do JPEG 2000, AVIF and HEIF: images of one colour take hardly any bytes.
_MOST_OF_A_BYTE = {"packbits": 64, "tiff_adobe_deflate": 1032, "tiff_deflate": 1032, "tiff_lzw": 3641}
_FAX = frozenset({"group3", "group4", "tiff_ccitt", "tiff_raw_16"})  # at least a bit for each row
_MIN_LIMIT_BYTES = 2**23
_TIFF_SIZE, _STRIP_ROWS, _TILE_SIZE = (256, 257), 278, (322, 323)


def _refuse_missing_data(image: TiffImageFile, size_bytes: int) -> None:
    """Refuse a TIFF with strips or tiles that are larger than its file can hold; several may share their data."""
    tags, coding = image.tag_v2, image.info["compression"]
    bits = 1 if image.mode == "1" else 16 if image.mode.startswith("I;16") else 8 * len(image.getbands())
    width, height = (tags[tag] for tag in _TIFF_SIZE)
    width, rows = (tags.get(tag, size) for tag, size in zip(_TILE_SIZE, (width, height), strict=True))
    rows = min(rows, tags.get(_STRIP_ROWS, rows))
    factor = width * bits if coding in _FAX else _MOST_OF_A_BYTE.get(coding)
    if factor is not None and rows * width * bits // 8 > _MIN_LIMIT_BYTES + factor * size_bytes:
        claim = f"its header claims {width} x {rows} pixels in one piece, and {size_bytes} bytes cannot hold them"
        raise ImageError(f"the tiff is cut short: {claim}")


_CODESTREAM = b"\xff\x4f\xff\x51"  # begins that of JPEG 2000; the size of its tiles is at byte 24


def _check_memory(data: bytes, kind: str, size: tuple[int, int], check_pixels: Callable[[int, int], None]) -> None:
    """Refuse an image whose decoder takes more memory than a TIFF with as many pixels as are allowed.

    A pixel of AVIF and HEIF takes the memory of two, and a pixel of JPEG 2000 that of two more while its tile is
    decoded.
    """
    width, height = size
    held = (width, height) if kind in ("avif", "heif") else (0, 0)
    if kind == "jpeg2000":
        at = 0
        while not data.startswith(_CODESTREAM, at):
            box, name = struct.unpack_from(">I4s", data, at)
            head, box = (16, struct.unpack_from(">Q", data, at + 8)[0]) if box == 1 else (8, box)
            at += head if name == b"jp2c" else max(head, box)
        held = tuple(map(min, size, struct.unpack_from(">II", data, at + 24)))
        held = 2 * held[0], held[1]
    try:
        check_pixels(width + -(-held[0] * held[1] // height), height)
    except ImageTooLargeError as error:
        message = f"{kind} of {width}x{height} pixels takes as much memory as a larger image"
        raise ImageTooLargeError(f"{message}: {error}") from error


@contextmanager
def as_image_error(kind: str) -> Iterator[None]:
    """Keep Pillow quiet, and raise an `ImageError` for anything that it raises on a damaged file."""
    try:
        with QuietPillow():
            yield
    except ImageError:
        raise
    except _DAMAGED as error:
        detail = " ".join(str(error).split()) or type(error).__name__
        raise ImageError(f"damaged {kind}: {detail}") from error


def _in_mode(image: Image.Image, kind: str, mode: Mode) -> NDArray[Any]:
    is_wide = image.mode.startswith("I;16") or (image.mode == "I" and kind in ("png", "ppm"))
    if is_wide:  # Pillow's own conversion would clip values at 255
        clear = image.info.get("transparency")
        return _by_rows(image, lambda part: _narrow(np.asarray(part).astype(np.uint16)[:, :, None], mode, clear))
    if image.mode in ("I", "F"):
        bits = 16 if mode == "I;16" else 8
        raise ImageError(f"this {kind} has 32-bit samples, which have no defined {bits}-bit form; convert it first")
    try:
        return pixels_of(image, mode)
    except ValueError as error:
        message = f"this {kind} holds pixels of mode {image.mode!r}, which Pillow does not convert to mode {mode!r}"
        raise ImageError(f"{message}; open it with mode='RGB', or convert it first") from error


def _narrow(wide: NDArray[np.uint16], mode: Mode, clear: object) -> NDArray[Any]:
    """Return 16-bit grey, (H, W, 1), in a mode; ``clear`` is the value that is transparent, if one is."""
    if mode == "I;16":
        return wide
    grey = ((wide.astype(np.uint32) * 255 + 32_767) // 65_535).astype(np.uint8)
    if mode == "L":
        return grey
    alpha = [np.where(wide == clear, 0, 255).astype(np.uint8)] if mode == "RGBA" else []
    return np.concatenate([grey, grey, grey, *alpha], axis=2)


def pixels_of(image: Image.Image, mode: str | None = None) -> NDArray[Any]:
    """Return the pixels of a Pillow image, converted to a mode if one is given: uint8 or uint16 (H, W, C)."""
    pixels = _by_rows(image, lambda part: np.asarray(part if mode is None else part.convert(mode)))
    return pixels if pixels.ndim == 3 else pixels[:, :, None]


_BAND_PIXELS = 2**18


def _by_rows(image: Image.Image, pixels_of_part: Callable[[Image.Image], NDArray[Any]]) -> NDArray[Any]:
    """Return pixels of an image, made a few rows at a time, because Pillow takes several times their memory."""
    width, height = image.size
    most = max(1, _BAND_PIXELS // width)
    if height <= most:
        return np.ascontiguousarray(pixels_of_part(image))
    pixels: NDArray[Any] | None = None
    for top in range(0, height, most):
        bottom = min(top + most, height)
        part = pixels_of_part(image.crop((0, top, width, bottom)))
        pixels = np.empty((height, *part.shape[1:]), part.dtype) if pixels is None else pixels
        pixels[top:bottom] = part
    return cast("NDArray[Any]", pixels)


_GREY, _RGB, _GREY_ALPHA, _RGBA = 0, 2, 4, 6  # colour types of PNG
_PNG_HEADER = 29  # bytes up to its last field
_WEBP_ANIMATION = 0x02  # a flag of a VP8X chunk


def own_mode(data: bytes, kind: str) -> str:
    """Return the mode of an image: L, LA, RGB, RGBA or I;16; for a JPEG, L, RGB or CMYK."""
    if kind == "jpeg":
        return {"grey": "L", "cmyk": "CMYK", "ycck": "CMYK"}.get(_native.probe_jpeg(data).color, "RGB")
    if kind == "webp":
        return "RGBA" if _has_webp_alpha(data) else "RGB"
    if kind != "png":
        with as_image_error(kind), _reader(kind)(io.BytesIO(data)) as image:
            return _own_mode(image)
    bits, color = data[24:26] if len(data) > 25 else (8, _RGBA)
    if color == _GREY and bits == 16:
        return "I;16"
    alpha = color in (_GREY_ALPHA, _RGBA) or _has_clear_colors(data, color)
    return _named(is_grey=color in (_GREY, _GREY_ALPHA), has_alpha=alpha)


def bits_of(data: bytes, kind: str) -> int:
    """Return the bits of a channel of an image, or of an index into its palette."""
    if kind == "jpeg":
        return _native.probe_jpeg(data).bits
    if kind != "png":
        return 16 if own_mode(data, kind) == "I;16" else 8
    if len(data) < _PNG_HEADER:
        raise ImageError("damaged png: it ends inside its header")
    return data[24]


def is_animated(data: bytes, kind: str) -> bool:
    """Return whether an image has several frames or pages, of which only the first is read."""
    if kind == "jpeg":
        return False
    if kind == "webp":
        return data[12:16] == b"VP8X" and data[20] & _WEBP_ANIMATION != 0
    if kind == "png":
        before = takewhile(lambda chunk: chunk[0] != b"IDAT", _png_chunks(data))
        return any(chunk == b"acTL" for chunk, _, _ in before)
    with as_image_error(kind), _reader(kind)(io.BytesIO(data)) as image:
        return bool(getattr(image, "is_animated", False))


def _has_clear_colors(data: bytes, color: int) -> bool:
    """Return whether a chunk tRNS, of the length that it must have, makes a PNG without alpha transparent in parts."""
    before = takewhile(lambda chunk: chunk[0] != b"IDAT", _png_chunks(data))
    sizes = [end - start - 4 for kind, start, end in before if kind == b"tRNS"]
    wanted = {_GREY: range(2, 3), _RGB: range(6, 7)}.get(color, range(1, 257))
    return len(sizes) == 1 and sizes[0] in wanted


def _has_webp_alpha(data: bytes) -> bool:
    if data[12:16] == b"VP8X":
        return data[20] & 0x10 != 0
    return data[12:16] == b"VP8L" and data[24] & 0x10 != 0


def is_whole_png(data: bytes) -> bool:
    """Return whether the chunks of a PNG follow each other up to its end, and have their checksums."""
    view = memoryview(data)
    for kind, start, end in _png_chunks(data):
        if zlib.crc32(view[start:end]) != int.from_bytes(view[end : end + 4], "big"):
            return False
        if kind == b"IEND":
            return True
    return False


_MOST_CHUNKS = 2**16
"""The most chunks that are read: more would take time, and no image has them."""


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield kind, start and end of every whole chunk of a PNG; its checksum follows."""
    at = 8
    for _ in range(_MOST_CHUNKS):
        left = len(data) - at
        if left < 12:
            return
        size = int.from_bytes(data[at : at + 4], "big")
        if size > left - 12:
            return
        yield data[at + 4 : at + 8], at + 4, at + 8 + size
        at += 12 + size


def is_lossy_webp(data: bytes) -> bool:
    """Return whether the first frame of a WebP is lossy and has no alpha."""
    at = 12
    for _ in range(_MOST_CHUNKS):
        if len(data) - at < 8:
            return False
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if kind in (b"VP8 ", b"VP8L", b"ALPH"):
            return kind == b"VP8 "
        at += 8 + (16 if kind == b"ANMF" else size + size % 2)  # a frame has chunks of its own behind 16 bytes
    return False


def _png_size(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR" or len(data) < 24:
        raise ImageError("damaged png: it ends inside its header, or has none")
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _webp_size(data: bytes) -> tuple[int, int]:
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

    def __exit__(self, *exception: object) -> None:
        quiet = _quiet.get()
        with quiet.lock:
            quiet.inside -= 1
            if quiet.inside == 0 and quiet.caught is not None:
                quiet.caught.__exit__(None, None, None)
                quiet.caught = None
