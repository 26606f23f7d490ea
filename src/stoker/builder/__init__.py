"""The write path: images to shards. It meets the read path only in the bytes on disk.

Its modules, in the order in which a build uses them::

    api          functions that programs and the command line call ◄── settings
    plan         which item goes into which shard ◄── estimate, duplicates
    writing      the one way to write a dataset ◄── destination, companions; parts: builds in parts
    tasks        what is written: sources that are listed, and records without a length
    local        threads that make shards ◄── convert: items to records
    report       what a build did
"""

from __future__ import annotations

from stoker.builder.api import build, build_files, build_part_of_files
from stoker.builder.companions import write_companions
from stoker.builder.convert import ItemConverter, is_machine_error
from stoker.builder.destination import check_destination, manifest_settings
from stoker.builder.estimate import LARGE_BYTES, BuildForecast, ExpectedSize, forecast
from stoker.builder.local import Engine, EngineFactory, LocalEngine, build_shard
from stoker.builder.parts import NO_PART, Part, chosen_part, list_once, parse_part
from stoker.builder.plan import ShardJob, open_source
from stoker.builder.report import BuildReport, PartReport, Report, reject_facts
from stoker.builder.settings import PRESETS, BuildOptions, BuildSettings
from stoker.builder.tasks import build_part, build_source, check_part_destination
from stoker.builder.writing import Run, Task, write
