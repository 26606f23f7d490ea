"""The text files of a dataset, read within bounds."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from stoker.errors import ManifestError

if TYPE_CHECKING:
    from stoker.storage import Location


_NO_TEXT = (errno.EFBIG, errno.EINVAL, errno.EISDIR, errno.ELOOP)


def read_text(path: Location, limit: int, kind: str) -> bytes:
    """Return the content of one of the text files of a dataset.

    Args:
        path: The file.
        limit: Most bytes that it may have.
        kind: What it should be, such as ``manifest``.

    Raises:
        FileNotFoundError: There is none.
        ManifestError: It is larger, or not a regular file, or a link that leads nowhere.
        OSError: It cannot be read.
    """
    try:
        return path.read_at_most(limit)
    except FileNotFoundError:
        if not path.lexists():
            raise
        problem = "is a link that leads nowhere"
    except OSError as error:
        if error.errno not in _NO_TEXT:
            raise
        problem = str(error.strerror)
    message = f"{path} {problem[0].lower()}{problem[1:]}, so it is no {kind}; restore it, or build again"
    raise ManifestError(message, path=str(path))
