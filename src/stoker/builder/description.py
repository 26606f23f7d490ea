"""What describes the shards of a build: labels, rejects, files of other systems, and the manifest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stoker.builder.convert import class_number
from stoker.builder.destination import write_companions
from stoker.builder.plan import recipe_record, stored_schema
from stoker.builder.report import rejects_of
from stoker.config import stoker_version
from stoker.format import (
    LABELS_NAME,
    REJECTS_NAME,
    Manifest,
    SourceInfo,
    Split,
    nested_counts,
    write_labels,
    write_rejects,
)
from stoker.recipe import encoder_versions
from stoker.sources import counts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.builder.plan import Plan, SplitPlan
    from stoker.builder.settings import BuildSettings
    from stoker.format import ShardResult
    from stoker.sources import Source
    from stoker.storage import Location


def describe_build(
    plan: Plan, settings: BuildSettings, results: Sequence[ShardResult], destination: Location
) -> Manifest:
    """Write the files beside the shards of a build, and return its manifest, which is not written."""
    classes, texts = _classes(plan.tree, results)
    manifest = _make_manifest(plan, settings, results, len(classes))
    base = settings.schema.label_base
    labels = write_labels(destination, classes, texts, base, numbered=settings.numbered_labels)
    files = {LABELS_NAME: labels, REJECTS_NAME: write_rejects(destination, rejects_of(results))}
    return replace(manifest, files=files | write_companions(destination, manifest, classes))


def _classes(tree: Source, results: Sequence[ShardResult]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the names and the texts of all classes: those of the source, and numbers for those without one."""
    most = max((label for result in results for label in result.labels), default=-1)
    unnamed = tuple(class_number(label) for label in range(len(tree.classes), most + 1))
    return (*tree.classes, *unnamed), (*tree.texts, *[b""] * len(unnamed))


def _make_manifest(plan: Plan, settings: BuildSettings, results: Sequence[ShardResult], classes: int) -> Manifest:
    """Return the manifest of a build whose shards are all complete, in the order of the plan, but for other files."""
    converted: Counter[str] = Counter()
    formats: Counter[tuple[str, str]] = Counter()
    for result in results:
        converted.update(result.converted)
        formats.update({(name, how): count for name, counts in result.formats.items() for how, count in counts.items()})
    has_images = any(field.is_image for field in plan.tree.fields.values())
    return Manifest(
        stoker_version=stoker_version(),
        schema=stored_schema(plan.tree, settings, classes),
        recipe=recipe_record(settings),
        seed=settings.seed,
        source=SourceInfo(plan.items, plan.size_bytes, plan.tree.fingerprint(), plan.tree.ignored),
        converted=dict(sorted(converted.items())),
        annotation_errors=sum(len(result.annotation_errors) for result in results),
        splits={split.name: _split(plan, split, settings.schema.label_base, results, classes) for split in plan.splits},
        compression=settings.shards.compression,
        shard_names=settings.shards.naming.text,
        limit=settings.source.limit,
        formats=nested_counts(formats),
        encoders=encoder_versions() if has_images or formats.keys() & {("png", "encoded"), ("webp", "encoded")} else {},
    )


def _split(plan: Plan, split: SplitPlan, label_base: int, results: Sequence[ShardResult], classes: int) -> Split:
    mine = [result for result in results if result.split == split.name]
    rejected = np.asarray([reject.label for result in mine for reject in result.rejects], np.int64)
    # Item -1 counts what has no class.
    counts = counts_of(plan.tree.table.labels, [split.rows], classes)
    counts -= np.bincount(rejected + 1, minlength=len(counts))
    for label, count in [pair for result in mine for pair in result.labels.items()]:
        counts[0] -= count
        counts[label + 1] += count
    boxes: Counter[int] = Counter()
    for result in mine:
        boxes.update(result.boxes)
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
        box_counts={label + label_base: count for label, count in sorted(boxes.items())},
    )
