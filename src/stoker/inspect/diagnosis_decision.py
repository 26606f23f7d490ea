"""Decides on one verdict and one remedy by the figures: pure functions, which can be tested without a clock.

::

    too few batches                                                     unknown
    other threads hold the GIL, and slow the consumer down              gil-bound
    the consumer waits for batches   threads wait for files             storage-bound | cold-cache
                                     few threads, all busy              thread-bound
                                     otherwise                          decode-bound
    it hardly waits                  but still a little                 balanced
                                     it computes, and holds the GIL     gil-bound
                                     it computes without the GIL        transform-bound
                                     otherwise                          consumer-bound

Thresholds are far from the figures of clear cases, because a share measured on a busy machine varies by tenths.
"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from stoker.config import format_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Verdict = Literal[
    "storage-bound",
    "cold-cache",
    "thread-bound",
    "decode-bound",
    "consumer-bound",
    "transform-bound",
    "gil-bound",
    "balanced",
    "unknown",
]

_LEAST_BATCHES = 2
_WAITS = 0.2
"""Share of its time that a consumer waits for batches, from which on the loader is the bottleneck."""
_WAITS_A_LITTLE = 0.08
_FILES = 0.3
"""Share of the decoding threads' time from which on reading is the bottleneck, if the threads are off the CPUs."""
_OFF_CPU = 0.25
_ALL_BUSY = 0.75
_GIL_LOST = 0.2
"""Share of its time that a consumer loses to other Python threads, from which on they are the bottleneck."""
_GIL_HELD = 0.4
_OTHERS_BUSY = 0.25
_MOST_CACHED = 0.7
"""Share of files in the page cache from which on a cold cache is not the reason of slow reads."""
_KEPT = 0.4
"""Share of the bytes read that must be in the page cache afterwards, so that a second pass finds them there."""
_IN_PYTHON = 0.4
_COMPUTES = 0.5
"""Share of the consumer's own time on a CPU, or ready for one, from which on it counts as computing."""
_NO_CONSUMER = 0.02
"""Share of the time below which a consumer does nothing but take batches."""
_MANY = 20.0
_FEW_CONNECTIONS = 16
_STAGES = {
    "decode": "decoding",
    "resample": "resizing",
    "convert": "Pillow, decoding formats that the core does not",
    "write": "the pixel format",
    "check": "checksums",
    "parse": "parsing",
    "read": "reading",
    "remote": "requests",
}
_PY_SPY = "'py-spy top --pid PID' shows where its time goes"


@dataclass(frozen=True, slots=True)
class OtherThread:
    """A thread of this process that runs Python and is not the consumer."""

    name: str  # as ``threading`` knows it
    busy_share: float  # share of the time in which it ran, or was ready to run and no CPU was free


@dataclass(frozen=True, slots=True)
class Consumer:
    """What the thread of the training loop did between taking a batch and asking for the next.

    Shares are of that time; all are 0 where the system does not say.
    """

    cpu_share: float = 0.0  # it ran on a CPU
    queue_share: float = 0.0  # it was ready to run and no CPU was free
    # the most in which it may have waited for the GIL: it was off the CPU, and came back to it as often as a thread
    # that waits for the GIL does. One sleep, however long, does not count
    blocked_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Files:
    """Where the samples lie."""

    name: str = ""  # as the user gives it: a path, a URL or a pattern
    remote: bool = False  # whether they lie in a store
    size_bytes: int | None = None  # of all files; None if that is not known
    memory_bytes: int | None = None  # bytes of files that memory could hold now; None if the system does not say
    cached_before: float | None = None  # share of the bytes in the page cache before; None if unknown
    cached_after: float | None = None  # the same afterwards
    is_directory: bool = False  # whether ``name`` is one directory of this machine, and not a pattern, list or mixture
    loose: bool = False  # whether the samples are image files, and not in shards
    pixels: bool = False  # whether the images are stored as pixels, so that nothing is decoded


