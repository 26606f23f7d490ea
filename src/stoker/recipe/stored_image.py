"""One source file to one stored image."""

from __future__ import annotations

import atexit
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.errors import ImageError
from stoker.recipe.geometry import Geometry, centre_square, object_corners, turn, window_of
from stoker.recipe.image_formats import FORMATS, SNIFF_BYTES, decode_with_pillow, sniff
from stoker.recipe.recipe import MAX_SIDE_PX, JpegEncode, RawEncode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.recipe.geometry import Corners
    from stoker.recipe.recipe import Recipe
    from stoker.types import Box, ImageEncoding, TensorOrder


_PLAIN_COLORS = frozenset({"grey", "ycbcr", "rgb"})
_TF1_FILTERS = {"tf1-align-corners": True, "tf1-legacy": False}
_NATIVE_FILTERS = frozenset({"nearest", "box", "bilinear", "bicubic", "lanczos"})
_RECIPES = 16  # a process has one, and tests a few


@dataclass(frozen=True, slots=True)
class StoredImage:
    """The image as it goes into a record.

    Attributes:
        data: A JPEG file, or pixels. Under *keep*, for a JPEG, the very bytes of the source.
        width: Columns of pixels in ``data``.
        height: Rows of pixels in ``data``.
        converted: Format of the source when it was not a JPEG that every reader can decode (``png``, ``cmyk jpeg``,
            ...), or ``turned jpeg`` when only its EXIF orientation stood against keeping it; None otherwise.
        geometry: Where it lies in the source image; moves boxes.
        encoding: What ``data`` is.
        order: Order of the axes where ``data`` is pixels: uint8, ``height * width * 3`` of them.
    """

    data: bytes
    width: int
    height: int
    converted: str | None = None
    geometry: Geometry = field(default_factory=Geometry)
    encoding: ImageEncoding = "jpeg"
    order: TensorOrder = "HWC"


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


def check(data: bytes, recipe: Recipe) -> None:
    """Refuse what `convert` would refuse of an image file, as far as that shows without making anything of its pixels.

    Of a JPEG the header and the markers are read, and what follows them only as the recipe's ``check`` says; the pixels
    of another format are always decoded.

    Args:
        data: The bytes of its file.
        recipe: What would happen to it.

    Raises:
        ImageError: The file is not an image, or cannot be decoded without losing pixels.
        ImageTooLargeError: It has more pixels than the recipe allows.
    """
    kind = sniff(data)
    if kind == "jpeg":
        _check_jpeg(data, recipe)
        _check_further(data, recipe)
        return
    if kind not in FORMATS:
        raise ImageError(_not_an_image(kind, data))
    decode_with_pillow(data, kind, recipe.check_pixels)


def _check_jpeg(data: bytes, recipe: Recipe) -> _native.JpegInfo:
    info = _native.probe_jpeg(data)
    recipe.check_pixels(info.width, info.height)
    _native.check_jpeg(data)
    return info


def _check_further(data: bytes, recipe: Recipe) -> None:
    if recipe.check == "entropy":
        _native.check_entropy(data, recipe.max_pixels)
    elif recipe.check == "decode":
        _native.decode_jpeg(data, max_pixels=recipe.max_pixels)


def _refuse_other_arrays(pixels: NDArray[np.uint8]) -> None:
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.size == 0:
        message = (
            f"an array of {pixels.dtype} of shape {pixels.shape} is not an image; pixels are uint8 (height, width, 3)"
        )
        raise ImageError(message)


