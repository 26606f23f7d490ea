"""What a build will cost, found by converting a small sample of the items."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.build.job import ItemConverter, Outcome
    from stoker.build.plan import Plan
    from stoker.sources import Item, SourceTree

_RATIO_ITEMS = 64
_MEASURE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sample of the items tells about the whole build.

    Attributes:
        sampled: Items that were converted.
        rejected: How many of them would be rejected.
        converted: How many of them cannot be kept as they are, by the format of their source.
        size_bytes: Expected bytes of all shards.
        seconds: Expected duration with the threads that were measured, all files in the page cache.
    """

    sampled: int
    rejected: int
    converted: dict[str, int]
    size_bytes: int
    seconds: float


def stored_ratio(tree: SourceTree, converter: ItemConverter) -> float:
    """Return the expected bytes of shards for each byte of source: the same for the same tree, on any machine."""
    rows = _sample_rows(tree, _RATIO_ITEMS)
    items = [tree.table[row] for row in rows.tolist()]
    outcomes = [converter.convert([item], "", _never) for item in items]
    return _ratio(items, outcomes)


def estimate(plan: Plan, converter: ItemConverter, threads: int) -> Estimate:
    """Convert a seeded sample for about a second and extrapolate."""
    items: list[Item] = []
    outcomes: list[Outcome] = []
    rows = iter(_sample_rows(plan.tree, len(plan.tree.table)).tolist())
    started = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        while time.monotonic() - started < _MEASURE_SECONDS:
            batch = [plan.tree.table[row] for row in islice(rows, threads * 8)]
            if not batch:
                break
            items += batch
            outcomes += pool.map(lambda item: converter.convert([item], "", _never), batch)
    seconds = time.monotonic() - started
    converted: Counter[str] = Counter()
    for outcome in outcomes:
        converted += outcome.converted
    return Estimate(
        sampled=len(items),
        rejected=sum(len(outcome.rejects) for outcome in outcomes),
        converted=dict(converted),
        size_bytes=round(_ratio(items, outcomes) * plan.size_bytes),
        seconds=seconds * plan.items / max(1, len(items)),
    )


def _ratio(items: list[Item], outcomes: list[Outcome]) -> float:
    source = sum(item.size_bytes for item in items)
    stored = sum(len(frame) for outcome in outcomes for frame in outcome.frames)
    return stored / source if source else 1.0


def _sample_rows(tree: SourceTree, count: int) -> NDArray[np.int64]:
    total = len(tree.table)
    return _native.permute(0, min(count, total), total, 0, 0).astype(np.int64) if total else np.empty(0, np.int64)


def _never() -> bool:
    return False
