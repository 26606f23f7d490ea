"""Made-up photographs: objects of one class, lit from one side, standing in a landscape.

A class decides shape, colours and pattern of its objects, never the landscape, so that a classifier has to look at
the objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.sample.scene import make_scene, texture
from stoker.types import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.sample.scene import Scene

    Plane = NDArray[np.floating]

# Body and pattern of the first classes, after their names: tench, brambling, bullfrog, spider, koala, ...
_COLOURS = (
    ((138, 142, 66), (226, 172, 78)),
    ((228, 122, 48), (66, 54, 52)),
    ((92, 156, 64), (214, 216, 120)),
    ((124, 84, 58), (236, 214, 176)),
    ((150, 152, 162), (242, 238, 232)),
    ((240, 132, 148), (252, 210, 206)),
    ((218, 164, 82), (250, 226, 170)),
    ((238, 212, 62), (96, 116, 66)),
    ((104, 118, 138), (178, 186, 196)),
    ((182, 72, 60), (240, 232, 216)),
)
_SHAPES = 5
_PATTERNS = 4
_MOST_OBJECTS = 3
_TRIES = 12


@dataclass(frozen=True, slots=True)
class Photo:
    """A made-up photograph: uint8 (height, width, 3), RGB, and where its objects are."""

    pixels: NDArray[np.uint8]
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an object stands, in pixels: the middle of its foot, and half its width and height at most."""

    x: float
    foot: float
    across: float
    down: float

    def touches(self, other: _Place) -> bool:
        """Whether two objects would hide much of each other."""
        across = abs(self.x - other.x) / (self.across + other.across)
        down = abs(self.foot - self.down - other.foot + other.down) / (self.down + other.down)
        return max(across, down) < 0.8


def make_photo(width: int, height: int, class_id: int, seed: tuple[int, ...]) -> Photo:
    """Return the photograph of some objects of a class.

    Args:
        width: Columns.
        height: Rows.
        class_id: Decides the objects' shape, colours and pattern.
        seed: Everything random is a function of it.
    """
    rng = np.random.default_rng(seed)
    scene = make_scene(width, height, rng)
    places = _places(width, height, scene.horizon, rng)
    boxes = tuple(_paint_object(scene, place, class_id, rng) for place in places)
    image = scene.image * _vignette(width, height)
    grain = rng.standard_normal((height, width), np.float32)[..., None] * rng.uniform(0.6, 2.6)
    colour_grain = rng.standard_normal((height, width, 3), np.float32) * rng.uniform(0.5, 2.6)
    return Photo(np.clip(image + grain + colour_grain, 0, 255).astype(np.uint8), boxes)


def _places(width: int, height: int, horizon: float, rng: np.random.Generator) -> list[_Place]:
    """Choose where up to three objects stand, apart from each other; the furthest comes first."""
    places: list[_Place] = []
    wanted = int(rng.integers(1, _MOST_OBJECTS + 1))
    for _ in range(_TRIES):
        foot = rng.uniform(horizon + 0.14, 0.97) * height
        nearness = (foot / height - horizon) / (1 - horizon)
        stretch = rng.uniform(0.85, 1.2)
        radius = min(width, height) * rng.uniform(0.85, 1.15) * (0.1 + 0.2 * nearness)
        across, down = radius * stretch, radius / stretch
        place = _Place(rng.uniform(across, width - across), foot, across, down)
        if not any(place.touches(other) for other in places):
            places.append(place)
        if len(places) == wanted:
            break
    return sorted(places, key=lambda place: place.foot)


def _vignette(width: int, height: int) -> Plane:
    """A lens gives less light to the corners."""
    y = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    return (1.02 - 0.09 * (x * x + y * y))[..., None]


def _class_colours(class_id: int) -> tuple[Plane, Plane]:
    """Body and pattern: chosen for the first classes, then hues a golden angle apart."""
    if class_id < len(_COLOURS):
        body, pattern = _COLOURS[class_id]
        return np.array(body, np.float32), np.array(pattern, np.float32)
    turn = class_id * 0.61803398875 % 1.0 - np.arange(3) / 3
    hue = np.cos(2 * np.pi * turn).astype(np.float32)
    return 134 + 86 * hue, 168 - 64 * hue


def _outline(class_id: int, angle: Plane) -> Plane:
    """Distance of a shape's edge from its centre, by angle from straight down: egg, flower, polygon, star or gear."""
    kind, turn = class_id % _SHAPES, class_id // _SHAPES
    corners = (2, 5, 3, 5, 8)[kind] + turn % 4
    sector = 2 * np.pi / corners
    within = np.abs(np.mod(angle, sector) - sector / 2)  # from the nearest corner
    edge: Plane
    if kind == 0:
        edge = 0.86 + 0.14 * np.cos(angle + turn) ** 2
    elif kind == 1:
        edge = 0.82 - 0.18 * np.cos(corners * angle)
    elif kind == 2:
        edge = np.cos(sector / 2) / np.cos(sector / 2 - within)
    elif kind == 3:
        edge = 0.58 + 0.42 * (1 - 2 * within / sector) ** 2
    else:
        edge = 0.9 + 0.1 * np.tanh(4 * np.cos(corners * angle))
    return edge


