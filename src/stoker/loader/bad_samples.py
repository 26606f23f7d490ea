"""What becomes of samples that cannot be loaded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker import _native
from stoker.errors import BadSampleWarning, ExampleError, ImageError, ShardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


OnBad = Literal["raise", "substitute"]
"""``raise``: the batch of a bad sample raises its error. ``substitute``: another sample takes its place."""

OF_A_SAMPLE = (ShardError, ExampleError, ImageError, OSError)
"""Errors that are about one sample; any other ends the epoch whatever was asked for."""

_ATTEMPTS = 16
_SUBSTITUTE = 5 << 16  # RandomOp::kSubstitute of the core
_KEPT = 1000  # bad samples that a report remembers one by one


@dataclass(frozen=True, slots=True)
class BadSample:
    """A sample that could not be loaded, and what stands in its place.

    Attributes:
        index: Its number.
        substitute: Number of the sample in its place.
        epoch: When it happened.
        error: What was wrong, and where.
    """

    index: int
    substitute: int
    epoch: int
    error: Exception


class BadSampleReport:
    """The bad samples of one epoch on this rank.

    Attributes:
        epoch: Which epoch.
        count: How many were replaced.
        samples: The first 1000 of them.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.count = 0
        self.samples: list[BadSample] = []

    def add(self, sample: BadSample) -> None:
        """Count one."""
        self.count += 1
        if len(self.samples) < _KEPT:
            self.samples.append(sample)

    def warn(self) -> None:
        """Say how many there were, if any."""
        if self.count:
            first = self.samples[0]
            message = f"epoch {self.epoch}: {self.count} bad samples were replaced; the first is {first.index}"
            warnings.warn(f"{message}: {first.error}", BadSampleWarning, stacklevel=3)


def substitutes(seed: int, epoch: int, stream: int, size: int) -> Iterator[NDArray[np.uint64]]:
    """Yield the slots to try in place of a bad sample: a pure function of (seed, epoch, sample), of any topology.

    Each is ``floor(u * size / 2**64)`` of a 64-bit number ``u``, the first two words of one Philox block.
    """
    for attempt in range(_ATTEMPTS):
        counter = (stream % 2**32, stream >> 32, epoch % 2**32, _SUBSTITUTE | attempt)
        words = _native.philox(counter, (seed % 2**32, seed >> 32))
        yield np.array([((words[0] << 32 | words[1]) * size) >> 64], np.uint64)
