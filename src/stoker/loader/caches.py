"""Caches of samples, in memory and on a disk of the node.

Both caches keep the samples that came first, and evict none for others. An epoch reads every sample once, so the sample
just read is needed again later than all cached ones that are still to come; evicting one of these only costs hits. The
share of the samples that fits is the hit rate of every epoch but the first, in any order.

The directory of a cache on a disk::

    CACHEDIR.TAG   marks the directory as a cache, for backups, and as one of Stoker's
    budget         8 bytes, little-endian: how many bytes are counted as used
    KEY.samples    the samples of one split of a dataset (`stoker._native.NodeCacheFile`)
    KEY.json       which dataset that is; its modification time is that of the last opening

A process that changes anything but samples, or takes bytes of the budget, holds an exclusive ``flock`` on ``budget``. A
process that uses samples holds a shared lock on their file. Locks end with the process, however it ends. Files of other
names are never touched, and no symbolic link is followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import stat
import threading
import time
import warnings
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker import _native
from stoker.config import check_choice, check_size, format_size
from stoker.errors import ConfigError
from stoker.forks import PerProcess
from stoker.format import FRAME_BYTES, INDEXES_FOLDER
from stoker.loader.mixes import Mix, parts_of
from stoker.sources import UNPACKED_FOLDER
from stoker.storage import location
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.loader.dataset import Dataset


_KEY_DIGITS = 32


def _wholes(dataset: Dataset | Mix) -> list[Dataset]:
    """Return the splits whose samples a cache holds; parts of one split share them."""
    return [part.whole for part in parts_of(dataset)]


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Hits, misses and size of a cache so far.

    Attributes:
        hits: Samples that came from the cache.
        misses: Samples that had to be read from the dataset.
        bytes: Bytes held now, all bookkeeping included; in a node cache, for all processes and datasets together.
        budget: The most bytes it may hold.
        full: Whether a sample was not cached because it did not fit.
        errors: How often the system refused to read or to write something; the dataset was read instead.
    """

    hits: int
    misses: int
    bytes: int
    budget: int
    full: bool
    errors: int

    @property
    def hit_rate(self) -> float:
        """Hits among all samples read, 0 to 1; 0 before the first."""
        return self.hits / max(1, self.hits + self.misses)

    def __str__(self) -> str:
        reads = self.hits + self.misses
        return f"{format_size(self.bytes)} of {format_size(self.budget)}, {self.hit_rate:.1%} of {reads:,} reads hit"


class MemoryCache:
    """Samples in the memory of this process. Give one to a loader: ``Loader(..., cache=MemoryCache("8GB"))``.

    Several loaders may share one cache, at the same time or one after the other; it lives as long as any reference to
    it. Safe from any thread. It pickles as its settings. In another process, even a forked one, it begins empty.

    Args:
        budget: The most bytes it takes, all bookkeeping included, such as ``"8GB"`` or a number.
        keep: ``encoded``: samples as stored, which saves reading. ``decoded``: pixels, separately for each mode, which
            saves decoding too and takes five to ten times the space.

    Attributes:
        budget: In bytes.
        keep: As given.
        native: The cache of the core.

    Raises:
        ConfigError: The budget is not a size, or ``keep`` is neither of the two.
    """

    def __init__(self, budget: str | int, keep: Literal["encoded", "decoded"] = "encoded") -> None:
        check_choice("keep", keep, ("encoded", "decoded"))
        self.budget = check_size("budget", budget, 1)
        self.keep = keep
        self.native = _native.MemoryCache(self.budget)
        self._served = PerProcess(_Served)

    def source(self, dataset: Dataset | Mix, samples: _native.SampleSource) -> _native.SampleSource:
        """Return a source that reads through this cache, or ``samples`` itself if it caches pixels: the core does that.

        Args:
            dataset: What a loader reads.
            samples: Its source. It must verify what it reads, because that is cached.

        Raises:
            ConfigError: The cache holds samples of another dataset.
        """
        wanted = tuple(f"{location(part.path).absolute()} {part.identity}" for part in _wholes(dataset))
        if self.keep == "decoded":  # then labels are cached too, and depend on these
            wanted += (repr([part.schema for part in parts_of(dataset)]),)
            wanted += (repr(dataset.label_offsets) if isinstance(dataset, Mix) else "",)
        served = self._served.get()
        with served.lock:
            if served.samples not in (None, wanted):
                message = f"this cache holds samples of another dataset, mix or record layout than {dataset!r}"
                raise ConfigError(f"{message}; make a cache for each dataset")
            served.samples = wanted
        return samples if self.keep == "decoded" else _native.CachedSource(samples, self.native)

    def stats(self) -> CacheStats:
        """Return what it has done since it was made."""
        return _stats([self.native.counts()], self.budget)

    def warn_of_problems(self) -> None:
        """Do nothing: unlike a `NodeCache`, memory has no problems to warn of."""

    def __reduce__(self) -> tuple[type[MemoryCache], tuple[int, Literal["encoded", "decoded"]]]:
        # The memory is that of one process: in another one the cache begins empty.
        return MemoryCache, (self.budget, self.keep)

    def __repr__(self) -> str:
        return f"<stoker.MemoryCache of {self.keep} samples: {self.stats()}>"


