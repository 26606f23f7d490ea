"""How many shards a split gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.records.layout import MAX_SHARDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.build.settings import ShardSettings

FULL_SHARD = 100
"""Fewest records of a shard for which a preferred number of shards holds."""


def count_shards(items: Mapping[str, int], sizes: Mapping[str, float], settings: ShardSettings) -> dict[str, int]:
    """Return the number of shards of each split.

    Args:
        items: Items of each split; none is 0.
        sizes: Expected bytes of their records.
        settings: What was asked for.

    Raises:
        ConfigError: More shards than items are asked for, or shards of a split that is not there.
    """
    main = "train" if "train" in items else next(iter(items))
    explicit: dict[str, int | None] = {main: settings.train}
    if settings.validation is not None:
        if "validation" not in items:
            raise ConfigError("--validation-shards is given, but there is no split 'validation'")
        explicit["validation"] = settings.validation
    if settings.train is None and settings.preferred is not None and items[main] >= FULL_SHARD * settings.preferred[0]:
        explicit[main] = settings.preferred[0]
        if len(items) > 1 and items.get("validation", 0) >= FULL_SHARD * settings.preferred[1]:
            explicit.setdefault("validation", settings.preferred[1])
    for name, shards in explicit.items():
        if shards is not None and shards > items[name]:
            raise ConfigError(f"{shards} shards for the {items[name]} items of split {name!r}; ask for fewer shards")
    # Shards of a split without a number of its own are as long as those of the main split.
    target = settings.size_bytes
    main_shards = explicit[main]
    if main_shards is not None:
        target = max(1, round(sizes[main] / main_shards))
    counts = {}
    for name, count in items.items():
        wanted = explicit.get(name) or min(count, max(1, round(sizes[name] / target)))
        if wanted > MAX_SHARDS:
            raise ConfigError(f"{wanted} shards for split {name!r}, more than {MAX_SHARDS}; raise --shard-size")
        counts[name] = wanted
    return counts
