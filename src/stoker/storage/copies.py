"""Copies of objects on this machine, for work that needs every byte of them, or a long stretch, in a file."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import StorageError
from stoker.storage.pool import stoppable_pool
from stoker.storage.scratch import no_room, scratch_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from stoker.storage.location import StoreLocation
    from stoker.storage.patient import PatientStore

_PIECE_BYTES = 2**22
_OTHER_PIECE_BYTES = _PIECE_BYTES // 3 * 2  # what goes wrong at the same place of every answer goes wrong elsewhere
_AT_ONCE = 4  # of each copy; there is one for each thread that works
_SAME_READS = 3
_MOST_READS = 24


def local_copy(place: Path | StoreLocation) -> AbstractContextManager[LocalCopy]:
    """The former name of `stoker.storage.location.BaseLocation.local_copy`."""
    return nullcontext(LocalCopy(place)) if isinstance(place, Path) else place.local_copy()


@contextmanager
def store_copy(store: PatientStore, key: str) -> Iterator[LocalCopy]:
    """Give the bytes of an object as a file of this machine; see `stoker.storage.Location.local_copy`."""
    size = store.size(key)
    with scratch_file(_why(f"{store.name}/{key}")) as file:
        os.ftruncate(file.fileno(), size)  # a hole takes no space
        yield StoreCopy(store, key, size, file.fileno())


class LocalCopy:
    """A file of this machine, which needs no copy.

    Attributes:
        path: Where its bytes can be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def fetch(self, end: int | None = None) -> None:
        """See that the bytes below ``end`` are there, or all of them."""

    def confirm(self) -> bool:
        """See that all bytes are those of the original, and return whether some were not."""
        return False


class StoreCopy(LocalCopy):
    """An object in a store, copied from its beginning as far as is asked for. For one thread at a time.

    Args:
        store: Where it lies.
        key: Which object.
        size_bytes: Its length.
        file: An open file of that length for its bytes.
    """

    def __init__(self, store: PatientStore, key: str, size_bytes: int, file: int) -> None:
        super().__init__(Path(f"/proc/self/fd/{file}"))
        self._store = store
        self._key = key
        self._source = f"{store.name}/{key}"
        self._size = size_bytes
        self._file = file
        self._end = 0

    def fetch(self, end: int | None = None) -> None:
        """See that the bytes below ``end`` are there, or all of them; several requests at a time.

        Raises:
            OSError: The store cannot be read, or there is no room for the copy.
        """
        until = self._size if end is None else min(end, self._size)
        starts = range(self._end, until, _PIECE_BYTES)
        if len(starts) == 1:
            self._fetch_piece(starts[0])
        elif starts:
            self._at_once(self._fetch_piece, starts)
        if starts:
            self._end = min(self._size, starts[-1] + _PIECE_BYTES)

    def confirm(self) -> bool:
        """Read the object again, and where it differs from the copy, until it is certain; return whether it differed.

        Where something was changed on the way it is hardly changed again in the same way: two equal reads are believed,
        and after a doubt three in a row.

        Raises:
            StorageError: What comes is another thing each time.
            OSError: The store cannot be read, or there is no room for the copy.
        """
        self.fetch()
        found: list[int] = []
        self._at_once(lambda start: self._confirm_piece(start, found), range(0, self._size, _OTHER_PIECE_BYTES))
        return bool(found)

    def _at_once(self, work: Callable[[int], None], starts: range) -> None:
        with stoppable_pool(min(_AT_ONCE, max(1, len(starts))), "stoker-copy") as pool:
            for _ in pool.map(work, starts):
                pass

    def _fetch_piece(self, start: int) -> None:
        self._write(start, self._read(start, _PIECE_BYTES))

    def _confirm_piece(self, start: int, found: list[int]) -> None:
        before = os.pread(self._file, _OTHER_PIECE_BYTES, start)
        data = self._read_surely(start)
        if data == before:
            return
        same = 1
        for _ in range(_MOST_READS):
            again = self._read_surely(start)
            same = same + 1 if again == data else 1
            data = again
            if same == _SAME_READS:
                break
        else:
            message = f"bytes {start} to {start + len(data)} of {self._source} are others each time they are read"
            raise StorageError(f"{message}; see what lies between here and the store", path=self._source)
        if data != before:
            found.append(start)
            self._write(start, data)

    def _read(self, start: int, length: int) -> bytes:
        return self._store.read(self._key, start, min(length, self._size - start))

    def _read_surely(self, start: int) -> bytes:
        """Return the bytes from ``start`` on; of a short object by reading all, which the store's checksum covers."""
        if self._size > _OTHER_PIECE_BYTES:
            return self._read(start, _OTHER_PIECE_BYTES)
        data = self._store.read(self._key)
        if len(data) != self._size:
            message = f"{self._source} had {self._size} bytes and has {len(data)}; do not change it while it is read"
            raise StorageError(message, path=self._source)
        return data

    def _write(self, start: int, data: bytes) -> None:
        transform = memoryview(data)
        try:
            while transform:
                written = os.pwrite(self._file, transform, start)
                transform, start = transform[written:], start + written
        except OSError as error:
            raise no_room(error, _why(self._source)) from error


def _why(source: str) -> str:
    return f"{source} has to be copied there"
