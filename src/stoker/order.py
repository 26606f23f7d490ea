"""Which sample comes when: integer functions of (records, seed, epoch, topology), without state and without I/O.

Every epoch has one global sequence ``G``, whatever the number of ranks. From position ``p`` on, a step of ``W`` ranks
with batches of ``B`` consumes ``G[p : p + W * B]``; rank ``r`` takes the ``r``-th run of ``B`` samples of that. A
position alone says what is done and what is left, so a run can continue with another ``W`` and ``B``::

    G      0 1 2 3 4 5 6 7 8 9 ...      W = 2, B = 3
    rank 0 ─────       ─────
    rank 1       ─────       ────
           step 0      step 1
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from stoker import _native
from stoker.config import check_choice, check_range, refuse_contradicting
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MAX_POSITIONS = 1 << 18
"""The most positions of an epoch that `shuffle_quality` looks at; a longer epoch is sampled."""

_TOGETHER = 8
"""Steps that are planned one right after the other, see `steps_from`."""

_REGIONS = 251  # at most; a prime: batches that are spread evenly do not all begin at the border of a region
_BATCHES_OF_A_REGION = 4  # at least; a batch in order would else lie in several regions
_BATCHES = 1024


@dataclass(frozen=True, slots=True)
class BlockShuffle:
    """A shuffle for storage that needs long reads: random blocks, and samples shuffled among a few of them.

    Contiguous blocks of samples are visited in a random order of the epoch, and the samples of ``window`` consecutive
    blocks are shuffled together. A reader needs at most ``window`` blocks at a time, or twice as many while it makes
    batches of two windows at once. Like the full shuffle, it is a pure function in constant memory.
    `docs/explanation/determinism.md` defines it and shows how good it is.

    Attributes:
        block: Number of samples of a block; the last block of a dataset may be shorter.
        window: Number of blocks whose samples are mixed.

    Raises:
        ConfigError: A number is below 1, or above 2**32.
    """

    block: int = 256
    window: int = 16

    def __post_init__(self) -> None:
        check_range("block", self.block, 1, 2**32)
        check_range("window", self.window, 1, 2**32)

    @property
    def name(self) -> str:
        """Its name in saved states: ``block:256:16``."""
        return f"block:{self.block}:{self.window}"


Tail = Literal["short", "drop", "pad", "wrap"]
"""What happens to the samples that do not fill a last global batch.

