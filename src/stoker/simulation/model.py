"""What is simulated: data, ranks, storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.feed import ReadAhead

if TYPE_CHECKING:
    from stoker.order import BlockShuffle


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
    """What requests take; None where there is no limit that matters.

    Attributes:
        latency: Seconds from a request to its first byte.
        connection_bandwidth: Bytes a second of one request.
        node_bandwidth: Bytes a second of all requests of one node.
        total_bandwidth: Bytes a second that the store gives to all nodes.
        total_requests: Requests a second that the store takes.

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
        rate: Images a second that a rank decodes when nothing is waited for; ``stoker bench`` measures it.
        threads: Decoding threads of a rank.
        step: Seconds that the training step takes between two batches.
        prefetch: Batches that are decoded ahead.
        read_ahead: As the loader has it.
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
            raise ConfigError(
                f"rate is {self.rate} and step {self.step}; the rate must be positive, the step at least 0"
            )

    @property
    def nodes(self) -> int:
        """How many nodes there are; the last one may have fewer ranks."""
        return -(-self.world_size // self.per_node)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which part of the training is simulated: the rest is like it.

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
