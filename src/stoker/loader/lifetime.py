"""Whether a loader may still be used: until it is closed, and only in the process that made it."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from stoker.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Callable


class Lifetime:
    """From the making of an object to its closing.

    Args:
        owner: The object. When it is let go of, or at the latest when the interpreter exits, it is closed.
        close: Closes what it holds, threads that can still be joined then. Must not hold the owner, not even through
            other objects.
    """

    def __init__(self, owner: object, close: Callable[[], None]) -> None:
        self._finalizer = weakref.finalize(owner, close)
        self._process = os.getpid()

    def check(self) -> None:
        """Refuse what is not usable any more.

        Raises:
            ClosedError: It is closed, or this process is a fork of the one that it works in.
        """
        if not self._finalizer.alive:
            raise ClosedError("this loader is closed; make a new one")
        if os.getpid() != self._process:
            message = "this loader was made before a fork, and threads do not survive one"
            raise ClosedError(f"{message}; make the loader in the process that uses it")

    def close(self) -> None:
        """End it; a second time does nothing."""
        self._finalizer()
