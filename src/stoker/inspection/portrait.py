"""Everything about a dataset that a page shows: counts, classes, sizes, some of its images, and what was rejected."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker.config import check_range
from stoker.feed.opening import open_splits
from stoker.inspect import ClassCount
from stoker.inspection.rejected import Rejects, recorded_rejects, unreadable_rejects
from stoker.inspection.sampling import Measured, draw_strip, measure, spread

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from stoker.feed import Dataset
    from stoker.inspection.sampling import Thumbnail
    from stoker.records.manifest import Manifest
    from stoker.types import Progress, SchemaInfo

Kind = Literal["dataset", "records", "files"]


@dataclass(frozen=True, slots=True)
class PortraitSpec:
    """How much is looked at.

    Attributes:
        samples: Random samples whose headers say how large images are; all of them where there are fewer.
        strip: Of these, how many are shown.
        gallery: Rejects that are shown.
        source: What the dataset was built from, where the rejects can still be looked at; None: they are named only.
        seed: Decides which samples.

    Raises:
        ConfigError: A value is out of range.
    """

    samples: int = 1000
    strip: int = 18
    gallery: int = 24
    source: str | None = None
    seed: int = 17

    def __post_init__(self) -> None:
        check_range("samples", self.samples, 1, 2**24)
        check_range("strip", self.strip, 0, 200)
        check_range("gallery", self.gallery, 0, 1000)
        check_range("seed", self.seed, 0, 2**63 - 1)


@dataclass(frozen=True, slots=True)
class SplitPortrait:
    """One split.

    Attributes:
        samples: How many it has.
        size_bytes: Length of its shards or files.
        shard_bytes: Length of each shard, in their order; empty where samples are files.
        rejects: Source items that are not in it; None where nobody has recorded that.
    """

    samples: int
    size_bytes: int
    shard_bytes: tuple[int, ...]
    rejects: int | None


@dataclass(frozen=True, slots=True)
class Portrait:
    """What a page about a dataset shows.

    Attributes:
        path: Where it lies, as it was named.
        kind: ``dataset``: what ``stoker build`` made. ``records``: TFRecords of other origin. ``files``: image files.
        splits: By name.
        manifest: What the build recorded; None for what Stoker did not build.
        schema: Which features hold what.
        classes: How often each class occurs.
        counted: Samples that ``classes`` counts: all of them, or those that were looked at.
        unlabelled: Of these, how many have no class.
        measured: What the headers of random samples say.
        strip: Some of the samples.
        rejects: What is not in the dataset, or cannot be read.
    """

    path: str
    kind: Kind
    splits: Mapping[str, SplitPortrait]
    manifest: Manifest | None
    schema: SchemaInfo
    classes: tuple[ClassCount, ...]
    counted: int
    unlabelled: int
    measured: Measured
    strip: tuple[Thumbnail, ...]
    rejects: Rejects = field(default_factory=Rejects)

    @property
    def samples(self) -> int:
        """Samples of all splits."""
        return sum(split.samples for split in self.splits.values())

    @property
    def size_bytes(self) -> int:
        """Bytes of all splits."""
        return sum(split.size_bytes for split in self.splits.values())


def dataset_portrait(
    path: str | os.PathLike[str], spec: PortraitSpec | None = None, progress: Progress | None = None
) -> Portrait:
    """Look at a dataset: at what is recorded, and at the headers of random samples.

    Memory: a few images at a time, and the thumbnails. A sample that cannot be read is counted and named.

    Args:
        path: What `stoker.open` opens.
        spec: How much to look at.
        progress: Told how many samples were looked at.

    Raises:
        DatasetNotFoundError: There is no dataset at ``path``.
        StokerError: The dataset as a whole cannot be opened.
        OSError: The store cannot be read.
    """
    spec = spec or PortraitSpec()
    opened = open_splits(path)
    some = next(iter(opened.values()))
    measured = measure(opened, spread(opened, spec.samples, spec.seed), progress)
    classes, counted, unlabelled = _classes(opened, measured)
    manifest = some.manifest
    if manifest is None:
        rejects = unreadable_rejects(str(path), measured, spec.gallery)
    else:
        rejects = recorded_rejects(str(path), manifest.source.items, spec.gallery, spec.source)
    return Portrait(
        path=str(path),
        kind="dataset" if manifest else "records" if some.shards else "files",
        splits={name: _split(one) for name, one in opened.items()},
        manifest=manifest,
        schema=some.schema,
        classes=classes,
        counted=counted,
        unlabelled=unlabelled,
        measured=measured,
        strip=draw_strip(opened, measured.readable[: spec.strip]),
        rejects=rejects,
    )


def _split(dataset: Dataset) -> SplitPortrait:
    manifest = dataset.manifest
    recorded = None if manifest is None else manifest.splits[dataset.split]
    shards = recorded.shards if recorded is not None else dataset.shards
    return SplitPortrait(
        samples=len(dataset),
        size_bytes=recorded.size_bytes if recorded is not None else dataset.size_bytes,
        shard_bytes=tuple(shard.size_bytes for shard in shards),
        rejects=None if recorded is None else recorded.rejects,
    )


def _classes(opened: Mapping[str, Dataset], measured: Measured) -> tuple[tuple[ClassCount, ...], int, int]:
    """Return the classes, how many samples they count, and how many of these have none."""
    counts: dict[str, dict[int, int]] = {name: _counts(one) for name, one in opened.items()}
    if any(one.manifest is None and one.shards for one in opened.values()):  # to count all is to read all
        counts = {name: {} for name in opened}
        for seen in measured.seen:
            counts[seen.split][seen.label] = counts[seen.split].get(seen.label, 0) + 1
    some = next(iter(opened.values()))
    first = some.schema.label_base
    labels = set(range(first, len(some.classes))) | {label for found in counts.values() for label in found}
    made = []
    for label in sorted(labels - {-1}):
        name, text = "", ""
        with contextlib.suppress(IndexError):
            name, text = some.classes[label].name, some.classes[label].text
        made.append(ClassCount(label, name, text, {split: found.get(label, 0) for split, found in counts.items()}))
    unlabelled = sum(found.get(-1, 0) for found in counts.values())
    return tuple(made), sum(sum(found.values()) for found in counts.values()), unlabelled


def _counts(dataset: Dataset) -> dict[int, int]:
    """Return how often each label occurs, -1 for none, where that is known without reading records."""
    if dataset.manifest is not None:
        split = dataset.manifest.splits[dataset.split]
        counted = {label: count for label, count in enumerate(split.class_counts) if count}
        return counted | ({-1: split.unlabelled} if split.unlabelled else {})
    if dataset.shards:
        return {}
    labels, counts = np.unique(dataset.labels, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))
