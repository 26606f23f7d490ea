"""What a forked process must not share with its parent.

A fork copies all memory, but only one thread. In the child, a lock that another thread held is held forever, and data
that this thread was changing stay half changed. So threads share data under a lock in a `PerProcess`, of which a child
makes its own; and objects that need their threads remember `process_number`, and refuse to work in another process.
``core/base/process.h`` does the same for the native core.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")
_forks = 0


def process_number() -> int:
    """Return how many forks lie between this process and the first one that imported this module."""
    return _forks


def _count_fork() -> None:
    global _forks  # noqa: PLW0603 - it is a property of the process
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class PerProcess(Generic[_T]):
    """A value for each process, shared by its threads; a forked process makes its own. It must not be None."""

    def __init__(self, make: Callable[[], _T]) -> None:
        self._make = make
        self._values = {process_number(): make()}

    def get(self) -> _T:
        """Return the value of this process."""
        number = process_number()
        value = self._values.get(number)
        return self._values.setdefault(number, self._make()) if value is None else value
