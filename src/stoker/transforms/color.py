"""Random changes of colour."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.transforms.operation import Operation
from stoker.transforms.settings import Factors, Shifts


@dataclass(frozen=True, repr=False)
class ColorJitter(Operation):
    """Brightness, contrast, saturation and hue, each changed by a random factor, in a random order.

    The distribution is that of torchvision's class of that name, and the pixels are those that it gives for PIL images
    with the same factors. It comes after crop, resize and flip.

    Attributes:
        brightness: A number ``b`` for factors from ``max(0, 1 - b)`` to ``1 + b``, or the two bounds. 0: no change.
        contrast: The same.
        saturation: The same.
        hue: A number ``h`` up to 0.5 for shifts from ``-h`` to ``h`` of the colour circle, or the two bounds.

    Raises:
        ConfigError: A value is out of range.
    """

    modes = ("RGB", "L")

    brightness: Factors = 0.0
    contrast: Factors = 0.0
    saturation: Factors = 0.0
    hue: Shifts = 0.0
