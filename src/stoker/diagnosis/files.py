"""Where the samples of a loader lie, and how much of them is in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stoker.diagnosis.evidence import Files
from stoker.diagnosis.system import cached_share, free_memory
from stoker.feed import Mix
from stoker.feed.cache_keys import sample_sizes

if TYPE_CHECKING:
    from stoker.feed import Dataset

_MOST_FILES = 2000


def look_at_files(dataset: Dataset | Mix) -> Files:
    """Return where a dataset lies, with the share of it that is in the page cache now as ``cached_before``."""
    parts = dataset.datasets if isinstance(dataset, Mix) else (dataset,)
    remote = any(part.remote is not None for part in parts)
    place = ", ".join(part.path for part in parts)
    loose = not any(part.shards for part in parts)
    if remote:
        return Files(place=place, remote=True, loose=loose)
    paths = [path for part in parts for path in _paths(part)]
    return Files(
        place=place,
        size_bytes=sum(_size(part) for part in parts),
        room_bytes=free_memory(),
        cached_before=cached_share(paths),
        is_directory=len(parts) == 1 and Path(place).is_dir(),
        loose=loose,
    )


def cached_now(dataset: Dataset | Mix) -> float | None:
    """Return the share of a dataset on this machine that is in the page cache; None where that cannot be said."""
    return look_at_files(dataset).cached_before


def _size(dataset: Dataset) -> int:
    if dataset.shards:
        return sum(shard.size_bytes for shard in dataset.shards)
    return int(sample_sizes(dataset).sum())


def _paths(dataset: Dataset) -> list[Path]:
    """Return the files that are read, or some of them if they are very many."""
    if dataset.shards:  # of this machine: `look_at_files` has seen to that
        return [shard.local_path if shard.inflated is None else shard.inflated.path for shard in dataset.shards]
    numbers = range(0, len(dataset), max(1, len(dataset) // _MOST_FILES))
    return list(dict.fromkeys(Path(dataset.records.where(number)[0]) for number in numbers))
