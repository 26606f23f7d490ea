"""Reports of builds and of parts of builds."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stoker.builder.companions import rejects_of
from stoker.config import format_count, format_seconds, format_size
from stoker.errors import printable
from stoker.format import (
    REJECTS_NAME,
    Manifest,
    read_rejects,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.builder.parts import Part
    from stoker.builder.writing import Written
    from stoker.sources import Source
    from stoker.storage import Location
    from stoker.types import Reject


class Report(ABC):
    """The report of a call that writes; consoles and notebooks show its facts."""

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
        """Return facts for people, the most important first."""


def reject_facts(rejects: Sequence[Reject]) -> list[str]:
    """Return what a report says about rejects; nothing without any."""
    return [f"{format_count(len(rejects), 'reject')}, the first {rejects[0].key}"] if rejects else []


@dataclass(frozen=True, slots=True, repr=False)
class BuildReport(Report):
    """The report of a build.

    Attributes:
        outcome: ``built``; ``complete``: it was finished before, nothing was touched; ``withheld``: everything is
            there except the manifest, because there are more rejects than allowed.
        manifest: Manifest of the dataset, whether or not it was written.
        seconds: Duration of this run.
        items: Items converted by this run; fewer than the dataset holds after a resume.
        size_bytes: Source bytes of these items.
        resumed_shards: Shards that an earlier run had finished.
        rejects: All rejects of the dataset.
        annotation_errors: Damaged annotations found by this build, one sentence each.
        warnings: Warnings of the listing, and one if no image could be stored.
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
    """The report of one part of a build.

    Attributes:
        part: The part: ``part.number``, from 0, of ``part.count``.
        shards: Number of shards of this part, all of which are complete.
        resumed_shards: Number of these that an earlier run had finished.
        all_shards: Number of shards of the dataset.
        missing_shards: Number of those that no part has finished yet.
        seconds: Duration of this run.
        items: Items converted by this run.
        size_bytes: Source bytes of these items.
        rejects: Rejects in the shards of the part.
        annotation_errors: Damaged annotations of these shards, one sentence each.
        warnings: Warnings of the listing.
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


def build_report(written: Written, source: Source, destination: Location, seconds: float) -> BuildReport:
    """Return the report of a build without parts, or of the part that finished a dataset."""
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
        warnings=(*source.warnings, empty) if empty else source.warnings,
    )


def nothing_stored(manifest: Manifest, rejects: Sequence[Reject]) -> str:
    """Return a warning if all images of a build are rejects; otherwise an empty text."""
    if manifest.records or not rejects:
        return ""
    return f"no image could be stored; the first is {rejects[0].key}: {rejects[0].reason}"
