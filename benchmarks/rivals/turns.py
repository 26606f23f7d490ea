"""Readers and writers take turns, in processes of their own; whoever's turn it is not stands still."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks.rivals.environments import ROOT, surroundings
from benchmarks.rivals.serving import descendants, tree_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAMPLING_SECONDS = 0.25
_PATIENCE_SECONDS = 300.0
"""For a warm-up, or for an answer in addition to the seconds that were asked for."""


class TurnError(Exception):
    """A reader or writer failed; the message is the last it said."""


class Contestant:
    """A running program of a rival, stopped except while it warms up or has its turn."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        self.peak_mb = 0.0
        self.check: dict[str, Any] = {}
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env=surroundings(),
                start_new_session=True,
            )

    def warm_up(self) -> None:
        """Wait until it is ready, and watch its memory meanwhile.

        Raises:
            TurnError: It failed.
        """
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,))
        watcher.start()
        try:
            self.check = self._answer(_PATIENCE_SECONDS)
        finally:
            done.set()
            watcher.join()
        self._stop()

    def take_turn(self, seconds: float) -> dict[str, float]:
        """Measure for so long.

        Raises:
            TurnError: It failed.
        """
        self._signal(signal.SIGCONT)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"go {seconds}\n")
            self._process.stdin.flush()
        said = self._answer(seconds + _PATIENCE_SECONDS)
        self._stop()
        return said

    def _answer(self, patience: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        alarm = threading.Timer(patience, self.end)
        alarm.start()
        try:
            line = self._process.stdout.readline()
        finally:
            alarm.cancel()
        if not line:
            said = [text for text in self._log.read_text(errors="replace").splitlines() if text.strip()]
            raise TurnError(said[-1].strip() if said else "it ended without a word, or did not answer in time")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _stop(self) -> None:
        self._signal(signal.SIGSTOP)
        self._look_at_memory()

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(_SAMPLING_SECONDS):
            self._look_at_memory()

    def _look_at_memory(self) -> None:
        self.peak_mb = max(self.peak_mb, sum(map(proportional_mb, self.members())))

    def members(self) -> set[int]:
        """The process and its living descendants."""
        return {self._process.pid} | descendants(self._process.pid)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        """End it and all of its processes."""
        left = self.members()
        self._signal(signal.SIGKILL)
        for pid in left:  # some may have made a group of their own
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def proportional_mb(pid: int) -> float:
    """Memory of a process in MB; of what it shares, its share."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has just ended
        return 0.0
    return int(text.partition("\nPss:")[2].split()[0]) * 1024 / 1e6


def busy_seconds() -> float:
    """CPU time of all processes of the machine since it was started."""
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
    user, nice, system, irq, softirq = fields[0], fields[1], fields[2], fields[5], fields[6]
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def timed_turn(contestant: Contestant, seconds: float) -> dict[str, float]:
    """A turn, and how many cores other processes kept busy during it.

    Raises:
        TurnError: It failed.
    """
    busy, began = busy_seconds() - tree_seconds(contestant.members()), time.perf_counter()
    said = contestant.take_turn(seconds)
    elapsed = time.perf_counter() - began
    others = busy_seconds() - tree_seconds(contestant.members()) - busy
    return said | {"other_cores": max(0.0, others) / elapsed}
