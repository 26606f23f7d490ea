"""Who is told how far a benchmark is."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from stoker.measure.figures import Prepared
    from stoker.types import Progress


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is about to be measured.

    Attributes:
        contenders: How many there are.
        seconds: About how long it takes from here.
        prepared: What they read.
    """

    contenders: int
    seconds: float
    prepared: Prepared


class Watcher(Protocol):
    """Is told how far a benchmark is, from the calling thread."""

    def phase(self, verb: str) -> AbstractContextManager[Progress]:
        """A part of the preparation begins."""

    def begin(self, outlook: Outlook) -> None:
        """The preparation is over."""

    def starting(self, number: int, total: int, name: str) -> None:
        """A contender is warming up; ``number`` counts from 0."""

    def turn(self, number: int, total: int, name: str) -> None:
        """A turn begins; ``number`` counts from 0."""


class Unwatched:
    """A watcher that tells nobody."""

    def phase(self, verb: str) -> AbstractContextManager[Progress]:  # noqa: ARG002 - as the protocol has it
        """Keep it."""
        return nullcontext(_keep)

    def begin(self, outlook: Outlook) -> None:
        """Keep it."""

    def starting(self, number: int, total: int, name: str) -> None:
        """Keep it."""

    def turn(self, number: int, total: int, name: str) -> None:
        """Keep it."""


def _keep(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
    """Tell nobody about progress."""
