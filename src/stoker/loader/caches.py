"""The caches of samples that were read once, in memory and on a disk of the node.

Both caches hold what came first and throw nothing out for something else. An epoch reads every sample once, so what has
just been read is needed later than everything that still waits for its turn, and evicting that for it only costs hits.
With space for a share of the samples, that share is the hit rate of every epoch but the first, in any order.
"""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker import _native
from stoker.config import check_choice, check_size, format_size
from stoker.errors import ConfigError
from stoker.forks import PerProcess
from stoker.format import FRAME_BYTES
from stoker.loader.cache_directory import BUDGET_NAME, ENTRY_BYTES, About, CacheDirectory
from stoker.loader.samples import Mix, parts_of
from stoker.storage import location

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.loader.dataset import Dataset


_KEY_DIGITS = 32


def cache_key(dataset: Dataset | Mix, sizes: NDArray[np.uint64]) -> str:
    """Return 32 hex digits that stand for the samples of a dataset: changed files are never served from old bytes.

    The key depends on what `stoker.loader.Dataset.stamps` says of it, and on the bytes of each sample.
    """
    digest = hashlib.sha256()
    for part in _wholes(dataset):
        for stamp in part.stamps():
            digest.update(b"%d\0%b" % (len(stamp), stamp))
    digest.update(np.ascontiguousarray(sizes, "<u8").data)
    return digest.hexdigest()[:_KEY_DIGITS]


def _wholes(dataset: Dataset | Mix) -> list[Dataset]:
    """Return the splits that a cache holds samples of: parts of one share what was read of it."""
    return [part.whole for part in parts_of(dataset)]


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache has done so far.

    Attributes:
        hits: Samples that came from the cache.
        misses: Samples that had to be read from the dataset.
        bytes: Bytes held now, all bookkeeping included; of a node cache those of all processes and datasets together.
        budget: The most bytes it may hold.
        full: Whether a sample was not kept because it would not have fitted.
        errors: How often the system refused to read or to keep something; the dataset was read instead.
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

    It lives as long as somebody holds it: several loaders may share one, at the same time or one after the other.
    Safe from any thread. It pickles as its settings. In another process, also in a forked one, it begins empty.

    Args:
        budget: The most bytes it takes, all bookkeeping included, such as ``"8GB"`` or a number.
        keep: ``encoded``: samples as they are stored, which saves reading. ``decoded``: pixels, those of each mode for
            themselves, which saves decoding too and takes five to ten times the space.

    Attributes:
        budget: In bytes.
        keep: As given.
        native: The cache of the core.

    Raises:
        ConfigError: The budget is not a size, or ``keep`` is neither.
    """

    def __init__(self, budget: str | int, keep: Literal["encoded", "decoded"] = "encoded") -> None:
        check_choice("keep", keep, ("encoded", "decoded"))
        self.budget = check_size("budget", budget, 1)
        self.keep = keep
        self.native = _native.MemoryCache(self.budget)
        self._served = PerProcess(_Served)

    def source(self, dataset: Dataset | Mix, samples: _native.SampleSource) -> _native.SampleSource:
        """Return the samples of a dataset behind this cache; as they are if it keeps pixels, which is not done here.

        Args:
            dataset: What a loader reads.
            samples: Its samples. They must verify what they read, since what they give is kept.

        Raises:
            ConfigError: The cache holds samples of another dataset.
        """
        wanted = tuple(f"{location(part.path).absolute()} {part.identity}" for part in _wholes(dataset))
        if self.keep == "decoded":  # then labels are kept too, as they were found
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
        """Do nothing: memory has none. Here because `NodeCache` has it."""

    def __reduce__(self) -> tuple[type[MemoryCache], tuple[int, Literal["encoded", "decoded"]]]:
        # The memory is that of one process: in another one the cache begins empty.
        return MemoryCache, (self.budget, self.keep)

    def __repr__(self) -> str:
        return f"<stoker.MemoryCache of {self.keep} samples: {self.stats()}>"


@dataclass(slots=True)
class _Served:
    """Whose samples a `MemoryCache` holds."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    samples: tuple[str, ...] | None = None


class NodeCache:
    """Samples on a disk of this machine, shared by all of its processes through nothing but the files.

    For datasets that are slow to read, such as those on network storage. What one process has read, all have; what
    is there, later runs find. Every hit is verified by checksums, so that no crash and no damage can give wrong bytes.
    A disk that is full, a directory that cannot be written, and a cache whose ``CACHEDIR.TAG`` is damaged or missing
    are not errors: the dataset is read, and one `UserWarning` says so. Safe from any thread, and in a forked process,
    which opens the files again.

    Args:
        directory: Made if it is not there; otherwise it must be empty, or be such a cache. Not on network storage.
        budget: The most bytes that all files in it take on the disk, such as ``"500GB"`` or a number. All processes
            should name the same.

    Attributes:
        directory: As given.
        budget: In bytes.

    Raises:
        ConfigError: The directory is in a store, or the budget is not a size, or too small for anything.
    """

    def __init__(self, directory: str | os.PathLike[str], budget: str | int) -> None:
        place = location(directory)
        if not place.is_local:
            message = f"{place} is in a store, and a NodeCache lies on a disk of this machine"
            raise ConfigError(f"{message}; give a local directory")
        self.directory = Path(directory)
        self.budget = check_size("budget", budget, 4 * ENTRY_BYTES)
        self._use = PerProcess(_Use)

    def source(self, dataset: Dataset | Mix, samples: _native.SampleSource) -> _native.SampleSource:
        """Return the samples of a dataset behind this cache, or as they are if the directory cannot be used.

        Args:
            dataset: What a loader reads.
            samples: Its samples. They must verify what they read, since what they give is kept.

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
        key = cache_key(dataset, sizes)
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
        """Warn, once in a process, if the system has refused to read or to keep something."""
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
    """What a `NodeCache` has done in one process."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    files: dict[str, _native.NodeCacheFile] = field(default_factory=dict)
    refused: bool = False
    failures: int = 0
    warned: bool = False

    def opened(self) -> list[_native.NodeCacheFile]:
        """Return the files, at once: another thread may be opening one more."""
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
