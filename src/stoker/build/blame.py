"""Whether an item is at fault when it cannot be read, or whatever it is read from."""

from __future__ import annotations

import errno
import os

from stoker.errors import StorageError
from stoker.storage import RemotePath, location

# The machine, or the server of its file system, not the item, is at fault: going on would reject everything.
_OF_THE_MACHINE = frozenset(
    {
        errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.ENODEV,
        errno.ENXIO, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ECONNREFUSED,
    }
)  # fmt: skip
_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EIO})


def is_of_the_machine(error: OSError) -> bool:
    """Return whether the process has run out of files or memory, or the server of a file system does not answer."""
    return error.errno in _OF_THE_MACHINE


def is_of_the_item(error: OSError, root: str) -> bool:
    """Return whether the next item may still be read after this error.

    Args:
        error: What an item met.
        root: Where the source lies. A store that refuses one item is asked whether it refuses everything, as it does
            when credentials have expired; on this machine it is seen whether the folder of the item has gone as well,
            as those of a disk have that was taken away.

    Raises:
        StorageError: The store fails now.
    """
    if isinstance(error, StorageError) or is_of_the_machine(error):
        return False
    place = location(root)
    if not isinstance(place, RemotePath):
        # A list may name folders that never were, each of which is the fault of the lines that do.
        return place.is_file() or not _folder_has_gone(error)
    if not isinstance(error, PermissionError):
        return True
    try:
        place.is_dir()
    except PermissionError:
        return False
    return True


def _folder_has_gone(error: OSError) -> bool:
    """Return whether nothing is left of the folder; where a disk was mounted, an empty one may be."""
    if error.errno not in _NOT_THERE or not isinstance(error.filename, (str, bytes)):
        return False
    try:
        with os.scandir(os.path.dirname(os.fsencode(error.filename)) or b".") as entries:  # noqa: PTH120 - bytes
            return next(entries, None) is None
    except PermissionError:
        return False
    except OSError:
        return True


def as_reason(error: OSError) -> str:
    """Return what the rejects say about an item that cannot be read."""
    if error.errno == errno.ENOENT:
        return "the file is not there: it has been removed since it was listed, or is a link to nowhere"
    return f"the file cannot be read: {error.strerror or error}"
