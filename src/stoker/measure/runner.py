"""One contender in a process of its own: ``python -m stoker.measure.runner NAME TASK-AS-JSON``.

It warms up, says ``ready``, and then for each line ``SECONDS`` on its standard input reads batches for that long and
answers with one line of JSON. Taking turns line by line, contenders are measured side by side without sharing
threads, imports or memory, and without being started anew for each round.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from stoker.feed import open_dataset
from stoker.measure.machine import tree_cpu_seconds
from stoker.measure.task import Task
from stoker.storage.page_cache import drop_from_page_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

_WARM_UP_SECONDS = 1.0


def measure(batches: Iterator[int], seconds: float) -> dict[str, Any]:
    """Read batches for at least ``seconds``; return images, seconds and CPU seconds (None where unknown)."""
    before = tree_cpu_seconds(os.getpid())
    images, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        images += next(batches)
    after = tree_cpu_seconds(os.getpid())
    cpu = None if before is None or after is None else after - before
    return {"images": images, "seconds": elapsed, "cpu_seconds": cpu}


def main(name: str, task: str) -> None:
    """Serve one contender until standard input ends."""
    module = importlib.import_module(f"stoker.measure.contenders.{name}")
    work = Task(**json.loads(task))
    shards = [shard.local_path for shard in open_dataset(work.dataset, work.split).shards] if work.cold else []
    batches: Iterator[int] = module.batches(work)
    measure(batches, _WARM_UP_SECONDS)
    _say("ready")
    for line in sys.stdin:
        measure(batches, float(line) / 10)  # threads that stood still while others ran get going again
        # Here and not in the process that hands out the turns: the line above has just read some of the files.
        still_cached = drop_from_page_cache(shards) if work.cold else None
        _say(json.dumps({**measure(batches, float(line)), "still_cached": still_cached}))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