@dataclass(slots=True)
class _Served:
    lock: threading.Lock = field(default_factory=threading.Lock)
    samples: tuple[str, ...] | None = None


class NodeCache:
    """Samples on a disk of this machine, shared by all of its processes through nothing but the files.

    For datasets that are slow to read, such as those on network storage. Image files are told by size and modification
    time (in stores: by size). A sample that one process has read is cached for all processes and for later runs. Every
    hit is verified by checksums, so that no crash and no damage can give wrong bytes. A disk that is full, a directory
    that cannot be written, and a cache whose ``CACHEDIR.TAG`` is damaged or missing are not errors: the dataset is
    read, and one `UserWarning` says so. Safe from any thread, and in a forked process, which opens the files again.

    Args:
        directory: Created if missing; otherwise it must be empty or such a cache. Not on network storage.
        budget: The most bytes that all files in it take on the disk, such as ``"500GB"`` or a number. All processes
            should give the same.

    Attributes:
        directory: As given.
        budget: In bytes.

    Raises:
        ConfigError: The directory is in a store, or the budget is not a size or is below 64 KiB.
    """

    def __init__(self, directory: str | os.PathLike[str], budget: str | int) -> None:
        folder = location(directory)
        if not folder.is_local:
            message = f"{folder} is in a store, and a NodeCache lies on a disk of this machine"
            raise ConfigError(f"{message}; give a local directory")
        self.directory = Path(directory)
        self.budget = check_size("budget", budget, 4 * ENTRY_BYTES)
        self._use = PerProcess(_Use)

    def source(self, dataset: Dataset | Mix, samples: _native.SampleSource) -> _native.SampleSource:
        """Return a source that reads through this cache, or ``samples`` itself if the directory cannot be used.

        Args:
            dataset: What a loader reads.
            samples: Its source. It must verify what it reads, because that is cached.

        Raises:
            ConfigError: The directory holds other things than a cache, or the images are records of a program.
        """
        use = self._use.get()
        with use.lock:
            try:
                file = self._open(dataset, use)
            except OSError as error:
                use.failures += 1
                self._warn(error.strerror or str(error))
                return samples
        return samples if file is None else _native.CachedSource(samples, file)

    def _open(self, dataset: Dataset | Mix, use: _Use) -> _native.NodeCacheFile | None:
        parts = _wholes(dataset)
        if any(part.reader.given is not None for part in parts):
            message = "a NodeCache keeps files for other processes, and the images are records of this one"
            raise ConfigError(f"{message}; use stoker.MemoryCache(..., keep='decoded'), or build the records first")
        sizes = np.concatenate([part.sample_bytes for part in parts])
        # The key identifies the samples by stamps and sizes: old bytes are never served for changed files.
        digest = hashlib.sha256()
        for part in parts:
            for stamp in part.stamps():
                digest.update(b"%d\0%b" % (len(stamp), stamp))
        digest.update(np.ascontiguousarray(sizes, "<u8").data)
        key = digest.hexdigest()[:_KEY_DIGITS]
        if key in use.files:
            return use.files[key]
        directory = CacheDirectory(self.directory)
        directory.create()
        where = " + ".join(str(location(part.path).absolute()) for part in parts)
        about = About(where, parts[0].split, len(sizes))
        file_bytes = int(sizes.sum()) + FRAME_BYTES * len(sizes)
        samples = directory.acquire(key, about, file_bytes, self.budget)
        if samples is None:
            use.refused = True
            return None
        counter = directory.open_file(BUDGET_NAME)
        try:
            use.files[key] = _native.NodeCacheFile(samples, counter, self.budget, sizes)
        finally:
            os.close(samples)
            os.close(counter)
        return use.files[key]

    def stats(self) -> CacheStats:
        """Return what this object has done in this process."""
        use = self._use.get()
        stats = _stats([file.counts() for file in use.opened()], self.budget)
        return replace(stats, full=stats.full or use.refused, errors=stats.errors + use.failures)

    def warn_of_problems(self) -> None:
        """Warn, once per process, if the system has refused to read or to write something."""
        for file in self._use.get().opened():
            if file.problem:
                self._warn(file.problem)

    def _warn(self, problem: str) -> None:
        use = self._use.get()
        if use.warned:
            return
        use.warned = True
        message = f"the cache {self.directory} cannot be used, or not fully: {problem}"
        warnings.warn(f"{message}; the dataset is read instead", stacklevel=3)

    def __reduce__(self) -> tuple[type[NodeCache], tuple[Path, int]]:
        return NodeCache, (self.directory, self.budget)

    def __repr__(self) -> str:
        return f"<stoker.NodeCache {str(self.directory)!r}: {self.stats()}>"


