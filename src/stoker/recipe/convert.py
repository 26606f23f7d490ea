"""One source file to one stored image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.errors import ImageError
from stoker.recipe.geometry import Geometry, centre_square, object_corners, turn, window_of
from stoker.recipe.pillow import FORMATS, decode_with_pillow
from stoker.recipe.recipe import RawEncode
from stoker.recipe.reencode import can_reencode, reencode
from stoker.recipe.sniff import SNIFF_BYTES, sniff
from stoker.recipe.store import Picture, StoredImage, store

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.recipe.geometry import Corners
    from stoker.recipe.recipe import Recipe
    from stoker.types import Box

_PLAIN_COLORS = frozenset({"grey", "ycbcr", "rgb"})


def convert(data: bytes | NDArray[np.uint8], recipe: Recipe, crop: Box | None = None) -> StoredImage:
    """Return the stored form of one source image. Pure: the same input and recipe give the same result anywhere.

    Args:
        data: The bytes of its file, or its pixels: uint8 (H, W, 3), RGB.
        recipe: What happens to it.
        crop: Part of the image that is meant, in fractions of it as it is stored, before any EXIF orientation.

    Raises:
        ImageError: The file is not an image, or cannot be decoded without losing pixels; or the pixels are not RGB.
        ImageTooLargeError: It has more pixels than the recipe allows.
    """
    if not isinstance(data, bytes):
        _refuse_other_arrays(data)
        return _convert_pixels(data, recipe, crop, 1, None)
    kind = sniff(data)
    if kind == "jpeg":
        return _convert_jpeg(data, recipe, crop)
    if kind not in FORMATS:
        raise ImageError(_not_an_image(kind, data))
    pixels, orientation = decode_with_pillow(data, kind, recipe.check_pixels)
    return _convert_pixels(pixels, recipe, crop, orientation if recipe.exif == "apply" else 1, kind)


def _convert_pixels(
    pixels: NDArray[np.uint8], recipe: Recipe, crop: Box | None, orientation: int, converted: str | None
) -> StoredImage:
    height, width = pixels.shape[:2]
    recipe.check_pixels(width, height)
    left, top, right, bottom = corners = _part(width, height, recipe, crop, orientation)
    part = np.ascontiguousarray(turn(pixels[top:bottom, left:right], orientation))
    window = window_of(corners, width, height, orientation)
    return store(Picture(part, orientation, window, converted), recipe)


def _convert_jpeg(data: bytes, recipe: Recipe, crop: Box | None) -> StoredImage:
    info = _native.probe_jpeg(data)
    _refuse_undecodable(info)
    recipe.check_pixels(info.width, info.height)
    _native.check_jpeg(data)  # a decode ends with the last pixel, and would not see what is cut behind it
    orientation = info.orientation if recipe.exif == "apply" else 1
    foreign = _foreign_kind(info)
    fits = crop is None and _keeps_size(recipe, info.width, info.height)
    if fits and foreign is None and orientation == 1:
        return StoredImage(_kept(data, recipe), info.width, info.height)
    corners = _part(info.width, info.height, recipe, crop, orientation)
    window = window_of(corners, info.width, info.height, orientation)
    if can_reencode(recipe, orientation):
        stored, width, height = reencode(data, corners, recipe)
        return StoredImage(stored, width, height, foreign, Geometry(1, window))
    pixels = _native.decode_jpeg(data, corners, max_pixels=recipe.max_pixels)
    turned = "turned jpeg" if fits and orientation != 1 else None
    return store(Picture(turn(pixels, orientation), orientation, window, foreign or turned), recipe)


def _kept(data: bytes, recipe: Recipe) -> bytes:
    """Return the bytes to store of a JPEG that loses nothing, once they are found whole."""
    if recipe.restart:
        transcoded = _native.transcode_jpeg(data, recipe.max_pixels)
        if transcoded is not None:  # otherwise there is no form with markers and the same pixels
            return transcoded
    if recipe.check == "decode":
        _native.decode_jpeg(data, max_pixels=recipe.max_pixels)
    return data


def _keeps_size(recipe: Recipe, width: int, height: int) -> bool:
    """Return whether the recipe leaves the bytes of an ordinary JPEG alone."""
    if isinstance(recipe.encode, RawEncode):
        return False
    resize = recipe.resize
    if resize is None or recipe.restart:  # with markers to be written, what fits into `max` is encoded like the rest
        return resize is None
    return resize.mode == "max" and resize.target(width, height) == (width, height)


def _part(width: int, height: int, recipe: Recipe, crop: Box | None, orientation: int) -> Corners:
    """Return what of the stored pixels is needed."""
    left, top, right, bottom = (0, 0, width, height) if crop is None else object_corners(crop, width, height)
    if orientation == 1 and recipe.resize is not None and recipe.resize.mode == "square":
        x, y, right, bottom = centre_square(right - left, bottom - top)
        return left + x, top + y, left + right, top + bottom
    return left, top, right, bottom


def _refuse_other_arrays(pixels: NDArray[np.uint8]) -> None:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.size == 0:
        message = f"an array of {pixels.dtype} of shape {pixels.shape} is no image; pixels are uint8 (height, width, 3)"
        raise ImageError(message)


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


def _not_an_image(kind: str, data: bytes) -> str:
    if kind == "empty":
        return "the file is empty"
    start = ascii(data[: SNIFF_BYTES // 2])[2:-1]
    if kind == "text":
        return f"not an image but text: it starts with '{start}'"
    if kind == "unknown":
        return f"not an image of a known format: it starts with '{start}'"
    return f"{kind} is not read; convert it to JPEG or PNG first"
