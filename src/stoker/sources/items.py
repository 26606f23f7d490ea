"""The images of a source as one table: about 60 bytes an item for ImageNet's names.

`ItemCollector` takes the images as a listing meets them and puts them into the order of the table once all of them are
known; `ItemTableBuilder` keeps the order in which they are added.
"""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray


SPLITS = ("train", "validation", "test")
"""Every split there can be, in the order of the table."""

_ROWS_AT_A_TIME = 2**14
_MAX_GROUPS = 2**17


@dataclass(frozen=True, slots=True)
class Item:
    """One source image.

    Attributes:
        path: Where it lies, as the file system or the archive spells it: below the base of the source, absolute, or
            inside its archive. A tar inside a tar counts as a folder.
        label: Index into the classes of the source (0-based, before any label base); -1 when it has none.
        size_bytes: Its size when it was listed.
        archive: Index into the archives of the source; -1 for a file of its own.
        offset: Where its bytes begin in that archive; 0 for a file of its own.
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


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """Many items, as one blob of names and six arrays. Read-only; safe to share between threads.

    Attributes:
        names: The paths of all items, end to end.
        starts: int64 (N + 1,): where each path starts in ``names``, and the length of ``names``.
        labels: int32 (N,): class index of each item; -1 when it has none.
        sizes: int64 (N,): bytes of each image when it was listed.
        archives: int32 (N,): archive that each image lies in; -1 for a file of its own.
        offsets: int64 (N,): where each image begins in its archive; 0 for a file of its own.
        objects: int32 (N,): the object of the image that is meant; -1 for the whole image.
    """

    names: bytes
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
        for row in range(len(self)):
            yield self[row]

    def take(self, rows: NDArray[np.int64]) -> ItemTable:
        """Return a table of the given rows, in that order; it shares nothing with this one."""
        names = io.BytesIO()  # hands its bytes over without a copy
        for first in range(0, len(rows), _ROWS_AT_A_TIME):  # a Python int takes 40 bytes, so not all at once
            some = rows[first : first + _ROWS_AT_A_TIME]
            for start, end in zip(self.starts[some].tolist(), self.starts[some + 1].tolist(), strict=True):
                names.write(self.names[start:end])
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.starts[rows + 1] - self.starts[rows], out=starts[1:])
        return ItemTable(
            names.getvalue(),
            starts,
            self.labels[rows],
            self.sizes[rows],
            self.archives[rows],
            self.offsets[rows],
            self.objects[rows],
        )


class ItemTableBuilder:
    """Collects items in the order they are added."""

    def __init__(self) -> None:
        self._names = io.BytesIO()
        self._starts = array("q", [0])
        self._labels = array("i")
        self._sizes = array("q")
        self._archives = array("i")
        self._offsets = array("q")
        self._objects = array("i")

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, item: Item) -> None:
        """Append one item."""
        self._names.write(item.path)
        self._starts.append(self._names.tell())
        self._labels.append(item.label)
        self._sizes.append(item.size_bytes)
        self._archives.append(item.archive)
        self._offsets.append(item.offset)
        self._objects.append(item.object)

    def finish(self) -> ItemTable:
        """Return the table; the builder must not be used afterwards."""
        return ItemTable(
            self._names.getvalue(),
            np.frombuffer(self._starts, np.int64),
            np.frombuffer(self._labels, np.int32),
            np.frombuffer(self._sizes, np.int64),
            np.frombuffer(self._archives, np.int32),
            np.frombuffer(self._offsets, np.int64),
            np.frombuffer(self._objects, np.int32),
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
        self._names = io.BytesIO()
        self._starts = array("q", [0])
        self._groups = array("i")
        self._sizes = array("q")
        self._offsets = array("q")

    def __len__(self) -> int:
        return len(self._groups)

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
        """Append one image of a group."""
        self._names.write(path)
        self._starts.append(self._names.tell())
        self._groups.append(group)
        self._sizes.append(size_bytes)
        self._offsets.append(offset)

    def file_name(self, row: int) -> bytes:
        """Return the name of an image without its folders."""
        path = self._names.getbuffer()[self._starts[row] : self._starts[row + 1]].tobytes()
        return path[path.rfind(b"/") + 1 :]

    def rows_by(self, number_of: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
        """Yield each number and the images that have it, ascending.

        Args:
            number_of: int64, (groups,): number of the images of each group; images of negative ones are omitted.
        """
        numbers = number_of[np.array(self._groups, np.int32)] if len(self._groups) else np.empty(0, np.int64)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        for number in np.unique(ordered[ordered >= 0]).tolist():
            first, last = np.searchsorted(ordered, [number, number + 1])
            yield number, order[first:last].tolist()

    def set_sizes(self, rows: Iterable[int], sizes: Iterable[int]) -> None:
        """Set how many bytes some images have."""
        for row, size in zip(rows, sizes, strict=True):
            self._sizes[row] = size

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
        groups = np.frombuffer(self._groups, np.int32)
        table = ItemTable(
            names=self._names.getvalue(),
            starts=np.frombuffer(self._starts, np.int64),
            labels=np.asarray(labels, np.int32)[groups],
            sizes=np.frombuffer(self._sizes, np.int64),
            archives=np.asarray([group.archive for group in self.groups], np.int32)[groups],
            offsets=np.frombuffer(self._offsets, np.int64),
            objects=np.broadcast_to(np.int32(-1), len(groups)),
        )
        # One integer for split and label; a negative one for what is not an item.
        ranks = np.asarray(splits, np.int64) * 2**32 + np.asarray(labels, np.int64) + 1
        order, kept_ranks = self._order(table, ranks[groups])
        if len(order) < len(table) or bool(np.any(order != np.arange(len(order)))):
            table = table.take(order)
        self._free()
        ends = np.searchsorted(kept_ranks, np.arange(len(SPLITS) + 1, dtype=np.int64) * 2**32)
        found = {SPLITS[split] for split in splits if split >= 0}
        return table, {
            split: np.arange(ends[at], ends[at + 1], dtype=np.int64)
            for at, split in enumerate(SPLITS)
            if split in found
        }

    def _free(self) -> None:
        """Free the columns: the table has them, or a copy of what it needs of them."""
        self._names = io.BytesIO()
        self._starts, self._sizes, self._offsets = array("q"), array("q"), array("q")
        self._groups = array("i")

    def _order(self, table: ItemTable, ranks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows in their order and the rank of each, without those that are not items or are replaced."""
        order = np.argsort(ranks, kind="stable").astype(np.int64, copy=False)
        order = order[np.searchsorted(ranks[order], 0) :]
        kept = np.ones(len(order), bool)
        starts = np.flatnonzero(np.diff(ranks[order], prepend=-1)).tolist()
        for start, end in pairwise([*starts, len(order)]):
            rows, replaced = self._sort_class(table, order[start:end].tolist())
            order[start:end] = rows
            kept[[start + at for at in replaced]] = False
        self.repeated = int(len(kept) - np.count_nonzero(kept))
        order = order[kept]
        return order, ranks[order]

    def _sort_class(self, table: ItemTable, rows: list[int]) -> tuple[list[int], list[int]]:
        """Return the rows of one class in their order, and the places in it whose row the next one replaces."""
        keys = [table.path(row)[self.groups[self._groups[row]].prefix_bytes :] for row in rows]
        order = sorted(range(len(rows)), key=keys.__getitem__)
        replaced = [
            at
            for at, (row, following) in enumerate(pairwise(order))
            if keys[row] == keys[following] and self._same_member(table, rows[row], rows[following])
        ]
        return [rows[at] for at in order], replaced

    @staticmethod
    def _same_member(table: ItemTable, row: int, other: int) -> bool:
        same_archive = table.archives[row] == table.archives[other] >= 0
        return bool(same_archive) and table.path(row) == table.path(other)
