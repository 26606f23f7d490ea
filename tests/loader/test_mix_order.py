"""A mix follows its weights in every stretch, and repeats no sample before it has shown all."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from loader.resuming import check_resume
from loader.shards import write_shards
from reference import mixing as twin
from stoker.loader.mixes import interleave

COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=5)
SIZES = [5, 9, 16]
KEYS = stoker.RecordKeys("image/encoded", "image/class/label")
TRANSFORM = stoker.Resize(8, hflip=0.5)


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> list[stoker.Dataset]:
    datasets = []
    for number, size in enumerate(SIZES):
        folder = tmp_path_factory.mktemp(f"part-{number}")
        write_shards(folder, size, 1)
        datasets.append(stoker.open(folder, keys=KEYS))
    return datasets


@given(COUNTS, st.data())
def test_turns_are_those_of_the_twin_wherever_one_looks(counts: list[int], data: st.DataObject) -> None:
    expected = twin.turns(counts)
    positions = data.draw(st.lists(st.integers(0, sum(counts) - 1), min_size=1, max_size=50))
    part, number = interleave(np.array(positions, np.uint64), counts)
    assert list(zip(part.tolist(), number.tolist(), strict=True)) == [expected[position] for position in positions]


@given(COUNTS)
def test_every_stretch_of_an_epoch_has_the_proportions_of_the_whole(counts: list[int]) -> None:
    part, numbers = interleave(np.arange(sum(counts), dtype=np.uint64), counts)
    for number, count in enumerate(counts):
        assert numbers[part == number].tolist() == list(range(count))
        until = np.cumsum(part == number)
        exact = np.arange(1, sum(counts) + 1) * count / sum(counts)
        assert (abs(until - exact) < len(counts)).all()


def indices_of(loader: stoker.Loader) -> list[int]:
    return [index for batch in loader for index in batch.indices.tolist()]


@given(
    weights=st.lists(st.floats(0.5, 5), min_size=3, max_size=3),
    length=st.integers(30, 60),
    seed=st.integers(0, 2**64 - 1),
    shuffle=st.booleans(),
)
@settings(max_examples=25)
def test_no_sample_comes_twice_more_often_than_another(
    parts: list[stoker.Dataset], weights: list[float], length: int, seed: int, *, shuffle: bool
) -> None:
    mixed = stoker.mix(parts, weights, samples_per_epoch=length)
    seen: Counter[int] = Counter()
    with stoker.Loader(mixed, batch_size=7, transform=TRANSFORM, shuffle=shuffle, seed=seed, threads=1) as loader:
        for _ in range(3):
            keys = indices_of(loader)
            assert len(keys) == length
            seen.update(keys)
    first = 0
    for size, weight in zip(SIZES, weights, strict=True):
        times = [seen[key] for key in range(first, first + size)]
        assert max(times) - min(times) <= 1
        assert abs(sum(times) - 3 * length * weight / sum(weights)) <= 3
        first += size


def test_without_weights_an_epoch_holds_every_sample_once(parts: list[stoker.Dataset]) -> None:
    with stoker.Loader(stoker.mix(parts), batch_size=4, transform=TRANSFORM, shuffle=True, seed=3) as loader:
        epochs = [indices_of(loader) for _ in range(2)]
    assert [sorted(keys) for keys in epochs] == [list(range(sum(SIZES)))] * 2
    assert epochs[0] != epochs[1]


def test_a_run_goes_on_with_another_topology(parts: list[stoker.Dataset]) -> None:
    mixed = stoker.mix(parts, [3, 1, 2], samples_per_epoch=60)
    assert check_resume(mixed, [(1, 7), (3, 4), (2, 9)], transform=TRANSFORM, every=2).size == 60
