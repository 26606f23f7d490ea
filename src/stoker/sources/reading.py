"""Reading one source image whole: a file or an object of a store, or a slice of a tar."""

from __future__ import annotations

import errno
import os
import posixpath
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from stoker.errors import SourceError, StorageError
from stoker.storage import RemotePath, is_remote, regular_descriptor, stoppable_pool
from stoker.storage.named import naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from stoker.storage import Location


# Places as bytes, which is how items and tables spell them: an absolute path of this machine, or a URL.


def spelled(place: Location) -> bytes:
    """Return a place as bytes: absolute, links resolved."""
    if isinstance(place, RemotePath):
        return str(place).encode("utf-8", "surrogateescape")
    return os.path.realpath(os.fsencode(place))


def place_at(where: bytes) -> Location:
    """Return the place that an absolute path or a URL means.

    As in paths of files, an empty part or ``.`` of a URL means nothing, and ``..`` the folder above.

    Raises:
        ConfigError: It is a URL that Stoker cannot read.
    """
    if not is_remote(where):
        return Path(os.fsdecode(where))
    return object_at(where)


def object_at(where: bytes) -> RemotePath:
    """Return the object or the folder that a URL means; see `place_at`."""
    bucket, key = split_bucket(where)
    plain = posixpath.normpath(b"/" + key.lstrip(b"/"))
    return RemotePath.parse((bucket + plain).decode("utf-8", "surrogateescape"))


def split_bucket(where: bytes) -> tuple[bytes, bytes]:
    """Return the scheme and the bucket of a URL, and the rest without slashes in front; a path has no bucket."""
    if not is_remote(where):
        return b"", where
    scheme, _, rest = where.partition(b"://")
    bucket, _, key = rest.partition(b"/")
    return scheme + b"://" + bucket, key


def is_absolute(path: bytes) -> bool:
    """Return whether a path of an item is not relative to the base of its source."""
    return path.startswith(b"/") or is_remote(path)


def within(base: bytes, path: bytes) -> bytes:
    """Return the absolute path or the URL of an item."""
    return path if is_absolute(path) else base + b"/" + path


def beside(place: Location, text: str) -> Location:
    """Return what a path or URL means that is written in a file: relative to the folder of that."""
    if isinstance(place, Path) and not is_remote(text):
        return place.parent / text
    return place_at(within(spelled(place.parent), os.fsencode(text)))


MAX_FILE_BYTES = 2**30
"""Largest source file that is read: a ``tf.train.Example`` cannot hold 2 GiB, and memory must stay bounded."""


def read_file(path: bytes, size_hint: int) -> bytes:
    """Return the bytes of a file.

    Args:
        path: File to read, or its URL.
        size_hint: Its size as far as known; a file of that size costs one read call.

    Raises:
        OSError: The file cannot be opened or read.
        SourceError: It is larger than `MAX_FILE_BYTES`.
    """
    if size_hint > MAX_FILE_BYTES:
        raise _too_large()
    if is_remote(path):
        return _read_object(object_at(path))
    with _opened(path) as file:
        data = os.read(file, size_hint + 1)
        return data if len(data) == size_hint else _read_on(file, data)


def read_slice(path: bytes, offset: int, size: int) -> bytes:
    """Return ``size`` bytes of a file from ``offset`` on.

    Raises:
        OSError: The file cannot be opened or read.
        SourceError: They are more than `MAX_FILE_BYTES`, or the file ends before them.
    """
    if size > MAX_FILE_BYTES:
        raise _too_large()
    data = read_head(path, offset, size, known_end=offset + size)
    if len(data) < size:
        where = os.fsdecode(path)
        message = f"{where} has become shorter since it was listed: it ends at byte {offset + len(data)}"
        raise SourceError(f"{message}, inside an image that ends at {offset + size}", path=where)
    return data


def read_start(place: Location, size: int) -> bytes:
    """Return the first ``size`` bytes of a file, fewer only where it ends.

    Raises:
        OSError: The file cannot be opened or read.
    """
    return read_head(spelled(place), 0, size)


def read_head(path: bytes, offset: int, size: int, known_end: int = 0) -> bytes:
    """Return up to ``size`` bytes of a file from ``offset`` on, fewer only where the file ends.

    Args:
        path: The file, or its URL.
        offset: Where to begin.
        size: How many bytes.
        known_end: The file is probably at least that long; saves a request where that is ``offset + size``.

    Raises:
        OSError: The file cannot be opened or read.
    """
    if is_remote(path):
        return _read_part(object_at(path), offset, size, known_end)
    with _opened(path) as file:
        data = os.pread(file, size, offset)
        while len(data) < size and (part := os.pread(file, size - len(data), offset + len(data))):
            data += part
        return data


def _read_object(place: RemotePath) -> bytes:
    try:
        return place.store.read(place.key, limit=MAX_FILE_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _too_large() from error
        raise


def _read_part(place: RemotePath, offset: int, size: int, known_end: int) -> bytes:
    if 0 < size <= known_end - offset:
        try:
            return place.store.read(place.key, offset, size)
        except StorageError:
            if place.stat().st_size >= offset + size:  # it is not that the object has become shorter
                raise
    there = min(size, place.stat().st_size - offset)
    return place.store.read(place.key, offset, there) if there > 0 else b""


@contextmanager
def _opened(path: bytes) -> Iterator[int]:
    file = regular_descriptor(path)  # it may have become a named pipe since it was listed
    try:
        with naming(path):
            yield file
    finally:
        os.close(file)


def _read_on(file: int, data: bytes) -> bytes:
    """Finish reading a file of another size than it was said to be, or that came in pieces, as from a network."""
    parts = [data]
    total = len(data)
    while part := os.read(file, 2**20):
        parts.append(part)
        total += len(part)
        if total > MAX_FILE_BYTES:
            raise _too_large()
    return b"".join(parts)


def _too_large() -> SourceError:
    return SourceError(f"the file is larger than {MAX_FILE_BYTES} bytes, the most that fits into one record")


# Several tasks at a time whose results come in the order of the tasks.


_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

AT_ONCE = 32
"""Requests of a listing that are under way at the same time."""

_WAITING_PER_THREAD = 2


def in_order(work: Callable[[_Task], _Result], tasks: Iterable[_Task], at_once: int = AT_ONCE) -> Iterator[_Result]:
    """Yield the result of each task in the order of the tasks.

    At most twice as many results as there are threads are held. The first error of a task, in their order, ends it all.

    Args:
        work: Done for each task, in any thread.
        tasks: Taken as there is room, in the calling thread.
        at_once: How many tasks are done at the same time; 1 takes no thread.
    """
    if at_once == 1:
        yield from map(work, tasks)
        return
    waiting: deque[Future[_Result]] = deque()
    with stoppable_pool(at_once, "stoker-list") as pool:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) == at_once * _WAITING_PER_THREAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
