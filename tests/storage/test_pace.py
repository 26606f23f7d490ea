"""How long is waited, and how many requests go out at a time."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import ClosedError
from stoker.storage.pace import MOST_AT_ONCE, Pace, Patience
from stoker.storage.store import StoreError

FAILED = StoreError("503", busy=True)


def total_wait(patience: Patience, error: StoreError) -> float:
    """Return how long is waited before giving up, if every request fails at once."""
    now = 0.0
    while (wait := patience.after(error, now)) is not None:
        now += wait
    return now


@given(st.booleans())
def test_a_store_that_answered_is_waited_for_two_minutes(answered: bool) -> None:
    assert 120 <= total_wait(Patience(answered=answered), FAILED) <= 130


def test_a_store_that_never_answered_is_given_up_soon() -> None:
    silent = StoreError("refused", answered=False)
    assert total_wait(Patience(answered=False), silent) <= 15
    assert total_wait(Patience(answered=True), silent) >= 120


def test_what_cannot_succeed_is_not_tried_again() -> None:
    assert Patience(answered=True).after(StoreError("400", retry=False), 0.0) is None


def test_waits_double_and_differ() -> None:
    waits = [
        [patience.after(FAILED, 0.0) for _ in range(10)] for patience in (Patience(answered=True) for _ in range(20))
    ]
    for tries in range(10):
        some = [one[tries] for one in waits]
        longest = min(10.0, 0.1 * 2.0**tries)
        assert all(wait is not None and longest / 2 <= wait <= longest for wait in some)
        assert len(set(some)) > 15


def test_progress_renews_patience() -> None:
    patience = Patience(answered=True)
    for _ in range(8):
        patience.after(FAILED, 0.0)
    patience.renew()
    wait = patience.after(FAILED, 1000.0)
    assert wait is not None
    assert wait <= 0.1


def test_a_busy_store_is_sent_half_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("stoker.storage.pace.time.monotonic", lambda: clock[0])
    pace = Pace()
    for _ in range(50):  # answers to what was on its way say nothing new
        pace.failed(busy=True, answered=True)
    assert pace.limit == MOST_AT_ONCE / 2
    for _ in range(20):
        clock[0] += 1.0
        pace.failed(busy=True, answered=True)
    assert pace.limit == 1.0
    answers = 0
    while pace.limit < MOST_AT_ONCE:
        pace.succeeded()
        answers += 1
    assert answers < MOST_AT_ONCE**2
    pace.failed(busy=False, answered=True)  # what is broken is not busy
    assert pace.limit == MOST_AT_ONCE


def test_no_more_turns_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("stoker.storage.pace.time.monotonic", lambda: clock[0])
    pace = Pace()
    for _ in range(5):
        clock[0] += 1.0
        pace.failed(busy=True, answered=True)
    allowed = int(pace.limit)
    stop, entered, leave = threading.Event(), threading.Semaphore(0), threading.Event()

    def hold() -> None:
        with pace.turn(stop):
            entered.release()
            leave.wait(10)

    threads = [threading.Thread(target=hold) for _ in range(allowed + 3)]
    for thread in threads:
        thread.start()
    for _ in range(allowed):
        assert entered.acquire(timeout=10)
    assert not entered.acquire(timeout=0.3)
    leave.set()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_stop_ends_the_wait_for_a_turn() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(ClosedError), Pace().turn(stop):
        pass