``short``: the last batch is smaller (with several ranks the rest is divided evenly; a rank's share may be empty).
``drop``: they are left out of this epoch. ``pad``: the batch is filled with samples from the start of the sequence,
which ``valid`` marks false. ``wrap``: the same, marked as valid.
"""


def random_numbers(seed: int, *counter: int) -> tuple[int, int]:
    """Return two random numbers of 64 bits that depend only on a seed and on a counter of four words."""
    words = _native.philox(counter, (seed % 2**32, seed >> 32))
    return words[0] << 32 | words[1], words[2] << 32 | words[3]


def chosen_tail(tail: Tail | None, *, drop_last: bool, world_size: int) -> Tail:
    """Return what happens to the rest of an epoch; ``drop_last`` is another word for ``"drop"``.

    By default, a single rank gets a smaller last batch. Several ranks repeat samples, marked as not valid: each rank
    then makes as many steps as the others, all with full batches, and no loss is averaged over an empty batch.
    """
    refuse_contradicting({"drop_last=True": drop_last, f"tail={tail!r}": tail not in (None, "drop")})
    if drop_last:
        return "drop"
    if tail is None:
        return "short" if world_size == 1 else "pad"
    return tail


@dataclass(frozen=True, slots=True)
class EpochOrder:
    """The order of one epoch: a bijection on ``0 .. n-1`` in constant memory.

    Attributes:
        n: Number of samples, at least 1.
        shuffle: True: any sample may come anywhere. `BlockShuffle`: blocks of samples stay near each other. False:
            position ``i`` holds sample ``i``.
        seed: 0 to 2**64 - 1.
        epoch: 0 to 2**64 - 1; each has its own order.
        count: Number of positions, from 0 on, that the epoch has. Default: all ``n``.

    Raises:
        ConfigError: ``shuffle`` is none of these.
    """

    n: int
    shuffle: bool | BlockShuffle
    seed: int
    epoch: int
    count: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.shuffle, bool | BlockShuffle):
            message = f"shuffle is {self.shuffle!r}; it must be False, True or a BlockShuffle"
            raise ConfigError(f"{message}, such as BlockShuffle(block=256, window=16)")

    @property
    def name(self) -> bool | str:
        """Its name in saved states: False, True, or for example ``"block:256:16"``."""
        return self.shuffle if isinstance(self.shuffle, bool) else self.shuffle.name

    @property
    def length(self) -> int:
        """Number of positions of the epoch."""
        return self.n if self.count is None else min(self.count, self.n)

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
class Position:
    """Progress within an epoch, the same for any number of ranks.

    After the last batch of epoch ``E`` it is ``Position(E + 1, 0)``, whatever the tail has left out of ``E``.

    Attributes:
        epoch: Number of the epoch, from 0.
        consumed: Number of its samples that all ranks together have consumed.
    """

    epoch: int
    consumed: int


@dataclass(frozen=True, slots=True)
class Topology:
    """The ranks that consume an epoch together."""

    batch_size: int  # samples of a full batch on each rank
    rank: int = 0  # rank of this consumer, from 0
    world_size: int = 1  # number of ranks
    tail: Tail = "short"  # what happens to the rest

    def __post_init__(self) -> None:
        world_size = check_range("world_size", self.world_size, 1, 2**24)
        # Positions are sums of these, and a state must fit into JSON, which integers of NumPy do not.
        object.__setattr__(self, "batch_size", check_range("batch_size", self.batch_size, 1, 2**20))
        object.__setattr__(self, "world_size", world_size)
        object.__setattr__(self, "rank", check_range("rank", self.rank, 0, world_size - 1))
        check_choice("tail", self.tail, get_args(Tail))

    @property
    def global_batch(self) -> int:
        """Samples that all ranks consume in one full step."""
        return self.batch_size * self.world_size


class Step(NamedTuple):
    """One rank's share of one step."""

    indices: NDArray[np.uint64]  # uint64 (count,), the samples
    valid: NDArray[np.bool_]  # bool (count,), false for samples that ``tail="pad"`` repeats
    consumed: int  # position in the epoch after this step, the same on every rank
    last: bool = False  # whether this is the last step of the epoch, the same on every rank


def steps_left(n: int, consumed: int, topology: Topology) -> int:
    """Return the number of steps from a position to the end of the epoch, the same for every rank."""
    left = max(0, n - consumed)
    if topology.tail == "drop":
        return left // topology.global_batch
    return -(-left // topology.global_batch)


def unrepeated(n: int, consumed: int, topology: Topology) -> int:
    """Return how many samples of the last step, over all ranks, come before repeats; 0 if it repeats none."""
    return max(0, n - consumed) % topology.global_batch if topology.tail in ("pad", "wrap") else 0


def take_step(order: EpochOrder, consumed: int, topology: Topology) -> Step:
    """Return this rank's share of the step that starts at a position; there must be a step left."""
    left = order.length - consumed
    if left >= topology.global_batch:
        indices = order.take(consumed + topology.rank * topology.batch_size, topology.batch_size)
        consumed += topology.global_batch
        return Step(
            indices, np.ones(len(indices), np.bool_), consumed, steps_left(order.length, consumed, topology) == 0
        )
    if topology.tail == "short":
        first, last = (left * rank // topology.world_size for rank in (topology.rank, topology.rank + 1))
        indices = order.take(consumed + first, last - first)
        return Step(indices, np.ones(len(indices), np.bool_), order.length, last=True)
    return _filled_step(order, consumed, topology)


def steps_from(order: EpochOrder, consumed: int, topology: Topology) -> Iterator[Step]:
    """Yield this rank's share of every step from a position to the end of the epoch.

    Several steps are made at a time: decoding a batch evicts the code of a step from the processor's caches, and
    loading that code again is most of the cost of a step.
    """
    left = steps_left(order.length, consumed, topology)
    while left > 0:
        steps = []
        for _ in range(min(left, _TOGETHER)):
            step = take_step(order, consumed, topology)
            steps.append(step)
            consumed = step.consumed
        left -= len(steps)
        yield from steps


def _filled_step(order: EpochOrder, consumed: int, topology: Topology) -> Step:
    """Return a last step whose missing samples come from the start of the sequence, repeated as often as needed."""
    start, count = consumed + topology.rank * topology.batch_size, topology.batch_size
    positions = np.arange(start, start + count)
    if count < order.length:
        first = start % order.length
        run = order.take(first, min(count, order.length - first))
        indices = np.concatenate([run, order.take(0, count - len(run))])
    else:
        indices = order.take(0, order.length)[positions % order.length]
    valid = positions < order.length if topology.tail == "pad" else np.ones(count, np.bool_)
    return Step(indices, valid, order.length, last=True)


def random_sample(most: int, total: int, seed: int = 0) -> NDArray[np.int64]:
    """Return up to ``most`` of the numbers below ``total`` in a random order, the same each time: int64 (N,)."""
    count = min(most, total)
    return _native.permute(0, count, total, seed, 0).astype(np.int64) if count else np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class ShuffleQuality:
    """How well one order mixes a dataset.

    Attributes:
        quality: Mean entropy of a batch over that of a full shuffle of as many samples: 1.0 is as good as a full
            shuffle, 0 is every batch from one region.
        entropy: Entropy of the regions that the samples of a batch come from, in bits, mean over the batches. The
            dataset is cut into regions of equal size, each of at least four batches: 251 regions, or fewer, but at
            least two.
        block: Number of samples of the blocks that are counted.
        blocks_read: The most blocks that are begun and not finished at one time. In an epoch longer than
            `MAX_POSITIONS`, only its first part of that length is counted, so a full shuffle reads at least that many.
        batches: Number of batches that were measured.
    """

    quality: float
    entropy: float
    block: int
    blocks_read: int
    batches: int


def shuffle_quality(order: EpochOrder, batch_size: int, *, block: int | None = None) -> ShuffleQuality:
    """Measure how well an order mixes a dataset, and how many blocks of it are read at a time.

    Takes a fraction of a second, however long the epoch is: at most `MAX_POSITIONS` positions are measured, in at most
    1024 whole batches spread evenly over the epoch.

    Args:
        order: The order of one epoch.
        batch_size: Samples of a batch, of all ranks together.
        block: Number of samples of the blocks to count. Default: as in the order, or else in `BlockShuffle()`.

    Raises:
        ConfigError: ``batch_size`` or ``block`` is out of range.
    """
    check_range("batch_size", batch_size, 1, 2**30)
    own_blocks = order.shuffle if isinstance(order.shuffle, BlockShuffle) else BlockShuffle()
    counted = (own_blocks if block is None else BlockShuffle(block)).block
    full = _entropies(replace(order, shuffle=True), batch_size)
    entropies = _entropies(order, batch_size)
    best = float(full.mean())
    return ShuffleQuality(
        quality=float(entropies.mean()) / best if best > 0 else 1.0,  # with batches of one sample, all orders are equal
        entropy=float(entropies.mean()),
        block=counted,
        blocks_read=_blocks_read(order, counted),
        batches=len(entropies),
    )


def _sampled_batches(order: EpochOrder, batch_size: int) -> Iterator[NDArray[np.uint64]]:
    """Yield up to 1024 batches that are spread evenly over an epoch, uint64 (B,), of up to `MAX_POSITIONS` in all."""
    size = min(batch_size, order.n, MAX_POSITIONS)
    batches = order.n // size
    count = min(batches, MAX_POSITIONS // size, _BATCHES)
    for number in range(count):
        yield order.take(batches * number // count * size, size)


def _entropies(order: EpochOrder, batch_size: int) -> NDArray[np.float64]:
    """Return the entropy of each measured batch, in bits: of the regions that its samples come from."""
    regions = min(_REGIONS, max(2, order.n // (_BATCHES_OF_A_REGION * batch_size)))
    # Where all but the first begin. Not index * regions // n: that overflows for the largest n.
    starts = np.array([order.n * region // regions for region in range(1, regions)], np.uint64)
    entropies = []
    for indices in _sampled_batches(order, batch_size):
        shares = np.bincount(np.searchsorted(starts, indices, side="right")) / len(indices)
        shares = shares[shares > 0]
        entropies.append(-(shares * np.log2(shares)).sum() + 0.0)  # no -0.0
    return np.array(entropies)


def _blocks_read(order: EpochOrder, block: int) -> int:
    looked_at = min(order.n, MAX_POSITIONS)
    blocks = order.take(0, looked_at) // np.uint64(block)
    numbers, first, counts = np.unique(blocks, return_index=True, return_counts=True)
    last_block = (order.n - 1) // block
    whole = np.where(numbers == last_block, order.n - last_block * block, block)
    ends = looked_at - 1 - np.unique(blocks[::-1], return_index=True)[1]
    change = np.bincount(first, minlength=looked_at + 1)
    change -= np.bincount(ends[counts == whole] + 1, minlength=looked_at + 1)
    return int(np.cumsum(change).max())
