"""One source file to one stored JPEG."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import ImageError
from stoker.recipe.geometry import Geometry, centre_square, turn
from stoker.recipe.pillow import FORMATS, decode_with_pillow
from stoker.recipe.recipe import MAX_SIDE_PX
from stoker.recipe.sniff import SNIFF_BYTES, sniff

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stoker.recipe.recipe import Recipe

_PLAIN_COLORS = frozenset({"grey", "ycbcr", "rgb"})


@dataclass(frozen=True, slots=True)
class StoredImage:
    """The image as it goes into a record.

    Attributes:
        data: A JPEG file. Under *keep*, for a JPEG, the very bytes of the source.
        width: Columns of pixels in ``data``.
        height: Rows of pixels in ``data``.
        converted: Format of the source when it was not a JPEG that every reader can decode (``png``, ``cmyk jpeg``,
            ...), or ``turned jpeg`` when only its EXIF orientation stood against keeping it; None otherwise.
        geometry: Where it lies in the source image; moves boxes.
    """

    data: bytes
    width: int
    height: int
    converted: str | None = None
    geometry: Geometry = field(default_factory=Geometry)


def convert(data: bytes, recipe: Recipe) -> StoredImage:
    """Return the stored form of one source file. Pure: the same bytes and recipe give the same result anywhere.

    Raises:
        ImageError: The file is not an image, or cannot be decoded without losing pixels.
        ImageTooLargeError: It has more pixels than the recipe allows.
    """
    kind = sniff(data)
    if kind == "jpeg":
        return _convert_jpeg(data, recipe)
    if kind not in FORMATS:
        raise ImageError(_not_an_image(kind, data))
    pixels, orientation = decode_with_pillow(data, kind, recipe.check_pixels)
    return _store(pixels, recipe, orientation if recipe.exif == "apply" else 1, kind)


def _convert_jpeg(data: bytes, recipe: Recipe) -> StoredImage:
    # A decode finds every damage that the walk over the markers finds; only bytes that are kept need the walk.
    info = _native.check_jpeg(data) if recipe.resize is None else _native.probe_jpeg(data)
    _refuse_undecodable(info)
    recipe.check_pixels(info.width, info.height)
    orientation = info.orientation if recipe.exif == "apply" else 1
    foreign = _foreign_kind(info)
    fits = recipe.resize is None or (
        recipe.resize.mode == "max" and recipe.resize.target(info.width, info.height) == (info.width, info.height)
    )
    if fits and foreign is None and orientation == 1:
        if recipe.check == "decode":
            _native.decode_jpeg(data, max_pixels=recipe.max_pixels)
        elif recipe.resize is not None:
            _native.check_jpeg(data)
        return StoredImage(data, info.width, info.height)
    pixels = _native.decode_jpeg(data, max_pixels=recipe.max_pixels)
    turned = "turned jpeg" if fits and orientation != 1 else None
    return _store(pixels, recipe, orientation, foreign or turned)


def _refuse_undecodable(info: _native.JpegInfo) -> None:
    if info.lossless:
        raise ImageError("lossless JPEG, which hardly any reader decodes; convert it to baseline JPEG or PNG")
    if info.bits != 8:
        raise ImageError(f"JPEG with {info.bits} bits per sample; only 8 are supported, so convert it first")
    if info.color == "other":
        raise ImageError(f"JPEG with {info.components} components of unknown meaning; convert it to RGB first")


def _foreign_kind(info: _native.JpegInfo) -> str | None:
    """Return what keeps a JPEG from being one that every reader decodes to RGB."""
    if info.color not in _PLAIN_COLORS:
        return f"{info.color} jpeg"
    return "arithmetic jpeg" if info.arithmetic else None


def _store(pixels: NDArray[np.uint8], recipe: Recipe, orientation: int, converted: str | None) -> StoredImage:
    pixels = turn(pixels, orientation)
    geometry = Geometry(orientation)
    if recipe.resize is not None:
        if recipe.resize.mode == "square":
            pixels, geometry = _cut_square(pixels, orientation)
        pixels = _resized(pixels, recipe)
    height, width = pixels.shape[:2]
    if max(width, height) > MAX_SIDE_PX:
        raise ImageError(f"{width}x{height} pixels do not fit into a JPEG, whose sides end at {MAX_SIDE_PX}")
    encode = recipe.pixel_encode
    data = _native.encode_jpeg(pixels, encode.quality, encode.subsampling)
    return StoredImage(data, width, height, converted, geometry)


def _cut_square(pixels: NDArray[np.uint8], orientation: int) -> tuple[NDArray[np.uint8], Geometry]:
    height, width = pixels.shape[:2]
    left, top, right, bottom = centre_square(width, height)
    window = (left / width, top / height, right / width, bottom / height)
    return pixels[top:bottom, left:right].copy(), Geometry(orientation, window)


def _resized(pixels: NDArray[np.uint8], recipe: Recipe) -> NDArray[np.uint8]:
    assert recipe.resize is not None
    height, width = pixels.shape[:2]
    target = recipe.resize.target(width, height)
    if target == (width, height):
        return pixels
    if max(target) > MAX_SIDE_PX:
        message = f"{recipe.resize} would make {target[0]}x{target[1]} of {width}x{height} pixels"
        raise ImageError(f"{message}, and the sides of a JPEG end at {MAX_SIDE_PX}")
    recipe.check_pixels(*target)
    return _native.resize(pixels, *target, recipe.filter)


def _not_an_image(kind: str, data: bytes) -> str:
    if kind == "empty":
        return "the file is empty"
    start = ascii(data[: SNIFF_BYTES // 2])[2:-1]
    if kind == "text":
        return f"not an image but text: it starts with '{start}'"
    if kind == "unknown":
        return f"not an image of a known format: it starts with '{start}'"
    return f"{kind} is not read; convert it to JPEG or PNG first"
