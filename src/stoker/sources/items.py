"""The images of a source as one table: about 60 bytes an item for ImageNet's names, in files where they are millions.

`ItemCollector` takes the images as a listing meets them and puts them into the order of the table once all of them are
known; `ItemTableBuilder` keeps the order in which they are added. `NumberedTable` needs no table: its items are told by
their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stoker.errors import SourceError
from stoker.sources.columns import HELD_ROWS, GrowingColumn, GrowingNames, chunks, new_column, random_access, row_range
from stoker.sources.sorting import RowsByPath, divided

if TYPE_CHECKING:
    import mmap
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray


SPLITS = ("train", "validation", "test")
"""Every split there can be, in the order of the table."""

_ROWS_AT_A_TIME = 2**14
_MAX_GROUPS = 2**17
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
        starts[0] = 0
        data = np.frombuffer(self.names, np.uint8)
        for first in range(0, len(rows), _ROWS_AT_A_TIME):
            last = min(first + _ROWS_AT_A_TIME, len(rows))
            some = rows[first:last]
            lengths = self.starts[some + 1] - self.starts[some]
            ends = np.cumsum(lengths)
            names.append(data[np.repeat(self.starts[some] - (ends - lengths), lengths) + np.arange(ends[-1])].tobytes())
            starts[first + 1 : last + 1] = starts[first] + ends
            for name, column in columns.items():
                column[first:last] = getattr(self, name)[some]
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
        self._names = GrowingNames()
        self._starts = GrowingColumn("q", 0)
        self._group_of = GrowingColumn("i")
        self._sizes = GrowingColumn("q")
        self._offsets = GrowingColumn("q")
        self._collected: _Collected | None = None

    def __len__(self) -> int:
        return len(self._group_of)

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
        self._starts.append(self._names.append(path))
        self._group_of.append(group)
        self._sizes.append(size_bytes)
        self._offsets.append(offset)

    def add_folder(self, group: int, folder: bytes, files: Sequence[tuple[bytes, int]]) -> None:
        """Append images of a group as `add` does, given the path of each below a folder and its bytes."""
        for first, last in chunks(len(files)):
            paths, sizes = zip(*files[first:last], strict=True)
            end = self._names.append(folder + folder.join(paths))
            ends = np.cumsum(np.fromiter(map(len, paths), np.int64, len(paths)) + len(folder))
            self._starts.extend(ends + (end - ends[-1]))
            self._group_of.extend(np.full(len(paths), group, np.int32))
            self._sizes.extend(np.asarray(sizes, np.int64))
            self._offsets.extend(np.zeros(len(paths), np.int64))

    def _all(self) -> _Collected:
        if self._collected is None:
            columns = (self._starts, self._group_of, self._sizes, self._offsets)
            self._collected = _Collected(self._names.finish(), *(column.finish() for column in columns))
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
        with random_access(all_.groups, *(getattr(table, name) for name in ("names", "starts", *_NUMBERS))):
            order, ends = self._order(table, all_.groups, ranks)
            if len(order) < count or not all(
                bool((order[first:end] == np.arange(first, end)).all()) for first, end in chunks(len(order))
            ):
                table = table.take(order)
        self._collected = None  # the table has the columns, or a copy of what it needs of them
        found = {SPLITS[split] for split in splits if split >= 0}
        bounds = pairwise((0, *ends))
        return table, {
            split: row_range(first, end - first)
            for split, (first, end) in zip(SPLITS, bounds, strict=True)
            if split in found
        }

    def _order(
        self, table: ItemTable, groups: NDArray[np.int32], ranks: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], list[int]]:
        """Return the rows in their order, without those that are left out or replaced; and where each split ends.

        Args:
            table: The rows.
            groups: int32 (N,): the group of each row.
            ranks: int64 (groups,): by which they are sorted first; rows with a negative one are left out.
        """
        ranks, numbers = np.unique(ranks, return_inverse=True)
        numbers -= int(np.searchsorted(ranks, 0))
        ranks = ranks[ranks >= 0]
        prefixes = np.asarray([group.prefix_bytes for group in self.groups], np.int64)
        by_path = RowsByPath(table.names, table.starts, lambda rows: prefixes[groups[rows]])
        rows, bounds = divided(row_range(0, len(groups)), lambda rows: numbers[groups[rows]], len(ranks))
        at, ends = 0, [0] * len(SPLITS)
        for rank, (first, end) in zip(ranks.tolist(), pairwise(bounds), strict=True):
            for some in by_path.sorted(rows[first:end]):
                kept = self._without_replaced(table, groups, some)
                rows[at : at + len(kept)] = kept  # never beyond what has been sorted
                at += len(kept)
            ends[rank // 2**32 :] = [at] * (len(SPLITS) - rank // 2**32)
        return rows[:at], ends

    def _without_replaced(
        self, table: ItemTable, groups: NDArray[np.int32], rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return sorted rows without members of tars that the next row replaces."""
        archives = table.archives[rows]
        same = np.flatnonzero((archives[1:] == archives[:-1]) & (archives[1:] >= 0))
        pairs = zip(same.tolist(), rows[same].tolist(), rows[same + 1].tolist(), strict=True)
        replaced = [
            at
            for at, row, following in pairs
            if table.path(row) == table.path(following)
            and self.groups[groups[row]].prefix_bytes == self.groups[groups[following]].prefix_bytes
        ]
        self.repeated += len(replaced)
        return np.delete(rows, replaced)


@dataclass(slots=True)
class _Collected:
    """The columns of an `ItemCollector`, in the order in which images were added."""

    names: bytes | mmap.mmap
    starts: NDArray[np.int64]
    groups: NDArray[np.int32]
    sizes: NDArray[np.int64]
    offsets: NDArray[np.int64]

    def path(self, row: int) -> bytes:
        """Return the path of one image."""
        return self.names[self.starts[row] : self.starts[row + 1]]
