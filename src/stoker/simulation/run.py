"""Feeding of many ranks, told without reading anything: the real order and plan of ranges, a model of the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import ConfigError
from stoker.feed.position import Position
from stoker.feed.range_plan import plan_ranges
from stoker.feed.samples import Request
from stoker.feed.schedule import upcoming
from stoker.order import EpochOrder, Topology, shuffle_quality, steps_left
from stoker.simulation.caching import NodeCacheModel
from stoker.simulation.model import Storage
from stoker.simulation.timeline import Fetch, Timeline

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.feed.range_plan import RangePlan
    from stoker.simulation.model import Data, Ranks, Stretch
    from stoker.simulation.timeline import Timing


@dataclass(frozen=True, slots=True)
class RankReport:
    """What one rank went through.

    Attributes:
        rank: Its number.
        samples: Samples of its batches.
        images_per_second: Over all of the stretch but the first batch.
        first_batch: Seconds until that was there.
        stalled: Share of the time that the training step waited.
        requests: How many it made.
        bytes_read: Bytes that came.
        bytes_used: Bytes of the samples that were not in the cache.
        cache_hits: Samples that were.
        peak_bytes: The most that was asked for and not yet used.
    """

    rank: int
    samples: int
    images_per_second: float
    first_batch: float
    stalled: float
    requests: int
    bytes_read: int
    bytes_used: int
    cache_hits: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What all ranks together would go through.

    Attributes:
        ranks: Those that were simulated.
        world_size: How many there are.
        images_per_second: Of all ranks; the slowest of those simulated stands for each.
        of_local: That, compared with data that need not be fetched.
        epoch_seconds: How long an epoch would take.
        requests_per_second: Of all ranks.
        bytes_per_second: Of all ranks.
        bytes_of_epoch: What an epoch would read.
        requests_of_epoch: How many requests it would make.
        cache_hit_rate: 0 to 1.
        quality: Of the shuffle, for the batches of all ranks together; 1.0 is that of a full shuffle.
    """

    ranks: tuple[RankReport, ...]
    world_size: int
    images_per_second: float
    of_local: float
    epoch_seconds: float
    requests_per_second: float
    bytes_per_second: float
    bytes_of_epoch: float
    requests_of_epoch: float
    cache_hit_rate: float
    quality: float


