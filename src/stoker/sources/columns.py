"""Columns of numbers and bytes, one value for each item: in memory while they are short, in scratch files otherwise.

The files have no names and lie in the folder for temporary files (``$TMPDIR``). They are mapped into memory, so the
system keeps what is in use and takes the rest away when it needs the space; nothing is left of them when the process
ends. `RowsByPath` sorts millions of rows in memory that does not grow with them.
"""

from __future__ import annotations

import io
import mmap
from array import array
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stoker.storage import append_to_scratch, reserve_scratch, scratch_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

HELD_ROWS = 2**20
"""Rows of columns that are held in memory."""

HELD_NAME_BYTES = 2**26
"""Bytes of names that are."""

CHUNK_ROWS = 2**18
"""Rows of long columns that are dealt with at a time."""

_WORD = 8
_SAMPLED_ROWS, _MAX_CUTS = 2**12, 2**7
_WHY = "the listing of a source with millions of images lies there"
_TAKEN_ROWS = 2**14
_TYPES = {"i": np.int32, "q": np.int64}


class GrowingColumn:
    """A column of int32 (``i``) or int64 (``q``) that grows at its end."""

    def __init__(self, code: str, *first: int) -> None:
        self._tail = array(code, first)
        self._file: IO[bytes] | None = None
        self._rows = 0

    def __len__(self) -> int:
        return self._rows + len(self._tail)

    def append(self, value: int) -> None:
        """Append one value."""
        self._tail.append(value)
        if len(self._tail) > HELD_ROWS:
            self._spill()

    def extend(self, values: NDArray[Any]) -> None:
        """Append values of the same type."""
        self._tail.frombytes(values.tobytes())
        if len(self._tail) > HELD_ROWS:
            self._spill()

    def _spill(self) -> None:
        if self._file is None:
            self._file = scratch_file(_WHY)
        append_to_scratch(self._file, self._tail.tobytes(), _WHY)
        self._rows += len(self._tail)
        del self._tail[:]

    def finish(self) -> NDArray[Any]:
        """Return all values, which can be changed in place; nothing can be appended afterwards."""
        kind = _TYPES[self._tail.typecode]
        if self._file is None:
            return np.frombuffer(self._tail, kind) if len(self._tail) else np.empty(0, kind)
        self._spill()
        with self._file as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0), kind)


@dataclass(frozen=True, slots=True, eq=False)
class Blobs:
    """A column of bytes. Read-only; safe to share between threads."""

    data: bytes | mmap.mmap  # the values, end to end; in memory or in a file
    starts: NDArray[np.int64]  # int64 (N + 1,): where each value starts in ``data``, and the length of ``data``

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> bytes:
        return self.data[self.starts[row] : self.starts[row + 1]]

    def values(self, first: int, end: int) -> Iterator[bytes]:
        """Yield the values of some rows that follow one another."""
        for start, stop in pairwise(self.starts[first : end + 1].tolist()):
            yield self.data[start:stop]

    def take(self, rows: NDArray[np.int64]) -> Blobs:
        """Return the values of some rows, in that order; they share nothing with these."""
        taken, data = GrowingBlobs(), np.frombuffer(self.data, np.uint8)
        for first in range(0, len(rows), _TAKEN_ROWS):
            some = rows[first : first + _TAKEN_ROWS]
            lengths = self.starts[some + 1] - self.starts[some]
            ends = np.cumsum(lengths)
            own = data[np.repeat(self.starts[some] - (ends - lengths), lengths) + np.arange(ends[-1])]
            taken.extend(own.tobytes(), lengths)
        return taken.finish()


@dataclass(frozen=True, slots=True, eq=False)
class RecordNames(Blobs):
    """The names of records, ``record 7``: made when they are asked for, so that those of millions take no memory."""

    data: bytes = field(default=b"", init=False)
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64), init=False)
    numbers: NDArray[np.int64]  # int64 (N,): the number of each record, in all sequences one after another
    firsts: NDArray[np.int64]  # int64 (sequences,): the number of the first record of each sequence, ascending

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> bytes:
        return next(self.values(row, row + 1))

    def values(self, first: int, end: int) -> Iterator[bytes]:
        """Yield the names of some rows that follow one another."""
        numbers = self.numbers[first:end]
        positions = numbers - self.firsts[np.searchsorted(self.firsts, numbers, "right") - 1]
        return map(b"record %d".__mod__, positions.tolist())

    def take(self, rows: NDArray[np.int64]) -> RecordNames:
        """Return the names of some rows, in that order."""
        return RecordNames(taken(self.numbers, rows), self.firsts)


class GrowingBlobs:
    """A `Blobs` that grows at its end."""

    def __init__(self) -> None:
        self._tail = io.BytesIO()
        self._file: IO[bytes] | None = None
        self._size = 0  # of what is in the file
        self._starts = GrowingColumn("q", 0)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def append(self, value: bytes) -> None:
        """Append one value."""
        self._starts.append(self._write(value))

    def extend(self, data: bytes, lengths: NDArray[np.int64]) -> None:
        """Append values, given end to end, and the length of each."""
        ends = np.cumsum(lengths)
        self._starts.extend(ends + (self._write(data) - ends[-1]))

    def _write(self, data: bytes) -> int:
        self._tail.write(data)
        if self._tail.tell() > HELD_NAME_BYTES:
            self._spill()
        return self._size + self._tail.tell()

    def _spill(self) -> None:
        if self._file is None:
            self._file = scratch_file(_WHY)
        append_to_scratch(self._file, self._tail.getvalue(), _WHY)
        self._size += self._tail.tell()
        self._tail = io.BytesIO()

    def finish(self) -> Blobs:
        """Return all values; nothing can be appended afterwards."""
        starts = self._starts.finish()
        if self._file is None:
            return Blobs(self._tail.getvalue(), starts)
        self._spill()
        with self._file as file:
            return Blobs(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), starts)


