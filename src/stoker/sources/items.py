"""A list of images, held compactly: about 60 bytes an item for ImageNet's names."""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray


_ROWS_AT_A_TIME = 2**14


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

    @classmethod
    def of_files(
        cls, names: bytes, starts: NDArray[np.int64], labels: NDArray[np.int32], sizes: NDArray[np.int64]
    ) -> ItemTable:
        """Return a table of whole images that are files of their own; the three other columns take no memory."""
        none = np.broadcast_to(np.int32(-1), len(labels))
        return cls(names, starts, labels, sizes, none, np.broadcast_to(np.int64(0), len(labels)), none)

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
