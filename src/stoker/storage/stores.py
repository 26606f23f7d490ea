"""Which scheme of a URL leads to which store. To add one: a backend like `objects` or `hdfs`, and a row here."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from stoker.storage.pools import stop_of_this_thread
from stoker.storage.retrying import RetryingStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.storage.backend import Backend


def _gcs(root: str) -> Backend:
    from stoker.storage.objects import GcsBackend  # noqa: PLC0415 - its clients are an extra

    return GcsBackend(root)


def _s3(root: str) -> Backend:
    from stoker.storage.objects import S3Backend  # noqa: PLC0415 - its client is an extra

    return S3Backend(root)


def _hdfs(root: str) -> Backend:
    from stoker.storage.hdfs import HdfsBackend  # noqa: PLC0415 - its client is an extra

    return HdfsBackend(root)


BACKENDS: dict[str, Callable[[str], Backend]] = {"gs": _gcs, "s3": _s3, "hdfs": _hdfs}
"""What opens the stores of each scheme."""

_lock = threading.Lock()
_opened: dict[tuple[int, str], RetryingStore] = {}
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def open_store(root: str) -> RetryingStore:
    """Return the store of a scheme and bucket such as ``s3://photos``.

    Each is opened once in a process, and a forked process opens one of its own. What a pool of `stoppable_pool` asks
    for stops waiting with the pool.

    Raises:
        ConfigError: The client that it needs is not installed.
    """
    wanted = (os.getpid(), root)
    with _lock:
        if wanted not in _opened:
            _opened[wanted] = RetryingStore(BACKENDS[root.partition("://")[0]](root))
        store = _opened[wanted]
    stop = stop_of_this_thread()
    return store if stop is None else store.stoppable(stop)
