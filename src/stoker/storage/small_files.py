"""Small files that somebody else may have written: read with a bound, and JSON without surprises."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from stoker.storage.location import RemotePath
from stoker.storage.named import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.storage.location import Location

_MOST_LEVELS = 64


def is_named(place: Location) -> bool:
    """Return whether something has this name: an object; on a disk anything, also a link that leads nowhere."""
    return place.is_file() if isinstance(place, RemotePath) else os.path.lexists(place)


@contextmanager
def open_regular(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of this machine for reading; errors of the system have its name as long as it is open.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    with naming(path), os.fdopen(regular_descriptor(path), "rb") as file:
        yield file


def regular_descriptor(path: Path | bytes) -> int:
    """Open a file of this machine for reading; a named pipe is not waited for, and a device not read.

    Returns:
        The descriptor, which is the caller's to close.

    Raises:
        OSError: It cannot be opened, or is no regular file.
    """
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    mode = os.fstat(file).st_mode
    if stat.S_ISREG(mode):
        return file
    os.close(file)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fsdecode(path))
    raise OSError(errno.EINVAL, "is a pipe or a device, not a file", os.fsdecode(path))


def read_small(place: Location, limit: int) -> bytes:
    """Return the whole of a file that must not be large.

    Args:
        place: The file.
        limit: Most bytes it may have.

    Raises:
        OSError: It is larger (``EFBIG``), no regular file, or cannot be read.
    """
    if isinstance(place, Path):
        with open_regular(place) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= limit:
                return file.read(size)
    elif place.stat().st_size <= limit:
        return place.read_bytes()
    raise OSError(errno.EFBIG, f"is larger than {limit} bytes", str(place))


def parse_json(text: bytes) -> Any:
    """Return what a JSON document in UTF-8 says, if every reader of JSON understands the same by it.

    Raises:
        ValueError: It is no JSON (``json.JSONDecodeError``, with the place), or holds a key twice, a number that is
            not finite or has thousands of digits, or is nested more than 64 deep.
    """
    try:
        document = json.loads(
            text.decode(), object_pairs_hook=_object, parse_float=_finite, parse_constant=_no_constant
        )
    except RecursionError:
        raise _too_deep() from None
    level = [document]
    for _ in range(_MOST_LEVELS):
        level = [child for node in level for child in _children(node)]
        if not level:
            return document
    raise _too_deep()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"it has the key {twice!r} twice")
    return made


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _children(node: object) -> list[Any]:
    if isinstance(node, dict):
        return list(node.values())
    return node if isinstance(node, list) else []


def _too_deep() -> ValueError:
    return ValueError(f"it is nested more than {_MOST_LEVELS} deep")
