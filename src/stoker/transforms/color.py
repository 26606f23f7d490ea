"""Random changes of colour."""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoker import _native
from stoker.errors import ConfigError
from stoker.transforms.settings import short_text

Jitter = float | tuple[float, float]
"""How far a factor may be from its neutral value, or its smallest and largest value."""


@dataclass(frozen=True, slots=True)
class ColorJitter:
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

    brightness: Jitter = 0.0
    contrast: Jitter = 0.0
    saturation: Jitter = 0.0
    hue: Jitter = 0.0

    __repr__ = short_text

    def __post_init__(self) -> None:
        self.native()

    def native(self) -> _native.JitterSpec:
        """Return the core's form of it."""
        return _native.JitterSpec(
            brightness=_bounds("brightness", self.brightness),
            contrast=_bounds("contrast", self.contrast),
            saturation=_bounds("saturation", self.saturation),
            hue=_hue_bounds(self.hue),
        )


def check_jitter(jitter: ColorJitter | None) -> None:
    """Refuse what is neither a `ColorJitter` nor None.

    Raises:
        ConfigError: It is something else, such as a number.
    """
    if not isinstance(jitter, ColorJitter | None):
        raise ConfigError(f"color_jitter is {jitter!r}; it must be a stoker.ColorJitter, or None")


def jitter_spec(jitter: ColorJitter | None) -> _native.JitterSpec | None:
    """Return the core's form of colour changes; None for none."""
    return None if jitter is None else jitter.native()


def _bounds(name: str, jitter: Jitter) -> tuple[float, float] | None:
    try:
        low, high = jitter if isinstance(jitter, tuple) else (max(0.0, 1.0 - jitter), 1.0 + jitter)
        fits = 0.0 <= low <= high < math.inf and (isinstance(jitter, tuple) or jitter >= 0.0)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        message = f"{name} is {jitter!r}; it must be a number of at least 0"
        raise ConfigError(f"{message}, or the smallest and the largest factor: (0.6, 1.4)")
    return None if low == high == 1.0 else (float(low), float(high))


def _hue_bounds(jitter: Jitter) -> tuple[float, float] | None:
    try:
        low, high = jitter if isinstance(jitter, tuple) else (-jitter, jitter)
        fits = -0.5 <= low <= high <= 0.5
    except (TypeError, ValueError):
        fits = False
    if not fits:
        message = f"hue is {jitter!r}; it must be a number from 0 to 0.5"
        raise ConfigError(f"{message}, or the smallest and the largest shift from -0.5 to 0.5: (-0.1, 0.1)")
    return None if low == high == 0.0 else (float(low), float(high))
