"""Making TFRecords random-access: the text index beside each."""

from __future__ import annotations

import glob
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import DatasetNotFoundError, IndexMismatchError, ShardError
from stoker.inspection.problem import Problem, problem_of
from stoker.records.index import INDEX_SUFFIX, index_path, read_index, write_index
from stoker.records.inflate import compression_of
from stoker.records.layout import JOURNAL_NAME, LABELS_NAME, MANIFEST_NAME, REJECTS_NAME, find_shards

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stoker.types import Progress

Outcome = Literal["written", "rewritten", "up to date", "damaged", "failed"]

# What lies beside shards, and is named too where a shell expands a pattern such as ``dataset/*``.
_BESIDE = (MANIFEST_NAME, LABELS_NAME, REJECTS_NAME, JOURNAL_NAME)


@dataclass(frozen=True, slots=True)
class IndexedShard:
    """What became of one shard.

    Attributes:
        path: The shard.
        outcome: ``rewritten`` where the index there was another's; ``damaged`` where the shard allows none;
            ``failed`` where it is compressed, or the system did not let it be read or written.
        records: Records found; 0 without an index.
        size_bytes: Length of the shard; 0 when it cannot be read.
        problem: Why there is no index.
    """

    path: str
    outcome: Outcome
    records: int
    size_bytes: int
    problem: Problem | None = None


def find_files(places: Sequence[str]) -> list[Path]:
    """Return the TFRecords that files, directories and patterns name, each once, sorted.

    Raises:
        DatasetNotFoundError: One of them names nothing.
    """
    found: set[Path] = set()
    for place in places:
        named = list(_named(place))
        if not named:
            raise DatasetNotFoundError(f"there is no TFRecord at {place}", path=place)
        found.update(path for path in named if path.suffix != INDEX_SUFFIX and path.name not in _BESIDE)
    return sorted(found)


def _named(place: str) -> Iterable[Path]:
    path = Path(place)
    if path.is_file():
        return [path]
    if path.is_dir():
        return [shard for split in find_shards(path).values() for shard in split.paths]
    # pathlib has no pattern that may be absolute or relative
    return [Path(match) for match in glob.glob(place)]  # noqa: PTH207


def index_shards(places: Sequence[str], progress: Progress | None = None) -> list[IndexedShard]:
    """Write the index beside every TFRecord that lacks a right one; both checksums of every record are verified.

    A damaged file does not stop the others, nor does one that cannot be read.

    Raises:
        DatasetNotFoundError: One of the places names nothing.
    """
    paths = find_files(places)
    results: list[IndexedShard] = []
    with ThreadPoolExecutor(available_cpus()) as pool:
        for result in pool.map(_index, paths):
            results.append(result)
            if progress is not None:
                size = sum(r.size_bytes for r in results)
                bad = sum(r.problem is not None for r in results)
                progress(done=len(results), total=len(paths), size_bytes=size, rejects=bad)
    return results


def _index(path: Path) -> IndexedShard:
    try:
        return _index_readable(path, path.stat().st_size)
    except OSError as error:
        what = f"{error.filename or path}: {error.strerror}"
        return IndexedShard(str(path), "failed", 0, 0, Problem(str(path), None, None, None, what))


def _index_readable(path: Path, size: int) -> IndexedShard:
    if size and (compression := compression_of(path)) != "none":
        what = f"is compressed ({compression}), so nothing in it can be reached by an index; 'stoker repack' it"
        return IndexedShard(str(path), "failed", 0, size, Problem(str(path), None, None, None, what))
    try:
        rows = _native.scan_shard(str(path))
    except ShardError as error:
        return IndexedShard(str(path), "damaged", 0, size, problem_of(error, path))
    outcome: Outcome = "written"
    if index_path(path).exists():
        try:
            if np.array_equal(read_index(path, size), rows):
                return IndexedShard(str(path), "up to date", len(rows), size)
        except IndexMismatchError:  # what is there is no index of this shard, which is why it is made anew
            pass
        outcome = "rewritten"
    write_index(path, rows)
    return IndexedShard(str(path), outcome, len(rows), size)
