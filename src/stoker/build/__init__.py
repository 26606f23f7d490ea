"""The write path: images to shards. It meets the read path only in the bytes on disk."""

from __future__ import annotations

from stoker.build.destination import check_destination
from stoker.build.engine import Engine, EngineFactory
from stoker.build.forecast import BuildForecast, forecast
from stoker.build.job import ItemConverter, ShardJob, ShardResult
from stoker.build.report import BuildReport
from stoker.build.run import build, build_tree, open_source
from stoker.build.settings import BuildSettings, ShardSettings, SourceSettings
from stoker.build.shard import build_shard
from stoker.build.size import ExpectedSize

__all__ = [
    "BuildForecast",
    "BuildReport",
    "BuildSettings",
    "Engine",
    "EngineFactory",
    "ExpectedSize",
    "ItemConverter",
    "ShardJob",
    "ShardResult",
    "ShardSettings",
    "SourceSettings",
    "build",
    "build_shard",
    "build_tree",
    "check_destination",
    "forecast",
    "open_source",
]
