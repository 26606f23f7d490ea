"""A JPEG to a JPEG of another size, in one native call: nothing of it passes through Python but the bytes."""

from __future__ import annotations

import atexit
from functools import lru_cache
from typing import TYPE_CHECKING

from stoker import _native
from stoker.recipe.recipe import JpegEncode
from stoker.recipe.store import target_of

if TYPE_CHECKING:
    from stoker.recipe.geometry import Corners
    from stoker.recipe.recipe import Recipe

_NATIVE_FILTERS = frozenset({"nearest", "box", "bilinear", "bicubic", "lanczos"})
_RECIPES = 16  # a process has one, and tests a few


def can_reencode(recipe: Recipe, orientation: int) -> bool:
    """Return whether `reencode` does all that a recipe asks for with an image of an EXIF orientation."""
    resized = recipe.resize is not None and isinstance(recipe.encode, JpegEncode)
    return resized and orientation == 1 and recipe.filter in _NATIVE_FILTERS


def reencode(data: bytes, corners: Corners, recipe: Recipe) -> tuple[bytes, int, int]:
    """Return a part of a JPEG resized and encoded, its width and its height.

    With exact decoding these are the bytes that decoding, resizing and encoding give one after another.

    Args:
        data: The file.
        corners: What of its pixels is taken.
        recipe: One that `can_reencode`.

    Raises:
        ImageError: The file is damaged, or the result does not fit into a JPEG.
        ImageTooLargeError: It, or the result, has more pixels than the recipe allows.
    """
    left, top, right, bottom = corners
    width, height = target_of(right - left, bottom - top, recipe)
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
