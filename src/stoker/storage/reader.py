"""An object as a file to read from: in long strokes, the next one fetched while this one is used."""

from __future__ import annotations

import io
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from stoker.storage.patient import PatientStore

_STROKE_BYTES = 2**22


class ObjectReader(io.RawIOBase):
    """Reads an object from any place on. For one thread at a time.

    Reading on from where the last stroke ended, or not far from there, fetches the next one ahead, so that walking
    through a long object costs its bytes and not its requests. Takes at most three strokes of memory.

    Args:
        store: Where it lies.
        key: Which object.

    Raises:
        OSError: It is not there, or cannot be read; from any method.
    """

    def __init__(self, store: PatientStore, key: str) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._size = store.size(key)
        self._at = 0
        self._stroke = memoryview(b"")
        self._start = 0  # of the stroke
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: tuple[int, Future[bytes]] | None = None

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
        """Go to a place; nothing is read yet."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"there is no byte {base + offset} in {self._store.name}/{self._key}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer as far as this stroke reaches; 0 at the end of the object."""
        if self._at >= self._size:
            return 0
        if not self._start <= self._at < self._start + len(self._stroke):
            self._fetch()
        some = self._stroke[self._at - self._start :][: len(buffer)]
        buffer[: len(some)] = some
        self._at += len(some)
        return len(some)

    def close(self) -> None:
        """Let go of the strokes and of the thread."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        self._stroke, self._ahead = memoryview(b""), None
        super().close()

    def _fetch(self) -> None:
        """Get the stroke in which the next read begins, and the one after that where the reads go on and on."""
        end = self._start + len(self._stroke)
        follows = 0 < end <= self._at < end + _STROKE_BYTES  # a walk through a tar leaves some out
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] <= self._at < ahead[0] + _STROKE_BYTES:
            self._start, data = ahead[0], ahead[1].result()
        else:
            self._start, data = self._at, self._read(self._at)
        self._stroke, end = memoryview(data), self._start + len(data)
        if follows and end < self._size:
            self._pool = self._pool or ThreadPoolExecutor(1, "stoker-ahead")
            self._ahead = (end, self._pool.submit(self._read, end))

    def _read(self, start: int) -> bytes:
        return self._store.read(self._key, start, min(_STROKE_BYTES, self._size - start))
