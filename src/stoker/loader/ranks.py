"""Which of how many ranks this process is, as the framework or the launcher says.

Nothing is imported for that: only modules that the program has imported, and the environment, are looked at. The first
source of this list that says something counts:

====  ==================  ===========================================================================================
 no.  source              says something when
====  ==================  ===========================================================================================
1     torch.distributed   a process group is initialised
2     Horovod             ``horovod.torch``, ``.tensorflow``, ``.tensorflow.keras`` or ``.keras`` is initialised
3     JAX                 ``jax.distributed`` is initialised
4     torchrun            ``RANK`` or ``WORLD_SIZE`` is set
5     Open MPI            ``OMPI_COMM_WORLD_RANK`` or ``OMPI_COMM_WORLD_SIZE`` is set
6     PMI                 ``PMI_RANK`` or ``PMI_SIZE`` is set (MPICH, Intel MPI)
7     Slurm               ``SLURM_STEP_NUM_TASKS`` is set: in what ``srun`` starts
====  ==================  ===========================================================================================

``SLURM_NTASKS`` is not looked at: in a batch script outside ``srun`` it counts processes that do not exist, and
``SLURM_PROCID`` is set there too. A later source that disagrees is warned of, unless it is damaged, or the launcher of
the launcher: one ``torchrun`` a node under ``srun`` is not a contradiction, and ``LOCAL_WORLD_SIZE`` shows it.
"""

from __future__ import annotations

import os
import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError, RankWarning

if TYPE_CHECKING:
    from collections.abc import Callable


_REMEDY = "or give rank= and world_size="
_HOROVOD = ("horovod.torch", "horovod.tensorflow", "horovod.tensorflow.keras", "horovod.keras")


@dataclass(frozen=True, slots=True)
class Ranks:
    """A process among those that consume an epoch together.

    Attributes:
        rank: Its number, from 0.
        world_size: How many they are.
        source: Who says so.
    """

    rank: int
    world_size: int
    source: str

    def __str__(self) -> str:
        return f"{self.source}: rank {self.rank} of {self.world_size}"


@dataclass(frozen=True, slots=True)
class _Variables:
    """Environment variables of a launcher.

    Attributes:
        source: Its name.
        rank: Holds the rank.
        world_size: Holds the number of ranks.
        marks: Which of them show that it launched this process.
    """

    source: str
    rank: str
    world_size: str
    marks: tuple[str, ...]

    def read(self) -> Ranks | None:
        if not any(name in os.environ for name in self.marks):
            return None
        rank, world_size = self._number(self.rank, self.world_size), self._number(self.world_size, self.rank)
        if not 0 <= rank < world_size:
            message = f"{self.rank} is {rank} and {self.world_size} is {world_size}: ranks count from 0 to one less"
            raise ConfigError(f"{message}; correct them, {_REMEDY}")
        return Ranks(rank, world_size, f"{self.source} ({self.rank}, {self.world_size})")

    def _number(self, name: str, other: str) -> int:
        text = os.environ.get(name)
        if text is None:
            raise ConfigError(f"{other} is {os.environ[other]!r}, but {name} is not set; set both or none, {_REMEDY}")
        if not (text.isascii() and text.isdigit()):
            raise ConfigError(f"{name} is {text!r}, which is not a number of ranks; correct it, {_REMEDY}")
        return int(text)


def _torch() -> Ranks | None:
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return Ranks(distributed.get_rank(), distributed.get_world_size(), "torch.distributed")


def _horovod() -> Ranks | None:
    for name in _HOROVOD:
        module: Any = sys.modules.get(name)
        if module is not None and module.is_initialized():
            return Ranks(module.rank(), module.size(), f"Horovod ({name})")
    return None


def _jax() -> Ranks | None:
    jax: Any = sys.modules.get("jax")
    distributed: Any = getattr(jax, "distributed", None)
    # Old versions cannot be asked, and asking for the index alone would start a backend.
    if not hasattr(distributed, "is_initialized") or not distributed.is_initialized():
        return None
    return Ranks(jax.process_index(), jax.process_count(), "JAX")


_TORCHRUN = _Variables("torchrun", "RANK", "WORLD_SIZE", ("RANK", "WORLD_SIZE"))
_OMPI = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")
_OUTER: tuple[Callable[[], Ranks | None], ...] = (  # these may start a torchrun on every node
    _Variables("Open MPI", *_OMPI, marks=_OMPI).read,
    _Variables("PMI", "PMI_RANK", "PMI_SIZE", ("PMI_RANK", "PMI_SIZE")).read,
    _Variables("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ("SLURM_STEP_NUM_TASKS",)).read,
)
_SOURCES: tuple[Callable[[], Ranks | None], ...] = (_torch, _horovod, _jax, _TORCHRUN.read, *_OUTER)


def discover() -> Ranks:
    """Return which rank this process is: the first source of this module's list counts; without any, 0 of 1.

    Raises:
        ConfigError: The variables of the source that would count are half given, no numbers, or out of range.

    Warns:
        RankWarning: A later source says something else.
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
    return chosen or Ranks(0, 1, "default")


def resolve(rank: int | None, world_size: int | None) -> Ranks:
    """Return the ranks that were given, or else those that `discover` finds.

    Raises:
        ConfigError: Only one of the two was given; or as `discover`.
    """
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
    """Whether the processes that a launcher has started are launchers themselves, of equally many each."""
    local = os.environ.get("LOCAL_WORLD_SIZE", "")
    return local.isascii() and local.isdigit() and outer.world_size * int(local) == inner.world_size
