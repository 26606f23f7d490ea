"""Whether an item is at fault when it cannot be read, or whatever it is read from."""

from __future__ import annotations

import errno

from stoker.errors import StorageError
from stoker.storage import RemotePath, location

# The machine, not the item, is at fault: going on would reject everything.
_OF_THE_MACHINE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


def is_of_the_item(error: OSError, root: str) -> bool:
    """Return whether the next item may still be read after this error.

    Args:
        error: What an item met.
        root: Where the source lies. A store that refuses one item is asked whether it refuses everything, as it does
            when credentials have expired.

    Raises:
        StorageError: The store fails now.
    """
    if isinstance(error, StorageError) or error.errno in _OF_THE_MACHINE:
        return False
    place = location(root)
    if not isinstance(error, PermissionError) or not isinstance(place, RemotePath):
        return True
    try:
        place.is_dir()
    except PermissionError:
        return False
    return True


def as_reason(error: OSError) -> str:
    """Return what the rejects say about an item that cannot be read."""
    if error.errno == errno.ENOENT:
        return "the file is not there: it has been removed since it was listed, or is a link to nowhere"
    return f"the file cannot be read: {error.strerror}"
