"""Looking at datasets: whether they are whole, what they hold, and how to find their records. Nothing here prints."""

from stoker.inspect.index import IndexedShard, index_shards
from stoker.inspect.info import (
    DEFAULT_RECORDS,
    ClassCount,
    DatasetInfo,
    ForeignInfo,
    ForeignSplit,
    KeySummary,
    UnfinishedInfo,
    dataset_info,
)
from stoker.inspect.verify import Problem, VerifyReport, verify_dataset

__all__ = [
    "DEFAULT_RECORDS",
    "ClassCount",
    "DatasetInfo",
    "ForeignInfo",
    "ForeignSplit",
    "IndexedShard",
    "KeySummary",
    "Problem",
    "UnfinishedInfo",
    "VerifyReport",
    "dataset_info",
    "index_shards",
    "verify_dataset",
]
