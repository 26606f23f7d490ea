"""Makes TFRecords random-access: writes the text index beside each of them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker import _native
from stoker.builder import is_machine_error
from stoker.config import available_cpus
from stoker.errors import ExampleError, IndexMismatchError, ShardError
from stoker.format import compression_of, find_layout, index_path, read_index, write_index
from stoker.inspect.info import find_files
from stoker.inspect.verify import Problem, file_problem, first_features, problem_of
from stoker.progress import Tally
from stoker.storage import is_scratch_full, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.format import RecordKeys
    from stoker.storage import Location
    from stoker.types import Progress

Outcome = Literal["written", "rewritten", "up to date", "damaged", "failed"]


@dataclass(frozen=True, slots=True)
class IndexedShard:
    """The result for one shard."""

    path: str
    # ``rewritten`` if its index belonged to another file; ``damaged`` if the shard is damaged; ``failed`` if it is
    # compressed, or the system did not let it or its index be read or written
    outcome: Outcome
    records: int  # number of its records; 0 without an index
    size_bytes: int  # length of the shard; 0 when it cannot be read
    problem: Problem | None = None  # why there is no index


def index_shards(
    targets: Sequence[str], progress: Progress | None = None, keys: RecordKeys | None = None
) -> list[IndexedShard]:
    """Write the index beside every TFRecord that lacks a right one; both checksums of every record are verified.

    A damaged file does not stop the others. ``keys`` are compared with the first record, before anything is written.
    """
    paths = find_files(targets)
    if keys is not None:
        with contextlib.suppress(ShardError, ExampleError):  # damage is reported in its turn
            if (features := first_features(paths[0])) is not None:
                find_layout(features, keys, str(paths[0]))
    results: list[IndexedShard] = []
    tally = Tally(len(paths), progress)
    with stoppable_pool(available_cpus(), "stoker-index") as pool:
        for result in pool.map(_index, paths):
            results.append(result)
            tally.advanced(1, result.size_bytes, int(result.problem is not None))
    return results


def _index(path: Location) -> IndexedShard:
    try:
        return _index_readable(path, path.size())
    except OSError as error:
        if is_scratch_full(error) or is_machine_error(error):
            raise
        what = f"{error.filename or path}: {error.strerror or error}"
        return IndexedShard(str(path), "failed", 0, 0, file_problem(path, what))


def _index_readable(path: Location, size: int) -> IndexedShard:
    if size and (compression := compression_of(path)) != "none":
        what = f"is compressed ({compression}), so an index cannot reach its records; rewrite it with 'stoker repack'"
        return IndexedShard(str(path), "failed", 0, size, file_problem(path, what))
    with path.local_copy() as copy:
        copy.fetch()
        try:
            rows = _native.scan_shard(str(copy.path))
        except ShardError as error:
            return IndexedShard(str(path), "damaged", 0, size, problem_of(error, path, copy.path))
    outcome: Outcome = "written"
    if index_path(path).lexists():
        try:
            if np.array_equal(read_index(path, size), rows):
                return IndexedShard(str(path), "up to date", len(rows), size)
        except IndexMismatchError:  # the existing index belongs to another file, and is written again
            pass
        outcome = "rewritten"
    write_index(path, rows)
    return IndexedShard(str(path), outcome, len(rows), size)
