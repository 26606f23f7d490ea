"""The last batches of an epoch where nothing is said about them: full and equally many on several ranks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from loader.shards import write_annotated, write_shards

if TYPE_CHECKING:
    from pathlib import Path

TRANSFORM = stoker.Resize(8)


def opened(directory: Path, samples: int) -> stoker.Dataset:
    directory.mkdir()
    write_shards(directory, samples, min(samples, 2))
    return stoker.open(directory)


def of_all_ranks(dataset: Any, batch_size: int, world_size: int, **settings: Any) -> list[list[stoker.Batch]]:
    ranks = []
    for rank in range(world_size):
        own = {"transform": TRANSFORM, "seed": 3, "rank": rank, "world_size": world_size, **settings}
        with stoker.Loader(dataset, batch_size, True, **own) as loader:
            ranks.append(list(loader))
            assert len(loader) == len(ranks[-1])
    return ranks


def check_shares(ranks: list[list[stoker.Batch]], batch_size: int, samples: int) -> None:
    """All ranks have as many full batches, every sample counts once, and no batch is of repeats from elsewhere."""
    assert len({len(batches) for batches in ranks}) == 1
    assert {len(batch) for batches in ranks for batch in batches} == {batch_size}
    counted = Counter(index for batches in ranks for batch in batches for index in batch.indices[batch.valid].tolist())
    assert counted == dict.fromkeys(range(samples), 1)
    for steps in zip(*ranks, strict=True):
        assert sum(int(batch.valid.sum()) for batch in steps) > 0


@pytest.mark.parametrize("samples", [1, 2, 7, 18])
@pytest.mark.parametrize(("batch_size", "world_size"), [(1, 3), (11, 2), (4, 3), (5, 8)])
def test_every_rank_has_as_many_full_batches(tmp_path: Path, samples: int, batch_size: int, world_size: int) -> None:
    ranks = of_all_ranks(opened(tmp_path / "one", samples), batch_size, world_size)
    check_shares(ranks, batch_size, samples)
    assert len(ranks[0]) == -(-samples // (batch_size * world_size))


def test_objects_and_mixes_are_shared_in_the_same_way(tmp_path: Path) -> None:
    mixed = stoker.mix([opened(tmp_path / "first", 5), opened(tmp_path / "second", 3)], label_offsets=[0, 0])
    check_shares(of_all_ranks(mixed, 3, 3), 3, 8)
    annotated = stoker.open(write_annotated(tmp_path / "train-00000-of-00001", 9))
    settings = {"transform": stoker.ObjectCrops(8), "seed": 3}
    with stoker.Loader(annotated, 1, **settings) as single:
        objects = len(single)
    ranks = []
    for rank in range(4):
        with stoker.Loader(annotated, 5, True, rank=rank, world_size=4, **settings) as loader:
            ranks.append(list(loader))
    check_shares(ranks, 5, objects)


def test_one_rank_has_a_short_last_batch(tmp_path: Path) -> None:
    dataset = opened(tmp_path / "one", 18)
    assert [len(batch) for batch in of_all_ranks(dataset, 4, 1)[0]] == [4, 4, 4, 4, 2]
    assert [len(batch) for batch in of_all_ranks(dataset, 4, 1, drop_last=True)[0]] == [4, 4, 4, 4]
    for rank in of_all_ranks(dataset, 4, 3, drop_last=True):
        assert [len(batch) for batch in rank] == [4]


@pytest.mark.parametrize(("batch_size", "world_size"), [(4, 1), (4, 3), (11, 3)])
def test_all_frameworks_agree(tmp_path: Path, batch_size: int, world_size: int) -> None:
    dataset = opened(tmp_path / "one", 18)
    for rank in range(world_size):
        settings = {"transform": TRANSFORM, "seed": 3, "rank": rank, "world_size": world_size}
        expected = of_all_ranks(dataset, batch_size, world_size)[rank]
        with (
            stoker.torch.DataLoader(dataset, batch_size, True, **settings) as in_torch,
            stoker.jax.batches(dataset, batch_size, True, epochs=1, **settings) as in_jax,
        ):
            elements = ("indices", "valid")
            in_tensorflow = stoker.tensorflow.dataset(dataset, batch_size, True, elements=elements, **settings)
            assert len(in_torch) == in_jax.steps_per_epoch == in_tensorflow.cardinality() == len(expected)
            assert in_tensorflow.element_spec[0].shape == [None if world_size == 1 else batch_size]
            for plain, a, b, (indices, valid) in zip(expected, in_torch, in_jax, in_tensorflow, strict=True):
                assert plain.indices.tolist() == a.indices.tolist() == b["indices"].tolist() == indices.numpy().tolist()
                assert plain.valid.tolist() == a.valid.tolist() == b["valid"].tolist() == valid.numpy().tolist()
