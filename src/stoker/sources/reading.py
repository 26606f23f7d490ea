"""Reading one source file whole."""

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
    # O_NONBLOCK: should the file have become a named pipe since it was listed, opening it must not wait.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        data = os.read(file, size_hint + 1)
        if len(data) <= size_hint:
            return data
        return _read_on(file, data)
    finally:
        os.close(file)


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
