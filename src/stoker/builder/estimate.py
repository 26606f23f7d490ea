"""What a build will cost, found by converting a small sample of the items."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.builder.plan import RecordSize
from stoker.builder.shard import request_threads
from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stoker.builder.plan import Plan
    from stoker.builder.shard import ItemConverter, Outcome
    from stoker.sources import Item, Source


_RATIO_ITEMS = 64
_KEPT_BYTES = 2**24
_MEASURE_SECONDS = 1.0
_BATCH_PER_THREAD = 8


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sample of the items tells about the whole build.

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


def sample_records(
    tree: Source, converter: ItemConverter, threads: int
) -> tuple[RecordSize, dict[tuple[Item, str], Outcome]]:
    """Return how long the records of a tree will be, and some records, by item and split, that need not be made again.

    The first is the same for the same tree on any machine. The second are bounded in bytes: a build holds them until
    their turn comes.
    """
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


def estimate(plan: Plan, converter: ItemConverter, threads: int) -> Estimate:
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