Column: TypeAlias = "NDArray[Any] | Blobs"
"""A value for each row: a number, several numbers (N, k), or bytes."""


def taken(column: Any, rows: NDArray[np.int64]) -> Any:
    """Return the values of some rows of a `Column`, in that order; they share nothing with it."""
    if isinstance(column, Blobs):
        return column.take(rows)
    width = int(np.prod(column.shape[1:]))
    values = new_column(len(rows) * width, column.dtype.type).reshape(len(rows), *column.shape[1:])
    for first, end in chunks(len(rows)):
        values[first:end] = column[rows[first:end]]
    return values


def new_column(rows: int, kind: type[np.generic] | np.dtype[Any]) -> NDArray[Any]:
    """Return a column of so many zeros, which takes memory where it is set.

    Raises:
        OSError: There is no space for its file.
    """
    if rows <= HELD_ROWS:
        return np.zeros(rows, kind)
    with scratch_file(_WHY) as file:
        reserve_scratch(file, rows * np.dtype(kind).itemsize, _WHY)
        return np.frombuffer(mmap.mmap(file.fileno(), 0), kind)


@contextmanager
def random_access(*columns: NDArray[Any] | bytes | mmap.mmap) -> Iterator[None]:
    """Read only the pages that are asked for, in this block.

    Systems read ahead of each missing page, some by megabytes. Where rows are far apart, that is a thousand times what
    is needed, and pushes out what is needed next.
    """
    mapped = [memory for column in columns if (memory := _mapping(column)) is not None]
    for mapping in mapped:
        mapping.madvise(mmap.MADV_RANDOM)
    try:
        yield
    finally:
        for mapping in mapped:
            mapping.madvise(mmap.MADV_NORMAL)


def _mapping(column: NDArray[Any] | bytes | mmap.mmap) -> mmap.mmap | None:
    held = column.base if isinstance(column, np.ndarray) else column
    held = held.obj if isinstance(held, memoryview) else held
    return held if isinstance(held, mmap.mmap) else None


def row_range(first: int, count: int) -> NDArray[np.int64]:
    """Return the numbers of consecutive rows, ascending."""
    rows = new_column(count, np.int64)
    for start, end in chunks(count):
        rows[start:end] = np.arange(first + start, first + end)
    return rows


def chunks(rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each chunk of so many rows."""
    for first in range(0, rows, CHUNK_ROWS):
        yield first, min(rows, first + CHUNK_ROWS)


def repeats_in(column: NDArray[np.int64]) -> int:
    """Sort a column, and return how many of its values are there already in a row before."""
    column.sort()
    return sum(
        int(np.count_nonzero(column[max(1, first) : end] == column[max(1, first) - 1 : end - 1]))
        for first, end in chunks(len(column))
    )


def sum_of(column: NDArray[np.integer[Any]], rows: NDArray[np.int64]) -> int:
    """Return the sum of a column over some rows."""
    return sum(int(column[rows[first:end]].sum(dtype=np.int64)) for first, end in chunks(len(rows)))


def counts_of(column: NDArray[np.integer[Any]], rows: Iterable[NDArray[np.int64]], values: int) -> NDArray[np.int64]:
    """Return how often each of the values -1 to ``values - 1`` is in a column; that of -1 comes first.

    Args:
        column: The column.
        rows: Which rows are counted.
        values: See above.
    """
    counts = np.zeros(values + 1, np.int64)
    for some in rows:
        for first, end in chunks(len(some)):
            counts += np.bincount(column[some[first:end]] + 1, minlength=values + 1)
    return counts


def divided(
    rows: NDArray[np.int64], number_of: Callable[[NDArray[np.int64]], NDArray[np.integer[Any]]], count: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Return rows in the order of a number that each has, stably; and where those of each number start, and all end.

    ``number_of`` returns the numbers of some rows: 0 to ``count - 1``, or negative ones of rows to omit.
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
        positions = starts[numbers] + np.arange(len(numbers)) - np.repeat(np.cumsum(counts) - counts, counts)
        ordered[positions] = rows[first:end][order]
        starts += counts
    return ordered, bounds.tolist()


class RowsByPath:
    """Sorts rows by the bytes of their paths, eight at a time as one number: no path becomes a Python object.

    No path has a NUL byte. ``prefixes`` returns how many bytes of the paths of some rows do not count.
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

        Those of equal paths stay in their order. In so many bytes as are ``done`` all paths agree.
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
        """Return the words at some positions, the first byte as the highest, with zeros behind the ends of paths."""
        positions = np.minimum(starts, self._last)
        words = self._words[positions].astype(np.uint64) << (8 * (starts - positions)).astype(np.uint64)
        beyond = (8 * (_WORD - np.clip(lengths, 0, _WORD))).astype(np.uint64)
        return (words >> beyond) << beyond
