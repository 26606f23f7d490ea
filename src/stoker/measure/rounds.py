"""Contenders that are started together, take turns, and are all ended whatever happens."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.config import available_cpus
from stoker.measure.figures import LeftOut
from stoker.measure.process import Contender, ContenderFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stoker.measure.rungs import Rung
    from stoker.measure.task import Task
    from stoker.measure.watching import Watcher

_START_SECONDS = {"tensorflow": 6.0, "torch": 5.0}
_OWN_START_SECONDS = 2.5
_SLOW_IMAGES_PER_SECOND = 150.0  # of one thread, for the forecast


@dataclass
class Rounds:
    """Turns of several contenders.

    Attributes:
        rungs: The contenders.
        task: What they are to do.
        seconds: Time of a turn.
        count: Turns of each.
        failed: Contenders that failed, and their last words.
    """

    rungs: Sequence[Rung]
    task: Task
    seconds: float
    count: int
    failed: list[LeftOut] = field(default_factory=list)

    def forecast_seconds(self, images: int) -> float:
        """Return about how long it takes to start everybody, as many at a time as there are CPUs, and to play."""
        fill = images / _SLOW_IMAGES_PER_SECOND / self.task.threads
        starts = sum(
            max((_START_SECONDS.get(module, 0.0) for module, _ in rung.packages), default=0.0)
            + _OWN_START_SECONDS
            + (fill if rung.fills else 0.0)
            for rung in self.rungs
        )
        return starts / available_cpus() + 1.3 * self.count * self.seconds * len(self.rungs)

    def play(self, watcher: Watcher) -> list[Contender]:
        """Start all, have them take their turns, end them, and return those that have not failed."""
        with ExitStack() as running:
            playing = self._started(watcher, running)
            turns = self.count * len(self.rungs)
            for number in range(turns):
                rung = self.rungs[number % len(self.rungs)]
                if rung.key in playing:
                    watcher.turn(number, turns, rung.name)
                    if not self._try(rung, lambda one=playing[rung.key]: one.take_turn(self.seconds)):  # type: ignore[misc]
                        del playing[rung.key]
        return list(playing.values())

    def _started(self, watcher: Watcher, running: ExitStack) -> dict[str, Contender]:
        begun: list[Contender] = []
        ready: dict[str, Contender] = {}
        for number, rung in enumerate(self.rungs):
            while len(begun) < min(len(self.rungs), number + available_cpus()):
                begun.append(running.enter_context(Contender(self.rungs[len(begun)], self.task, self.seconds)))
            watcher.starting(number, len(self.rungs), rung.name)
            if self._try(rung, begun[number].wait_until_ready):
                ready[rung.key] = begun[number]
        return ready

    def _try(self, rung: Rung, act: Callable[[], None]) -> bool:
        try:
            act()
        except ContenderFailed as failure:
            self.failed.append(LeftOut(rung.key, rung.name, rung.group, f"failed: {failure}", failed=True))
            return False
        return True
