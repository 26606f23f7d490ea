"""The images of a source as one table: about 60 bytes an item for ImageNet's names, in files where they are millions.

`ItemCollector` takes the images as a listing meets them and puts them into the order of the table once all of them are
known; `ItemTableBuilder` keeps the order in which they are added. `NumberedTable` needs no table: its items are told by
their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, pairwise
from operator import lt
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stoker.errors import SourceError
from stoker.sources.columns import HELD_ROWS, GrowingColumn, GrowingNames, chunks, new_column, random_access, row_range

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray


SPLITS = ("train", "validation", "test")
"""Every split there can be, in the order of the table."""

_ROWS_AT_A_TIME = 2**14
_MAX_GROUPS = 2**17
_CUTS_PER_PART = 64
_NUMBERS = ("labels", "sizes", "archives", "offsets", "objects")


@dataclass(frozen=True, slots=True)
class Item:
    """One source image.

    Attributes:
        path: Where it lies, as the file system or the archive spells it: below the base of the source, absolute, or
            inside its archive. A tar inside a tar counts as a folder.
        label: Index into the classes of the source (0-based, before any label base); -1 when it has none.
        size_bytes: Its size when it was listed.
        archive: Index into the archives of the source; -1 for a file of its own.
        offset: Where its bytes begin in that archive; of a file of its own its number in the table or the list that
            names it, 0 without one. Either way items of one archive, or of none, have it in the order of the source.
        object: Index of the annotated object that is meant; -1 for the whole image.
    """

    path: bytes
    label: int
    size_bytes: int
    archive: int = -1
    offset: int = 0
    object: int = -1

    @property
    def key(self) -> str:
        """The path as text; bytes that are not UTF-8 survive as surrogate escapes."""
        return self.path.decode("utf-8", "surrogateescape")

    @property
    def name(self) -> bytes:
        """The last part of the path."""
        return self.path[self.path.rfind(b"/") + 1 :]


class Items(Protocol):
    """Many items. Read-only; safe to share between threads."""

    @property
    def labels(self) -> NDArray[np.int32]:
        """Class index of each item (N,); -1 when it has none."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each image when it was listed (N,)."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> Item: ...

    def take(self, rows: NDArray[np.int64], /) -> ItemTable:
        """Return a table of the given rows, in that order; it shares nothing with this one."""


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """Many items, as one blob of names and six arrays. Read-only; safe to share between threads.

    Attributes:
        names: The paths of all items, end to end; in memory or in a file.
        starts: int64 (N + 1,): where each path starts in ``names``, and the length of ``names``.
        labels: int32 (N,): class index of each item; -1 when it has none.
        sizes: int64 (N,): bytes of each image when it was listed.
        archives: int32 (N,): archive that each image lies in; -1 for a file of its own.
        offsets: int64 (N,): where each image begins in its archive; of a file of its own its number in the source.
        objects: int32 (N,): the object of the image that is meant; -1 for the whole image.
    """

    names: bytes | mmap.mmap
    starts: NDArray[np.int64]
    labels: NDArray[np.int32]
    sizes: NDArray[np.int64]
    archives: NDArray[np.int32]
    offsets: NDArray[np.int64]
    objects: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, row: int) -> bytes:
        """Return the path of one item."""
        return self.names[self.starts[row] : self.starts[row + 1]]

    def __getitem__(self, row: int) -> Item:
        columns = (self.labels, self.sizes, self.archives, self.offsets, self.objects)
        return Item(self.path(row), *(int(column[row]) for column in columns))

    def __iter__(self) -> Iterator[Item]:
        for first in range(0, len(self), _ROWS_AT_A_TIME):  # many at a time: single numbers of arrays are slow
            last = min(first + _ROWS_AT_A_TIME, len(self))
            paths = pairwise(self.starts[first : last + 1].tolist())
            columns = (getattr(self, name)[first:last].tolist() for name in _NUMBERS)
            for (start, end), *numbers in zip(paths, *columns, strict=True):
                yield Item(self.names[start:end], *numbers)

    def take(self, rows: NDArray[np.int64]) -> ItemTable:
        """Return a table of the given rows, in that order; it shares nothing with this one."""
        names, starts = GrowingNames(), new_column(len(rows) + 1, np.int64)
        columns = {name: new_column(len(rows), getattr(self, name).dtype.type) for name in _NUMBERS}
        end = starts[0] = 0
        for first, last in chunks(len(rows)):
            some = rows[first:last]
            for at in range(0, len(some), _ROWS_AT_A_TIME):  # a Python int takes 40 bytes, so not all at once
                few = some[at : at + _ROWS_AT_A_TIME]
                for start, stop in zip(self.starts[few].tolist(), self.starts[few + 1].tolist(), strict=True):
                    end = names.append(self.names[start:stop])
            lengths = self.starts[some + 1] - self.starts[some]
            starts[first + 1 : last + 1] = starts[first] + np.cumsum(lengths)
            for name, column in columns.items():
                column[first:last] = getattr(self, name)[some]
        assert end == starts[-1]
        return ItemTable(names.finish(), starts, **columns)


