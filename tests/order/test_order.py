"""Properties of the order of an epoch: a bijection, pinned for ever, split over ranks without loss."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import order as twin
from reference.philox import philox
from small_cases import each
from stoker import _native
from stoker.errors import ConfigError
from stoker.order import BlockShuffle, EpochOrder, Topology, steps_from, steps_left, take_step, unrepeated

GOLDEN_17_0 = [557383, 877354, 1137013, 905869, 183205, 1017621, 491741, 1278899]
GOLDEN_17_1 = [990422, 843052, 1124802, 108371, 879362, 729197, 976561, 96428]
GOLDEN_BIG = [147037593528, 20700947419]

words = st.integers(0, 2**32 - 1)
seeds = st.integers(0, 2**64 - 1)


@given(st.tuples(words, words, words, words), st.tuples(words, words))
def test_philox_equals_its_twin(counter: tuple[int, int, int, int], key: tuple[int, int]) -> None:
    assert _native.philox(counter, key) == philox(counter, key)


@given(st.integers(1, 2**61), seeds, seeds, st.data())
def test_the_order_equals_its_twin(n: int, seed: int, epoch: int, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, n - 1))
    assert int(_native.permute(position, 1, n, seed, epoch)[0]) == twin.order(n, seed, epoch, position)


@each("n", [1, 2, 3, *(2**k + d for k in range(2, 15) for d in (-1, 0, 1))])
def test_an_epoch_holds_every_sample_once(n: int) -> None:
    assert sorted(_native.permute(0, n, n, 17, 3).tolist()) == list(range(n))


def test_golden_numbers_never_change() -> None:
    # Resuming a run from an older version depends on these.
    assert _native.permute(0, 8, 1_281_167, 17, 0).tolist() == GOLDEN_17_0
    assert _native.permute(0, 8, 1_281_167, 17, 1).tolist() == GOLDEN_17_1
    assert _native.permute(999_999_999_998, 2, 10**12, 2**63, 5).tolist() == GOLDEN_BIG


def test_orders_of_epochs_and_seeds_differ_and_look_random() -> None:
    n = 10_000
    orders = [_native.permute(0, n, n, seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    for i, first in enumerate(orders):
        for second in orders[:i]:
            assert np.count_nonzero(first == second) < 10
    # Each tenth of the order draws evenly from each tenth of the samples: chi-square with 81 degrees of freedom.
    for order in orders:
        table = np.zeros((10, 10))
        np.add.at(table, (np.arange(n) * 10 // n, (order * np.uint64(10) // np.uint64(n)).astype(int)), 1)
        assert ((table - 100) ** 2 / 100).sum() < 140


def test_numbers_out_of_range_are_refused() -> None:
    for start, count, n in [(0, 1, 0), (0, 11, 10), (11, 0, 10), (10, 1, 10)]:
        with pytest.raises(ConfigError):
            _native.permute(start, count, n, 0, 0)


topologies = st.tuples(st.integers(1, 9), st.integers(1, 5), st.sampled_from(["short", "drop", "pad", "wrap"]))


SHUFFLES = [True, BlockShuffle(4, 3), False]


def play(n: int, consumed: int, batch_size: int, world_size: int, tail: str, steps: int | None = None):
    """Steps of all ranks from a position: per step the list of the ranks' shares."""
    order = EpochOrder(n, SHUFFLES[n % 3], seed=5, epoch=2)
    ranks = [Topology(batch_size, rank, world_size, tail) for rank in range(world_size)]
    count = steps_left(n, consumed, ranks[0]) if steps is None else steps
    played = []
    for _ in range(count):
        shares = [take_step(order, consumed, rank) for rank in ranks]
        assert len({share.consumed for share in shares}) == 1
        consumed = shares[0].consumed
        played.append(shares)
    return played, consumed


@given(st.integers(1, 200), st.integers(0, 200), topologies)
def test_what_a_last_step_has_before_its_repeats_is_counted(n: int, at: int, topology: tuple[int, int, str]) -> None:
    batch_size, world_size, tail = topology
    played, _ = play(n, min(at, n), batch_size, world_size, "pad" if tail == "wrap" else tail)
    valid = [is_valid for step in played[-1:] for share in step for is_valid in share.valid.tolist()]
    expected = 0 if all(valid) else sum(valid)
    assert unrepeated(n, min(at, n), Topology(batch_size, 0, world_size, tail)) == expected


