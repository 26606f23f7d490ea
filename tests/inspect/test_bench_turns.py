"""What is timed, and what is not."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stoker.inspect.bench import turn
from stoker.inspect.measuring import Meter, Program, ProgramFailed, in_turns

if TYPE_CHECKING:
    from collections.abc import Iterator

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="it looks at processes in /proc")

READY = 50
SLOW_SECONDS = 0.03


class Pipeline:
    """A reader that had time to make batches ahead: these come at once, the others take their time."""

    def __init__(self) -> None:
        self.ready = 0
        self.read = 0

    def batches(self) -> Iterator[int]:
        while True:
            if self.ready:
                self.ready -= 1
            else:
                time.sleep(SLOW_SECONDS)
            self.read += 1
            yield 10


def test_what_was_made_ahead_is_not_measured() -> None:
    pipeline = Pipeline()
    meter = Meter(pipeline.batches())
    meter.measure(5 * SLOW_SECONDS)
    pipeline.ready = READY
    figures = turn(meter, 10 * SLOW_SECONDS, 1000, None)
    assert pipeline.ready == 0
    assert figures["images"] / figures["seconds"] <= 10 / SLOW_SECONDS


def test_the_lead_in_ends_also_if_everything_is_quick() -> None:
    pipeline = Pipeline()
    meter = Meter(pipeline.batches())
    meter.measure(5 * SLOW_SECONDS)
    pipeline.ready = 10**9
    meter.lead_in(0.05)
    assert pipeline.ready > 0


def test_a_cold_turn_is_one_pass_at_most() -> None:
    pipeline = Pipeline()
    pipeline.ready = 10**9
    figures = turn(Meter(pipeline.batches()), 0.2, 95, [])
    assert figures["images"] == 100
    assert figures["still_cached"] == 0.0


def test_a_warm_up_reads_what_a_cache_is_to_hold() -> None:
    pipeline = Pipeline()
    pipeline.ready = 10**9
    Meter(pipeline.batches()).warm_up(0.01, 10**5)
    assert pipeline.read >= 10**4


def started(program: str) -> Program:
    return Program([sys.executable, "-c", program], tempfile.TemporaryFile())


def wait_for_state(pid: int, state: str) -> None:
    """Wait until a process has a state of ``/proc``; one that has ended is a zombie (Z), or gone (an empty state)."""
    deadline = time.monotonic() + 20
    while True:
        try:
            current = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            current = ""
        if current in (state, ""):
            return
        assert time.monotonic() < deadline, current
        time.sleep(0.001)


@on_linux
def test_a_program_is_stopped_between_its_turns_and_ended_at_last() -> None:
    answer = 'print(\'{"images": 1, "seconds": 1.0, "cpu_seconds": 1.0}\', flush=True)'
    with started(f"print('{{}}', flush=True)\nwhile True:\n    input(); {answer}") as program:
        program.wait_until_ready()
        wait_for_state(program.pid, "T")
        assert program.take_turn(0.1)["images"] == 1
        wait_for_state(program.pid, "T")
    assert not Path(f"/proc/{program.pid}").exists()


def test_a_program_that_fails_has_no_more_turns_and_its_last_line_is_the_reason() -> None:
    failed: dict[str, str] = {}
    with started("print('{}', flush=True); input(); import sys; sys.exit('the shard is gone')") as broken:
        broken.wait_until_ready()

        cases = {"broken": broken.take_turn, "other": lambda seconds: {"images": 1, "seconds": seconds}}
        turns: list[tuple[int, int, str]] = []
        results = in_turns(
            cases, 3, 0.1, lambda *turn: turns.append(turn), lambda name, why: failed.update({name: str(why)})
        )
    assert turns == [(0, 6, "broken"), (1, 6, "other"), (2, 6, "other"), (3, 6, "other")]
    assert results == {"other": [{"images": 1, "seconds": 0.1}] * 3}
    assert failed == {"broken": "the shard is gone"}


def test_a_program_that_ends_without_a_word_is_named_by_its_code() -> None:
    with started("import os; os._exit(7)") as program, pytest.raises(ProgramFailed, match="code 7"):
        program.wait_until_ready()


@on_linux
def test_a_stopped_program_does_not_outlive_a_killed_benchmark() -> None:
    harness = """
import sys, tempfile
from stoker.inspect.measuring import Program
program = Program([sys.executable, "-c", "print('{}', flush=True); input()"], tempfile.TemporaryFile())
program.wait_until_ready()
print(program.pid, flush=True)
input()
"""
    words = [sys.executable, "-c", harness]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as benchmark:
        assert benchmark.stdout is not None
        pid = int(benchmark.stdout.readline())
        wait_for_state(pid, "T")  # as the kernel wakes only what has stopped when its parent ends
        benchmark.kill()
    wait_for_state(pid, "Z")
