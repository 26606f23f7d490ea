"""One case in a process of its own: ``python -m stoker.inspect.bench.reading CASE SPEC FOLDER``, the first two as JSON.

It warms up for as long as a turn takes, a second at most, and then takes turns; see `stoker.inspect.measuring`. Cases
share no threads, imports or memory, and are not started again for each round.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from stoker.inspect.bench.cases import BenchSpec, Case
from stoker.inspect.bench.images import BenchImages
from stoker.inspect.measuring import Meter
from stoker.storage import drop_from_page_cache

if TYPE_CHECKING:
    from pathlib import Path

_WARM_UP_SECONDS = 1.0
"""The most; for as long as a turn takes otherwise."""


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
