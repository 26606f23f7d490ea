"""Dropping files from the page cache, without being root, and seeing how much of them is still in it."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_MOST_LEFT = 0.1
"""Share of the bytes that may be left for figures to be called cold; other programs may be reading the files, too."""


def drop_from_page_cache(paths: Iterable[Path]) -> float:
    """Ask the system to forget what it holds of some files; return the share of bytes that is still in memory.

    Raises:
        ConfigError: The system cannot do that.
    """
    if not hasattr(os, "posix_fadvise"):
        raise ConfigError(
            "this system has no posix_fadvise, so its page cache cannot be emptied; measure without --cold"
        )
    cached = total = 0
    for path in paths:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(file)  # what is not on the disk yet cannot be dropped
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            size = os.fstat(file).st_size
            cached += _cached_bytes(file, size)
            total += size
        finally:
            os.close(file)
    return cached / total if total else 0.0


def require_cold(paths: Sequence[Path]) -> None:
    """Drop files from the page cache, and refuse figures that would not be cold.

    Raises:
        ConfigError: The system cannot do that, or not with these files; or there are none.
    """
    if not paths:
        raise ConfigError("nothing that is chosen reads files of this machine; measure without --cold")
    share = drop_from_page_cache(paths)
    if share > _MOST_LEFT:
        why = "their file system keeps them there, as tmpfs does, or another program uses them"
        raise ConfigError(
            f"{share:.0%} of the files stay in memory: {why}; move the dataset, prepare elsewhere with TMPDIR, "
            "or measure without --cold"
        )


def cached_bytes(path: Path) -> tuple[int, int]:
    """Return how many bytes of a file are in the page cache, and how many it has; brings nothing in."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(file).st_size
        return _cached_bytes(file, size), size
    finally:
        os.close(file)


def _cached_bytes(file: int, size: int) -> int:
    """Return how many bytes of a file are in the page cache, by ``mincore``: unlike reading, it brings nothing in."""
    if size == 0:
        return 0
    pages = -(-size // mmap.PAGESIZE)
    present = np.zeros(pages, np.uint8)
    with mmap.mmap(file, size, access=mmap.ACCESS_COPY) as mapped:  # ctypes takes the address of writable memory only
        start = ctypes.c_char.from_buffer(mapped)
        system = ctypes.CDLL(None, use_errno=True)
        address, length = ctypes.c_void_p(ctypes.addressof(start)), ctypes.c_size_t(size)
        failed = system.mincore(address, length, present.ctypes.data_as(ctypes.c_void_p))
        del start  # it holds the mapping open
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return min(size, int(np.count_nonzero(present & 1)) * mmap.PAGESIZE)
