"""Which samples come next on this rank: the future that is read ahead."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stoker.order import BlockShuffle, steps_left, take_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker.loader.position import Position
    from stoker.loader.samples import Request
    from stoker.order import EpochOrder, Topology


_ALL_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class Upcoming:
    """Samples that come one after the other.

    Attributes:
        numbers: uint64 (B,), images of the source.
        objects: int32 (B,), which object of each; None: all whole.
        group: int64 (B,), which window of blocks each is in; see `stoker.loader.remote.ranges.cut_windows`.
    """

    numbers: NDArray[np.uint64]
    objects: NDArray[np.int32] | None
    group: NDArray[np.int64]


class Scheduled(Protocol):
    """What a schedule needs to know of the samples of a loader; see `stoker.loader.samples.Samples`."""

    def order(self, epoch: int) -> EpochOrder:
        """Return the order of the slots in an epoch."""

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        """Return what slots stand for."""


def upcoming(samples: Scheduled, topology: Topology, position: Position) -> Iterator[Upcoming]:
    """Yield this rank's batches from a position on, through one epoch after another; those without samples left out."""
    consumed = position.consumed
    for epoch in itertools.count(position.epoch):
        order = samples.order(epoch)
        for _ in range(steps_left(order.n, consumed, topology)):
            step = take_step(order, consumed, topology)
            if len(step.indices):
                request = samples.locate(step.indices, epoch)
                group = np.full(len(step.indices), _group(order, consumed), np.int64)
                yield Upcoming(request.numbers, request.objects, group)
            consumed = step.consumed
        if steps_left(order.n, 0, topology) == 0:  # an epoch without a batch, and so are all others
            return
        consumed = 0


def everything(size: int) -> Iterator[Upcoming]:
    """Yield the samples ``0 .. size - 1`` in their order."""
    for start in range(0, size, _ALL_AT_ONCE):
        numbers = np.arange(start, min(start + _ALL_AT_ONCE, size), dtype=np.uint64)
        yield Upcoming(numbers, None, np.zeros(len(numbers), np.int64))


def _group(order: EpochOrder, consumed: int) -> int:
    """Return the same number for positions of one window of blocks, or where blocks do not matter, of one epoch.

    That is near enough: a last block that is shorter moves the edges by less than a block.
    """
    if not isinstance(order.shuffle, BlockShuffle):
        return order.epoch % 2**31
    span = order.shuffle.block * order.shuffle.window
    return (order.epoch % 2**31 << 32) + consumed // span
