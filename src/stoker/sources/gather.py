"""Images as they are met, put into the order of the table once all of them are known."""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import SourceError
from stoker.sources.items import ItemTable
from stoker.sources.tree import SPLITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray


_MAX_GROUPS = 2**17


@dataclass(slots=True)
class Group:
    """Images that have all of this in common.

    Attributes:
        split: Their split; None if they turned out to be no items.
        class_name: Their class; None if they have no label.
        below: How many bytes of their paths lie above the class; the rest orders them inside the class.
        archive: The tar they lie in; -1 for files of their own.
    """

    split: str | None
    class_name: bytes | None
    below: int = 0
    archive: int = -1


class Gathering:
    """Collects images in any order.

    Attributes:
        groups: All groups; those without images too, so that an empty class keeps its label.
        repeated: Members of a tar that a later one of the same name replaces, as unpacking would; known after
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

    def group(self, group: Group) -> int:
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

    def name(self, row: int) -> bytes:
        """Return the name of an image without its folders."""
        path = self._names.getbuffer()[self._starts[row] : self._starts[row + 1]].tobytes()
        return path[path.rfind(b"/") + 1 :]

    def rows_by(self, number_of: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
        """Yield each number and the images that have it, ascending.

        Args:
            number_of: int64, (groups,): number of the images of each group; what is negative is left out.
        """
        numbers = number_of[np.array(self._groups, np.int32)] if len(self._groups) else np.empty(0, np.int64)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        for number in np.unique(ordered[ordered >= 0]).tolist():
            first, last = np.searchsorted(ordered, [number, number + 1])
            yield number, order[first:last].tolist()

    def set_sizes(self, rows: Iterable[int], sizes: Iterable[int]) -> None:
        """Say how many bytes some images have."""
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
        table = self._table(groups, np.asarray(labels, np.int32))
        # One integer for split and label; a negative one for what is no item.
        ranks = np.asarray(splits, np.int64) * 2**32 + np.asarray(labels, np.int64) + 1
        order, kept_ranks = self._order(table, ranks[groups] if len(groups) else np.empty(0, np.int64))
        if len(order) < len(table) or bool(np.any(order != np.arange(len(order)))):
            table = table.take(order)
        self._forget()
        ends = np.searchsorted(kept_ranks, np.arange(len(SPLITS) + 1, dtype=np.int64) * 2**32)
        found = {SPLITS[split] for split in splits if split >= 0}
        return table, {
            split: np.arange(ends[at], ends[at + 1], dtype=np.int64)
            for at, split in enumerate(SPLITS)
            if split in found
        }

    def _forget(self) -> None:
        """Let go of the columns, which the table has or no longer needs."""
        self._names = io.BytesIO()
        self._starts, self._sizes, self._offsets = array("q"), array("q"), array("q")
        self._groups = array("i")

    def _table(self, groups: NDArray[np.int32], labels: NDArray[np.int32]) -> ItemTable:
        archives = np.asarray([group.archive for group in self.groups], np.int32)
        some = len(groups) > 0
        return ItemTable(
            names=self._names.getvalue(),
            starts=np.frombuffer(self._starts, np.int64),
            labels=labels[groups] if some else np.empty(0, np.int32),
            sizes=np.frombuffer(self._sizes, np.int64),
            archives=archives[groups] if some else np.empty(0, np.int32),
            offsets=np.frombuffer(self._offsets, np.int64),
            objects=np.broadcast_to(np.int32(-1), len(groups)),
        )

    def _order(self, table: ItemTable, ranks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows in their order and the rank of each; without what is no item or is replaced."""
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
        below = [self.groups[self._groups[row]].below for row in rows]
        keys = [table.path(row)[skip:] for row, skip in zip(rows, below, strict=True)]
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
