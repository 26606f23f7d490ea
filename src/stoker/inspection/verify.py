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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker import _native
from stoker.config import available_cpus
from stoker.errors import DatasetNotFoundError, StokerError
from stoker.inspection.foreign import leading_records
from stoker.inspection.listing import names_below
from stoker.inspection.problem import Problem
from stoker.inspection.reindex import find_files
from stoker.inspection.verify_progress import VerifyProgress
from stoker.inspection.verify_records import RecordRules
from stoker.inspection.verify_texts import count_problems, read_texts
from stoker.inspection.verify_whole import Target, WholeCheck
from stoker.records.layout import BUILD_FOLDER, JOURNAL_NAME, find_shards, parse_shard_name
from stoker.schema import ImagenetSchema, recognise
from stoker.storage import check_stacks, is_scratch_full, location, stoppable_pool
from stoker.storage.temporary import TEMPORARY_MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from stoker.inspection.verify_whole import WholeResult
    from stoker.records.manifest import Manifest
    from stoker.storage import Location, RemotePath
    from stoker.types import Progress, SchemaInfo


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


def verify_dataset(
    path: str | Path | RemotePath, threads: int | None = None, progress: Progress | None = None
) -> VerifyReport:
    """Check a dataset, or TFRecord shards of other origin.

    Of a dataset in a store, each thread copies one shard at a time into the folder for temporary files (``$TMPDIR``).

    Args:
        path: Directory with a manifest, directory of shards, one shard, or a pattern of shards; or the URL of one.
        threads: Shards and runs of records checked at a time; one per CPU when left out.
        progress: Told after every run of records, in any thread, never in two at once.

    Raises:
        NewerManifestError: A newer version wrote the manifest.
        DatasetNotFoundError: There is no shard at ``path``, or an unfinished build.
        OSError: There is no room for temporary files, or the store is gone.
    """
    started = time.monotonic()
    place = location(path)
    manifest, classes, problems = read_texts(place)
    targets = _listed(place, manifest) if manifest is not None else _found(place, problems)
    rules = RecordRules(manifest.schema if manifest is not None else _foreign_schema(targets), classes)
    counted = None if manifest is None else manifest.records
    shown = VerifyProgress(progress, len(targets), counted, len(problems))
    results = _check_all(targets, rules, available_cpus() if threads is None else threads, shown)
    labels: dict[str, Counter[int]] = {}
    for target, result in zip(targets, results, strict=True):
        labels.setdefault(target.split, Counter()).update(result.labels)
    problems += [problem for result in results for problem in result.shard_problems]
    problems += [problem for result in results for problem in result.record_problems]
    if manifest is not None:
        problems += count_problems(place, manifest, labels)
    return VerifyReport(
        shards=len(targets),
        records=sum(result.records for result in results),
        size_bytes=sum(result.size_bytes for result in results),
        seconds=time.monotonic() - started,
        problems=tuple(problems),
        warnings=tuple(_warnings(place, manifest)),
    )


def _check_all(targets: Sequence[Target], rules: RecordRules, threads: int, shown: VerifyProgress) -> list[WholeResult]:
    check_stacks(2 * threads)  # of both at once: threads are started when there is work, after both pools were made
    with stoppable_pool(threads, "stoker-records") as records, stoppable_pool(threads, "stoker-shards") as shards:
        return list(shards.map(WholeCheck(rules, records, shown), targets))


def _listed(place: Location, manifest: Manifest) -> list[Target]:
    return [
        Target(name, place / shard.name, shard) for name, split in manifest.splits.items() for shard in split.shards
    ]


def _found(place: Location, problems: list[Problem]) -> list[Target]:
    """Return the shards that are there, and note those whose names the others promise."""
    if not place.is_dir():
        return [Target("train", path, None) for path in find_files([str(place)])]
    splits = find_shards(place)
    if not splits:
        raise DatasetNotFoundError(f"there is neither a manifest nor a shard at {place}", path=str(place))
    for name, split in splits.items():
        if split.missing:
            some = ", ".join(map(str, split.missing[:5])) + (", ..." if len(split.missing) > 5 else "")
            what = f"split {name} lacks {len(split.missing)} shards that the names of the others promise: {some}"
            problems.append(Problem(str(place), None, None, None, what))
    return [Target(name, path, None) for name, split in splits.items() for path in split.paths]


def _foreign_schema(targets: Sequence[Target]) -> SchemaInfo:
    """Return the layout of shards of other origin by the first record that can be read; ImageNet's if none tells."""
    for target in targets:
        with contextlib.suppress(StokerError):
            if (found := _schema_of(target.path)) is not None:
                return found
    return dataclasses.replace(ImagenetSchema().info(0), features={})


def _schema_of(path: Location) -> SchemaInfo | None:
    try:
        for payload in leading_records([path], 1):
            return recognise(_native.parse_example(payload))
    except OSError as error:
        if is_scratch_full(error):
            raise
    return None


def _warnings(place: Location, manifest: Manifest | None) -> Iterable[str]:
    if manifest is None or not place.is_dir():
        return
    listed = {shard.name for split in manifest.splits.values() for shard in split.shards}
    names = names_below(place)
    if JOURNAL_NAME in names or any(name.startswith(f"{BUILD_FOLDER}/") for name in names):
        yield f"{place} holds what a build notes until it is done; run the same 'stoker build' again to remove it"
    for name in names:
        if TEMPORARY_MARK in name.rpartition("/")[2]:
            yield f"{place / name} is left over from a build that died; remove it"
        elif name not in listed and "/" not in name and parse_shard_name(name) is not None:
            yield f"{place / name} is a shard that the manifest does not list"
