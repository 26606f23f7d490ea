"""How long is waited, and how many requests go out at a time."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import ClosedError
from stoker.storage.backend import StoreError
from stoker.storage.retrying import Backoff, RateLimit

FAILED = StoreError("503", busy=True)


def total_wait(backoff: Backoff, error: StoreError) -> float:
    """Return how long is waited before giving up, if every request fails at once."""
    now = 0.0
    while (wait := backoff.after(error, now)) is not None:
        now += wait
    return now


@given(st.booleans())
def test_a_store_that_answered_is_waited_for_two_minutes(answered: bool) -> None:
    assert 120 <= total_wait(Backoff(answered=answered), FAILED) <= 130


def test_a_store_that_never_answered_is_given_up_soon() -> None:
    silent = StoreError("refused", answered=False)
    assert total_wait(Backoff(answered=False), silent) <= 18  # eight seconds and the longest wait
    assert total_wait(Backoff(answered=True), silent) >= 120


def test_what_cannot_succeed_is_not_tried_again() -> None:
    assert Backoff(answered=True).after(StoreError("400", retry=False), 0.0) is None


def test_waits_double_and_differ() -> None:
    waits = [[backoff.after(FAILED, 0.0) for _ in range(10)] for backoff in (Backoff(answered=True) for _ in range(20))]
    for tries in range(10):
        some = [series[tries] for series in waits]
        longest = min(10.0, 0.1 * 2.0**tries)
        assert all(wait is not None and longest / 2 <= wait <= longest for wait in some)
        assert len(set(some)) > 15


def test_progress_renews_the_back_off() -> None:
    backoff = Backoff(answered=True)
    for _ in range(8):
        backoff.after(FAILED, 0.0)
    backoff.renew()
    wait = backoff.after(FAILED, 1000.0)
    assert wait is not None
    assert wait <= 0.1


class Users:
    """Threads that hold turns until they are told to leave."""

    def __init__(self, limit: RateLimit) -> None:
        self._limit, self._leave, self._entered = limit, threading.Event(), threading.Semaphore(0)
        self._threads: list[threading.Thread] = []

    def come(self, count: int) -> int:
        """So many more want a turn; return how many of all those outside have got one."""
        self._threads += [threading.Thread(target=self._hold) for _ in range(count)]
        for thread in self._threads[-count:]:
            thread.start()
        got = 0
        while self._entered.acquire(timeout=0.3):
            got += 1
        return got

    def go(self) -> None:
        self._leave.set()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def _hold(self) -> None:
        with self._limit.turn(threading.Event()):
            self._entered.release()
            self._leave.wait(10)


def test_a_busy_store_is_sent_half_of_what_it_was_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("stoker.storage.retrying.time.monotonic", lambda: clock[0])
    limit = RateLimit()
    users = Users(limit)
    assert users.come(32) == 32
    for _ in range(50):  # answers to what was on its way say nothing new
        limit.failed(busy=True, answered=True)
    assert limit.limit == 16
    users.go()
    for _ in range(20):
        clock[0] += 1.0
        limit.failed(busy=True, answered=True)
    assert limit.limit == 1
    answers = 0
    while limit.limit < 32:
        limit.succeeded()
        answers += 1
    assert answers < 600
    limit.failed(busy=False, answered=True)  # what is broken is not busy
    assert limit.limit >= 32


def test_no_more_turns_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("stoker.storage.retrying.time.monotonic", lambda: clock[0])
    limit = RateLimit()
    first = Users(limit)
    assert first.come(8) == 8
    limit.failed(busy=True, answered=True)
    first.go()
    second = Users(limit)
    assert second.come(7) == 4
    second.go()


def test_stop_ends_the_wait_for_a_turn() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(ClosedError), RateLimit().turn(stop):
        pass
