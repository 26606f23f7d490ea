"""What a build will find and cost, from a small sample that is converted before anything is written."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stoker.builder.convert import UNREADABLE, ItemConverter, request_threads
from stoker.builder.duplicates import duplicates_to_drop
from stoker.builder.plan import Plan, RecordSize, make_plan
from stoker.config import IMAGE_SUFFIXES, format_size, option
from stoker.errors import ConfigError
from stoker.format import ItemReject
from stoker.order import random_sample
from stoker.sources import counts_of
from stoker.storage import stoppable_pool
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stoker.builder.convert import Outcome
    from stoker.builder.settings import BuildSettings
    from stoker.recipe import Storing
    from stoker.sources import Item, Source
    from stoker.storage import Location
    from stoker.types import Progress


LARGE_BYTES = 200_000_000_000
"""A dataset that is expected to be larger needs ``allow_huge``: ImageNet's JPEGs do not, its raw pixels do."""
_RATIO_ITEMS = 64
_KNOWN_BYTES = 2**24
_MEASURE_SECONDS = 1.0
_BATCH_PER_THREAD = 8

SURVEY_LIMIT = 20_000
"""The most items that are checked, a seeded sample of a larger source: all of ImageNet would have to be read."""
SURVEY_LIMIT_BY_URL = 256
_PROGRESS_ITEMS = 64

_USUAL_BYTES = 100_000
"""Assumed length of the record of an image by URL. Answers of servers differ, and the shards of a list must not."""

_NO_IMAGE = frozenset({"empty", "text", "unknown", "pdf", UNREADABLE})


@dataclass(frozen=True, slots=True)
class OddFile:
    """A file whose content is not an image, or another format than its name says."""

    key: str
    content: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What the items hold, by their headers."""

    looked_at: int  # items that were checked: all, or a seeded sample
    formats: dict[str, int]  # number of items with each content, as `sniff` names it
    storings: dict[Storing, int]  # number of items that a build will store in each way, without rejects
    odd: tuple[OddFile, ...]  # odd files, in the order of the source
    rejects: tuple[Reject, ...]  # items that a build will reject, in the order of the source
    turned: int  # number of other items with an EXIF orientation that turns or mirrors them


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sample of the items says about the whole build."""

    sampled: int  # items that were converted
    rejected: int  # number of these that would be rejected
    annotation_errors: tuple[str, ...]  # their damaged annotations; such images are stored without boxes
    converted: dict[str, int]  # number of these that cannot be kept as they are, by the format of their source
    size_bytes: int  # expected bytes of all shards
    seconds: float  # expected duration with the threads that were measured, files of this machine in the page cache


@dataclass(frozen=True, slots=True, eq=False)
class BuildForecast:
    """What a build would do."""

    settings: BuildSettings
    plan: Plan
    class_counts: tuple[int, ...]  # items of each class, over all splits
    box_counts: tuple[int, ...]  # boxes of each class, over all splits; empty where boxes have no classes of their own
    survey: Survey  # what the items hold, and which of them will be rejected
    estimate: Estimate
    dropped: int = 0  # duplicates that will be left out, and listed as rejects

    @property
    def items(self) -> int:
        """Number of items that a build will read: all but the duplicates that it leaves out."""
        return self.plan.items - self.dropped

    @property
    def rejects(self) -> int:
        """Number of these that a build will reject: counted, or extrapolated from a sample."""
        sampled = len(self.survey.rejects)
        return round(sampled * self.items / max(1, self.survey.looked_at))

    @property
    def is_withheld(self) -> bool:
        """Whether a build will withhold the manifest because of the rejects."""
        return self.rejects > self.settings.options.max_rejects


def forecast(source: Source, settings: BuildSettings, progress: Progress | None = None) -> BuildForecast:
    """Check every item that a build would take, or a sample of many, convert a small sample, and write nothing."""
    listed = sampled(source, settings, progress)
    plan, converter = make_plan(source, settings, listed.size), ItemConverter(source, settings.recipe, settings.schema)
    sample = _Sample(plan, list(listed.dropped))
    estimate, rejects = _estimate(sample, converter, settings.threads)
    return BuildForecast(
        settings,
        plan,
        tuple(counts_of(source.table.labels, source.splits.values(), len(source.classes))[1:].tolist()),
        tuple(map(sum, zip(*source.box_counts().values(), strict=True))),
        _survey(sample, converter, settings.threads, rejects, progress),
        estimate,
        len(listed.dropped),
    )


