"""Pixels to a stored image: cut, resized, encoded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.errors import ImageError
from stoker.recipe.geometry import Geometry, centre_square
from stoker.recipe.recipe import MAX_SIDE_PX, JpegEncode, RawEncode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.recipe.recipe import Recipe
    from stoker.types import ImageEncoding, TensorOrder

_TF1_FILTERS = {"tf1-align-corners": True, "tf1-legacy": False}


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


@dataclass(frozen=True, slots=True)
class Picture:
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


def store(picture: Picture, recipe: Recipe) -> StoredImage:
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


def target_of(width: int, height: int, recipe: Recipe) -> tuple[int, int]:
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


def _resized(pixels: NDArray[np.uint8], recipe: Recipe) -> NDArray[np.uint8]:
    height, width = pixels.shape[:2]
    target = target_of(width, height, recipe)
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
