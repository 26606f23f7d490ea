"""The images of a source as one table of columns: about 60 bytes an item for ImageNet's names.

A column has a number or bytes for each item. Short columns are in memory, long ones in scratch files without a name in
the folder for temporary files (``$TMPDIR``). These files are mapped into memory, so that the system keeps the pages in
use and evicts others when it needs space; they disappear with the process. `RowsByPath` sorts millions of rows with
memory that does not grow with their number.

`ItemCollector` takes images in any order and sorts them into the order of the table when all are known;
`ItemTableBuilder` keeps the order in which items are added.
"""

from __future__ import annotations

import io
import mmap
from array import array
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stoker.errors import SourceError
from stoker.splits import SPLITS
from stoker.storage import append_to_scratch, reserve_scratch, scratch_file, without_signature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray


HELD_ROWS = 2**20
"""Rows of columns that are held in memory."""

HELD_NAME_BYTES = 2**26
"""Bytes of names that are held in memory."""

CHUNK_ROWS = 2**18
"""Rows of long columns that are processed at a time."""

_WORD = 8
_SAMPLED_ROWS, _MAX_CUTS = 2**12, 2**7
_WHY = "the listing of a source with millions of images lies there"
_TAKEN_ROWS = 2**14
_TYPES = {"i": np.int32, "q": np.int64}

_ROWS_AT_A_TIME = 2**14
_MAX_GROUPS = 2**17
_NUMBERS = ("labels", "sizes", "numbers", "objects")
_NO_COLUMNS: Mapping[str, Any] = {}


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
        """Yield the values of consecutive rows."""
        for start, stop in pairwise(self.starts[first : end + 1].tolist()):
            yield self.data[start:stop]

    def take(self, rows: NDArray[np.int64]) -> Blobs:
        """Return a copy of the values of some rows, in that order."""
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
    """The names of records, such as ``record 7``, made on demand so that millions of them need no memory."""

    data: bytes = field(default=b"", init=False)
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64), init=False)
    numbers: NDArray[np.int64]  # int64 (N,): the number of each record, counted over all sequences
    firsts: NDArray[np.int64]  # int64 (sequences,): the number of the first record of each sequence, ascending

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, row: int) -> bytes:
        return next(self.values(row, row + 1))

    def values(self, first: int, end: int) -> Iterator[bytes]:
        """Yield the names of consecutive rows."""
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
        self._size = 0  # bytes in the file
        self._starts = GrowingColumn("q", 0)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def append(self, value: bytes) -> None:
        """Append one value."""
        self._starts.append(self._write(value))

    def extend(self, data: bytes, lengths: NDArray[np.int64]) -> None:
        """Append several values: their bytes, end to end, and the length of each."""
        ends = np.cumsum(lengths)
        self._starts.extend(ends + (self._write(data) - ends[-1:]))

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
    """Return a copy of some rows of a `Column`, in that order."""
    if isinstance(column, Blobs):
        return column.take(rows)
    width = int(np.prod(column.shape[1:]))
    values = new_column(len(rows) * width, column.dtype.type).reshape(len(rows), *column.shape[1:])
    for first, end in chunks(len(rows)):
        values[first:end] = column[rows[first:end]]
    return values


def new_column(rows: int, kind: type[np.generic] | np.dtype[Any]) -> NDArray[Any]:
    """Return a column of ``rows`` zeros; if it is long, in a scratch file whose space is reserved."""
    if rows <= HELD_ROWS:
        return np.zeros(rows, kind)
    with scratch_file(_WHY) as file:
        reserve_scratch(file, rows * np.dtype(kind).itemsize, _WHY)
        return np.frombuffer(mmap.mmap(file.fileno(), 0), kind)


