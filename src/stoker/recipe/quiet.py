"""Keeping a third-party decoder's warnings out of a build's output."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class QuietPillow:
    """Silences Pillow's warnings while at least one thread is inside.

    ``warnings.catch_warnings`` alone must not be used from several threads: the first to leave would restore the
    filters under the others. Here the first to enter installs the filter and the last to leave removes it.
    """

    _lock = threading.Lock()
    _inside = 0
    _caught: warnings.catch_warnings[None] | None = None

    def __enter__(self) -> Self:
        cls = QuietPillow
        with cls._lock:
            if cls._inside == 0:
                cls._caught = warnings.catch_warnings()
                cls._caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL\.")
            cls._inside += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        cls = QuietPillow
        with cls._lock:
            cls._inside -= 1
            if cls._inside == 0 and cls._caught is not None:
                cls._caught.__exit__(kind, error, trace)
                cls._caught = None
