"""Decodes and encodes single image files: the decoder of `stoker.Loader` by itself.

The core decodes JPEG, PNG and WebP without the GIL; Pillow decodes the other formats. All functions may be called from
any number of threads at once. Each thread keeps the working memory of its decoder until it ends.
"""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from stoker import _native
from stoker.config import check_choice, check_range
from stoker.errors import ConfigError, ImageError, StokerError
from stoker.recipe import (
    FORMATS,
    MAX_PIXELS,
    NATIVE_FORMATS,
    RawEncode,
    bits_of,
    dimensions,
    encode_pixels,
    is_whole_png,
    not_an_image,
    orientation,
    own_mode,
    parse_encode,
    sniff,
)
from stoker.recipe import decode as decode_whole
from stoker.transforms import extent
from stoker.types import DecodeMode, Exif, Filter, Mode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.transforms import Size

__all__ = ["ImageInfo", "decode", "encode", "info"]

_MOST_EDGE = 2**31 - 1


def decode(  # noqa: PLR0913 - settings by name
    data: bytes | bytearray | memoryview | str | os.PathLike[str],
    *,
    region: tuple[int, int, int, int] | None = None,
    size: Size | None = None,
    mode: Mode = "RGB",
    filter: Filter = "bilinear",  # noqa: A002 - as that of transforms is called
    decode: DecodeMode = "exact",
    exif: Exif = "keep",
    max_pixels: int = MAX_PIXELS,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Decode an image, or a part of it, and resize it.

    The pixels are those of Pillow's ``open(data).convert(mode).crop(region).resize(size, filter)`` to the last bit
    (except that 16-bit grey is rounded to 8 bits, while Pillow clips it at 255). Only the part that they depend on is
    decoded. The image is as stored; with ``exif="apply"``, it is ``PIL.ImageOps.exif_transpose(open(data))``.

    JPEG, PNG and WebP are decoded without the GIL. Pillow decodes all other formats that the loader reads, which
    docs/reference/images.md lists; of animations, the first frame.

    Args:
        data: The bytes of the file, which must not change meanwhile, or its path.
        region: Part of the image, after any turn: ``(left, top, right, bottom)`` in pixels, right and bottom
            exclusive, as in Pillow's ``crop``. None: all of it.
        size: Height and width of the result; one number is both. None: those of the region.
        mode: Channels and depth of the result, as `stoker.open` has them: ``RGB``, ``L``, ``RGBA`` or ``I;16``.
        filter: Resampling filter, one of Pillow's: ``nearest``, ``box``, ``bilinear``, ``bicubic`` or ``lanczos``. They
            antialias.
        decode: ``exact``; or ``fast``, as in `stoker.Loader`: a JPEG is decoded at a half, a quarter or an eighth if
            the result is smaller still.
        exif: ``keep`` takes the image as it is stored, as Pillow does; ``apply`` turns it upright first, as its EXIF
            orientation says, or else its XMP. `info` gives the orientation.
        max_pixels: An image with more pixels is refused before memory is taken for it.
        out: An array to write the pixels to: it has the shape and type of the result, and rows without gaps, such as
            one image of a batch. It must not share memory with ``data``. After an error some of it may be overwritten.

    Returns:
        ``out``, or a new array: uint8 (H, W, C), C is 3 in mode RGB, 1 in L, 4 in RGBA; or uint16 (H, W, 1) in I;16.

    Raises:
        ImageError: The file is not an image, is damaged or cut short in the part that was needed, or has no form in
            this mode; ``offset`` is the byte, if it is known.
        ImageTooLargeError: It has more pixels than ``max_pixels``.
        ConfigError: A value is out of range, the region leaves the image, or ``out`` does not fit.
        OSError: The file cannot be read.
    """
    try:
        source = _bytes_of(data)
        box = None if region is None else _box(region)
        shape = None if size is None else extent(size)
        check_range("max_pixels", max_pixels, 1, 2**32)
        check_choice("mode", mode, get_args(Mode))
        check_choice("filter", filter, get_args(Filter))
        check_choice("decode", decode, get_args(DecodeMode))
        check_choice("exif", exif, get_args(Exif))
        if sniff(source) in NATIVE_FORMATS:
            return _native.decode_image(
                source,
                box,
                max_pixels,
                mode,
                size=shape,
                filter=filter,
                decode=decode,
                out=out,
                turns=exif == "apply",
            )
        pixels = decode_whole(bytes(source), max_pixels, mode, exif)
        if box is not None:
            pixels = _cut(pixels, box)
        if shape is not None and shape != pixels.shape[:2]:
            pixels = _native.resize(pixels, shape[1], shape[0], filter)
        if out is None:
            return pixels
        _native.copy_pixels(pixels, mode, out)
        return out
    except StokerError as error:
        raise _with_path(error, data) from error.__cause__


def _bytes_of(data: bytes | bytearray | memoryview | str | os.PathLike[str]) -> bytes | memoryview:
    """Return the bytes of a file; bytes that are given are not copied."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, str | os.PathLike):
        return Path(data).read_bytes()
    try:
        return memoryview(data).cast("B")
    except TypeError:
        kind = "bytes that do not lie side by side" if _has_buffer(data) else f"of type {type(data).__name__}"
        raise ConfigError(f"data is {kind}; give the bytes of an image file, or its path") from None


def _has_buffer(data: object) -> bool:
    try:
        memoryview(data)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _with_path(error: StokerError, data: bytes | bytearray | memoryview | str | os.PathLike[str]) -> StokerError:
    if not isinstance(data, str | os.PathLike):
        return error
    path = os.fspath(data)
    return type(error)(f"{path}: {error}", path=path, offset=error.offset)


def _box(region: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    try:
        left, top, right, bottom = map(operator.index, region)
    except (TypeError, ValueError):
        left = top = right = bottom = -1
    if not (0 <= left < right <= _MOST_EDGE and 0 <= top < bottom <= _MOST_EDGE):
        message = "it must be (left, top, right, bottom) in whole pixels within the image, right and bottom exclusive"
        raise ConfigError(f"region is {region!r}; {message}")
    return left, top, right, bottom


def _cut(pixels: NDArray[Any], box: tuple[int, int, int, int]) -> NDArray[Any]:
    left, top, right, bottom = box
    height, width = pixels.shape[:2]
    if right > width or bottom > height:
        raise ConfigError(f"The box {box} is empty or leaves the image of {width} x {height}")
    return np.ascontiguousarray(pixels[top:bottom, left:right])


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """Facts in the header of an image file, and whether the file is whole.

    Attributes:
        format: ``jpeg``, ``png``, ``webp``, ``gif``, ``bmp``, ``tiff``, ``jpeg2000``, ``ppm``, ``avif`` or ``heif``.
        height: Rows of pixels, as stored; a TIFF is turned upright. With ``decode(..., exif="apply")`` height and width
            are swapped if ``orientation`` is 5 to 8.
        width: Columns of pixels, in the same way.
        mode: The mode of `decode` that has all channels of the image: ``RGB``, ``L``, ``RGBA`` or ``I;16``.
        bits: Bits of a sample in the file: 8 or 16; in a PNG also 1, 2 or 4, in a JPEG also 12.
        orientation: EXIF orientation, 1 to 8, which `decode` applies if asked; 1 if there is none, and for a TIFF.
        progressive: Whether the image comes in several passes: a progressive JPEG, an interlaced PNG.
        subsampling: Chroma subsampling of a JPEG: ``4:2:0`` and so on, or ``grey``; None for other formats.
        problem: What is wrong with the file, such as that it is cut short; None if nothing is. JPEG, PNG and WebP are
            walked to their ends but not decoded, so some damage goes unnoticed; of other formats, only the header is
            read.
    """

    format: str
    height: int
    width: int
    mode: Mode
    bits: int
    orientation: int
    progressive: bool
    subsampling: str | None
    problem: str | None


def info(data: bytes | bytearray | memoryview | str | os.PathLike[str]) -> ImageInfo:
    """Read the header of an image file.

    Args:
        data: The bytes of the file, or its path.

    Returns:
        The facts in the header. A file that is cut short after its header has a `problem`.

    Raises:
        ImageError: The file is not an image, or its header is damaged.
        ConfigError: ``data`` is neither bytes nor a path.
        OSError: The file cannot be read.
    """
    try:
        return _info(bytes(_bytes_of(data)))
    except StokerError as error:
        raise _with_path(error, data) from error.__cause__


def _info(data: bytes) -> ImageInfo:
    kind = sniff(data)
    if kind not in FORMATS and kind != "jpeg":
        raise ImageError(not_an_image(kind, data))
    width, height = dimensions(data, kind)
    stored_mode, bits = own_mode(data, kind), bits_of(data, kind)
    jpeg = _native.probe_jpeg(data) if kind == "jpeg" else None
    problem = _problem(data, kind, width * height)
    return ImageInfo(
        format=kind,
        height=height,
        width=width,
        mode=cast("Mode", {"LA": "RGBA", "CMYK": "RGB"}.get(stored_mode, stored_mode)),
        bits=bits,
        orientation=orientation(data, kind) if jpeg or problem is None else 1,
        progressive=jpeg.progressive if jpeg else kind == "png" and data[28] == 1,
        subsampling=jpeg.subsampling if jpeg else None,
        problem=problem,
    )


def _problem(data: bytes, kind: str, pixels: int) -> str | None:
    if kind == "png" and not is_whole_png(data):
        return "the file is cut short, or the checksum of a chunk does not match"
    try:
        if kind == "jpeg":
            _native.check_jpeg(data)
        elif kind in NATIVE_FORMATS:
            _native.decode_image(data, (0, 0, 1, 1), pixels)
    except ImageError as error:
        return str(error)
    return None


def encode(pixels: NDArray[Any], encode: str = "jpeg:90") -> bytes:
    """Encode pixels as an image file.

    JPEG is baseline with optimised tables, made without the GIL; Pillow makes PNG and WebP.

    Args:
        pixels: uint8 (H, W) or (H, W, C), where C is 1 for grey, 2 with alpha, 3 for RGB and 4 with alpha; or uint16
            (H, W) or (H, W, 1), grey. JPEG has no alpha and 8 bits, WebP neither grey with alpha nor 16 bits.
        encode: As for ``--encode`` of ``stoker build``: ``jpeg:90``, ``jpeg:90:420``, ``jpeg:90:444`` (quality 1 to
            100, chroma subsampling), each also with ``:standard`` at its end (Huffman tables), ``png``, ``webp:90``
            (quality 0 to 100) or ``webp:lossless``.

    Returns:
        The bytes of the file; PNG and WebP are the same for the same version of Pillow.

    Raises:
        ConfigError: The format is unknown, or cannot hold these pixels or this many of them.
    """
    chosen = parse_encode(encode)
    if isinstance(chosen, RawEncode):
        raise ConfigError(f"encode is {encode!r}, which is pixels as they are; use jpeg, png or webp")
    return encode_pixels(pixels, chosen)
