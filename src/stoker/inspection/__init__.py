"""Looking at datasets: whether they are whole, and how to find their records. Nothing here prints."""

from stoker.inspection.problem import Problem
from stoker.inspection.reindex import IndexedShard, index_shards
from stoker.inspection.verify import VerifyReport, verify_dataset

__all__ = ["IndexedShard", "Problem", "VerifyReport", "index_shards", "verify_dataset"]
