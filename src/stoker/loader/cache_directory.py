"""The directory of a node cache: its files, which of them are in use, and how entries are evicted.

::

    CACHEDIR.TAG   marks the directory as a cache, for backups, and as one of Stoker's
    budget         8 bytes, least significant first: how many bytes are counted as used
    KEY.samples    the samples of one split of a dataset (`stoker._native.NodeCacheFile`)
    KEY.json       which dataset that is; the time of its last change is that of the last opening

A process that changes anything but samples, or takes bytes of the budget, holds an exclusive ``flock`` of ``budget``.
One that uses samples holds a shared one of their file. Both end with the process, however it ends. Files of other
names are never touched, and no symbolic link is followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from stoker.errors import ConfigError
from stoker.format import INDEXES_FOLDER
from stoker.sources import UNPACKED_FOLDER
from stoker.storage import location
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


TAG_NAME = "CACHEDIR.TAG"
BUDGET_NAME = "budget"
ENTRY_BYTES = 16384
"""What an entry takes beside its samples: its description, and how the file system remembers where its blocks are."""
SAMPLES_SUFFIX = ".samples"
ABOUT_SUFFIX = ".json"
OPEN_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""How every file of a cache is opened: a link is not followed, and a pipe is not waited for."""

_OWN = re.compile(r"(?P<key>[0-9a-f]{32})\.(?:samples|json)(?P<unfinished>\.tmp-.*)?")
_BLOCK_BYTES = 512  # of st_blocks, whatever the file system
_ABOUT_BYTES = 65536
_TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# A cache of samples made by stoker: see stoker cache --help\n"
_OTHERS = frozenset({INDEXES_FOLDER, UNPACKED_FOLDER, "lost+found"})
_NUMBER_BYTES = 8
_LOCK_SECONDS, _PAUSE_SECONDS = 10.0, 0.01


