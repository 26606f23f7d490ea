"""Writing one shard: nothing appears under its final name before all of it is on the disk."""

from __future__ import annotations

import mmap
import os
import zlib
from typing import IO, TYPE_CHECKING, Protocol, Self

import numpy as np

from stoker import _native
from stoker.format.files import make_directory, sync_directory, write_atomically
from stoker.format.index import format_index, new_index_name
from stoker.format.manifest import Shard
from stoker.storage import RemotePath
from stoker.storage.named import naming
from stoker.storage.scratch import no_room, scratch_file
from stoker.storage.temporary import temporary_name

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from stoker.storage import Location
    from stoker.storage.store import Data
    from stoker.types import Compression


# Where the bytes of a shard lie until it is complete: beside its final name, or in a scratch file of this machine.


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
    transform = memoryview(b"".join(parts))  # the system has cut the write short; a full disk raises now
    while written < len(transform):
        written += os.write(file, transform[written:])


_LEVEL = 6
_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # zlib's own way of saying which header it writes; GZIP's then holds no time
_MAX_BUFFERS = 512  # of one writev; POSIX promises 16, Linux and macOS allow 1024


class ShardWriter:
    """Writes a TFRecord shard and its index.

    The bytes go to ``NAME.tmp-...``, or, if the dataset lies in a store, to a scratch file of this machine. `commit`
    writes the index in full, and only then gives the shard its name, so a shard under its final name is complete and
    has its index. Leaving the ``with`` block without `commit` removes what was written. For one thread at a time.

    A compressed shard is one GZIP or ZLIB stream, as TensorFlow's readers expect it; it has no index, because nothing
    in it can be reached without inflating what precedes it.

    Args:
        directory: Directory of the dataset; must exist if it is on this machine.
        name: Final name of the shard, relative to ``directory``.
        compression: What is done to the bytes.
        stop: Ends the waits for a store that does not answer, with `stoker.errors.ClosedError`; None if nobody can.

    Raises:
        OSError: From any method: the disk is full, the store has gone, or the like.
    """

    def __init__(
        self,
        directory: Location,
        name: str,
        compression: Compression = "none",
        stop: threading.Event | None = None,
    ) -> None:
        self._name = name
        self._staged = stage(directory, name, stop)
        self._deflate = (
            None if compression == "none" else zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS[compression])
        )
        self._sizes: list[int] = []
        self._size_bytes = 0
        self._crc32c = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def append(self, payload: bytes) -> None:
        """Write one record."""
        self.append_frames([_native.frame_record(payload)])

    def append_frames(self, frames: Sequence[bytes]) -> None:
        """Write records that `stoker._native.frame_record` has already framed, in order."""
        for start in range(0, len(frames), _MAX_BUFFERS):
            self._write(list(frames[start : start + _MAX_BUFFERS]))

    def _write(self, frames: list[bytes]) -> None:
        self._sizes += [len(frame) for frame in frames]
        self._write_bytes(frames if self._deflate is None else [self._deflate.compress(frame) for frame in frames])

    def _write_bytes(self, parts: list[bytes]) -> None:
        self._staged.write(parts)
        self._crc32c = _native.crc32c_of_parts(parts, self._crc32c)
        self._size_bytes += sum(map(len, parts))

    def commit(self) -> Shard:
        """Give the shard and its index their final names."""
        index = None
        if self._deflate is not None:
            self._write_bytes([self._deflate.flush()])
        else:
            index = new_index_name(self._name), format_index(np.asarray(self._sizes, np.uint64))
        self._staged.publish(index)
        return Shard(self._name, len(self._sizes), self._size_bytes, self._crc32c)

    def abort(self) -> None:
        """Remove what was written, unless it is committed."""
        self._staged.discard()
