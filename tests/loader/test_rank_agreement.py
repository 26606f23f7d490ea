"""Ranks whose loaders differ: the later one says so; nothing else does, whatever the others do or the store suffers."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from loader.processes import run_together
from loader.shards import write_shards
from servers.processes import free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator

    Outcomes = list[dict[str, Any]]

STORE = """
import sys, time
from torch.distributed import TCPStore
store = TCPStore("localhost", int(sys.argv[1]), 4, True, wait_for_workers=False)
print("ready", flush=True)
time.sleep(300)
"""
RANKS = """
    import json, os, pickle, signal, sys, time
    from datetime import timedelta
    import torch.distributed as dist

    rank, port, server, path, other = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
    store = dist.TCPStore("localhost", port, 4, False, timedelta(seconds=60))
    dist.init_process_group("gloo", store=store, rank=rank, world_size=3)
    import stoker
    from stoker.torch import DataLoader

    train, val = stoker.open(path), stoker.open(other)
    STATE = {"epoch": 3, "consumed": 9}

    def loader(dataset=train, batch_size=3, shuffle=True, seed=5, **more):
        return DataLoader(dataset, batch_size, shuffle, transform=stoker.CenterCrop(4), seed=seed, threads=1, **more)

    def read(loader, most=99):
        with loader:
            return sum(1 for _, batch in zip(range(most), loader))

    def resumed(more):
        opened = loader()
        opened.load_state_dict({**opened.state_dict(), **more})
        return opened

    def at_epoch(epoch):
        opened = loader()
        opened.set_epoch(epoch)
        return opened

    def looked_at():
        opened = loader()
        if rank == 0:
            next(iter(opened))
        opened.load_state_dict({**opened.state_dict(), **STATE})
        return read(opened)

    def in_another_order():
        sets = {"train": train, "val": val}
        loaders = {name: loader(sets[name]) for name in (sorted(sets) if rank else reversed(sorted(sets)))}
        return read(loaders["train"]) + read(loaders["val"])

    def unpickled():
        copies = pickle.loads(pickle.dumps((loader(train), loader(val))))
        return sum(read(each) for each in (reversed(copies) if rank == 1 else copies))

    def tried_twice():
        for seed in ([0, 0, 1] if rank == 1 else [0, 1, 2]):
            read(loader(seed=seed))

    odd = rank == 1
    CASES = {
        "agree": lambda: read(loader()),
        "seed": lambda: read(loader(seed=6 if odd else 5)),
        "batch_size": lambda: read(loader(batch_size=4 if odd else 3)),
        "shuffle": lambda: read(loader(shuffle=not odd)),
        "tail": lambda: read(loader(drop_last=odd)),
        "dataset": lambda: read(loader(val if odd else train)),
        "resume": lambda: read(resumed({} if odd else STATE)),
        "epoch": lambda: read(at_epoch(1 if odd else 0)),
        "unchecked": lambda: read(loader(seed=rank, check_ranks=False)),
        "alone": lambda: read(loader(batch_size=1)) if odd else read(loader()),
        "by hand": lambda: read(loader(seed=rank, rank=0, world_size=1)),
        "ends early": lambda: read(loader(seed=rank), 1) if odd else read(loader()),
        "looked at": looked_at,
        "in another order": in_another_order,
        "unpickled": unpickled,
        "tried twice": tried_twice,
    }

    def outcome(case):
        try:
            case()
        except stoker.errors.ConfigError as error:
            return str(error)

    outcomes = {}
    for name, case in CASES.items():
        for turn in range(3):  # so that it is known who comes later
            if rank == turn:
                outcomes[name] = outcome(case)
            dist.barrier()

    def timed():
        begun = time.monotonic()
        return outcome(lambda: read(loader(seed=rank))), time.monotonic() - begun

    def fastest():  # however busy the machine is, one of twenty does not wait where none has to
        results = [timed()]
        while len(results) < 20 and results[-1][1] > 0.9:
            results.append(timed())
        return min(results, key=lambda result: (result[0] is None, result[1]))

    child = None  # of rank 2, with the connection of its parent in its hands
    for turn in range(2):
        if (rank, turn) == (2, 1):
            child = os.fork()
        if turn == (rank == 2) and not child:
            message = outcome(lambda: read(loader(seed=9 if rank == 2 else 5)))
        if child == 0:
            os._exit(0 if message is None else 1)
        if child:
            outcomes["forked"] = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        dist.barrier()
    if rank == 0:
        os.kill(server, signal.SIGSTOP)
        outcomes["slow"] = [timed(), fastest()]
        os.kill(server, signal.SIGKILL)
    dist.barrier()
    outcomes["gone"] = fastest()
    dist.barrier()
    print(json.dumps(outcomes), flush=True)
    os._exit(0)  # without its store, PyTorch cannot take leave of the others
