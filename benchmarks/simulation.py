"""How fast many ranks would be fed from a store: the real order and plan of requests, a model of their time.

python -m benchmarks.simulation --records 1e10 --ranks 4096 --node-bandwidth 12GB --shuffle block:256:1

Reads nothing. The order of the samples, each rank's share and the plan of requests are computed by the functions that a
loader calls; latency, bandwidth, decoding and the training step are modelled (benchmarks/README.md says how).
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import json
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, cast

import numpy as np

from stoker.config import check_range, format_seconds, format_size, parse_size
from stoker.errors import ConfigError
from stoker.loader import ReadAhead
from stoker.loader.epochs import Request, Samples, upcoming
from stoker.loader.read_ahead import plan_ranges, window_end
from stoker.order import BlockShuffle, EpochOrder, Position, Topology, shuffle_quality, steps_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


_FILE_BLOCK = 4096  # a cache counts blocks of the file system, so a record takes its bytes and half a block


@dataclass(frozen=True, slots=True)
class Data:
    """Records of equal size in shards of equal length.

    Attributes:
        records: How many there are.
        record_bytes: Bytes of a record with its frame.
        shard_records: Records of a shard; the last one may have fewer.

    Raises:
        ConfigError: A number is out of range.
    """

    records: int
    record_bytes: int = 110_000
    shard_records: int = 1_200

    def __post_init__(self) -> None:
        check_range("records", self.records, 1, 2**62 - 1)
        check_range("record_bytes", self.record_bytes, 17, 2**31)
        check_range("shard_records", self.shard_records, 1, 2**40)
        check_range("bytes of a shard", self.shard_records * self.record_bytes, 17, 2**62)


@dataclass(frozen=True, slots=True)
class Storage:
    """What requests take; None where no limit matters.

    Attributes:
        latency: Seconds from a request to its first byte.
        connection_bandwidth: Bytes per second of one request.
        node_bandwidth: Bytes per second of all requests of one node.
        total_bandwidth: Bytes per second that the store gives to all nodes.
        total_requests: Requests per second that the store takes.

    Raises:
        ConfigError: A number is not positive, or the latency is negative.
    """

    latency: float = 0.05
    connection_bandwidth: float | None = None
    node_bandwidth: float | None = None
    total_bandwidth: float | None = None
    total_requests: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.latency < 3600:
            raise ConfigError(f"latency is {self.latency} s; it must be at least 0 and below an hour")
        for name in ("connection_bandwidth", "node_bandwidth", "total_bandwidth", "total_requests"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name} is {value}; it must be positive")


@dataclass(frozen=True, slots=True)
class Ranks:
    """Who reads, and how.

    Attributes:
        world_size: How many ranks consume an epoch together.
        per_node: How many of them share a node, its bandwidth and its cache.
        batch_size: Samples of a batch on each rank.
        rate: Images per second that a rank decodes from local data; ``stoker bench`` measures it.
        threads: Decoding threads of a rank.
        step: Seconds that the training step takes between two batches.
        prefetch: Batches that are decoded ahead.
        read_ahead: That of the loader.
        cache_bytes: Node cache of each node; 0 for none.

    Raises:
        ConfigError: A number is out of range.
    """

    world_size: int = 1
    per_node: int = 1
    batch_size: int = 256
    rate: float = 4_000.0
    threads: int = 16
    step: float = 0.0
    prefetch: int = 3
    read_ahead: ReadAhead = field(default_factory=ReadAhead)
    cache_bytes: int = 0

    def __post_init__(self) -> None:
        check_range("ranks", self.world_size, 1, 2**24)
        check_range("ranks of a node", self.per_node, 1, self.world_size)
        check_range("threads", self.threads, 1, 4096)
        check_range("prefetch", self.prefetch, 1, 1024)
        check_range("cache", self.cache_bytes, 0, 2**62)
        if not self.rate > 0 or not 0 <= self.step < 3600:
            raise ConfigError(f"rate is {self.rate}, step {self.step}; the rate must be positive, the step at least 0")

    @property
    def nodes(self) -> int:
        """How many nodes there are; the last one may have fewer ranks."""
        return -(-self.world_size // self.per_node)


@dataclass(frozen=True, slots=True)
class Span:
    """Which part of the training is simulated; it stands for the rest.

    Attributes:
        shuffle: Order of the epochs.
        seed: Of the orders.
        epoch: Which epoch, from 0; a node cache holds what the epochs before have left in it.
        steps: Batches of each rank.
        ranks: How many ranks, spread evenly over all.

    Raises:
        ConfigError: A number is out of range.
    """

    shuffle: bool | BlockShuffle = True
    seed: int = 0
    epoch: int = 0
    steps: int = 64
    ranks: int = 4

    def __post_init__(self) -> None:
        check_range("epoch", self.epoch, 0, 1000)
        check_range("steps", self.steps, 2, 100_000)
        check_range("simulated ranks", self.ranks, 1, 4096)


@dataclass(frozen=True, slots=True)
class RankReport:
    """What one rank measured.

    Attributes:
        rank: Its number.
        samples: Samples of its batches.
        images_per_second: Over the whole span except the first batch.
        first_batch: Seconds until that was ready.
        stalled: Share of the time that the training step waited.
        requests: How many it made.
        bytes_read: Bytes that arrived.
        bytes_used: Bytes of the samples that were not in the cache.
        cache_hits: Samples that were.
        peak_bytes: The most bytes that were requested and not yet used.
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
    """What all ranks together would measure.

    Attributes:
        ranks: Those that were simulated.
        world_size: How many there are.
        images_per_second: Of all ranks; the slowest of those simulated stands for each.
        of_local: That, as a share of the speed from data that need no request.
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


def simulate(data: Data, ranks: Ranks, storage: Storage, span: Span) -> SimulationReport:
    """Simulate some batches of some ranks from the start of an epoch.

    Takes about 10 us a sample, and the memory of one rank's samples, however many records and ranks there are.

    Raises:
        ConfigError: The epoch has fewer than two steps for each rank.
    """
    count = min(span.ranks, ranks.world_size)
    numbers = [ranks.world_size * number // count for number in range(count)]
    cache = NodeCacheModel(data, ranks, span)
    reports = [_simulate_rank(number, data, ranks, storage, span, cache) for number in numbers]
    slowest = min(reports, key=lambda report: report.images_per_second)
    local = _simulate_rank(slowest.rank, data, ranks, Storage(latency=0.0), span, cache)
    rate = slowest.images_per_second * ranks.world_size
    samples = sum(report.samples for report in reports)
    requests = sum(report.requests for report in reports) / samples
    read = sum(report.bytes_read for report in reports) / samples
    order = EpochOrder(data.records, span.shuffle, span.seed, span.epoch)
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


class NodeCacheModel:
    """The cache of one node, which keeps what its ranks read first and nothing more once it is full.

    Every order has an inverse, so whether a sample was read while the cache had space can be computed for any earlier
    epoch; nothing is stored.
    """

    def __init__(self, data: Data, ranks: Ranks, span: Span) -> None:
        self._data = data
        self._ranks = ranks
        self._span = span
        self._ends = self._find_ends()

    def _find_ends(self) -> list[float]:
        """Return for each earlier epoch the share of it after which the cache takes nothing more."""
        capacity = self._ranks.cache_bytes / (self._data.record_bytes + _FILE_BLOCK / 2)
        held, share = 0.0, self._data.records / self._ranks.nodes
        ends = []
        for _ in range(self._span.epoch):
            new = share * (1 - held / self._data.records)
            ends.append(min(1.0, (capacity - held) / new) if new >= 1 else 0.0)
            held += new * ends[-1]
        return ends

    def holds(self, node: int, samples: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return which samples are in the cache when the epoch begins, bool like ``samples``."""
        data, ranks, span = self._data, self._ranks, self._span
        held = np.zeros(len(samples), np.bool_)
        if not ranks.cache_bytes:
            return held
        batch = np.uint64(ranks.batch_size)
        for epoch, end in enumerate(self._ends):
            order = EpochOrder(data.records, span.shuffle, span.seed, epoch)
            positions = order.positions(samples)
            rank = positions % (batch * np.uint64(ranks.world_size)) // batch
            held |= (rank // np.uint64(ranks.per_node) == node) & (positions < data.records * end)
        return held


def _simulate_rank(
    rank: int, data: Data, ranks: Ranks, storage: Storage, span: Span, cache: NodeCacheModel
) -> RankReport:
    samples, group = _samples(rank, data, ranks, span)
    fetched = np.flatnonzero(~cache.holds(rank // ranks.per_node, samples))
    requests, request_of = _plan(samples, group, fetched, data, ranks)
    _, _, lengths, last_uses = requests.tolist()
    timing = _Timeline(storage, ranks, lengths, last_uses, request_of.tolist()).run()
    rate = len(samples) / timing.total
    if timing.total > timing.first:  # otherwise the span is so short that all batches were ready at once
        rate = (len(samples) - ranks.batch_size) / (timing.total - timing.first)
    return RankReport(
        rank=rank,
        samples=len(samples),
        images_per_second=rate,
        first_batch=timing.first,
        stalled=timing.waited / max(timing.total - timing.first, timing.waited, 1e-9),
        requests=len(lengths),
        bytes_read=sum(lengths),
        bytes_used=len(fetched) * data.record_bytes,
        cache_hits=len(samples) - len(fetched),
        peak_bytes=timing.peak_bytes,
    )


def _samples(rank: int, data: Data, ranks: Ranks, span: Span) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the samples of a rank in their order, uint64 (N,), and the group of each as the planner has it."""
    order = EpochOrder(data.records, span.shuffle, span.seed, span.epoch)
    topology = Topology(ranks.batch_size, rank, ranks.world_size, "drop")
    steps = min(span.steps, steps_left(order.n, 0, topology))
    if steps < 2:
        message = f"{data.records} records are fewer than two batches of {ranks.batch_size} on {ranks.world_size} ranks"
        raise ConfigError(f"{message}; simulate fewer ranks, smaller batches, or more records")
    future = islice(upcoming(cast("Samples", _Images(order)), topology, Position(span.epoch, 0)), steps)
    keys, groups = zip(*((batch.numbers, batch.group) for batch in future), strict=True)
    return np.concatenate(keys), np.concatenate(groups)


@dataclass(frozen=True, slots=True)
class _Images:
    """Whole images in the order of one epoch: what a schedule asks the samples of a loader for."""

    epoch_order: EpochOrder

    def order(self, epoch: int) -> EpochOrder:
        return replace(self.epoch_order, epoch=epoch)

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:  # noqa: ARG002 - a slot is always the same
        return Request(slots, None, slots, slots)


def _plan(
    samples: NDArray[np.uint64], group: NDArray[np.int64], fetched: NDArray[np.int64], data: Data, ranks: Ranks
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the requests for some of the samples, and which of them brings each sample; -1 for the others.

    Requests are int64 (4, N): file, offset, length and last use of each.
    """
    numbers, group = samples[fetched].astype(np.int64), group[fetched]
    file, offset = numbers // data.shard_records, numbers % data.shard_records * data.record_bytes
    length, limits = np.full(len(file), data.record_bytes), ranks.read_ahead.limits()
    request_of = np.full(len(samples), -1, np.int64)
    requests = [np.empty((4, 0), np.int64)]
    start = planned = 0
    while count := window_end(length[start:], group[start:], limits):
        uses = slice(start, start + count)
        plan = plan_ranges(file[uses], offset[uses], length[uses], limits)
        order = np.lexsort((plan.offset, plan.file))
        heads = plan.file[order] * data.shard_records + plan.offset[order] // data.record_bytes
        request_of[fetched[uses]] = planned + order[np.searchsorted(heads, numbers[uses], side="right") - 1]
        requests.append(np.stack([plan.file, plan.offset, plan.length, fetched[uses][plan.last_use]]))
        start, planned = start + count, planned + len(order)
    return np.concatenate(requests, axis=1), request_of


class _Network:
    """The way to the store: a number of connections, and a pipe that they share with other ranks.

    A request waits for a connection and then for its first byte; its bytes then pass the pipe behind those that were
    ready before.
    """

    def __init__(self, storage: Storage, ranks: Ranks) -> None:
        shares = [(storage.node_bandwidth, ranks.per_node), (storage.total_bandwidth, ranks.world_size)]
        self._seconds_a_byte = max((sharers / rate for rate, sharers in shares if rate is not None), default=0.0)
        self._seconds_a_byte_alone = 1 / storage.connection_bandwidth if storage.connection_bandwidth else 0.0
        self._seconds_a_request = ranks.world_size / storage.total_requests if storage.total_requests else 0.0
        self._latency = storage.latency
        self._free = [0.0] * ranks.read_ahead.connections
        self._piped = 0.0
        self._next = 0.0

    def fetch(self, length: int, earliest: float) -> tuple[float, float]:
        """Return when a request is made and when its last byte arrives."""
        begin = max(earliest, heapq.heappop(self._free), self._next)
        self._next = begin + self._seconds_a_request
        ready = begin + self._latency
        self._piped = max(self._piped, ready) + length * self._seconds_a_byte
        arrived = max(self._piped, ready + length * self._seconds_a_byte_alone)
        heapq.heappush(self._free, arrived)
        return begin, arrived


@dataclass(frozen=True, slots=True)
class _Timing:
    """Seconds to the first and to the last batch, seconds the step waited between them, the most bytes held."""

    first: float
    total: float
    waited: float
    peak_bytes: int


class _Timeline:
    """One rank, event by event, from its first request on.

    Args:
        storage: What requests take.
        ranks: How the rank reads and decodes.
        lengths: Bytes of each request, in the order in which they are made.
        last_uses: The last sample that needs each request.
        request_of: For each sample in order, the request that brings it; -1 for none.
    """

    def __init__(
        self,
        storage: Storage,
        ranks: Ranks,
        lengths: Sequence[int],
        last_uses: Sequence[int],
        request_of: Sequence[int],
    ) -> None:
        self._network = _Network(storage, ranks)
        self._ranks = ranks
        self._budget = ranks.read_ahead.budget_bytes
        self._lengths = lengths
        self._last_uses = last_uses
        self._request_of = request_of
        self._arrivals: list[float] = []  # of the requests that were made
        self._held = 0
        self._peak = 0
        self._releases: list[tuple[float, int]] = []  # when bytes are freed

    def run(self) -> _Timing:
        """Go through all batches."""
        ranks = self._ranks
        service = ranks.threads / ranks.rate
        workers = [0.0] * ranks.threads
        wanted: list[float] = []  # when the step asks for each batch
        taken: list[float] = []
        for first in range(0, len(self._request_of), ranks.batch_size):
            number = len(taken)
            wanted.append(taken[-1] + ranks.step if taken else 0.0)
            queued = wanted[number - ranks.prefetch] if number > ranks.prefetch else 0.0
            done = queued
            for use in range(first, min(first + ranks.batch_size, len(self._request_of))):
                begin = max(heapq.heappop(workers), queued, self._arrival(use))
                heapq.heappush(workers, begin + service)
                self._free(use, begin + service)
                done = max(done, begin + service)
            taken.append(max(done, wanted[-1]))
        waited = sum(ready - asked for ready, asked in zip(taken[1:], wanted[1:], strict=True))
        return _Timing(taken[0], taken[-1], waited, self._peak)

    def _arrival(self, use: int) -> float:
        number = self._request_of[use]
        while len(self._arrivals) <= number:
            length = self._lengths[len(self._arrivals)]
            begin, arrived = self._network.fetch(length, self._admit(length))
            while self._releases and self._releases[0][0] <= begin:
                self._held -= heapq.heappop(self._releases)[1]
            self._held += length
            self._peak = max(self._peak, self._held)
            self._arrivals.append(arrived)
        return self._arrivals[number] if number >= 0 else 0.0

    def _admit(self, length: int) -> float:
        """Return when the budget has space for a request; what is needed next is always admitted."""
        when = 0.0
        while self._held + length > self._budget and self._releases:
            when, freed = heapq.heappop(self._releases)
            self._held -= freed
        return when

    def _free(self, use: int, when: float) -> None:
        number = self._request_of[use]
        if number >= 0 and self._last_uses[number] == use:
            heapq.heappush(self._releases, (when, self._lengths[number]))


def _whole(text: str) -> int:
    return round(float(text))


def _shuffle(text: str) -> bool | BlockShuffle:
    if text in ("full", "none"):
        return text == "full"
    kind, block, window = text.split(":")
    if kind != "block":
        raise ValueError(text)
    return BlockShuffle(int(block), int(window))


def main() -> None:
    """Simulate what the command line says, and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--records", type=_whole, default=1_281_167, metavar="N", help="such as 1e10 (default %(default)s)")
    add("--record-bytes", type=parse_size, default=110_000, metavar="SIZE", help="(default %(default)s)")
    add("--shard-records", type=_whole, default=1_200, metavar="N", help="(default %(default)s)")
    add("--shuffle", type=_shuffle, default=True, metavar="ORDER", help="full (default), none, or block:BLOCK:WINDOW")
    add("--seed", type=int, default=0, help="of the order (default %(default)s)")
    add("--epoch", type=int, default=0, metavar="N", help="from 0; earlier ones have filled the cache")
    add("--steps", type=_whole, default=64, metavar="N", help="batches simulated (default %(default)s)")
    add("--ranks", type=_whole, default=1, metavar="N", help="of all nodes (default %(default)s)")
    add("--ranks-per-node", type=_whole, metavar="N", help="(default 8, or fewer if there are fewer)")
    add("--batch-size", type=_whole, default=256, metavar="N", help="of a rank (default %(default)s)")
    text = "images per second that a rank decodes from local data; stoker bench measures it (default %(default)s)"
    add("--rate", type=float, default=4_000.0, metavar="N", help=text)
    add("--threads", type=_whole, default=16, metavar="N", help="of a rank (default %(default)s)")
    add("--step", type=float, default=0.0, metavar="SECONDS", help="of training for a batch (default %(default)s)")
    add("--cache", type=parse_size, default=0, metavar="SIZE", help="of each node, such as 2TB (default none)")
    add("--budget", default=ReadAhead().budget, metavar="SIZE", help="of reading ahead (default %(default)s)")
    text = "of a rank (default %(default)s)"
    add("--connections", type=_whole, default=ReadAhead().connections, metavar="N", help=text)
    text = "from a request to its first byte (default %(default)s)"
    add("--latency", type=float, default=0.05, metavar="SECONDS", help=text)
    add("--connection-bandwidth", type=parse_size, metavar="SIZE", help="bytes per second of one request")
    add("--node-bandwidth", type=parse_size, metavar="SIZE", help="bytes per second of a node, such as 12.5GB")
    add("--store-bandwidth", type=parse_size, metavar="SIZE", help="bytes per second of the store for all nodes")
    text = "requests per second that the store takes (default %(default)s, as S3 documents for a prefix; 0: no limit)"
    add("--store-requests", type=_whole, default=5_500, metavar="N", help=text)
    add("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    report = simulate(
        Data(options.records, options.record_bytes, options.shard_records),
        Ranks(
            world_size=options.ranks,
            per_node=options.ranks_per_node or min(8, options.ranks),
            batch_size=options.batch_size,
            rate=options.rate,
            threads=options.threads,
            step=options.step,
            read_ahead=ReadAhead(options.budget, options.connections),
            cache_bytes=options.cache,
        ),
        Storage(
            options.latency,
            options.connection_bandwidth,
            options.node_bandwidth,
            options.store_bandwidth,
            options.store_requests or None,
        ),
        Span(options.shuffle, options.seed, options.epoch, options.steps),
    )
    if options.json:
        print(json.dumps(dataclasses.asdict(report), indent=1))
    else:
        _print(report, with_step=options.step > 0)


def _print(report: SimulationReport, *, with_step: bool) -> None:
    used = sum(rank.bytes_used for rank in report.ranks) or 1
    unused = max(0.0, sum(rank.bytes_read for rank in report.ranks) / used - 1)
    first = format_seconds(max(rank.first_batch for rank in report.ranks))
    peak = format_size(max(rank.peak_bytes for rank in report.ranks))
    stalled = max(rank.stalled for rank in report.ranks)
    epoch, rate = format_size(report.bytes_of_epoch), format_size(report.bytes_per_second)
    rows = [
        (
            "images per second",
            f"{report.images_per_second:,.0f}",
            f"{report.of_local:.0%} of that from local data",
        ),
        (
            "first batch after",
            first,
            f"training then waits {stalled:.0%} of the time"
            if with_step
            else "how long training waits depends on --step",
        ),
        ("an epoch", format_seconds(report.epoch_seconds), f"shuffle quality {report.quality:.2f} (1.00: full)"),
        ("requests per second", f"{report.requests_per_second:,.0f}", f"{report.requests_of_epoch:,.0f} in an epoch"),
        ("bytes per second", rate, f"{epoch} in an epoch"),
        ("read and not used", f"{unused:.1%}", "bytes between samples"),
        ("cache hits", f"{report.cache_hit_rate:.1%}", "of the samples of this epoch"),
        ("bytes in flight", peak, "at most, on each rank"),
    ]
    print(f"{report.world_size:,} ranks, {len(report.ranks)} simulated for {report.ranks[0].samples:,} samples each")
    for name, value, note in rows:
        print(f"  {name:<20} {value:>14}  {note}")


if __name__ == "__main__":
    main()
