"""What ranks tell each other about their loaders, so that a disagreement raises instead of training on the wrong data.

Each rank writes what its loaders do into the store of ``torch.distributed`` or ``jax.distributed``, and reads what the
ranks beside its own have written so far. Nobody waits: of two that disagree the later one raises. A loader is compared
with the one that another rank has made at the same call site, that is by the same calls of the same functions. Those of
one call site are counted as they are first used. As long as another one of them agrees, the count may have shifted, and
nothing is said.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from contextlib import suppress
from traceback import walk_stack
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError
from stoker.loader.ranks import torch_store

if TYPE_CHECKING:
    from stoker.order import Topology

_ANSWER_SECONDS = 1.0
_MOST_LOADERS = 100  # of one call site, so that what is written stays short
_too_slow = threading.Event()
_loaders: dict[str, list[Agreement]] = {}  # by call site
_inherited: list[Any] = []  # groups of the process that this one was forked from: a connection serves one process


class Agreement:
    """What one loader tells the other ranks; ``call_site`` stands for where in the program it was made."""

    def __init__(self, topology: Topology, *, check_ranks: bool) -> None:
        self.call_site = find_call_site()
        self._topology = topology
        self._talks = check_ranks and topology.world_size > 1
        self._facts: dict[str, Any] = {}

    def compare(self, **facts: Any) -> None:
        """Tell the other ranks facts about this loader, and compare theirs; only the first time that they are given."""
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
            neighbours = {(rank - 1) % size, (rank + 1) % size}  # all agree if each pair of them does
            for other, theirs in _exchanged(group[0], f"{key}/{{}}", rank, ours, neighbours).items():
                if number < len(theirs):
                    _refuse_differing(f"rank {rank} and rank {other}", ours, theirs, number)


def _refuse_differing(ranks: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any]], number: int) -> None:
    mine, its = ours[number], theirs[number]
    if all(_differing(mine, each) for each in theirs) and all(_differing(each, its) for each in ours):
        values = ", ".join(f"{name} is {mine[name]!r} and {its[name]!r}" for name in _differing(mine, its))
        message = f"this loader differs between {ranks}: {values}; samples would be missing or repeated"
        advice = "Give all ranks the same settings and the same state, or check_ranks=False if each has data of its own"
        raise ConfigError(f"{message}. {advice}")


def _differing(mine: dict[str, Any], theirs: dict[str, Any]) -> list[str]:
    return [name for name in mine if name in theirs and mine[name] != theirs[name]]


def _exchanged(store: Any, key: str, rank: int, ours: list[Any], others: set[int]) -> dict[int, list[dict[str, Any]]]:
    """Write the facts of this rank, and return those of others, if that takes no more than a second."""
    answers: dict[int, list[dict[str, Any]]] = {}
    is_jax = hasattr(store, "key_value_try_get")

    def talk() -> None:
        with suppress(Exception):  # of a store that is gone
            more = {"allow_overwrite": True} if is_jax else {}
            (store.key_value_set if is_jax else store.set)(key.format(rank), json.dumps(ours), **more)
        for other in others:
            with suppress(Exception):  # JAX raises where nothing was written; PyTorch would wait
                if is_jax or store.check([key.format(other)]):
                    answers[other] = json.loads((store.key_value_try_get if is_jax else store.get)(key.format(other)))

    thread = threading.Thread(target=talk, name="stoker-agreement", daemon=True)  # calls take no limit of time
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
    """Return a hash of the calls that lead here, of which there may be several in a line; folders do not count."""
    calls = [(frame.f_code, frame.f_lasti) for frame, _ in walk_stack(None)]
    names = [f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}:{at}" for code, at in calls]
    return hashlib.sha256("\n".join(names).encode("utf-8", "surrogateescape")).hexdigest()[:16]
