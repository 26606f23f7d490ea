"""Properties of the planner of byte ranges, and that it agrees with its slow twin."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import ranges as slow
from stoker.loader.read_ahead import RangeLimits, plan_ranges, window_end

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMITS = st.builds(
    RangeLimits,
    window=st.sampled_from([1, 20, 50, 100, 200, 400, 1000]),
    gap=st.sampled_from([0, 5, 10, 40]),
    longest=st.sampled_from([1, 20, 50, 100, 1000]),
    uses=st.sampled_from([1, 10, 40]),
)
RECORDS = st.lists(st.sampled_from([1, 5, 10, 20]), min_size=4, max_size=16)  # sizes of records, end to end
ANY_PIECE = st.builds(slow.Piece, st.integers(0, 2), st.integers(0, 80), st.integers(1, 60))


@st.composite
def uses_of_records(draw: st.DrawFn) -> list[slow.Piece]:
    files = draw(st.lists(RECORDS, min_size=1, max_size=3))
    pieces = [
        slow.Piece(number, sum(sizes[:record]), size)
        for number, sizes in enumerate(files)
        for record, size in enumerate(sizes)
    ]
    count = draw(st.integers(0, 40))
    return draw(st.lists(st.sampled_from(pieces), min_size=count, max_size=count))


USES = uses_of_records() | st.lists(ANY_PIECE, max_size=25)  # any pieces: they may overlap
MANY = settings(max_examples=300)


def columns(uses: list[slow.Piece]) -> tuple[NDArray[np.int64], ...]:
    table = np.array(uses, np.int64).reshape(-1, 3)
    return tuple(np.ascontiguousarray(table[:, i]) for i in range(3))


def groups_of(uses: list[slow.Piece], ends: list[int]) -> NDArray[np.int64]:
    return np.searchsorted(np.array(sorted(ends), np.int64), np.arange(len(uses)), side="right")


def windows_of(length: NDArray[np.int64], group: NDArray[np.int64], limits: RangeLimits) -> list[slice]:
    windows, start = [], 0
    while end := window_end(length[start:], group[start:], limits):
        windows.append(slice(start, start + end))
        start += end
    assert start == len(length)
    return windows


def planned(
    uses: list[slow.Piece], limits: RangeLimits, group: NDArray[np.int64] | None = None
) -> list[list[slow.Range]]:
    table = columns(uses)
    windows = windows_of(table[2], np.zeros(len(uses), np.int64) if group is None else group, limits)
    return [ranges_of([column[window] for column in table], limits, window.start) for window in windows]


def ranges_of(table: list[NDArray[np.int64]], limits: RangeLimits, start: int) -> list[slow.Range]:
    file, offset, length = table
    plan = plan_ranges(file, offset, length, limits)
    pieces = list(zip(plan.piece_offset.tolist(), plan.piece_length.tolist(), plan.piece_uses.tolist(), strict=True))
    numbers = (plan.file, plan.offset, plan.length, plan.first_use + start, plan.last_use + start)
    return [
        slow.Range(*(int(column[i]) for column in numbers), tuple(pieces[plan.starts[i] : plan.starts[i + 1]]))
        for i in range(len(plan.file))
    ]


@MANY
@given(uses=USES, limits=LIMITS, ends=st.lists(st.integers(0, 40), max_size=4))
@pytest.mark.slow
def test_it_agrees_with_the_slow_twin(uses: list[slow.Piece], limits: RangeLimits, ends: list[int]) -> None:
    group = groups_of(uses, ends)
    expected = slow.plan(uses, group.tolist(), limits.window, limits.gap, limits.longest, limits.uses)
    assert planned(uses, limits, group) == expected


@given(uses=USES, limits=LIMITS)
def test_every_use_is_inside_one_range_of_its_window(uses: list[slow.Piece], limits: RangeLimits) -> None:
    plan = planned(uses, limits)
    windows = windows_of(columns(uses)[2], np.zeros(len(uses), np.int64), limits)
    for ranges, window in zip(plan, windows, strict=True):
        for number in range(window.start, window.stop):
            use = uses[number]
            holding = [
                range_
                for range_ in ranges
                if range_.file == use.file and any(piece[:2] == use[1:] for piece in range_.pieces)
            ]
            assert len(holding) == 1
            assert holding[0].offset <= use.offset
            assert use.offset + use.length <= holding[0].offset + holding[0].length
            assert holding[0].first_use <= number <= holding[0].last_use
    assert sum(uses_ for ranges in plan for range_ in ranges for *_, uses_ in range_.pieces) == len(uses)


@given(uses=USES, limits=LIMITS)
def test_ranges_keep_the_limits(uses: list[slow.Piece], limits: RangeLimits) -> None:
    for window in planned(uses, limits):
        assert [range_.first_use for range_ in window] == sorted(range_.first_use for range_ in window)
        for range_ in window:
            assert range_.length <= max(limits.longest, *(length for _, length, _ in range_.pieces))
        used = sum(uses_ * length for range_ in window for _, length, uses_ in range_.pieces)
        assert sum(range_.length for range_ in window) <= max(limits.window, used)
        assert used <= limits.window or sum(uses_ for range_ in window for *_, uses_ in range_.pieces) == 1


@given(uses=uses_of_records(), limits=LIMITS)
def test_what_is_read_and_not_used_lies_in_gaps(uses: list[slow.Piece], limits: RangeLimits) -> None:
    for window in planned(uses, limits):
        for range_ in window:
            edges = [(offset, offset + length) for offset, length, _ in range_.pieces]
            holes = [after[0] - before[1] for before, after in itertools.pairwise(edges)]
            assert all(0 <= hole <= limits.gap for hole in holes)
            assert range_.length == sum(length for _, length, _ in range_.pieces) + sum(holes)


def test_windows_of_a_block_shuffle_hold_whole_blocks() -> None:
    group = np.repeat(np.arange(5), 30)
    windows = windows_of(np.full(150, 10), group, RangeLimits(window=700, gap=0, longest=100))
    assert [window.stop for window in windows] == [60, 120, 150]


def test_numbers_as_large_as_files_may_be_do_not_overflow() -> None:
    far = 2**62
    plan = plan_ranges(
        np.array([0, 0, 2**40]), np.array([far, 0, far]), np.array([1000, 10, 7]), RangeLimits(10**12, 100, 10**9)
    )
    assert sorted(plan.length.tolist()) == [7, 10, 1000]


def test_it_is_fast_enough_for_billions() -> None:
    uses = 100_000
    numbers = np.random.default_rng(3).permutation(2_000_000)[:uses]
    file, offset, length = numbers // 10_000, numbers % 10_000 * 110_000, np.full(uses, 110_000)
    limits = RangeLimits(1 << 27, 1 << 16, 1 << 23)
    seconds = []
    for _ in range(5):
        start = time.process_time()
        for window in windows_of(length, np.zeros(uses, np.int64), limits):
            plan_ranges(file[window], offset[window], length[window], limits)
        seconds.append(time.process_time() - start)
    assert min(seconds) / uses < 3e-6  # a third of a microsecond where nothing else runs


def lengths(uses: list[slow.Piece], limits: RangeLimits) -> list[int]:
    return [range_.length for window in planned(uses, limits) for range_ in window]


def test_limits_are_reached_and_not_passed() -> None:
    gaps = [slow.Piece(0, 0, 10), slow.Piece(0, 15, 10), slow.Piece(0, 40, 10)]
    assert lengths(gaps, RangeLimits(window=35, gap=15, longest=100)) == [25, 10]
    assert lengths(gaps, RangeLimits(window=34, gap=15, longest=100)) == [10, 10, 10]
    assert lengths(gaps, RangeLimits(window=50, gap=15, longest=100)) == [50]
    assert lengths(gaps, RangeLimits(window=50, gap=14, longest=100)) == [25, 10]
    side_by_side = [slow.Piece(0, start, 10) for start in (20, 0, 10)]
    assert lengths(side_by_side, RangeLimits(window=50, gap=0, longest=20)) == [10, 20]
    assert lengths(side_by_side, RangeLimits(window=50, gap=0, longest=19)) == [10, 10, 10]
