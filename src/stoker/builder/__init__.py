"""The write path: images to shards. It meets the read path only in the bytes on disk."""

from __future__ import annotations

from stoker.builder.api import build, build_files, build_part_of_files
from stoker.builder.convert import ItemConverter, is_machine_error
from stoker.builder.destination import (
    check_destination,
    manifest_settings,
    write_companions,
)
from stoker.builder.estimate import LARGE_BYTES, BuildForecast, ExpectedSize, forecast
from stoker.builder.listed import build_part, build_tree, check_part_destination
from stoker.builder.local import Engine, EngineFactory, LocalEngine, build_shard
from stoker.builder.options import BuildOptions
from stoker.builder.parts import NO_PART, ListedSource, Part, chosen_part, list_once, parse_part
from stoker.builder.plan import ShardJob, open_source
from stoker.builder.report import BuildReport, PartReport, Report
from stoker.builder.settings import (
    DEFAULT_SHARD_BYTES,
    PRESETS,
    BuildSettings,
    Preset,
    ShardSettings,
    SourceSettings,
    find_preset,
)
from stoker.builder.writing import Tally, Task, write

__all__ = [
    "DEFAULT_SHARD_BYTES",
    "LARGE_BYTES",
    "NO_PART",
    "PRESETS",
    "BuildForecast",
    "BuildOptions",
    "BuildReport",
    "BuildSettings",
    "Engine",
    "EngineFactory",
    "ExpectedSize",
    "ItemConverter",
    "ListedSource",
    "LocalEngine",
    "Part",
    "PartReport",
    "Preset",
    "Report",
    "ShardJob",
    "ShardSettings",
    "SourceSettings",
    "Tally",
    "Task",
    "build",
    "build_files",
    "build_part",
    "build_part_of_files",
    "build_shard",
    "build_tree",
    "check_destination",
    "check_part_destination",
    "chosen_part",
    "find_preset",
    "forecast",
    "is_machine_error",
    "list_once",
    "manifest_settings",
    "open_source",
    "parse_part",
    "write",
    "write_companions",
]
