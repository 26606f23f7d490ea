"""The last step of a build: what all shards together amount to."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from stoker.records.manifest import Feature, Manifest, SchemaInfo, Shard, SourceInfo, Split
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stoker.build.job import ShardResult
    from stoker.build.plan import Plan, SplitPlan
    from stoker.build.settings import BuildSettings
    from stoker.schema import Schema


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
        schema=_schema_info(settings.schema),
        recipe=settings.recipe.resolved(),
        seed=settings.seed,
        source=SourceInfo(plan.items, plan.size_bytes, plan.tree.fingerprint(), plan.tree.ignored),
        converted=converted,
        annotation_errors=sum(len(result.annotation_errors) for result in results),
        splits={split.name: _split(plan, split, settings.schema, results) for split in plan.splits},
    )


def rejects_of(results: Sequence[ShardResult]) -> Iterator[Reject]:
    """Yield every reject, in the order of the plan."""
    for result in results:
        for reject in result.rejects:
            yield Reject(reject.key, result.split, reject.reason)


def _split(plan: Plan, split: SplitPlan, schema: Schema, results: Sequence[ShardResult]) -> Split:
    mine = [result for result in results if result.split == split.name]
    classes = len(plan.tree.classes) + schema.label_base
    rejected = np.asarray([reject.label for result in mine for reject in result.rejects], np.int64)
    counts = np.bincount(plan.tree.table.labels[split.rows] + schema.label_base, minlength=classes)
    counts -= np.bincount(rejected + schema.label_base, minlength=classes)
    shards = tuple(Shard(r.file.name, r.file.records, r.file.size_bytes, r.file.crc32c) for r in mine)
    records = sum(shard.records for shard in shards)
    assert records + len(rejected) == len(split.rows), "an item is neither in the dataset nor among its rejects"
    return Split(
        records=records,
        size_bytes=sum(shard.size_bytes for shard in shards),
        rejects=len(rejected),
        class_counts=tuple(counts.tolist()),
        shards=shards,
    )


def _schema_info(schema: Schema) -> SchemaInfo:
    return SchemaInfo(
        preset=schema.preset,
        features={key: Feature(spec.kind, spec.length) for key, spec in sorted(schema.features.items())},
        image_key=schema.image_key,
        label_key=schema.label_key,
        filename_key=schema.filename_key,
        label_base=schema.label_base,
    )
