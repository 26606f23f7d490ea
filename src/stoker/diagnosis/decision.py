"""From figures to one verdict and one remedy: a pure function, so that every rule can be tested without a clock.

::

    too few batches                                                     unknown
    others hold the interpreter's lock, and the consumer loses by it    gil-bound
    the consumer waits for batches   files are waited for               storage-bound | cold-cache
                                     few threads, all busy              thread-bound
                                     otherwise                          decode-bound
    it hardly waits                  a little                           balanced
                                     its time goes into images          transform-bound
                                     ... into the interpreter           gil-bound
                                     ... into anything else             consumer-bound

Thresholds are far from what plain cases give, because a share that is measured on a busy machine moves by tenths.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from stoker.diagnosis import wording

if TYPE_CHECKING:
    from stoker.diagnosis.evidence import Evidence

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
"""Share of its time that a consumer waits for batches before the loader is what holds it up."""
_WAITS_A_LITTLE = 0.08
_FILES = 0.3
"""Share of the decoding threads' time that reading takes before files are the reason, if the threads do not run."""
_OFF_CPU = 0.25
_GIL_LOST = 0.2
"""Share of its time that a consumer loses to others' Python before they are the reason."""
_GIL_HELD = 0.4
_OTHERS_BUSY = 0.25
_MOST_CACHED = 0.7
"""Share of files in the page cache from which on slow reads are no matter of a cold one."""
_KEPT = 0.4
"""Share of the bytes read that must have come to stay in the page cache for a second pass to be spared them."""
_PLAIN = 0.4
"""Share of the consumer's own time from which on one kind of work is what it does."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One verdict.

    Attributes:
        verdict: What holds the speed down.
        sentence: The same for a person, with its figures.
        remedy: The first thing to do.
    """

    verdict: Verdict
    sentence: str
    remedy: str


def decide(evidence: Evidence) -> Decision:
    """Return what holds the speed down, and what to do first."""
    verdict = _verdict(evidence)
    sentence, remedy = wording.WORDS[verdict](evidence)
    return Decision(verdict, sentence, remedy)


def _verdict(e: Evidence) -> Verdict:
    if e.batches < _LEAST_BATCHES or e.seconds <= 0:
        return "unknown"
    if _others_hold_the_lock(e):
        return "gil-bound"
    return _of_the_loader(e) if e.wait_share >= _WAITS else _of_the_consumer(e)


def _others_hold_the_lock(e: Evidence) -> bool:
    if e.gil_held_share < _GIL_HELD or sum(thread.busy_share for thread in e.threads) < _OTHERS_BUSY:
        return False
    lost = e.gil_share + e.consumer_share * e.consumer_blocked
    # Requests to a store and conversions of odd images are made by Python, which then waits for the lock, too.
    in_python = e.stages.get("remote", 0.0) + e.stages.get("convert", 0.0)
    return lost >= _GIL_LOST or (e.wait_share >= _WAITS and in_python >= _PLAIN)


def _of_the_loader(e: Evidence) -> Verdict:
    if e.waiting_for_files >= _FILES and e.off_cpu >= _OFF_CPU:
        return "cold-cache" if _comes_from_memory_next_time(e) else "storage-bound"
    spare = e.setup.cpus - e.process_cpus
    if not e.all_busy or (e.lacks_threads and spare > 0.25):
        return "thread-bound"
    return "decode-bound"


def _comes_from_memory_next_time(e: Evidence) -> bool:
    files = e.files
    if files.remote or files.size_bytes is None or files.room_bytes is None:
        return False
    if files.cached_before is None or files.cached_after is None or files.cached_before >= _MOST_CACHED:
        return False
    kept = (files.cached_after - files.cached_before) * files.size_bytes
    read = min(e.bytes_per_second * e.seconds, (1 - files.cached_before) * files.size_bytes)
    return kept >= _KEPT * read and files.size_bytes * (1 - files.cached_after) <= files.room_bytes


def _of_the_consumer(e: Evidence) -> Verdict:
    if e.wait_share >= _WAITS_A_LITTLE:
        return "balanced"
    works = e.consumer.works
    meant = works.get("model", 0.0) + works.get("waiting", 0.0)
    if works.get("transform", 0.0) >= max(_PLAIN, meant) or (works.get("waiting", 0.0) >= _PLAIN and e.transformers):
        return "transform-bound"
    if works.get("python", 0.0) >= max(_PLAIN, meant) and e.gil_held_share >= _GIL_HELD:
        return "gil-bound"
    return "consumer-bound"
