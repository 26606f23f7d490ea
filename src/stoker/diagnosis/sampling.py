"""One thread that sleeps, and looks where the others are when it wakes.

How late it wakes tells how often the interpreter's lock was taken: a thread that comes for a free lock has it at once,
and one that comes for a taken one waits until its holder lets go, which Python makes it do every 5 ms. What the thread
waited for a CPU is known to the system, and subtracted.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from stoker.diagnosis.evidence import OtherThread, Spot
from stoker.diagnosis.places import Place, place_of
from stoker.diagnosis.system import Times, queued_seconds, read_times

if TYPE_CHECKING:
    from types import FrameType

    from stoker.diagnosis.evidence import Work
    from stoker.diagnosis.watching import Watch

_SLEEP_SECONDS = 0.008
_LATE_SECONDS = 0.001
_OTHERS_EVERY = 4
_SYSTEM_EVERY = 12
_OWN_THREADS = "stoker-"
_MOST_SPOTS = 8

_Stack = tuple[tuple[int, int], ...]


class Sampler:
    """Looks at a consumer, and at whoever else runs Python, from `start` until `stop`.

    Args:
        watch: Tells which thread is the consumer, and when it is at work.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stoker-doctor", daemon=True)
        self._places: dict[_Stack, tuple[Place, object]] = {}
        self._own: Counter[Place] = Counter()
        self._others: dict[int, Counter[Place]] = {}
        self._names: dict[int, tuple[str, int]] = {}
        self._held = self._slept = 0.0
        self._looked = self._queued = 0.0
        self._at: tuple[int, float, float] | None = None
        self._counted = -1
        self.first: Times | None = None
        self.last: Times | None = None

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; figures are complete when this returns."""
        self._stopping.set()
        self._thread.join()

    @property
    def gil_held_share(self) -> float:
        """How much of the time the interpreter's lock was taken, 0..1."""
        return self._held / self._slept if self._slept else 0.0

    @property
    def queue_share(self) -> float:
        """How much of its time at work the consumer was ready to run, and no CPU was free; 0 where nobody tells."""
        return self._queued / self._looked if self._looked else 0.0

    @property
    def spots(self) -> tuple[Spot, ...]:
        """Where the consumer was, the longest first."""
        return _spots(self._own)

    @property
    def works(self) -> dict[Work, float]:
        """Share of each kind of work in what the consumer did."""
        found: Counter[Work] = Counter()
        for place, count in self._own.items():
            found[place.work] += count
        return {work: count / self._own.total() for work, count in found.items()}

    def others(self) -> tuple[OtherThread, ...]:
        """Return the other threads that ran Python, the busiest first."""
        if self.first is None or self.last is None or self.last.wall <= self.first.wall:
            return ()
        before, after, seconds = self.first.threads, self.last.threads, self.last.wall - self.first.wall
        found = []
        for thread, places in self._others.items():
            name, number = self._names.get(thread, ("", 0))
            busy = sum(after.get(number, (0.0, 0.0))) - sum(before.get(number, (0.0, 0.0)))
            found.append(OtherThread(name, min(1.0, max(0.0, busy / seconds)), next(iter(_spots(places)), None)))
        return tuple(sorted(found, key=lambda one: -one.busy_share))

    def python_threads(self) -> set[int]:
        """Return the system's numbers of all threads that Python knows."""
        own = {self._thread.native_id or 0, self._watch.native_thread or 0}
        return own | {number for _, number in self._names.values()}

    def _run(self) -> None:
        own = self._thread.native_id or 0
        turn, queued = 0, queued_seconds(own)
        while not self._stopping.is_set():
            began = time.perf_counter()
            time.sleep(_SLEEP_SECONDS)  # not Event.wait, which takes locks of its own
            late = time.perf_counter() - began - _SLEEP_SECONDS
            before, queued = queued, queued_seconds(own)
            if not self._watch.live:
                continue
            self._slept += late + _SLEEP_SECONDS
            if late - (queued - before) > _LATE_SECONDS:
                self._held += late + _SLEEP_SECONDS
            self._look(turn)
            if turn % _SYSTEM_EVERY == 0 and self._watch.count != self._counted:  # not when the loop is over
                self._counted = self._watch.count
                self.last = read_times(time.perf_counter(), time.process_time())
                self.first = self.first or self.last
            turn += 1

    def _look(self, turn: int) -> None:
        frames = sys._current_frames()
        frame = frames.get(self._watch.thread or 0)
        if frame is not None and self._watch.at_work:
            self._own[self._place(_below(frame, self._watch.loop))] += 1
            self._look_at_the_queue()
        else:
            self._at = None
        if turn % _OTHERS_EVERY == 0:
            self._look_at_others(frames)

    def _look_at_the_queue(self) -> None:
        """See how long the consumer had no CPU since the last look, if it was at the same batch then."""
        now = (self._watch.given, time.perf_counter(), queued_seconds(self._watch.native_thread or 0))
        if self._at is not None and self._at[0] == now[0] == self._watch.given:
            self._looked += now[1] - self._at[1]
            self._queued += now[2] - self._at[2]
        self._at = now

    def _look_at_others(self, frames: dict[int, FrameType]) -> None:
        for thread in threading.enumerate():
            if thread.ident is None or thread.ident == self._watch.thread or thread.name.startswith(_OWN_THREADS):
                continue
            self._names[thread.ident] = (thread.name, thread.native_id or 0)
            frame = frames.get(thread.ident)
            if frame is not None:
                place = self._place(_of_a_thread(frame))
                self._others.setdefault(thread.ident, Counter())[place] += 1

    def _place(self, chain: list[FrameType]) -> Place:
        # The same stack at the same instructions is the same place, unless names mean something else by then.
        stack = tuple((id(frame.f_code), frame.f_lasti) for frame in chain)
        found = self._places.get(stack)
        if found is None:
            codes = [frame.f_code for frame in chain]  # held, so that their identities stay theirs
            found = self._places[stack] = (_safe_place(chain), codes)
        return found[0]


def _safe_place(chain: list[FrameType]) -> Place:
    """Return where a thread is, whatever the objects there do when they are looked at."""
    try:
        return place_of(chain)
    except Exception:  # noqa: BLE001 - a diagnosis goes on without a place
        code = chain[-1].f_code
        return Place(code.co_qualname, code.co_filename, code.co_firstlineno, "", "other")


def _below(frame: FrameType, loop: frozenset[int]) -> list[FrameType]:
    """Return the frames from the one that has called the loader, or all if that is over, to the one that runs."""
    chain = [frame]
    while id(frame) not in loop and frame.f_back is not None:
        frame = frame.f_back
        chain.append(frame)
    return chain[::-1]


def _of_a_thread(frame: FrameType) -> list[FrameType]:
    """Return the frames of a thread without those of `threading` that have started it."""
    chain = _below(frame, frozenset())
    while len(chain) > 1 and chain[0].f_globals.get("__name__") == "threading":
        del chain[0]
    return chain


def _spots(places: Counter[Place]) -> tuple[Spot, ...]:
    """Return the places of one line and one kind of work as one, the longest first."""
    total = places.total()
    grouped: dict[tuple[str, str, int, Work], Counter[Place]] = {}
    for place, count in places.items():
        grouped.setdefault((place.function, place.file, place.line, place.work), Counter())[place] += count
    found = []
    for group in grouped.values():
        place = group.most_common(1)[0][0]
        share = group.total() / total
        found.append(Spot(place.function, place.file, place.line, place.code, place.work, share))
    return tuple(sorted(found, key=lambda spot: -spot.share)[:_MOST_SPOTS])
