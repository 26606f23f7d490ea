"""Which scheme of a URL leads to which store. To add one: a backend like `objects` or `hdfs`, and a row here."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stoker.forks import PerProcess
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


def _web(root: str) -> Backend:
    from stoker.storage.web import WebBackend  # noqa: PLC0415 - takes a tenth of a second

    return WebBackend(root)


BACKENDS: dict[str, Callable[[str], Backend]] = {"gs": _gcs, "s3": _s3, "hdfs": _hdfs, "http": _web, "https": _web}
"""What opens the stores of each scheme."""


@dataclass(slots=True)
class _Stores:
    lock: threading.Lock = field(default_factory=threading.Lock)
    opened: dict[str, RetryingStore] = field(default_factory=dict)


_stores = PerProcess(_Stores)


def open_store(root: str) -> RetryingStore:
    """Return the store of a scheme and bucket such as ``s3://photos``.

    Each is opened once in a process, and a forked process opens one of its own. What a pool of `stoppable_pool` asks
    for stops waiting with the pool.

    Raises:
        ConfigError: The client that it needs is not installed.
    """
    stores = _stores.get()
    with stores.lock:
        if root not in stores.opened:
            stores.opened[root] = RetryingStore(BACKENDS[root.partition("://")[0]](root))
        store = stores.opened[root]
    stop = stop_of_this_thread()
    return store if stop is None else store.stoppable(stop)
