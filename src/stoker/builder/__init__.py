"""The write path: images to shards. It meets the read path only in the bytes on disk."""

from __future__ import annotations

from stoker.builder.convert import ItemConverter, is_machine_error
from stoker.builder.destination import check_destination
from stoker.builder.estimate import LARGE_BYTES, BuildForecast, ExpectedSize, forecast
from stoker.builder.local import Engine, EngineFactory, LocalEngine, build_shard
from stoker.builder.plan import ShardJob, open_source
from stoker.builder.run import BuildReport, build, build_tree
from stoker.builder.settings import (
    DEFAULT_SHARD_BYTES,
    PRESETS,
    BuildSettings,
    Preset,
    ShardSettings,
    SourceSettings,
    find_preset,
)

__all__ = [
    "DEFAULT_SHARD_BYTES",
    "LARGE_BYTES",
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
    "ShardSettings",
    "SourceSettings",
    "build",
    "build_shard",
    "build_tree",
    "check_destination",
    "find_preset",
    "forecast",
    "is_machine_error",
    "open_source",
]
