"""How long to wait before asking again, and when to stop asking."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker.download.failure import Interruption
    from stoker.download.watcher import Timing

_MIN_BYTES_A_SECOND = 64
"""A connection slower than this is as good as dead: ImageNet would take seventy years."""


class Patience:
    """Exponential back-off with jitter, which starts again as soon as new bytes have come.

    Args:
        timing: Limits.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._failures = 0
        self._is_answered = False

    def renew(self) -> None:
        """Forget the failures: new bytes have come."""
        self._failures = 0
        self._is_answered = True

    def after(self, stop: Interruption) -> float | None:
        """Return how many seconds to wait before the next try; None if it is time to give up."""
        self._failures += 1
        self._is_answered |= stop.is_answered
        timing = self._timing
        if self._failures >= (timing.tries if self._is_answered else timing.first_tries):
            return None
        wait = min(timing.longest_wait_seconds, timing.first_wait_seconds * 2.0 ** (self._failures - 1))
        wait *= random.uniform(0.5, 1)  # noqa: S311 - so that many clients of one server do not come back all at once
        if stop.wait_seconds is not None:
            wait = max(wait, min(stop.wait_seconds, timing.longest_obeyed_seconds))
        return wait


class StallWatch:
    """Notices a connection that brings next to nothing, which no timeout of a socket does.

    Args:
        stall_seconds: The time that is looked at.
    """

    def __init__(self, stall_seconds: float) -> None:
        self._seconds = stall_seconds
        self._since = time.monotonic()
        self._bytes = 0

    def is_stalled(self, count: int) -> bool:
        """Add bytes that have come, and return whether they were too few for too long."""
        self._bytes += count
        elapsed = time.monotonic() - self._since
        if elapsed < self._seconds:
            return False
        is_slow = self._bytes < _MIN_BYTES_A_SECOND * elapsed
        self._since, self._bytes = time.monotonic(), 0
        return is_slow


def parse_retry_after(text: str | None) -> float | None:
    """Return the seconds of a ``Retry-After`` header (RFC 9110, 10.2.3): a number of them, or a date."""
    if text is None:
        return None
    if text.strip().isdecimal() and text.isascii():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    # A date without a zone is in UTC.
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