class NumberedTable:
    """The items of sequences, one after another, each of which is told by its sequence and its position in it.

    An item's ``archive`` is the number of its sequence, its ``offset`` the position.

    Args:
        lengths: How many items each sequence has.
        size_bytes: About how many bytes an image has.
        labels: int32 (N,): class index of each item, -1 where it has none; None where no class is known.
    """

    def __init__(self, lengths: Sequence[int], size_bytes: int, labels: NDArray[np.int32] | None = None) -> None:
        self._ends = np.cumsum([0, *lengths], dtype=np.int64)
        self.labels = np.broadcast_to(np.int32(-1), len(self)) if labels is None else labels
        self.sizes = np.broadcast_to(np.int64(size_bytes), len(self))

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, row: int) -> Item:
        number = int(np.searchsorted(self._ends, row, "right")) - 1
        position = row - int(self._ends[number])
        return Item(b"record %d" % position, int(self.labels[row]), int(self.sizes[row]), number, position)

    def row(self, item: Item) -> int:
        """Return the row of an item."""
        return int(self._ends[item.archive]) + item.offset

    def rows(self, number: int) -> NDArray[np.int64]:
        """Return the rows of one sequence, ascending."""
        first, end = self._ends[number : number + 2].tolist()
        return row_range(first, end - first)

    def take(self, rows: NDArray[np.int64]) -> ItemTable:
        """Return a table of the given rows, in that order."""
        builder = ItemTableBuilder()
        for row in rows.tolist():
            builder.add(self[row])
        return builder.finish()


class ItemTableBuilder:
    """Collects items in the order they are added."""

    def __init__(self) -> None:
        self._names = GrowingNames()
        self._starts = GrowingColumn("q", 0)
        self._labels = GrowingColumn("i")
        self._sizes = GrowingColumn("q")
        self._archives = GrowingColumn("i")
        self._offsets = GrowingColumn("q")
        self._objects = GrowingColumn("i")

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, item: Item) -> None:
        """Append one item."""
        self._starts.append(self._names.append(item.path))
        self._labels.append(item.label)
        self._sizes.append(item.size_bytes)
        self._archives.append(item.archive)
        self._offsets.append(item.offset)
        self._objects.append(item.object)

    def finish(self) -> ItemTable:
        """Return the table; the builder must not be used afterwards."""
        return ItemTable(
            self._names.finish(),
            self._starts.finish(),
            self._labels.finish(),
            self._sizes.finish(),
            self._archives.finish(),
            self._offsets.finish(),
            self._objects.finish(),
        )


@dataclass(slots=True)
class Group:
    """Images that have all of this in common.

    Attributes:
        split: Their split; None if they turned out not to be items.
        class_name: Their class; None if they have no label.
        prefix_bytes: Length of the part of their paths that leads to the class; what follows it orders them inside the
            class.
        archive: The tar they lie in; -1 for files of their own.
    """

    split: str | None
    class_name: bytes | None
    prefix_bytes: int = 0
    archive: int = -1


