"""One contender in a process of its own: ``python -m stoker.measure.runner KEY TASK-AS-JSON SECONDS``.

It warms up for as long as a turn takes, a second at most, says ``ready``, and then for each line ``SECONDS`` on its
standard input reads batches for that long and answers with one line of JSON. Taking turns line by line, contenders are
measured side by side without sharing threads, imports or memory, and without being started anew for each round.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from stoker.measure.machine import tree_cpu_seconds
from stoker.measure.rungs import Rung, find_rung
from stoker.measure.selection import files_read_by, samples_read_by
from stoker.measure.task import Task
from stoker.storage.page_cache import drop_from_page_cache

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WARM_UP_SECONDS = 1.0
"""The most; for as long as a turn takes otherwise."""
_LEAD_IN = 0.1
_IS_WAITING = 0.2


class Meter:
    """Reads batches and times them.

    Args:
        batches: Number of images of one batch after another, without end.
    """

    def __init__(self, batches: Iterator[int]) -> None:
        self._batches = batches
        self._batch_seconds = 0.0  # as last measured

    def warm_up(self, seconds: float, images: int) -> None:
        """Read for so long, and at least so many images."""
        began, read = time.perf_counter(), 0
        while time.perf_counter() - began < seconds or read < images:
            read += next(self._batches)
        self.measure(seconds / 2)

    def lead_in(self, seconds: float) -> None:
        """Use up what was made ahead while others had their turns, and get threads going that stood still.

        It ends with the first batch that had to be waited for; what was made ahead comes in no time.
        """
        began = before = time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            if now - began >= _LEAD_IN * seconds and now - before >= _IS_WAITING * self._batch_seconds:
                break
            before = now
            next(self._batches)

    def measure(self, seconds: float, images: int | None = None) -> dict[str, Any]:
        """Read for at least ``seconds``, or until so many images were read; CPU seconds are None where unknown."""
        before = tree_cpu_seconds(os.getpid())
        read = batches = 0
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds and (images is None or read < images):
            read += next(self._batches)
            batches += 1
        after = tree_cpu_seconds(os.getpid())
        self._batch_seconds = elapsed / batches
        cpu = None if before is None or after is None else after - before
        return {"images": read, "seconds": elapsed, "cpu_seconds": cpu}


def turn(meter: Meter, seconds: float, samples: int, cold: list[Path] | None) -> dict[str, Any]:
    """Take one turn; a cold one is one pass over the samples at most, because a second would not be cold."""
    meter.lead_in(seconds)
    if cold is None:
        return {**meter.measure(seconds), "still_cached": None}
    # Here and not in the process that hands out the turns: the line above has just read some of the files.
    still_cached = drop_from_page_cache(cold)
    return {**meter.measure(seconds, samples), "still_cached": still_cached}


def main(key: str, work: str, seconds: str) -> None:
    """Serve one contender until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not look like an answer
    rung, task = find_rung(key), Task(**json.loads(work))
    meter = Meter(_contender(rung, task))
    samples = samples_read_by(rung, task)
    meter.warm_up(min(_WARM_UP_SECONDS, float(seconds)), samples if rung.fills else 0)
    cold = list(files_read_by(rung, task)) if task.cold else None
    _say(answers, "ready")
    for line in sys.stdin:
        _say(answers, json.dumps(turn(meter, float(line), samples, cold)))
    answers.flush()
    os._exit(0)  # threads and workers of libraries would be waited for, some of them for ever


def _contender(rung: Rung, task: Task) -> Iterator[int]:
    module = importlib.import_module(f"stoker.measure.contenders.{rung.module}")
    batches: Iterator[int] = module.batches(task, rung.form)
    return batches


def _say(answers: TextIO, line: str) -> None:
    answers.write(line + "\n")
    answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