@dataclass(frozen=True, slots=True)
class Setup:
    """What a remedy depends on: the settings of the loader, and the machine and process that it runs in."""

    threads: int
    cpus: int  # CPUs this process may use; with several ranks on a node, its share of them
    decode: str = "exact"  # ``exact`` or ``fast``
    shuffle: str = "none"  # ``none``, ``full`` or ``block``
    cached: bool = False  # whether a cache of samples was set
    connections: int = 32  # requests to a store at a time
    ahead_bytes: int = 256_000_000  # the most bytes that are requested from a store and not used yet
    batch_size: int = 1
    accelerator: bool = False  # whether the loop drives a GPU whose driver keeps a CPU busy while it waits
    local_ranks: int = 1  # how many ranks share the CPUs of the node
    missing: tuple[str, ...] = ()  # what to install for formats that the core was built without

    @property
    def cpus_text(self) -> str:
        """How many CPUs there are, for people."""
        whose = f", the share of one of {self.local_ranks} local ranks" if self.local_ranks > 1 else ""
        return f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}{whose}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """All figures of one diagnosis, gathered before any of them is judged. Shares are 0..1.

    ``wait_share``, ``gil_share`` and ``consumer_share`` add up to 1: the consumer's time.
    """

    files: Files
    setup: Setup
    seconds: float = 0.0  # of the consumer's time, without the first batches and what lies between two epochs
    batches: int = 0  # in that time
    samples: int = 0  # in that time
    wait_share: float = 0.0  # the consumer waited for a batch that was not ready
    gil_share: float = 0.0  # the batch was ready, and the consumer waited for the GIL
    consumer_share: float = 0.0  # between taking a batch and asking for the next
    busy_share: float = 0.0  # of the decoding threads' time, that in which they had something to do
    cpu_share: float = 0.0  # of their busy time, that in which they ran on a CPU
    queue_share: float = 0.0  # of their busy time, that in which they were ready to run and no CPU was free
    # of their busy time, what each stage took: read, remote, check, parse, decode, resample, convert, write
    stages: Mapping[str, float] = field(default_factory=dict)
    pillow_share: float = 0.0  # of the samples, those whose image Pillow decoded
    bytes_per_second: float = 0.0  # read from files or a store
    process_cpus: float = 0.0  # CPUs that this process kept busy
    other_cpus: float | None = None  # CPUs that other programs kept busy; None where the system does not say
    gil_held_share: float = 0.0  # how often the GIL was held when a thread woke up and asked for it
    consumer: Consumer = field(default_factory=Consumer)
    threads: tuple[OtherThread, ...] = ()  # other threads that run Python, the busiest first
    unreadable: int = 0  # images that could not be loaded, as far as that was counted

    @property
    def speed(self) -> float:
        """Samples a second that the consumer took."""
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
    def consumer_speed(self) -> float | None:
        """Samples a second that the consumer could take if it never waited; None where it only takes batches."""
        return self.speed / self.consumer_share if self.consumer_share >= _NO_CONSUMER else None

    @property
    def headroom(self) -> float:
        """Speed of the loader relative to that of the consumer."""
        return self.loader_speed / (self.consumer_speed or self.speed or 1.0)

    @property
    def all_busy(self) -> bool:
        """Whether the decoding threads had something to do nearly all the time."""
        return self.busy_share >= _ALL_BUSY

    @property
    def lacks_threads(self) -> bool:
        """Whether there are CPUs for more decoding threads, which would have work."""
        return self.setup.threads < self.setup.cpus and self.all_busy

    @property
    def waiting_for_files(self) -> float:
        """Share of the decoding threads' busy time in which they waited for a disk or a store."""
        return self.stages.get("read", 0.0) + self.stages.get("remote", 0.0)

    @property
    def mostly_converts(self) -> bool:
        """Whether Pillow takes longer for the images that are left to it than the core for the others."""
        return self.stages.get("convert", 0.0) > self.stages.get("decode", 0.0)

    @property
    def others_busy(self) -> bool:
        """Whether other Python threads have work."""
        return sum(thread.busy_share for thread in self.threads) >= _OTHERS_BUSY


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """One verdict, one remedy, and the figures behind them.

    Attributes:
        verdict: What limits the speed: ``storage-bound``, ``cold-cache``, ``thread-bound``, ``decode-bound``,
            ``consumer-bound``, ``transform-bound``, ``gil-bound``, ``balanced``, or ``unknown`` after too few batches.
        sentence: The verdict in words, with its figures.
        remedy: The first thing to do.
        evidence: All figures of the diagnosis.
    """

    verdict: Verdict
    sentence: str
    remedy: str
    evidence: Evidence

    @property
    def images_per_second(self) -> float:
        """Samples that the consumer took a second."""
        return self.evidence.speed

    @property
    def loader_images_per_second(self) -> float:
        """Samples a second that the loader could make beside this consumer."""
        return self.evidence.loader_speed

    @property
    def consumer_images_per_second(self) -> float | None:
        """Samples a second that the consumer could take if it never waited; None where it only takes batches."""
        return self.evidence.consumer_speed

    def lines(self) -> list[str]:
        """Return the report as a few lines of text."""
        lines = [f"{self.verdict}: {self.sentence}", f"remedy: {self.remedy}"]
        e = self.evidence
        if not e.batches:
            return lines
        shares = (
            f"waits for batches {e.wait_share:.0%}, for the interpreter {e.gil_share:.0%}, works {e.consumer_share:.0%}"
        )
        top = "" if e.consumer_speed is None else f"; without waiting it would take {e.consumer_speed:.0f}/s"
        loader = f"the loader could make {e.loader_speed:.0f}/s"
        return [*lines, f"{e.speed:.0f} images/s over {e.batches} batches; the consumer {shares}{top}; {loader}"]

    def document(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {
            "verdict": self.verdict,
            "sentence": self.sentence,
            "remedy": self.remedy,
            "images_per_second": round(self.images_per_second, 1),
            "loader_images_per_second": round(self.loader_images_per_second, 1),
            "consumer_images_per_second": self.consumer_images_per_second and round(self.consumer_images_per_second, 1),
            "evidence": asdict(self.evidence),
        }


def decide(evidence: Evidence) -> DoctorReport:
    """Return what limits the speed, and what to do first."""
    verdict = _verdict(evidence)
    return DoctorReport(verdict, *WORDS[verdict](evidence), evidence)


def _verdict(e: Evidence) -> Verdict:
    if e.batches < _LEAST_BATCHES or e.seconds <= 0:
        return "unknown"
    if _others_hold_the_gil(e):
        return "gil-bound"
    return _loader_verdict(e) if e.wait_share >= _WAITS else _consumer_verdict(e)


def _others_hold_the_gil(e: Evidence) -> bool:
    if e.gil_held_share < _GIL_HELD or not e.others_busy:
        return False
    # Requests to a store and decoding by Pillow run in Python, and wait for the GIL, too.
    in_python = e.stages.get("remote", 0.0) + e.stages.get("convert", 0.0)
    with_cpu = max(0.1, 1 - e.consumer.queue_share)  # time without a CPU is not lost to the GIL
    lost = e.gil_share + e.consumer_share * min(1.0, e.consumer.blocked_share / with_cpu)
    return lost >= _GIL_LOST or (e.wait_share >= _WAITS and in_python >= _IN_PYTHON)


def _loader_verdict(e: Evidence) -> Verdict:
    if e.waiting_for_files >= _FILES and 1 - e.cpu_share - e.queue_share >= _OFF_CPU:  # and not for a CPU
        return "cold-cache" if _comes_from_memory_next_time(e) else "storage-bound"
    spare = e.setup.cpus - e.process_cpus
    if not e.all_busy or (e.lacks_threads and spare > 0.25):
        return "thread-bound"
    return "decode-bound"


def _comes_from_memory_next_time(e: Evidence) -> bool:
    files = e.files
    if files.remote or files.size_bytes is None or files.memory_bytes is None:
        return False
    if files.cached_before is None or files.cached_after is None or files.cached_before >= _MOST_CACHED:
        return False
    newly_cached = (files.cached_after - files.cached_before) * files.size_bytes
    read = min(e.bytes_per_second * e.seconds, (1 - files.cached_before) * files.size_bytes)
    return newly_cached >= _KEPT * read and files.size_bytes * (1 - files.cached_after) <= files.memory_bytes


def _consumer_verdict(e: Evidence) -> Verdict:
    if e.wait_share >= _WAITS_A_LITTLE:
        return "balanced"
    if e.consumer.cpu_share + e.consumer.queue_share < _COMPUTES:
        return "consumer-bound"
    if e.gil_held_share >= _GIL_HELD and not e.others_busy:
        return "gil-bound"
    return "consumer-bound" if e.setup.accelerator else "transform-bound"


def _times(factor: float) -> str:
    return f"more than {_MANY:.0f}x" if factor > _MANY else f"{factor:.1f}x"


def _unknown(e: Evidence) -> tuple[str, str]:
    sentence = f"only {e.batches} batches were taken after the first ones, too few to say"
    return sentence, "let the loop run for a few dozen batches, better a few seconds"


def _waits(e: Evidence) -> str:
    if e.consumer_speed is None:
        return "batches are taken as soon as they are there"
    faster = e.consumer_speed / e.speed
    could = f", and could take {_times(faster)} as many images" if faster > 1.05 else ""
    return f"the consumer waits {e.wait_share:.0%} of its time{could}"


def _storage_bound(e: Evidence) -> tuple[str, str]:
    kind = "the store" if e.files.remote else "the disk"
    took = f"{e.waiting_for_files:.0%} of the decoding threads' time"
    rate = f"{format_size(e.bytes_per_second)}/s"
    sentence = f"{took} is waiting for {kind} ({e.files.name}), which gives {rate}; {_waits(e)}"
    return sentence, _store_remedy(e) if e.files.remote else _disk_remedy(e)


def _disk_remedy(e: Evidence) -> str:
    if e.setup.threads <= 2 * e.setup.cpus:
        more = max(8, 4 * e.setup.cpus)
        return f"more reads at a time: threads={more}; threads that wait for a disk cost no CPU"
    return f"a faster disk, cache=stoker.MemoryCache(SIZE), or fewer bytes: {_smaller(e)}"


def rebuild_command(dataset: str, options: str, rejects: int, *, loose: bool) -> str:
    """Return the command that makes a new dataset of another, and accepts as many rejects as are known."""
    accept = f" --max-rejects {rejects}" if rejects else ""
    return f"stoker {'build' if loose else 'repack'} {dataset} NEW{options and ' '}{options}{accept}"


def _rebuild(e: Evidence, options: str = "") -> str:
    dataset = shlex.quote(e.files.name) if e.files.is_directory else "DATASET"
    return rebuild_command(dataset, options, e.unreadable, loose=e.files.loose)


def _smaller(e: Evidence) -> str:
    if e.files.pixels:
        return "build again with fewer pixels (--img-size), or with JPEGs, which take a tenth of the bytes"
    return f"{_rebuild(e, '--resize short:256')}, which is lossy"


def _store_remedy(e: Evidence) -> str:
    # Half of the budget is requested at a time.
    if e.setup.ahead_bytes < 2 * e.setup.connections * e.sample_bytes:
        size = format_size(8 * e.setup.connections * e.sample_bytes)
        return f"the budget keeps most connections idle: read_ahead=stoker.ReadAhead({size!r}); costs that memory"
    if e.setup.connections <= _FEW_CONNECTIONS:
        more = 4 * e.setup.connections
        return f"ask for more at a time: read_ahead=stoker.ReadAhead(connections={more}); costs memory, no bytes"
    if e.setup.shuffle == "full":
        how = "fewer and longer requests"
        return f"{how}: shuffle=stoker.BlockShuffle(...); stoker.order.shuffle_quality measures how well it mixes"
    if not e.setup.cached:
        return "cache=stoker.NodeCache(DIRECTORY, SIZE) keeps what was fetched: from the second epoch on it is local"
    return f"more connections (read_ahead=), or smaller images: {_smaller(e)}"


def _cold_cache(e: Evidence) -> tuple[str, str]:
    size = format_size(e.files.size_bytes or 0)
    took = f"{e.waiting_for_files:.0%} of the decoding threads' time is waiting for the disk"
    cold = f"only {e.files.cached_before or 0:.0%} of the {size} were in memory; {_waits(e)}"
    remedy = "the next epoch is faster by itself, as all of it fits; to spare the first, read the files once before it"
    if e.files.is_directory:
        remedy += f": find {shlex.quote(e.files.name)} -type f -exec cat {{}} + > /dev/null"
    return f"{took}: {cold}", remedy


def _thread_bound(e: Evidence) -> tuple[str, str]:
    threads, cpus = e.setup.threads, e.setup.cpus
    if e.lacks_threads:
        sentence = f"{threads} of {cpus} CPUs may decode, and {'it is' if threads == 1 else 'they are'}"
        sentence += f" {e.busy_share:.0%} busy; {_waits(e)}"
        return sentence, f"threads={cpus}, or leave threads= out: up to {cpus / threads:.1f}x"
    sentence = f"the decoding threads have nothing to do {1 - e.busy_share:.0%} of the time, and yet {_waits(e)}"
    return sentence, "more batches ahead (prefetch=8) or larger ones; short epochs begin with an empty pipeline each"


def _decode_bound(e: Evidence) -> tuple[str, str]:
    stages = sorted(e.stages.items(), key=lambda item: -item[1])
    name, share = stages[0] if stages else ("decode", 0.0)
    sentence = f"{share:.0%} of the decoding threads' time is {_STAGES.get(name, name)}, "
    sentence += f"on {e.setup.threads} threads for {e.setup.cpus_text}; {_waits(e)}"
    if e.mostly_converts:
        sentence += f"; {e.pillow_share:.0%} of the images come from Pillow, under the GIL"
    if e.other_cpus is not None and e.other_cpus >= 0.4 * e.setup.cpus:
        sentence += f"; other programs use {e.other_cpus:.1f} of the CPUs"
    return sentence, _decode_remedy(e)


def _decode_remedy(e: Evidence) -> str:
    if e.mostly_converts:
        if e.setup.missing:
            return "; ".join(e.setup.missing)
        return f"store GIF, TIFF, BMP and the like once in a format that the core decodes: {_rebuild(e)}"
    if e.files.pixels:
        spared = "; check=False spares their checksums" if e.stages.get("check", 0.0) else ""
        return f"more CPUs, or fewer pixels (--img-size of a new build): these are pixels, nothing is decoded{spared}"
    tried = "'stoker doctor DATASET' measures what each of these brings"
    fast = 'decode="fast" (other pixels), or ' if e.setup.decode == "exact" else ""
    lossy = f"{_rebuild(e, '--resize short:256')} (lossy)"
    return f"{fast}{_rebuild(e, '--recipe restart')} (no loss) or {lossy}; {tried}"


def _headroom(e: Evidence) -> str:
    if e.headroom < 1.05:
        return "the loader is about as fast"
    return f"the loader has headroom: it could make {_times(e.headroom)} as many images"


def _consumer_bound(e: Evidence) -> tuple[str, str]:
    sentence = f"the consumer takes {e.consumer_share:.0%} of the time, {e.consumer.cpu_share:.0%} of that on a CPU"
    busy = ", ".join(f"{thread.name!r} {thread.busy_share:.0%}" for thread in e.threads if thread.busy_share >= 0.1)
    beside = f"; other Python threads are busy: {busy}" if busy else ""
    remedy = "nothing at the input: only a faster step (device, model, precision, larger batches) makes this faster"
    return f"{sentence}{beside}; {_headroom(e)}", f"{remedy}; {_PY_SPY}"


def _transform_bound(e: Evidence) -> tuple[str, str]:
    share = min(1.0, e.consumer.cpu_share + e.consumer.queue_share) * e.consumer_share
    sentence = f"{share:.0%} of the time the loop itself computes on a CPU between batches; {_headroom(e)}"
    remedy = "if it changes images there, let the loader do it (crops, flips, colours, float output) on its threads"
    return sentence, f"{remedy}, or do it for the whole batch on the device; {_PY_SPY}"


def _gil_bound(e: Evidence) -> tuple[str, str]:
    held = f"the interpreter's lock is taken {e.gil_held_share:.0%} of the time"
    if e.others_busy:
        first = e.threads[0]
        sentence = f"{held}: thread {first.name!r} is busy {first.busy_share:.0%} of it, and the loop waits for it"
        return sentence, f"move {first.name!r} into a process of its own, or stop it while training; {_PY_SPY}"
    sentence = f"{held}, by the loop itself, which is on a CPU {e.consumer.cpu_share:.0%} of its time; {_headroom(e)}"
    return sentence, f"vectorise the loop's plain Python, or move it into a process of its own; {_PY_SPY}"


def _balanced(e: Evidence) -> tuple[str, str]:
    sentence = f"loader and consumer are about equally fast: it waits {e.wait_share:.0%} of its time for batches"
    return sentence, "nothing single helps: both the input and the step would have to become faster"


WORDS: Mapping[Verdict, Callable[[Evidence], tuple[str, str]]] = {
    "unknown": _unknown,
    "storage-bound": _storage_bound,
    "cold-cache": _cold_cache,
    "thread-bound": _thread_bound,
    "decode-bound": _decode_bound,
    "consumer-bound": _consumer_bound,
    "transform-bound": _transform_bound,
    "gil-bound": _gil_bound,
    "balanced": _balanced,
}
"""For each verdict, a function that returns the sentence with its figures, and the remedy."""
