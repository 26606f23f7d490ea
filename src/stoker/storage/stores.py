"""Which scheme leads to which store; each store is opened once in a process."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from stoker.storage.patient import PatientStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.storage.store import Backend


def _gcs(root: str) -> Backend:
    from stoker.storage.gcs import GcsBackend  # noqa: PLC0415 - its clients are an extra

    return GcsBackend(root)


def _s3(root: str) -> Backend:
    from stoker.storage.s3 import S3Backend  # noqa: PLC0415 - its client is an extra

    return S3Backend(root)


def _hdfs(root: str) -> Backend:
    from stoker.storage.hdfs import HdfsBackend  # noqa: PLC0415 - its client is an extra

    return HdfsBackend(root)


BACKENDS: dict[str, Callable[[str], Backend]] = {"gs": _gcs, "s3": _s3, "hdfs": _hdfs}
"""What opens the stores of each scheme."""

_thread = threading.local()
_lock = threading.Lock()
_opened: dict[tuple[int, str], PatientStore] = {}
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def store_named(root: str) -> PatientStore:
    """Return the store of a scheme and bucket such as ``s3://photos``; a forked process gets one of its own.

    Raises:
        ConfigError: The client that it needs is not installed.
    """
    wanted = (os.getpid(), root)
    with _lock:
        if wanted not in _opened:
            _opened[wanted] = PatientStore(BACKENDS[root.partition("://")[0]](root))
        store = _opened[wanted]
    stop = getattr(_thread, "stop", None)
    return store if stop is None else store.stoppable(stop)


def stop_waiting_when(stop: threading.Event) -> None:
    """Let this thread give up waiting for any store once an event is set, with a ``ClosedError``.

    For the threads of a pool, whose owner must not wait minutes for them when the work is cancelled.
    """
    _thread.stop = stop
