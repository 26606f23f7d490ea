"""What happens to pixels on the way in: bytes of a source file to bytes of the stored image."""

from __future__ import annotations

from stoker.recipe.convert import StoredImage, convert
from stoker.recipe.parsing import parse_encode, parse_resize
from stoker.recipe.recipe import Encode, Recipe, Resize
from stoker.recipe.sniff import sniff

__all__ = ["Encode", "Recipe", "Resize", "StoredImage", "convert", "parse_encode", "parse_resize", "sniff"]
