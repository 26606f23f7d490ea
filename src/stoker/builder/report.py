"""Reports on builds and parts of builds, and the files beside the shards."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker.builder.convert import class_number
from stoker.builder.destination import write_companions
from stoker.builder.plan import recipe_record, stored_schema
from stoker.builder.settings import PRESETS
from stoker.config import format_count, format_seconds, format_size, stoker_version
from stoker.errors import printable
from stoker.format import (
    LABELS_NAME,
    REJECTS_NAME,
    Manifest,
    SourceInfo,
    Split,
    read_rejects,
    sum_of_formats,
    write_labels,
    write_rejects,
)
from stoker.recipe import encoder_versions
from stoker.sources import counts_of
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from stoker.builder.parts import Part
    from stoker.builder.plan import Plan, SplitPlan
    from stoker.builder.settings import BuildSettings
    from stoker.builder.writing import Written
    from stoker.format import ShardResult
    from stoker.sources import Source
    from stoker.storage import Location


class Report(ABC):
    """What a call that wrote something did; what consoles and notebooks show of it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<stoker.{type(self).__name__} {'; '.join(self._facts())}>"

    def _repr_html_(self) -> str:
        title, *others = (html.escape(printable(fact)) for fact in self._facts())
        lines = "".join(f"<div style='opacity:.65'>{fact}</div>" for fact in others)
        name = f"<b>stoker.{type(self).__name__}</b>"
        return f"<div style='font-family:system-ui,sans-serif'><div>{name} {title}</div>{lines}</div>"

    @abstractmethod
    def _facts(self) -> list[str]:
        """Return what a person wants to know, the most important first."""


def reject_facts(rejects: Sequence[Reject]) -> list[str]:
    """Return what a report says of rejects; nothing where there are none."""
    return [f"{format_count(len(rejects), 'reject')}, the first {rejects[0].key}"] if rejects else []


@dataclass(frozen=True, slots=True, repr=False)
class BuildReport(Report):
    """What a build did.

    Attributes:
        outcome: ``built``; ``complete``: it was finished before, nothing was touched; ``withheld``: everything is
            there except the manifest, because there are more rejects than allowed.
        manifest: Of the dataset, whether or not it was written.
        seconds: How long this run took.
        items: Items converted by this run; fewer than the dataset holds after a resume.
        size_bytes: Source bytes of these items.
        resumed_shards: Shards that an earlier run had finished.
        rejects: All rejects of the dataset.
        annotation_errors: Damaged annotations met by this build, one sentence each.
        warnings: What the listing had to say, and that no image could be stored.
    """

    outcome: Literal["built", "complete", "withheld"]
    manifest: Manifest
    seconds: float
    items: int
    size_bytes: int
    resumed_shards: int
    rejects: tuple[Reject, ...]
    annotation_errors: tuple[str, ...]
    warnings: tuple[str, ...]

    def _facts(self) -> list[str]:
        manifest = self.manifest
        splits = [
            f"{name}: {format_count(split.records, 'record')} in {format_count(len(split.shards), 'shard')}, "
            f"{format_size(split.size_bytes)}"
            for name, split in manifest.splits.items()
        ]
        note = manifest.schema.label_note
        facts = [f"{self.outcome}: dataset {manifest.dataset_id}", *splits]
        facts.append(f"{format_count(manifest.classes, 'class')}{', ' * bool(note)}{note}")
        facts += reject_facts(self.rejects)
        return [*facts, f"{format_count(self.items, 'image')} in {format_seconds(self.seconds)}"]


