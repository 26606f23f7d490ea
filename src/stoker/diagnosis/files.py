"""Where the samples of a loader lie, and how much of them is in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stoker.diagnosis.evidence import Files
from stoker.diagnosis.system import cached_share, free_memory
from stoker.errors import ConfigError
from stoker.feed.mixing import parts_of

if TYPE_CHECKING:
    from stoker.feed import Dataset, Mix

_MOST_FILES = 2000


def look_at_files(dataset: Dataset | Mix) -> Files:
    """Return where a dataset lies, with the share of it that is in the page cache now as ``cached_before``."""
    parts = parts_of(dataset)
    remote = any(part.remote is not None for part in parts)
    place = ", ".join(part.path for part in parts)
    loose = not any(part.shards for part in parts)
    if remote:
        return Files(place=place, remote=True, loose=loose)
    paths = [path for part in parts for path in files_of(part, _MOST_FILES)]
    return Files(
        place=place,
        size_bytes=sum(part.size_bytes for part in parts),
        room_bytes=free_memory(),
        cached_before=cached_share(paths),
        is_directory=len(parts) == 1 and Path(place).is_dir(),
        loose=loose,
    )


def cached_now(dataset: Dataset | Mix) -> float | None:
    """Return the share of a dataset on this machine that is in the page cache; None where that cannot be said."""
    return look_at_files(dataset).cached_before


def files_of(dataset: Dataset, most: int | None = None) -> list[Path]:
    """Return the files that are read; of a compressed shard the inflated one.

    Args:
        dataset: Whose.
        most: Of image files that are many more, about so many; None for all.

    Raises:
        ConfigError: The samples lie in a store.
    """
    if dataset.remote is not None:
        raise ConfigError(f"{dataset.path} is in a store, and in no page cache of this machine; measure without --cold")
    if dataset.shards:
        return [shard.local_path if shard.inflated is None else shard.inflated.path for shard in dataset.shards]
    numbers = range(0, len(dataset), 1 if most is None else max(1, len(dataset) // most))
    return list(dict.fromkeys(Path(dataset.records.where(number)[0]) for number in numbers))
