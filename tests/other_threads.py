"""What another thread does while a test goes on, and whether the core gives Python's lock away."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def meanwhile(work: Callable[[], object], name: str | None = None) -> Iterator[None]:
    """Call a function again and again in another thread."""
    stop = threading.Event()

    def repeat() -> None:
        while not stop.is_set():
            work()

    thread = threading.Thread(target=repeat, name=name)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def ticks_during(call: Callable[[], object]) -> int:
    """Return how often another thread ran while this one was in a call, of which it makes up to a hundred."""
    ticks: list[int] = []

    def tick() -> None:
        time.sleep(0.001)
        ticks.append(1)

    interval = sys.getswitchinterval()
    with meanwhile(tick):
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
