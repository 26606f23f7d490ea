"""Loaders in other processes: as their settings and their state, with threads and a rank of their own."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import preloaded
import stoker
from programs import run_python

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

RECORDS = 22
SOURCE = Path(stoker.__file__).parents[1]
SETTINGS = {"batch_size": 4, "transform": stoker.RandomResizedCrop(8, hflip=0.5), "shuffle": True, "seed": 9}


def contents(loader: Any) -> list[tuple[list[int], bytes]]:
    return [(batch.indices.tolist(), bytes(memoryview(batch.images.reshape(-1).numpy()))) for batch in loader]


def pixels(loader: stoker.Loader) -> list[tuple[list[int], bytes]]:
    return [(batch.indices.tolist(), batch.images.tobytes()) for batch in loader]


@pytest.mark.parametrize("way", [lambda loader: pickle.loads(pickle.dumps(loader)), copy.copy], ids=["pickle", "copy"])
def test_a_loader_goes_on_where_it_was(train: stoker.Dataset, way: Any) -> None:
    with stoker.Loader(train, **SETTINGS) as loader:
        with way(loader) as other:
            epochs = [pixels(other) for _ in range(2)]
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        with way(loader) as other:
            assert other.state_dict() == loader.state_dict()
            assert pixels(other) == epochs[0][3:]
            assert pixels(other) == epochs[1]
        assert len(list(batches)) == 3  # and this one is as it was


@pytest.mark.parametrize(
    "settings",
    [
        {"drop_last": True, "threads": 1, "prefetch": 0},
        {"tail": "wrap", "rank": 1, "world_size": 3},
        {"output": stoker.Output("float32", mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2))},
        {"shuffle": stoker.BlockShuffle(4, 2), "on_bad": "substitute"},
    ],
    ids=str,
)
def test_every_setting_is_kept(train: stoker.Dataset, settings: dict[str, Any]) -> None:
    with stoker.Loader(train, **{**SETTINGS, **settings}) as loader, pickle.loads(pickle.dumps(loader)) as other:
        assert repr(other) == repr(loader)
        assert pixels(other) == pixels(loader)


def test_caches_pickle_as_their_settings(train: stoker.Dataset, tmp_path: Path) -> None:
    with stoker.Loader(train, cache=stoker.MemoryCache("1MB"), **SETTINGS) as loader:
        expected = pixels(loader)
        with pickle.loads(pickle.dumps(loader)) as other:
            other.set_epoch(0)
            assert other.settings.cache is not loader.settings.cache
            assert pixels(other) == expected
    memory = pickle.loads(pickle.dumps(stoker.MemoryCache("3MB", "decoded")))
    assert (memory.budget, memory.keep, memory.stats().bytes) == (3_000_000, "decoded", 0)
    node = pickle.loads(pickle.dumps(stoker.NodeCache(tmp_path / "cache", "5GB")))
    assert (node.directory, node.budget) == (tmp_path / "cache", 5_000_000_000)


def test_iterators_of_jax_pickle_in_the_middle_of_an_epoch(train: stoker.Dataset) -> None:
    with stoker.jax.batches(train, epochs=2, **SETTINGS) as whole:
        expected = [batch["images"].tobytes() for batch in whole]
    with stoker.jax.batches(train, epochs=2, **SETTINGS) as batches:
        for _ in range(8):
            next(batches)
        with pickle.loads(pickle.dumps(batches)) as other:
            assert [batch["images"].tobytes() for batch in other] == expected[8:]


def epoch_of(loader: Any, results: Queue[Any]) -> None:
    results.put((os.getpid(), contents(loader)))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_spawned_process_has_the_same_batches(train: stoker.Dataset, method: str) -> None:
    context = multiprocessing.get_context(method)
    results = context.Queue()
    with stoker.torch.DataLoader(train, **SETTINGS) as loader:
        child = context.Process(target=epoch_of, args=(loader, results))
        child.start()
        process, seen = results.get(timeout=120)
        child.join(60)
        assert (process, child.exitcode) == (child.pid, 0)
        assert seen == contents(loader)


POOLS = """
import multiprocessing, sys
import stoker

def total(dataset):
    with stoker.Loader(dataset, 4, transform=stoker.CenterCrop(8, 16), threads=2) as loader:
        return sum(int(batch.images.sum()) for batch in loader)

def rank(number, dataset, expected):
    assert total(dataset) == expected

if __name__ == "__main__":
    dataset = stoker.open(sys.argv[1])
    expected = total(dataset)
    cache = stoker.MemoryCache("1MB")
    with stoker.Loader(dataset, 4, transform=stoker.CenterCrop(8, 16), threads=2, cache=cache) as loader:
        next(iter(loader))
        for method in ("fork", "spawn", "forkserver"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                assert pool.map(total, [dataset] * 4) == [expected] * 4
        import torch.multiprocessing  # not above: the pools' processes have no need of it
        for method in ("fork", "spawn"):
            torch.multiprocessing.start_processes(rank, (dataset, expected), 2, start_method=method)
"""


@pytest.mark.needs("torch")
@pytest.mark.timeout(400)
def test_pools_and_processes_of_torch_end_without_a_word(train: stoker.Dataset, tmp_path: Path) -> None:
    (tmp_path / "pools.py").write_text(POOLS)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(SOURCE)}
    words = (tmp_path / "pools.py", train.path)
    done = run_python(*words, python=preloaded.python("torch"), env=environment, seconds=350)
    assert (done.returncode, done.stderr) == (0, "")