class _Sample:
    """A seeded sample of the items of a plan, in random order; some rows are left out."""

    def __init__(self, plan: Plan, left_out: Sequence[int]) -> None:
        self.plan, self.items = plan, plan.items - len(left_out)
        self.size_bytes = plan.size_bytes - int(plan.source.table.sizes[left_out].sum())
        self._numbers = np.full(len(plan.source.table), -1, np.int8)
        for number, split in enumerate(plan.splits):
            self._numbers[split.rows] = number
        self._numbers[left_out] = -1
        ordered = np.flatnonzero(self._numbers >= 0) if self.items < len(self._numbers) else None
        limit = SURVEY_LIMIT_BY_URL if plan.source.latency == "web" else SURVEY_LIMIT
        chosen = random_sample(limit, self.items)
        self.rows = chosen if ordered is None else ordered[chosen]

    def item(self, row: int) -> tuple[Item, str]:
        return self.plan.source.table[row], self.plan.splits[self._numbers[row]].name


def _survey(
    sample: _Sample, converter: ItemConverter, threads: int, known: Mapping[int, ItemReject], progress: Progress | None
) -> Survey:
    """Check all items of a sample; ``known`` are rejects, by row, for damage that no header shows."""
    rows = np.sort(sample.rows).tolist()
    formats: Counter[str] = Counter()
    storings: Counter[Storing] = Counter()
    odd, rejects = [], []
    done = size_bytes = turned = 0

    def check(row: int) -> tuple[str, Storing | ItemReject, bool]:
        item, split = sample.item(row)
        return converter.check(item, split)

    with stoppable_pool(request_threads(sample.plan.source, threads), "stoker-survey", only_reads=True) as pool:
        for row, (content, result, is_turned) in zip(rows, pool.map(check, rows), strict=True):
            item, split = sample.item(row)
            formats[content] += 1
            claimed = IMAGE_SUFFIXES.get(os.fsdecode(item.path[item.path.rfind(b".") + 1 :]).lower())
            if content in _NO_IMAGE or claimed not in (None, content):
                odd.append(OddFile(item.key, content))
            reject = known.get(row)
            if isinstance(result, ItemReject):
                reject = result
            elif reject is None:
                storings[result] += 1
            turned += is_turned and reject is None
            if reject is not None:
                rejects.append(Reject(reject.key, split, reject.reason))
            done, size_bytes = done + 1, size_bytes + item.size_bytes
            if progress is not None and done % _PROGRESS_ITEMS == 0:
                progress(done=done, total=len(rows), size_bytes=size_bytes, rejects=len(rejects))
    stored = sorted(storings.items(), key=lambda entry: (-entry[1], entry[0].source))
    return Survey(len(rows), dict(formats.most_common()), dict(stored), tuple(odd), tuple(rejects), turned)


def _estimate(sample: _Sample, converter: ItemConverter, threads: int) -> tuple[Estimate, dict[int, ItemReject]]:
    """Convert a seeded sample for about a second and extrapolate; return its rejects by their rows, too."""
    plan = sample.plan
    items: list[Item] = []
    outcomes: list[Outcome] = []
    rejects: dict[int, ItemReject] = {}
    rows = iter(sample.rows.tolist())
    started = time.monotonic()
    threads = request_threads(plan.source, threads)

    def convert(row: int) -> Outcome:
        item, split = sample.item(row)
        return converter.convert([item], split)

    with stoppable_pool(threads, "stoker-estimate", only_reads=True) as pool:
        while time.monotonic() - started < _MEASURE_SECONDS:
            batch = list(islice(rows, threads * _BATCH_PER_THREAD))
            if not batch:
                break
            items += (plan.source.table[row] for row in batch)
            for row, outcome in zip(batch, pool.map(convert, batch), strict=True):
                outcomes.append(outcome)
                if outcome.rejects:
                    rejects[row] = outcome.rejects[0]
    seconds = time.monotonic() - started
    converted: Counter[str] = Counter()
    for outcome in outcomes:
        converted += outcome.converted
    estimate = Estimate(
        sampled=len(items),
        rejected=len(rejects),
        annotation_errors=tuple(sorted(error for outcome in outcomes for error in outcome.annotation_errors)),
        converted=dict(converted),
        size_bytes=round(_record_size(converter, items, outcomes).of(sample.items, sample.size_bytes)),
        seconds=seconds * sample.items / max(1, len(items)),
    )
    return estimate, rejects


