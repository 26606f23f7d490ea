"""Shards in stores: which there are, and where their records lie.

The order of an epoch and the place of every sample must be known before anything is read, so the indexes are fetched
when a dataset is opened, many at a time, and kept as files in the user's cache (`stoker.format.index`): the next
opening fetches none. Shards without an index are read through once, and what was found is kept in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import ConfigError, CorruptRecordError, DatasetNotFoundError, TruncatedShardError
from stoker.format import (
    FRAME_BYTES,
    HEADER_BYTES,
    KeptIndex,
    compression_of_head,
    find_shards,
    index_places,
    inflate,
    parse_shard_name,
    payload_length,
    read_index_file,
    refuse_incomplete,
)
from stoker.loader.shards import OpenShard, check_length, with_records
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.format import Shard
    from stoker.storage import Location


# Finding the records of a shard in a store that has no index: by reading it through.


_CHUNK_BYTES = 8 << 20


def scan_remote(path: Location, size_bytes: int) -> NDArray[np.uint64]:
    """Return where the records of a shard lie, uint64 (N, 2) of (offset, size) of each whole frame, in bytes.

    The checksum of every length is verified, payloads are left to whoever reads them. Payloads that are longer than a
    chunk of 8 MiB are not fetched.

    Raises:
        TruncatedShardError: The shard ends inside a record.
        CorruptRecordError: The checksum of a length does not match.
        OSError: The store cannot be read.
    """
    rows: list[tuple[int, int]] = []
    at, start, chunk = 0, 0, memoryview(b"")
    while at < size_bytes:
        if size_bytes - at < FRAME_BYTES:
            raise _cut_short(path, len(rows), at, size_bytes)
        if not start <= at <= start + len(chunk) - HEADER_BYTES:
            chunk = memoryview(path.read_range(at, min(_CHUNK_BYTES, size_bytes - at), known_size=size_bytes))
            start = at
        length = payload_length(bytes(chunk[at - start : at - start + HEADER_BYTES]))
        if length is None:
            raise _wrong_length(path, len(rows), at)
        size = FRAME_BYTES + length
        if size > size_bytes - at:
            raise _cut_short(path, len(rows), at, size_bytes)
        rows.append((at, size))
        at += size
    return np.array(rows, np.uint64).reshape(-1, 2)


def _wrong_length(path: Location, record: int, offset: int) -> CorruptRecordError:
    message = f"record {record} at byte {offset} of {path}: the checksum of its length does not match"
    return CorruptRecordError(f"{message}; restore the shard", path=str(path), record=record, offset=offset)


def _cut_short(path: Location, record: int, offset: int, size_bytes: int) -> TruncatedShardError:
    message = f"record {record} at byte {offset} of {path}: it goes beyond the end of the shard at byte {size_bytes}"
    return TruncatedShardError(
        f"{message}; restore it, or build it again", path=str(path), record=record, offset=offset
    )


CONNECTIONS = 32
"""Requests at a time while a dataset is opened."""


@dataclass(frozen=True, slots=True)
class RemoteShard:
    """A shard as a listing knows it.

    Attributes:
        path: Its path.
        size_bytes: Its length.
        stamp: Stands for its content.
        indexes: Where its index may be, of these what exists.
    """

    path: Location
    size_bytes: int
    stamp: str
    indexes: tuple[Location, ...]

    def kept(self) -> KeptIndex:
        """Return the place of its index in the user's cache."""
        return KeptIndex.of_remote(str(self.path), self.size_bytes, self.stamp)

    def fetch_rows(self) -> NDArray[np.uint64]:
        """Return where its records lie, by its index in the store, or else by reading all of it.

        Raises:
            IndexMismatchError: The index is that of another file.
            ShardError: There is no index, and the shard is damaged.
            OSError: The store cannot be read.
        """
        if not self.indexes:
            return scan_remote(self.path, self.size_bytes)
        return read_index_file(self.indexes[0], self.size_bytes)


