"""Shards that a manifest lists: opened without reading what nobody has asked for yet.

The manifest knows how many records each shard has, so the order of an epoch and the place of a sample need no index.
Opening looks at every shard's length and index; up to four million records it reads the indexes too, on all CPUs.
Of more records an index is read when the first record of its shard is; see `docs/format.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stoker.config import available_cpus
from stoker.feed.foreign import open_shard, open_shards, size_of
from stoker.feed.open_shard import OpenShard, check_length, with_records
from stoker.feed.remote_opening import read_anew
from stoker.records.index import new_index_name
from stoker.storage import RemotePath

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from stoker import _native
    from stoker.feed.dataset import Dataset
    from stoker.records.manifest import Shard


def listed_shards(directory: Path, listed: Sequence[Shard]) -> tuple[OpenShard, ...]:
    """Return the plain shards of a manifest; nothing is looked at yet."""
    return tuple(
        OpenShard(directory / shard.name, shard.records, shard.size_bytes, directory / new_index_name(shard.name))
        for shard in listed
    )


def open_listed(dataset: Dataset, listed: Sequence[Shard]) -> None:
    """Look at the shards of a dataset, which are those of `listed_shards`, and open what is not as listed one by one.

    Raises:
        DatasetNotFoundError: One is missing.
        TruncatedShardError: One is shorter or longer than listed.
        IndexMismatchError: An index is that of another file, or lists another number of records.
        ShardError: One without an index is damaged.
    """
    records = cast("_native.RecordSet", dataset.records)
    odd = records.open_listed(available_cpus())
    opened = open_shards(lambda number: _open_again(dataset.shards[number], listed[number]), odd)
    shards = list(dataset.shards)
    for number, shard in zip(odd, opened, strict=True):
        records.set_extents(number, shard.extents)
        shards[number] = shard
    dataset.shards = tuple(shards)


def _open_again(shard: OpenShard, listed: Shard) -> OpenShard:
    if isinstance(shard.path, RemotePath):
        return read_anew(shard)
    return open_one(shard.path, listed)


def open_one(path: Path, listed: Shard) -> OpenShard:
    """Open a shard that a manifest lists; its length and number of records must be those listed.

    Raises:
        DatasetNotFoundError: It is missing.
        TruncatedShardError: It is shorter or longer than listed.
        IndexMismatchError: Its index is that of another file, or lists another number of records.
        ShardError: It has no index and is damaged.
    """
    check_length(path, size_of(path), listed.size_bytes)
    return with_records(open_shard(path), listed.records)