"""
JAX = """
    import json, sys
    import jax

    rank, port, path, other = int(sys.argv[1]), sys.argv[2], *sys.argv[3:]
    jax.config.update("jax_platforms", "cpu")
    jax.distributed.initialize(f"localhost:{port}", num_processes=2, process_id=rank)
    assert jax.process_count() == 2  # all have to meet for that
    client = sys.modules["jax._src.distributed"].global_state.client
    import stoker

    train, val, settings = stoker.open(path), stoker.open(other), {"transform": stoker.CenterCrop(4), "threads": 1}

    def batches(dataset=train, **more):
        with stoker.jax.batches(dataset, 3, epochs=1, **settings, **more) as batches:
            for _ in batches:
                pass

    def tf_data(dataset=train, **more):
        return stoker.tensorflow.dataset(dataset, 3, **settings, **more)

    def passes():
        sets = {"train": tf_data(train), "val": tf_data(val)}
        for name in sorted(sets, reverse=rank == 1):
            for _ in sets[name]:
                pass

    CASES = {
        "agree": lambda: batches(),
        "seed": lambda: batches(seed=rank),
        "unchecked": lambda: batches(seed=rank, check_ranks=False),
        "tf.data": lambda: list(tf_data(seed=rank)),
        "passes": passes,
    }
    errors = {}
    for name, case in CASES.items():
        for turn in range(2):
            if rank == turn:
                errors[name] = None
                try:
                    case()
                except Exception as error:
                    errors[name] = str(error)
            client.wait_at_barrier(f"{name} {turn}", 60_000)
    print(json.dumps(errors))
"""


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    paths = [tmp_path_factory.mktemp(name) for name in ("train", "val")]
    for path, records in zip(paths, (23, 17), strict=True):
        write_shards(path, records, 1)
    return list(map(str, paths))


@pytest.fixture(scope="module")
def three_ranks(datasets: list[str]) -> Iterator[Outcomes]:
    """What three ranks of PyTorch came to, one after the other."""
    (port,) = free_ports(1)
    with subprocess.Popen([sys.executable, "-c", STORE, str(port)], stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            words = [[str(rank), str(port), str(server.pid), *datasets] for rank in range(3)]
            yield run_together(RANKS, words, "torch")
        finally:
            server.kill()


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("case", "first", "second"),
    [
        ("seed", "seed is 6 and 5", "seed is 5 and 6"),
        ("batch_size", "batch_size is 4 and 3", "batch_size is 3 and 4"),
        ("shuffle", "shuffle is False and True", "shuffle is True and False"),
        ("tail", "tail is 'drop' and 'pad'", "tail is 'pad' and 'drop'"),
        ("dataset", "dataset is '", "dataset is '"),
        ("resume", "epoch is 0 and 3, consumed is 0 and 9", "epoch is 3 and 0, consumed is 9 and 0"),
        ("epoch", "epoch is 1 and 0", "epoch is 0 and 1"),
    ],
)
def test_the_later_of_two_ranks_that_differ_says_so(three_ranks: Outcomes, case: str, first: str, second: str) -> None:
    assert three_ranks[0][case] is None  # nobody had begun
    assert three_ranks[1][case].startswith(f"this loader differs between rank 1 and rank 0: {first}")
    assert three_ranks[2][case].startswith(f"this loader differs between rank 2 and rank 1: {second}")
    assert three_ranks[1][case].endswith("or check_ranks=False if each has data of its own")


@pytest.mark.needs("torch")
def test_ranks_that_do_not_differ_say_nothing(three_ranks: Outcomes) -> None:
    cases = ["agree", "unchecked", "alone", "by hand", "ends early", "looked at", "in another order", "unpickled"]
    for outcomes in three_ranks:
        assert [(case, outcomes[case]) for case in [*cases, "tried twice"] if outcomes[case] is not None] == []


@pytest.mark.needs("torch")
def test_a_store_that_is_slow_or_gone_or_of_another_process_stops_nobody(three_ranks: Outcomes) -> None:
    (slow, seconds), (again, no_time) = three_ranks[0]["slow"]
    assert (slow, again) == (None, None)
    assert 0.9 < seconds < 5
    assert no_time < 0.9  # it is not asked again
    assert [outcomes["gone"][0] for outcomes in three_ranks] == [None] * 3
    assert max(outcomes["gone"][1] for outcomes in three_ranks) < 0.9
    assert three_ranks[2]["forked"] == 0


@pytest.mark.needs("jax")
@pytest.mark.needs("tensorflow")
def test_ranks_of_jax(datasets: list[str]) -> None:
    (port,) = free_ports(1)
    words = [[str(rank), str(port), *datasets] for rank in range(2)]
    first, second = run_together(JAX, words, "tensorflow")
    assert first == dict.fromkeys(("agree", "seed", "unchecked", "tf.data", "passes"))
    assert second.pop("seed").startswith("this loader differs between rank 1 and rank 0: seed is 1 and 0")
    assert "this loader differs between rank 1 and rank 0: seed is 1 and 0" in second.pop("tf.data")
    assert second == dict.fromkeys(("agree", "unchecked", "passes"))