def simulate(data: Data, ranks: Ranks, storage: Storage, stretch: Stretch) -> SimulationReport:
    """Simulate some batches of some ranks from the beginning of an epoch on.

    Takes about 10 us a sample, and the memory of one rank's samples, however many records and ranks there are.

    Args:
        data: What is read.
        ranks: Who reads.
        storage: From where.
        stretch: Which part.

    Raises:
        ConfigError: The epoch has fewer than two steps for each rank.
    """
    count = min(stretch.ranks, ranks.world_size)
    numbers = [ranks.world_size * one // count for one in range(count)]
    cache = NodeCacheModel(data, ranks, stretch)
    reports = [_simulate_rank(number, data, ranks, storage, stretch, cache) for number in numbers]
    slowest = min(reports, key=lambda report: report.images_per_second)
    local = _simulate_rank(slowest.rank, data, ranks, Storage(latency=0.0), stretch, cache)
    rate = slowest.images_per_second * ranks.world_size
    samples = sum(report.samples for report in reports)
    requests = sum(report.requests for report in reports) / samples
    read = sum(report.bytes_read for report in reports) / samples
    order = EpochOrder(data.records, stretch.shuffle, stretch.seed, stretch.epoch)
    return SimulationReport(
        ranks=tuple(reports),
        world_size=ranks.world_size,
        images_per_second=rate,
        of_local=slowest.images_per_second / local.images_per_second,
        epoch_seconds=slowest.first_batch + data.records / rate,
        requests_per_second=requests * rate,
        bytes_per_second=read * rate,
        bytes_of_epoch=read * data.records,
        requests_of_epoch=requests * data.records,
        cache_hit_rate=sum(report.cache_hits for report in reports) / samples,
        quality=shuffle_quality(order, min(2**30, ranks.batch_size * ranks.world_size)).quality,
    )


def _simulate_rank(
    rank: int, data: Data, ranks: Ranks, storage: Storage, stretch: Stretch, cache: NodeCacheModel
) -> RankReport:
    samples, group = _samples(rank, data, ranks, stretch)
    fetched = np.flatnonzero(~cache.holds(rank // ranks.per_node, samples))
    plan, request_of = _plan(samples, group, fetched, data, ranks)
    last_uses = fetched[plan.last_use] if len(fetched) else plan.last_use
    requests = [Fetch(*pair) for pair in zip(plan.length.tolist(), last_uses.tolist(), strict=True)]
    timing = Timeline(storage, ranks, requests, request_of.tolist()).run()
    return RankReport(
        rank=rank,
        samples=len(samples),
        images_per_second=_rate(timing, len(samples), ranks.batch_size),
        first_batch=timing.first,
        stalled=timing.waited / max(timing.total - timing.first, timing.waited, 1e-9),
        requests=len(requests),
        bytes_read=int(plan.length.sum()),
        bytes_used=len(fetched) * data.record_bytes,
        cache_hits=len(samples) - len(fetched),
        peak_bytes=timing.peak_bytes,
    )


def _rate(timing: Timing, samples: int, batch_size: int) -> float:
    """Return samples a second after the first batch; of a stretch so short that all came at once, from its start."""
    if timing.total > timing.first:
        return (samples - batch_size) / (timing.total - timing.first)
    return samples / timing.total


def _samples(rank: int, data: Data, ranks: Ranks, stretch: Stretch) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the samples of a rank in their order, uint64 (N,), and the group of each as the planner has it."""
    order = EpochOrder(data.records, stretch.shuffle, stretch.seed, stretch.epoch)
    topology = Topology(ranks.batch_size, rank, ranks.world_size, "drop")
    steps = min(stretch.steps, steps_left(order.n, 0, topology))
    if steps < 2:
        message = f"{data.records} records are fewer than two batches of {ranks.batch_size} on {ranks.world_size} ranks"
        raise ConfigError(f"{message}; simulate fewer ranks, smaller batches, or more records")
    future = islice(upcoming(_Images(order), topology, Position(stretch.epoch, 0)), steps)
    keys, groups = zip(*((batch.numbers, batch.group) for batch in future), strict=True)
    return np.concatenate(keys), np.concatenate(groups)


@dataclass(frozen=True, slots=True)
class _Images:
    """Whole images in the order of one epoch: what a schedule asks the samples of a loader for."""

    one: EpochOrder

    def order(self, epoch: int) -> EpochOrder:
        return replace(self.one, epoch=epoch)

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:  # noqa: ARG002 - a slot is always the same
        return Request(slots, None, slots, slots)


def _plan(
    samples: NDArray[np.uint64], group: NDArray[np.int64], fetched: NDArray[np.int64], data: Data, ranks: Ranks
) -> tuple[RangePlan, NDArray[np.int64]]:
    """Return the requests for some of the samples, and which of them brings each sample; -1 for the others."""
    numbers = samples[fetched].astype(np.int64)
    file, offset = numbers // data.shard_records, numbers % data.shard_records * data.record_bytes
    plan = plan_ranges(file, offset, np.full(len(file), data.record_bytes), ranks.read_ahead.limits(), group[fetched])
    request_of = np.full(len(samples), -1, np.int64)
    # A piece is in one range of each window, and windows follow one another.
    ends = np.flatnonzero(np.diff(plan.window, append=-1))
    start = 0
    for end in ends.tolist():
        part = slice(start, end + 1)
        uses = slice(int(plan.first_use[part].min()), int(plan.last_use[part].max()) + 1)
        order = np.lexsort((plan.offset[part], plan.file[part]))
        heads = plan.file[part][order] * data.shard_records + plan.offset[part][order] // data.record_bytes
        found = np.searchsorted(heads, numbers[uses], side="right") - 1
        request_of[fetched[uses]] = start + order[found]
        start = end + 1
    return plan, request_of
