"""What settings of operations may be."""

from __future__ import annotations

import functools
import math
from dataclasses import MISSING, fields
from fractions import Fraction
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from stoker.config import check_range
from stoker.declare import Range
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_SIDE = 1 << 16
"""The most pixels that a side of a result may have."""


def short_text(settings: DataclassInstance) -> str:
    """Return an object of settings as it would be typed: without those that have their default values."""
    parts = []
    for place, setting in enumerate(fields(settings)):
        value = getattr(settings, setting.name)
        if setting.default is MISSING or value != setting.default:
            parts.append(f"{value!r}" if place == 0 else f"{setting.name}={value!r}")
    return f"{type(settings).__name__}({', '.join(parts)})"


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


def check_filter(name: str, value: str) -> str:
    """Return the name of a filter."""
    known = get_args(get_args(Filter)[0])
    if value not in known:
        raise ConfigError(f"{name} is {value!r}; it must be one of {', '.join(known)}")
    return value


def _check_size(_: str, size: Size) -> Size:
    extent(size)
    return size


def _check_probability(name: str, value: float) -> float:
    if isinstance(value, bool) or not (isinstance(value, Real) and 0.0 <= value <= 1.0):
        raise ConfigError(f"{name} is {value!r}; it must be a number between 0 and 1, such as 0.5")
    return value


def _check_bounds(name: str, bounds: tuple[float, float], *, most: float, least: Fraction) -> tuple[float, float]:
    try:
        low, high = bounds
        fits = 0 < low <= high <= most  # also false for NaN
    except (TypeError, ValueError):
        fits = False
    if not fits:
        message = f"{name} is {bounds!r}; it must be two numbers, the smallest and the largest"
        raise ConfigError(f"{message}, above 0 and at most {most}")
    if low < least:
        raise ConfigError(f"{name} is {bounds}; it must not be below {least}")
    return bounds


def _check_factors(name: str, jitter: Jitter) -> Jitter:
    try:
        low, high = jitter if isinstance(jitter, tuple) else (0.0, 1.0 + jitter)
        fits = 0.0 <= low <= high < math.inf and (isinstance(jitter, tuple) or jitter >= 0.0)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        message = f"{name} is {jitter!r}; it must be a number of at least 0"
        raise ConfigError(f"{message}, or the smallest and the largest factor: (0.6, 1.4)")
    return jitter


def _check_shifts(name: str, jitter: Jitter) -> Jitter:
    try:
        low, high = jitter if isinstance(jitter, tuple) else (-jitter, jitter)
        fits = -0.5 <= low <= high <= 0.5
    except (TypeError, ValueError):
        fits = False
    if not fits:
        message = f"{name} is {jitter!r}; it must be a number from 0 to 0.5"
        raise ConfigError(f"{message}, or the smallest and the largest shift from -0.5 to 0.5: (-0.1, 0.1)")
    return jitter


Size = Annotated[int | tuple[int, int], _check_size]
"""A side, or height and width, in pixels."""

Side = Annotated[int, Range(1, MAX_SIDE)]
"""A side in pixels."""

Filter = Annotated[Literal["nearest", "box", "bilinear", "bicubic", "lanczos"], check_filter]
"""A resampling filter."""

Probability = Annotated[float, _check_probability]

Shares = Annotated[tuple[float, float], functools.partial(_check_bounds, most=1, least=Fraction(0))]
"""The smallest and the largest share of an area."""

Ratios = Annotated[tuple[float, float], functools.partial(_check_bounds, most=100, least=Fraction(1, 100))]
"""The smallest and the largest width over height."""

Jitter = float | tuple[float, float]
"""How far a factor may be from its neutral value, or its smallest and largest value."""

Factors = Annotated[Jitter, _check_factors]
Shifts = Annotated[Jitter, _check_shifts]
