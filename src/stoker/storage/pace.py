"""How soon to ask again, and how much at a time."""

from __future__ import annotations

import random
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stoker.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.storage.store import StoreError

MOST_AT_ONCE = 1024
"""Requests at a time to a store that never was busy; those who ask have smaller limits of their own."""

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 10.0
_TRIES_AT_LEAST = 6
_SECONDS = 120.0
_UNANSWERED_SECONDS = 8.0
_CALM_SECONDS = 0.5
_STOP_LOOK_SECONDS = 0.2


class Patience:
    """The waits of one request: exponential back-off with jitter.

    Args:
        answered: Whether the store has ever answered; one that has not is probably not there.
    """

    def __init__(self, *, answered: bool) -> None:
        self._answered = answered
        self._since: float | None = None
        self.tries = 0

    def renew(self) -> None:
        """Forget the failures: there was progress."""
        self._answered, self._since, self.tries = True, None, 0

    def after(self, error: StoreError, now: float) -> float | None:
        """Return the seconds to wait after a failure; None to give up.

        Args:
            error: What happened.
            now: Time of a monotonic clock, in seconds.
        """
        self.tries += 1
        self._answered |= error.answered
        self._since = now if self._since is None else self._since
        limit = _SECONDS if self._answered else _UNANSWERED_SECONDS
        if not error.retry or (now - self._since > limit and self.tries >= _TRIES_AT_LEAST):
            return None
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (self.tries - 1))
        return wait * random.uniform(0.5, 1)  # noqa: S311 - so that those who failed together do not come back together


class Pace:
    """How many requests a store is sent at a time: additive increase, multiplicative decrease, as TCP does.

    When the store says that it is busy, half of what it was sent at a time is allowed, and half of that when it says so
    again; at most once in half a second, because answers to what was on its way say nothing new. For as many answers as
    are allowed at a time, one more is. So 32 are back after some 500 answers, without another burst. Any thread.
    """

    def __init__(self) -> None:
        self._limit = float(MOST_AT_ONCE)
        self._under_way = self._most = 0  # now, and the most since it was halved
        self._halved = 0.0
        self._changed = threading.Condition()
        self.answered = False
        """Whether the store has ever answered."""

    @property
    def limit(self) -> float:
        """Requests that may be under way."""
        return self._limit

    @contextmanager
    def turn(self, stop: threading.Event) -> Iterator[None]:
        """Wait until one more request may be made, and count it while it is under way.

        Raises:
            ClosedError: ``stop`` is set.
        """
        with self._changed:
            while self._under_way >= self._limit and not stop.is_set():
                self._changed.wait(_STOP_LOOK_SECONDS)
            if stop.is_set():
                raise ClosedError("no more requests are made: what they were for is closed")
            self._under_way += 1
            self._most = max(self._most, self._under_way)
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify()

    def succeeded(self) -> None:
        """Note an answer."""
        self.answered = True
        if self._limit < MOST_AT_ONCE:
            with self._changed:
                self._limit = min(MOST_AT_ONCE, self._limit + 1 / self._limit)
                self._changed.notify()

    def failed(self, *, busy: bool, answered: bool) -> None:
        """Note a failure."""
        self.answered |= answered
        if not busy:
            return
        with self._changed:
            now = time.monotonic()
            if now - self._halved >= _CALM_SECONDS:
                self._limit, self._halved = max(1.0, min(self._limit, self._most) / 2), now
                self._most = self._under_way
