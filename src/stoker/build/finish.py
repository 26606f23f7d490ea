"""The last step of a build: what all shards together amount to."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from stoker.build.plan import recipe_record
from stoker.records.manifest import Manifest, SourceInfo, Split
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stoker.build.job import ShardResult
    from stoker.build.plan import Plan, SplitPlan
    from stoker.build.settings import BuildSettings


def make_manifest(plan: Plan, settings: BuildSettings, results: Sequence[ShardResult]) -> Manifest:
    """Return the manifest of a build whose shards are all complete.

    Args:
        plan: What was planned.
        settings: How it was built.
        results: All shards, in the order of the plan.
    """
    converted: Counter[str] = Counter()
    for result in results:
        converted.update(result.converted)
    return Manifest(
        stoker_version=version("stoker"),
        schema=settings.schema.info(len(plan.tree.classes)),
        recipe=recipe_record(settings),
        seed=settings.seed,
        source=SourceInfo(plan.items, plan.size_bytes, plan.tree.fingerprint(), plan.tree.ignored),
        converted=converted,
        annotation_errors=sum(len(result.annotation_errors) for result in results),
        splits={split.name: _split(plan, split, settings.schema.label_base, results) for split in plan.splits},
        compression=settings.shards.compression,
        shard_names=settings.shards.naming.text,
        limit=settings.source.limit,
    )


def rejects_of(results: Sequence[ShardResult]) -> Iterator[Reject]:
    """Yield every reject, in the order of the plan."""
    for result in results:
        for reject in result.rejects:
            yield Reject(reject.key, result.split, reject.reason)


def _split(plan: Plan, split: SplitPlan, label_base: int, results: Sequence[ShardResult]) -> Split:
    mine = [result for result in results if result.split == split.name]
    rejected = np.asarray([reject.label for result in mine for reject in result.rejects], np.int64)
    # Item -1 counts what has no class.
    counts = np.bincount(plan.tree.table.labels[split.rows] + 1, minlength=len(plan.tree.classes) + 1)
    counts -= np.bincount(rejected + 1, minlength=len(counts))
    shards = tuple(result.file for result in mine)
    records = sum(shard.records for shard in shards)
    assert records + len(rejected) == len(split.rows), "an item is neither in the dataset nor among its rejects"
    return Split(
        records=records,
        size_bytes=sum(shard.size_bytes for shard in shards),
        rejects=len(rejected),
        class_counts=(0,) * label_base + tuple(counts[1:].tolist()),
        shards=shards,
        unlabelled=int(counts[0]),
    )
