"""Backgrounds of made-up photographs: a sky, ridges that fade into the distance, and ground seen in perspective.

What makes a photograph expensive for a codec is its spectrum: amplitude falls with about the inverse of the spatial
frequency, colour varies less than brightness but at the same places, and there are edges. Every surface here has such
a texture; how strong it is differs from picture to picture, as it does between a portrait and a meadow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Plane = NDArray[np.floating]

# What light and season make of a landscape: zenith, sky at the horizon, far ridge, near ridge, ground.
_MOODS = (
    ((64, 118, 190), (192, 214, 232), (128, 150, 172), (66, 92, 62), (108, 128, 64)),  # summer
    ((58, 62, 112), (244, 184, 126), (122, 100, 122), (58, 48, 58), (98, 82, 64)),  # dusk
    ((158, 166, 174), (212, 214, 214), (156, 162, 160), (94, 102, 88), (124, 120, 92)),  # overcast
    ((86, 146, 206), (228, 218, 196), (196, 156, 124), (158, 108, 76), (206, 168, 118)),  # desert
    ((112, 152, 204), (218, 226, 238), (160, 176, 198), (84, 98, 112), (208, 214, 224)),  # snow
    ((112, 146, 184), (224, 220, 208), (170, 142, 116), (132, 78, 40), (158, 110, 58)),  # autumn
    ((78, 142, 208), (202, 224, 234), (96, 142, 168), (44, 92, 112), (214, 196, 154)),  # shore
    ((150, 190, 204), (250, 226, 206), (176, 160, 176), (92, 100, 118), (146, 148, 96)),  # morning
)
_ROUGHNESS = (1.9, 1.5, 1.15)  # of the ridges' outlines, from far hills to the tops of trees


@dataclass(frozen=True, slots=True)
class Scene:
    """A background to put objects in.

    Attributes:
        image: float32 (height, width, 3), RGB, about 0..255.
        horizon: Where the ground begins, as a fraction of the height.
        light: Unit vector towards the light: right, down, out of the picture.
        detail: How strong textures are, about 1.
    """

    image: NDArray[np.float32]
    horizon: float
    light: tuple[float, float, float]
    detail: float


def make_scene(width: int, height: int, rng: np.random.Generator) -> Scene:
    """Return a landscape of ``width`` columns and ``height`` rows; everything random comes from ``rng``."""
    mood = np.array(_MOODS[rng.integers(len(_MOODS))], np.float32) + rng.normal(0, 7, (5, 3)).astype(np.float32)
    detail = float(rng.lognormal(-0.1, 0.42))
    horizon = float(rng.uniform(0.34, 0.56))
    side = rng.uniform(-0.75, 0.75)
    towards = (side, -0.62, 0.55)
    length = math.hypot(*towards)
    image = np.empty((height, width, 3), np.float32)
    sky = image[: int(horizon * height) + 1]
    _add_sky(sky, mood[0], mood[1], rng)
    _add_sun(sky, 0.5 + 0.6 * side, rng.random())
    _add_ridges(image, horizon, mood, detail, rng)
    _add_ground(image, horizon, mood[4], detail, rng)
    return Scene(image, horizon, (towards[0] / length, towards[1] / length, towards[2] / length), detail)


def texture(width: int, height: int, slope: float, rng: np.random.Generator, stretch: float = 1.0) -> Plane:
    """Return a field, (height, width), whose amplitude falls as ``frequency ** -slope``, with mean 0 and deviation 1.

    ``stretch`` above 1 draws it out downwards, as grass is. Left and right edge fit together, and top and bottom.
    """
    spectrum = np.fft.rfft2(rng.standard_normal((height, width), np.float32))
    down, across = np.fft.fftfreq(height) * stretch, np.fft.rfftfreq(width)
    frequency = np.hypot(down[:, None].astype(np.float32), across[None, :].astype(np.float32))
    frequency[0, 0] = np.inf
    plane = np.fft.irfft2(spectrum * frequency**-slope, (height, width)).astype(np.float32)
    return plane / max(float(plane.std()), 1e-6)


def _add_sky(sky: Plane, zenith: Plane, low: Plane, rng: np.random.Generator) -> None:
    """A gradient with clouds, which are longer than high."""
    height, width = sky.shape[:2]
    mix = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    clouds = texture(width, height, 1.65, rng, stretch=0.45)
    cover = _step((clouds - rng.uniform(-0.4, 1.6)) * 0.9)[..., None]
    lit = (235 + 14 * clouds)[..., None] * np.array([1.0, 0.99, 0.98], np.float32)
    sky[...] = zenith + mix * (low - zenith)
    sky += 0.8 * cover * (lit - sky)


def _add_sun(sky: Plane, across: float, down: float) -> None:
    """A warm glow, centred at these fractions of the sky's width and height."""
    height, width = sky.shape[:2]
    x = np.arange(width, dtype=np.float32) / width - across
    y = (np.arange(height, dtype=np.float32) - down * height) / width
    glow = np.exp(-np.hypot(x[None, :], y[:, None]) / 0.22)
    sky += glow[..., None] * np.array([62, 46, 22], np.float32)


