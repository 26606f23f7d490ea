"""The write path: images to shards. It meets the read path only in the bytes on disk."""

from __future__ import annotations

from stoker.builder.destination import check_destination
from stoker.builder.forecast import BuildForecast, forecast
from stoker.builder.journal import read_journal
from stoker.builder.local import Engine, EngineFactory, LocalEngine
from stoker.builder.plan import ExpectedSize
from stoker.builder.run import BuildReport, build, build_tree, open_source
from stoker.builder.settings import (
    DEFAULT_SHARD_BYTES,
    PRESETS,
    BuildSettings,
    Preset,
    ShardSettings,
    SourceSettings,
    find_preset,
)
from stoker.builder.shard import ItemConverter, ShardJob, ShardResult, build_shard, is_of_the_machine

__all__ = [
    "DEFAULT_SHARD_BYTES",
    "PRESETS",
    "BuildForecast",
    "BuildReport",
    "BuildSettings",
    "Engine",
    "EngineFactory",
    "ExpectedSize",
    "ItemConverter",
    "LocalEngine",
    "Preset",
    "ShardJob",
    "ShardResult",
    "ShardSettings",
    "SourceSettings",
    "build",
    "build_shard",
    "build_tree",
    "check_destination",
    "find_preset",
    "forecast",
    "is_of_the_machine",
    "open_source",
    "read_journal",
]
