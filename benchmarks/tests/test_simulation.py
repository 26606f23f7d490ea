"""The simulation against arithmetic and against brute force."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.simulation import Data, NodeCacheModel, Ranks, Span, _plan, _samples, main, simulate
from benchmarks.simulation import Storage as Store
from stoker import BlockShuffle, ReadAhead
from stoker.errors import ConfigError
from stoker.order import EpochOrder, Topology, steps_left, take_step

FAST = 1e9  # images a second
MANY = Data(10**9, record_bytes=100_000)


def test_local_data_comes_as_fast_as_it_is_decoded() -> None:
    report = simulate(MANY, Ranks(rate=5000, threads=8), Store(latency=0), Span(steps=30))
    assert report.images_per_second == pytest.approx(5000, rel=0.01)
    assert report.of_local == 1
    assert report.quality == pytest.approx(1, abs=0.01)


def test_latency_bounds() -> None:
    ahead = ReadAhead("10GB", connections=40)
    report = simulate(MANY, Ranks(rate=FAST, threads=64, read_ahead=ahead), Store(latency=0.1), Span(steps=60))
    assert report.images_per_second == pytest.approx(40 / 0.1, rel=0.05)
    assert report.ranks[0].first_batch == pytest.approx(256 / 40 * 0.1, rel=0.1)


@pytest.mark.parametrize(
    "limits",
    [
        {"node_bandwidth": 8e8},
        {"total_bandwidth": 64e8},
        {"connection_bandwidth": 1e8 / 64},
        {"total_requests": 64_000},
    ],
    ids=str,
)
def test_bandwidth_and_requests_bound(limits: dict[str, float]) -> None:
    # 64 ranks on 8 nodes, so each rank gets 100 MB/s, or 1000 requests a second: 1000 images of 100 kB.
    ranks = Ranks(64, 8, rate=FAST, threads=64, read_ahead=ReadAhead("10GB", connections=64))
    report = simulate(MANY, ranks, Store(latency=0.0, **limits), Span(steps=40))
    assert report.images_per_second == pytest.approx(64_000, rel=0.05)


def test_the_budget_bounds() -> None:
    ranks = Ranks(rate=FAST, threads=64, read_ahead=ReadAhead(1_000_000, connections=64))
    report = simulate(MANY, ranks, Store(latency=0.1), Span(steps=20))
    assert report.images_per_second == pytest.approx(10 / 0.1, rel=0.05)
    assert max(rank.peak_bytes for rank in report.ranks) <= 1_000_000


def test_the_training_step_bounds() -> None:
    report = simulate(MANY, Ranks(rate=FAST, step=0.5), Store(latency=0.01), Span(steps=30))
    assert report.images_per_second == pytest.approx(256 / 0.5, rel=0.01)
    assert report.ranks[0].stalled < 0.01


def test_blocks_are_read_in_long_requests() -> None:
    ranks = Ranks(rate=FAST, read_ahead=ReadAhead("256MB"))
    full = simulate(MANY, ranks, Store(), Span())
    block = simulate(MANY, ranks, Store(), Span(shuffle=BlockShuffle(256, 4)))
    assert full.requests_of_epoch == pytest.approx(10**9, rel=0.01)
    assert block.requests_of_epoch < 10**9 / 50
    assert block.images_per_second > 20 * full.images_per_second


@given(
    st.integers(200, 5000),
    st.integers(1, 40),
    st.sampled_from([True, False, BlockShuffle(8, 4), BlockShuffle(50, 1)]),
    st.integers(1, 5),
    st.integers(0, 2**32),
    st.sampled_from([0, 0.1, 0.5, 0.9, 1]),
)
def test_every_sample_is_in_the_request_that_brings_it(
    records: int, shard: int, shuffle: bool | BlockShuffle, world: int, seed: int, share: float
) -> None:
    about = Data(records, 1000, shard)
    ranks = Ranks(world, 1, batch_size=16, read_ahead=ReadAhead("20KB", gap="2KB", longest="9KB"))
    samples, group = _samples(world - 1, about, ranks, Span(shuffle, steps=30))
    kept = np.random.default_rng(seed).random(len(samples)) < share
    fetched = np.flatnonzero(kept)
    (file, start, length, _), request_of = _plan(samples, group, fetched, about, ranks)
    assert (request_of[~kept] == -1).all()
    mine, numbers = request_of[kept], samples[kept].astype(np.int64)
    assert (file[mine] == numbers // shard).all()
    offset = numbers % shard * 1000
    assert (start[mine] <= offset).all()
    assert (offset + 1000 <= start[mine] + length[mine]).all()
    assert (np.bincount(mine, minlength=len(file)) > 0).all()


@pytest.mark.parametrize("shuffle", [True, BlockShuffle(10, 3)], ids=str)
def test_a_cache_that_has_space_holds_what_its_node_has_seen(shuffle: bool | BlockShuffle) -> None:
    data, ranks, epoch = Data(1000, 1000), Ranks(6, 2, batch_size=5, cache_bytes=10**9), 2
    model = NodeCacheModel(data, ranks, Span(shuffle, epoch=epoch))
    seen: list[set[int]] = [set(), set(), set()]
    for number in range(epoch):
        order = EpochOrder(1000, shuffle, 0, number)
        for rank in range(6):
            topology, consumed = Topology(5, rank, 6, "drop"), 0
            for _ in range(steps_left(1000, 0, topology)):
                step = take_step(order, consumed, topology)
                seen[rank // 2] |= set(step.indices.tolist())
                consumed = step.consumed
    whole = set.union(*seen)
    keys = np.array(sorted(whole), np.uint64)
    for node in range(3):
        held = set(keys[model.holds(node, keys)].tolist())
        # The model takes the last positions of an epoch, which "drop" leaves out, for taken.
        assert seen[node] <= held
        assert len(held - seen[node]) <= epoch * (1000 % 30)


def test_a_cache_without_space_for_all_holds_its_share() -> None:
    data = Data(100_000, 10_000)
    for share in (0.0, 0.1, 0.5):
        ranks = Ranks(4, 4, batch_size=64, cache_bytes=round(share * 100_000 * 12_048))
        report = simulate(data, ranks, Store(), Span(epoch=3))
        assert report.cache_hit_rate == pytest.approx(share, abs=0.02)


def test_ten_thousand_million_records_on_four_thousand_ranks_take_little_memory() -> None:
    tracemalloc.start()
    ranks = Ranks(4096, 8, cache_bytes=2 * 10**12)
    report = simulate(Data(10**10), ranks, Store(node_bandwidth=12e9), Span(BlockShuffle(256, 1), epoch=1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert report.world_size == 4096
    assert report.bytes_of_epoch == pytest.approx(10**10 * 110_000 * (1 - report.cache_hit_rate), rel=0.01)


def test_too_little_to_simulate() -> None:
    with pytest.raises(ConfigError, match="fewer than two batches of 256 on 8 ranks"):
        simulate(Data(3000), Ranks(8), Store(), Span())
    with pytest.raises(ConfigError, match="bytes of a shard"):  # more than an offset can be
        Data(2**50, record_bytes=2**31, shard_records=2**40)


def test_the_command_assumes_a_limit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulation", "--records", "14e6", "--ranks", "256", "--steps", "8"]
    monkeypatch.setattr(sys, "argv", words)
    main()
    printed = capsys.readouterr().out
    limited = [line.split() for line in printed.splitlines() if "requests per second" in line]
    assert int(limited[0][3].replace(",", "")) <= 5_500
    assert "% of the time" not in printed
    assert "depends on --step" in printed

    monkeypatch.setattr(sys, "argv", [*words, "--step", "0.1", "--store-requests", "0"])
    main()
    printed = capsys.readouterr().out
    free = [line.split() for line in printed.splitlines() if "requests per second" in line]
    assert int(free[0][3].replace(",", "")) > 100_000
    assert "training then waits" in printed
