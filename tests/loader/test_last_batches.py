"""The last batches of an epoch where nothing is said about them: full and equally many on several ranks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from loader.processes import free_ports, run_together
from loader.shards import write_annotated, write_shards
from stoker.order import chosen_tail

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
        with stoker.Loader(
            dataset, batch_size, True, transform=TRANSFORM, seed=3, rank=rank, world_size=world_size, **settings
        ) as loader:
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
    write_annotated(tmp_path / "train-00000-of-00001", 9)
    annotated = stoker.open(tmp_path)
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
            in_tensorflow = stoker.tensorflow.dataset(
                dataset, batch_size, True, elements=("indices", "valid"), **settings
            )
            assert len(in_torch) == in_jax.steps_per_epoch == in_tensorflow.cardinality() == len(expected)
            assert in_tensorflow.element_spec[0].shape == [None if world_size == 1 else batch_size]
            for plain, a, b, (indices, valid) in zip(expected, in_torch, in_jax, in_tensorflow, strict=True):
                assert plain.indices.tolist() == a.indices.tolist() == b["indices"].tolist() == indices.numpy().tolist()
                assert plain.valid.tolist() == a.valid.tolist() == b["valid"].tolist() == valid.numpy().tolist()


@pytest.mark.parametrize(
    ("world_size", "drop_last", "tail"), [(1, False, "short"), (2, False, "pad"), (2, True, "drop")]
)
def test_what_a_tail_is_where_it_is_left_out(world_size: int, tail: Any, *, drop_last: bool) -> None:
    assert chosen_tail(None, drop_last=drop_last, world_size=world_size) == tail
    assert chosen_tail("wrap", drop_last=False, world_size=world_size) == "wrap"


THREE_RANKS = """
    import json, math, os, sys, time
    rank, port, directory = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "3", "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    import torch, torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    import stoker

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 3, 128)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sizes, counted, losses = [], 0, []
    with stoker.torch.DataLoader(stoker.open(directory), 11, shuffle=True, transform=stoker.Resize(8)) as loader:
        for images, labels in loader:  # as the first page has it
            loss = torch.nn.functional.cross_entropy(model(images.float() / 255), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sizes.append(len(labels))
            losses.append(loss.item())
        for batch in loader:  # as the page of several ranks has it
            images, labels = batch
            each = torch.nn.functional.cross_entropy(model(images.float() / 255), labels, reduction="none")
            loss = (each * batch.valid).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            sizes.append(len(labels))
            counted += int(batch.valid.sum())
            losses.append(loss.item())
        threads = loader.loader.feed.threads
    finite = all(map(math.isfinite, losses)) and all(bool(p.isfinite().all()) for p in model.parameters())
    dist.barrier()
    dist.destroy_process_group()
    time.sleep(0.5)  # see torch_ranks.py
    print(json.dumps({"sizes": sizes, "counted": counted, "finite": finite, "threads": threads}))
"""


@pytest.mark.needs("torch")
@pytest.mark.timeout(300)
def test_three_real_ranks_train_with_finite_losses(tmp_path: Path) -> None:
    write_shards(tmp_path, 100, 3)
    (port,) = free_ports(1)
    ranks = run_together(
        THREE_RANKS, [[str(rank), str(port), str(tmp_path)] for rank in range(3)], "torch", seconds=240
    )
    for rank in ranks:
        assert rank["sizes"] == [11] * 8
        assert rank["finite"]
        assert rank["threads"] == max(1, stoker.loader.cpu_share().cpus // 3)  # all three are on this node
    assert sum(rank["counted"] for rank in ranks) == 100