@dataclass(frozen=True, slots=True)
class About:
    """Which samples an entry has."""

    dataset: str  # where the dataset lay when the entry was made
    split: str
    samples: int  # how many samples the split has


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One file of samples."""

    key: str  # stands for the dataset, its split and its state
    about: About | None  # what is known of it; None when its description is lost
    disk_bytes: int  # what it takes on the disk
    file_bytes: int  # what it would take with every sample in it
    last_use: float  # when it was last opened, in seconds since 1970
    in_use: bool  # whether a process has it open


def find_entries(directory: Path) -> list[CacheEntry]:
    """Return the entries of a cache, those first that were not used for longest."""
    entries = [_entry(path) for path in directory.iterdir() if path.suffix == SAMPLES_SUFFIX]
    return sorted((entry for entry in entries if entry is not None), key=lambda entry: (entry.last_use, entry.key))


def try_lock(descriptor: int, kind: int) -> bool:
    """Take a lock of ``flock``, and return whether it was to be had at once.

    Raises:
        OSError: The file system has no locks.
    """
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(descriptor: int) -> None:
    """Give a lock back and close its file: a process that was forked meanwhile keeps the file open, and so the lock."""
    with contextlib.suppress(OSError):  # there are file systems without locks
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


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
        _unlock(descriptor)
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


class CacheDirectory:
    """A cache directory that may be there or not."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Make the directory, unless it is there.

        Nothing is written where another tag lies, or files of a cache without their tag.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.is_tagged():
            return
        names = {path.name for path in self.path.iterdir()}
        others = sorted(name for name in names if not name.startswith(TAG_NAME) and name not in _OTHERS)
        is_cache = BUDGET_NAME in names or any(map(_OWN.fullmatch, names)) or (TAG_NAME in names and not others)
        if (others or is_cache) and not self.is_tagged():  # which another process may have done just now
            if is_cache:
                raise OSError(f"its {TAG_NAME} is damaged or missing; remove the directory to start a new cache")
            message = f"{self.path} is not a Stoker cache: it holds {others[0]!r} and perhaps more"
            raise ConfigError(f"{message}; give an empty or new directory")
        if TAG_NAME not in names:
            location(self.path / TAG_NAME).write_atomically(_TAG)

    def is_tagged(self) -> bool:
        """Return whether it is a cache of Stoker."""
        try:
            with open(os.open(self.path / TAG_NAME, os.O_RDONLY | OPEN_FLAGS), "rb") as file:  # noqa: PTH123
                return file.read(len(_TAG)) == _TAG
        except OSError:
            return False

    def entries(self) -> list[CacheEntry]:
        """Return the entries, those first that were not used for longest; none if it is not a cache."""
        return find_entries(self.path) if self.is_tagged() else []

    @contextmanager
    def locked(self) -> Iterator[int]:
        """Keep every other process from changing anything but samples; gives a descriptor of the counter."""
        counter = self.open_file(BUDGET_NAME)
        try:
            self._wait_for(counter, fcntl.LOCK_EX)
            yield counter
        finally:
            _unlock(counter)

    def open_file(self, name: str) -> int:
        """Open a file of this directory for reading and writing, making it if need be, and return its descriptor."""
        path = self.path / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | OPEN_FLAGS, 0o600)
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
            return descriptor
        os.close(descriptor)
        raise OSError(f"{path} is not a file that a cache would make; remove it")

    def acquire(self, key: str, about: About, file_bytes: int, budget: int) -> int | None:
        """Make an entry or find it, evict others for it, and return a descriptor of its file that holds it in use.

        Args:
            key: 32 hex digits.
            about: Written down for people.
            file_bytes: Length of the file with every sample in it.
            budget: Bytes that all entries may take.

        Returns:
            The descriptor, the caller's to close; None when not even an empty entry fits, because others are in use.
        """
        with self.locked() as counter:
            entries = self.entries()
            used = _used(counter, entries)
            mine = next((entry for entry in entries if entry.key == key), None)
            there = mine.disk_bytes if mine else -ENTRY_BYTES
            others = [entry for entry in entries if entry is not mine]
            used = self._evict(others, used, budget - (file_bytes - there))
            if mine and used > budget:  # it was made under a larger budget
                used, mine = self._evict([mine], used, budget), None if not mine.in_use else mine
            fits = mine is not None or used + ENTRY_BYTES <= budget
            _write_number(counter, used + ENTRY_BYTES if fits and mine is None else used)
            return self._open_samples(key, about, file_bytes) if fits else None

    def clear(self) -> list[CacheEntry]:
        """Remove the entries that are not in use, and return them."""
        with self.locked() as counter:
            entries = self.entries()
            _write_number(counter, self._evict(entries, _used(counter, entries), -1))
            return [entry for entry in entries if not entry.in_use]

    def _open_samples(self, key: str, about: About, file_bytes: int) -> int:
        descriptor = self.open_file(key + SAMPLES_SUFFIX)
        try:
            if os.fstat(descriptor).st_size != file_bytes:
                os.ftruncate(descriptor, file_bytes)
            self._wait_for(descriptor, fcntl.LOCK_SH)  # another process may be looking whether it is in use
        except BaseException:
            os.close(descriptor)
            raise
        # Without its description an entry is as good, so a full disk changes nothing.
        with contextlib.suppress(OSError):
            location(self.path / (key + ABOUT_SUFFIX)).write_atomically(json.dumps(asdict(about)).encode())
        return descriptor

    def _evict(self, entries: list[CacheEntry], used: int, most: int) -> int:
        """Remove entries that are not in use until at most ``most`` bytes are used; return how many are."""
        for path in list(self.path.iterdir()):
            named = _OWN.fullmatch(path.name)
            if named and named["unfinished"] and not path.is_dir():  # left by a process that was killed
                path.unlink()
        for entry in entries:
            if used > most and not entry.in_use:
                for suffix in (SAMPLES_SUFFIX, ABOUT_SUFFIX):
                    (self.path / (entry.key + suffix)).unlink(missing_ok=True)
                used = max(0, used - entry.disk_bytes - ENTRY_BYTES)
        return used

    def _wait_for(self, descriptor: int, kind: int) -> None:
        end = time.monotonic() + _LOCK_SECONDS
        while not try_lock(descriptor, kind):
            if time.monotonic() >= end:
                raise TimeoutError(f"{self.path} has been locked by another process for too long")
            time.sleep(_PAUSE_SECONDS)


def _used(counter: int, entries: list[CacheEntry]) -> int:
    """Return how many bytes are used: as the disk says while no process can take any, else as they were counted."""
    on_disk = sum(entry.disk_bytes + ENTRY_BYTES for entry in entries)
    counted = os.pread(counter, _NUMBER_BYTES, 0)
    if len(counted) < _NUMBER_BYTES or not any(entry.in_use for entry in entries):
        return on_disk
    return int.from_bytes(counted, "little")


def _write_number(counter: int, value: int) -> None:
    os.pwrite(counter, value.to_bytes(_NUMBER_BYTES, "little"), 0)
