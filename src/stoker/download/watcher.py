"""How a download speaks to whoever started it, and how patient it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Stage = Literal["checking", "downloading", "unpacking"]


class Watcher(Protocol):
    """Receives how far a download is, and what happens on the way. Called from one thread."""

    def advanced(self, *, name: str, stage: Stage, done: int, total: int | None) -> None:
        """Report bytes, as often as every few milliseconds.

        Args:
            name: File that is worked on.
            stage: What is done with it. The first call for a file and a stage has what an earlier run left.
            done: Its bytes that are done.
            total: How many there are; None while that is not known.
        """

    def told(self, text: str) -> None:
        """Report in one sentence something that a person may want to know: a retry, a damaged file."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient a download is.

    Attributes:
        stall_seconds: A connection that brings nothing, or next to nothing, for so long is given up.
        tries: How often in a row a place is asked without a new byte coming.
        first_tries: The same, while no server has answered at all.
        first_wait_seconds: Before the second try; it doubles each time, and starts again here after new bytes.
        longest_wait_seconds: Where the doubling ends.
        longest_obeyed_seconds: A server that asks us to wait (Retry-After) is obeyed up to this.
    """

    stall_seconds: float = 60
    tries: int = 10
    first_tries: int = 4
    first_wait_seconds: float = 1
    longest_wait_seconds: float = 60
    longest_obeyed_seconds: float = 600
