"""Errors of the system that say which file they are about."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from stoker.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.storage.location import Location


@contextmanager
def naming(path: Location | bytes) -> Iterator[None]:
    """Give errors of the system the name of a file, where the call that failed knew a descriptor alone.

    Opening a file that cannot be opened names it; reading, writing and closing do not.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and not isinstance(error, StorageError):
            error.filename = path if isinstance(path, bytes) else str(path)
        raise
