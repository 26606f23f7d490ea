"""Threads of which none goes on waiting for a store when the work is given up."""

from __future__ import annotations

import mmap
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stoker.storage.stores import stop_waiting_when

if TYPE_CHECKING:
    from collections.abc import Iterator

_USUAL_STACK_BYTES = 8 << 20
_BESIDE_STACK_BYTES = 2 << 20
"""What Python and the C library take for a thread before it runs anything, rounded up."""


@contextmanager
def stoppable_pool(threads: int, name: str) -> Iterator[ThreadPoolExecutor]:
    """Keep a pool of threads while the ``with`` block runs.

    Whoever leaves the block early, with Ctrl-C or an error, waits for at most one request of each thread; what has not
    begun is dropped.

    Args:
        threads: How many.
        name: What their names begin with.

    Raises:
        MemoryError: Their stacks do not fit.
    """
    check_stacks(threads)
    stop = threading.Event()
    pool = ThreadPoolExecutor(threads, name, initializer=stop_waiting_when, initargs=(stop,))
    try:
        yield pool
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)


def check_stacks(threads: int) -> None:
    """See that so many threads can be started, before the first is.

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
        raise MemoryError(f"no room for {threads} threads: their stacks take {size:,} bytes") from error
