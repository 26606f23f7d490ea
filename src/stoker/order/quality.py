"""How good a shuffle is, and what it costs a reader: measured on the sequence itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from stoker.config import check_range
from stoker.order.block_shuffle import BlockShuffle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker.order.sequence import EpochOrder

MAX_POSITIONS = 1 << 18
"""The most positions of an epoch that are looked at; a longer epoch is sampled."""

_REGIONS = 251  # at most; a prime: batches that are spread evenly do not all begin at the border of a region
_BATCHES_OF_A_REGION = 4  # at least; a batch in order would else lie in several regions
_BATCHES = 1024


@dataclass(frozen=True, slots=True)
class ShuffleQuality:
    """What was measured of one order.

    Attributes:
        quality: Mean entropy of a batch over that of a full shuffle of as many samples: 1.0 is as good as a full
            shuffle, 0 is every batch from one place.
        entropy: In bits, mean over the batches: the entropy of the regions that the samples of a batch come from. The
            dataset is cut into regions of equal size, each of at least four batches: 251 of them, or fewer, but at
            least two.
        block: Samples of the blocks that are counted.
        blocks_read: The most blocks that are begun and not finished at one time. Of an epoch longer than
            `MAX_POSITIONS`, in its first part of that length, so of a full shuffle at least that many.
        batches: How many batches the entropy is the mean of.
    """

    quality: float
    entropy: float
    block: int
    blocks_read: int
    batches: int


def shuffle_quality(order: EpochOrder, batch_size: int, *, block: int | None = None) -> ShuffleQuality:
    """Measure how well an order mixes a dataset, and how many places of it are read at a time.

    Takes a fraction of a second, however long the epoch is: at most `MAX_POSITIONS` positions are looked at, in at
    most 1024 whole batches spread evenly over the epoch.

    Args:
        order: The order of one epoch.
        batch_size: Samples of a batch, of all ranks together.
        block: Samples of the blocks to count; of the order's own blocks, or of the default ones, when left out.

    Raises:
        ConfigError: ``batch_size`` or ``block`` is out of range.
    """
    check_range("batch_size", batch_size, 1, 2**30)
    own = order.shuffle if isinstance(order.shuffle, BlockShuffle) else BlockShuffle()
    counted = (own if block is None else BlockShuffle(block)).block
    full = _entropies(replace(order, shuffle=True), batch_size)
    mine = _entropies(order, batch_size)
    best = float(full.mean())
    return ShuffleQuality(
        quality=float(mine.mean()) / best if best > 0 else 1.0,  # of batches of one sample all are equally good
        entropy=float(mine.mean()),
        block=counted,
        blocks_read=_blocks_read(order, counted),
        batches=len(mine),
    )


def _sampled_batches(order: EpochOrder, batch_size: int, positions: int) -> Iterator[NDArray[np.uint64]]:
    """Yield batches of an epoch that are spread evenly over it, uint64 (B,) each; at most 1024.

    Args:
        order: The epoch's order.
        batch_size: Samples of a batch; less where the epoch, or ``positions``, is smaller.
        positions: The most samples of all batches together.
    """
    size = min(batch_size, order.n, positions)
    batches = order.n // size
    count = min(batches, positions // size, _BATCHES)
    for number in range(count):
        yield order.take(batches * number // count * size, size)


def _entropies(order: EpochOrder, batch_size: int) -> NDArray[np.float64]:
    """Entropy of each batch that is looked at, in bits."""
    regions = min(_REGIONS, max(2, order.n // (_BATCHES_OF_A_REGION * batch_size)))
    # Not key * regions // n: that overflows for the largest n.
    starts = np.array([order.n * region // regions for region in range(1, regions)], np.uint64)
    return np.array([_entropy(keys, starts) for keys in _sampled_batches(order, batch_size, MAX_POSITIONS)])


def _entropy(keys: NDArray[np.uint64], starts: NDArray[np.uint64]) -> float:
    """Entropy in bits of the regions that some samples come from, given where all but the first begin."""
    shares = np.bincount(np.searchsorted(starts, keys, side="right")) / len(keys)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0  # no -0.0


def _blocks_read(order: EpochOrder, block: int) -> int:
    """The most blocks that are begun and not finished, counting from the start of the epoch."""
    looked_at = min(order.n, MAX_POSITIONS)
    blocks = order.take(0, looked_at) // np.uint64(block)
    numbers, first, counts = np.unique(blocks, return_index=True, return_counts=True)
    last_block = (order.n - 1) // block
    whole = np.where(numbers == last_block, order.n - last_block * block, block)
    ends = looked_at - 1 - np.unique(blocks[::-1], return_index=True)[1]
    change = np.bincount(first, minlength=looked_at + 1)
    change -= np.bincount(ends[counts == whole] + 1, minlength=looked_at + 1)
    return int(np.cumsum(change).max())