def _add_ridges(image: Plane, horizon: float, mood: Plane, detail: float, rng: np.random.Generator) -> None:
    """Rows of hills, each nearer, darker and rougher than the one behind it."""
    height, width = image.shape[:2]
    bottom = min(int(horizon * height) + 1, height)
    for i, roughness in enumerate(_ROUGHNESS):
        nearness = i / (len(_ROUGHNESS) - 1)
        rise = (0.17 - 0.11 * nearness) * (0.7 + 0.6 * rng.random())
        line = (horizon - rise + 0.045 * (1 - 0.35 * nearness) * texture(width, 1, roughness, rng)[0]) * height
        top = min(max(0, int(line.min()) - 3), bottom - 1)
        rows = np.arange(top, bottom, dtype=np.float32)[:, None]
        cover = _step((rows - line[None, :]) * 0.9)[..., None]
        colour = mood[2] * (1 - nearness) + mood[3] * nearness
        surface = _surface((width, bottom - top), colour, detail * (3 + 13 * nearness), 1.2 - 0.15 * nearness, rng)
        image[top:bottom] += cover * (surface - image[top:bottom])


def _add_ground(image: Plane, horizon: float, colour: Plane, detail: float, rng: np.random.Generator) -> None:
    """The ground: its texture is the finer the further away it is, and fades there."""
    height, width = image.shape[:2]
    first = min(int(horizon * height), height - 1)
    deep = height - first
    nearness = np.linspace(0.06, 1, deep, dtype=np.float32)
    distance = 1 / nearness
    flat = _surface((width, deep), np.zeros(3, np.float32), detail * 19, rng.uniform(0.9, 1.1), rng)
    rows = np.cumsum(distance**1.7).astype(np.intp) % deep
    columns = ((np.arange(width) - width / 2) * distance[:, None]).astype(np.intp) % width
    relief = flat[rows[:, None], columns] * (0.3 + 0.7 * nearness[:, None, None])
    patches = 12 * texture(width, deep, 1.9, rng, stretch=0.4)[..., None]
    image[first:] = colour * (1.06 - 0.16 * nearness[:, None, None]) + patches + relief


def _surface(size: tuple[int, int], colour: Plane, strength: float, slope: float, rng: np.random.Generator) -> Plane:
    """A textured colour of ``size`` (width, height): brightness varies most, warm against cold less."""
    width, height = size
    brightness = strength * texture(width, height, slope, rng)
    # The same field moved far is another one to the eye, and a second transform is what would take time.
    warmth = 0.4 * np.roll(brightness, (height // 2, width // 3), (0, 1))
    return colour + np.stack((brightness + warmth, brightness, 0.85 * brightness - warmth), axis=-1)


def _step(x: Plane) -> Plane:
    """A smooth step from 0 (far below zero) to 1 (far above)."""
    step: Plane = 0.5 + 0.5 * np.tanh(x)
    return step
