"""Bytes of objects on this machine: scratch files, unfinished objects, local copies, and reading ahead."""

from __future__ import annotations

import io
import mmap
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.storage.files import write_all
from stoker.storage.pools import stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future

    from stoker.errors import StokerError
    from stoker.storage.backend import Data
    from stoker.storage.retrying import RetryingStore

_CHUNK_BYTES = 2**22
_AT_ONCE = 4  # requests of each copy; each working thread may have a copy


def scratch_file(why: str) -> IO[bytes]:
    """Return an empty, unbuffered file without a name in the folder for temporary files (``$TMPDIR``).

    ``why`` says in messages what it is for: a clause that calls the folder *there*.

    Raises:
        ConfigError: There is no such folder.
        OSError: It has no space.
    """
    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:  # Python raises this if all the folders that it knows are full
        message = f"{why}, in a folder for temporary files, and there is none: {error.strerror}"
        raise ConfigError(f"{message}; set TMPDIR to a folder with space") from error
    try:
        return tempfile.TemporaryFile(buffering=0, dir=folder)
    except OSError as error:
        raise no_space(error, why) from error


def append_to_scratch(file: IO[bytes], data: bytes, why: str) -> None:
    """Append bytes to a scratch file."""
    left = memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise no_space(error, why) from error


def reserve_scratch(file: IO[bytes], size_bytes: int, why: str) -> None:
    """Extend an empty scratch file to a length, with space for every byte, so that it can be mapped and written."""
    try:
        os.posix_fallocate(file.fileno(), 0, size_bytes)
    except OSError as error:
        raise no_space(error, why) from error


def no_space(error: OSError, why: str) -> OSError:
    """Return an error of writing to a scratch file that names the folder and says what to do."""
    advice = f"{why}; set TMPDIR to a folder with more space"
    return OSError(error.errno, f"{error.strerror}; {advice}", tempfile.gettempdir())


def is_scratch_full(error: OSError) -> bool:
    """Return whether an error is about the folder for temporary files, and not about a file that is read."""
    try:
        return bool(error.filename == tempfile.gettempdir())
    except FileNotFoundError:  # there is no such folder, so the error is about something else
        return False


class StoreStaging:
    """An unfinished object in a scratch file without a name, so that nothing is left if the process is killed.

    The file lies where Python puts temporary files (``$TMPDIR``), and takes the bytes of one object. Publishing sends
    it to the store, where an object has its name only when it is complete. See `stoker.storage.files.LocalStaging`.
    """

    def __init__(self, store: RetryingStore, folder: str, name: str) -> None:
        self._store = store
        self._prefix = f"{folder}/" if folder else ""
        self._name = name
        self._why = f"shards of {store.name}/{folder} are put together there"
        self._file: IO[bytes] | None = scratch_file(self._why)

    def write(self, parts: Sequence[Data]) -> None:
        """Append bytes; see `LocalStaging`."""
        assert self._file is not None, "the file is already published or discarded"
        try:
            write_all(self._file.fileno(), parts)
        except OSError as error:
            raise no_space(error, self._why) from error

    def publish(self, companion: tuple[str, bytes] | None = None) -> None:
        """Send both to the store; see `LocalStaging`."""
        assert self._file is not None, "the file is already published or discarded"
        try:
            if companion is not None:
                self._store.write(self._prefix + companion[0], companion[1])
            self._store.write(self._prefix + self._name, _content(self._file))
        finally:
            self.discard()

    def discard(self) -> None:
        """Free the scratch file; see `LocalStaging`."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _content(file: IO[bytes]) -> Data:
    size = os.fstat(file.fileno()).st_size
    return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else b""  # an empty file cannot be mapped


def message_about(error: StokerError, read_from: Path, path: str) -> str:
    """Return the message of an error, with ``path`` in place of the name of its local copy."""
    return str(error).replace(str(read_from), path)


def error_about(error: StokerError, read_from: Path, path: str) -> StokerError:
    """Return the same error about ``path`` in place of its local copy."""
    what = message_about(error, read_from, path)
    return type(error)(what, path=path, record=error.record, offset=error.offset, source=error.source)


@contextmanager
def store_copy(store: RetryingStore, key: str) -> Iterator[LocalCopy]:
    """Give an object as a file of this machine; see `stoker.storage.Location.local_copy`."""
    size = store.size(key)
    with scratch_file(_why(f"{store.name}/{key}")) as file:
        os.ftruncate(file.fileno(), size)  # a hole takes no space
        yield StoreCopy(store, key, size, file.fileno())


class LocalCopy:
    """A file of this machine, of which no copy is needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fetch(self, end: int | None = None) -> None:
        """Make sure that the bytes below ``end``, or all bytes, are there."""


