"""Puts millions of rows into the order of their paths, in memory that does not grow with them."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.sources.columns import HELD_ROWS, chunks, new_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from stoker.sources.columns import Blobs

_WORD = 8
_SAMPLED_ROWS = 2**12
_MAX_CUTS = 2**7


def divided(
    rows: NDArray[np.int64], number_of: Callable[[NDArray[np.int64]], NDArray[np.integer[Any]]], count: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Return rows in the order of a number that each has, stably; and where those of each number start, and all end.

    Args:
        rows: The rows.
        number_of: Returns the numbers of some rows: 0 to ``count - 1``, or negative ones of rows to omit.
        count: See above.
    """
    counts = np.zeros(count, np.int64)
    for first, end in chunks(len(rows)):
        numbers = number_of(rows[first:end])
        counts += np.bincount(numbers[numbers >= 0], minlength=count)
    bounds = np.concatenate(([0], np.cumsum(counts)))
    ordered, starts = new_column(int(bounds[-1]), np.int64), bounds[:-1].copy()
    for first, end in chunks(len(rows)):
        numbers = number_of(rows[first:end])
        order = np.argsort(numbers, kind="stable")
        order = order[np.count_nonzero(numbers < 0) :]
        numbers = numbers[order]
        counts = np.bincount(numbers, minlength=count)
        places = starts[numbers] + np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        ordered[places] = rows[first:end][order]
        starts += counts
    return ordered, bounds.tolist()


class RowsByPath:
    """Sorts rows by the bytes of their paths, eight at a time as one number: no path becomes a Python object.

    No path has a NUL byte.

    Args:
        paths: The paths.
        prefixes: Returns how many bytes of the paths of some rows do not count.
    """

    def __init__(
        self,
        paths: Blobs,
        prefixes: Callable[[NDArray[np.int64]], NDArray[np.int64]],
    ) -> None:
        names = paths.data if len(paths.data) >= _WORD else bytes(paths.data).ljust(_WORD, b"\0")
        self._last = len(names) - _WORD
        self._words: NDArray[Any] = np.ndarray((self._last + 1,), ">u8", names, strides=(1,))
        self._starts = paths.starts
        self._prefixes = prefixes

    def sorted(self, rows: NDArray[np.int64], done: int = 0) -> Iterator[NDArray[np.int64]]:
        """Yield rows in the order of their paths, as many at a time as are held in memory; equal paths come together.

        Args:
            rows: The rows; those of equal paths stay in their order.
            done: Number of bytes in which all paths agree.
        """
        if len(rows) <= HELD_ROWS:
            yield rows[self._order(rows, done)]
            return
        sample = np.sort(self._words_of(rows[:: -(-len(rows) // _SAMPLED_ROWS)], done))
        cuts = np.unique(sample[:: -(-len(sample) // _MAX_CUTS)])

        def part_of(some: NDArray[np.int64]) -> NDArray[np.int64]:  # odd: the word is that of a cut
            words = self._words_of(some, done)
            return np.searchsorted(cuts, words, "left") + np.searchsorted(cuts, words, "right")

        rows, bounds = divided(rows, part_of, 2 * len(cuts) + 1)
        for part, (first, end) in enumerate(pairwise(bounds)):
            if part % 2 and cuts[part // 2] == 0:  # these paths have ended
                yield rows[first:end]
            else:
                yield from self.sorted(rows[first:end], done + _WORD * (part % 2))

    def _order(self, rows: NDArray[np.int64], done: int) -> NDArray[np.int64]:
        """Return the order of rows: sorted by the last word first, so that those before keep what it decides."""
        starts, lengths = self._spans(rows, done)
        words = -(-lengths // _WORD)
        order = np.empty(0, np.int64)
        for word in range(int(words.max(initial=0)) - 1, -1, -1):
            order = np.concatenate((np.flatnonzero(words == word + 1), order))
            read = self._read(starts[order] + _WORD * word, lengths[order] - _WORD * word)
            order = order[np.argsort(read, kind="stable")]
        return np.concatenate((np.flatnonzero(words <= 0), order))

    def _words_of(self, rows: NDArray[np.int64], done: int) -> NDArray[np.uint64]:
        return self._read(*self._spans(rows, done))

    def _spans(self, rows: NDArray[np.int64], done: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the rest of each path starts after ``done`` bytes, and its length: at most 0 if it has ended."""
        starts = self._starts[rows] + self._prefixes(rows) + done
        return starts, self._starts[rows + 1] - starts

    def _read(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return the words at some places, the first byte as the highest, with zeros behind the ends of paths."""
        places = np.minimum(starts, self._last)
        words = self._words[places].astype(np.uint64) << (8 * (starts - places)).astype(np.uint64)
        beyond = (8 * (_WORD - np.clip(lengths, 0, _WORD))).astype(np.uint64)
        return (words >> beyond) << beyond
