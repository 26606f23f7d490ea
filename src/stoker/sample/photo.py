"""Pixels that behave like those of a photograph.

What makes a photograph expensive for a codec is its spectrum: amplitude falls with about the inverse of the spatial
frequency, colour is smoother than brightness, there are edges, and the sensor adds a little white noise. A scene here
is a sky, a ground and some shaded objects, each with such a texture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Plane = NDArray[np.float32]

_CORNERS = 6
_KINDS = 4


@dataclass(frozen=True, slots=True)
class Photo:
    """A made-up photograph: uint8 (height, width, 3), RGB, and where its objects are."""

    pixels: NDArray[np.uint8]
    boxes: tuple[Box, ...]


def make_photo(width: int, height: int, class_id: int, seed: tuple[int, ...]) -> Photo:
    """Return the photograph of some objects of a class.

    Args:
        width: Columns.
        height: Rows.
        class_id: Decides the objects' shape and colour, so that a classifier can learn the classes.
        seed: Everything random is a function of it.
    """
    rng = np.random.default_rng(seed)
    image = _background(width, height, rng)
    count = int(rng.integers(1, 4))
    boxes = tuple(_paint_object(image, class_id, rng) for _ in range(count))
    grain = rng.standard_normal((height, width), np.float32)[..., None] * rng.uniform(1.5, 4.0)
    colour_grain = rng.standard_normal((height, width, 3), np.float32) * rng.uniform(0.8, 2.0)
    return Photo(np.clip(image + grain + colour_grain, 0, 255).astype(np.uint8), boxes)


def _texture(width: int, height: int, slope: float, rng: np.random.Generator) -> Plane:
    """A field whose amplitude falls as ``frequency ** -slope``, with mean 0 and deviation 1."""
    spectrum = np.fft.rfft2(rng.standard_normal((height, width), np.float32))
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    frequency[0, 0] = np.inf
    plane = np.fft.irfft2(spectrum * frequency**-slope, (height, width)).astype(np.float32)
    return plane / max(float(plane.std()), 1e-6)


def _background(width: int, height: int, rng: np.random.Generator) -> Plane:
    """Sky over ground, lit from one side, brightness and colour textured apart."""
    y = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    hills = 0.06 * _texture(width, 1, 1.6, rng)
    ground = 1 / (1 + np.exp(-(y - rng.uniform(0.35, 0.75) - hills) * 60))
    sky_colour = np.array([110, 150, 205], np.float32) + rng.normal(0, 25, 3)
    ground_colour = np.array([105, 110, 70], np.float32) + rng.normal(0, 25, 3)
    light = (1 + 0.25 * x * rng.uniform(-1, 1) - 0.2 * (y - 0.5))[..., None]
    image = (sky_colour * (1 - ground[..., None]) + ground_colour * ground[..., None]) * light
    fine = _texture(width, height, rng.uniform(0.9, 1.15), rng)
    coarse = _texture(width, height, 1.8, rng)
    image += ((10 + 24 * ground) * fine + 14 * coarse)[..., None]
    for channel in (0, 2):
        image[..., channel] += 7 * _texture(width, height, 1.5, rng)
    single: Plane = image.astype(np.float32)
    return single


def _class_colour(class_id: int) -> NDArray[np.float64]:
    """A colour far from those of neighbouring classes: hues a golden angle apart."""
    hue = class_id * 0.61803398875 % 1.0
    return np.array([128 + 105 * np.cos(2 * np.pi * (hue - shift)) for shift in (0, 1 / 3, 2 / 3)])


def _outline(class_id: int, angle: Plane, rng: np.random.Generator) -> Plane:
    """Distance of a shape's edge from its centre, by angle: ellipse-like, flower, polygon or star."""
    kind, corners = class_id % _KINDS, 3 + class_id // _KINDS % _CORNERS
    turned = angle + rng.uniform(0, 2 * np.pi)
    sector = 2 * np.pi / corners
    within = np.abs(np.mod(turned, sector) - sector / 2)
    outlines: dict[int, Callable[[], Plane]] = {
        0: lambda: 1 + 0.05 * np.cos(2 * turned),
        1: lambda: 0.85 + 0.15 * np.cos(corners * turned),
        2: lambda: np.cos(sector / 2) / np.cos(np.minimum(within, sector / 2)),
        3: lambda: 0.55 + 0.45 * (1 - 2 * within / sector) ** 2,
    }
    return outlines[kind]()


def _paint_object(image: Plane, class_id: int, rng: np.random.Generator) -> Box:
    """Paint one object with a soft edge, shading, a texture of its own and a shadow; return where it is."""
    height, width = image.shape[:2]
    radius = rng.uniform(0.14, 0.3) * min(width, height)
    stretch = rng.uniform(0.75, 1.35)
    across, down = min(radius * stretch, width * 0.45), min(radius / stretch, height * 0.45)
    cx, cy = rng.uniform(across, width - across), rng.uniform(down, height - down)
    # Nothing of an object or its shadow is further away than one and a half times its reach.
    left, right = max(0, int(cx - 1.5 * across)), min(width, int(cx + 1.5 * across) + 2)
    top, bottom = max(0, int(cy - 1.5 * down)), min(height, int(cy + 1.5 * down) + 2)
    y, x = np.mgrid[top:bottom, left:right].astype(np.float32)
    cover = _paint(image[top:bottom, left:right], (x - cx) / across, (y - cy) / down, class_id, rng)
    rows, columns = np.flatnonzero((cover > 0.5).any(1)) + top, np.flatnonzero((cover > 0.5).any(0)) + left
    if not len(rows):  # thinner than a pixel: it covers no more than its centre
        rows, columns = np.array([int(cy)]), np.array([int(cx)])
    return Box(columns[0] / width, rows[0] / height, (columns[-1] + 1) / width, (rows[-1] + 1) / height)


def _paint(part: Plane, dx: Plane, dy: Plane, class_id: int, rng: np.random.Generator) -> Plane:
    """Paint on part of an image, given each pixel's offset in units of the reach; return how much is covered."""
    height, width = dx.shape
    reach = np.hypot(dx, dy) / _outline(class_id, np.arctan2(dy, dx), rng)
    softness = 1.2 * max(float(np.ptp(dx)) / width, float(np.ptp(dy)) / height, 1e-3)
    cover: Plane = 1 / (1 + np.exp(np.clip((reach - 1) / softness, -30, 30)))
    shadow = 1 / (1 + np.exp(np.clip((np.hypot(dx - 0.15, (dy - 0.85) * 2.5) - 1) * 8, -30, 30)))
    shading = 1.1 - 0.45 * np.clip(reach, 0, 1.2) ** 2 - 0.3 * (0.6 * dx + 0.8 * dy)
    stripes = 0.12 * np.sin((dx * np.cos(class_id) + dy * np.sin(class_id)) * (9 + class_id % 5 * 4))
    body = _class_colour(class_id) * (shading + stripes)[..., None]
    body += (16 * _texture(width, height, 1.0, rng))[..., None]
    part *= (1 - 0.45 * shadow * (1 - cover))[..., None]
    part += cover[..., None] * (body - part)
    return cover
