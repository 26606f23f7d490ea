"""Reading what a source consists of: whole files, slices of tars, the lines of lists; many at a time, in order."""

from __future__ import annotations

import errno
import os
import shlex
from codecs import BOM_UTF8
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from stoker.errors import SourceError, StorageError
from stoker.storage import Location, from_uri, join, read_at, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from concurrent.futures import Future


MAX_FILE_BYTES = 2**30
"""Largest source file that is read: a ``tf.train.Example`` cannot hold 2 GiB, and memory must stay bounded."""

_MAX_LINE_BYTES = 2**16
_MAX_LIST_BYTES = 2**28

NO_SUCH_FILE = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError)
"""What a path raises that leads to no file that can be read."""

AT_ONCE = 32
"""Requests of a listing that are under way at the same time."""

_WAITING_PER_THREAD = 2

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")


def read_file(path: bytes, size_hint: int = 0) -> bytes:
    """Return the bytes of a file or a URL; one that is too large, also by a hint, is not opened."""
    if size_hint > MAX_FILE_BYTES:
        raise _too_large()
    try:
        return read_at(path, MAX_FILE_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _too_large() from error
        raise


def size_or_zero(base: bytes, path: bytes) -> int:
    """Return how many bytes a file below a folder has; 0 of one that is not there, which a build then rejects."""
    try:
        return from_uri(join(base, path)).size()
    except StorageError:
        raise
    except OSError:
        return 0


def sizes_of(base: bytes, paths: Iterable[bytes]) -> dict[bytes, int]:
    """Return `size_or_zero` of files that no listing has, by path: one that is missing is an item all the same."""
    each = dict.fromkeys(paths)
    return dict(zip(each, in_order(partial(size_or_zero, base), each, from_uri(base).requests_at_once), strict=True))


def first_file(folders: Iterable[Location], names: Collection[str]) -> Location | None:
    """Return the first file of some names, which the first of some folders has that has one; None without any."""
    return next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)


def read_annotation(path: bytes) -> bytes | None:
    """Return the file of an annotation; None if there is none."""
    try:
        return read_file(path, 2**12)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except StorageError:
        raise  # the store fails, not this annotation
    except OSError as error:
        raise SourceError(f"cannot read the annotation: {error.strerror or error}", path=os.fsdecode(path)) from error


def read_web(url: bytes) -> bytes:
    """Return what a web server sends for a URL; see `stoker.storage.read_url`."""
    from stoker.storage import read_url  # noqa: PLC0415 - takes a tenth of a second, and most sources do without

    return read_url(url)


def read_slice(path: bytes, offset: int, size: int) -> bytes:
    """Return ``size`` bytes of a file from ``offset`` on."""
    if size > MAX_FILE_BYTES:
        raise _too_large()
    data = from_uri(path).read_range(offset, size, known_size=offset + size)
    if len(data) < size:
        where = os.fsdecode(path)
        message = f"{where} has become shorter since it was listed: it ends at byte {offset + len(data)}"
        raise SourceError(f"{message}, inside an image that ends at {offset + size}", path=where)
    return data


def _too_large() -> SourceError:
    return SourceError(f"the file is larger than {MAX_FILE_BYTES} bytes, the most that fits into one record")


def raw_lines(path: Location, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the text of each line, with its end, but without a byte order mark.

    Lines are held in memory, so a longer one than so many bytes is refused.
    """
    number = 0
    with path.reader() as file:
        while line := file.readline(most_bytes + 1):
            number += 1
            if len(line) > most_bytes:
                message = f"{path}: line {number} is longer than {most_bytes} bytes; is it a text file?"
                raise SourceError(message, path=str(path))
            yield number, line.removeprefix(BOM_UTF8) if number == 1 else line


def numbered_lines(path: Location) -> Iterator[tuple[int, bytes]]:
    """Yield the number (from 1) and the text of each line, without its end (LF or CR LF), blank ones too."""
    for number, line in raw_lines(path, _MAX_LINE_BYTES):
        yield number, line.removesuffix(b"\n").removesuffix(b"\r")


def nonblank_lines(path: Location) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the text of each line that is not blank, of a list that is small enough to be held."""
    if path.size() > _MAX_LIST_BYTES:
        raise SourceError(f"{path} is larger than {_MAX_LIST_BYTES} bytes, too large for a list", path=str(path))
    for number, line in numbered_lines(path):
        if line.strip():
            yield number, line


def text_of(path: Location, number: int, line: bytes, first: int = 0, errors: str = "strict") -> str:
    """Return the text of a line from a byte on; refuse one that is not UTF-8, with what to type to convert the file."""
    try:
        return line[first:].decode("utf-8", errors)
    except UnicodeDecodeError as error:
        message = f"line {number} of {path}: it is not UTF-8 at byte {first + error.start}; {conversion_of(path)}"
        raise SourceError(message, path=str(path)) from error


def conversion_of(path: Location) -> str:
    """Return what to type to convert a file to UTF-8."""
    where = shlex.quote(str(path))
    typed = f"iconv -f WINDOWS-1252 -t UTF-8 {where} > {where}.utf8 && mv {where}.utf8 {where}"
    return f"if it is Windows-1252, as Excel writes it, type: {typed}"


def in_order(work: Callable[[_Task], _Result], tasks: Iterable[_Task], at_once: int = AT_ONCE) -> Iterator[_Result]:
    """Yield the result of each task in the order of the tasks.

    At most twice as many results as there are threads are held. The first error of a task, in their order,
    ends the iteration.

    Args:
        work: Called with each task, in any thread.
        tasks: Taken when there is space, in the calling thread.
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