@contextmanager
def random_access(*columns: NDArray[Any] | bytes | mmap.mmap) -> Iterator[None]:
    """Switch off read-ahead of columns that are mapped into memory, in this block.

    Systems read ahead of each missing page, some by megabytes. If rows are far apart, this reads a thousand times as
    much as needed, and evicts pages that are needed next.
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
    """Yield where each chunk of ``rows`` rows starts and where it ends."""
    for first in range(0, rows, CHUNK_ROWS):
        yield first, min(rows, first + CHUNK_ROWS)


def repeats_in(column: NDArray[np.int64]) -> int:
    """Sort a column, and return how many of its values repeat an earlier one."""
    column.sort()
    return sum(
        int(np.count_nonzero(column[max(1, first) : end] == column[max(1, first) - 1 : end - 1]))
        for first, end in chunks(len(column))
    )


def sum_of(column: NDArray[np.integer[Any]], rows: NDArray[np.int64]) -> int:
    """Return the sum of a column over some rows."""
    return sum(int(column[rows[first:end]].sum(dtype=np.int64)) for first, end in chunks(len(rows)))


def counts_of(column: NDArray[np.integer[Any]], rows: Iterable[NDArray[np.int64]], values: int) -> NDArray[np.int64]:
    """Return how often each value from -1 to ``values - 1`` is in some rows of a column; -1 comes first."""
    counts = np.zeros(values + 1, np.int64)
    for some in rows:
        for first, end in chunks(len(some)):
            counts += np.bincount(column[some[first:end]] + 1, minlength=values + 1)
    return counts


def sorted_by_number(
    rows: NDArray[np.int64], number_of: Callable[[NDArray[np.int64]], NDArray[np.integer[Any]]], count: int
) -> tuple[NDArray[np.int64], list[int]]:
    """Return rows sorted stably by a number of each; and where the rows of each number start, and the last ones end.

    ``number_of`` returns the numbers of some rows: 0 to ``count - 1``, or negative for rows to omit.
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
    """Sorts rows by the bytes of their paths, eight bytes at a time as one number, without Python objects for paths.

    Paths have no NUL bytes. ``prefixes`` returns for some rows how many bytes at the start of their paths to ignore.
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
        """Yield rows sorted by path, about as many at a time as are held in memory; equal paths come together.

        Rows of equal paths keep their order. The first ``done`` bytes of all paths are equal.
        """
        if len(rows) <= HELD_ROWS:
            yield rows[self._order(rows, done)]
            return
        sample = np.sort(self._words_of(rows[:: -(-len(rows) // _SAMPLED_ROWS)], done))
        cuts = np.unique(sample[:: -(-len(sample) // _MAX_CUTS)])

        def part_of(some: NDArray[np.int64]) -> NDArray[np.int64]:  # odd numbers: the word equals a cut
            words = self._words_of(some, done)
            return np.searchsorted(cuts, words, "left") + np.searchsorted(cuts, words, "right")

        rows, bounds = sorted_by_number(rows, part_of, 2 * len(cuts) + 1)
        for part, (first, end) in enumerate(pairwise(bounds)):
            if part % 2 and cuts[part // 2] == 0:  # these paths end here
                yield rows[first:end]
            else:
                yield from self.sorted(rows[first:end], done + _WORD * (part % 2))

    def _order(self, rows: NDArray[np.int64], done: int) -> NDArray[np.int64]:
        """Return the order of rows by a stable radix sort, from the last word of the paths to the first."""
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
        """Return the big-endian words at some positions, with zeros after the ends of paths."""
        positions = np.minimum(starts, self._last)
        words = self._words[positions].astype(np.uint64) << (8 * (starts - positions)).astype(np.uint64)
        beyond = (8 * (_WORD - np.clip(lengths, 0, _WORD))).astype(np.uint64)
        return (words >> beyond) << beyond


@dataclass(frozen=True, slots=True)
class Item:
    """One source image.

    Attributes:
        path: Its path as the file system or the archive spells it: relative to the base of the source, absolute, or
            inside its archive. A tar inside a tar counts as a folder.
        label: Index into the classes of the source (0-based, before any label base); -1 without a class.
        size_bytes: Its size when it was listed.
        number: Its position in the listing, or in the sequences that it comes from, counted over all of them.
        object: Index of the annotated object that it stands for; -1 for the whole image.
        columns: Its values in the columns that only its kind of source has, such as its offset in an archive.
    """

    path: bytes
    label: int
    size_bytes: int
    number: int = 0
    object: int = -1
    columns: Mapping[str, Any] = field(default_factory=lambda: _NO_COLUMNS, compare=False)

    @property
    def key(self) -> str:
        """The path as text, as it may be shown; bytes that are not UTF-8 survive as surrogate escapes."""
        return without_signature(self.path).decode("utf-8", "surrogateescape")

    @property
    def name(self) -> bytes:
        """The last part of the path."""
        return self.path[self.path.rfind(b"/") + 1 :]


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """Many items, as columns. Read-only; safe to share between threads.

    Attributes:
        paths: The path of each item.
        labels: int32 (N,): class index of each item; -1 without a class.
        sizes: int64 (N,): bytes of each image when it was listed.
        numbers: int64 (N,): position of each item in the listing.
        objects: int32 (N,): index of the annotated object that each item stands for; -1 for the whole image.
        columns: The columns that only its kind of source has, by name.
    """

    paths: Blobs
    labels: NDArray[np.int32]
    sizes: NDArray[np.int64]
    numbers: NDArray[np.int64]
    objects: NDArray[np.int32]
    columns: Mapping[str, Column] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)

    def image_rows(self) -> NDArray[np.int64]:
        """Return one row of each image, even if several of its objects are items: int64, in listing order."""
        rows = np.flatnonzero(self.objects <= 0)
        return rows[np.argsort(self.numbers[rows])]

    def __getitem__(self, row: int) -> Item:
        label, size_bytes, number, index = (int(getattr(self, name)[row]) for name in _NUMBERS)
        own = next(iter(self._own(row, row + 1)))
        return Item(self.paths[row], label, size_bytes, number, index, own)

    def __iter__(self) -> Iterator[Item]:
        for first in range(0, len(self), _ROWS_AT_A_TIME):  # many at a time: single numbers of arrays are slow
            last = min(first + _ROWS_AT_A_TIME, len(self))
            numbers = (getattr(self, name)[first:last].tolist() for name in _NUMBERS)
            own = self._own(first, last)
            yield from map(Item, self.paths.values(first, last), *numbers, own)

    def _own(self, first: int, last: int) -> Iterable[Mapping[str, Any]]:
        """Return, for each of some rows, its values in `columns` by name."""
        if not self.columns:
            return repeat(_NO_COLUMNS, last - first)
        values = (
            column.values(first, last) if isinstance(column, Blobs) else column[first:last].tolist()
            for column in self.columns.values()
        )
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True))

    def take(self, rows: NDArray[np.int64]) -> ItemTable:
        """Return a copy of the given rows, in that order, with all columns."""
        numbers = {name: taken(getattr(self, name), rows) for name in _NUMBERS}
        columns = {name: taken(column, rows) for name, column in self.columns.items()}
        return ItemTable(paths=self.paths.take(rows), columns=columns, **numbers)


class ItemTableBuilder:
    """Collects items, all of which have the same columns of numbers, in the order they are added."""

    def __init__(self) -> None:
        self._paths = GrowingBlobs()
        self._numbers = [GrowingColumn(code) for code in "iqqi"]
        self._columns: dict[str, GrowingColumn] = {}

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, item: Item) -> None:
        """Append one item."""
        if not len(self):
            self._columns = {name: GrowingColumn("q") for name in item.columns}
        self._paths.append(item.path)
        numbers = item.label, item.size_bytes, item.number, item.object
        for column, number in zip(self._numbers, numbers, strict=True):
            column.append(number)
        for name, column in self._columns.items():
            column.append(item.columns[name])

    def finish(self) -> ItemTable:
        """Return the table; the builder must not be used afterwards."""
        numbers: Any = {name: column.finish() for name, column in zip(_NUMBERS, self._numbers, strict=True)}
        columns = {name: column.finish() for name, column in self._columns.items()}
        return ItemTable(paths=self._paths.finish(), columns=columns, **numbers)


@dataclass(slots=True)
class Group:
    """A group of images with the same split and the same class."""

    split: str | None  # their split; None if they turned out not to be items
    class_name: bytes | None  # their class; None if they have no label
    # length of their paths up to the class, with its slash; the rest of the paths orders them inside the class
    prefix_bytes: int = 0
    tar: int = -1  # the tar they lie in; -1 for anything else


class ItemCollector:
    """Collects images in any order."""

    def __init__(self) -> None:
        self.groups: list[Group] = []  # groups without images, too, so that an empty class keeps its label
        # columns of the kind of source, which sets them before `finish`; their rows are in the order of adding
        self.columns: dict[str, Column] = {}
        # how many members of tars are replaced by a later one of the same name, as in unpacking; known after `finish`
        self.repeated = 0
        self._number_of: dict[tuple[str, bytes | None, int], int] = {}
        self._paths = GrowingBlobs()
        self._group_of = GrowingColumn("i")
        self._sizes = GrowingColumn("q")
        self._collected: tuple[Blobs, NDArray[np.int32], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self._group_of)

    def group(self, split: str, class_name: bytes | None = None, prefix_bytes: int = 0) -> int:
        """Return the number of the `Group` with these values, which is added if it is new."""
        key = split, class_name, prefix_bytes
        if key not in self._number_of:
            self._number_of[key] = self.add_group(Group(*key))
        return self._number_of[key]

    def add_group(self, group: Group) -> int:
        """Add a group, which the caller may change later, and return its number."""
        if len(self.groups) == _MAX_GROUPS:
            raise SourceError(f"the source has more than {_MAX_GROUPS} folders; put the images of a class into one")
        self.groups.append(group)
        return len(self.groups) - 1

    def add(self, group: int, path: bytes, size_bytes: int) -> None:
        """Append one image of a group; not possible once a method has returned images."""
        self._paths.append(path)
        self._group_of.append(group)
        self._sizes.append(size_bytes)

    def add_folder(self, group: int, folder: bytes, files: Sequence[tuple[bytes, int]]) -> None:
        """Append images of a group as `add` does, given a folder, and the path in it and the bytes of each."""
        for first, last in chunks(len(files)):
            paths, sizes = zip(*files[first:last], strict=True)
            lengths = np.fromiter(map(len, paths), np.int64, len(paths)) + len(folder)
            self._paths.extend(folder + folder.join(paths), lengths)
            self._group_of.extend(np.full(len(paths), group, np.int32))
            self._sizes.extend(np.asarray(sizes, np.int64))

    def _all(self) -> tuple[Blobs, NDArray[np.int32], NDArray[np.int64]]:
        if self._collected is None:
            self._collected = self._paths.finish(), self._group_of.finish(), self._sizes.finish()
        return self._collected

    def paths(self) -> Blobs:
        """Return the path of each image, in the order in which they were added."""
        return self._all()[0]

    def rows_by(self, number_of: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
        """Yield each number and the rows of images that have it, ascending; millions of images come in several parts.

        ``number_of`` has the number of each group: int64 (groups,). Images of groups with negative numbers are omitted.
        """
        groups = self._all()[1]
        for first in range(0, len(groups), HELD_ROWS):
            numbers = number_of[groups[first : first + HELD_ROWS]]
            order = np.argsort(numbers, kind="stable")
            ordered = numbers[order]
            for number in np.unique(ordered[ordered >= 0]).tolist():
                start, end = np.searchsorted(ordered, [number, number + 1])
                yield number, (order[start:end] + first).tolist()

    def set_sizes(self, rows: Iterable[int], sizes: Iterable[int]) -> None:
        """Set how many bytes some images have."""
        column = self._all()[2]
        for row, size in zip(rows, sizes, strict=True):
            column[row] = size

    def divide(self, splits: Iterable[str | None]) -> None:
        """Set the split of each image, in the order in which they were added; images without one are omitted."""
        column = self._all()[1]
        moved: dict[tuple[int, str | None], int] = {}
        for row, split in enumerate(splits):
            group = int(column[row])
            if split != self.groups[group].split and (group, split) not in moved:
                moved[group, split] = self.add_group(replace(self.groups[group], split=split))
            column[row] = moved.get((group, split), group)

    def class_names(self) -> set[bytes]:
        """Return the names of all classes."""
        return {group.class_name for group in self.groups if group.split and group.class_name is not None}

    def finish(self, label_of: Mapping[bytes, int]) -> tuple[ItemTable, dict[str, NDArray[np.int64]]]:
        """Return the table and the rows of each split, given the labels of classes; nothing can be added afterwards."""
        labels = [-1 if group.class_name is None else label_of.get(group.class_name, -1) for group in self.groups]
        splits = [-1 if group.split is None else SPLITS.index(group.split) for group in self.groups]
        paths, groups, sizes = self._all()
        count = len(groups)
        numbers, label_column = row_range(0, count), new_column(count, np.int32)
        label_of_group = np.asarray(labels, np.int32)
        for first, end in chunks(count):
            label_column[first:end] = label_of_group[groups[first:end]]
        table = ItemTable(paths, label_column, sizes, numbers, np.broadcast_to(np.int32(-1), count), self.columns)
        # One integer for split and label; negative for files that are not items.
        ranks = np.asarray(splits, np.int64) * 2**32 + np.asarray(labels, np.int64) + 1
        with random_access(groups, paths.data, paths.starts, label_column, sizes):
            order, ends = self._order(table, groups, ranks)
            if len(order) < count or not all(
                bool((order[first:end] == np.arange(first, end)).all()) for first, end in chunks(len(order))
            ):
                table = table.take(order)
        self._collected, self.columns = None, {}  # the table has the columns, or a copy of what it needs of them
        present = {SPLITS[split] for split in splits if split >= 0}
        bounds = pairwise((0, *ends))
        return table, {
            split: row_range(first, end - first)
            for split, (first, end) in zip(SPLITS, bounds, strict=True)
            if split in present
        }

    def _order(
        self, table: ItemTable, groups: NDArray[np.int32], ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[int]]:
        """Return the sorted rows, without omitted and replaced ones, and where each split ends.

        ``ranks`` are the first sort key: int64 (groups,). Rows of groups with a negative one are omitted.
        """
        ranks, numbers = np.unique(ranks, return_inverse=True)
        numbers -= int(np.searchsorted(ranks, 0))
        ranks = ranks[ranks >= 0]
        in_tars = np.asarray([(group.tar, group.prefix_bytes) for group in self.groups], np.int64).reshape(-1, 2)
        by_path = RowsByPath(table.paths, lambda rows: in_tars[groups[rows], 1])
        rows, bounds = sorted_by_number(row_range(0, len(groups)), lambda rows: numbers[groups[rows]], len(ranks))
        at, ends = 0, [0] * len(SPLITS)
        for rank, (first, end) in zip(ranks.tolist(), pairwise(bounds), strict=True):
            for some in by_path.sorted(rows[first:end]):
                remaining = self._without_replaced(table.paths, some, in_tars[groups[some]])
                rows[at : at + len(remaining)] = remaining  # never beyond what has been sorted
                at += len(remaining)
            ends[rank // 2**32 :] = [at] * (len(SPLITS) - rank // 2**32)
        return rows[:at], ends

    def _without_replaced(self, paths: Blobs, rows: NDArray[np.int64], tars: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return sorted rows without members of tars that the next row replaces.

        ``tars`` has the tar of each row, or -1, and how many bytes of its path to ignore: int64 (rows, 2).
        """
        same = np.flatnonzero((tars[1:, 0] >= 0) & (tars[1:] == tars[:-1]).all(axis=1))
        pairs = zip(same.tolist(), rows[same].tolist(), rows[same + 1].tolist(), strict=True)
        replaced = [at for at, row, following in pairs if paths[row] == paths[following]]
        self.repeated += len(replaced)
        return np.delete(rows, replaced)
