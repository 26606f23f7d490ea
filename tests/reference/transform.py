"""Transforms in plain Python and Pillow: which pixels a sample must become."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image

from reference import colors
from reference.philox import sample_draw

CROP, FLIP = 1, 2
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass(frozen=True)
class Draws:
    seed: int
    epoch: int
    sample: int
    transform: int = 0

    def words(self, op: int, i: int) -> list[int]:
        return sample_draw(self.seed, self.epoch, self.sample, self.transform << 8 | op, i)

    def flip(self, probability: float) -> bool:
        return probability > 0 and self.words(FLIP, 0)[0] / 2**32 < probability


def random_crop(width: int, height: int, transform, draws: Draws) -> tuple[int, int, int, int]:
    scale, ratio = transform.scale, transform.ratio
    low, high = math.log(ratio[0]), math.log(ratio[1])
    for attempt in range(10):
        words = draws.words(CROP, attempt)
        area = width * height * (scale[0] + (scale[1] - scale[0]) * (words[0] / 2**32))
        aspect = math.exp(low + (high - low) * (words[1] / 2**32))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = words[3] * (width - w + 1) >> 32, words[2] * (height - h + 1) >> 32
            return left, top, left + w, top + h
    w, h = width, height
    if width / height < ratio[0]:
        h = max(1, round(width / ratio[0]))
    elif width / height > ratio[1]:
        w = max(1, round(height * ratio[1]))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def mirror(image: Image.Image, flip: bool) -> np.ndarray:
    pixels = np.asarray(image)
    return pixels[:, ::-1] if flip else pixels


def sides(transform) -> tuple[int, int]:
    """Width and height of the result."""
    height, width = (transform.size,) * 2 if isinstance(transform.size, int) else transform.size
    return width, height


def random_resized_crop(image: Image.Image, transform, draws: Draws) -> np.ndarray:
    box = random_crop(*image.size, transform, draws)
    resized = image.crop(box).resize(sides(transform), FILTERS[transform.filter])
    return mirror(resized, draws.flip(transform.hflip))


def center(width: int, height: int, transform) -> tuple[tuple[int, int], tuple[int, int]]:
    """The size that a centre crop resizes to, and the corner (left, top) that it cuts there."""
    longer = int(transform.resize * max(width, height) / min(width, height))
    size = (transform.resize, longer) if width <= height else (longer, transform.resize)
    left, top = (round((side - shown) / 2.0) for side, shown in zip(size, sides(transform), strict=True))
    return size, (left, top)


def center_crop(image: Image.Image, transform) -> np.ndarray:
    size, (left, top) = center(*image.size, transform)
    resized, (width, height) = np.asarray(image.resize(size, FILTERS[transform.filter])), sides(transform)
    return resized[top : top + height, left : left + width]


def resize(image: Image.Image, transform, draws: Draws) -> np.ndarray:
    resized = image.resize(sides(transform), FILTERS[transform.filter])
    return mirror(resized, draws.flip(transform.hflip))


def top_left(image: Image.Image, transform, draws: Draws) -> np.ndarray:
    return mirror(image.crop((0, 0, *sides(transform))), draws.flip(transform.hflip))


def raw_tensor(image: Image.Image, transform, draws: Draws) -> np.ndarray:
    return mirror(image, draws.flip(transform.hflip))


def object_rectangle(width: int, height: int, box) -> tuple[int, int, int, int]:
    """The pixels (left, top, right, bottom) around a box of (xmin, ymin, xmax, ymax), to 1/1024 of a pixel."""
    xmin, ymin, xmax, ymax = (float(edge) for edge in box)

    def edge(fraction: float, length: int, outwards) -> int:
        if math.isnan(fraction) or fraction <= 0:
            return 0
        tolerance = 1 / 1024 if outwards is math.floor else -1 / 1024
        return length if fraction >= 1 else min(length, outwards(fraction * length + tolerance))

    left, top = min(edge(xmin, width, math.floor), width - 1), min(edge(ymin, height, math.floor), height - 1)
    right, bottom = edge(xmax, width, math.ceil), edge(ymax, height, math.ceil)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def object_crop(image: Image.Image, transform, draws: Draws, box=None) -> np.ndarray:
    rectangle = (0, 0, *image.size) if box is None else object_rectangle(*image.size, box)
    resized = image.crop(rectangle).resize(sides(transform), FILTERS[transform.filter])
    return mirror(resized, draws.flip(transform.hflip))


SHOW = {
    "RandomResizedCrop": random_resized_crop,
    "CenterCrop": lambda image, transform, _draws: center_crop(image, transform),
    "Resize": resize,
    "TopLeft": top_left,
    "RawTensor": raw_tensor,
    "ObjectCrops": object_crop,
}


def show(image: Image.Image, transform, draws: Draws, box=None) -> np.ndarray:
    """What any transform makes of an image, or of one object in it."""
    if box is not None:
        shown = object_crop(image, transform, draws, box)
    else:
        shown = SHOW[type(transform).__name__](image, transform, draws)
    jitter = getattr(transform, "color_jitter", None)
    if jitter is None:
        return shown
    picture = Image.fromarray(np.ascontiguousarray(shown))
    return np.asarray(colors.change(picture, colors.plan(colors.bounds(jitter), draws)))
