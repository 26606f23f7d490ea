"""What can go wrong with a transfer, by what to do about it."""

from __future__ import annotations

import urllib.error

from stoker.errors import StokerError


class DownloadError(StokerError):
    """A file cannot be had, or what was sent is not that file."""


class PlaceError(Exception):
    """This place does not have the file, or does not give it: ask at the next place."""


class Interruption(Exception):  # noqa: N818 - nothing is wrong yet: the transfer goes on
    """A transfer that was cut short: try again, from where it stopped.

    Attributes:
        is_answered: Whether a server was there at all.
        wait_seconds: How long the server asks us to wait; None if it says nothing of it.
    """

    def __init__(self, message: str, *, is_answered: bool, wait_seconds: float | None = None) -> None:
        super().__init__(message)
        self.is_answered = is_answered
        self.wait_seconds = wait_seconds


def reason_of(error: Exception) -> str:
    """Return why a connection failed. Never the text of a foreign exception, which may hold a URL or a header."""
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, TimeoutError):
        return "the server has fallen silent"
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror
    return f"the connection was lost ({type(inner).__name__})"
