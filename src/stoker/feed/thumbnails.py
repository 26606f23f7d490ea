"""Small pictures of samples, for people to look at."""

from __future__ import annotations

import base64
import io
import math
from typing import TYPE_CHECKING

from PIL import Image, ImageDraw

from stoker import _native
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from stoker.feed.sample import Sample

BOX_COLOR = (255, 190, 60)
_BOX_SHADE = (0, 0, 0)
_MAX_BOXES = 1000  # a picture shows no more, whatever a record claims
MOST_ENLARGED = 4.0
"""An image of 32 pixels is not blown up to a blur."""


def fitted_size(columns: int, rows: int, width: int, height: int) -> tuple[int, int]:
    """Return width and height of an image made as large as fits, its aspect kept; a small one is not blown up."""
    scale = min(width / columns, height / rows, MOST_ENLARGED)
    return max(1, round(columns * scale)), max(1, round(rows * scale))


def fit(pixels: NDArray[np.uint8], width: int, height: int) -> Image.Image:
    """Return an image, uint8 (H, W, 3), as large as fits into ``width`` x ``height`` pixels, its aspect kept."""
    rows, columns = pixels.shape[:2]
    shown = fitted_size(columns, rows, width, height)
    return Image.fromarray(_native.resize(pixels, *shown, "lanczos" if shown[0] < columns else "bicubic"))


def boxes_of(sample: Sample) -> Iterator[Box]:
    """Yield the annotated boxes of a sample, clamped to the image; what is no box is left out."""
    for box in sample.boxes[:_MAX_BOXES]:
        corners = (box.xmin, box.ymin, box.xmax, box.ymax)
        if all(math.isfinite(value) for value in corners):
            xmin, ymin, xmax, ymax = (min(1.0, max(0.0, value)) for value in corners)
            if xmin < xmax and ymin < ymax:
                yield Box(xmin, ymin, xmax, ymax)


def draw_boxes(picture: Image.Image, boxes: Iterable[Box]) -> None:
    """Draw boxes, in fractions of the picture, onto it."""
    draw = ImageDraw.Draw(picture)
    for box in boxes:
        left, right = round(box.xmin * (picture.width - 1)), round(box.xmax * (picture.width - 1))
        top, bottom = round(box.ymin * (picture.height - 1)), round(box.ymax * (picture.height - 1))
        # The dark line around the bright one keeps a box visible on any image.
        draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_BOX_SHADE)
        draw.rectangle((left, top, right, bottom), outline=BOX_COLOR, width=2)


def sample_thumbnail(sample: Sample, side: int) -> Image.Image:
    """Return the image of a sample with its boxes, as large as fits into a square.

    Args:
        sample: What to show.
        side: Of the square, in pixels.

    Raises:
        StokerError: The image cannot be decoded.
    """
    picture = fit(sample.decode(), side, side)
    draw_boxes(picture, boxes_of(sample))
    return picture


def data_uri(picture: Image.Image, quality: int = 85) -> str:
    """Return a picture as an URI that holds its JPEG, for pages that must stand alone."""
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=quality)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"
