"""Checking a dataset from the first byte to the last pixel.

For each shard: its length and checksum against the manifest, both checksums of every record, its index against a fresh
scan. For each record: that it is an Example with the features of the schema, that its image decodes whole and has the
size it claims, that its label is one of the classes. Over all: counts of records, classes and rejects against the
manifest. Damage does not stop the check; where a shard's frames are broken, its index still leads to the other records.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.config import available_cpus
from stoker.errors import DatasetNotFoundError, ManifestError
from stoker.inspection.problem import Problem
from stoker.inspection.verify_records import RecordRules, check_records
from stoker.inspection.verify_shard import check_shard
from stoker.records.files import TEMPORARY_MARK
from stoker.records.labels import read_labels
from stoker.records.layout import LABELS_NAME, MANIFEST_NAME, REJECTS_NAME, find_shards, parse_shard_name
from stoker.records.manifest_reading import read_manifest
from stoker.records.rejects import read_rejects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from stoker.inspection.verify_records import RecordsResult
    from stoker.inspection.verify_shard import ShardCheck
    from stoker.records.manifest import Manifest, Shard
    from stoker.types import Progress

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
        path: Directory with a manifest, directory of shards, or one shard.
        threads: Shards and runs of records checked at a time; one per CPU when left out.
        progress: Told after every run of records.

    Raises:
        ManifestError: The manifest cannot be read, so there is nothing to check against.
        DatasetNotFoundError: There is no shard at ``path``.
    """
    started = time.monotonic()
    place = Path(path)
    manifest = read_manifest(place) if (place / MANIFEST_NAME).exists() else None
    targets = _targets(place, manifest)
    rules = RecordRules.of(manifest)
    labels: dict[str, Counter[int]] = {target.split: Counter() for target in targets}
    problems: list[Problem] = []
    with ThreadPoolExecutor(available_cpus() if threads is None else threads) as pool:
        checks = list(pool.map(lambda target: check_shard(target.path, target.listed), targets))
        for check in checks:
            problems += check.problems
        total = sum(len(check.rows) for check in checks)
        done, read_bytes = 0, 0
        for split, result in _record_results(pool, targets, checks, rules):
            problems += result.problems
            labels[split] += result.labels
            done += result.records
            read_bytes += result.size_bytes
            if progress is not None:
                progress(done=done, total=total, size_bytes=read_bytes, rejects=len(problems))
    if manifest is not None:
        problems += _count_problems(place, manifest, labels)
    return VerifyReport(
        shards=len(targets),
        records=total,
        size_bytes=sum(check.size_bytes for check in checks),
        seconds=time.monotonic() - started,
        problems=tuple(problems),
        warnings=tuple(_warnings(place, manifest)),
    )


def _targets(place: Path, manifest: Manifest | None) -> list[_Target]:
    if manifest is not None:
        return [
            _Target(name, place / shard.name, shard)
            for name, split in manifest.splits.items()
            for shard in split.shards
        ]
    found = (
        [_Target(name, path, None) for name, split in find_shards(place).items() for path in split.paths]
        if place.is_dir()
        else [_Target("train", place, None)] * place.is_file()
    )
    if not found:
        raise DatasetNotFoundError(f"there is neither a manifest nor a shard at {place}", path=str(place))
    return found


def _record_results(
    pool: ThreadPoolExecutor, targets: list[_Target], checks: list[ShardCheck], rules: RecordRules
) -> Iterator[tuple[str, RecordsResult]]:
    """Yield the results of runs of records, in order, while others are being checked."""
    runs = [
        (target, first, check.rows[first : first + _CHUNK_RECORDS])
        for target, check in zip(targets, checks, strict=True)
        for first in range(0, len(check.rows), _CHUNK_RECORDS)
    ]
    results = pool.map(lambda run: check_records(run[0].path, run[1], run[2], rules), runs)
    for (target, _, _), result in zip(runs, results, strict=True):
        yield target.split, result


def _count_problems(place: Path, manifest: Manifest, labels: dict[str, Counter[int]]) -> Iterator[Problem]:
    where = str(place / MANIFEST_NAME)
    for name, split in manifest.splits.items():
        seen = labels.get(name, Counter())
        for label, count in enumerate(split.class_counts):
            if seen[label] != count:
                what = f"split {name} has {seen[label]} records of class {label}; the manifest says {count}"
                yield Problem(where, None, None, None, what)
    yield from _text_problems(place, manifest)


def _text_problems(place: Path, manifest: Manifest) -> Iterator[Problem]:
    """What is wrong with the text files beside the shards."""
    classes = max((len(split.class_counts) for split in manifest.splits.values()), default=0)
    try:
        named = len(read_labels(place))
        if named != classes:
            what = f"names {named} classes; the manifest counts {classes}"
            yield Problem(str(place / LABELS_NAME), None, None, None, what)
        rejected = Counter(reject.split for reject in read_rejects(place))
    except (FileNotFoundError, ManifestError) as error:
        yield Problem(str(place), None, None, None, str(error))
        return
    for name, split in manifest.splits.items():
        if rejected[name] != split.rejects:
            what = f"has {rejected[name]} rejects of split {name}; the manifest says {split.rejects}"
            yield Problem(str(place / REJECTS_NAME), None, None, None, what)


def _warnings(place: Path, manifest: Manifest | None) -> Iterable[str]:
    if manifest is None or not place.is_dir():
        return
    listed = {shard.name for split in manifest.splits.values() for shard in split.shards}
    for path in sorted(place.iterdir()):
        if TEMPORARY_MARK in path.name:
            yield f"{path} is left over from a build that died; remove it"
        elif path.name not in listed and parse_shard_name(path.name) is not None:
            yield f"{path} is a shard that the manifest does not list"
