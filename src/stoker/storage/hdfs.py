"""HDFS through hdfs-native, which speaks its protocol without Java."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

from stoker.errors import ConfigError
from stoker.storage.backend import Backend, Blob, Children, Entry, StoreError, needs_client, refuse_longer
from stoker.storage.files import temporary_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.storage.backend import Data, StoreSettings

_T = TypeVar("_T")
_WRITE_BYTES = 2**22
_CACHED_READERS = 64
# Enough attempts to find the active namenode. By default, the client tries a namenode that is gone for minutes, and
# cannot be stopped; `stoker.storage.retrying` is the layer that waits.
_NEARLY_ONCE = {
    "dfs.client.failover.max.attempts": "3",
    "dfs.client.failover.sleep.base.millis": "100",
    "dfs.client.failover.sleep.max.millis": "1000",
}


class HdfsBackend(Backend):
    """The files of one HDFS; see `stoker.storage.backend.Backend`.

    The client checks the checksums of the blocks it reads. Files get their name by a rename when they are complete.

    Args:
        name: ``hdfs://HOST:PORT``, the name of a nameservice, or ``hdfs://`` alone for the default of the Hadoop
            configuration (``HADOOP_CONF_DIR``).
    """

    def __init__(self, name: str, settings: StoreSettings) -> None:
        with needs_client("hdfs", "hdfs"):
            from hdfs_native import Client  # noqa: PLC0415 - an extra
        super().__init__(name, settings)
        where = name.partition("://")[2]
        try:
            self._client = _asked(lambda: Client(f"hdfs://{where}" if where else None, _NEARLY_ONCE))
        except StoreError as error:
            raise ConfigError(f"{name} is not an HDFS that can be reached: {error}") from error
        self._readers: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:
        """Yield every file below ``prefix`` after ``after``, in the order of the keys.

        Takes the memory of one directory on each level. The client's own walk has no order in which it could resume.
        """
        pending: list[tuple[str, Entry | None]] = [(f"{prefix}/", None)]
        while pending:
            key, entry = pending.pop()
            if entry is not None:
                if after is None or key > after:
                    yield entry
            elif after is None or key > after or after.startswith(key) or key == f"{prefix}/":
                children = self.children(key.rstrip("/"))
                below = [(f"{folder}/", None) for folder in children.folders] + [
                    (file.key, file) for file in children.files
                ]
                pending += sorted(below, key=lambda item: item[0], reverse=True)

    def children(self, prefix: str) -> Children:
        try:
            statuses = _asked(lambda: list(self._client.list_status(f"/{prefix}")))
        except FileNotFoundError:
            return Children((), ())
        entries = [(_entry(status), status.isdir) for status in statuses]
        return Children(
            tuple(entry.key for entry, folder in entries if folder), tuple(e for e, folder in entries if not folder)
        )

    def has_below(self, prefix: str) -> bool:
        try:
            if not _asked(lambda: self._client.get_file_info(f"/{prefix}")).isdir:
                return False
            return _asked(lambda: next(iter(self._client.list_status(f"/{prefix}")), None)) is not None
        except FileNotFoundError:
            return False

    def stat(self, key: str) -> Entry:
        status = _asked(lambda: self._client.get_file_info(f"/{key}"))
        if status.isdir:
            raise FileNotFoundError(2, "it is a directory", key)
        return _entry(status)

    def get(self, key: str, limit: int | None = None) -> Blob:
        reader = _asked(lambda: self._client.read(f"/{key}"))
        refuse_longer(len(reader), limit)
        data = _asked(lambda: bytes(reader.read_range(0, len(reader))))
        if len(data) != len(reader):
            raise StoreError(f"{len(data)} bytes came instead of {len(reader)}")
        return Blob(data)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        with self._lock:
            reader = self._readers.get(key)
        try:
            if reader is None:
                reader = _asked(lambda: self._client.read(f"/{key}"))
            wanted = max(0, min(length, len(reader) - start))
            data = _asked(lambda: bytes(reader.read_range(start, wanted))) if wanted else b""
        except (OSError, StoreError):
            self._forget(key)  # its blocks may lie elsewhere now
            raise
        if len(data) < length:
            self._forget(key)
            return data
        with self._lock:
            self._readers[key] = reader
            self._readers.move_to_end(key)
            while len(self._readers) > _CACHED_READERS:
                self._readers.popitem(last=False)
        return data

    def put(self, key: str, data: Data) -> str | None:
        """Write a file under a temporary name, then rename it, which replaces an existing file."""
        self._forget(key)
        self._write(key, data, overwrite=True)
        return None

    def create(self, key: str, data: Data) -> None:
        self._write(key, data, overwrite=False)

    def delete(self, key: str) -> None:
        self._forget(key)
        with contextlib.suppress(FileNotFoundError):
            _asked(lambda: self._client.delete(f"/{key}"))

    def delete_folder(self, prefix: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            _asked(lambda: self._client.delete(f"/{prefix}", recursive=True))
        return True

    def _forget(self, key: str) -> None:
        with self._lock:
            self._readers.pop(key, None)

    def _write(self, key: str, data: Data, *, overwrite: bool) -> None:
        from hdfs_native import WriteOptions  # noqa: PLC0415

        temporary = f"/{temporary_name(key)}"

        def write() -> None:
            with self._client.create(temporary, WriteOptions(create_parent=True)) as file:
                view = memoryview(data)
                for start in range(0, len(view), _WRITE_BYTES):
                    file.write(view[start : start + _WRITE_BYTES])
            self._client.rename(temporary, f"/{key}", overwrite=overwrite)

        try:
            _asked(write)
        except FileNotFoundError as error:
            raise StoreError(f"/{key} was removed while it was written") from error
        except BaseException:
            with contextlib.suppress(OSError, StoreError):  # the next build removes it
                _asked(lambda: self._client.delete(temporary))
            raise


def _entry(status: Any) -> Entry:
    # Listings give paths, with the address of the file system in front if that was not given.
    path = status.path.partition("://")[2].partition("/")[2] if "://" in status.path else status.path
    return Entry(path.strip("/"), status.length)


def _asked(request: Callable[[], _T]) -> _T:
    try:
        return request()
    except (FileNotFoundError, FileExistsError, PermissionError):
        raise
    except UnicodeEncodeError as error:
        raise OSError(errno.EINVAL, f"no file has a name that is not UTF-8: {error}") from error
    except Exception as error:
        message = str(error)[:300]
        if "AccessControlException" in message:
            raise PermissionError(13, message) from error
        raise StoreError(message, answered="onnection refused" not in message) from error
