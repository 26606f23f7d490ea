"""Settings as people type them, checked before any file is opened."""

from __future__ import annotations

import math
import operator
import os
import re

from stoker.cgroups import cpu_limit
from stoker.errors import ConfigError

_UNITS = {"": 1, "B": 1}
_UNITS |= {letter + "B": 1000 ** (power + 1) for power, letter in enumerate("KMGT")}
_UNITS |= {letter + "IB": 1024 ** (power + 1) for power, letter in enumerate("KMGT")}
MAX_SIZE = 2**62
"""The most bytes that a setting may speak of."""

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def parse_size(text: str) -> int:
    """Return the number of bytes in a size such as ``128MB``, ``1.5 GiB`` or ``4096``.

    ``KB MB GB TB`` are powers of 1000, ``KiB MiB GiB TiB`` of 1024; upper and lower case are the same.

    Raises:
        ConfigError: ``text`` is not a size, or less than one byte.
    """
    found = _SIZE.fullmatch(text)
    unit = _UNITS.get(found[2].upper()) if found else None
    if found is None or unit is None:
        raise ConfigError(f"not a size: {text!r}; write for example 128MB or 1GiB")
    size = float(found[1]) * unit
    if not 1 <= size <= MAX_SIZE:  # before it is made whole, which an endless one cannot be
        raise ConfigError(f"size {text!r} is out of range; it must be at least 1 byte and at most 4 EiB")
    return int(size)


def check_size(name: str, size: str | int, least: int) -> int:
    """Return a number of bytes that is given as such, or as `parse_size` takes it.

    Raises:
        ConfigError: It is no size, below ``least``, or above `MAX_SIZE`; the message names the setting.
    """
    return check_range(name, parse_size(size) if isinstance(size, str) else size, least, MAX_SIZE)


def format_size(size: float) -> str:
    """Return a number of bytes for a person, in powers of 1000: ``110.2 KB``."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 999.95:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def format_seconds(seconds: float) -> str:
    """Return a duration for a person: ``0.8 s``, ``12 s``, ``3 min 20 s``, ``2 h 05 min``."""
    whole = math.ceil(seconds)
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def check_range(name: str, value: int, low: int, high: int) -> int:
    """Return ``value`` as a plain int if it lies in ``low..high``; integers of NumPy are welcome.

    Raises:
        ConfigError: It does not, or is no whole number; the message names the setting, the value and the range.
    """
    try:
        whole = operator.index(value)
    except TypeError:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number from {low} to {high}") from None
    if not low <= whole <= high:
        raise ConfigError(f"{name} is {whole}; it must be between {low} and {high}")
    return whole


def check_seconds(name: str, value: float, low: float, high: float) -> None:
    """Refuse a duration that does not lie in ``low..high``, or is no number.

    Raises:
        ConfigError: The message names the setting, the value and the range, in seconds.
    """
    if not low <= value <= high:
        raise ConfigError(f"{name} is {value}; it must be between {low} and {high}")


def available_cpus() -> int:
    """Return how many CPUs this process may use, at least 1.

    Those of its affinity mask, and no more than its control groups allow it time of, rounded up; never the size of the
    machine.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = cpu_limit()
    return allowed if limit is None else max(1, min(allowed, math.ceil(limit)))