def _pattern(class_id: int, dx: Plane, dy: Plane, rng: np.random.Generator) -> Plane:
    """How much of the second colour shows, 0..1: stripes, spots, rings or patches, bent over a round body."""
    kind, count = class_id * 3 % _PATTERNS, 5 + class_id % 3 * 3
    x, y = np.arcsin(np.clip(dx, -1, 1)), np.arcsin(np.clip(dy, -1, 1))
    phase = rng.uniform(0, 2 * np.pi)
    if kind == 0:
        wave = np.sin(count * (0.8 * x + 0.6 * y) + phase)
    elif kind == 1:
        wave = np.sin(count * x + phase) * np.sin(count * y + phase) * 2 - 0.7
    elif kind == 2:
        wave = np.sin(2 * count * np.hypot(dx, dy) + phase)
    else:
        wave = np.sin(count * 0.5 * x + 1.3 * np.sin(2 * y + phase))
    shown: Plane = 0.5 + 0.5 * np.tanh(5 * wave)
    return shown


def _paint_object(scene: Scene, place: _Place, class_id: int, rng: np.random.Generator) -> Box:
    """Paint one object and its shadow; return where the object is."""
    turn = float(rng.normal(np.pi / 2, 0.06))
    around = np.linspace(-np.pi, np.pi, 128, dtype=np.float32)
    lowest = float((_outline(class_id, around - turn) * np.sin(around)).max())
    part, dx, dy, _ = _window(scene.image, place, lowest, (2.0, lowest - 0.55, lowest + 0.6))
    lean = -0.55 * scene.light[0]
    shadow = np.hypot((dx - lean * (lowest - dy + 0.15)) * 0.95, (dy - lowest + 0.04) * 4.2)
    part *= (1 - 0.62 * np.exp(-1.1 * shadow**2))[..., None]

    part, dx, dy, (left, top) = _window(scene.image, place, lowest, (1.05, -1.05, 1.05))
    reach = np.hypot(dx, dy) / _outline(class_id, np.arctan2(dy, dx) - turn)
    cover = 0.5 - 0.5 * np.tanh((reach - 1) * min(place.across, place.down) * 0.9)
    part += cover[..., None] * (_body(scene, (dx, dy, np.minimum(reach, 1)), class_id, rng) - part)
    rows = (np.flatnonzero((cover > 0.5).any(1)) + top).tolist()
    columns = (np.flatnonzero((cover > 0.5).any(0)) + left).tolist()
    height, width = scene.image.shape[:2]
    return Box(columns[0] / width, rows[0] / height, (columns[-1] + 1) / width, (rows[-1] + 1) / height)


def _window(
    image: Plane, place: _Place, lowest: float, reach: tuple[float, float, float]
) -> tuple[Plane, Plane, Plane, tuple[int, int]]:
    """Cut out the part of an image around an object.

    Args:
        image: (height, width, 3).
        place: Where the object stands.
        lowest: How far its foot is below its centre, in units of ``place.down``, which those of ``reach`` are too.
        reach: How far to look to both sides, and from where to where downwards.

    Returns:
        A view of the image; each pixel's offset from the centre, right and down; the view's left and top.
    """
    height, width = image.shape[:2]
    middle = place.foot - lowest * place.down
    side, above, below = reach
    left, right = max(0, int(place.x - side * place.across)), min(width, int(place.x + side * place.across) + 2)
    top, bottom = max(0, int(middle + above * place.down)), min(height, int(middle + below * place.down) + 2)
    x = (np.arange(left, right, dtype=np.float32) - place.x) / place.across
    y = (np.arange(top, bottom, dtype=np.float32) - middle) / place.down
    dx, dy = np.meshgrid(x, y)
    return image[top:bottom, left:right], dx, dy, (left, top)


def _body(scene: Scene, offset: tuple[Plane, Plane, Plane], class_id: int, rng: np.random.Generator) -> Plane:
    """Colour of a rounded surface: light from one side, sky from above, a highlight; ``offset`` is x, y and reach."""
    dx, dy, reach = offset
    height, width = dx.shape
    out = np.sqrt(1 - 0.97 * reach**2)
    steepness = np.sqrt(1 - out**2) / np.maximum(np.hypot(dx, dy), 1e-3)
    right, down = dx * steepness, dy * steepness
    facing = right * scene.light[0] + down * scene.light[1] + out * scene.light[2]
    highlight = np.clip(2 * facing * out - scene.light[2], 0, 1) ** 22
    lit = 0.38 + 0.16 * (0.5 - 0.5 * down) + 0.68 * np.clip(facing, 0, 1)
    body, second = _class_colours(class_id)
    shown = _pattern(class_id, dx, dy, rng)[..., None]
    grain = scene.detail * texture(width, height, 0.95, rng)
    tint = 6 * np.roll(grain, (height // 2, width // 3), (0, 1))[..., None] * np.array([1, 0, -1], np.float32)
    colour = (body + shown * (second - body) + tint) * (lit * (1 + 0.075 * grain))[..., None]
    whole: Plane = colour + 105 * highlight[..., None]
    return whole
