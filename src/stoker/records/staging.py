"""Where the bytes of a shard lie until it is complete: beside its final name, or in a scratch file of this machine."""

from __future__ import annotations

import mmap
import os
from typing import IO, TYPE_CHECKING, Protocol

from stoker.records.files import make_directory, sync_directory, write_atomically
from stoker.storage import RemotePath
from stoker.storage.named import naming
from stoker.storage.scratch import no_room, scratch_file
from stoker.storage.temporary import temporary_name

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path

    from stoker.storage import Location
    from stoker.storage.store import Data


class Staging(Protocol):
    """An unfinished shard. For one thread at a time."""

    def write(self, parts: Sequence[bytes]) -> None:
        """Append bytes.

        Raises:
            OSError: The disk is full, or the like.
        """

    def publish(self, index: tuple[str, bytes] | None) -> None:
        """Give the index and then the shard their final names; nothing is left of an attempt that fails.

        Args:
            index: Its name, relative to the dataset, and its content.

        Raises:
            OSError: The destination cannot be written.
        """

    def discard(self) -> None:
        """Remove what was written, unless it is published. Idempotent."""


def stage(directory: Location, name: str, stop: threading.Event | None) -> Staging:
    """Begin a shard.

    Args:
        directory: Directory of the dataset; must exist if it is on this machine.
        name: Final name of the shard, relative to it.
        stop: Ends the waits for a store that does not answer.

    Raises:
        OSError: There is no room for it.
    """
    return RemoteStaging(directory, name, stop) if isinstance(directory, RemotePath) else LocalStaging(directory, name)


class LocalStaging:
    """A file beside the final name, which it is given by a rename once it is on the disk."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._path = directory / name
        make_directory(self._path.parent, within=directory)
        self._temporary = directory / temporary_name(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file: int | None = os.open(self._temporary, flags, 0o666)

    def write(self, parts: Sequence[bytes]) -> None:
        """Append bytes; see `Staging`."""
        assert self._file is not None, "the shard is already committed or aborted"
        with naming(self._path):
            _write_all(self._file, parts)

    def publish(self, index: tuple[str, bytes] | None) -> None:
        """Bring both to the disk under their final names; see `Staging`."""
        assert self._file is not None, "the shard is already committed or aborted"
        with naming(self._path):
            os.fsync(self._file)
            self._close()
        try:
            if index is not None:
                path = self._directory / index[0]
                make_directory(path.parent, within=self._directory)
                write_atomically(path, index[1])
            self._temporary.replace(self._path)
        finally:
            self._temporary.unlink(missing_ok=True)
        sync_directory(self._path.parent)

    def discard(self) -> None:
        """Remove the file; see `Staging`."""
        if self._file is not None:
            self._close()
            self._temporary.unlink(missing_ok=True)

    def _close(self) -> None:
        assert self._file is not None
        file, self._file = self._file, None
        os.close(file)


class RemoteStaging:
    """A scratch file without a name, so that nothing is left of it when the process is killed.

    It lies where Python puts temporary files (``$TMPDIR``) and takes the bytes of one shard. Publishing sends it to the
    store, which gives an object its name when all of it has come.
    """

    def __init__(self, directory: RemotePath, name: str, stop: threading.Event | None) -> None:
        self._directory = directory
        self._name = name
        self._store = directory.store if stop is None else directory.store.stoppable(stop)
        self._why = f"shards of {directory} are put together there"
        self._file: IO[bytes] | None = scratch_file(self._why)

    def write(self, parts: Sequence[bytes]) -> None:
        """Append bytes; see `Staging`."""
        assert self._file is not None, "the shard is already committed or aborted"
        try:
            _write_all(self._file.fileno(), parts)
        except OSError as error:
            raise no_room(error, self._why) from error

    def publish(self, index: tuple[str, bytes] | None) -> None:
        """Send both to the store; see `Staging`."""
        assert self._file is not None, "the shard is already committed or aborted"
        try:
            if index is not None:
                self._store.write((self._directory / index[0]).key, index[1])
            self._store.write((self._directory / self._name).key, _content(self._file))
        finally:
            self.discard()

    def discard(self) -> None:
        """Let the system have the scratch file back; see `Staging`."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _content(file: IO[bytes]) -> Data:
    size = os.fstat(file.fileno()).st_size
    return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""  # an empty file cannot be mapped


def _write_all(file: int, parts: Sequence[bytes]) -> None:
    written = os.writev(file, parts)
    if written == sum(map(len, parts)):
        return
    view = memoryview(b"".join(parts))  # the system has cut the write short; a full disk raises now
    while written < len(view):
        written += os.write(file, view[written:])
