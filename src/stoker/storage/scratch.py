"""Files of this machine that stand for objects for a while: without a name, so that nothing outlives a kill."""

from __future__ import annotations

import tempfile
from typing import IO

from stoker.errors import ConfigError


def scratch_file(why: str) -> IO[bytes]:
    """Return an empty file without a name in the folder for temporary files (``$TMPDIR``), not buffered.

    Args:
        why: What it is for, for messages: a clause that speaks of the folder as *there*.

    Raises:
        ConfigError: There is no such folder.
        OSError: It has no room.
    """
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:  # so says Python where every one that it knows is full
        message = f"{why}, in a folder for temporary files, and there is none: {error.strerror}"
        raise ConfigError(f"{message}; set TMPDIR to a folder with room") from error
    try:
        return tempfile.TemporaryFile(buffering=0, dir=folder)
    except OSError as error:
        raise no_room(error, why) from error


def append(file: IO[bytes], data: bytes, why: str) -> None:
    """Write all of some bytes at the end of such a file.

    Args:
        file: What `scratch_file` has given.
        data: The bytes.
        why: As for `scratch_file`.

    Raises:
        OSError: The folder has no more room.
    """
    left = memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise no_room(error, why) from error


def no_room(error: OSError, why: str) -> OSError:
    """Return an error of writing to such a file as one that names the folder and says what to do."""
    advice = f"{why}; set TMPDIR to a folder with more room"
    return OSError(error.errno, f"{error.strerror}; {advice}", tempfile.gettempdir())


def is_scratch_full(error: OSError) -> bool:
    """Return whether an error is that of the folder for temporary files, and of nothing that was to be read."""
    try:
        return bool(error.filename == tempfile.gettempdir())
    except FileNotFoundError:  # there is no such folder, so the error is about something else
        return False
