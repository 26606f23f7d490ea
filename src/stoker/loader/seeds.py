"""The seed of a loader that was given none, and a warning where that repeats an epoch."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Any

from stoker.forks import PerProcess

if TYPE_CHECKING:
    from stoker.loader.position import RunIdentity

_first_epochs: PerProcess[set[tuple[RunIdentity, int]]] = PerProcess(set)
"""Runs and ranks of which a loader that was given no seed has read the first epoch, and no other."""


def default_seed(world_size: int) -> int:
    """Return the seed of a loader that was given none, below 2**63.

    On several ranks it is 0, because they must agree. On one it is a new one for each loader: from PyTorch's generator
    if the program has imported PyTorch, as its own loader does, so that ``torch.manual_seed`` repeats a program;
    otherwise from the system.
    """
    torch: Any = sys.modules.get("torch")
    if world_size > 1:
        return 0
    if torch is None:
        return int.from_bytes(os.urandom(8), "little") >> 1
    return int(torch.empty((), dtype=torch.int64, device="cpu").random_())


def warn_of_repeated_epoch(run: RunIdentity, rank: int, epoch: int) -> None:
    """Warn if a loader begins with the first epoch, where another one has ended with it."""
    if epoch > 0:
        _first_epochs.get().discard((run, rank))  # one loader serves all epochs, as it should
    elif (run, rank) in _first_epochs.get():
        message = "this loader repeats epoch 0 of another one: on several ranks the default seed is 0"
        advice = "make one loader for all epochs, or give the loader of each epoch its own seed="
        warnings.warn(f"{message}; {advice}", stacklevel=3)


def remember_epoch(run: RunIdentity, rank: int, epoch: int) -> None:
    """Remember that an epoch was read to its end."""
    if epoch == 0:
        _first_epochs.get().add((run, rank))
