"""Where a loader is in its epochs, and the state that says so in a checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.config import check_range
from stoker.errors import ConfigError

_VERSION = 1
_MAX_IDENTITY = 40


@dataclass(frozen=True, slots=True)
class Position:
    """How far an epoch is, whatever the number of ranks.

    After the last batch of epoch ``E`` it is ``Position(E + 1, 0)``, whatever the tail has left out of ``E``.

    Attributes:
        epoch: Which epoch, from 0.
        consumed: Samples of it that all ranks together have consumed.
    """

    epoch: int
    consumed: int


def _short(identity: str) -> str:
    """A long identity as a hash, so that a state stays short whatever the names of splits are."""
    return (
        identity
        if len(identity) <= _MAX_IDENTITY
        else hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    )


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What a position belongs to: loaders with the same identity give the same samples at the same position."""

    dataset: str  # stands for the data and what a sample of them is
    seed: int  # of the order
    shuffle: bool | str  # how the order is shuffled
    size: int  # samples of an epoch

    def with_seed_of(self, state: Mapping[str, Any]) -> RunIdentity:
        """Return the same with the seed that a state has; if it is not a state, as it is."""
        if not isinstance(state, Mapping) or "seed" not in state:
            return self
        return replace(self, seed=check_range("seed of the state", state["seed"], 0, 2**64 - 1))

    def state_at(self, position: Position) -> dict[str, Any]:
        """Return the state of a loader at a position: less than 200 bytes of JSON."""
        return {
            "version": _VERSION,
            "dataset": _short(self.dataset),
            "seed": self.seed,
            "shuffle": self.shuffle,
            "epoch": position.epoch,
            "consumed": position.consumed,
        }

    def position_in(self, state: Mapping[str, Any]) -> Position:
        """Return the position that a state says."""
        mine = self.state_at(Position(0, 0))
        if not isinstance(state, Mapping):
            raise ConfigError(f"this is not a state of a loader: {state!r}; give what state_dict() returned")
        if set(state) != set(mine):
            message = f"this is not a state of a loader: it has the keys {sorted(map(str, state))}, not {sorted(mine)}"
            raise ConfigError(f"{message}; give what state_dict() returned")
        for key in ("version", "dataset", "seed", "shuffle"):
            if type(state[key]) is not type(mine[key]) or state[key] != mine[key]:
                message = f"the state is for {key} {state[key]!r}, but this loader has {mine[key]!r}"
                why = ": other samples, or the same in another order" if key == "dataset" else ""
                raise ConfigError(message + why)
        epoch, consumed = state["epoch"], state["consumed"]
        if isinstance(epoch, bool) or isinstance(consumed, bool):  # True is an int in Python, and no count
            raise ConfigError(f"the state is damaged: epoch {epoch!r} and consumed {consumed!r} must be whole numbers")
        epoch = check_range("epoch of the state", epoch, 0, 2**63 - 1)
        return Position(epoch, check_range("consumed of the state", consumed, 0, self.size))
