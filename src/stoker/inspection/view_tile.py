"""One tile of a sheet of views: the pixels that a model sees, and where they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw

from stoker.feed.thumbnails import draw_boxes, fit
from stoker.inspection import tile
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.inspection.seen_views import Seen

Region = tuple[float, float, float, float]

_COLORS = (
    (110, 168, 240),
    (98, 205, 160),
    (240, 128, 170),
    (178, 140, 255),
    (120, 220, 230),
    (235, 120, 80),
    (200, 215, 100),
    (220, 220, 225),
)


def color_of(column: int) -> tile.Color:
    """Return the colour of a column of views, counted from 0."""
    return _COLORS[column % len(_COLORS)]


def draw_seen(seen: Seen, *, boxes: bool) -> Image.Image:
    """Return the tile of one view of one sample."""
    picture = _picture(seen.pixels)
    if boxes:
        height, width = seen.pixels.shape[:2]
        corners = seen.boxes.astype(float) / (width, height, width, height)
        draw_boxes(picture, [Box(*one) for one in corners.tolist()])
    left, top, right, bottom = seen.region
    colors = ", ".join(f"{name[0]} {factor:.2f}" for name, factor in seen.colors)  # their names have no room
    part = f"{_length(right - left)} x {_length(bottom - top)} at {_length(left)}, {_length(top)}"
    return tile.draw_picture(picture, (part, "mirrored" if seen.mirrored else "", colors))


def draw_nothing() -> Image.Image:
    """Return the tile of a view that there is not: the sample has fewer objects."""
    return Image.new("RGB", (tile.TILE_WIDTH, tile.TILE_HEIGHT), tile.BACKGROUND)


def outline(stored: Image.Image, extent: tuple[int, int], outlines: Sequence[tuple[Region, tile.Color]]) -> None:
    """Draw onto the tile of a stored image where views of it come from."""
    left, top, width, height = tile.picture_place(extent)
    draw = ImageDraw.Draw(stored)
    for region, color in outlines:
        across, down = (width - 1) / extent[0], (height - 1) / extent[1]
        corners = [round(edge * scale) for edge, scale in zip(region, (across, down) * 2, strict=True)]
        place = (left + corners[0], top + corners[1], left + corners[2], top + corners[3])
        draw.rectangle(place, outline=color, width=2)


def _picture(pixels: NDArray[np.uint8]) -> Image.Image:
    """Return pixels as they are, or larger by a whole factor; only what has no room is made smaller."""
    factor = tile.PICTURE // max(pixels.shape[:2])
    if factor < 1:
        return fit(pixels, tile.PICTURE, tile.PICTURE)
    return Image.fromarray(np.ascontiguousarray(pixels.repeat(factor, 0).repeat(factor, 1)))


def _length(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
