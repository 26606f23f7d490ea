"""Changes of colour with Pillow's own classes, in the order and with the factors that the draws name.

On ARM64 the compiler of Pillow fuses the multiplication and the addition of ``Image.blend``, so some values differ by
one from those of x86-64 there. `change` blends with the same formula in NumPy, where nothing is fused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageEnhance

if TYPE_CHECKING:
    from collections.abc import Callable

    Blend = Callable[[Image.Image, Image.Image, float], Image.Image]

COLOR = 3
OPERATIONS = ("brightness", "contrast", "saturation", "hue")
ENHANCERS = {
    "brightness": ImageEnhance.Brightness,
    "contrast": ImageEnhance.Contrast,
    "saturation": ImageEnhance.Color,
}


def bounds(jitter) -> dict[str, tuple[float, float]]:
    """Of a ColorJitter: the smallest and the largest number of each operation that changes anything."""
    settings = {}
    for name in OPERATIONS:
        value, neutral = getattr(jitter, name), 0.0 if name == "hue" else 1.0
        if not isinstance(value, tuple):
            value = (neutral - value if name == "hue" else max(0.0, neutral - value), neutral + value)
        if value != (neutral, neutral):
            settings[name] = value
    return settings


def plan(bounds: dict[str, tuple[float, float]], draws) -> list[tuple[str, float]]:
    """Operations with their factors, in their order; ``bounds`` holds those that are done."""
    shares, swaps = draws.words(COLOR, 0), draws.words(COLOR, 1)
    steps = [
        (name, bounds[name][0] + (bounds[name][1] - bounds[name][0]) * (shares[number] / 2**32))
        for number, name in enumerate(OPERATIONS)
        if name in bounds
    ]
    for last in range(len(steps), 1, -1):
        other = swaps[last - 1] * last >> 32
        steps[last - 1], steps[other] = steps[other], steps[last - 1]
    return steps


def blend(first: Image.Image, second: Image.Image, factor: float) -> Image.Image:
    """``Image.blend`` as Pillow writes it, each step rounded to 32 bits."""
    start = np.asarray(first, np.float32)
    mixed = start + np.float32(factor) * (np.asarray(second, np.float32) - start)
    return Image.fromarray(mixed.clip(0, 255).astype(np.uint8))


def change(image: Image.Image, steps: list[tuple[str, float]], blend: Blend = blend) -> Image.Image:
    for name, factor in steps:
        if name == "hue":
            hue, saturation, value = image.convert("HSV").split()
            turned = np.array(hue) + np.int32(factor * 255).astype(np.uint8)
            image = Image.merge("HSV", (Image.fromarray(turned), saturation, value)).convert("RGB")
        else:
            image = blend(ENHANCERS[name](image).degenerate, image, factor)
    return image
