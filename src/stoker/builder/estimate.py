"""What a build will meet and cost, found before anything is written by converting a small sample of the items."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.builder.convert import ItemConverter, request_threads
from stoker.builder.plan import Plan, RecordSize, make_plan, open_source
from stoker.config import format_size
from stoker.errors import ConfigError, StorageError
from stoker.recipe import SNIFF_BYTES, sniff
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stoker.builder.convert import Outcome
    from stoker.builder.settings import BuildSettings
    from stoker.sources import Item, Source
    from stoker.storage import Location
    from stoker.types import Progress


LARGE_BYTES = 200_000_000_000
"""A dataset that is expected to be larger needs a person's consent: ImageNet's JPEGs do not, its pixels do."""
_RATIO_ITEMS = 64
_KEPT_BYTES = 2**24
_MEASURE_SECONDS = 1.0
_BATCH_PER_THREAD = 8

SURVEY_LIMIT = 20_000
"""Files that are looked at; of a larger tree, a seeded sample of this many."""

_CLAIMS = {
    b"jpg": "jpeg",
    b"jpeg": "jpeg",
    b"jpe": "jpeg",
    b"jfif": "jpeg",
    b"png": "png",
    b"gif": "gif",
    b"bmp": "bmp",
    b"webp": "webp",
    b"tif": "tiff",
    b"tiff": "tiff",
    b"jp2": "jpeg2000",
}
_UNREADABLE = "unreadable"
_NO_IMAGE = frozenset({"empty", "text", "unknown", "pdf", "heif", _UNREADABLE})


@dataclass(frozen=True, slots=True)
class OddFile:
    """A file that will be rejected, or whose content is another format than its name says."""

    key: str
    content: str


@dataclass(frozen=True, slots=True)
class Survey:
    """What the first bytes say.

    Attributes:
        looked_at: Files that were opened: all, or a sample of `SURVEY_LIMIT`.
        formats: How many of them have which content, in the words of `stoker.recipe.sniff`, or ``unreadable``.
        odd: Those that are odd, in the order of the tree.
    """

    looked_at: int
    formats: dict[str, int]
    odd: tuple[OddFile, ...]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sample of the items says about the whole build.

    Attributes:
        sampled: Items that were converted.
        rejected: How many of them would be rejected.
        converted: How many of them cannot be kept as they are, by the format of their source.
        size_bytes: Expected bytes of all shards.
        seconds: Expected duration with the threads that were measured, files of this machine in the page cache.
    """

    sampled: int
    rejected: int
    converted: dict[str, int]
    size_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class BuildForecast:
    """What a build would do.

    Attributes:
        settings: Its settings.
        plan: Splits, shards and items.
        class_counts: Items of each class, over all splits.
        survey: What the files hold, by their first bytes.
        estimate: Bytes and seconds.
    """

    settings: BuildSettings
    plan: Plan
    class_counts: tuple[int, ...]
    survey: Survey
    estimate: Estimate


def forecast(settings: BuildSettings, progress: Progress | None = None) -> BuildForecast:
    """Look at the source, convert a small sample of it, and write nothing.

    Args:
        settings: What would be built.
        progress: Called as the listing advances, where that takes long.

    Raises:
        ConfigError: The settings do not fit the source.
        SourceError: The source cannot be listed.
    """
    tree = open_source(settings.source, progress)
    converter = ItemConverter(tree, settings.recipe, settings.schema)
    size, _ = sample_records(converter, settings.threads)
    plan = make_plan(tree, settings, size)
    return BuildForecast(
        settings,
        plan,
        tuple(np.bincount(tree.table.labels + 1, minlength=len(tree.classes) + 1)[1:].tolist()),
        _survey(tree, settings.threads),
        _estimate(plan, converter, settings.threads),
    )


def _survey(tree: Source, threads: int) -> Survey:
    """Read the first bytes of every file, or of a sample."""
    total = len(tree.table)
    rows = np.arange(total)
    if total > SURVEY_LIMIT:
        rows = np.sort(_native.permute(0, SURVEY_LIMIT, total, 0, 0).astype(np.int64))
    items = [tree.table[row] for row in rows.tolist()]
    with stoppable_pool(request_threads(tree, threads), "stoker-survey") as pool:
        contents = list(pool.map(lambda item: _content(tree, item), items, chunksize=64))
    odd = [
        OddFile(item.key, content)
        for item, content in zip(items, contents, strict=True)
        if content in _NO_IMAGE or _claim(item.path) not in (None, content)
    ]
    return Survey(len(items), dict(Counter(contents).most_common()), tuple(odd))


def _content(tree: Source, item: Item) -> str:
    try:
        return sniff(tree.peek(item, SNIFF_BYTES))
    except StorageError:
        raise
    except OSError:
        return _UNREADABLE


