"""The canonical sequence of an epoch, and the share of it that one rank takes in one step.

Every epoch has one global sequence ``G``, whatever the number of ranks. From position ``p`` on, a step of ``W`` ranks
with batches of ``B`` consumes ``G[p : p + W * B]``; rank ``r`` takes the ``r``-th run of ``B`` samples of that. So a
position alone says what is done and what is left, and a run can go on with another ``W`` and ``B``::

    G      0 1 2 3 4 5 6 7 8 9 ...      W = 2, B = 3
    rank 0 ─────       ─────
    rank 1       ─────       ────
           step 0      step 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from stoker import _native
from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.order.block_shuffle import BlockShuffle

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tail = Literal["short", "drop", "pad", "wrap"]
"""What happens to the samples that do not fill a last global batch.

``short``: the last batch is smaller (with several ranks the rest is divided evenly; a rank's share may be empty).
``drop``: they are left out of this epoch. ``pad``: the batch is filled with samples from the start of the sequence,
which ``valid`` marks false. ``wrap``: the same, marked as valid.
"""


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """The order of one epoch: a bijection on ``0 .. n-1`` in constant memory.

    Attributes:
        n: Samples there are, at least 1.
        shuffle: True: any sample may come anywhere. `BlockShuffle`: blocks of samples stay near each other. False:
            position ``i`` holds sample ``i``.
        seed: 0 to 2**64 - 1.
        epoch: 0 to 2**64 - 1; each has its own order.

    Raises:
        ConfigError: ``shuffle`` is none of these.
    """

    n: int
    shuffle: bool | BlockShuffle
    seed: int
    epoch: int

    def __post_init__(self) -> None:
        if not isinstance(self.shuffle, bool | BlockShuffle):
            message = f"shuffle is {self.shuffle!r}; it must be False, True or a BlockShuffle"
            raise ConfigError(f"{message}, such as BlockShuffle(block=256, window=16)")

    @property
    def name(self) -> bool | str:
        """What a saved state calls the kind of order: False, True, or for example ``"block:256:16"``."""
        return self.shuffle if isinstance(self.shuffle, bool) else self.shuffle.name

    def take(self, start: int, count: int) -> NDArray[np.uint64]:
        """Return the samples at positions ``start .. start + count - 1``, uint64 (count,)."""
        if isinstance(self.shuffle, BlockShuffle):
            block, window = self.shuffle.block, self.shuffle.window
            return _native.permute_blocks(start, count, self.n, block, window, self.seed, self.epoch)
        if self.shuffle:
            return _native.permute(start, count, self.n, self.seed, self.epoch)
        return np.arange(start, start + count, dtype=np.uint64)

    def positions(self, samples: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return where samples come in the epoch, uint64 like ``samples``: the inverse of `take`."""
        if isinstance(self.shuffle, BlockShuffle):
            block, window = self.shuffle.block, self.shuffle.window
            return _native.positions_in_blocks(samples, self.n, block, window, self.seed, self.epoch)
        return _native.positions(samples, self.n, self.seed, self.epoch) if self.shuffle else samples.copy()


@dataclass(frozen=True, slots=True)
class Topology:
    """Who consumes an epoch together.

    Attributes:
        batch_size: Samples of a full batch on each rank.
        rank: This consumer's number, from 0.
        world_size: Number of ranks.
        tail: What happens to the rest.

    Raises:
        ConfigError: A number is out of range, or the tail is unknown.
    """

    batch_size: int
    rank: int = 0
    world_size: int = 1
    tail: Tail = "short"

    def __post_init__(self) -> None:
        world_size = check_range("world_size", self.world_size, 1, 2**24)
        # Positions are sums of these, and a state must fit into JSON, which integers of NumPy do not.
        object.__setattr__(self, "batch_size", check_range("batch_size", self.batch_size, 1, 2**20))
        object.__setattr__(self, "world_size", world_size)
        object.__setattr__(self, "rank", check_range("rank", self.rank, 0, world_size - 1))
        if self.tail not in get_args(Tail):
            raise ConfigError(f"tail is {self.tail!r}; it must be one of {', '.join(get_args(Tail))}")

    @property
    def global_batch(self) -> int:
        """Samples that all ranks consume in one full step."""
        return self.batch_size * self.world_size


@dataclass(frozen=True, slots=True)
class Step:
    """One rank's share of one step.

    Attributes:
        keys: uint64 (count,), the samples.
        valid: bool (count,), false where ``tail="pad"`` filled up.
        consumed: Position in the epoch after this step, the same on every rank.
    """

    keys: NDArray[np.uint64]
    valid: NDArray[np.bool_]
    consumed: int


def steps_left(n: int, consumed: int, topology: Topology) -> int:
    """Return the number of steps from a position to the end of the epoch, the same for every rank."""
    left = max(0, n - consumed)
    if topology.tail == "drop":
        return left // topology.global_batch
    return -(-left // topology.global_batch)


def take_step(order: EpochOrder, consumed: int, topology: Topology) -> Step:
    """Return this rank's share of the step that starts at a position.

    Args:
        order: The epoch's order.
        consumed: Position, as left by the step before; there must be a step left.
        topology: Who takes part.
    """
    left = order.n - consumed
    if left >= topology.global_batch:
        keys = order.take(consumed + topology.rank * topology.batch_size, topology.batch_size)
        return Step(keys, np.ones(len(keys), np.bool_), consumed + topology.global_batch)
    if topology.tail == "short":
        first, last = (left * rank // topology.world_size for rank in (topology.rank, topology.rank + 1))
        keys = order.take(consumed + first, last - first)
        return Step(keys, np.ones(len(keys), np.bool_), order.n)
    return _filled_step(order, consumed, topology)


def _filled_step(order: EpochOrder, consumed: int, topology: Topology) -> Step:
    """A last step whose missing samples are taken from the start of the sequence, as often round as needed."""
    start, count = consumed + topology.rank * topology.batch_size, topology.batch_size
    positions = np.arange(start, start + count)
    if count < order.n:
        first = start % order.n
        run = order.take(first, min(count, order.n - first))
        keys = np.concatenate([run, order.take(0, count - len(run))])
    else:
        keys = order.take(0, order.n)[positions % order.n]
    valid = positions < order.n if topology.tail == "pad" else np.ones(count, np.bool_)
    return Step(keys, valid, order.n)
