"""Pools of threads, left early."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from stoker.storage import stoppable_pool

if TYPE_CHECKING:
    from concurrent.futures import Future


def test_ctrl_c_does_not_wait_for_threads_that_only_read() -> None:
    begun, may_end = threading.Event(), threading.Event()
    futures: list[Future[None]] = []

    def decode() -> None:
        begun.set()
        may_end.wait(60)

    def interrupted() -> None:
        with stoppable_pool(1, "test", only_reads=True) as pool:
            futures.append(pool.submit(decode))
            begun.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not futures[0].done()
    may_end.set()
    futures[0].result(60)