def _claim(path: bytes) -> str | None:
    """Return the format that a file name promises, or None."""
    return _CLAIMS.get(path[path.rfind(b".") + 1 :].lower())


def _estimate(plan: Plan, converter: ItemConverter, threads: int) -> Estimate:
    """Convert a seeded sample for about a second and extrapolate."""
    items: list[Item] = []
    outcomes: list[Outcome] = []
    rows, splits = iter(_sample_rows(plan.tree, len(plan.tree.table)).tolist()), _splits_of(plan.tree)
    started = time.monotonic()
    threads = request_threads(plan.tree, threads)
    with stoppable_pool(threads, "stoker-estimate") as pool:
        while time.monotonic() - started < _MEASURE_SECONDS:
            batch = list(islice(rows, threads * _BATCH_PER_THREAD))
            if not batch:
                break
            items += (plan.tree.table[row] for row in batch)
            outcomes += pool.map(lambda row: converter.convert([plan.tree.table[row]], splits(row)), batch)
    seconds = time.monotonic() - started
    converted: Counter[str] = Counter()
    for outcome in outcomes:
        converted += outcome.converted
    return Estimate(
        sampled=len(items),
        rejected=sum(len(outcome.rejects) for outcome in outcomes),
        converted=dict(converted),
        size_bytes=round(_record_size(converter, items, outcomes).of(plan.items, plan.size_bytes)),
        seconds=seconds * plan.items / max(1, len(items)),
    )


def sample_records(converter: ItemConverter, threads: int) -> tuple[RecordSize, dict[tuple[Item, str], Outcome]]:
    """Return how long the records of a tree will be, and some records, by item and split, that need not be made again.

    The first is the same for the same tree on any machine. The second are bounded in bytes: a build holds them until it
    ends.
    """
    tree = converter.tree
    rows, splits = _sample_rows(tree, _RATIO_ITEMS).tolist(), _splits_of(tree)
    items, names = [tree.table[row] for row in rows], [splits(row) for row in rows]
    interrupted = threading.Event()
    with stoppable_pool(request_threads(tree, threads), "stoker-sample") as pool:
        try:
            outcomes = list(
                pool.map(lambda *one: converter.convert([one[0]], one[1], interrupted.is_set), items, names)
            )
        finally:
            interrupted.set()
    known: dict[tuple[Item, str], Outcome] = {}
    kept = 0
    for item, name, outcome in zip(items, names, outcomes, strict=True):
        kept += sum(map(len, outcome.frames))
        if kept > _KEPT_BYTES:
            break
        known[item, name] = outcome
    return _record_size(converter, items, outcomes), known


def _record_size(converter: ItemConverter, items: list[Item], outcomes: list[Outcome]) -> RecordSize:
    source = sum(item.size_bytes for item in items)
    frames = [len(frame) for outcome in outcomes for frame in outcome.frames]
    if not source or not frames:
        return RecordSize(1.0)
    fixed = converter.recipe.fixed_bytes() is not None
    return RecordSize(sum(frames) / source, sum(frames) / len(frames) if fixed else None)


def _splits_of(tree: Source) -> Callable[[int], str]:
    """Return what gives the split of a row."""
    names = list(tree.splits)
    numbers = np.zeros(len(tree.table), np.int8)
    for number, name in enumerate(names):
        numbers[tree.splits[name]] = number
    return lambda row: names[numbers[row]]


def _sample_rows(tree: Source, count: int) -> NDArray[np.int64]:
    total = len(tree.table)
    return _native.permute(0, min(count, total), total, 0, 0).astype(np.int64) if total else np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ExpectedSize:
    """What a dataset will take.

    Attributes:
        records: How many records it will have.
        size_bytes: Expected bytes of its shards before compression.
        free_bytes: Free space where it will lie; None where a store does not say.
    """

    records: int
    size_bytes: int
    free_bytes: int | None

    @classmethod
    def of(cls, plan: Plan, size: RecordSize, destination: Location) -> ExpectedSize:
        """Return what a plan amounts to."""
        return cls(plan.items, round(size.of(plan.items, plan.size_bytes)), destination.free_bytes())

    def refuse_huge(self) -> None:
        """Refuse a dataset that is huge, or larger than the space that is free.

        Raises:
            ConfigError: It is.
        """
        size, free = format_size(self.size_bytes), format_size(self.free_bytes or 0)
        if self.size_bytes > LARGE_BYTES:
            message = f"the dataset will take about {size}, more than {format_size(LARGE_BYTES)}"
            message += "" if self.free_bytes is None else f"; {free} are free"
            raise ConfigError(f"{message}; add --yes to build it all the same")
        if self.free_bytes is not None and self.size_bytes > self.free_bytes:
            message = f"the dataset will take about {size}, and only {free} are free; free some or build elsewhere"
            raise ConfigError(f"{message}, or add --yes to begin all the same: a full disk leaves a build to resume")