def _not_an_image(kind: str, data: bytes) -> str:
    if kind == "empty":
        return "the file is empty"
    start = ascii(data[: SNIFF_BYTES // 2])[2:-1]
    if kind == "text":
        return f"not an image but text: it starts with '{start}'"
    if kind == "unknown":
        return f"not an image of a known format: it starts with '{start}'"
    return f"{kind} is not read; convert it to JPEG or PNG first"


def _convert_jpeg(data: bytes, recipe: Recipe, crop: Box | None) -> StoredImage:
    info = _check_jpeg(data, recipe)
    orientation = info.orientation if recipe.exif == "apply" else 1
    foreign = _foreign_kind(info)
    fits = crop is None and _keeps_size(recipe, info.width, info.height)
    if fits and foreign is None and orientation == 1:
        return StoredImage(_kept(data, recipe), info.width, info.height)
    corners = _part(info.width, info.height, recipe, crop, orientation)
    window = window_of(corners, info.width, info.height, orientation)
    if _can_reencode(recipe, orientation):
        stored, width, height = _reencode(data, corners, recipe)
        return StoredImage(stored, width, height, foreign, Geometry(1, window))
    pixels = _native.decode_jpeg(data, corners, max_pixels=recipe.max_pixels)
    turned = "turned jpeg" if fits and orientation != 1 else None
    return _store(_Picture(turn(pixels, orientation), orientation, window, foreign or turned), recipe)


def _foreign_kind(info: _native.JpegInfo) -> str | None:
    """Return what keeps a JPEG from being one that every reader decodes to RGB."""
    if info.color not in _PLAIN_COLORS:
        return f"{info.color} jpeg"
    return "arithmetic jpeg" if info.arithmetic else None


def _kept(data: bytes, recipe: Recipe) -> bytes:
    """Return the bytes to store of a JPEG that loses nothing, once they are found whole."""
    if recipe.restart:
        transcoded = _native.transcode_jpeg(data, recipe.max_pixels)
        if transcoded is not None:
            return transcoded
        _native.check_entropy(data, recipe.max_pixels)  # there is no form with markers, and nothing has read it yet
    _check_further(data, recipe)
    return data


def _keeps_size(recipe: Recipe, width: int, height: int) -> bool:
    """Return whether the recipe leaves the bytes of an ordinary JPEG alone."""
    if isinstance(recipe.encode, RawEncode):
        return False
    resize = recipe.resize
    if resize is None or recipe.restart:  # with markers to be written, what fits into `max` is encoded like the rest
        return resize is None
    return resize.mode == "max" and resize.target(width, height) == (width, height)


def _can_reencode(recipe: Recipe, orientation: int) -> bool:
    """Return whether `_reencode` does all that a recipe asks for with an image of an EXIF orientation."""
    resized = recipe.resize is not None and isinstance(recipe.encode, JpegEncode)
    return resized and orientation == 1 and recipe.filter in _NATIVE_FILTERS


def _reencode(data: bytes, corners: Corners, recipe: Recipe) -> tuple[bytes, int, int]:
    """Return a part of a JPEG resized and encoded, its width and its height.

    With exact decoding these are the bytes that decoding, resizing and encoding give one after another.

    Args:
        data: The file.
        corners: What of its pixels is taken.
        recipe: One that `_can_reencode`.

    Raises:
        ImageError: The file is damaged, or the result does not fit into a JPEG.
        ImageTooLargeError: It, or the result, has more pixels than the recipe allows.
    """
    left, top, right, bottom = corners
    width, height = _target_of(right - left, bottom - top, recipe)
    return _resizer(recipe).run(data, corners, width, height), width, height


@lru_cache(_RECIPES)
def _resizer(recipe: Recipe) -> _native.JpegResizer:
    encode = recipe.encode
    assert isinstance(encode, JpegEncode)
    return _native.JpegResizer(
        filter=recipe.filter,
        quality=encode.quality,
        subsampling=encode.subsampling,
        restart=recipe.restart,
        decode=recipe.decode,
        max_pixels=recipe.max_pixels,
    )


atexit.register(_resizer.cache_clear)  # what of the extension outlives the interpreter is reported as a leak


def _convert_pixels(
    pixels: NDArray[np.uint8], recipe: Recipe, crop: Box | None, orientation: int, converted: str | None
) -> StoredImage:
    height, width = pixels.shape[:2]
    recipe.check_pixels(width, height)
    left, top, right, bottom = corners = _part(width, height, recipe, crop, orientation)
    part = np.ascontiguousarray(turn(pixels[top:bottom, left:right], orientation))
    window = window_of(corners, width, height, orientation)
    return _store(_Picture(part, orientation, window, converted), recipe)


def _part(width: int, height: int, recipe: Recipe, crop: Box | None, orientation: int) -> Corners:
    """Return what of the stored pixels is needed."""
    left, top, right, bottom = (0, 0, width, height) if crop is None else object_corners(crop, width, height)
    if orientation == 1 and recipe.resize is not None and recipe.resize.mode == "square":
        x, y, right, bottom = centre_square(right - left, bottom - top)
        return left + x, top + y, left + right, top + bottom
    return left, top, right, bottom


@dataclass(frozen=True, slots=True)
class _Picture:
    """Pixels on their way into a record.

    Attributes:
        pixels: uint8 (H, W, 3), RGB, turned already.
        orientation: EXIF orientation by which they were turned.
        window: Where they lie in the turned source image (left, top, right, bottom), in fractions.
        converted: As in `StoredImage`.
    """

    pixels: NDArray[np.uint8]
    orientation: int
    window: tuple[float, float, float, float]
    converted: str | None


def _store(picture: _Picture, recipe: Recipe) -> StoredImage:
    """Return the stored form of pixels.

    Raises:
        ImageError: They do not fit into a JPEG.
        ImageTooLargeError: The result has more pixels than the recipe allows.
    """
    pixels, window = picture.pixels, picture.window
    if recipe.resize is not None:
        if recipe.resize.mode == "square":
            pixels, window = _cut_square(pixels, window)
        pixels = _resized(pixels, recipe)
    height, width = pixels.shape[:2]
    geometry = Geometry(picture.orientation, window)
    encode = recipe.pixel_encode
    if isinstance(encode, RawEncode):
        axes = pixels if encode.order == "HWC" else np.ascontiguousarray(pixels.transpose(2, 0, 1))
        return StoredImage(axes.tobytes(), width, height, picture.converted, geometry, "raw", encode.order)
    if max(width, height) > MAX_SIDE_PX:
        raise ImageError(f"{width}x{height} pixels do not fit into a JPEG, whose sides end at {MAX_SIDE_PX}")
    data = _native.encode_jpeg(pixels, encode.quality, encode.subsampling, restart=recipe.restart)
    return StoredImage(data, width, height, picture.converted, geometry)


def _cut_square(
    pixels: NDArray[np.uint8], window: tuple[float, float, float, float]
) -> tuple[NDArray[np.uint8], tuple[float, float, float, float]]:
    height, width = pixels.shape[:2]
    if width == height:
        return pixels, window
    left, top, right, bottom = centre_square(width, height)
    wide, high = window[2] - window[0], window[3] - window[1]
    inner = (
        window[0] + wide * left / width,
        window[1] + high * top / height,
        window[0] + wide * right / width,
        window[1] + high * bottom / height,
    )
    return pixels[top:bottom, left:right].copy(), inner


def _resized(pixels: NDArray[np.uint8], recipe: Recipe) -> NDArray[np.uint8]:
    height, width = pixels.shape[:2]
    target = _target_of(width, height, recipe)
    if target == (width, height):
        return pixels
    if recipe.filter in _TF1_FILTERS:
        return _native.resize_tf1(pixels, *target, align_corners=_TF1_FILTERS[recipe.filter])
    if recipe.filter == "tf2-nearest":
        return pixels[_nearest(height, target[1])][:, _nearest(width, target[0])]
    return _native.resize(pixels, *target, recipe.filter)


def _nearest(size: int, out: int) -> NDArray[np.intp]:
    """Return which of ``size`` pixels TensorFlow 2 takes for each of ``out``: the arithmetic is float32's."""
    at = (np.arange(out, dtype=np.float32) + np.float32(0.5)) * (np.float32(size) / np.float32(out))
    places: NDArray[np.intp] = np.floor(at).astype(np.intp)
    return np.clip(places, 0, size - 1)


def _target_of(width: int, height: int, recipe: Recipe) -> tuple[int, int]:
    """Return the (width, height) that so many pixels become.

    Raises:
        ImageError: They do not fit into a JPEG.
        ImageTooLargeError: They are more pixels than the recipe allows.
    """
    assert recipe.resize is not None
    target = recipe.resize.target(width, height)
    if target == (width, height):
        return target
    if max(target) > MAX_SIDE_PX and isinstance(recipe.encode, JpegEncode):
        message = f"{recipe.resize} would make {target[0]}x{target[1]} of {width}x{height} pixels"
        raise ImageError(f"{message}, and the sides of a JPEG end at {MAX_SIDE_PX}")
    recipe.check_pixels(*target)
    return target
