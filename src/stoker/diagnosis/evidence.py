"""What a diagnosis goes by: figures, gathered before any of them is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Work = Literal["transform", "model", "waiting", "python", "other"]
"""What code does: changes images; computes a model or another large product; sleeps or waits for somebody, such as a
device; runs in the interpreter; none of these can be said."""

_BUSY = 0.2
_ALL_BUSY = 0.75


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in somebody's code, and how much of a thread's time went there.

    Attributes:
        function: Name of the function; ``<module>`` at the top of a script.
        file: Its file.
        line: The line that was executed.
        code: The expression that was executed, if its source is there; else empty.
        work: What it does.
        share: Of the thread's time that was looked at, 0..1.
    """

    function: str
    file: str
    line: int
    code: str
    work: Work
    share: float


@dataclass(frozen=True, slots=True)
class OtherThread:
    """A thread of this process that runs Python and is not the consumer.

    Attributes:
        name: As ``threading`` knows it.
        busy_share: Of the time, that in which it ran, or was ready to run and no CPU was free: not waiting, not for
            the interpreter's lock either.
        spot: Where it was most of the time.
    """

    name: str
    busy_share: float
    spot: Spot | None


@dataclass(frozen=True, slots=True)
class Consumer:
    """What the thread that takes the batches did between taking one and asking for the next.

    Shares are of that time.

    Attributes:
        cpu_share: In which it ran on a CPU.
        queue_share: In which it was ready to run and no CPU was free; 0 where the system does not tell.
        works: Share of each kind of work, by looking at its stack.
        spots: Where it was, the longest first.
        top_speed: Samples a second that it takes when batches are there at once, by handing out some again; None
            where that was not tried.
    """

    cpu_share: float = 0.0
    queue_share: float = 0.0
    works: Mapping[Work, float] = field(default_factory=dict)
    spots: tuple[Spot, ...] = ()
    top_speed: float | None = None


@dataclass(frozen=True, slots=True)
class Files:
    """Where the samples lie.

    Attributes:
        place: As a person calls it.
        remote: Whether it is a store.
        size_bytes: Of all files; None where that is not known.
        room_bytes: What of it memory could hold now; None where the system does not tell.
        cached_before: Share of the bytes that was in the page cache before; None where that cannot be said.
        cached_after: The same afterwards.
        is_directory: Whether the place is one directory of this machine, and no pattern, list or mixture.
        loose: Whether the samples are image files, and not in shards.
    """

    place: str = ""
    remote: bool = False
    size_bytes: int | None = None
    room_bytes: int | None = None
    cached_before: float | None = None
    cached_after: float | None = None
    is_directory: bool = False
    loose: bool = False


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings of the loader that a remedy depends on.

    Attributes:
        threads: Decoding threads.
        cpus: CPUs this process may use.
        decode: ``exact`` or ``fast``.
        shuffle: ``none``, ``full`` or ``block``.
        cached: Whether a cache of samples was set.
        connections: Requests to a store at a time.
        ahead_bytes: The most bytes that are asked for from a store and not used yet.
        batch_size: Samples of a batch.
    """

    threads: int
    cpus: int
    decode: str = "exact"
    shuffle: str = "none"
    cached: bool = False
    connections: int = 32
    ahead_bytes: int = 256_000_000
    batch_size: int = 1


@dataclass(frozen=True, slots=True)
class Evidence:
    """All figures of one diagnosis. Shares are 0..1.

    ``wait_share``, ``gil_share`` and ``consumer_share`` add up to 1: what became of the consumer's time.

    Attributes:
        seconds: That were looked at; the first batches are not among them.
        batches: Batches of that time.
        samples: Samples of that time.
        wait_share: The consumer waited for a batch that was not ready.
        gil_share: It asked for one without waiting for it: the loader's own Python ran, or waited for the interpreter's
            lock.
        consumer_share: Between taking a batch and asking for the next.
        busy_share: Of the decoding threads' time, that in which they had something to do.
        cpu_share: Of their busy time, that in which they ran on a CPU.
        queue_share: Of their busy time, that in which they were ready to run and no CPU was free.
        stages: Share of their busy time that each stage took: read, remote, check, parse, decode, resample, convert,
            write.
        bytes_per_second: Read from files or a store.
        process_cpus: CPUs that this process kept busy.
        other_cpus: CPUs that other programs kept busy; None where the system does not tell.
        gil_held_share: How often the interpreter's lock was taken when a thread that had slept came for it.
        consumer: What the consumer did.
        threads: Other threads that run Python, the busiest first.
        files: Where the samples lie.
        setup: The loader's settings.
    """

    seconds: float
    batches: int
    samples: int
    wait_share: float
    gil_share: float
    consumer_share: float
    busy_share: float
    cpu_share: float
    queue_share: float
    stages: Mapping[str, float]
    bytes_per_second: float
    process_cpus: float
    other_cpus: float | None
    gil_held_share: float
    consumer: Consumer
    threads: tuple[OtherThread, ...]
    files: Files
    setup: Setup

    @property
    def speed(self) -> float:
        """Samples a second, as it is."""
        return self.samples / self.seconds if self.seconds > 0 else 0.0

    @property
    def sample_bytes(self) -> float:
        """Bytes that were read for a sample, on average."""
        return self.bytes_per_second * self.seconds / self.samples if self.samples else 0.0

    @property
    def loader_speed(self) -> float:
        """Samples a second that the loader could make beside this consumer, by how busy its threads were."""
        return self.speed / min(1.0, max(self.busy_share, 1e-3))

    @property
    def all_busy(self) -> bool:
        """Whether the decoding threads had something to do nearly all the time."""
        return self.busy_share >= _ALL_BUSY

    @property
    def lacks_threads(self) -> bool:
        """Whether more decoding threads could be had, and would have work."""
        return self.setup.threads < self.setup.cpus and self.all_busy

    @property
    def waiting_for_files(self) -> float:
        """Share of the decoding threads' busy time in which they waited for a disk or a store."""
        return self.stages.get("read", 0.0) + self.stages.get("remote", 0.0)

    @property
    def transformers(self) -> tuple[Spot, ...]:
        """Where other Python threads were that changed images and were busy with it; they need not hold any lock."""
        busy = [thread.spot for thread in self.threads if thread.busy_share >= _BUSY]
        return tuple(spot for spot in busy if spot is not None and spot.work == "transform")

    @property
    def off_cpu(self) -> float:
        """Share of the decoding threads' busy time in which they waited for anything but a CPU."""
        return max(0.0, 1 - self.cpu_share - self.queue_share)

    @property
    def head_room(self) -> float:
        """How many times as fast as the consumer the loader is."""
        return self.loader_speed / (self.consumer.top_speed or self.speed or 1.0)

    @property
    def consumer_blocked(self) -> float:
        """Share of the consumer's own time in which it neither ran nor meant to wait; time without a CPU left out."""
        with_cpu = 1 - self.consumer.queue_share
        meant = self.consumer.works.get("waiting", 0.0) * with_cpu
        return max(0.0, with_cpu - self.consumer.cpu_share - meant) / max(0.1, with_cpu)
