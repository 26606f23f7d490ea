"""Masks: a class for each pixel of an image, through the geometry of that image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.errors import ImageError
from stoker.recipe.geometry import centre_square, turn
from stoker.recipe.image_formats import FORMATS, as_image_error, dimensions, encode_png, loaded, own_mode, sniff
from stoker.recipe.stored_image import decode

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from PIL import Image

    from stoker.recipe.recipe import Recipe
    from stoker.recipe.stored_image import StoredImage

MASK_FORMATS = ("png", "tiff", "bmp", "gif")
"""Formats that have palettes, or grey as it was written; others lose or scale values."""

_LOW_BITS = 8
_DEPTH_AT = 24  # byte of a PNG that says its bits


def mask_ids(data: bytes | Image.Image, check_size: Callable[[int, int], None]) -> NDArray[Any]:
    """Return the numbers in the pixels of a mask: bool, uint8, uint16 or int32 (H, W).

    Of a palette these are the indices, of 1 bit False and True.

    Args:
        data: A file, or a PIL image.
        check_size: Called with (width, height) before memory is taken; raises to refuse. A TIFF may be turned later.

    Raises:
        ImageError: It is damaged, of a format that changes numbers, or has more than one of them for a pixel.
    """
    if not isinstance(data, bytes):
        check_size(*data.size)
        with as_image_error("image"):
            return _ids_of(data)
    with loaded(data, _kind_of(data), check_size) as image:
        return _ids_of(image)


def is_coloured(data: bytes, check_size: Callable[[int, int], None]) -> bool:
    """Return whether the pixels of a mask are colours, and no numbers; as `mask_ids` otherwise."""
    with loaded(data, _kind_of(data), check_size) as image:
        return not _is_numbered(image)


def mask_colours(data: bytes, check_size: Callable[[int, int], None]) -> NDArray[np.uint8]:
    """Return the colours in the pixels of a mask, those of its palette if it has one: (H, W, 3); as `mask_ids`."""
    width, height = dimensions(data, _kind_of(data))
    check_size(width, height)
    return decode(data, width * height)


def _kind_of(data: bytes) -> str:
    kind = sniff(data)
    if kind not in MASK_FORMATS:
        why = ", which does not keep the numbers of its pixels," if kind in FORMATS or kind == "jpeg" else ""
        raise ImageError(f"a mask of kind {kind}{why} is not read; give one of {', '.join(MASK_FORMATS)}")
    return kind


def _is_numbered(image: Image.Image) -> bool:
    return image.mode in ("1", "L", "P", "I") or image.mode.startswith("I;16")


def _ids_of(image: Image.Image) -> NDArray[Any]:
    if not _is_numbered(image):
        message = f"its pixels are {image.mode}, but those of a mask are one number each: a palette, or grey"
        raise ImageError(f"{message}; give the class ids, not colours")
    ids = np.asarray(image)
    return ids.astype(np.uint16) if image.mode.startswith("I;16") else ids


def decode_mask(data: bytes, bits: int, max_pixels: int) -> NDArray[Any]:
    """Return the ids of a stored mask of 8 or 16 bits: uint8 or uint16 (H, W).

    Raises:
        ImageError: It is damaged, or is not a grey PNG of so many bits.
        ImageTooLargeError: It has more pixels than ``max_pixels``; no memory is taken for it.
    """
    if not is_stored_mask(data, bits):
        raise ImageError(f"it is not a grey PNG of {bits} bits, as stored masks are")
    return decode(data, max_pixels, "L" if bits == _LOW_BITS else "I;16")[:, :, 0]


def is_stored_mask(data: bytes, bits: int) -> bool:
    """Return whether a file is a mask as records hold it: a grey PNG of so many bits. Its pixels are not looked at.

    Raises:
        ImageError: It is a PNG whose header is damaged.
    """
    is_grey = sniff(data) == "png" and own_mode(data, "png") == ("L" if bits == _LOW_BITS else "I;16")
    return is_grey and data[_DEPTH_AT] == bits


def store_mask(ids: NDArray[Any], recipe: Recipe, image: StoredImage) -> bytes:
    """Return a mask as it is stored: turned, cut and resized as its image was, to the nearest pixel, as a grey PNG.

    ``ids`` are as large as the source of the image.
    """
    pixels = turn(ids[:, :, None], image.geometry.orientation)
    height, width = pixels.shape[:2]
    if recipe.resize is not None and recipe.resize.mode == "square":
        left, top, right, bottom = centre_square(width, height)
        pixels = np.ascontiguousarray(pixels[top:bottom, left:right])
        height, width = pixels.shape[:2]
    if (width, height) != (image.width, image.height):
        pixels = _native.resize(np.ascontiguousarray(pixels), image.width, image.height, "nearest")
    return encode_png(pixels)
