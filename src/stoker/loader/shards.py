"""A shard of a dataset, wherever it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.errors import IndexMismatchError, TruncatedShardError
from stoker.format import read_index, read_index_file

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from stoker.format import InflatedShard
    from stoker.storage import Location


@dataclass(frozen=True, slots=True)
class OpenShard:
    """A shard and where its records lie.

    Attributes:
        path: Its path.
        records: How many records it has.
        size_bytes: Sum of their frames, which is its length before any compression.
        index: The index to be read when the extents are asked for; None if they are known.
        rows: The extents, if they are known.
        inflated: The shard without its compression; None if it has none.
        stamp: Stands for the content of a shard in a store; empty for others, and where the store knows nothing.
    """

    path: Location
    records: int
    size_bytes: int
    index: Location | Path | None = None
    rows: NDArray[np.uint64] | None = None
    inflated: InflatedShard | None = None
    stamp: str = ""

    @classmethod
    def of(cls, path: Location, rows: NDArray[np.uint64], inflated: InflatedShard | None = None) -> OpenShard:
        """Return a shard with known extents."""
        return cls(path, len(rows), int(rows[:, 1].sum()), None, rows, inflated)

    @property
    def local_path(self) -> Path:
        """Its path, for what reads files of this machine only.

        Raises:
            ConfigError: It is in a store.
        """
        return self.path.local_path()

    @property
    def extents(self) -> NDArray[np.uint64]:
        """uint64 (N, 2) of (offset, size) of each whole frame, in bytes, before any compression.

        Raises:
            IndexMismatchError: The index, which had not been read yet, is that of another file.
        """
        if self.rows is not None:
            return self.rows
        if self.index is not None and not self.path.is_local:
            return read_index_file(self.index, self.size_bytes)
        return read_index(self.path, self.size_bytes)


def check_length(path: Location, found: int, listed: int) -> None:
    """See that a shard is as long as the manifest says.

    Raises:
        TruncatedShardError: It is shorter or longer.
    """
    if found != listed:
        message = f"{path} has {found} bytes, but manifest.json says {listed}; restore it, or build again"
        raise TruncatedShardError(message, path=str(path), offset=min(found, listed))


def with_records(shard: OpenShard, listed: int) -> OpenShard:
    """Return a shard that has as many records as the manifest says.

    Raises:
        IndexMismatchError: It has another number of them.
    """
    if shard.records != listed:
        message = f"the index of {shard.path} lists {shard.records} records, but manifest.json says {listed}"
        raise IndexMismatchError(f"{message}; write it anew with 'stoker index'", path=str(shard.path))
    return shard
