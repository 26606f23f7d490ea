"""What passes between a loader and its consumer, batch by batch, in the consumer's own thread.

::

    asked ──wait── given ──consumer── asked ──wait── given ── ...
    │ first batches: dropped │ live │ some batches again │ as many dropped as the loader had ready │ live ...

Batches are handed out again as copies of what the loader gave: a consumer may have changed its own. Their position is
that of the loader, for loops that keep it in a checkpoint.
"""

from __future__ import annotations

import copy
import dataclasses
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.diagnosis.places import is_stokers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from stoker.feed import Batch, Loader, LoaderStats
    from stoker.feed.position import Position

_COPIES = 2
_WARM_UP_SECONDS = 1.0
"""A slow consumer's first batches are over sooner: what the loader has ahead is filled up during one of them."""
_LEAST_LIVE_BATCHES = 8
_LEAST_LIVE_SECONDS = 1.0
_ENOUGH_SECONDS = 4.0
"""Of live batches, or of batches handed out again, if there are three."""
_DROPPED_AGAIN = 2
"""Batches handed out again that do not count: the loader is still filling up what it has ahead."""


@dataclass
class Stretch:
    """Sums over live batches that followed one another."""

    first: LoaderStats
    last: LoaderStats
    batches: int = 0
    samples: int = 0
    wait: float = 0.0
    consumer: float = 0.0
    cpu: float = 0.0

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.wait + self.consumer


class Watch:
    """Hands out batches for a loader, and keeps book. Its attributes may be read by any thread.

    Args:
        loader: Whose batches these are.
        replay: How many batches are handed out again, once; 0 for none.
        warm_up: How many batches are dropped at first.

    Attributes:
        stretches: What was live.
        again: Seconds that the consumer took for each batch that was handed out again.
        thread: The consumer's identity in Python; None before the first batch.
        native_thread: The same in the system.
        count: How many batches the consumer is through with.
        given: How many it was given, those that it had before among them.
        at_work: Whether the consumer is busy with a batch now.
        loop: Identities of the frames that were on its stack when it took its last batch.
    """

    def __init__(self, loader: Loader, replay: int, warm_up: int) -> None:
        self._loader = loader
        self._replay = replay
        self._skip = self._warm_up = warm_up
        self._began: float | None = None
        self._asked: float | None = None
        self._at: Position | None = None
        self._kept: list[Batch] = []
        self.stretches: list[Stretch] = []
        self.again: list[float] = []
        self.thread: int | None = None
        self.native_thread: int | None = None
        self.count = self.given = 0
        self.at_work = False
        self.loop: frozenset[int] = frozenset()

    @property
    def live(self) -> bool:
        """Whether the first batches are over."""
        return bool(self.stretches)

    @property
    def top_speed(self) -> float | None:
        """Samples a second of the consumer when batches are there at once; None if that was not seen."""
        seconds = self.again[_DROPPED_AGAIN:]
        return len(self._kept[0]) / statistics.median(seconds) if seconds and self._kept else None

    def hand_out(self, batch: Batch) -> Iterator[Batch]:
        """Yield a batch, and others again when it is time."""
        given = time.perf_counter()
        wait = self._waited(batch.position, given)
        if self._replay and len(self._kept) < _COPIES:
            self._kept.append(copy.deepcopy(batch))
            given = time.perf_counter()
        cpu = time.thread_time()
        yield from self._give(batch)
        self._count(len(batch), wait, time.perf_counter() - given, time.thread_time() - cpu)
        if self._replay and self._is_time(batch):
            yield from self._repeats(batch.position)
        self._asked = time.perf_counter()

    def _waited(self, position: Position, given: float) -> float:
        """Return how long the consumer waited for a batch."""
        asked, self._asked = self._asked, None  # and none it stays, if the loop is left at this batch
        before, self._at = self._at, position
        if asked is None or before is None or before.epoch != position.epoch or before.consumed >= position.consumed:
            return self._begun_again()
        return given - asked

    def _begun_again(self) -> float:
        """Leave out what lies between two iterations, such as a validation, and return the wait for the first batch."""
        if self._skip or not self.stretches:
            return 0.0
        stretch, stats = self.stretches[-1], self._loader.stats()
        idle = stats.idle_seconds - stretch.last.idle_seconds
        stretch.first = dataclasses.replace(stretch.first, idle_seconds=stretch.first.idle_seconds + idle)
        return stats.wait_seconds - stretch.last.wait_seconds  # the core counts from when the batch was asked for

    def _give(self, batch: Batch) -> Iterator[Batch]:
        self.loop = _stack()
        self.thread, self.native_thread = threading.get_ident(), threading.get_native_id()
        self.given += 1
        self.at_work = True
        try:
            yield batch
        finally:
            self.at_work = False

    def _repeats(self, position: Position) -> Iterator[Batch]:
        count, self._replay = self._replay, 0
        for number in range(count):
            kept = copy.deepcopy(self._kept[number % len(self._kept)])
            batch = dataclasses.replace(kept, position=position)
            given = time.perf_counter()
            yield from self._give(batch)
            self.again.append(time.perf_counter() - given)
            if len(self.again) > _DROPPED_AGAIN and sum(self.again) > _ENOUGH_SECONDS:
                break
        self._skip, self._began = self._warm_up, time.perf_counter()

    def _count(self, samples: int, wait: float, consumer: float, cpu: float) -> None:
        stats = self._loader.stats()
        self.count += 1
        if self._skip:
            self._began = self._began or time.perf_counter() - consumer
            self._skip -= 1
            if not self._skip or time.perf_counter() - self._began > _WARM_UP_SECONDS:
                self._skip = 0
                self.stretches.append(Stretch(stats, stats))
            return
        stretch = self.stretches[-1]
        stretch.last = stats
        stretch.batches += 1
        stretch.samples += samples
        stretch.wait += wait
        stretch.consumer += consumer
        stretch.cpu += cpu

    def _is_time(self, batch: Batch) -> bool:
        if not self.stretches:
            return False
        live, topology = self.stretches[-1], self._loader.topology
        steps = -(-batch.position.consumed // (topology.batch_size * topology.world_size))
        if steps >= len(self._loader):  # the epoch's last, and perhaps the loop's
            return live.batches >= _COPIES
        if live.batches < _LEAST_LIVE_BATCHES:
            return live.batches > _COPIES and live.seconds >= _ENOUGH_SECONDS
        return live.seconds >= _LEAST_LIVE_SECONDS


def _stack() -> frozenset[int]:
    found = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_stokers(frame):
            found.add(id(frame))
        frame = frame.f_back
    return frozenset(found)
