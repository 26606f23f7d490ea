"""Which rank a process is: every source, their order, and the warning when they disagree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING

import jax
import pytest
import torch.distributed

import stoker
import stoker.jax
from loader.shards import write_shards
from servers.processes import free_ports
from stoker.errors import ConfigError, RankWarning
from stoker.loader import ranks as ranks_module
from stoker.loader.ranks import CpuShare, Ranks, check_group, cpu_share, discover, resolve
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "4"}
OPEN_MPI = {"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "8"}
PMI = {"PMI_RANK": "3", "PMI_SIZE": "16"}
SLURM = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "32", "SLURM_NTASKS": "999"}
HOROVODRUN = {"HOROVOD_RANK": "2", "HOROVOD_SIZE": "6"}
MVAPICH = {"MV2_COMM_WORLD_RANK": "4", "MV2_COMM_WORLD_SIZE": "5"}
JAX_LAUNCHER = {"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "2"}
ALONE = ("PMIX_RANK", "PALS_RANKID", "HOROVOD_RANK", "MV2_COMM_WORLD_RANK", "JAX_PROCESS_ID")
JOBS = ("JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX")
HOSTS = {"SM_HOSTS": '["algo-1", "algo-2"]', "TPU_WORKER_HOSTNAMES": "10.0.0.1,10.0.0.2"}
LOCAL = {
    "LOCAL_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
    "HOROVOD_LOCAL_SIZE": "16",
    "MPI_LOCALNRANKS": "2",
    "MV2_COMM_WORLD_LOCAL_SIZE": "8",
}


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ.keys() - {"PATH"}:
        monkeypatch.delenv(name)


@pytest.fixture
def process_group() -> Iterator[None]:
    """This process as the only one of a real process group."""
    (port,) = free_ports(1)
    torch.distributed.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def horovod(rank: int, size: int, *, initialised: bool = True) -> SimpleNamespace:
    """Stands in for a module of Horovod, which no current Python or PyTorch can install."""
    return SimpleNamespace(is_initialized=lambda: initialised, rank=lambda: rank, size=lambda: size)


def set_jax(monkeypatch: pytest.MonkeyPatch, rank: int, size: int) -> None:
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(jax, "process_index", lambda: rank)
    monkeypatch.setattr(jax, "process_count", lambda: size)


def set_all(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def rank_and_size() -> tuple[int, int]:
    ranks = discover()
    return ranks.rank, ranks.world_size


@pytest.mark.parametrize(
    ("variables", "ranks", "source"),
    [
        ({}, (0, 1), ""),
        (HOROVODRUN, (2, 6), "Horovod"),
        (MVAPICH, (4, 5), "MVAPICH2"),
        (JAX_LAUNCHER, (1, 2), "JAX"),
    ],
)
def test_every_launcher_is_understood(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], ranks: tuple[int, int], source: str
) -> None:
    set_all(monkeypatch, variables)
    assert rank_and_size() == ranks
    assert source in discover().source


def test_a_batch_script_of_slurm_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"SLURM_PROCID": "0", "SLURM_NTASKS": "32"})
    assert rank_and_size() == (0, 1)


def cluster(kind: str, index: int, **tasks: int) -> str:
    hosts = {task: [f"{task}-{number}:2222" for number in range(count)] for task, count in tasks.items()}
    return json.dumps({"cluster": hosts, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    ("config", "ranks"),
    [
        (cluster("worker", 1, worker=3), (1, 3)),
        (cluster("worker", 1, worker=2, chief=1), (2, 3)),
        (cluster("chief", 0, worker=2, chief=1), (0, 3)),
        (cluster("evaluator", 0, worker=2, evaluator=1), (0, 1)),
        (cluster("worker", 1, worker=2, ps=1), (0, 1)),
        ("{}", (0, 1)),
        ("", (0, 1)),
    ],
)
def test_tf_distribute_workers_are_ranks(monkeypatch: pytest.MonkeyPatch, config: str, ranks: tuple[int, int]) -> None:
    monkeypatch.setenv("TF_CONFIG", config)
    assert rank_and_size() == ranks


@pytest.mark.parametrize("config", ["worker", "[1]", '{"task": {"type": "worker", "index": "x"}}'])
def test_a_damaged_tf_config_is_named(monkeypatch: pytest.MonkeyPatch, config: str) -> None:
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(ConfigError, match=r"TF_CONFIG is .*rank= and world_size="):
        discover()


@pytest.mark.parametrize(
    ("name", "value"), [*((name, "1") for name in (*ALONE, *JOBS)), *HOSTS.items()], ids=[*ALONE, *JOBS, *HOSTS]
)
def test_a_sign_of_other_ranks_is_a_warning_not_a_split(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.warns(RankWarning, match=rf"{name} .*reads all samples.*give rank= and world_size=.*rank=0, world_si"):
        assert rank_and_size() == (0, 1)
    set_all(monkeypatch, TORCHRUN)  # where a launcher says it, there is nothing to warn of
    assert rank_and_size() == (1, 4)


def test_a_list_of_one_host_is_no_sign_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"SM_HOSTS": '["algo-1"]', "TPU_WORKER_HOSTNAMES": "localhost", "HOROVOD_SIZE": "2"})
    assert rank_and_size() == (0, 1)


def set_ray(monkeypatch: pytest.MonkeyPatch, mode: int, *, trial: str | None = None, context: object = None) -> None:
    """Stands in for Ray, which is not among the packages of the tests; its own client tests have the real one."""

    def get_context() -> object:
        if context is None:
            raise RuntimeError("not in a worker of Ray Train")
        return context

    worker = SimpleNamespace(worker=SimpleNamespace(mode=mode))
    ray = SimpleNamespace(WORKER_MODE=1, is_initialized=lambda: True, get_runtime_context=lambda: worker)
    tune = SimpleNamespace(get_context=lambda: SimpleNamespace(get_trial_id=lambda: trial))
    modules = {"ray": ray, "ray.train": SimpleNamespace(get_context=get_context), "ray.tune": tune}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)


def test_a_worker_of_ray_without_a_group_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    set_ray(monkeypatch, mode=0)
    assert rank_and_size() == (0, 1)  # the driver
    set_ray(monkeypatch, mode=1, trial="0001")
    assert rank_and_size() == (0, 1)  # a trial of Ray Tune is alone
    set_ray(monkeypatch, mode=1)
    with pytest.warns(RankWarning, match=r"worker of Ray.*reads all samples"):
        assert rank_and_size() == (0, 1)


def test_a_worker_of_ray_train_has_its_rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    numbers = {"get_world_rank": 2, "get_world_size": 8, "get_local_world_size": 4}
    context = SimpleNamespace(**{name: lambda value=value: value for name, value in numbers.items()})
    set_ray(monkeypatch, mode=1, context=context)
    assert discover() == Ranks(2, 8, "Ray Train")
    on_machine(monkeypatch, tmp_path, 32, 32)
    assert cpu_share() == CpuShare(8, 32, 4)


def test_a_group_that_came_later_is_compared(monkeypatch: pytest.MonkeyPatch, process_group: None) -> None:
    check_group(0, 1)
    with pytest.raises(ConfigError, match=r"rank 1 of 2, before torch.distributed .*says rank 0 of 1; make it after"):
        check_group(1, 2)
    set_jax(monkeypatch, 1, 2)
    check_group(1, 2)  # one of the groups agrees


def test_a_loader_stops_once_a_group_says_something_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_shards(tmp_path, 12, 1)
    train, settings = stoker.open(tmp_path), {"batch_size": 2, "transform": stoker.Resize(8), "threads": 1}
    with (
        stoker.Loader(train, **settings) as loader,
        stoker.Loader(train, **settings, rank=0, world_size=1) as given,
    ):
        begun = iter(loader)
        assert len(next(begun).indices) == 2
        set_jax(monkeypatch, 1, 2)
        with pytest.raises(ConfigError, match=r"rank 0 of 1, before JAX .*says rank 1 of 2"):
            next(begun)
        with pytest.raises(ConfigError, match="make it after"):
            iter(loader)
        assert sum(len(batch.indices) for batch in given) == 12  # what was given is never compared
        with stoker.Loader(train, **settings) as later:
            assert (later.topology.rank, later.topology.world_size) == (1, 2)
            assert len(list(later)) == 3


def test_jax_before_its_group_takes_the_launchers_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_shards(tmp_path, 12, 1)
    settings = {"batch_size": 2, "transform": stoker.Resize(8), "threads": 1}
    set_all(monkeypatch, JAX_LAUNCHER)
    with stoker.jax.batches(stoker.open(tmp_path), **settings) as batches:
        assert (batches.loader.topology.rank, batches.loader.topology.world_size) == (1, 2)
    devices = jax.sharding.Mesh(jax.devices()[:1], ("data",))
    sharding = jax.sharding.NamedSharding(devices, jax.sharding.PartitionSpec("data"))
    with pytest.raises(ConfigError, match=r"initialize\(\) first, or give rank=0, world_size=1"):
        stoker.jax.batches(stoker.open(tmp_path), sharding=sharding, **settings)
    with stoker.jax.batches(stoker.open(tmp_path), sharding=sharding, rank=0, world_size=1, **settings) as batches:
        assert batches.steps_per_epoch == 6


def test_a_process_of_lightning_before_fit_is_told_where_to_make_the_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"WORLD_SIZE": "2", "LOCAL_RANK": "1"})
    with pytest.raises(ConfigError, match=r"RANK is not set; with Lightning make the loader in train_dataloader\(\)"):
        discover()


@pytest.mark.parametrize("name", ["horovod.torch", "horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras"])
def test_horovod_counts_once_it_is_initialised(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, horovod(0, 0, initialised=False))
    assert rank_and_size() == (0, 1)
    monkeypatch.setitem(sys.modules, name, horovod(2, 3))
    assert discover() == Ranks(2, 3, f"Horovod ({name})")


def test_a_framework_that_is_not_imported_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch.distributed", "jax"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [])  # an import would now fail
    assert rank_and_size() == (0, 1)


def test_the_order_of_precedence(monkeypatch: pytest.MonkeyPatch, process_group: None) -> None:
    for variables in (TORCHRUN, OPEN_MPI, PMI, SLURM):
        set_all(monkeypatch, variables)
    set_jax(monkeypatch, 6, 7)
    monkeypatch.setitem(sys.modules, "horovod.torch", horovod(2, 3))
    expected = [
        *((0, 1, "torch.distributed"), (2, 3, "Horovod (horovod.torch)"), (6, 7, "JAX")),
        *((1, 4, "RANK"), (2, 8, "Open MPI"), (3, 16, "PMI"), (5, 32, "Slurm")),
    ]
    removals = [
        lambda: monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False),
        lambda: monkeypatch.delitem(sys.modules, "horovod.torch"),
        lambda: monkeypatch.setattr(jax.distributed, "is_initialized", lambda: False),
        *(lambda n=n: monkeypatch.delenv(n) for n in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")),
    ]
    for number, (rank, world_size, source) in enumerate(expected):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ranks = discover()
        assert (ranks.rank, ranks.world_size) == (rank, world_size)
        assert source in ranks.source
        assert [warning.category for warning in caught] == [RankWarning] * (len(expected) - 1 - number)
        if number < len(removals):
            removals[number]()
        for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")[: max(0, number - 2)]:
            monkeypatch.delenv(name, raising=False)


def test_two_sources_that_disagree_are_both_named(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**TORCHRUN, **PMI})
    with pytest.warns(RankWarning) as caught:
        assert rank_and_size() == (1, 4)
    message = str(caught[0].message)
    for part in ("RANK, WORLD_SIZE", "rank 1 of 4", "PMI_RANK, PMI_SIZE", "rank 3 of 16", "torchrun", "give rank="):
        assert part.lower() in message.lower()


def test_sources_that_agree_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {**TORCHRUN, "PMI_RANK": "1", "PMI_SIZE": "4"})
    assert rank_and_size() == (1, 4)


def test_a_torchrun_on_every_node_of_a_slurm_step_is_not_a_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"RANK": "5", "WORLD_SIZE": "8", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"})
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert rank_and_size() == (5, 8)
    for other in ("2", "many"):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", other)
        with pytest.warns(RankWarning):
            assert rank_and_size() == (5, 8)


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"RANK": "1"}, ["RANK is '1'", "WORLD_SIZE is not set"]),
        ({"WORLD_SIZE": "4"}, ["WORLD_SIZE is '4'", "RANK is not set"]),
        ({"RANK": "one", "WORLD_SIZE": "4"}, ["RANK is 'one'"]),
        ({"RANK": "1", "WORLD_SIZE": ""}, ["WORLD_SIZE is ''"]),
        ({"RANK": "-1", "WORLD_SIZE": "4"}, ["RANK is '-1'"]),
        ({"RANK": "4", "WORLD_SIZE": "4"}, ["RANK is 4", "WORLD_SIZE is 4"]),
        ({"RANK": "0", "WORLD_SIZE": "0"}, ["WORLD_SIZE is 0"]),
        ({"OMPI_COMM_WORLD_RANK": "1"}, ["OMPI_COMM_WORLD_SIZE is not set"]),
        ({"PMI_SIZE": "2"}, ["PMI_RANK is not set"]),
        ({"SLURM_STEP_NUM_TASKS": "2"}, ["SLURM_PROCID is not set"]),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "²"}, ["SLURM_STEP_NUM_TASKS is '²'"]),
    ],
    ids=str,
)
def test_bad_variables_are_named(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], named: list[str]) -> None:
    set_all(monkeypatch, variables)
    with pytest.raises(ConfigError) as caught:
        discover()
    for part in [*named, "rank= and world_size="]:
        assert part in str(caught.value)
    assert resolve(3, 4) == Ranks(3, 4, "given")  # who gives both is not asked again


def test_damage_of_an_unused_source_is_ignored(monkeypatch: pytest.MonkeyPatch, process_group: None) -> None:
    set_all(monkeypatch, {"WORLD_SIZE": "4", "PMI_RANK": "x"})
    assert rank_and_size() == (0, 1)


@pytest.mark.parametrize("given", [(1, None), (None, 2)])
def test_half_a_pair_is_refused(given: tuple[int | None, int | None]) -> None:
    with pytest.raises(ConfigError, match="left out; give both or none"):
        resolve(*given)
    assert resolve(None, None) == discover()


def on_machine(monkeypatch: pytest.MonkeyPatch, proc: Path, own: int, launcher: int, *, variable: str = "") -> None:
    """Let this process have so many CPUs, and its launcher, which is the parent of a shell between them, so many."""
    cpus = {0: own, os.getppid(): own, 4321: launcher}
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cpus[process])))
    monkeypatch.setattr(ranks_module, "cpu_limit", lambda: None)
    monkeypatch.setattr("stoker.config.cpu_limit", lambda: None)
    monkeypatch.setattr(ranks_module, "_PROCESSES", proc)
    for process, environment, parent in ((os.getppid(), f"HOME=/\0{variable}=8\0", 4321), (4321, "HOME=/\0", 1)):
        write_files(proc / str(process), {"environ": environment, "status": f"Name:\tsh\nPPid:\t{parent}\n"})


def test_a_process_alone_has_all_its_cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_machine(monkeypatch, tmp_path, 6, 32)
    assert cpu_share() == CpuShare(6, 6, 1)
    assert str(cpu_share()) == "6 of 6 CPUs"


@pytest.mark.parametrize("name", LOCAL)
def test_local_ranks_divide_cpus_of_their_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setenv(name, LOCAL[name])
    ranks = int(LOCAL[name])
    on_machine(monkeypatch, tmp_path, 32, 32, variable=name)
    assert cpu_share() == CpuShare(32 // ranks, 32, ranks)
    assert str(cpu_share()) == f"{32 // ranks} of 32 CPUs, {ranks} local ranks"
    monkeypatch.setenv(name, "64")
    assert cpu_share() == CpuShare(1, 32, 64)
    monkeypatch.setenv(name, "many")
    assert cpu_share() == CpuShare(32, 32, 1)


@pytest.mark.parametrize(
    ("own", "launcher", "threads"),
    [(32, 32, 4), (4, 32, 4), (3, 32, 3), (16, 32, 4), (16, 16, 2)],
    ids=["not bound", "bound to its share", "to less", "to a socket of several ranks", "launcher bound, too"],
)
def test_a_rank_that_is_bound_does_not_divide_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own: int, launcher: int, threads: int
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    on_machine(monkeypatch, tmp_path, own, launcher, variable="LOCAL_WORLD_SIZE")
    assert cpu_share() == CpuShare(threads, launcher, 8)


def test_a_quota_is_shared_by_the_local_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    on_machine(monkeypatch, tmp_path, 32, 32, variable="LOCAL_WORLD_SIZE")
    monkeypatch.setattr(ranks_module, "cpu_limit", lambda: 8.0)
    monkeypatch.setattr("stoker.config.cpu_limit", lambda: 8.0)
    assert cpu_share() == CpuShare(2, 8, 4)


@pytest.mark.parametrize(
    ("tasks", "node", "ranks"),
    [("4", "0", 4), ("4(x2),3", "1", 4), ("4(x2),3", "2", 3), ("4(x2),3", "3", 1), ("?", "0", 1), ("4", "", 1)],
)
def test_slurm_lists_tasks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tasks: str, node: str, ranks: int) -> None:
    on_machine(monkeypatch, tmp_path, 24, 64, variable="SLURM_STEP_TASKS_PER_NODE")
    set_all(monkeypatch, {"SLURM_STEP_TASKS_PER_NODE": tasks, "SLURM_NODEID": node, "SLURM_CPUS_ON_NODE": "24"})
    assert cpu_share() == CpuShare(24, 24, 1)  # a batch script, outside of srun
    set_all(monkeypatch, SLURM)
    assert cpu_share() == CpuShare(24 // ranks, 24, ranks)


@pytest.mark.parametrize(("address", "ranks"), [("localhost", 4), ("127.0.0.1", 4), ("::1", 4), ("node-7", 1)])
def test_ranks_that_meet_at_this_nodes_own_address_are_all_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, address: str, ranks: int
) -> None:
    on_machine(monkeypatch, tmp_path, 32, 32)
    set_all(monkeypatch, {**TORCHRUN, "MASTER_ADDR": address})
    assert cpu_share() == CpuShare(32 // ranks, 32, ranks)
    for name in (*TORCHRUN, "MASTER_ADDR"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("JAX_COORDINATOR_ADDRESS", f"{address}:1234")
    assert cpu_share().local_ranks == 1
    set_jax(monkeypatch, 1, 4)
    assert cpu_share() == CpuShare(32 // ranks, 32, ranks)


def test_ranks_met_at_loopback_are_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, process_group: None) -> None:
    on_machine(monkeypatch, tmp_path, 32, 32)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    assert cpu_share() == CpuShare(8, 32, 4)  # nothing is in the environment: the group has met over tcp://localhost


def test_horovod_says_how_many_ranks_are_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_machine(monkeypatch, tmp_path, 32, 32)
    module = horovod(2, 16)
    module.local_size = lambda: 8
    monkeypatch.setitem(sys.modules, "horovod.torch", module)
    assert cpu_share() == CpuShare(4, 32, 8)


PROGRAM = "import json, stoker.loader as l; s = l.cpu_share(); print(json.dumps([s.threads, s.cpus, s.local_ranks]))"


def test_real_processes_find_their_share_of_the_cpus() -> None:
    whole = cpu_share().cpus
    for ranks in (1, 2, 8):
        environment = {**os.environ, "LOCAL_WORLD_SIZE": str(ranks)}
        command = ["sh", "-c", f"{sys.executable} -c '{PROGRAM}'; true"]  # a shell between launcher and rank
        out = subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60).stdout
        assert json.loads(out) == [max(1, whole // ranks), whole, ranks]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="CPUs cannot be chosen on this system")
def test_a_real_process_that_is_bound_keeps_its_cpus() -> None:
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("there is only one CPU")
    bound = f"import os; os.sched_setaffinity(0, {{{first}}}); {PROGRAM}"
    environment = {**os.environ, "LOCAL_WORLD_SIZE": str(1 + len(others))}
    command = [sys.executable, "-c", bound]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60).stdout
    assert json.loads(out)[0] == 1
    assert json.loads(out)[1] == cpu_share().cpus
