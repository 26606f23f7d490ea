"""Retries of requests to stores, with back-off and a rate limit, until the caller wants to stop."""

from __future__ import annotations

import base64
import errno
import hashlib
import logging
import random
import re
import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from stoker.errors import ClosedError, StorageError
from stoker.storage.backend import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stoker.storage.backend import Backend, Blob, Children, Data, Entry

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

MAX_AT_ONCE = 1024
"""Most requests at a time to a store that has never said that it is busy; callers have lower limits."""

_FIRST_WAIT = 0.1
_LONGEST_WAIT = 10.0
_TRIES_AT_LEAST = 6
_SECONDS = 120.0  # for how long a request is retried
_UNANSWERED_SECONDS = 8.0  # the same, if the store has never answered
_HALVING_SECONDS = 0.5  # the least time between two halvings of the limit
_STOP_LOOK_SECONDS = 0.2
_DELETED_AT_ONCE = 32

_MD5 = re.compile(r'"?(?:([0-9a-f]{32})|([0-9A-Za-z+/]{22}==))"?')  # in hex, or as some servers have it in base64
_SAME_READS = 4  # equal reads after which an etag is not an MD5
_MAX_SUSPECTS = 1024
_MAX_OTHER_ETAGS = 8  # such etags after which none is compared any more


class Backoff:
    """The waits of one request: exponential back-off with jitter, and shorter for a store that has never answered."""

    def __init__(self, *, answered: bool) -> None:
        self._answered = answered
        self._since: float | None = None
        self.tries = 0

    def renew(self) -> None:
        """Forget the failures: there was progress."""
        self._answered, self._since, self.tries = True, None, 0

    def after(self, error: StoreError, now: float) -> float | None:
        """Return the seconds to wait after a failure at a time of a monotonic clock; None to give up."""
        self.tries += 1
        self._answered |= error.answered
        self._since = now if self._since is None else self._since
        limit = _SECONDS if self._answered else _UNANSWERED_SECONDS
        if not error.retry or (now - self._since > limit and self.tries >= _TRIES_AT_LEAST):
            return None
        wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (self.tries - 1))
        return wait * random.uniform(0.5, 1)  # noqa: S311 - spreads requests that failed together


class RateLimit:
    """Limits the requests to a store at a time: additive increase, multiplicative decrease, as in TCP.

    Each time the store says that it is busy, the limit becomes half of the requests that were under way; at most once
    in half a second, because answers to earlier requests say nothing new. As many answers as the limit raise it by one,
    so a limit of 32 is back after some 500 answers, without another burst. Safe from any thread.
    """

    def __init__(self, most: int = MAX_AT_ONCE) -> None:
        self._ceiling = most
        self._limit = float(most)
        self._under_way = self._most = 0  # requests now, and the most since the limit was halved
        self._halved = 0.0
        self._changed = threading.Condition()
        self.answered = False
        """Whether the store has ever answered."""

    @property
    def limit(self) -> float:
        """Requests that may be under way."""
        return self._limit

    @contextmanager
    def turn(self, stop: threading.Event) -> Iterator[None]:
        """Wait until one more request may be made, and count it while it is under way."""
        with self._changed:
            while self._under_way >= self._limit and not stop.is_set():
                self._changed.wait(_STOP_LOOK_SECONDS)
            if stop.is_set():
                raise ClosedError("no more requests are made: what they were for is closed")
            self._under_way += 1
            self._most = max(self._most, self._under_way)
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify()

    def succeeded(self) -> None:
        """Note an answer."""
        self.answered = True
        if self._limit < self._ceiling:
            with self._changed:
                self._limit = min(self._ceiling, self._limit + 1 / self._limit)
                self._changed.notify()

    def failed(self, *, busy: bool, answered: bool) -> None:
        """Note a failure."""
        self.answered |= answered
        if not busy:
            return
        with self._changed:
            now = time.monotonic()
            if now - self._halved >= _HALVING_SECONDS:
                self._limit, self._halved = max(1.0, min(self._limit, self._most) / 2), now
                self._most = self._under_way


