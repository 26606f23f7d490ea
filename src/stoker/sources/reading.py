"""Reading one source image whole: a file, or a slice of a tar."""

from __future__ import annotations

import os

from stoker.errors import SourceError

MAX_FILE_BYTES = 2**30
"""Largest source file that is read: a ``tf.train.Example`` cannot hold 2 GiB, and memory must stay bounded."""


def read_file(path: bytes, size_hint: int) -> bytes:
    """Return the bytes of a file.

    Args:
        path: File to read.
        size_hint: Its size as far as known; a file of that size costs one read call.

    Raises:
        OSError: The file cannot be opened or read.
        SourceError: It is larger than `MAX_FILE_BYTES`.
    """
    if size_hint > MAX_FILE_BYTES:
        raise _too_large()
    file = _open(path)
    try:
        data = os.read(file, size_hint + 1)
        if len(data) <= size_hint:
            return data
        return _read_on(file, data)
    finally:
        os.close(file)


def read_slice(path: bytes, offset: int, size: int) -> bytes:
    """Return ``size`` bytes of a file from ``offset`` on.

    Raises:
        OSError: The file cannot be opened or read.
        SourceError: They are more than `MAX_FILE_BYTES`, or the file ends before them.
    """
    if size > MAX_FILE_BYTES:
        raise _too_large()
    data = read_head(path, offset, size)
    if len(data) < size:
        where = os.fsdecode(path)
        message = f"{where} has become shorter since it was listed: it ends at byte {offset + len(data)}"
        raise SourceError(f"{message}, inside an image that ends at {offset + size}", path=where)
    return data


def read_head(path: bytes, offset: int, size: int) -> bytes:
    """Return up to ``size`` bytes of a file from ``offset`` on, fewer only where the file ends.

    Raises:
        OSError: The file cannot be opened or read.
    """
    file = _open(path)
    try:
        data = os.pread(file, size, offset)
        while len(data) < size and (part := os.pread(file, size - len(data), offset + len(data))):
            data += part
        return data
    finally:
        os.close(file)


def _open(path: bytes) -> int:
    # O_NONBLOCK: should the file have become a named pipe since it was listed, opening it must not wait.
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def _read_on(file: int, data: bytes) -> bytes:
    """Finish reading a file that is larger than it was said to be."""
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
