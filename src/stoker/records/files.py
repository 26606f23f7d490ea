"""The small files of a dataset: read within bounds, written so that no crash and no power cut leaves half of one."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from stoker.errors import ManifestError
from stoker.storage import RemotePath, read_small
from stoker.storage.named import naming
from stoker.storage.temporary import temporary_name

if TYPE_CHECKING:
    from pathlib import Path

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
        ManifestError: It is larger, or no regular file, or a link that leads nowhere.
        OSError: It cannot be read.
    """
    try:
        return read_small(path, limit)
    except FileNotFoundError:
        if isinstance(path, RemotePath) or not path.is_symlink():
            raise
        problem = "is a link that leads nowhere"
    except OSError as error:
        if error.errno not in _NO_TEXT:
            raise
        problem = str(error.strerror)
    message = f"{path} {problem[0].lower()}{problem[1:]}, so it is no {kind}; restore it, or build again"
    raise ManifestError(message, path=str(path))


def write_atomically(path: Location, data: bytes) -> None:
    """Write a file under a temporary name, bring it to the disk, and give it its name; or an object, which is whole.

    Raises:
        OSError: The disk is full, the store has gone, or the like; the temporary file is removed.
    """
    if isinstance(path, RemotePath):
        path.write_bytes(data)
        return
    temporary = path.with_name(temporary_name(path.name))
    try:
        with naming(path), temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def make_directory(directory: Path, within: Path | None = None) -> None:
    """Make a directory, and those above it that are missing; their names are on the disk when this returns.

    Args:
        directory: Which.
        within: A directory that is not made anew if it has gone, such as a dataset's with all that was in it.

    Raises:
        OSError: One of them cannot be made, or is a file.
    """
    if not directory.is_dir():
        if directory == within:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(directory))
        make_directory(directory.parent, within)
        directory.mkdir(exist_ok=True)
        sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Bring the names in a directory to the disk, so that a rename survives a power cut."""
    with naming(directory):
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)
