"""Orders for rivals that take a list of indices: epochs after one another, so that none of them ever ends."""

from __future__ import annotations

from typing import Any

import numpy as np

_SAMPLES = 2_000_000
"""In one list; a longer one than any rival reads before the measurement ends."""


def epochs(size: int) -> Any:
    """Permutations of ``0..size-1``, one after another, as int64."""
    chance = np.random.default_rng(17)
    return np.concatenate([chance.permutation(size) for _ in range(-(-_SAMPLES // size))])
