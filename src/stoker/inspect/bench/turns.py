"""Programs that are measured in turns: all but one are stopped at any time. The one harness of all benchmarks.

A program warms up, prints one line of JSON, and then answers each line ``SECONDS`` on its standard input with one line
of JSON: ``images``, ``seconds`` and ``cpu_seconds`` of what it read in that time. `take_turns` goes round after round,
so that a machine whose speed drifts favours none of them.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import IO, Self

_ANSWER_SECONDS = 600.0
"""For a warm-up, or for an answer in addition to the seconds of its turn; what takes longer hangs."""


class ProgramFailed(Exception):  # noqa: N818 - it says what happened
    """A program ended or does not answer; the message is the last line it printed."""


class Program:
    """A running program, stopped except while it warms up or has its turn.

    Args:
        command: Its words.
        log: An empty binary file for its standard error; closed with the program.
        environment: Its environment variables; None: those of this process.

    Attributes:
        ready: What it printed when it had warmed up.
        pid: Number of its process, and of the group of all its processes.
    """

    def __init__(self, command: Sequence[str], log: IO[bytes], environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        self._process = subprocess.Popen(  # noqa: S603 - a program of ours
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
            process_group=0,  # so that its workers are stopped and ended with it
        )
        self.pid = self._process.pid
        self.ready: dict[str, Any] = {}

    def wait_until_ready(self) -> None:
        """Wait until it has warmed up.

        Raises:
            ProgramFailed: It cannot be used.
        """
        self.ready = self._answer(_ANSWER_SECONDS)
        self._signal(signal.SIGSTOP)

    def take_turn(self, seconds: float) -> dict[str, Any]:
        """Let it read for so long, and return its answer.

        Raises:
            ProgramFailed: There is none.
        """
        assert self._process.stdin is not None
        self._signal(signal.SIGCONT)
        with suppress(BrokenPipeError):  # it has ended, which the missing answer says
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        answer = self._answer(_ANSWER_SECONDS + 10 * seconds)
        self._signal(signal.SIGSTOP)
        return answer

    def end(self) -> None:
        """End it and all processes of its group."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def _answer(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            raise ProgramFailed(f"it did not answer for {seconds:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self._log.seek(0)
            lines = self._log.read().decode("utf-8", "replace").split("\n")
            said = [text.strip() for text in lines if text.strip()]
            raise ProgramFailed(said[-1] if said else f"it ended with code {self._process.poll()} and printed nothing")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended, and its workers too
            os.killpg(self.pid, number)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        for pipe in (self._process.stdin, self._process.stdout, self._log):
            with suppress(BrokenPipeError):
                pipe.close()  # type: ignore[union-attr]


def take_turns(
    names: Sequence[str], rounds: int, turn: Callable[[str], None], failed: Callable[[str, ProgramFailed], None]
) -> None:
    """Give each program its turn, round after round; one that fails has no more turns.

    Args:
        names: Of the programs.
        rounds: Turns of each.
        turn: Has the program of a name take its turn.
        failed: Called with the name of a program that failed, and why.
    """
    left = list(names)
    for _ in range(rounds):
        for name in tuple(left):
            try:
                turn(name)
            except ProgramFailed as failure:
                left.remove(name)
                failed(name, failure)
