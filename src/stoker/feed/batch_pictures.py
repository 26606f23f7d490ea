"""The images of a batch as pictures, whatever their type, layout and scale."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import ConfigError
from stoker.feed.boxes import Boxes, PaddedBoxes
from stoker.feed.thumbnails import draw_boxes, fit
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from PIL import Image

    from stoker.views import Output

_SIDE = 224


def batch_pictures(batch: Any, most: int) -> Iterator[tuple[Image.Image, ...]]:
    """Yield the pictures of the first samples of a batch, one for each view, with the boxes it has.

    Args:
        batch: A `stoker.Batch`, or what has its fields: its arrays may be anything that NumPy can read.
        most: How many samples.

    Raises:
        ConfigError: The images have a shape that no loader gives.
    """
    views = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    boxes = batch.boxes if isinstance(batch.boxes, tuple) else (batch.boxes,) * len(views)
    output = batch.origin.output if batch.origin else None
    for place in range(min(most, len(batch))):
        yield tuple(
            _picture(pixels_of(np.asarray(view[place]), output), corners_of(found, place))
            for view, found in zip(views, boxes, strict=True)
        )


def pixels_of(image: NDArray[Any], output: Output | None) -> NDArray[np.uint8]:
    """Return one image of a batch as it was before its type, layout and scale were changed: uint8 (H, W, 3).

    Args:
        image: Three axes, one of them the three channels.
        output: What was made of the pixels; None where nobody knows: floats are then stretched to 0..255.

    Raises:
        ConfigError: It has another shape.
    """
    if image.ndim != 3 or 3 not in (image.shape[0], image.shape[2]):
        raise ConfigError(f"an image of shape {image.shape} has no three channels in front or behind")
    planes = output.layout == "NCHW" if output else image.shape[2] != 3
    if planes:
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
    """Return the corners of the boxes of one sample, float64 (T, 4); none where there are none."""
    if isinstance(boxes, Boxes):
        return np.asarray(boxes.corners, np.float64)[int(boxes.offsets[place]) : int(boxes.offsets[place + 1])]
    if isinstance(boxes, PaddedBoxes):
        return np.asarray(boxes.corners[place], np.float64)[: int(boxes.counts[place])]
    return np.empty((0, 4))


def _picture(pixels: NDArray[np.uint8], corners: NDArray[np.float64]) -> Image.Image:
    picture = fit(pixels, _SIDE, _SIDE)
    height, width = pixels.shape[:2]
    draw_boxes(picture, [Box(*one) for one in (corners / (width, height, width, height)).tolist()])
    return picture
