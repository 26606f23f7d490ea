"""The images of a source as one table: about 60 bytes an item for ImageNet's names, in files where they are millions.

`ItemCollector` takes the images as a listing meets them and puts them into the order of the table once all of them are
known; `ItemTableBuilder` keeps the order in which they are added.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import SourceError
from stoker.sources.columns import (
    HELD_ROWS,
    Blobs,
    GrowingBlobs,
    GrowingColumn,
    RowsByPath,
    chunks,
    divided,
    new_column,
    random_access,
    row_range,
    taken,
)
from stoker.storage import without_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.sources.columns import Column


SPLITS = ("train", "validation", "test")
"""Every split there can be, in the order of the table."""

_ROWS_AT_A_TIME = 2**14
_MAX_GROUPS = 2**17
_NUMBERS = ("labels", "sizes", "numbers", "objects")
_NO_COLUMNS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Item:
    """One source image.

    Attributes:
        path: Where it lies, as the file system or the archive spells it: below the base of the source, absolute, or
            inside its archive. A tar inside a tar counts as a folder.
        label: Index into the classes of the source (0-based, before any label base); -1 when it has none.
        size_bytes: Its size when it was listed.
        number: Its position in the listing, or in the sequences that it comes from, one after another.
        object: Index of the annotated object that is meant; -1 for the whole image.
        columns: What else its kind of source has of it: where its bytes are in an archive, for example.
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
        labels: int32 (N,): class index of each item; -1 when it has none.
        sizes: int64 (N,): bytes of each image when it was listed.
        numbers: int64 (N,): position of each item in the listing.
        objects: int32 (N,): the object of the image that is meant; -1 for the whole image.
        columns: The columns of its kind of source, by name.
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
        """Return a row for each image, however many of its objects are items: int64, in the order of the listing."""
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
        """Return the values of the columns of its kind of some rows, by the names of the columns."""
        if not self.columns:
            return repeat(_NO_COLUMNS, last - first)
        values = (
            column.values(first, last) if isinstance(column, Blobs) else column[first:last].tolist()
            for column in self.columns.values()
        )
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*values, strict=True))

    def take(self, rows: NDArray[np.int64]) -> ItemTable:
        """Return a table of the given rows, in that order, with all columns; it shares nothing with this one."""
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
    """Images that have all of this in common."""

    split: str | None  # their split; None if they turned out not to be items
    class_name: bytes | None  # their class; None if they have no label
    # length of the part of their paths that leads to the class; what follows it orders them inside the class
    prefix_bytes: int = 0
    tar: int = -1  # the tar they lie in; -1 for anything else


class ItemCollector:
    """Collects images in any order."""

    def __init__(self) -> None:
        self.groups: list[Group] = []  # those without images too, so that an empty class keeps its label
        # those of the kind of source: values of all images in the order in which they were added, set before `finish`
        self.columns: dict[str, Column] = {}
        # how many members of tars a later one of the same name replaces, as unpacking would; known after `finish`
        self.repeated = 0
        self._number_of: dict[tuple[str, bytes | None, int], int] = {}
        self._paths = GrowingBlobs()
        self._group_of = GrowingColumn("i")
        self._sizes = GrowingColumn("q")
        self._collected: tuple[Blobs, NDArray[np.int32], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self._group_of)

    def group(self, split: str, class_name: bytes | None = None, prefix_bytes: int = 0) -> int:
        """Return the number of a group of files, which is added once; see `Group`."""
        key = split, class_name, prefix_bytes
        if key not in self._number_of:
            self._number_of[key] = self.add_group(Group(*key))
        return self._number_of[key]

    def add_group(self, group: Group) -> int:
        """Add a group that whoever adds it may change, and return its number."""
        if len(self.groups) == _MAX_GROUPS:
            raise SourceError(f"the source has more than {_MAX_GROUPS} folders; put the images of a class into one")
        self.groups.append(group)
        return len(self.groups) - 1

    def add(self, group: int, path: bytes, size_bytes: int) -> None:
        """Append one image of a group; not after one has been asked for."""
        self._paths.append(path)
        self._group_of.append(group)
        self._sizes.append(size_bytes)

    def add_folder(self, group: int, folder: bytes, files: Sequence[tuple[bytes, int]]) -> None:
        """Append images of a group as `add` does, given the path of each below a folder and its bytes."""
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
        """Yield each number and the images that have it, ascending; of millions of images so many at a time.

        The numbers are those of groups: int64, (groups,); images of negative ones are omitted.
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
        """Set the split of each image, in the order in which they were added; those without one are left out."""
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
        # One integer for split and label; a negative one for what is not an item.
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
        """Return the rows in their order, without those that are left out or replaced; and where each split ends.

        They are sorted by the ranks of their groups first: int64 (groups,); those with a negative one are left out.
        """
        ranks, numbers = np.unique(ranks, return_inverse=True)
        numbers -= int(np.searchsorted(ranks, 0))
        ranks = ranks[ranks >= 0]
        in_tars = np.asarray([(group.tar, group.prefix_bytes) for group in self.groups], np.int64).reshape(-1, 2)
        by_path = RowsByPath(table.paths, lambda rows: in_tars[groups[rows], 1])
        rows, bounds = divided(row_range(0, len(groups)), lambda rows: numbers[groups[rows]], len(ranks))
        at, ends = 0, [0] * len(SPLITS)
        for rank, (first, end) in zip(ranks.tolist(), pairwise(bounds), strict=True):
            for some in by_path.sorted(rows[first:end]):
                kept = self._without_replaced(table.paths, some, in_tars[groups[some]])
                rows[at : at + len(kept)] = kept  # never beyond what has been sorted
                at += len(kept)
            ends[rank // 2**32 :] = [at] * (len(SPLITS) - rank // 2**32)
        return rows[:at], ends

    def _without_replaced(self, paths: Blobs, rows: NDArray[np.int64], tars: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return sorted rows without members of tars that the next row replaces.

        ``tars`` has the tar of each of these, or -1, and how many bytes of its path do not count: int64 (rows, 2).
        """
        same = np.flatnonzero((tars[1:, 0] >= 0) & (tars[1:] == tars[:-1]).all(axis=1))
        pairs = zip(same.tolist(), rows[same].tolist(), rows[same + 1].tolist(), strict=True)
        replaced = [at for at, row, following in pairs if paths[row] == paths[following]]
        self.repeated += len(replaced)
        return np.delete(rows, replaced)
