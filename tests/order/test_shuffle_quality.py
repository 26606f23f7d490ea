"""What `shuffle_quality` says of orders whose quality is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stoker.errors import ConfigError
from stoker.order import MAX_POSITIONS, BlockShuffle, EpochOrder, _sampled_batches, shuffle_quality

N = 251 * 1024  # a region is four blocks


def order(shuffle: bool | BlockShuffle, n: int = N) -> EpochOrder:
    return EpochOrder(n, shuffle, 17, 0)


def test_a_full_shuffle_is_the_measure() -> None:
    measured = shuffle_quality(order(True), 256)
    assert measured.quality == 1.0
    assert measured.blocks_read == N // 256
    # As many balls as boxes: a box holds k with probability about 1 / (e k!).
    shares = [math.exp(-1) / math.factorial(k) * k * math.log2(251 / k) for k in range(1, 12)]
    assert measured.entropy == pytest.approx(sum(shares), abs=0.05)


def test_without_a_shuffle_every_batch_comes_from_one_block() -> None:
    measured = shuffle_quality(order(False), 256)
    assert (measured.quality, measured.entropy, measured.blocks_read) == (0.0, 0.0, 1)
    assert measured.batches == 1004


@pytest.mark.slow
def test_a_block_shuffle_reads_as_many_blocks_as_its_window_has() -> None:
    for block, window in [(256, 16), (64, 16), (100, 7), (256, 1)]:
        measured = shuffle_quality(order(BlockShuffle(block, window)), 256)
        assert (measured.block, measured.blocks_read) == (block, window)
    assert shuffle_quality(order(BlockShuffle(256, 2000)), 256).blocks_read == 1004
    assert shuffle_quality(order(True), 256, block=1000).blocks_read == 258  # the last one is short
    assert shuffle_quality(order(False), 256, block=1000).blocks_read == 1


@pytest.mark.slow
def test_a_batch_of_a_block_shuffle_is_as_good_as_its_window_is_wide() -> None:
    # A block lies in one region, so a batch mixes at most 16 of 251: nearly log2(16) bits.
    assert 3.8 < shuffle_quality(order(BlockShuffle(256, 16)), 256).entropy < 4.0
    wider = [shuffle_quality(order(BlockShuffle(256, window)), 256).quality for window in (1, 4, 16, 64, 1004)]
    assert wider == sorted(wider)
    assert wider[0] == 0.0
    assert wider[-1] == pytest.approx(1.0, abs=0.01)


def test_more_than_a_million_million_samples_are_measured_at_once() -> None:
    huge = 2**62 - 1
    quality = {s: shuffle_quality(order(s, huge), 256) for s in (False, BlockShuffle(256, 16), True)}
    assert quality[False].quality < 0.005
    assert 0.5 < quality[BlockShuffle(256, 16)].quality < 0.6
    assert quality[BlockShuffle(256, 16)].blocks_read == 16
    assert quality[True].blocks_read > MAX_POSITIONS * 0.99


def test_tiny_datasets_and_odd_batches() -> None:
    for n in (1, 2, 3, 255, 257, 1000):
        for batch_size in (1, 2, 256, 2**30):
            measured = shuffle_quality(order(BlockShuffle(10, 2), n), batch_size)
            assert 0.0 <= measured.quality < 1.2
            assert measured.blocks_read <= 2
            assert measured.batches <= n
    assert shuffle_quality(order(False, 1000), 1).quality == 1.0  # a batch of one cannot be mixed better
    with pytest.raises(ConfigError, match="batch_size is 0"):
        shuffle_quality(order(True), 0)


def test_the_batches_that_are_looked_at_lie_over_the_whole_epoch() -> None:
    batches = list(_sampled_batches(order(False, 10**9), 1000))
    assert len(batches) == MAX_POSITIONS // 1000
    starts = np.array([batch[0] for batch in batches])
    assert (starts % 1000 == 0).all()
    assert starts[0] == 0
    assert starts[-1] > 0.97e9
    assert len(list(_sampled_batches(order(False, 10**9), 2))) == 1024
    assert [len(batch) for batch in _sampled_batches(order(False, 10), 100)] == [10]
