"""The small files of a dataset: read within bounds, written so that no crash and no power cut leaves half of one."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from stoker.errors import ManifestError
from stoker.storage import location
from stoker.storage.files import make_directory, sync_directory

if TYPE_CHECKING:
    from stoker.storage import Location


__all__ = ["make_directory", "read_text", "sync_directory", "write_atomically"]


_NO_TEXT = (errno.EFBIG, errno.EINVAL, errno.EISDIR, errno.ELOOP)


def read_text(path: Location, limit: int, kind: str) -> bytes:
    """Return the content of one of the text files of a dataset.

    Args:
        path: The file.
        limit: Most bytes that it may have.
        kind: What it should be, such as ``manifest``.

    Raises:
        FileNotFoundError: There is none.
        ManifestError: It is larger, or no regular file, or a link that leads nowhere.
        OSError: It cannot be read.
    """
    try:
        return location(path).read_at_most(limit)
    except FileNotFoundError:
        if not location(path).lexists():
            raise
        problem = "is a link that leads nowhere"
    except OSError as error:
        if error.errno not in _NO_TEXT:
            raise
        problem = str(error.strerror)
    message = f"{path} {problem[0].lower()}{problem[1:]}, so it is no {kind}; restore it, or build again"
    raise ManifestError(message, path=str(path))


def write_atomically(path: Location, data: bytes) -> None:
    """Write a file or an object, whole or not at all; see `stoker.storage.Location.write_atomically`.

    Raises:
        OSError: The disk is full, the store has gone, or the like; the temporary file is removed.
    """
    location(path).write_atomically(data)