@dataclass(frozen=True, slots=True, repr=False)
class PartReport(Report):
    """What one part of a build did.

    Attributes:
        part: Which part: ``part.number``, from 0, of ``part.count``.
        shards: How many shards are its own; all of them are complete.
        resumed_shards: How many of those an earlier run had finished.
        all_shards: How many shards the dataset has.
        missing_shards: How many of those no part has finished yet.
        seconds: How long this run took.
        items: Items converted by this run.
        size_bytes: Source bytes of these items.
        rejects: Rejects in the shards of the part.
        annotation_errors: Damaged annotations in them, one sentence each.
        warnings: What the listing had to say.
        dataset: The report of the whole build, if no shard is missing any more; None otherwise.
    """

    part: Part
    shards: int
    resumed_shards: int
    all_shards: int
    missing_shards: int
    seconds: float
    items: int
    size_bytes: int
    rejects: tuple[Reject, ...]
    annotation_errors: tuple[str, ...]
    warnings: tuple[str, ...]
    dataset: BuildReport | None

    def _facts(self) -> list[str]:
        facts = [
            f"{self.part}: {self.shards:,} of {format_count(self.all_shards, 'shard')}",
            f"{format_count(self.missing_shards, 'shard')} of other parts missing",
        ]
        facts += reject_facts(self.rejects)
        return [*facts, f"{format_count(self.items, 'image')} in {format_seconds(self.seconds)}"]


def build_report(written: Written, tree: Source, destination: Location, seconds: float) -> BuildReport:
    """Return what a build of a source did that is not a part, or the part that ended last."""
    manifest = written.manifest
    assert manifest is not None, "shards are missing"
    assert written.outcome != "part"
    rejects = tuple(rejects_of(written.results))
    if written.outcome == "complete":
        rejects = read_rejects(destination, manifest.files.get(REJECTS_NAME))
    empty = nothing_stored(manifest, rejects) if written.outcome == "written" else ""
    return BuildReport(
        outcome="built" if written.outcome == "written" else written.outcome,
        manifest=manifest,
        seconds=seconds,
        items=written.items,
        size_bytes=written.size_bytes,
        resumed_shards=len(written.resumed),
        rejects=rejects,
        annotation_errors=tuple(error for result in written.results for error in result.annotation_errors),
        warnings=(*tree.warnings, empty) if empty else tree.warnings,
    )


def nothing_stored(manifest: Manifest, rejects: Sequence[Reject]) -> str:
    """Return what to say of a build all of whose images are rejects; empty of others."""
    if manifest.records or not rejects:
        return ""
    return f"no image could be stored; the first is {rejects[0].key}: {rejects[0].reason}"


def rejects_of(results: Iterable[ShardResult]) -> Iterator[Reject]:
    """Yield every reject, in the order of the shards."""
    for result in results:
        for reject in result.rejects:
            yield Reject(reject.key, result.split, reject.reason)


def describe_build(
    plan: Plan, settings: BuildSettings, results: Sequence[ShardResult], destination: Location
) -> Manifest:
    """Write the files beside the shards of a build, and return its manifest, which is not written."""
    classes, texts = _classes(plan.tree, results)
    manifest = _make_manifest(plan, settings, results, len(classes))
    base = settings.schema.label_base
    numbered = PRESETS[settings.options.preset].numbered_labels
    labels = write_labels(destination, classes, texts, base, numbered=numbered)
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
    for result in results:
        converted.update(result.converted)
    formats = sum_of_formats(result.formats for result in results)
    by_pillow = any(field.is_image for field in plan.tree.fields.values())
    by_pillow |= any("encoded" in formats.get(name, ()) for name in ("png", "webp"))
    return Manifest(
        stoker_version=stoker_version(),
        schema=stored_schema(plan.tree, settings, classes),
        recipe=recipe_record(settings),
        seed=settings.options.seed,
        source=SourceInfo(plan.items, plan.size_bytes, plan.tree.fingerprint(), plan.tree.ignored),
        converted=dict(sorted(converted.items())),
        annotation_errors=sum(len(result.annotation_errors) for result in results),
        splits={split.name: _split(plan, split, settings.schema.label_base, results, classes) for split in plan.splits},
        compression=settings.compression,
        shard_names=settings.naming.text,
        limit=settings.options.num_images,
        formats=formats,
        encoders=encoder_versions() if by_pillow else {},
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
