"""What measures say of each image and of all; in parts, so that those of millions are not copied."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.auditing.measures import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_ROWS_AT_ONCE = 2**16


def brightness(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of each image over all its channels, 0 to 255: float32 (N,); NaN where it is unreadable."""
    values = np.full(len(rows), np.nan, np.float32)
    for _, places, means, _ in _parts(rows):
        values[places] = means.mean(1)
    return values


def deviations(rows: NDArray[Any]) -> NDArray[np.float32]:
    """Return the standard deviation of each image, each channel around its own mean; as `brightness`."""
    values = np.full(len(rows), np.nan, np.float32)
    for _, places, means, squares in _parts(rows):
        values[places] = np.sqrt(np.maximum(0.0, squares - means**2).mean(1))
    return values


def of_channels(rows: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of red, green and blue, 0 to 255, to which every image adds the same."""
    count, mean, square = 0, np.zeros(3), np.zeros(3)
    for some, _, means, squares in _parts(rows):
        count, mean, square = count + len(some), mean + means.sum(0), square + squares.sum(0)
    mean, square = mean / max(1, count), square / max(1, count)
    return mean, np.sqrt(np.maximum(0.0, square - mean**2))


def counts_of_column(rows: NDArray[Any], column: str) -> Counter[int]:
    """Return how often each value is in a column of numbers below 256, but for images that are unreadable."""
    counts: Counter[int] = Counter()
    for some, _ in _readable(rows):
        counts.update(dict(enumerate(np.bincount(some[column]).tolist())))
    return +counts


def _parts(
    rows: NDArray[Any],
) -> Iterator[tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield rows of readable images, their places, and the means of their channels and of the squares of these."""
    for some, places in _readable(rows):
        areas = (some["width"].astype(np.float64) * some["height"])[:, None]
        yield some, places, some["sums"] / areas, some["squares"] / areas


def _readable(rows: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[np.int64]]]:
    """Yield rows of readable images, and their places."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[first : first + _ROWS_AT_ONCE]
        places = np.flatnonzero(part["format"] != UNREADABLE)
        yield part[places], first + places