@dataclass(slots=True)
class _Use:
    lock: threading.Lock = field(default_factory=threading.Lock)
    files: dict[str, _native.NodeCacheFile] = field(default_factory=dict)
    refused: bool = False
    failures: int = 0
    warned: bool = False

    def opened(self) -> list[_native.NodeCacheFile]:
        """Return a copy of the open files, since another thread may be opening one more."""
        return list(self.files.values())


def _stats(counts: list[_native.CacheCounts], budget: int) -> CacheStats:
    return CacheStats(
        hits=sum(count.hits for count in counts),
        misses=sum(count.misses for count in counts),
        bytes=max((count.bytes for count in counts), default=0),
        budget=budget,
        full=any(count.full for count in counts),
        errors=sum(count.errors for count in counts),
    )


# The directory.

TAG_NAME = "CACHEDIR.TAG"
BUDGET_NAME = "budget"
ENTRY_BYTES = 16384
"""Bytes of an entry beside its samples: its description, and what the file system needs to find its blocks."""
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
    """Description of an entry, for people."""

    dataset: str  # where the dataset lay when the entry was made
    split: str
    samples: int  # how many samples the split has


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One file of samples."""

    key: str  # identifies the dataset, its split and its state
    about: About | None  # its description; None if that is lost
    disk_bytes: int  # bytes that it takes on the disk
    file_bytes: int  # bytes that it would take with every sample in it
    last_use: float  # when it was last opened, in seconds since 1970
    in_use: bool  # whether a process has it open


def find_entries(directory: Path) -> list[CacheEntry]:
    """Return the entries of a cache, the least recently used first."""
    entries = [_entry(path) for path in directory.iterdir() if path.suffix == SAMPLES_SUFFIX]
    return sorted((entry for entry in entries if entry is not None), key=lambda entry: (entry.last_use, entry.key))


def try_lock(descriptor: int, kind: int) -> bool:
    """Take a lock of ``flock`` without waiting; return whether that succeeded. ``OSError`` where there are no locks."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(descriptor: int) -> None:
    """Release a lock and close its file: closing alone is not enough where a forked process holds the file open."""
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
        """Create the directory if missing; refuse one with other files, or with a cache whose tag is not valid."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.is_tagged():
            return
        names = {path.name for path in self.path.iterdir()}
        others = sorted(name for name in names if not name.startswith(TAG_NAME) and name not in _OTHERS)
        is_cache = BUDGET_NAME in names or any(map(_OWN.fullmatch, names)) or (TAG_NAME in names and not others)
        if (others or is_cache) and not self.is_tagged():  # another process may have tagged it just now
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
        """Return the entries, the least recently used first; none if it is not a cache."""
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
        """Find or make an entry, evict others for it, and return a descriptor of its file, which keeps it in use.

        The caller closes the descriptor. None if not even an empty entry fits into the budget, because others are in
        use. The file will have ``file_bytes`` with every sample in it; ``about`` is saved for people.
        """
        with self.locked() as counter:
            entries = self.entries()
            used = _used(counter, entries)
            existing = next((entry for entry in entries if entry.key == key), None)
            existing_bytes = existing.disk_bytes if existing else -ENTRY_BYTES
            others = [entry for entry in entries if entry is not existing]
            used = self._evict(others, used, budget - (file_bytes - existing_bytes))
            if existing and used > budget:  # it was made under a larger budget
                used, existing = self._evict([existing], used, budget), None if not existing.in_use else existing
            fits = existing is not None or used + ENTRY_BYTES <= budget
            _write_number(counter, used + ENTRY_BYTES if fits and existing is None else used)
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
            self._wait_for(descriptor, fcntl.LOCK_SH)  # another process may be checking whether it is in use
        except BaseException:
            os.close(descriptor)
            raise
        # An entry works without its description, so a full disk does no harm.
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
    """Return the bytes in use: those on the disk while no process has an entry open, otherwise those counted."""
    on_disk = sum(entry.disk_bytes + ENTRY_BYTES for entry in entries)
    counted = os.pread(counter, _NUMBER_BYTES, 0)
    if len(counted) < _NUMBER_BYTES or not any(entry.in_use for entry in entries):
        return on_disk
    return int.from_bytes(counted, "little")


def _write_number(counter: int, value: int) -> None:
    os.pwrite(counter, value.to_bytes(_NUMBER_BYTES, "little"), 0)
