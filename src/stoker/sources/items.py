"""A list of images, held compactly: about 60 bytes an item for ImageNet's names."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Item:
    """One source image.

    Attributes:
        path: Its path below the root of the source, as the file system spells it.
        label: Index into the sorted class names (0-based, before any label base).
        size_bytes: Its size when it was listed.
    """

    path: bytes
    label: int
    size_bytes: int

    @property
    def key(self) -> str:
        """The path as text; bytes that are not UTF-8 survive as surrogate escapes."""
        return self.path.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable:
    """Many items, as one blob of names and three arrays. Read-only; safe to share between threads.

    Attributes:
        names: The paths of all items, end to end.
        starts: int64 (N + 1,): where each path starts in ``names``, and the length of ``names``.
        labels: int32 (N,): class index of each item.
        sizes: int64 (N,): bytes of each file when it was listed.
    """

    names: bytes
    starts: NDArray[np.int64]
    labels: NDArray[np.int32]
    sizes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, row: int) -> bytes:
        """Return the path of one item below the root."""
        return self.names[self.starts[row] : self.starts[row + 1]]

    def __getitem__(self, row: int) -> Item:
        return Item(self.path(row), int(self.labels[row]), int(self.sizes[row]))

    def __iter__(self) -> Iterator[Item]:
        starts = self.starts.tolist()
        for row, (label, size) in enumerate(zip(self.labels.tolist(), self.sizes.tolist(), strict=True)):
            yield Item(self.names[starts[row] : starts[row + 1]], label, size)

    def take(self, rows: NDArray[np.int64]) -> ItemTable:
        """Return a table of the given rows, in that order; it shares nothing with this one."""
        paths = [self.path(row) for row in rows.tolist()]
        starts = np.zeros(len(paths) + 1, np.int64)
        np.cumsum([len(path) for path in paths], out=starts[1:])
        return ItemTable(b"".join(paths), starts, self.labels[rows], self.sizes[rows])


class ItemTableBuilder:
    """Collects items in the order they are added."""

    def __init__(self) -> None:
        self._names = bytearray()
        self._starts = array("q", [0])
        self._labels = array("i")
        self._sizes = array("q")

    def __len__(self) -> int:
        return len(self._labels)

    def add(self, path: bytes, label: int, size_bytes: int) -> None:
        """Append one item."""
        self._names += path
        self._starts.append(len(self._names))
        self._labels.append(label)
        self._sizes.append(size_bytes)

    def finish(self) -> ItemTable:
        """Return the table; the builder must not be used afterwards."""
        return ItemTable(
            bytes(self._names),
            np.frombuffer(self._starts, np.int64),
            np.frombuffer(self._labels, np.int32),
            np.frombuffer(self._sizes, np.int64),
        )
