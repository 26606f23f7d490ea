"""What is in the cache of a node, told by the orders of the epochs before: nothing is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker.order import EpochOrder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.simulation.model import Data, Ranks, Stretch

_BLOCK = 4096  # a cache counts blocks of the file system, so a record takes its bytes and half a block


class NodeCacheModel:
    """The cache of one node under its policy: the first to come stays.

    A node keeps a sample if one of its ranks takes it while there is room. Every order has an inverse, so whether that
    was so can be computed for any sample in any earlier epoch.

    Args:
        data: The records.
        ranks: Who reads.
        stretch: The orders.
    """

    def __init__(self, data: Data, ranks: Ranks, stretch: Stretch) -> None:
        self._data = data
        self._ranks = ranks
        self._stretch = stretch
        self._ends = self._find_ends()

    def _find_ends(self) -> list[float]:
        """Return for each earlier epoch the share of it after which the cache takes nothing more."""
        room = self._ranks.cache_bytes / (self._data.record_bytes + _BLOCK / 2)
        held, share = 0.0, self._data.records / self._ranks.nodes
        ends = []
        for _ in range(self._stretch.epoch):
            new = share * (1 - held / self._data.records)
            ends.append(min(1.0, (room - held) / new) if new >= 1 else 0.0)
            held += new * ends[-1]
        return ends

    def holds(self, node: int, samples: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which samples are there when the epoch begins, bool like ``samples``."""
        data, ranks, stretch = self._data, self._ranks, self._stretch
        held = np.zeros(len(samples), np.bool_)
        if not ranks.cache_bytes:
            return held
        batch = np.uint64(ranks.batch_size)
        for epoch, end in enumerate(self._ends):
            order = EpochOrder(data.records, stretch.shuffle, stretch.seed, epoch)
            positions = order.positions(samples)
            rank = positions % (batch * np.uint64(ranks.world_size)) // batch
            held |= (rank // np.uint64(ranks.per_node) == node) & (positions < data.records * end)
        return held