class StoreCopy(LocalCopy):
    """An object in a store, copied from its beginning as far as requested. For one thread at a time.

    ``file`` is a descriptor of a file of the same length, for the bytes.
    """

    def __init__(self, store: RetryingStore, key: str, size_bytes: int, file: int) -> None:
        super().__init__(Path(f"/proc/self/fd/{file}"))
        self._store = store
        self._key = key
        self._source = f"{store.name}/{key}"
        self._size = size_bytes
        self._file = file
        self._end = 0

    def fetch(self, end: int | None = None) -> None:
        """Make sure that the bytes below ``end``, or all bytes, are there; makes several requests at a time."""
        until = self._size if end is None else min(end, self._size)
        starts = range(self._end, until, _CHUNK_BYTES)
        if len(starts) == 1:
            self._fetch_chunk(starts[0])
        elif starts:
            with stoppable_pool(min(_AT_ONCE, len(starts)), "stoker-copy") as pool:
                list(pool.map(self._fetch_chunk, starts))
        if starts:
            self._end = min(self._size, starts[-1] + _CHUNK_BYTES)

    def _fetch_chunk(self, start: int) -> None:
        view = memoryview(self._store.read(self._key, start, min(_CHUNK_BYTES, self._size - start)))
        try:
            while view:
                written = os.pwrite(self._file, view, start)
                view, start = view[written:], start + written
        except OSError as error:
            raise no_space(error, _why(self._source)) from error


def _why(source: str) -> str:
    return f"{source} has to be copied there"


class SeekableBytes(io.RawIOBase):
    """A file of a known length, whose bytes a subclass reads from any position. For one thread at a time."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self._size, self._at = size_bytes, 0

    def readable(self) -> bool:
        """Return true."""
        return True

    def seekable(self) -> bool:
        """Return true."""
        return True

    def tell(self) -> int:
        """Return where the next read begins."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position; nothing is read yet."""
        at = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence] + offset
        if at < 0:
            raise ValueError(f"there is no byte {at}")
        self._at = at
        return at


class ObjectReader(SeekableBytes):
    """Reads an object as a file.

    A read at the end of the last chunk, or shortly after it, fetches the next chunk ahead, so that reading a long
    object in order does not wait for each request. Takes at most three chunks of memory.
    """

    def __init__(self, store: RetryingStore, key: str) -> None:
        super().__init__(store.size(key))
        self._store = store
        self._key = key
        self._chunk = memoryview(b"")
        self._start = 0  # of the chunk
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: tuple[int, Future[bytes]] | None = None

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer as far as this chunk reaches; 0 at the end of the object."""
        if self._at >= self._size:
            return 0
        if not self._start <= self._at < self._start + len(self._chunk):
            self._fetch()
        part = self._chunk[self._at - self._start :][: len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        """Free the chunks and end the thread."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._chunk, self._ahead = memoryview(b""), None
        super().close()

    def _fetch(self) -> None:
        """Get the chunk in which the next read begins; if reads are consecutive, fetch the following one ahead."""
        end = self._start + len(self._chunk)
        follows = 0 < end <= self._at < end + _CHUNK_BYTES  # reading a tar skips some bytes
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] <= self._at < ahead[0] + _CHUNK_BYTES:
            self._start, data = ahead[0], ahead[1].result()
        else:
            self._start, data = self._at, self._read(self._at)
        self._chunk, end = memoryview(data), self._start + len(data)
        if follows and end < self._size:
            self._pool = self._pool or ThreadPoolExecutor(1, "stoker-ahead")
            self._ahead = (end, self._pool.submit(self._read, end))

    def _read(self, start: int) -> bytes:
        return self._store.read(self._key, start, min(_CHUNK_BYTES, self._size - start))
