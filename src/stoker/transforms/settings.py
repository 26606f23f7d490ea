"""Settings that transforms have in common, and their limits."""

from __future__ import annotations

from dataclasses import MISSING, fields
from numbers import Real
from typing import TYPE_CHECKING, Literal, get_args

from stoker.config import check_range
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


Filter = Literal["nearest", "box", "bilinear", "bicubic", "lanczos"]
Size = int | tuple[int, int]

MAX_SIDE = 1 << 16
"""The most pixels that a side of a result may have."""


def short_text(transform: DataclassInstance) -> str:
    """Return a transform, or a part of one, as it would be typed: without settings that have their default values."""
    parts = []
    for place, setting in enumerate(fields(transform)):
        value = getattr(transform, setting.name)
        if setting.default is MISSING or value != setting.default:
            parts.append(f"{value!r}" if place == 0 else f"{setting.name}={value!r}")
    return f"{type(transform).__name__}({', '.join(parts)})"


def extent(size: Size) -> tuple[int, int]:
    """Return (height, width) of a size.

    Raises:
        ConfigError: A side is out of range or not a whole number, or there are not two.
    """
    try:
        height, width = (size, size) if isinstance(size, int | Real) else size
    except (TypeError, ValueError):
        raise ConfigError(f"size is {size!r}; it must be a number of pixels, or (height, width)") from None
    return check_range("size (height)", height, 1, MAX_SIDE), check_range("size (width)", width, 1, MAX_SIDE)


def check_filter(name: str) -> None:
    """Refuse an unknown filter.

    Raises:
        ConfigError: It is unknown.
    """
    if name not in get_args(Filter):
        raise ConfigError(f"filter is {name!r}; it must be one of {', '.join(get_args(Filter))}")


def check_bounds(name: str, bounds: tuple[float, float], low: float, high: float) -> None:
    """Refuse what is not a smallest and a largest number above ``low``, up to ``high``.

    Raises:
        ConfigError: It is not.
    """
    try:
        first, second = bounds
        fits = low < first <= second <= high  # also false for NaN
    except (TypeError, ValueError):
        fits = False
    if not fits:
        message = f"{name} is {bounds!r}; it must be two numbers, the smallest and the largest"
        raise ConfigError(f"{message}, above {low:g} and at most {high:g}")


def check_probability(name: str, value: float) -> None:
    """Refuse what is not a probability.

    Raises:
        ConfigError: It is below 0, above 1, or not a number.
    """
    if not (isinstance(value, Real) and 0.0 <= value <= 1.0):
        raise ConfigError(f"{name} is {value!r}; it must be between 0 and 1")