class ContentCheck:
    """Checks whether bytes came through a store unchanged, if it gives their MD5. Safe from any thread.

    The etag of an object that was written in one piece is the MD5 of its content on S3 and Google Cloud Storage, unless
    it is encrypted with a customer's key or was composed of others. So if an etag looks like an MD5 but is not that of
    the bytes, either the bytes are wrong or the etag is of another kind. Reading again decides: bytes are hardly ever
    wrong four times in the same way.
    """

    def __init__(self) -> None:
        self._suspects: OrderedDict[str, tuple[bytes, int]] = OrderedDict()  # by key: digest, how often it came
        self._other_etags = 0  # etags that were found not to be an MD5
        self._lock = threading.Lock()

    def check_read(self, key: str, blob: Blob) -> None:
        """Compare what was read with its etag.

        Raises:
            StoreError: They differ, and the same bytes did not come often enough; it is worth reading again.
        """
        digest = self._digest_if_other(blob.data, blob.etag)
        if digest is None:
            return
        with self._lock:
            before, times = self._suspects.pop(key, (digest, 0))
            times = times + 1 if before == digest else 1
            if times == _SAME_READS:
                self._other_etags += 1
                return
            self._suspects[key] = (digest, times)
            while len(self._suspects) > _MAX_SUSPECTS:
                self._suspects.popitem(last=False)
        raise StoreError(f"its bytes are not those of its etag {blob.etag}")

    def check_written(self, key: str, data: Data, etag: str | None, read: Callable[[], bytes]) -> None:
        """Compare what was written with the etag that came back; if they differ, read the object and compare.

        Raises:
            StoreError: The store holds other bytes; it is worth writing them again.
        """
        if self._digest_if_other(data, etag) is None:
            return
        if _md5(read()) != _md5(data):
            raise StoreError(f"{key} was written, but other bytes came back")
        with self._lock:
            self._other_etags += 1

    def _digest_if_other(self, data: Data, etag: str | None) -> bytes | None:
        match = _MD5.fullmatch(etag) if etag else None
        if match is None or self._other_etags >= _MAX_OTHER_ETAGS:
            return None
        digest = _md5(data)
        wanted = bytes.fromhex(match[1]) if match[1] else base64.b64decode(match[2])
        return None if digest == wanted else digest


def _md5(data: Data) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