class RemoteFolder:
    """What lies below a directory of a store, listed once.

    Args:
        place: The directory.

    Raises:
        OSError: It cannot be listed.
    """

    def __init__(self, place: Location) -> None:
        self.place = place
        self._look_up = place.snapshot()

    def shard(self, path: Location, stamp: str | None = None) -> RemoteShard:
        """Return one of its shards.

        Raises:
            DatasetNotFoundError: It is missing.
        """
        info = self._look_up(self._name(path))
        if info is None:
            raise DatasetNotFoundError(f"shard {path} is missing; restore it, or build again", path=str(path))
        indexes = tuple(place for place in index_places(path) if self._look_up(self._name(place)) is not None)
        return RemoteShard(path, info.size_bytes, info.stamp if stamp is None else stamp, indexes)

    def _name(self, path: Location) -> str:
        return "/".join(path.parts[len(self.place.parts) :]) if self.place in path.parents else ""

    def listed_shards(self, listed: Sequence[Shard], *, plain: bool) -> tuple[OpenShard, ...]:
        """Return the shards of a manifest; the indexes of plain ones are in the user's cache then.

        Raises:
            DatasetNotFoundError: One is missing.
            TruncatedShardError: One is shorter or longer than listed.
            IndexMismatchError: An index is that of another file, or lists another number of records.
            ShardError: One without an index, or a compressed one, is damaged.
        """
        shards = [self.shard(self.place / each.name, f"{each.crc32c:08x}") for each in listed]
        for shard, each in zip(shards, listed, strict=True):
            check_length(shard.path, shard.size_bytes, each.size_bytes)
        opened = open_remote_shards(shards, plain=plain, counts=[each.records for each in listed])
        return tuple(with_records(shard, each.records) for shard, each in zip(opened, listed, strict=True))

    def splits(self) -> dict[str, list[RemoteShard]]:
        """Return its shards by split, as `stoker.format.directory.find_shards` finds those of a local directory.

        Raises:
            DatasetNotFoundError: The names of the shards promise others that are not there.
        """
        found = find_shards(self.place)
        refuse_incomplete(self.place, found)
        return {name: [self.shard(path) for path in split.paths] for name, split in found.items()}


def foreign_remote_splits(place: Location) -> dict[str, list[RemoteShard]]:
    """Return the shards that a directory, an object or a pattern names, by split; empty if there are none.

    Raises:
        DatasetNotFoundError: The names of the shards promise others that are not there.
        OSError: The store cannot be read.
    """
    found = [place] if place.is_file() else [] if place.is_dir() else place.matching()
    if not found:
        return RemoteFolder(place).splits()
    folder = RemoteFolder(place.parent)
    groups: dict[str, list[RemoteShard]] = {}
    for path in found:
        said = parse_shard_name(path.name)
        if said is not None:
            groups.setdefault(said.split, []).append(folder.shard(path))
    return groups


def open_remote_shards(
    shards: Sequence[RemoteShard], *, plain: bool | None = None, counts: Sequence[int] | None = None
) -> tuple[OpenShard, ...]:
    """Open shards, many at a time.

    Args:
        shards: Which.
        plain: Whether none is compressed; None: as their first bytes say.
        counts: How many records each has, if that is known: then its index need not be looked at when it is kept.

    Raises:
        ConfigError: Some are compressed and some are not.
        ShardError: One is damaged.
    """
    with stoppable_pool(CONNECTIONS, "stoker-open") as pool:
        if plain is None:
            kinds = set(pool.map(_is_plain, shards))
            if len(kinds) > 1:
                raise ConfigError(f"{shards[0].path.parent} holds compressed shards and others; keep them apart")
            plain = kinds != {False}
        if plain:
            return tuple(pool.map(_open_plain, shards, counts or [None] * len(shards)))
    with stoppable_pool(available_cpus(), "stoker-open") as pool:
        return tuple(pool.map(_open_compressed, shards))


def read_anew(shard: OpenShard) -> OpenShard:
    """Open a shard again whose kept index was damaged; a new one is kept.

    Raises:
        IndexMismatchError: Its index in the store is that of another file, or lists another number of records.
        ShardError: It has none, and is damaged.
        OSError: The store cannot be read.
    """
    path = shard.path
    indexes = tuple(place for place in index_places(path) if place.is_file())
    told = RemoteShard(path, shard.size_bytes, shard.stamp, indexes)
    rows = told.fetch_rows()
    told.kept().write(rows)
    return with_records(replace(OpenShard.of(path, rows), stamp=shard.stamp), shard.records)


def _open_plain(shard: RemoteShard, count: int | None) -> OpenShard:
    kept = shard.kept()
    if count is not None and kept.may_list(count):
        return OpenShard(shard.path, count, shard.size_bytes, kept.path, stamp=shard.stamp)
    rows = kept.read()
    if rows is None:
        rows = shard.fetch_rows()
        kept.write(rows)
    if count == len(rows) and kept.may_list(count):
        return OpenShard(shard.path, count, shard.size_bytes, kept.path, stamp=shard.stamp)
    return replace(OpenShard.of(shard.path, rows), stamp=shard.stamp)


def _open_compressed(shard: RemoteShard) -> OpenShard:
    inflated = inflate(shard.path)
    return OpenShard.of(shard.path, _native.scan_shard(str(inflated.path), check=False), inflated)


def _is_plain(shard: RemoteShard) -> bool:
    head = shard.path.read_range(0, HEADER_BYTES, known_size=shard.size_bytes)
    return compression_of_head(head) == "none"
