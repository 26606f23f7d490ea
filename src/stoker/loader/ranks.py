"""The rank of this process, its share of the CPUs, and what ranks tell each other (`Agreement`).

Nothing is imported to find the rank: only modules that the program has imported, and the environment, are consulted.
The first of these sources that has an answer counts:

==================  ===========================================================================================
source              has an answer when
==================  ===========================================================================================
torch.distributed   a process group is initialised
Horovod             it is initialised for PyTorch, TensorFlow or Keras
JAX                 ``jax.distributed`` is initialised
Ray Train           the program runs in a worker of one of its trainers
torchrun            ``RANK`` or ``WORLD_SIZE`` is set
Horovod's launcher  ``HOROVOD_RANK`` and ``HOROVOD_SIZE`` are set
Open MPI            ``OMPI_COMM_WORLD_RANK`` or ``OMPI_COMM_WORLD_SIZE`` is set
MVAPICH2            ``MV2_COMM_WORLD_RANK`` and ``MV2_COMM_WORLD_SIZE`` are set
PMI                 ``PMI_RANK`` or ``PMI_SIZE`` is set (MPICH, Intel MPI)
Slurm               ``SLURM_STEP_NUM_TASKS`` is set: in what ``srun`` starts
JAX's launchers     ``JAX_PROCESS_ID`` and ``JAX_NUM_PROCESSES`` are set (Kubeflow Trainer)
tf.distribute       ``TF_CONFIG`` lists workers, with a chief or without, but no parameter servers
==================  ===========================================================================================

``SLURM_NTASKS`` is not used: in a batch script outside ``srun`` it counts processes that do not exist. If a later
source disagrees, a warning says so, unless that source started the launcher, such as an ``srun`` that starts one
``torchrun`` per node.

If no source has an answer, the process reads all samples. These signs that other processes may read them, too, cause a
`RankWarning`:

===================  ==========================================================================================
source               sign
===================  ==========================================================================================
PMIx, Cray PALS      ``PMIX_RANK`` or ``PALS_RANKID``, which come without a number of ranks
half of a pair       ``HOROVOD_RANK``, ``MV2_COMM_WORLD_RANK`` or ``JAX_PROCESS_ID`` without the number of ranks
jobs of an array     ``JOB_COMPLETION_INDEX``, ``SLURM_ARRAY_TASK_ID`` or ``AWS_BATCH_JOB_ARRAY_INDEX``
several nodes        ``SM_HOSTS`` (SageMaker) or ``TPU_WORKER_HOSTNAMES`` with more than one host
Ray                  the program runs in a task or an actor, and is no trial of Ray Tune
===================  ==========================================================================================

Other launchers are not recognised, such as ``mp.spawn``, Dask, LSF, PBS and scripts of your own: initialise a process
group before the loader is made, or give ``rank=`` and ``world_size=``. If a group that is initialised later disagrees,
the next epoch or batch raises.

The same sources say how many ranks share the CPUs of this node (``LOCAL_WORLD_SIZE`` and the like). If they do not, and
the ranks met at a loopback address (``MASTER_ADDR``, ``JAX_COORDINATOR_ADDRESS`` or an ``init_method`` of
``127.0.0.1``), all ranks are on this node.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_stack
from typing import TYPE_CHECKING, Any, Literal

from stoker.config import available_cpus, cpu_limit
from stoker.errors import ConfigError, RankWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.order import Topology


_REMEDY = "or give rank= and world_size="
_PROCESSES = Path("/proc")
_SLURM_LOCAL = "SLURM_STEP_TASKS_PER_NODE"
_LOCAL = (
    "LOCAL_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "HOROVOD_LOCAL_SIZE",
    "MV2_COMM_WORLD_LOCAL_SIZE",
    "MPI_LOCALNRANKS",
)
_THIS_NODE = ("localhost", "127.0.0.1", "::1", "[::1]")
_RANKS_ALONE = ("PMIX_RANK", "PALS_RANKID", "HOROVOD_RANK", "MV2_COMM_WORLD_RANK", "JAX_PROCESS_ID")
_JOB_INDEXES = ("JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX")
_HOST_LISTS = ("SM_HOSTS", "TPU_WORKER_HOSTNAMES")
_HOROVOD = ("horovod.torch", "horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras")


@dataclass(frozen=True, slots=True)
class Ranks:
    """The rank of a process among those that share each epoch."""

    rank: int  # its number, from 0
    world_size: int
    source: str  # who says so

    def __str__(self) -> str:
        return f"{self.source}: rank {self.rank} of {self.world_size}"


@dataclass(frozen=True, slots=True)
class _Variables:
    source: str
    rank: str  # holds the rank
    world_size: str  # holds the number of ranks
    launched: Literal["either", "both", "size"] = "either"  # which of them show that it started this process

    def __call__(self) -> Ranks | None:
        given = [name in os.environ for name in (self.rank, self.world_size)]
        if not {"either": any(given), "both": all(given), "size": given[1]}[self.launched]:
            return None
        rank, world_size = self._number(self.rank, self.world_size), self._number(self.world_size, self.rank)
        if not 0 <= rank < world_size:
            message = f"{self.rank} is {rank} and {self.world_size} is {world_size}: ranks count from 0 to one less"
            raise ConfigError(f"{message}; correct them, {_REMEDY}")
        return Ranks(rank, world_size, f"{self.source} ({self.rank}, {self.world_size})")

    def _number(self, name: str, other: str) -> int:
        text = os.environ.get(name)
        if text is None:
            remedy = f"set both or none, {_REMEDY}"
            if name == "RANK" and "LOCAL_RANK" in os.environ:  # Lightning's processes before fit()
                remedy = f"with Lightning make the loader in train_dataloader(); otherwise {remedy}"
            raise ConfigError(f"{other} is {os.environ[other]!r}, but {name} is not set; {remedy}")
        if not (text.isascii() and text.isdigit()):
            raise ConfigError(f"{name} is {text!r}, which is not a number of ranks; correct it, {_REMEDY}")
        return int(text)


def _torch() -> Ranks | None:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Ranks(distributed.get_rank(), distributed.get_world_size(), "torch.distributed")


def _horovod() -> Ranks | None:
    name, module = _horovod_module()
    return None if module is None else Ranks(module.rank(), module.size(), f"Horovod ({name})")


def _horovod_module() -> tuple[str, Any]:
    for name in _HOROVOD:
        module: Any = sys.modules.get(name)
        if module is not None and module.is_initialized():
            return name, module
    return "", None


def _jax() -> Ranks | None:
    jax: Any = sys.modules.get("jax")
    distributed: Any = getattr(jax, "distributed", None)
    # Old versions cannot be asked, and asking for the index alone would start a backend.
    if not hasattr(distributed, "is_initialized") or not distributed.is_initialized():
        return None
    return Ranks(jax.process_index(), jax.process_count(), "JAX")


def _ray_train() -> Ranks | None:
    context = _ray_context()
    return None if context is None else Ranks(context.get_world_rank(), context.get_world_size(), "Ray Train")


def _ray_context() -> Any:
    """Return Ray Train's context in a worker of a trainer; None elsewhere, also in a trial of Ray Tune."""
    train: Any = sys.modules.get("ray.train")
    if train is None or not _in_ray_worker():
        return None
    try:
        context = train.get_context()
    except (RuntimeError, DeprecationWarning):  # no worker of a trainer; a trial
        return None
    return None if context.get_world_size() is None else context


