"""Checking a dataset from the first byte to the last pixel.

For each shard: its length and checksum against the manifest, both checksums of every record, its index against a fresh
scan. For each record: that it is an Example with the features of the schema, that its image decodes whole and has the
size it claims, that its label is one of the classes. Over all: counts of records, classes and rejects against the
manifest. Damage does not stop the check; where a shard's frames are broken, its index still leads to the other records.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import DatasetNotFoundError, StokerError
from stoker.inspection.problem import Problem
from stoker.inspection.reindex import find_files
from stoker.inspection.verify_records import RecordRules, check_records
from stoker.inspection.verify_shard import check_shard
from stoker.inspection.verify_texts import count_problems, read_texts
from stoker.records.layout import find_shards, parse_shard_name
from stoker.schema import ImagenetSchema, recognise
from stoker.storage.temporary import TEMPORARY_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stoker.inspection.verify_records import RecordsResult
    from stoker.inspection.verify_shard import ShardCheck
    from stoker.records.manifest import Manifest, Shard
    from stoker.types import Progress, SchemaInfo

_CHUNK_RECORDS = 32


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a check found.

    Attributes:
        shards: Shards looked at.
        records: Records looked at.
        size_bytes: Bytes of those shards.
        seconds: How long it took.
        problems: All damage, in the order of shards and records, then what concerns the whole.
        warnings: What is no damage but should not be there.
    """

    shards: int
    records: int
    size_bytes: int
    seconds: float
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Target:
    split: str
    path: Path
    listed: Shard | None


def verify_dataset(path: str | Path, threads: int | None = None, progress: Progress | None = None) -> VerifyReport:
    """Check a dataset, or TFRecord shards of other origin.

    Args:
        path: Directory with a manifest, directory of shards, one shard, or a pattern of shards.
        threads: Shards and runs of records checked at a time; one per CPU when left out.
        progress: Told after every run of records.

    Raises:
        NewerManifestError: A newer version wrote the manifest.
        DatasetNotFoundError: There is no shard at ``path``, or an unfinished build.
    """
    started = time.monotonic()
    place = Path(path)
    manifest, classes, problems = read_texts(place)
    targets = _listed(place, manifest) if manifest is not None else _found(place, problems)
    tally = _Tally(problems, progress)
    with ThreadPoolExecutor(available_cpus() if threads is None else threads) as pool:
        checks = list(pool.map(lambda target: check_shard(target.path, target.listed), targets))
        tally.add_shards(checks)
        schema = manifest.schema if manifest is not None else _foreign_schema(targets, checks)
        for split, result in _record_results(pool, targets, checks, RecordRules(schema, classes)):
            tally.add_records(split, result)
    if manifest is not None:
        problems += count_problems(place, manifest, tally.labels)
    return VerifyReport(
        shards=len(targets),
        records=tally.total,
        size_bytes=tally.size_bytes,
        seconds=time.monotonic() - started,
        problems=tuple(problems),
        warnings=tuple(_warnings(place, manifest)),
    )


class _Tally:
    """Adds up what shards and runs of records come to, and reports progress."""

    def __init__(self, problems: list[Problem], progress: Progress | None) -> None:
        self.labels: dict[str, Counter[int]] = {}
        self.total = 0
        self.size_bytes = 0
        self._done = 0
        self._read_bytes = 0
        self._problems = problems
        self._progress = progress

    def add_shards(self, checks: Iterable[ShardCheck]) -> None:
        for check in checks:
            self._problems += check.problems
            self.total += len(check.rows)
            self.size_bytes += check.size_bytes

    def add_records(self, split: str, result: RecordsResult) -> None:
        self._problems += result.problems
        self.labels.setdefault(split, Counter()).update(result.labels)
        self._done += result.records
        self._read_bytes += result.size_bytes
        if self._progress is not None:
            bad = len(self._problems)
            self._progress(done=self._done, total=self.total, size_bytes=self._read_bytes, rejects=bad)


def _listed(place: Path, manifest: Manifest) -> list[_Target]:
    return [
        _Target(name, place / shard.name, shard) for name, split in manifest.splits.items() for shard in split.shards
    ]


def _found(place: Path, problems: list[Problem]) -> list[_Target]:
    """Return the shards that are there, and note those whose names the others promise."""
    if not place.is_dir():
        return [_Target("train", path, None) for path in find_files([str(place)])]
    splits = find_shards(place)
    if not splits:
        raise DatasetNotFoundError(f"there is neither a manifest nor a shard at {place}", path=str(place))
    for name, split in splits.items():
        if split.missing:
            some = ", ".join(map(str, split.missing[:5])) + (", ..." if len(split.missing) > 5 else "")
            what = f"split {name} lacks {len(split.missing)} shards that the names of the others promise: {some}"
            problems.append(Problem(str(place), None, None, None, what))
    return [_Target(name, path, None) for name, split in splits.items() for path in split.paths]


def _record_results(
    pool: ThreadPoolExecutor, targets: list[_Target], checks: list[ShardCheck], rules: RecordRules
) -> Iterator[tuple[str, RecordsResult]]:
    """Yield the results of runs of records, in order, while others are being checked."""
    runs = [
        (target, check.readable(target.path), first, check.rows[first : first + _CHUNK_RECORDS])
        for target, check in zip(targets, checks, strict=True)
        for first in range(0, len(check.rows), _CHUNK_RECORDS)
    ]
    results = pool.map(lambda run: check_records(run[1], run[2], run[3], rules), runs)
    for (target, _, _, _), result in zip(runs, results, strict=True):
        # Records of an inflated shard are read from a file that has no name of its own.
        result.problems = [dataclasses.replace(problem, path=str(target.path)) for problem in result.problems]
        yield target.split, result


def _foreign_schema(targets: list[_Target], checks: list[ShardCheck]) -> SchemaInfo:
    """Return the layout of shards of other origin by the first record that can be read; ImageNet's if none tells."""
    for target, check in zip(targets, checks, strict=True):
        for offset, size in check.rows[:1].tolist():
            with contextlib.suppress(StokerError):
                features = _native.parse_example(_native.read_record(str(check.readable(target.path)), offset, size))
                if (found := recognise(features)) is not None:
                    return found
    return dataclasses.replace(ImagenetSchema().info(0), features={})


def _warnings(place: Path, manifest: Manifest | None) -> Iterable[str]:
    if manifest is None or not place.is_dir():
        return
    listed = {shard.name for split in manifest.splits.values() for shard in split.shards}
    for path in sorted(place.iterdir()):
        if TEMPORARY_MARK in path.name:
            yield f"{path} is left over from a build that died; remove it"
        elif path.name not in listed and parse_shard_name(path.name) is not None:
            yield f"{path} is a shard that the manifest does not list"
