"""What a build did."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stoker.records.rejects import read_rejects

if TYPE_CHECKING:
    from stoker.records.manifest import Manifest
    from stoker.sources import Source
    from stoker.storage import Location
    from stoker.types import Reject


@dataclass(frozen=True, slots=True)
class BuildReport:
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
        warnings: What the listing had to say.
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


def complete_report(manifest: Manifest, destination: Location, tree: Source, started: float) -> BuildReport:
    """Return what a build did that found its dataset finished.

    Args:
        manifest: Of the dataset.
        destination: Where it lies.
        tree: What it would have been built from.
        started: When it began, by a monotonic clock.
    """
    return BuildReport(
        outcome="complete",
        manifest=manifest,
        seconds=time.monotonic() - started,
        items=0,
        size_bytes=0,
        resumed_shards=sum(len(split.shards) for split in manifest.splits.values()),
        rejects=read_rejects(destination),
        annotation_errors=(),
        warnings=tree.warnings,
    )
