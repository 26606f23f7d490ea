"""One case in a process of its own: ``python -m stoker.inspect.bench.reading CASE SPEC FOLDER``, the first two as JSON.

It warms up for as long as a turn takes, a second at most, and then takes turns; see `stoker.inspect.bench.turns`. Cases
share no threads, imports or memory, and are not started again for each round.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from stoker.inspect.bench.cases import BenchSpec, Case
from stoker.inspect.bench.images import BenchImages
from stoker.storage import drop_from_page_cache

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
        """Use up what was made ahead before this turn, and get threads going that were stopped.

        It ends with the first batch that had to be waited for; what was made ahead comes in no time.
        """
        began = before = time.perf_counter()
        while (now := time.perf_counter()) - began < seconds:
            if now - began >= _LEAD_IN * seconds and now - before >= _IS_WAITING * self._batch_seconds:
                break
            before = now
            next(self._batches)

    def measure(self, seconds: float, images: int | None = None) -> dict[str, Any]:
        """Read for at least ``seconds``, or until so many images were read."""
        cpu, read, batches = time.process_time(), 0, 0
        began = time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds and (images is None or read < images):
            read += next(self._batches)
            batches += 1
        self._batch_seconds = elapsed / batches
        return {"images": read, "seconds": elapsed, "cpu_seconds": time.process_time() - cpu}


def turn(meter: Meter, seconds: float, images: int, cold: list[Path] | None) -> dict[str, Any]:
    """Take one turn; a cold one is one pass over the images at most, because a second would not be cold."""
    meter.lead_in(seconds)
    if cold is None:
        return meter.measure(seconds)
    # Here and not in the process that hands out the turns: the line above has just read some of the files.
    still_cached = drop_from_page_cache(cold)
    return {**meter.measure(seconds, images), "still_cached": still_cached}


def main(case_json: str, spec_json: str, folder: str) -> None:
    """Serve one case until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print must not look like an answer
    case, spec = Case(**json.loads(case_json)), BenchSpec(**json.loads(spec_json))
    images = BenchImages.read(folder)
    meter = Meter(importlib.import_module(case.module).batches(spec, images, case))
    count = images.read_by(case)
    meter.warm_up(min(_WARM_UP_SECONDS, spec.seconds), count if case.keeps else 0)
    cold = images.files_read_by(case) if spec.cold else None
    answers.write("{}\n")
    for line in sys.stdin:
        answers.write(json.dumps(turn(meter, float(line), count, cold)) + "\n")
    os._exit(0)  # threads of libraries would be waited for, some of them for ever


if __name__ == "__main__":
    main(*sys.argv[1:])
