"""Objects through obstore, the Python face of Rust's object_store: what S3 and Google Cloud Storage have in common."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from typing import TYPE_CHECKING, Any, TypeVar

from stoker.errors import ConfigError, StorageError
from stoker.storage.store import Blob, Children, Entry, StoreError, refuse_longer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from obstore.store import ClientConfig, ObjectStore

    from stoker.storage.store import Data

_T = TypeVar("_T")
_STATUS = re.compile(r"status code: (\d{3})")
_QUERY = re.compile(r"\?[^\s]*")  # of a URL: it may hold a signature
_BUSY = frozenset({429, 503})
_RETRIED = frozenset({408, 409, 425, *_BUSY})

READING: ClientConfig = {"timeout": "30s", "connect_timeout": "5s"}
WRITING: ClientConfig = {"timeout": "15m", "connect_timeout": "5s"}
ONCE: dict[str, Any] = {"max_retries": 0}
"""One layer retries, and it is not this one: see `stoker.storage.patient`."""

_process: int | None = None  # that used obstore first


def check_process() -> None:
    """Refuse to go on in a forked process: the threads of obstore are not there, and it would wait for them for ever.

    Raises:
        StorageError: This process was forked from one that had used a store.
    """
    global _process  # noqa: PLW0603 - it is the process that is meant
    if _process is None:
        _process = os.getpid()
    if _process != os.getpid():
        message = "this process was forked from one that had read from a bucket, and the client does not survive that"
        raise StorageError(f"{message}; start processes with 'spawn' or 'forkserver', or fork before the first read")


def missing(extra: str, error: ImportError) -> ConfigError:
    """Return the error of a client that is not installed."""
    return ConfigError(f"{error.name} is not installed, which {extra}:// needs; pip install 'stoker[{extra}]'")


class ObjectsBackend:
    """Objects of one bucket; see `stoker.storage.store.Backend`.

    Args:
        name: Scheme and bucket.
        reading: Client for everything but long writes.
        writing: Client for writes, which may take longer.
    """

    def __init__(self, name: str, reading: ObjectStore, writing: ObjectStore) -> None:
        self.name = name
        self._reading = reading
        self._writing = writing

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:
        """Yield every object below ``prefix`` in the order of their keys, those up to ``after`` left out."""
        import obstore  # noqa: PLC0415

        pages = iter(_asked(lambda: obstore.list(self._reading, prefix or None, offset=after, chunk_size=1000)))
        while (page := _asked(lambda: next(pages, None))) is not None:
            # What is named as the folder itself, but for a slash, only marks it.
            yield from (_entry(meta) for meta in page if meta["path"] != prefix)

    def children(self, prefix: str) -> Children:
        """Return what lies directly below ``prefix``."""
        import obstore  # noqa: PLC0415

        found = _asked(lambda: obstore.list_with_delimiter(self._reading, prefix or None))
        folders = tuple(folder.rstrip("/") for folder in found["common_prefixes"])
        return Children(folders, tuple(_entry(meta) for meta in found["objects"] if meta["path"] != prefix))

    def has_below(self, prefix: str) -> bool:
        """Return whether there is anything below ``prefix``."""
        try:
            return next(self.entries(prefix, None), None) is not None
        except OSError as error:
            if error.errno == errno.EINVAL:  # there is, under a name that cannot be spelled
                return True
            raise

    def stat(self, key: str) -> Entry:
        """Return what the store knows of one object."""
        import obstore  # noqa: PLC0415

        return _entry(_asked(lambda: obstore.head(self._reading, key)))

    def get(self, key: str, limit: int | None = None) -> Blob:
        """Return a whole object."""
        import obstore  # noqa: PLC0415

        def get() -> Blob:
            answer = obstore.get(self._reading, key)
            refuse_longer(answer.meta["size"], limit)
            data = answer.bytes().to_bytes()
            if len(data) != answer.meta["size"]:
                raise StoreError(f"{len(data)} bytes came instead of {answer.meta['size']}")
            return Blob(data, answer.meta["e_tag"])

        return _asked(get)

    def get_range(self, key: str, start: int, length: int) -> bytes:
        """Return a part of an object; fewer bytes where it ends."""
        import obstore  # noqa: PLC0415

        if length == 0:
            return b""
        return _asked(lambda: obstore.get_range(self._reading, key, start=start, length=length).to_bytes())

    def put(self, key: str, data: Data) -> str | None:
        """Write an object in one request, so that nothing is left of one that breaks off."""
        import obstore  # noqa: PLC0415

        return _asked(lambda: obstore.put(self._writing, key, data, use_multipart=False))["e_tag"]

    def create(self, key: str, data: Data) -> None:
        """Write an object that is not there."""
        import obstore  # noqa: PLC0415

        _asked(lambda: obstore.put(self._writing, key, data, mode="create", use_multipart=False))

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""
        import obstore  # noqa: PLC0415

        with contextlib.suppress(FileNotFoundError):
            _asked(lambda: obstore.delete(self._reading, key))

    def delete_folder(self, prefix: str) -> bool:  # noqa: ARG002 - a bucket has none
        """Return false: a bucket has no folders."""
        return False


def _entry(meta: Any) -> Entry:
    return Entry(meta["path"], meta["size"], meta["e_tag"])


def _asked(request: Callable[[], _T]) -> _T:
    """Make a request, and translate what went wrong."""
    from obstore import exceptions  # noqa: PLC0415

    check_process()
    try:
        return request()
    except exceptions.AlreadyExistsError as error:
        raise FileExistsError(_said(error)) from error
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise PermissionError(13, _said(error)) from error
    except UnicodeEncodeError as error:
        raise OSError(errno.EINVAL, f"no object has a name that is not UTF-8: {error}") from error
    except (exceptions.InvalidPathError, ValueError) as error:  # a key that it cannot spell
        raise OSError(errno.EINVAL, _said(error)) from error
    except exceptions.BaseError as error:
        raise _failure(_said(error)) from error


def _failure(said: str) -> StoreError | FileNotFoundError:
    found = _STATUS.search(said)
    if found is None:
        return StoreError(said, answered="error sending request" not in said)
    status = int(found[1])
    if status == 404:  # of a listing: there is no such bucket
        return FileNotFoundError(errno.ENOENT, said)
    return StoreError(said, retry=status >= 500 or status in _RETRIED, busy=status in _BUSY)


def _said(error: Exception) -> str:
    """Return the sentence of an error, without its inner parts, and without anything that may be secret."""
    return _QUERY.sub("?...", str(error).partition("\n\nDebug source")[0].strip())
