"""Pictures for people to look at: images scaled to fit, their boxes drawn, as a ``data:`` URI."""

from __future__ import annotations

import base64
import io
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image, ImageDraw

from stoker import _native
from stoker.errors import ConfigError
from stoker.loader.boxes import Boxes, PaddedBoxes
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from stoker.format import ClassLabel
    from stoker.transforms import Output


_BOX_COLOR, _BOX_SHADE = (255, 190, 60), (0, 0, 0)
_MAX_BOXES = 1000  # a picture shows no more, whatever a record claims
_MAX_ENLARGEMENT = 4.0  # an image of 32 pixels would be blown up to a blur


def fitted_size(columns: int, rows: int, width: int, height: int) -> tuple[int, int]:
    """Return width and height of an image made as large as fits, its aspect kept; a small one is not blown up."""
    scale = min(width / columns, height / rows, _MAX_ENLARGEMENT)
    return max(1, round(columns * scale)), max(1, round(rows * scale))


def fit(pixels: NDArray[np.uint8], width: int, height: int) -> Image.Image:
    """Return an image, uint8 (H, W, 3), as large as fits into ``width`` x ``height`` pixels, its aspect kept."""
    rows, columns = pixels.shape[:2]
    size = fitted_size(columns, rows, width, height)
    return Image.fromarray(_native.resize(pixels, *size, "lanczos" if size[0] < columns else "bicubic"))


def usable_boxes(boxes: Sequence[Box]) -> list[Box]:
    """Return annotated boxes clamped to the image; those that are empty or not finite are left out."""
    usable = []
    for box in boxes[:_MAX_BOXES]:
        corners = (box.xmin, box.ymin, box.xmax, box.ymax)
        if all(math.isfinite(value) for value in corners):
            xmin, ymin, xmax, ymax = (min(1.0, max(0.0, value)) for value in corners)
            if xmin < xmax and ymin < ymax:
                usable.append(Box(xmin, ymin, xmax, ymax))
    return usable


def draw_boxes(picture: Image.Image, boxes: Iterable[Box]) -> None:
    """Draw boxes, in fractions of the picture, onto it."""
    draw = ImageDraw.Draw(picture)
    for box in boxes:
        left, right = round(box.xmin * (picture.width - 1)), round(box.xmax * (picture.width - 1))
        top, bottom = round(box.ymin * (picture.height - 1)), round(box.ymax * (picture.height - 1))
        # The dark line around the bright one keeps a box visible on any image.
        draw.rectangle((left - 1, top - 1, right + 1, bottom + 1), outline=_BOX_SHADE)
        draw.rectangle((left, top, right, bottom), outline=_BOX_COLOR, width=2)


def draw_pixel_boxes(picture: Image.Image, extent: tuple[int, int], corners: NDArray[Any]) -> None:
    """Draw boxes, (T, 4) in pixels of an image of this width and height, onto its picture."""
    width, height = extent
    draw_boxes(picture, [Box(*one) for one in (corners.astype(float) / (width, height, width, height)).tolist()])


def data_uri(picture: Image.Image) -> str:
    """Return a picture as a URI that holds its JPEG, for pages that must stand alone."""
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"


def displayable(text: str) -> str:
    """Return text that any page and font can show: what is not printable, such as a stray byte, is replaced."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def class_title(classes: Sequence[ClassLabel], label: int) -> str:
    """Return what a class is called: its first words, else its name, else its number."""
    if not 0 <= label < len(classes):
        return f"label {label}" if label >= 0 else "no label"
    return classes[label].text.split(",")[0].strip() or classes[label].name


def original_pixels(image: NDArray[Any], output: Output | None) -> NDArray[np.uint8]:
    """Return one image of a batch as it was before its type, layout and scale were changed: uint8 (H, W, 3).

    Args:
        image: Three axes, one of them the three channels.
        output: How the pixels were changed; None if unknown: floats are then stretched to 0..255.

    Raises:
        ConfigError: It has another shape.
    """
    if image.ndim != 3 or 3 not in (image.shape[0], image.shape[2]):
        raise ConfigError(f"an image of shape {image.shape} does not have three channels, neither first nor last")
    if output.layout == "NCHW" if output else image.shape[2] != 3:
        image = image.transpose(1, 2, 0)
    if image.dtype == np.uint8:
        return np.ascontiguousarray(image)
    values = image.astype(np.float64)
    if output is None:
        low, high = np.nanmin(values), np.nanmax(values)
        values = (values - low) / (high - low or 1.0)
    else:
        values = values * (output.std or (1.0, 1.0, 1.0)) + (output.mean or (0.0, 0.0, 0.0))
    return np.ascontiguousarray(np.clip(np.nan_to_num(values) * 255, 0, 255).round().astype(np.uint8))


def corners_of(boxes: Any, place: int) -> NDArray[np.float64]:
    """Return the corners of the boxes of one sample of a batch, float64 (T, 4)."""
    if isinstance(boxes, Boxes):
        return np.asarray(boxes.corners, np.float64)[int(boxes.offsets[place]) : int(boxes.offsets[place + 1])]
    if isinstance(boxes, PaddedBoxes):
        return np.asarray(boxes.corners[place], np.float64)[: int(boxes.counts[place])]
    return np.empty((0, 4))
