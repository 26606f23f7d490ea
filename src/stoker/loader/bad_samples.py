"""What becomes of samples that cannot be loaded."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from stoker import _native
from stoker.config import check_range
from stoker.errors import BadSampleWarning, ConfigError, ExampleError, ImageError, ShardError, TooManyBadSamplesError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


OnBad = Literal["raise", "substitute"]
"""``raise``: the batch of a bad sample raises its error. ``substitute``: another sample takes its place."""

OF_A_SAMPLE = (ShardError, ExampleError, ImageError, OSError)
"""Errors that are about one sample; any other ends the epoch whatever was asked for."""

ATTEMPTS = 16
_SUBSTITUTE = 5 << 16  # RandomOp::kSubstitute of the core
_KEPT = 1000  # bad samples that a report remembers one by one


@dataclass(frozen=True, slots=True)
class BadSample:
    """A sample that could not be loaded, and what stands in its place.

    Attributes:
        key: Its number.
        substitute: Number of the sample in its place.
        epoch: When it happened.
        error: What was wrong, and where.
    """

    key: int
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
            message = f"epoch {self.epoch}: {self.count} bad samples were replaced; the first is {first.key}"
            warnings.warn(f"{message}: {first.error}", BadSampleWarning, stacklevel=3)


@dataclass(frozen=True, slots=True)
class BadSamplePolicy:
    """What to do about bad samples.

    Attributes:
        on_bad: See `OnBad`.
        max_bad: The most that are replaced in an epoch on one rank; one more is an error.

    Raises:
        ConfigError: A value is unknown or out of range.
    """

    on_bad: OnBad = "raise"
    max_bad: int = 100

    def __post_init__(self) -> None:
        if self.on_bad not in get_args(OnBad):
            raise ConfigError(f"on_bad is {self.on_bad!r}; it must be one of {', '.join(get_args(OnBad))}")
        check_range("max_bad", self.max_bad, 0, 2**62)

    def accept(self, error: Exception, report: BadSampleReport) -> None:
        """Raise the error of a sample unless it may be replaced.

        Raises:
            TooManyBadSamplesError: So many were replaced in this epoch that something else must be wrong.
        """
        if self.on_bad == "raise" or not isinstance(error, OF_A_SAMPLE):
            raise error
        if report.count >= self.max_bad:
            message = f"more than max_bad={self.max_bad} samples were bad in epoch {report.epoch}; the last: {error}"
            hint = "run 'stoker verify' on the dataset, or raise max_bad"
            raise TooManyBadSamplesError(f"{message}; {hint}") from error


def substitutes(seed: int, epoch: int, stream: int, size: int) -> Iterator[NDArray[np.uint64]]:
    """Yield the slots to try in place of a bad sample: a pure function of (seed, epoch, sample), of any topology.

    Each is ``floor(u * size / 2**64)`` of a 64-bit number ``u``, the first two words of one Philox block.
    """
    for attempt in range(ATTEMPTS):
        counter = (stream % 2**32, stream >> 32, epoch % 2**32, _SUBSTITUTE | attempt)
        words = _native.philox(counter, (seed % 2**32, seed >> 32))
        yield np.array([((words[0] << 32 | words[1]) * size) >> 64], np.uint64)
