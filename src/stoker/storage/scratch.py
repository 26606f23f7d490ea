"""Files of this machine that stand for objects for a while: without a name, so that nothing outlives a kill."""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import IO, TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.storage.files import write_all

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.storage.patient import PatientStore
    from stoker.storage.store import Data


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


class StoreStaging:
    """A scratch file without a name, so that nothing is left of it when the process is killed.

    It lies where Python puts temporary files (``$TMPDIR``) and takes the bytes of one file. Publishing sends it to the
    store, which gives an object its name when all of it has come. See `stoker.storage.files.Staging`.

    Args:
        store: Where the object will be.
        folder: Key of the folder in which it is begun.
        name: Its name, relative to that.

    Raises:
        OSError: There is no space for it.
    """

    def __init__(self, store: PatientStore, folder: str, name: str) -> None:
        self._store = store
        self._prefix = f"{folder}/" if folder else ""
        self._name = name
        self._why = f"shards of {store.name}/{folder} are put together there"
        self._file: IO[bytes] | None = scratch_file(self._why)

    def write(self, parts: Sequence[bytes]) -> None:
        """Append bytes; see `Staging`."""
        assert self._file is not None, "the file is already published or discarded"
        try:
            write_all(self._file.fileno(), parts)
        except OSError as error:
            raise no_room(error, self._why) from error

    def publish(self, companion: tuple[str, bytes] | None = None) -> None:
        """Send both to the store; see `Staging`."""
        assert self._file is not None, "the file is already published or discarded"
        try:
            if companion is not None:
                self._store.write(self._prefix + companion[0], companion[1])
            self._store.write(self._prefix + self._name, _content(self._file))
        finally:
            self.discard()

    def discard(self) -> None:
        """Free the scratch file; see `Staging`."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _content(file: IO[bytes]) -> Data:
    size = os.fstat(file.fileno()).st_size
    return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""  # an empty file cannot be mapped