class ItemCollector:
    """Collects images in any order.

    Attributes:
        groups: All groups; those without images too, so that an empty class keeps its label.
        repeated: How many members of tars a later one of the same name replaces, as unpacking would; known after
            `finish`.
    """

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.repeated = 0
        self._run = _Collecting()
        self._runs = _Collecting()
        self._collected: _Collected | None = None

    def __len__(self) -> int:
        return len(self._runs.groups) + len(self._run.groups)

    def add_group(self, group: Group) -> int:
        """Add a group and return its number.

        Raises:
            SourceError: There are too many.
        """
        if len(self.groups) == _MAX_GROUPS:
            raise SourceError(f"the source has more than {_MAX_GROUPS} folders; put the images of a class into one")
        self.groups.append(group)
        return len(self.groups) - 1

    def add(self, group: int, path: bytes, size_bytes: int, offset: int = 0) -> None:
        """Append one image of a group; not after one has been asked for. For ``offset`` see `Item`."""
        run = self._run
        run.starts.append(run.names.append(path))
        run.groups.append(group)
        run.sizes.append(size_bytes)
        run.offsets.append(offset)
        if len(run.groups) == HELD_ROWS:
            self._end_run()

    def add_folder(self, group: int, folder: bytes, files: Sequence[tuple[bytes, int]]) -> None:
        """Append images of a group as `add` does, given the path of each below a folder and its bytes."""
        at = 0
        while at < len(files):
            run = self._run
            some = files[at : at + HELD_ROWS - len(run.groups)]
            paths, sizes = zip(*some, strict=True)
            end = run.names.append(folder + folder.join(paths))
            ends = np.cumsum(np.fromiter(map(len, paths), np.int64, len(some)) + len(folder))
            run.starts.extend(ends + (end - ends[-1]))
            run.groups.extend(np.full(len(some), group, np.int32))
            run.sizes.extend(np.asarray(sizes, np.int64))
            run.offsets.extend(np.zeros(len(some), np.int64))
            if len(run.groups) == HELD_ROWS:
                self._end_run()
            at += len(some)

    def _end_run(self) -> None:
        """Move what is held in memory to files, sorted, so that rows that belong together lie together."""
        run, self._run = self._run.finish(), _Collecting()
        classes = {(group.split, group.class_name): at for at, group in enumerate(self.groups)}
        ranks = np.asarray([classes[group.split, group.class_name] for group in self.groups], np.int64)[run.groups]
        prefixes = np.asarray([group.prefix_bytes for group in self.groups], np.int64)[run.groups]
        firsts, ends = (run.starts[:-1] + prefixes).tolist(), run.starts[1:].tolist()
        keys = [run.names[first:end] for first, end in zip(firsts, ends, strict=True)]
        order = np.asarray(sorted(range(len(keys)), key=keys.__getitem__), np.int64)
        del keys, firsts, ends
        order = order[np.argsort(ranks[order], kind="stable")]
        for row in order.tolist():
            self._runs.starts.append(self._runs.names.append(run.path(row)))
        self._runs.groups.extend(run.groups[order])
        self._runs.sizes.extend(run.sizes[order])
        self._runs.offsets.extend(run.offsets[order])

    def _all(self) -> _Collected:
        if self._collected is None:
            if len(self._runs.groups) and len(self._run.groups):
                self._end_run()
            self._collected = (self._runs if len(self._runs.groups) else self._run).finish()
        return self._collected

    def file_name(self, row: int) -> bytes:
        """Return the name of an image without its folders."""
        path = self._all().path(row)
        return path[path.rfind(b"/") + 1 :]

    def rows_by(self, number_of: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
        """Yield each number and the images that have it, ascending; of millions of images so many at a time.

        Args:
            number_of: int64, (groups,): number of the images of each group; images of negative ones are omitted.
        """
        groups = self._all().groups
        for first in range(0, len(groups), HELD_ROWS):
            numbers = number_of[groups[first : first + HELD_ROWS]]
            order = np.argsort(numbers, kind="stable")
            ordered = numbers[order]
            for number in np.unique(ordered[ordered >= 0]).tolist():
                start, end = np.searchsorted(ordered, [number, number + 1])
                yield number, (order[start:end] + first).tolist()

    def set_sizes(self, rows: Iterable[int], sizes: Iterable[int]) -> None:
        """Set how many bytes some images have."""
        column = self._all().sizes
        for row, size in zip(rows, sizes, strict=True):
            column[row] = size

    def class_names(self) -> set[bytes]:
        """Return the names of all classes."""
        return {group.class_name for group in self.groups if group.split and group.class_name is not None}

    def finish(self, label_of: Mapping[bytes, int]) -> tuple[ItemTable, dict[str, NDArray[np.int64]]]:
        """Return the table and the rows of each split; nothing can be added afterwards.

        Args:
            label_of: The label of each class.
        """
        labels = [-1 if group.class_name is None else label_of.get(group.class_name, -1) for group in self.groups]
        splits = [-1 if group.split is None else SPLITS.index(group.split) for group in self.groups]
        all_ = self._all()
        count = len(all_.groups)
        label_column, archive_column = new_column(count, np.int32), new_column(count, np.int32)
        label_of_group = np.asarray(labels, np.int32)
        archive_of_group = np.asarray([group.archive for group in self.groups], np.int32)
        for first, end in chunks(count):
            label_column[first:end] = label_of_group[all_.groups[first:end]]
            archive_column[first:end] = archive_of_group[all_.groups[first:end]]
        table = ItemTable(
            names=all_.names,
            starts=all_.starts,
            labels=label_column,
            sizes=all_.sizes,
            archives=archive_column,
            offsets=all_.offsets,
            objects=np.broadcast_to(np.int32(-1), count),
        )
        # One integer for split and label; a negative one for what is not an item.
        ranks = np.asarray(splits, np.int64) * 2**32 + np.asarray(labels, np.int64) + 1
        prefixes = np.asarray([group.prefix_bytes for group in self.groups], np.int64)
        with random_access(all_.groups, *(getattr(table, name) for name in ("names", "starts", *_NUMBERS))):
            sorting = _Sorting(table, all_.groups, ranks, prefixes)
            order, ends = sorting.order()
            self.repeated = sorting.repeated
            if len(order) < count or not all(
                bool((order[first:end] == np.arange(first, end)).all()) for first, end in chunks(len(order))
            ):
                table = table.take(order)
        # The table has the columns, or a copy of what it needs of them.
        self._run, self._runs, self._collected = _Collecting(), _Collecting(), None
        found = {SPLITS[split] for split in splits if split >= 0}
        bounds = pairwise((0, *ends))
        return table, {
            split: row_range(first, end - first)
            for split, (first, end) in zip(SPLITS, bounds, strict=True)
            if split in found
        }


class _Collecting:
    """The columns of an `ItemCollector` while they grow."""

    def __init__(self) -> None:
        self.names = GrowingNames()
        self.starts = GrowingColumn("q", 0)
        self.groups = GrowingColumn("i")
        self.sizes = GrowingColumn("q")
        self.offsets = GrowingColumn("q")

    def finish(self) -> _Collected:
        """Return the columns; nothing can be added afterwards."""
        return _Collected(
            self.names.finish(),
            self.starts.finish(),
            self.groups.finish(),
            self.sizes.finish(),
            self.offsets.finish(),
        )


@dataclass(slots=True)
class _Collected:
    """The columns of an `ItemCollector`, in the order in which images were added; of each run, sorted."""

    names: bytes | mmap.mmap
    starts: NDArray[np.int64]
    groups: NDArray[np.int32]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def path(self, row: int) -> bytes:
        """Return the path of one image."""
        return self.names[self.starts[row] : self.starts[row + 1]]


class _Sorting:
    """Puts the rows of a table into their order: by rank, then by the part of the path below the class.

    The rows are taken in runs that fit into memory. Each is sorted by rank, which leaves the rows of a rank in one
    piece of every run. These are gathered and sorted by path: all at once, or, if a rank has too many, in parts that
    follow one another, which are found by cutting at some of the paths.

    Args:
        table: The rows.
        groups: int32 (N,): the group of each row.
        ranks: int64 (groups,): by which they are sorted first; rows with a negative one are left out.
        prefixes: int64 (groups,): how many bytes of the paths do not count.

    Attributes:
        repeated: How many rows the next one replaces, known at the end.
    """

    def __init__(
        self,
        table: ItemTable,
        groups: NDArray[np.int32],
        ranks: NDArray[np.int64],
        prefixes: NDArray[np.int64],
    ) -> None:
        self.repeated = 0
        self._table = table
        self._groups = groups
        self._prefixes = prefixes
        self._rows = new_column(len(groups), np.int64)
        self._runs = [self._sort_run(first, ranks) for first in range(0, len(groups), HELD_ROWS)]

    def order(self) -> tuple[NDArray[np.int64], list[int]]:
        """Return the rows in their order, without those that are left out or replaced; and where each split ends."""
        order = new_column(len(self._rows), np.int64)
        at, ends = 0, [0] * len(SPLITS)
        found = np.unique(np.concatenate([ranks for ranks, _ in self._runs] or [np.empty(0, np.int64)]))
        for rank in found[found >= 0].tolist():
            for rows in self._parts(self._pieces(rank)):
                kept = self._sort(rows)
                order[at : at + len(kept)] = kept
                at += len(kept)
            split = rank // 2**32
            ends[split:] = [at] * (len(SPLITS) - split)
        return order[:at], ends

    def _sort_run(self, first: int, ranks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sort the rows of a run by rank; return the ranks, and where the rows of each begin and those of all end."""
        mine = ranks[self._groups[first : first + HELD_ROWS]]
        order = np.argsort(mine, kind="stable")
        self._rows[first : first + len(order)] = order + first
        found, starts = np.unique(mine[order], return_index=True)
        return found, np.append(starts, len(order)) + first

    def _pieces(self, rank: int) -> list[NDArray[np.int64]]:
        """Return the rows of a rank in each run that has some; to be changed in place."""
        pieces = []
        for ranks, bounds in self._runs:
            at = int(np.searchsorted(ranks, rank))
            if at < len(ranks) and ranks[at] == rank:
                pieces.append(self._rows[bounds[at] : bounds[at + 1]])
        return pieces

    def _parts(self, pieces: list[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """Yield the rows of one rank, in parts of which each one's paths come before those of the next."""
        total = sum(map(len, pieces))
        if total <= HELD_ROWS:
            yield np.concatenate(pieces)
            return
        parts = 2 * -(-total // HELD_ROWS)
        step = max(1, total // (_CUTS_PER_PART * parts))
        samples: list[bytes] = []
        for piece in pieces:
            keys = self._keys(piece)
            order = sorted(range(len(keys)), key=keys.__getitem__)
            piece[:] = piece[order]
            samples += (keys[place] for place in order[::step])
        samples.sort()
        cuts = sorted({samples[len(samples) * part // parts] for part in range(1, parts)})
        bounds = [[0, *(self._find(piece, cut) for cut in cuts), len(piece)] for piece in pieces]
        for part in range(len(cuts) + 1):
            yield np.concatenate([piece[at[part] : at[part + 1]] for piece, at in zip(pieces, bounds, strict=True)])

    def _find(self, piece: NDArray[np.int64], cut: bytes) -> int:
        """Return where the paths from ``cut`` on begin in a piece that is sorted by them."""
        start, end = 0, len(piece)
        while start < end:
            middle = (start + end) // 2
            if self._keys(piece[middle : middle + 1])[0] < cut:
                start = middle + 1
            else:
                end = middle
        return start

    def _keys(self, rows: NDArray[np.int64]) -> list[bytes]:
        """Return the part of the path of each row that counts."""
        names, starts = self._table.names, self._table.starts
        firsts = (starts[rows] + self._prefixes[self._groups[rows]]).tolist()
        return [names[first:end] for first, end in zip(firsts, starts[rows + 1].tolist(), strict=True)]

    def _sort(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return some rows of one rank in their order, without those that the next one replaces."""
        keys = self._keys(rows)
        if all(map(lt, keys, islice(keys, 1, None))):  # as a listing gives them
            return rows
        order = sorted(range(len(keys)), key=keys.__getitem__)
        replaced = [
            at
            for at, (place, following) in enumerate(pairwise(order))
            if keys[place] == keys[following] and self._same_member(int(rows[place]), int(rows[following]))
        ]
        self.repeated += len(replaced)
        return np.delete(rows[order], replaced)

    def _same_member(self, row: int, other: int) -> bool:
        table = self._table
        same_archive = table.archives[row] == table.archives[other] >= 0
        return bool(same_archive) and table.path(row) == table.path(other)
