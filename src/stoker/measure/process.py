"""A contender's process, as the one that hands out the turns sees it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from stoker.measure.rungs import Rung
    from stoker.measure.task import Task

_PATIENCE_SECONDS = 600.0
"""For a start or for a turn; what takes longer hangs."""


class ContenderFailed(Exception):  # noqa: N818 - it says what happened
    """A contender ended, or does not answer; the message is its last line."""


class Contender:
    """A contender that has been started.

    Args:
        rung: Which.
        task: What it is to do.
        seconds: How long its turns will be.

    Attributes:
        rung: As given.
        results: What it answered, one for each turn.
    """

    def __init__(self, rung: Rung, task: Task, seconds: float) -> None:
        work = json.dumps(dataclasses.asdict(task))
        self.rung = rung
        self.results: list[dict[str, Any]] = []
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(  # noqa: S603 - our own module under our own interpreter
            [sys.executable, "-P", "-m", "stoker.measure.runner", rung.key, work, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
            process_group=0,  # so that its workers are ended with it
        )

    def wait_until_ready(self) -> None:
        """Wait until it has warmed up.

        Raises:
            ContenderFailed: It cannot be used.
        """
        self._answer()

    def take_turn(self, seconds: float) -> None:
        """Have it read for so long, and note its answer.

        Raises:
            ContenderFailed: It has none.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise ContenderFailed(self._last_words()) from None
        self.results.append(json.loads(self._answer(seconds)))

    def rates(self, per: str) -> tuple[float, ...]:
        """Return images per second of ``seconds`` or ``cpu_seconds``, one for each turn; none where unknown."""
        return tuple(result["images"] / result[per] for result in self.results if result[per])

    def _answer(self, seconds: float = 0.0) -> str:
        assert self._process.stdout is not None
        patience = _PATIENCE_SECONDS + 10 * seconds
        if not select.select([self._process.stdout], [], [], patience)[0]:
            raise ContenderFailed(f"it did not answer for {patience:.0f} s")
        line = self._process.stdout.readline()
        if not line:
            raise ContenderFailed(self._last_words())
        return line

    def _last_words(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"it ended with code {code} and said nothing"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended, and its workers too
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        self._said.close()
