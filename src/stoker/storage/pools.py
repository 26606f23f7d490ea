"""Pools of threads that stop waiting for stores when their work is cancelled."""

from __future__ import annotations

import mmap
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_thread = threading.local()

_USUAL_STACK_BYTES = 8 << 20
_BESIDE_STACK_BYTES = 2 << 20
"""Memory that Python and the C library take for a thread before it runs anything, rounded up."""


def stop_of_this_thread() -> threading.Event | None:
    """Return the event that ends this thread's waits for stores; None if nothing does."""
    stop: threading.Event | None = getattr(_thread, "stop", None)
    return stop


def stop_waiting_when(stop: threading.Event) -> None:
    """Let this thread give up waiting for any store once an event is set, with a ``ClosedError``.

    For threads of a pool whose owner must not wait minutes for them when the work is cancelled.
    """
    _thread.stop = stop


@contextmanager
def stopping_when(stop: threading.Event) -> Iterator[None]:
    """Let this thread give up waiting for any store once an event is set, during the ``with`` block."""
    before = getattr(_thread, "stop", None)
    _thread.stop = stop
    try:
        yield
    finally:
        _thread.stop = before


def new_pool(threads: int, name: str, stop: threading.Event) -> ThreadPoolExecutor:
    """Return a pool of threads that stop waiting for stores once ``stop`` is set; the caller shuts it down."""
    check_stacks(threads)
    return ThreadPoolExecutor(threads, name, initializer=stop_waiting_when, initargs=(stop,))


@contextmanager
def stoppable_pool(threads: int, name: str, *, only_reads: bool = False) -> Iterator[ThreadPoolExecutor]:
    """Keep a pool of threads while the ``with`` block runs.

    Leaving the block early, with Ctrl-C or an error, waits for at most one request of each thread; work that has not
    begun is dropped. If the threads write nothing (``only_reads``), Ctrl-C does not wait for them.

    Raises:
        MemoryError: Their stacks do not fit.
    """
    stop = threading.Event()
    pool = new_pool(threads, name, stop)
    waits = True
    try:
        yield pool
    except KeyboardInterrupt:
        waits = not only_reads
        raise
    finally:
        stop.set()
        pool.shutdown(waits, cancel_futures=True)


def check_stacks(threads: int) -> None:
    """Check that a number of threads can be started, before the first one is.

    Python waits forever for a thread that had no memory left to begin with (CPython issue 140746).

    Raises:
        MemoryError: Their stacks do not fit into the address space that this process may have.
    """
    limit = resource.getrlimit(resource.RLIMIT_STACK)[0]
    stack = threading.stack_size() or (_USUAL_STACK_BYTES if limit == resource.RLIM_INFINITY else limit)
    size = threads * (stack + _BESIDE_STACK_BYTES)
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ).close()
    except OSError as error:
        raise MemoryError(f"no memory for {threads} threads: their stacks take {size:,} bytes") from error