@dataclass(frozen=True, slots=True)
class ListedSource:
    """A source, and what was found out about it before its shards are planned."""

    source: Source
    size: RecordSize  # length of its records
    known: Mapping[tuple[Item, str], Outcome]  # records that were made to measure that, as in `ItemConverter.known`
    dropped: Mapping[int, ItemReject] = field(default_factory=dict)  # duplicates that are left out, by their rows


def sampled(source: Source, settings: BuildSettings, progress: Progress | None = None) -> ListedSource:
    """Return a listed source with its duplicates, and with the length of its records, measured on some of them."""
    dropped = duplicates_to_drop(source, settings.options.drop_duplicates, settings.threads, progress)
    size, known = sample_records(ItemConverter(source, settings.recipe, settings.schema), settings.threads)
    return ListedSource(source, size, known, dropped)


def sample_records(converter: ItemConverter, threads: int) -> tuple[RecordSize, dict[tuple[Item, str], Outcome]]:
    """Return how long the records of a source will be, and some of them, by item and split, not to be made again.

    The length is the same for the same source on any machine. For images by URL it is assumed, and no records are made.
    The records are bounded in bytes, because a build holds them until it ends.
    """
    source = converter.source
    if source.latency == "web":
        return RecordSize(1.0, converter.recipe.fixed_bytes() or _USUAL_BYTES), {}
    rows = random_sample(_RATIO_ITEMS, len(source.table)).tolist()
    items, names = [source.table[row] for row in rows], [split_of(source, row) for row in rows]
    interrupted = threading.Event()
    with stoppable_pool(request_threads(source, threads), "stoker-sample", only_reads=True) as pool:
        try:
            outcomes = list(
                pool.map(lambda *pair: converter.convert([pair[0]], pair[1], interrupted.is_set), items, names)
            )
        finally:
            interrupted.set()
    known: dict[tuple[Item, str], Outcome] = {}
    known_bytes = 0
    for item, name, outcome in zip(items, names, outcomes, strict=True):
        known_bytes += sum(len(records.data) for records in outcome.records)
        if known_bytes > _KNOWN_BYTES:
            break
        known[replace(item, columns={}), name] = outcome  # an equal item, which holds no columns in memory
    return _record_size(converter, items, outcomes), known


def _record_size(converter: ItemConverter, items: list[Item], outcomes: list[Outcome]) -> RecordSize:
    source = sum(item.size_bytes for item in items)
    frames = [size for outcome in outcomes for records in outcome.records for size in records.sizes]
    if not frames:
        return RecordSize(1.0)
    fixed = converter.recipe.fixed_bytes() is not None or not source  # nothing tells the size of images by URL
    return RecordSize(sum(frames) / max(1, source), sum(frames) / len(frames) if fixed else None)


def split_of(source: Source, row: int) -> str:
    """Return the split of a row."""
    for name, rows in source.splits.items():
        at = int(np.searchsorted(rows, row))
        if at < len(rows) and rows[at] == row:
            return name
    raise IndexError(f"row {row} is in no split")


@dataclass(frozen=True, slots=True)
class ExpectedSize:
    """Expected size of a dataset."""

    records: int  # how many records it will have
    size_bytes: int  # expected bytes of its shards before compression
    free_bytes: int | None  # free space at the destination; None if a store does not say
    shard_rule: str = ""  # as in `Plan`

    @classmethod
    def of(cls, plan: Plan, size: RecordSize, destination: Location) -> ExpectedSize:
        """Return the expected size of a plan."""
        expected = round(size.of(plan.items, plan.size_bytes))
        return cls(plan.items, expected, destination.free_bytes(), plan.shard_rule)

    def refuse_huge(self) -> None:
        """Refuse a dataset that is huge, or larger than the space that is free."""
        size, free = format_size(self.size_bytes), format_size(self.free_bytes or 0)
        if self.size_bytes > LARGE_BYTES:
            message = f"the dataset will take about {size}, more than {format_size(LARGE_BYTES)}"
            message += "" if self.free_bytes is None else f"; {free} are free"
            raise ConfigError(f"{message}; add {option('allow_huge')} to build it anyway")
        if self.free_bytes is not None and self.size_bytes > self.free_bytes:
            message = f"the dataset will take about {size}, and only {free} are free; free some or build elsewhere"
            raise ConfigError(
                f"{message}, or add {option('allow_huge')} to begin anyway: a build that fills the disk can be resumed"
            )