def _in_ray_worker() -> bool:
    ray: Any = sys.modules.get("ray")
    if not hasattr(ray, "is_initialized") or not ray.is_initialized():
        return False
    return bool(ray.get_runtime_context().worker.mode == ray.WORKER_MODE)


def _tf_config() -> Ranks | None:
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        tasks, task = config.get("cluster", {}), config.get("task", {})
        workers = [(kind, index) for kind in ("chief", "master", "worker") for index in range(len(tasks.get(kind, ())))]
        this_task = (task.get("type"), int(task.get("index", -1)))
    except (AttributeError, TypeError, ValueError) as error:
        message = f"TF_CONFIG is {os.environ['TF_CONFIG']!r}, which is not a cluster and a task in JSON: {error}"
        raise ConfigError(f"{message}; correct it, {_REMEDY}") from error
    if "ps" in tasks or this_task not in workers:  # datasets are the chief's alone; or this is the evaluator
        return None
    return Ranks(workers.index(this_task), len(workers), "tf.distribute (TF_CONFIG)")


_TORCHRUN = _Variables("torchrun", "RANK", "WORLD_SIZE")
_GROUPS: tuple[Callable[[], Ranks | None], ...] = (_torch, _horovod, _jax)
_OUTER: tuple[Callable[[], Ranks | None], ...] = (  # these may start a torchrun on every node
    _Variables("Horovod's launcher", "HOROVOD_RANK", "HOROVOD_SIZE", "both"),
    _Variables("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    _Variables("MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "both"),
    _Variables("PMI", "PMI_RANK", "PMI_SIZE"),
    _Variables("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "size"),
    _Variables("JAX's launcher", "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "both"),
    _tf_config,
)
_SOURCES: tuple[Callable[[], Ranks | None], ...] = (*_GROUPS, _ray_train, _TORCHRUN, *_OUTER)


def discover() -> Ranks:
    """Return the rank of this process, by the first source in this module's list that has an answer; else 0 of 1.

    Raises:
        ConfigError: The variables of the source that would count are incomplete, not numbers, or out of range.

    Warns:
        RankWarning: A later source disagrees; or none has an answer, but others may read the same samples.
    """
    chosen = None
    for read in _SOURCES:
        if chosen is None:
            chosen = read()
            continue
        other = _readable(read)
        if other is None or (other.rank, other.world_size) == (chosen.rank, chosen.world_size):
            continue
        if not (read in _OUTER and _launched(other, chosen)):
            message = f"{chosen}, but {other}; {chosen.source} counts"
            warnings.warn(f"{message}. Give rank= and world_size= to settle it", RankWarning, stacklevel=2)
    if chosen is None and (seen := _sign_of_others()) is not None:
        message = f"{seen}, but no process group is initialised and no launcher says which of how many ranks this is"
        advice = "initialise the group before the loader is made, or give rank= and world_size="
        message = f"{message}: this loader reads all samples. If others share them, {advice}"
        warnings.warn(f"{message}; if not, give rank=0, world_size=1", RankWarning, stacklevel=2)
    return chosen or Ranks(0, 1, "default")


def _sign_of_others() -> str | None:
    """Return a sign that other processes read the same samples; None without one."""
    for name in (*_RANKS_ALONE, *_JOB_INDEXES):
        if os.environ.get(name):
            return f"{name} is {os.environ[name]!r}"
    for name in _HOST_LISTS:
        if (hosts := os.environ.get(name, "").count(",") + 1) > 1:
            return f"{name} lists {hosts} hosts"
    tune: Any = sys.modules.get("ray.tune")
    if _in_ray_worker() and (tune is None or tune.get_context().get_trial_id() is None):
        return "this process is a worker of Ray"
    return None


def check_group(rank: int, world_size: int) -> None:
    """Refuse the rank of a loader if it disagrees with the groups that were initialised since."""
    now = [ranks for read in _GROUPS if (ranks := read()) is not None]
    if now and all((ranks.rank, ranks.world_size) != (rank, world_size) for ranks in now):
        message = f"this loader was made for rank {rank} of {world_size}, before {now[0].source}"
        message += f" was initialised, which says rank {now[0].rank} of {now[0].world_size}"
        remedy = "make it afterwards (with Lightning in train_dataloader())"
        raise ConfigError(f"{message}; {remedy}, {_REMEDY}")


def resolve(rank: int | None, world_size: int | None) -> Ranks:
    """Return the ranks that were given, or else those that `discover` finds."""
    if rank is not None and world_size is not None:
        return Ranks(rank, world_size, "given")  # their range is checked by the topology
    if rank is None and world_size is None:
        return discover()
    given = f"rank is {rank}" if world_size is None else f"world_size is {world_size}"
    lacks = "world_size" if world_size is None else "rank"
    raise ConfigError(f"{given}, but {lacks} is left out; give both or none")


def _readable(read: Callable[[], Ranks | None]) -> Ranks | None:
    try:
        return read()
    except ConfigError:  # it would not count anyway
        return None


def _launched(outer: Ranks, inner: Ranks) -> bool:
    """Return whether the processes of the outer launcher are launchers themselves, each of equally many ranks."""
    local = _count(os.environ.get("LOCAL_WORLD_SIZE"))
    return local is not None and outer.world_size * local == inner.world_size


@dataclass(frozen=True, slots=True)
class CpuShare:
    """Share of a node's CPUs that belongs to this process."""

    threads: int  # how many CPUs the share is, at least 1
    cpus: int  # how many the ranks on this node have together
    local_ranks: int  # how many ranks there are on this node

    def __str__(self) -> str:
        ranks = f", {self.local_ranks} local ranks" if self.local_ranks > 1 else ""
        return f"{self.threads} of {self.cpus} CPU{'s' if self.cpus > 1 else ''}{ranks}"


def cpu_share() -> CpuShare:
    """Return the CPUs of the launcher divided by the ranks on its node, but no more than this process may use.

    A launcher may bind every rank to CPUs of its own, or to those of a socket that it shares with others. So the CPUs
    that are divided are not those of this process, but those of the process that started the ranks.
    """
    own_cpus, limit = available_cpus(), cpu_limit()
    ranks, variable = _local_ranks()
    together = own_cpus if variable is None else _launchers_cpus(variable) or own_cpus
    if variable == _SLURM_LOCAL:
        together = min(together, _count(os.environ.get("SLURM_CPUS_ON_NODE")) or together)
    if limit is not None:
        together = max(1, min(together, math.ceil(limit)))
    return CpuShare(max(1, min(own_cpus, together // ranks)), together, ranks)


def _local_ranks() -> tuple[int, str | None]:
    """Return how many ranks there are on this node, and the variable by which the launcher says so, if one does."""
    _, horovod = _horovod_module()
    counts = [(name, count) for name in _LOCAL if (count := _count(os.environ.get(name))) is not None]
    if horovod is not None:
        return int(horovod.local_size()), counts[0][0] if counts else None
    if counts:
        return counts[0][1], counts[0][0]
    if "SLURM_STEP_NUM_TASKS" in os.environ and (tasks := _slurm_tasks()) is not None:
        return tasks, _SLURM_LOCAL
    if (context := _ray_context()) is not None:
        return int(context.get_local_world_size()), None
    address, coordinator = os.environ.get("MASTER_ADDR", ""), os.environ.get("JAX_COORDINATOR_ADDRESS", "")
    for host, read in ((address, _torch), (address, _TORCHRUN), (coordinator, _jax), (_store_host(), _torch)):
        if (host in _THIS_NODE or host.rpartition(":")[0] in _THIS_NODE) and (ranks := _readable(read)) is not None:
            return ranks.world_size, None
    return 1, None


def torch_store() -> Any:
    """Return the store of PyTorch's default group, which has no public name; None without a group."""
    if _torch() is None:
        return None
    return getattr(sys.modules["torch.distributed"].distributed_c10d, "_get_default_store", lambda: None)()


def _store_host() -> str:
    """Return where the ranks of PyTorch's group have met; empty without a group, or if that was not over TCP."""
    store = torch_store()
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return str(getattr(store, "host", ""))


def _count(text: str | None) -> int | None:
    """Return a number of ranks or CPUs; None if the text is not one, and then CPUs are not divided by it."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and int(text) > 0 else None


def _slurm_tasks() -> int | None:
    """Return how many tasks of the step are on this node, from a list by node such as ``4(x2),3``."""
    nodes: list[int] = []
    node = os.environ.get("SLURM_NODEID", "")
    for part in os.environ.get(_SLURM_LOCAL, "").split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,6})\))?", part, re.ASCII)
        if match is None:
            return None
        nodes += [int(match[1])] * int(match[2] or 1)
    index = int(node) if node.isascii() and node.isdigit() else -1
    return nodes[index] if 0 <= index < len(nodes) and nodes[index] > 0 else None


def _launchers_cpus(variable: str) -> int | None:
    """Return how many CPUs the launcher may use; None if the system does not say.

    The launcher is the nearest ancestor of this process without the variable that a launcher gives to all ranks; shells
    may lie between. The environment of another user's process cannot be read: that is the daemon of a cluster.
    """
    mark = f"\0{variable}=".encode()
    process = os.getppid()
    try:
        while mark in b"\0" + _environment(process):
            process = int(
                re.findall(r"^PPid:\s*([0-9]+)", (_PROCESSES / f"{process}/status").read_text(), re.MULTILINE)[0]
            )
        return len(os.sched_getaffinity(process))
    except (AttributeError, OSError, IndexError):
        return None


def _environment(process: int) -> bytes:
    try:
        return (_PROCESSES / f"{process}/environ").read_bytes()
    except OSError:
        return b""


DATASET_OF_STATE = " (the samples and their order, max_samples=, ObjectCrops, the weights of a mix)"
"""What the dataset of a state stands for."""

_ANSWER_SECONDS = 1.0
_MOST_LOADERS = 100  # of one call site, so that what is written stays short
_too_slow = threading.Event()
_loaders: dict[str, list[Agreement]] = {}  # by call site
_inherited: list[Any] = []  # groups of the parent of a forked process: a connection serves one process


class Agreement:
    """What one loader tells the other ranks, so that a disagreement raises instead of training on the wrong data.

    Each rank writes facts about its loaders into the store of ``torch.distributed`` or ``jax.distributed``, and reads
    what its two neighbours have written so far. No rank waits: of two that disagree, the later one raises. A loader is
    compared with the loader that another rank made at the same ``call_site``, that is by the same calls of the same
    functions. Loaders of one call site are numbered in the order of their first use. If a loader disagrees with its
    counterpart but agrees with another loader of the call site, the numbers may have shifted, and nothing is raised.
    """

    def __init__(self, topology: Topology, *, check_ranks: bool) -> None:
        self.call_site = find_call_site()
        self._topology = topology
        self._talks = check_ranks and topology.world_size > 1
        self._facts: dict[str, Any] = {}

    def compare(self, **facts: Any) -> None:
        """Tell the other ranks facts about this loader, and compare theirs; each fact only once."""
        if not self._talks or facts.keys() <= self._facts.keys():
            return
        self._facts.update(facts)
        rank, size, group = self._topology.rank, self._topology.world_size, _group()
        if group is None or group in _inherited or group[1:] != (rank, size) or _too_slow.is_set():
            return
        # A launcher that starts the ranks again may keep the store.
        key = f"stoker/{os.environ.get('TORCHELASTIC_RESTART_COUNT')}/{size}/{self.call_site}"
        loaders = _loaders.setdefault(key, [])
        if self not in loaders and len(loaders) < _MOST_LOADERS:
            loaders.append(self)
        if self in loaders:
            number, ours = loaders.index(self), [each._facts for each in loaders]
            neighbours = {(rank - 1) % size, (rank + 1) % size}  # if all neighbours agree, all ranks do
            for other, theirs in _exchanged(group[0], f"{key}/{{}}", rank, ours, neighbours).items():
                if number < len(theirs):
                    _refuse_differing(f"rank {rank} and rank {other}", ours, theirs, number)


def _refuse_differing(ranks: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any]], number: int) -> None:
    our, their = ours[number], theirs[number]
    if all(_differing(our, each) for each in theirs) and all(_differing(each, their) for each in ours):
        values = ", ".join(f"{name} is {our[name]!r} and {their[name]!r}" for name in _differing(our, their))
        values += DATASET_OF_STATE if "dataset" in _differing(our, their) else ""
        message = f"this loader differs between {ranks}: {values}; samples would be missing or repeated"
        advice = "Give all ranks the same settings and the same state, or check_ranks=False if each has data of its own"
        raise ConfigError(f"{message}. {advice}")


def _differing(mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    return [name for name in mine if name in theirs and mine[name] != theirs[name]]


def _exchanged(store: Any, key: str, rank: int, ours: list[Any], others: set[int]) -> dict[int, list[dict[str, Any]]]:
    """Write the facts of this rank and read those of others, if the store answers within a second."""
    answers: dict[int, list[dict[str, Any]]] = {}
    is_jax = hasattr(store, "key_value_try_get")

    def talk() -> None:
        with suppress(Exception):  # the store is gone
            options = {"allow_overwrite": True} if is_jax else {}
            (store.key_value_set if is_jax else store.set)(key.format(rank), json.dumps(ours), **options)
        for other in others:
            with suppress(Exception):  # JAX raises where nothing was written; PyTorch would wait
                if is_jax or store.check([key.format(other)]):
                    answers[other] = json.loads((store.key_value_try_get if is_jax else store.get)(key.format(other)))

    thread = threading.Thread(target=talk, name="stoker-agreement", daemon=True)  # the calls have no timeout
    thread.start()
    thread.join(_ANSWER_SECONDS)
    if thread.is_alive():
        _too_slow.set()
    return {} if _too_slow.is_set() else answers


def _group() -> tuple[Any, int, int] | None:
    """Return the store of PyTorch's default group or of JAX, which has no public name for it, with rank and size."""
    store = torch_store()
    if store is not None:
        torch: Any = sys.modules["torch.distributed"]
        return store, torch.get_rank(), torch.get_world_size()
    jax: Any = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return None if jax is None or jax.client is None else (jax.client, jax.process_id, jax.num_processes)


os.register_at_fork(after_in_child=lambda: _inherited.append(_group()))


def find_call_site() -> str:
    """Return a hash of the calls on the stack, each by file name, function and instruction."""
    calls = [(frame.f_code, frame.f_lasti) for frame, _ in walk_stack(None)]
    names = [f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}:{at}" for code, at in calls]
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:16]
