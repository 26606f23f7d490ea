"""The read path: datasets by number, and batches of pixels in a known order."""

from stoker.feed.bad_samples import BadSample, BadSampleReport, OnBad
from stoker.feed.batch import Batch
from stoker.feed.boxes import Boxes, BoxOutput, PaddedBoxes
from stoker.feed.caches import CacheStats, MemoryCache, NodeCache
from stoker.feed.config import loader_settings
from stoker.feed.dataset import Dataset
from stoker.feed.foreign import RecordKeys
from stoker.feed.loader import Loader
from stoker.feed.mixing import Mix, mix, parts_of
from stoker.feed.opening import open_dataset, open_main_split
from stoker.feed.position import Position
from stoker.feed.read_ahead import ReadAhead
from stoker.feed.sample import Sample
from stoker.feed.stats import LoaderStats, StageStats
from stoker.feed.trace import Trace, loader_in, trace

__all__ = [
    "BadSample",
    "BadSampleReport",
    "Batch",
    "BoxOutput",
    "Boxes",
    "CacheStats",
    "Dataset",
    "Loader",
    "LoaderStats",
    "MemoryCache",
    "Mix",
    "NodeCache",
    "OnBad",
    "PaddedBoxes",
    "Position",
    "ReadAhead",
    "RecordKeys",
    "Sample",
    "StageStats",
    "Trace",
    "loader_in",
    "loader_settings",
    "mix",
    "open_dataset",
    "open_main_split",
    "parts_of",
    "trace",
]