class RetryingStore:
    """A store with retries, a rate limit and checks of content. Safe from any thread.

    A request that fails is retried with exponential back-off and jitter until it has failed for about two minutes, or
    much less if the store has never answered. A store that says it is busy gets fewer requests at a time, and more
    again as it answers, up to as many as before (`RateLimit`). Data that come back are checked by length, and by MD5 if
    the store gives it.

    Args:
        backend: Makes the requests.
        stop: Ends every wait and refuses new requests once it is set; None: nothing does.

    Attributes:
        name, has_listings: Those of the backend.

    Raises:
        FileNotFoundError: From any method: there is no such object.
        PermissionError: The store refuses.
        StorageError: It failed for too long, or the request can never succeed; also an ``OSError``.
        ClosedError: ``stop`` was set.
    """

    def __init__(self, backend: Backend, stop: threading.Event | None = None) -> None:
        self._backend = backend
        self.name, self.has_listings = backend.name, backend.has_listings
        self._stop = stop or threading.Event()
        self._rate = RateLimit()
        self._content = ContentCheck()

    @property
    def has_answered(self) -> bool:
        """Whether the store has ever answered."""
        return self._rate.answered

    def stoppable(self, stop: threading.Event) -> RetryingStore:
        """Return the same store for a caller that may want to stop waiting; both share one rate limit."""
        other = RetryingStore(self._backend, stop)
        other._rate, other._content = self._rate, self._content
        return other

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Yield every object below ``prefix`` at any depth, in any order; takes the memory of one page."""
        last = resumed = None
        backoff = Backoff(answered=self._rate.answered)
        while True:
            try:
                for entry in self._backend.entries(prefix, resumed):
                    if self._stop.is_set():
                        raise ClosedError(f"stopped while listing {self.name}")
                    self._rate.answered = True
                    # Not by comparing order: some stores list in an order that is only nearly that of the keys.
                    if entry.key != resumed:
                        last = entry.key
                        backoff.renew()
                        yield entry
                return
            except StoreError as error:
                resumed = last
                self._wait(backoff, error, "list", prefix)
            except PermissionError as error:
                raise self._refused("list", prefix) from error

    def children(self, prefix: str) -> Children:
        """Return the folders and objects directly below ``prefix``, all of them in memory."""
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
        """Return whether there is such an object; false for a key that the store does not allow."""
        try:
            self.stat(key)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        return True

    def read(self, key: str, start: int = 0, length: int | None = None, *, limit: int | None = None) -> bytes:
        """Return ``length`` bytes of an object from ``start`` on, or all of an object of at most ``limit`` bytes.

        Raises:
            StorageError: Also if it ends before ``start + length``.
            OSError: It is longer than ``limit`` (``EFBIG``).
        """
        if length is None:
            return self._try("read", key, lambda: self._whole(key, limit))
        return self._try("read", key, lambda: self._part(key, start, length))

    def write(self, key: str, data: Data) -> None:
        """Write or replace an object, whole or not at all."""
        self._try("write", key, lambda: self._put(key, data))

    def create(self, key: str, data: Data) -> bool:
        """Write an object unless it exists; return whether it was written. Of several writers, one succeeds."""

        def create() -> bool:
            try:
                self._backend.create(key, data)
            except FileExistsError:
                return False
            return True

        return self._try("create", key, create)

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is not an error."""
        self._try("delete", key, lambda: self._backend.delete(key))

    def delete_below(self, prefix: str) -> None:
        """Delete everything below a prefix; in a store without folders, object by object."""
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
            size_bytes = self._backend.stat(key).size_bytes
            problem = f"{len(data)} bytes came from byte {start} on instead of {length}"
            # A short answer may be an accident of the network; a short object stays short.
            raise StoreError(f"{problem}; it has {size_bytes} bytes", retry=size_bytes >= start + length)
        return data

    def _put(self, key: str, data: Data) -> None:
        etag = self._backend.put(key, data)
        self._content.check_written(key, data, etag, lambda: self._backend.get(key).data)

    def _try(self, what: str, key: str, request: Callable[[], _T]) -> _T:
        backoff = Backoff(answered=self._rate.answered)
        while True:
            try:
                with self._rate.turn(self._stop):
                    answer = request()
            except StoreError as error:
                self._wait(backoff, error, what, key)
            except FileNotFoundError as error:
                self._rate.succeeded()
                raise FileNotFoundError(2, "there is no such object", f"{self.name}/{key}") from error
            except PermissionError as error:
                raise self._refused(what, key) from error
            else:
                self._rate.succeeded()
                return answer

    def _wait(self, backoff: Backoff, error: StoreError, what: str, key: str) -> None:
        self._rate.failed(busy=error.busy, answered=error.answered)
        seconds = backoff.after(error, time.monotonic())
        if seconds is None:
            where = f"{self.name}/{key}"
            message = f"cannot {what} {where}: {error}"
            if error.retry:
                message += "; ".join(["", f"tried {backoff.tries} times", *filter(None, [error.advice])])
            raise StorageError(message, path=where) from error
        _log.info("cannot %s %s/%s: %s; trying again in %.1f s", what, self.name, key, error, seconds)
        if self._stop.wait(seconds):
            raise ClosedError(f"stopped while waiting for {self.name}")

    def _refused(self, what: str, key: str) -> PermissionError:
        advice = "give credentials that may do so; see docs/how-to/buckets.md"
        return PermissionError(13, f"the store does not allow to {what} this; {advice}", f"{self.name}/{key}")