@given(st.integers(1, 200), topologies)
def test_every_sample_comes_exactly_once_over_all_ranks(n: int, topology: tuple[int, int, str]) -> None:
    batch_size, world_size, tail = topology
    played, consumed = play(n, 0, batch_size, world_size, tail)
    counts = Counter(k for step in played for share in step for k in share.indices[share.valid].tolist())
    if tail in ("short", "pad"):
        assert counts == Counter(range(n))
    elif tail == "drop":
        assert max(counts.values(), default=1) == 1
        assert counts.total() == n // (batch_size * world_size) * batch_size * world_size
    else:
        assert set(counts) == set(range(n))
        assert counts.total() == len(played) * batch_size * world_size
    if tail != "drop":
        assert consumed == n
    for step in played:
        for share in step:
            assert len(share.indices) == len(share.valid) <= batch_size
            if tail != "short":
                assert len(share.indices) == batch_size


@given(st.integers(1, 150), topologies, topologies, st.data())
def test_a_run_goes_on_with_another_topology(n, first, second, data: st.DataObject) -> None:
    batch, world, _ = first
    whole, _ = play(n, 0, batch, world, "drop")
    steps = data.draw(st.integers(0, len(whole)))
    done, consumed = play(n, 0, batch, world, "drop", steps)
    rest, end = play(n, consumed, second[0], second[1], "short")
    seen = [k for part in (done, rest) for step in part for share in step for k in share.indices.tolist()]
    assert end == n
    assert sorted(seen) == list(range(n))


@given(st.integers(1, 200), topologies, st.data())
def test_steps_of_an_epoch_are_those_taken_one_by_one(n: int, topology: tuple[int, int, str], data) -> None:
    batch_size, world_size, tail = topology
    consumed = data.draw(st.integers(0, n))
    played, _ = play(n, consumed, batch_size, world_size, tail)
    order = EpochOrder(n, SHUFFLES[n % 3], seed=5, epoch=2)
    for rank in range(world_size):
        steps = list(steps_from(order, consumed, Topology(batch_size, rank, world_size, tail)))
        assert [(step.indices.tolist(), step.valid.tolist(), step.consumed) for step in steps] == [
            (share.indices.tolist(), share.valid.tolist(), share.consumed) for share in (each[rank] for each in played)
        ]
        assert [step.last for step in steps] == [False] * (len(steps) - 1) + [True] * bool(steps)
        assert not any(np.shares_memory(a.valid, b.valid) for a, b in itertools.combinations(steps[:9], 2))


@given(st.integers(1, 60), st.integers(1, 200), st.integers(1, 5), st.sampled_from(["pad", "wrap"]), st.data())
def test_a_filled_step_goes_round_and_round(n: int, batch_size: int, world_size: int, tail: str, data) -> None:
    order = EpochOrder(n, SHUFFLES[n % 3], seed=1, epoch=0)
    sequence = order.take(0, n).tolist()
    consumed = data.draw(st.integers(max(0, n - batch_size * world_size), n - 1))
    shares = [take_step(order, consumed, Topology(batch_size, rank, world_size, tail)) for rank in range(world_size)]
    positions = range(consumed, consumed + batch_size * world_size)
    assert [index for share in shares for index in share.indices.tolist()] == [sequence[p % n] for p in positions]
    valid = [ok for share in shares for ok in share.valid.tolist()]
    assert valid == [tail == "wrap" or p < n for p in positions]
    assert {share.indices.dtype for share in shares} == {np.dtype(np.uint64)}


def test_a_filled_step_asks_for_runs_not_for_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    take = EpochOrder.take
    monkeypatch.setattr(EpochOrder, "take", lambda order, *where: asked.append(where) or take(order, *where))
    take_step(EpochOrder(1000, shuffle=True, seed=0, epoch=0), 900, Topology(64, 1, 2, "wrap"))
    assert asked == [(964, 36), (0, 28)]


def test_wrong_topologies_are_refused() -> None:
    for bad in [{"batch_size": 0}, {"batch_size": 4, "rank": 2, "world_size": 2}, {"batch_size": 4, "tail": "x"}]:
        with pytest.raises(ConfigError):
            Topology(**bad)
