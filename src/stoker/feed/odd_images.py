"""Images in records and files that are no JPEG, whatever their names say."""

from __future__ import annotations

from dataclasses import replace

from stoker.recipe import Recipe, convert

_AS_STORED = Recipe()


def to_jpeg(data: bytes, max_pixels: int = _AS_STORED.max_pixels) -> bytes:
    """Return an image of another format as the JPEG that ``stoker build`` would store for it.

    Args:
        data: The bytes of its file.
        max_pixels: An image with more is refused before memory is taken for it.

    Raises:
        ImageError: It is no image, has more pixels, or cannot be decoded without losing any.
    """
    stored = convert(data, replace(_AS_STORED, max_pixels=max_pixels)).data
    return bytes(stored)
