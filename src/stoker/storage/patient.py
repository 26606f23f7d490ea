"""A store that is asked again when it fails for a while, and asked less while it is busy."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from stoker.errors import ClosedError, StorageError
from stoker.storage.content import ContentCheck
from stoker.storage.pace import Pace, Patience
from stoker.storage.store import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stoker.storage.store import Backend, Blob, Children, Data, Entry

_T = TypeVar("_T")
_DELETED_AT_ONCE = 32


class PatientStore:
    """What Stoker reads from and writes to. Safe in any thread.

    A request that fails is made again after a wait that doubles each time, with jitter, until it has failed for about
    two minutes; a store that has never answered is given up much sooner. A store that says it is busy is sent fewer
    requests at a time, and more again as it answers, up to as many as before (`stoker.storage.pace.Pace`).
    What comes back is checked by length, and by its MD5 where the store tells that.

    Args:
        backend: Makes the requests.
        stop: Ends every wait and refuses new requests once it is set; None if nobody can.

    Raises:
        FileNotFoundError: From any method: there is no such object.
        PermissionError: The store refuses.
        StorageError: It failed for too long, or the request can never succeed; also an ``OSError``.
        ClosedError: ``stop`` was set.
    """

    def __init__(self, backend: Backend, stop: threading.Event | None = None) -> None:
        self._backend = backend
        self._stop = stop or threading.Event()
        self._pace = Pace()
        self._content = ContentCheck()

    @property
    def name(self) -> str:
        """Scheme and bucket, such as ``s3://photos``."""
        return self._backend.name

    def stoppable(self, stop: threading.Event) -> PatientStore:
        """Return the same store for somebody who may want to stop waiting; it keeps the same pace."""
        other = PatientStore(self._backend, stop)
        other._pace, other._content = self._pace, self._content
        return other

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield every object below ``prefix`` at any depth, in any order; takes the memory of one page."""
        last = resumed = None
        patience = Patience(answered=self._pace.answered)
        while True:
            try:
                for entry in self._backend.entries(prefix, resumed):
                    if self._stop.is_set():
                        raise ClosedError(f"stopped while listing {self.name}")
                    self._pace.answered = True
                    # Not by order: there are stores that keep to one which is almost that of the keys.
                    if entry.key != resumed:
                        last = entry.key
                        patience.renew()
                        yield entry
                return
            except StoreError as error:
                resumed = last
                self._wait(patience, error, "list", prefix)
            except PermissionError as error:
                raise self._refused("list", prefix) from error

    def children(self, prefix: str) -> Children:
        """Return what lies directly below ``prefix``; takes memory for all of it."""
        return self._try("list", prefix, lambda: self._backend.children(prefix))

    def has_below(self, prefix: str) -> bool:
        """Return whether there is anything below ``prefix``."""
        return self._try("list", prefix, lambda: self._backend.has_below(prefix))

    def stat(self, key: str) -> Entry:
        """Return what the store knows of one object."""
        return self._try("look at", key, lambda: self._backend.stat(key))

    def size(self, key: str) -> int:
        """Return the length of an object."""
        return self.stat(key).size_bytes

    def is_object(self, key: str) -> bool:
        """Return whether there is such an object."""
        try:
            self.stat(key)
        except FileNotFoundError:
            return False
        return True

    def read(self, key: str, start: int = 0, length: int | None = None, *, limit: int | None = None) -> bytes:
        """Return an object, or a part of it.

        Args:
            key: Which object.
            start: First byte.
            length: How many bytes; None for all there are, in which case ``start`` must be 0.
            limit: Longest object that is read whole; None for any.

        Raises:
            StorageError: It ends before ``start + length``, too.
            OSError: It is longer than ``limit`` (``EFBIG``).
        """
        if length is None:
            return self._try("read", key, lambda: self._whole(key, limit))
        return self._try("read", key, lambda: self._part(key, start, length))

    def write(self, key: str, data: Data) -> None:
        """Write an object, whole or not at all, in place of any there is."""
        self._try("write", key, lambda: self._put(key, data))

    def create(self, key: str, data: Data) -> bool:
        """Write an object that is not there yet, and return whether it was not; of several writers one succeeds."""

        def create() -> bool:
            try:
                self._backend.create(key, data)
            except FileExistsError:
                return False
            return True

        return self._try("create", key, create)

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is no error."""
        self._try("delete", key, lambda: self._backend.delete(key))

    def delete_below(self, prefix: str) -> None:
        """Delete everything below a prefix; where the store has no folders, one object after another."""
        if not self._try("delete", prefix, lambda: self._backend.delete_folder(prefix)):
            self.delete_all([entry.key for entry in self.entries(prefix)])

    def delete_all(self, keys: Sequence[str]) -> None:
        """Delete objects, many at a time."""
        with ThreadPoolExecutor(_DELETED_AT_ONCE, "stoker-delete") as pool:
            for _ in pool.map(self.delete, keys):
                pass

    def _whole(self, key: str, limit: int | None) -> bytes:
        blob: Blob = self._backend.get(key, limit)
        self._content.check_read(key, blob)
        return blob.data

    def _part(self, key: str, start: int, length: int) -> bytes:
        data = self._backend.get_range(key, start, length)
        if len(data) != length:
            found = self._backend.stat(key).size_bytes
            problem = f"{len(data)} bytes came from byte {start} on instead of {length}"
            # A short answer may come from the wire; a short object stays one.
            raise StoreError(f"{problem}; it has {found} bytes", retry=found >= start + length)
        return data

    def _put(self, key: str, data: Data) -> None:
        etag = self._backend.put(key, data)
        self._content.check_written(key, data, etag, lambda: self._backend.get(key).data)

    def _try(self, what: str, key: str, request: Callable[[], _T]) -> _T:
        patience = Patience(answered=self._pace.answered)
        while True:
            try:
                with self._pace.turn(self._stop):
                    answer = request()
            except StoreError as error:
                self._wait(patience, error, what, key)
            except FileNotFoundError as error:
                self._pace.succeeded()
                raise FileNotFoundError(2, "there is no such object", f"{self.name}/{key}") from error
            except PermissionError as error:
                raise self._refused(what, key) from error
            else:
                self._pace.succeeded()
                return answer

    def _wait(self, patience: Patience, error: StoreError, what: str, key: str) -> None:
        """Wait before the next try.

        Raises:
            StorageError: There is no use in trying again.
        """
        self._pace.failed(busy=error.busy, answered=error.answered)
        seconds = patience.after(error, time.monotonic())
        if seconds is None:
            where = f"{self.name}/{key}"
            message = f"cannot {what} {where}: {error}"
            if error.retry:
                message += f"; tried {patience.tries} times; see that the store is there, then run again"
            raise StorageError(message, path=where) from error
        if self._stop.wait(seconds):
            raise ClosedError(f"stopped while waiting for {self.name}")

    def _refused(self, what: str, key: str) -> PermissionError:
        advice = "give credentials that may do so; see docs/remote.md"
        return PermissionError(13, f"the store does not allow to {what} this; {advice}", f"{self.name}/{key}")
