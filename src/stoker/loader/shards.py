"""The shards of a split, on this machine or in a store, and where their records lie.

On this machine, an index lies beside each shard. A shard without an index is scanned, and the new index is saved:
beside the shard if it is of a dataset, in the user's cache if it is of other origin, because then the directory is not
ours (`stoker index` writes it beside them). The manifest of a dataset says how many records each shard has, so the
order of an epoch and the numbers of samples need no index. Opening checks the lengths of every shard and its index.
With up to four million records it reads the indexes too, on all CPUs; with more, an index is read with the first record
of its shard. See `docs/reference/format.md`.

In a store, the position of every sample must be known before anything is read. So opening a dataset fetches the
indexes, many at a time, and saves them in the user's cache (`stoker.format.index`) for the next opening. A shard
without an index is read through once, and its new index is saved there, too.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import (
    ConfigError,
    CorruptRecordError,
    DatasetNotFoundError,
    IndexMismatchError,
    ShardError,
    TruncatedShardError,
    record_error,
)
from stoker.format import (
    FRAME_BYTES,
    HEADER_BYTES,
    CachedIndex,
    compression_of,
    compression_of_head,
    index_candidates,
    inflate,
    new_index_name,
    payload_length,
    read_index,
    read_index_file,
    write_index,
)
from stoker.storage import error_about, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.format import InflatedShard, Shard
    from stoker.storage import Location

_T = TypeVar("_T")

_CONNECTIONS = 32  # requests at a time while shards in a store are opened
_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class OpenShard:
    """A shard and where its records lie."""

    path: Location
    records: int  # how many records it has
    size_bytes: int  # sum of their frames, which is its length before any compression
    index: Location | Path | None = None  # the index to be read when the extents are asked for; None if they are known
    rows: NDArray[np.uint64] | None = None  # the extents, if they are known
    inflated: InflatedShard | None = None  # the shard without its compression; None if it has none
    stamp: str = ""  # identifies the content of a shard in a store; empty for others, and if the store does not say

    @classmethod
    def of(cls, path: Location, rows: NDArray[np.uint64], inflated: InflatedShard | None = None) -> OpenShard:
        """Return a shard with known extents."""
        return cls(path, len(rows), int(rows[:, 1].sum()), None, rows, inflated)

    @property
    def local_path(self) -> Path:
        """Its path, for code that reads only local files."""
        return self.path.local_path()

    @property
    def extents(self) -> NDArray[np.uint64]:
        """uint64 (N, 2) of (offset, size) of each whole frame, in bytes, before any compression."""
        if self.rows is not None:
            return self.rows
        if self.index is not None and not self.path.is_local:
            return read_index_file(self.index, self.size_bytes)
        return read_index(self.path, self.size_bytes)


def open_found(root: Location, paths: Sequence[Location]) -> tuple[OpenShard, ...]:
    """Open the shards of a split that lie at a path."""
    if root.is_local:
        return _open_all(partial(_open_file, write_beside=False), paths)
    folder = _StoreFolder(root if root in paths[0].parents else root.parent)
    return _open_objects([folder.find(path) for path in paths])


def listed_shards(directory: Location, listed: Sequence[Shard], *, plain: bool) -> tuple[OpenShard, ...]:
    """Return the shards of a manifest; local uncompressed ones are not checked yet: `open_listed` does that."""
    if not directory.is_local:
        folder = _StoreFolder(directory)
        objects = [folder.find(directory / each.name, f"{each.crc32c:08x}") for each in listed]
        for shard, each in zip(objects, listed, strict=True):
            _check_length(shard.path, shard.size_bytes, each.size_bytes)
        opened = _open_objects(objects, plain=plain, counts=[each.records for each in listed])
        return tuple(_with_records(shard, each.records) for shard, each in zip(opened, listed, strict=True))
    if plain:
        return tuple(
            OpenShard(directory / shard.name, shard.records, shard.size_bytes, directory / new_index_name(shard.name))
            for shard in listed
        )
    return _open_all(lambda shard: _open_listed_file(directory / shard.name, shard), listed)


def open_listed(
    records: _native.RecordSet, shards: Sequence[OpenShard], listed: Sequence[Shard]
) -> tuple[OpenShard, ...]:
    """Check plain shards of `listed_shards`, reopen those that are not as listed, and correct their reader."""

    def open_again(number: int) -> OpenShard:
        shard = shards[number]
        return _open_listed_file(shard.path, listed[number]) if shard.path.is_local else _read_anew(shard)

    corrected = list(shards)
    differing = records.open_listed(available_cpus())
    for number, shard in zip(differing, _open_all(open_again, differing), strict=True):
        records.set_extents(number, shard.extents)
        corrected[number] = shard
    return tuple(corrected)


def _check_length(path: Location, size_bytes: int, listed: int) -> None:
    if size_bytes != listed:
        message = f"{path} has {size_bytes} bytes, but manifest.json says {listed}; restore it, or build again"
        raise TruncatedShardError(message, path=str(path), offset=min(size_bytes, listed))


def _with_records(shard: OpenShard, listed: int) -> OpenShard:
    if shard.records != listed:
        message = f"the index of {shard.path} lists {shard.records} records, but manifest.json says {listed}"
        raise IndexMismatchError(f"{message}; write it again with 'stoker index'", path=str(shard.path))
    return shard


# On this machine.


def _open_all(open_one: Callable[[_T], OpenShard], shards: Sequence[_T]) -> tuple[OpenShard, ...]:
    """Open shards in parallel: scanning and inflating release the GIL."""
    with stoppable_pool(min(available_cpus(), max(1, len(shards))), "stoker-open") as pool:
        return tuple(pool.map(open_one, shards))


def _open_listed_file(path: Location, listed: Shard) -> OpenShard:
    _check_length(path, _size_of(path), listed.size_bytes)
    return _with_records(_open_file(path, write_beside=True), listed.records)


def _open_file(path: Location, *, write_beside: bool) -> OpenShard:
    """Open a shard by its index or by a scan, which is kept; a compressed one is inflated."""
    size_bytes = _size_of(path)
    if size_bytes and compression_of(path) != "none":
        return _open_compressed(path)
    try:
        return OpenShard.of(path, read_index(path, size_bytes))
    except FileNotFoundError:
        cached_index = CachedIndex.of(path.local_path())
    rows = cached_index.read()
    if rows is None:
        rows = _native.scan_shard(str(path), check=False)
        written = False
        if write_beside:
            with contextlib.suppress(OSError):  # a read-only folder
                written = write_index(path, rows).is_file()
        if not written:
            cached_index.write(rows)
    return OpenShard.of(path, rows)


def _open_compressed(path: Location) -> OpenShard:
    inflated = inflate(path)
    try:
        rows = _native.scan_shard(str(inflated.path), check=False)
    except ShardError as error:
        raise error_about(error, inflated.path, str(path)) from error
    return OpenShard.of(path, rows, inflated)


def _size_of(path: Location) -> int:
    try:
        return path.size()
    except FileNotFoundError as error:
        raise _missing(path) from error


def _missing(path: Location) -> DatasetNotFoundError:
    return DatasetNotFoundError(f"shard {path} is missing; restore it, or build again", path=str(path))


# In a store.


@dataclass(frozen=True, slots=True)
class _ListedObject:
    path: Location
    size_bytes: int
    stamp: str  # identifies its content
    indexes: tuple[Location, ...]  # the files that may be its index and exist

    def cached_index(self) -> CachedIndex:
        return CachedIndex.of_remote(str(self.path), self.size_bytes, self.stamp)

    def fetch_rows(self) -> NDArray[np.uint64]:
        """Return where its records lie, by its index in the store, or else by reading all of it."""
        if not self.indexes:
            return _scan(self.path, self.size_bytes)
        return read_index_file(self.indexes[0], self.size_bytes)


class _StoreFolder:
    """The objects below a directory of a store, listed once."""

    def __init__(self, root: Location) -> None:
        self._root = root
        self._look_up = root.snapshot()

    def find(self, path: Location, stamp: str | None = None) -> _ListedObject:
        """Return a shard in it; ``stamp`` identifies its content, if that is known."""
        info = self._look_up(self._name(path))
        if info is None:
            raise _missing(path)
        indexes = tuple(index for index in index_candidates(path) if self._look_up(self._name(index)) is not None)
        return _ListedObject(path, info.size_bytes, info.stamp if stamp is None else stamp, indexes)

    def _name(self, path: Location) -> str:
        return "/".join(path.parts[len(self._root.parts) :]) if self._root in path.parents else ""


def _open_objects(
    shards: Sequence[_ListedObject], *, plain: bool | None = None, counts: Sequence[int] | None = None
) -> tuple[OpenShard, ...]:
    """Open shards, many at a time; unless ``plain`` says so, their first bytes tell whether they are compressed."""
    with stoppable_pool(_CONNECTIONS, "stoker-open") as pool:
        if plain is None:
            kinds = set(pool.map(_is_plain, shards))
            if len(kinds) > 1:
                raise ConfigError(f"{shards[0].path.parent} holds compressed shards and others; keep them apart")
            plain = kinds != {False}
        if plain:
            return tuple(pool.map(_open_plain, shards, counts or [None] * len(shards)))
    return _open_all(lambda shard: _open_compressed(shard.path), shards)


def _read_anew(shard: OpenShard) -> OpenShard:
    """Open a shard again whose cached index was damaged; a new one is cached."""
    path = shard.path
    indexes = tuple(index for index in index_candidates(path) if index.is_file())
    known = _ListedObject(path, shard.size_bytes, shard.stamp, indexes)
    rows = known.fetch_rows()
    known.cached_index().write(rows)
    return _with_records(replace(OpenShard.of(path, rows), stamp=shard.stamp), shard.records)


def _open_plain(shard: _ListedObject, count: int | None) -> OpenShard:
    cached_index = shard.cached_index()
    if count is None or not cached_index.may_list(count):
        rows = cached_index.read()
        if rows is None:
            rows = shard.fetch_rows()
            cached_index.write(rows)
        if count != len(rows) or not cached_index.may_list(count):
            return replace(OpenShard.of(shard.path, rows), stamp=shard.stamp)
    return OpenShard(shard.path, count, shard.size_bytes, cached_index.path, stamp=shard.stamp)


def _is_plain(shard: _ListedObject) -> bool:
    head = shard.path.read_range(0, HEADER_BYTES, known_size=shard.size_bytes)
    return compression_of_head(head) == "none"


def _scan(path: Location, size_bytes: int) -> NDArray[np.uint64]:
    """Return where the records of a shard lie, uint64 (N, 2) of (offset, size) of each whole frame, in bytes.

    The checksum of every length is verified, those of payloads are left to later reads. Payloads that are longer than a
    chunk of 8 MiB are not fetched.
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
            problem = "the checksum of its length does not match; restore the shard"
            raise record_error(CorruptRecordError, (str(path), len(rows), at), problem)
        size = FRAME_BYTES + length
        if size > size_bytes - at:
            raise _cut_short(path, len(rows), at, size_bytes)
        rows.append((at, size))
        at += size
    return np.array(rows, np.uint64).reshape(-1, 2)


def _cut_short(path: Location, record: int, offset: int, size_bytes: int) -> TruncatedShardError:
    problem = f"it goes beyond the end of the shard at byte {size_bytes}; restore it, or build it again"
    return record_error(TruncatedShardError, (str(path), record, offset), problem)
