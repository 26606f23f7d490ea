"""What lies in the directory of a node cache: `stoker.feed.cache_directory` says under which names."""

from __future__ import annotations

import fcntl
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.storage import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAMPLES_SUFFIX = ".samples"
ABOUT_SUFFIX = ".json"
OPEN_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""How every file of a cache is opened: a link is not followed, and a pipe is not waited for."""

_OWN = re.compile(r"(?P<key>[0-9a-f]{32})\.(?:samples|json)(?P<unfinished>\.tmp-.*)?")
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system
_ABOUT_BYTES = 65536


@dataclass(frozen=True, slots=True)
class About:
    """Which samples an entry has.

    Attributes:
        dataset: Where the dataset lay when the entry was made.
        split: Its split.
        samples: How many samples the split has.
    """

    dataset: str
    split: str
    samples: int


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One file of samples.

    Attributes:
        key: Stands for the dataset, its split and its state.
        about: What is known of it; None when its description is lost.
        disk_bytes: What it takes on the disk.
        file_bytes: What it would take with every sample in it.
        last_use: When it was last opened, in seconds since 1970.
        in_use: Whether a process has it open.
    """

    key: str
    about: About | None
    disk_bytes: int
    file_bytes: int
    last_use: float
    in_use: bool


def find_entries(directory: Path) -> list[CacheEntry]:
    """Return the entries of a cache, those first that were not used for longest.

    Raises:
        OSError: The directory cannot be read.
    """
    found = [_entry(path) for path in directory.iterdir() if path.suffix == SAMPLES_SUFFIX]
    return sorted((entry for entry in found if entry is not None), key=lambda entry: (entry.last_use, entry.key))


def unfinished_files(directory: Path) -> Iterator[Path]:
    """Yield what processes that were killed have left of files of their own making.

    Raises:
        OSError: The directory cannot be read.
    """
    for path in list(directory.iterdir()):
        named = _OWN.fullmatch(path.name)
        if named and named["unfinished"] and not path.is_dir():
            yield path


def try_lock(descriptor: int, kind: int) -> bool:
    """Take a lock of ``flock``, and return whether it was to be had at once.

    Raises:
        OSError: The file system knows no locks.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _entry(path: Path) -> CacheEntry | None:
    named = _OWN.fullmatch(path.name)
    if named is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY | OPEN_FLAGS)
    except OSError:  # a link, or gone
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        in_use = not try_lock(descriptor, fcntl.LOCK_EX)
    finally:
        os.close(descriptor)
    about, last_use = _read_about(path.with_suffix(ABOUT_SUFFIX))
    disk_bytes = status.st_blocks * _BLOCK_BYTES
    return CacheEntry(named["key"], about, disk_bytes, status.st_size, last_use or status.st_mtime, in_use)


def _read_about(path: Path) -> tuple[About | None, float | None]:
    try:
        with open(os.open(path, os.O_RDONLY | OPEN_FLAGS), "rb") as file:  # noqa: PTH123 - of a descriptor
            last_use = os.fstat(file.fileno()).st_mtime
            known = parse_json(file.read(_ABOUT_BYTES))
        return About(str(known["dataset"]), str(known["split"]), int(known["samples"])), last_use
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None, None
