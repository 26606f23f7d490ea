"""Properties of the block shuffle: a bijection, few blocks at a time, the same as its twin, pinned for ever."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import order as twin
from small_cases import each
from stoker import _native
from stoker.errors import ConfigError
from stoker.order import BlockShuffle, EpochOrder

GOLDEN_17_0 = [743979, 1158019, 402349, 861223, 977727, 362942, 909856, 21927]
GOLDEN_17_1 = [1050858, 451042, 889410, 1094192, 1094247, 847321, 1050845, 1038006]
GOLDEN_BIG = [131782289852, 43212372136]

sizes = st.integers(1, 400)
seeds = st.integers(0, 2**64 - 1)


@given(sizes, sizes, st.integers(1, 40), seeds, seeds, st.data())
@pytest.mark.slow
def test_blocks_equal_their_twin(n: int, block: int, window: int, seed: int, epoch: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, n))
    count = data.draw(st.integers(0, n - start))
    expected = twin.block_order(n, block, window, seed, epoch)
    order = EpochOrder(n, BlockShuffle(block, window), seed, epoch)
    assert order.take(0, n).tolist() == expected
    assert order.take(start, count).tolist() == expected[start : start + count]


@given(st.integers(1, 2**62 - 1), st.integers(1, 2**32), st.integers(1, 2**16), seeds, st.data())
def test_positions_are_the_inverse(n: int, block: int, window: int, seed: int, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, n - 1))
    count = min(n - start, 50)
    for shuffle in (False, True, BlockShuffle(block, window)):
        order = EpochOrder(n, shuffle, seed, 7)
        assert order.positions(order.take(start, count)).tolist() == list(range(start, start + count))


def test_there_is_no_position_of_what_is_not_there() -> None:
    for shuffle in (True, BlockShuffle(4, 2)):
        with pytest.raises(ConfigError, match="outside an order of 10"):
            EpochOrder(10, shuffle, 0, 0).positions(np.array([3, 10], np.uint64))


@each("n", [1, 2, 3, *(2**k + d for k in range(2, 15) for d in (-1, 0, 1))])
@each(("block", "window"), [(1, 1), (1, 16), (256, 16), (255, 3), (64, 2**32), (2**32, 1), (10**9, 10**9)])
def test_an_epoch_holds_every_sample_once(n: int, block: int, window: int) -> None:
    order = EpochOrder(n, BlockShuffle(block, window), 17, 3)
    assert np.sort(order.take(0, n)).tolist() == list(range(n))


@given(st.integers(1, 2**62 - 1), st.integers(1, 2**12), st.integers(1, 8), seeds, st.data())
def test_a_window_is_made_of_whole_blocks(n: int, block: int, window: int, seed: int, data: st.DataObject) -> None:
    order = EpochOrder(n, BlockShuffle(block, window), seed, 5)
    blocks, samples = -(-n // block), block * window
    missing = blocks * block - n
    number = data.draw(st.integers(0, (blocks - 1) // window))
    # The short block was visited before this window, or in it, or comes after it.
    spans = [(number * samples - early, samples - late) for early, late in ((0, 0), (0, missing), (missing, 0))]
    spans = [(start, count) for start, count in spans if start >= 0 and count > 0]
    assert any(holds_whole_blocks(order.take(start, min(count, n - start)), n, block, window) for start, count in spans)


def holds_whole_blocks(indices: np.ndarray, n: int, block: int, window: int) -> bool:
    numbers, counts = np.unique(indices // np.uint64(block), return_counts=True)
    sizes = np.array([min(block, n - int(number) * block) for number in numbers])
    return len(np.unique(indices)) == len(indices) and len(numbers) <= window and bool((counts == sizes).all())


def test_golden_numbers_never_change() -> None:
    # Resuming a run from an older version depends on these.
    order = BlockShuffle(256, 16)
    assert EpochOrder(1_281_167, order, 17, 0).take(0, 8).tolist() == GOLDEN_17_0
    assert EpochOrder(1_281_167, order, 17, 1).take(0, 8).tolist() == GOLDEN_17_1
    assert EpochOrder(10**12, BlockShuffle(1000, 7), 2**63, 5).take(10**12 - 2, 2).tolist() == GOLDEN_BIG


def test_epochs_seeds_and_windows_are_independent() -> None:
    n, block, window = 8192, 32, 8
    orders = [EpochOrder(n, BlockShuffle(block, window), seed, epoch).take(0, n) for seed in (0, 1) for epoch in (0, 1)]
    for i, first in enumerate(orders):
        visits = np.array([np.unique(part // np.uint64(block)) for part in first.reshape(-1, block * window)])
        for second in orders[:i]:
            others = np.array([np.unique(part // np.uint64(block)) for part in second.reshape(-1, block * window)])
            assert np.count_nonzero(first == second) < 12
            assert np.count_nonzero((visits == others).all(axis=1)) == 0
        # Where the samples of the first block that is visited lie in each window: never the same twice.
        positions = [tuple(np.flatnonzero(part % np.uint64(block) == 0)) for part in first.reshape(-1, block * window)]
        assert len(set(positions)) == len(positions)


def test_samples_of_a_window_look_random() -> None:
    # Each eighth of a window draws evenly from each of its blocks: chi-square with 49 degrees of freedom.
    block, window = 512, 8
    indices = EpochOrder(2**20, BlockShuffle(block, window), 3, 0).take(0, block * window)
    numbers = np.unique(indices // np.uint64(block), return_inverse=True)[1]
    table = np.zeros((8, window))
    np.add.at(table, (np.arange(len(indices)) * 8 // len(indices), numbers), 1)
    assert ((table - 64) ** 2 / 64).sum() < 95


def test_the_name_for_a_state() -> None:
    orders = {shuffle: EpochOrder(9, shuffle, 0, 0).name for shuffle in (False, True, BlockShuffle())}
    assert list(orders.values()) == [False, True, "block:256:16"]
    assert EpochOrder(9, BlockShuffle(7, 3), 0, 0).name == "block:7:3"


def test_settings_out_of_range_are_refused() -> None:
    for bad in ({"block": 0}, {"block": 2**32 + 1}, {"window": 0}, {"window": -1}):
        with pytest.raises(ConfigError, match=next(iter(bad))):
            BlockShuffle(**bad)
    with pytest.raises(ConfigError, match="'block:256:16'; it must be False, True or a BlockShuffle"):
        EpochOrder(10, "block:256:16", 0, 0)  # type: ignore[arg-type]
    for start, count, n, block, window in [
        (0, 1, 0, 2, 2),
        (0, 11, 10, 2, 2),
        (11, 0, 10, 2, 2),
        (0, 1, 10, 0, 2),
        (0, 1, 10, 2, 0),
    ]:
        with pytest.raises(ConfigError):
            _native.permute_blocks(start, count, n, block, window, 0, 0)
