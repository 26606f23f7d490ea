"""The programs of rivals as the harness of ``stoker bench`` runs them, and what a turn costs: memory, and noise."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.rivals.serving import descendants, tree_seconds
from stoker.inspect.measuring import Program

if TYPE_CHECKING:
    from collections.abc import Sequence

_SAMPLING_SECONDS = 0.25


class RivalProgram(Program):
    """A program of a rival, with all of its processes.

    Attributes:
        peak_mb: Largest memory that was seen while it warmed up and after its turns.
    """

    def __init__(self, command: Sequence[str], log: Path, variables: dict[str, str]) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(command, log.open("w+b"), variables)
        self.peak_mb = 0.0

    def members(self) -> set[int]:
        """The process and its living descendants."""
        return {self.pid} | descendants(self.pid)

    def wait_until_ready(self) -> None:
        """Wait until it has warmed up, and look at its memory meanwhile.

        Raises:
            ProgramFailed: It cannot be used.
        """
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(done,))
        watcher.start()
        try:
            super().wait_until_ready()
        finally:
            done.set()
            watcher.join()
        self._look_at_memory()

    def take_turn(self, seconds: float) -> dict[str, Any]:
        """Have it read, and add ``other_cores``: how many cores other processes kept busy meanwhile.

        Raises:
            ProgramFailed: It has no answer.
        """
        busy, began = busy_seconds() - tree_seconds(self.members()), time.perf_counter()
        figures = super().take_turn(seconds)
        elapsed = time.perf_counter() - began
        others = busy_seconds() - tree_seconds(self.members()) - busy
        self._look_at_memory()
        return figures | {"other_cores": max(0.0, others) / elapsed}

    def end(self) -> None:
        """End it and all of its processes."""
        left = self.members()
        super().end()
        for pid in left:  # some may have made a group of their own
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(_SAMPLING_SECONDS):
            self._look_at_memory()

    def _look_at_memory(self) -> None:
        self.peak_mb = max(self.peak_mb, sum(map(proportional_mb, self.members())))


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
