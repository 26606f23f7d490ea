"""Boxes in plain Python: where an annotated object is in what a transform shows."""

from __future__ import annotations

import math
from fractions import Fraction

from reference import transform as transforms


def geometry(width: int, height: int, transform, draws: transforms.Draws) -> tuple:
    """Crop box in the image, size it is resized to, corner and size of the window of that, whether flipped."""
    size, kind = transforms.sides(transform), type(transform).__name__
    crop, resized, corner = (0, 0, width, height), size, (0, 0)
    if kind == "RandomResizedCrop":
        crop = transforms.random_crop(width, height, transform, draws)
    elif kind == "CenterCrop":
        resized, corner = transforms.center(width, height, transform)
    elif kind == "TopLeft":
        crop = (0, 0, *size)
    return crop, resized, corner, size, draws.flip(getattr(transform, "hflip", 0.0))


def shown(low: float, high: float, length: int, cut: tuple[int, int], side: int, window: tuple[int, int]) -> tuple:
    """Ends of an edge in the window, which share of it is there, and how many pixels of the image or the window."""
    if not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        return 0, 0, 0, 0
    scale = Fraction(side, cut[1] - cut[0])
    ends = [(Fraction(edge) * length - cut[0]) * scale - window[0] for edge in (low, high)]
    inside = [min(max(end, Fraction(0)), Fraction(window[1])) for end in ends]
    pixels = inside[1] - inside[0]
    return *inside, pixels / (ends[1] - ends[0]), min(pixels, pixels / scale)


def transform(boxes: list, width: int, height: int, geometry: tuple, min_visible: float, slack: float) -> list[tuple]:
    """(xmin, ymin, xmax, ymax, number of the box) of each box that is still there; ``slack`` is added to the least."""
    crop, resized, corner, size, flip = geometry
    visible = []
    for number, (xmin, ymin, xmax, ymax) in enumerate(boxes):
        left, right, wide, columns = shown(xmin, xmax, width, (crop[0], crop[2]), resized[0], (corner[0], size[0]))
        top, bottom, high, rows = shown(ymin, ymax, height, (crop[1], crop[3]), resized[1], (corner[1], size[1]))
        if min(columns, rows) * 1024 <= 1 + slack or wide * high < min_visible + slack:
            continue
        if flip:
            left, right = size[0] - right, size[0] - left
        visible.append((float(left), float(top), float(right), float(bottom), number))
    return visible
