"""The read path: datasets by number, and batches of pixels in a known order."""

from __future__ import annotations

from stoker.loader.bad_samples import BadSample, BadSampleReport, OnBad
from stoker.loader.batch import Batch, BatchOrigin, batch_text
from stoker.loader.boxes import Boxes, BoxOutput, PaddedBoxes, box_arrays
from stoker.loader.cache_directory import CacheDirectory, CacheEntry
from stoker.loader.caches import CacheStats, MemoryCache, NodeCache
from stoker.loader.dataset import Dataset, Sample, label_of
from stoker.loader.engine import EngineSettings, SampleEngine
from stoker.loader.image_files import FILE_SCHEMA, ImageFiles
from stoker.loader.keywords import refuse_unknown
from stoker.loader.loader import Loader, loader_in, loader_settings, trace
from stoker.loader.mixes import Mix, mix, parts_of
from stoker.loader.opening import (
    open_dataset,
    open_main_split,
    open_splits,
    refuse_keys,
    refuse_unfinished,
)
from stoker.loader.pictures import (
    class_title,
    data_uri,
    displayable,
    draw_boxes,
    draw_pixel_boxes,
    fit,
    fitted_size,
    usable_boxes,
)
from stoker.loader.position import Position
from stoker.loader.ranks import CpuShare, cpu_share
from stoker.loader.read_ahead import ReadAhead, read_through
from stoker.loader.samples import Objects
from stoker.loader.shards import find_splits
from stoker.loader.stats import LoaderStats, StageStats
from stoker.loader.tracing import Trace

__all__ = [
    "FILE_SCHEMA",
    "BadSample",
    "BadSampleReport",
    "Batch",
    "BatchOrigin",
    "BoxOutput",
    "Boxes",
    "CacheDirectory",
    "CacheEntry",
    "CacheStats",
    "CpuShare",
    "Dataset",
    "EngineSettings",
    "ImageFiles",
    "Loader",
    "LoaderStats",
    "MemoryCache",
    "Mix",
    "NodeCache",
    "Objects",
    "OnBad",
    "PaddedBoxes",
    "Position",
    "ReadAhead",
    "Sample",
    "SampleEngine",
    "StageStats",
    "Trace",
    "batch_text",
    "box_arrays",
    "class_title",
    "cpu_share",
    "data_uri",
    "displayable",
    "draw_boxes",
    "draw_pixel_boxes",
    "find_splits",
    "fit",
    "fitted_size",
    "label_of",
    "loader_in",
    "loader_settings",
    "mix",
    "notebook",  # a module that only notebooks need, so it is not imported here
    "open_dataset",
    "open_main_split",
    "open_splits",
    "parts_of",
    "read_through",
    "refuse_keys",
    "refuse_unfinished",
    "refuse_unknown",
    "trace",
    "usable_boxes",
]
