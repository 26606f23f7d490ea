"""What happens to pixels on the way in: bytes of a source file to bytes of the stored image."""

from __future__ import annotations

from stoker.recipe.image_formats import SNIFF_BYTES, QuietPillow, decode_with_pillow, dimensions, sniff
from stoker.recipe.recipe import (
    CHECKS,
    FILTERS,
    Check,
    Filter,
    JpegEncode,
    RawEncode,
    Recipe,
    StoredSize,
    parse_encode,
    parse_resize,
)
from stoker.recipe.stored_image import StoredImage, check, convert

__all__ = [
    "CHECKS",
    "FILTERS",
    "SNIFF_BYTES",
    "Check",
    "Filter",
    "JpegEncode",
    "QuietPillow",
    "RawEncode",
    "Recipe",
    "StoredImage",
    "StoredSize",
    "check",
    "convert",
    "decode_with_pillow",
    "dimensions",
    "parse_encode",
    "parse_resize",
    "sniff",
]
