"""Whether the core gives Python's lock away."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def ticks_during(call: Callable[[], object]) -> int:
    """Return how often another thread ran while this one was in a call, of which it makes up to a hundred."""
    ticks: list[int] = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.001):
            ticks.append(1)

    ticker = threading.Thread(target=tick)
    ticker.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)  # seconds: from here on this thread keeps the GIL unless the call gives it away
    try:
        before = len(ticks)
        for _ in range(100):  # a busy machine may starve the other thread for one call, but not for all
            call()
            if len(ticks) > before:
                break
        return len(ticks) - before
    finally:
        sys.setswitchinterval(interval)
        done.set()
        ticker.join()
