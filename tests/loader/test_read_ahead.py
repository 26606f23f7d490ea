"""What is planned ahead when extents are unknown, or no more samples are asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stoker import _native
from stoker.errors import IndexMismatchError
from stoker.loader.read_ahead import Planner, RangeLimits, Upcoming, in_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECORD = 10


def extents(numbers: NDArray[np.uint64], objects: NDArray[np.int32] | None = None) -> tuple[NDArray[np.int64], ...]:
    """Where samples lie: one behind the other in one file; of the second 4096 it is unknown."""
    if ((numbers >= 4096) & (numbers < 8192)).any():
        raise IndexMismatchError("the index does not describe its shard")
    offset = numbers.astype(np.int64) * RECORD
    return np.zeros_like(offset), offset, np.full_like(offset, RECORD)


def planned(ranges: _native.RemoteRanges) -> list[int]:
    """The samples that are in the ranges that are asked for."""
    samples: list[int] = []
    while (job := ranges.next(0.0)) is not None:
        _, _, offset, length = job
        samples += range(offset // RECORD, (offset + length) // RECORD)
        ranges.deliver(job[0], bytes(length))
    return samples


def test_samples_whose_extents_are_unknown_are_left_to_the_readers() -> None:
    ranges = _native.RemoteRanges(2**20)
    planner = Planner(ranges, extents, RangeLimits(window=2**19, gap=0, longest=2**19), 2**62)
    planner.begin(in_order(range(3 * 4096)))
    planner.plan_until(3 * 4096)
    assert sorted(planned(ranges)) == [*range(4096), *range(8192, 3 * 4096)]


@pytest.mark.parametrize("count", [4096, 4000])
def test_a_future_may_end_with_a_window_or_be_at_hand_already(count: int) -> None:
    ranges = _native.RemoteRanges(2**20)
    planner = Planner(ranges, extents, RangeLimits(window=2**19, gap=0, longest=2**19, uses=4096), 2**62)
    planner.begin(in_order(range(count)))
    planner.plan_until(count + 1)
    assert sorted(planned(ranges)) == list(range(count))
    at_hand = Upcoming(np.arange(5000, 5010, dtype=np.uint64), None, np.zeros(10, np.int64))
    planner.begin(iter([at_hand]))
    planner.plan_until(10)
    assert planned(ranges) == []


def test_the_thread_that_plans_outlives_them() -> None:
    ranges = _native.RemoteRanges(2**20)
    planner = Planner(ranges, extents, RangeLimits(window=2**19, gap=0, longest=2**19, uses=4096), 2**62)
    thread = threading.Thread(target=planner.run, daemon=True)
    thread.start()
    planner.begin(in_order(range(3 * 4096)))
    samples: set[int] = set()
    while len(samples) < 2 * 4096 and thread.is_alive():
        samples.update(planned(ranges))
    assert thread.is_alive()
    ranges.close()
    planner.close()
    thread.join(60)
    assert not thread.is_alive()
