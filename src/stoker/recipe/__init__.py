"""What happens to pixels on the way in: bytes of a source file to bytes of the stored image."""

from __future__ import annotations

from stoker.recipe.convert import convert
from stoker.recipe.parsing import parse_encode, parse_resize
from stoker.recipe.pillow import decode_with_pillow, dimensions
from stoker.recipe.recipe import JpegEncode, RawEncode, Recipe, Resize
from stoker.recipe.sniff import sniff
from stoker.recipe.store import StoredImage

__all__ = [
    "JpegEncode",
    "RawEncode",
    "Recipe",
    "Resize",
    "StoredImage",
    "convert",
    "decode_with_pillow",
    "dimensions",
    "parse_encode",
    "parse_resize",
    "sniff",
]
