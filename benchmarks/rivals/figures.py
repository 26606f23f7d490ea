"""Medians, spreads and paired ratios of what was measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.rivals.contest import Row

Per = Literal["seconds", "cpu_seconds"]
QUIET = 0.2
"""Cores that other processes may keep busy during a turn that counts as undisturbed."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A median, and the lowest and highest."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Summarise some values."""
    return Spread(statistics.median(values), min(values), max(values))


def rates(row: Row, per: Per = "seconds") -> list[float]:
    """Images per second, or per second of CPU time, of each round."""
    return [turn["images"] / max(turn[per], 1e-9) for turn in row.turns]


def ratio(row: Row, other: Row, per: Per = "seconds") -> Spread | None:
    """How many times as fast one is as another, from the rounds' own ratios; None if one of them has no figures."""
    if not row.turns or not other.turns:
        return None
    pairs = zip(rates(row, per), rates(other, per), strict=True)
    return spread([mine / theirs for mine, theirs in pairs])


def steadied(row: Row, rows: Sequence[Row]) -> float:
    """Median rate with the machine's drift divided out, as the calibrations beside each turn tell it."""
    usual = statistics.median(turn["calibration"] for other in rows for turn in other.turns)
    pairs = zip(rates(row), row.turns, strict=True)
    return statistics.median(rate * usual / turn["calibration"] for rate, turn in pairs)


def by_speed(rows: Sequence[Row], per: Per = "seconds") -> list[Row]:
    """The fastest first; those without figures last, in their order."""
    return sorted(rows, key=lambda row: -statistics.median(rates(row, per)) if row.turns else 0.0)


def find(rows: Sequence[Row], key: str | None) -> Row | None:
    """The row of an entry, if it has figures."""
    return next((row for row in rows if row.entry.key == key and row.turns), None)


def noise(rows: Sequence[Row]) -> tuple[Spread, int, int] | None:
    """Calibrations, turns that others disturbed, and all turns."""
    turns = [turn for row in rows for turn in row.turns]
    if not turns:
        return None
    disturbed = sum(turn["other_cores"] > QUIET for turn in turns)
    return spread([turn["calibration"] for turn in turns]), disturbed, len(turns)
