"""Indexes of shards that cannot have theirs beside them, such as those of a read-only mount: in the user's cache.

A kept index has the same text as one beside a shard (`stoker.records.index`). Its name stands for the absolute path,
the length and the time of the last change of its shard, so that a shard that has changed is scanned again. It is
checked against the length of the shard as any index is; one that is damaged is as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.errors import IndexMismatchError
from stoker.records.files import write_atomically
from stoker.records.index import INDEX_SUFFIX, format_index, read_index_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

INDEXES_FOLDER = "indexes"
_DIGITS = 32
_LEAST_LINE_BYTES, _MOST_LINE_BYTES = 4, 38


def user_cache_directory() -> Path | None:
    """Return where caches of this user lie.

    That is ``$STOKER_CACHE_DIR``, else ``$XDG_CACHE_HOME/stoker``, else ``~/.cache/stoker``; None where there is no
    such place. A relative ``$XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification asks for.
    """
    own = os.environ.get("STOKER_CACHE_DIR")
    if own:
        return Path(own).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():
        return shared / "stoker"
    try:
        return Path.home() / ".cache" / "stoker"
    except RuntimeError:  # a user without a home
        return None


@dataclass(frozen=True, slots=True)
class KeptIndex:
    """The place of one shard's index in the user's cache.

    Make it before the shard is scanned, so that a change during the scan is noticed.

    Attributes:
        path: The file; None where the user has no cache.
        shard_bytes: Length of the shard.
    """

    path: Path | None
    shard_bytes: int

    @classmethod
    def of(cls, shard: Path) -> KeptIndex:
        """Return the place for a shard as it now is.

        Raises:
            OSError: The shard cannot be found.
        """
        status = shard.stat()
        return cls._named(os.fsencode(shard.absolute()), status.st_size, b"%d" % status.st_mtime_ns)

    @classmethod
    def of_remote(cls, url: str, size_bytes: int, stamp: str) -> KeptIndex:
        """Return the place for a shard in a store.

        Args:
            url: Where it is.
            size_bytes: Its length.
            stamp: Stands for its content: a checksum from a manifest, or what the store knows it by.
        """
        return cls._named(url.encode("utf-8", "surrogateescape"), size_bytes, stamp.encode())

    @classmethod
    def _named(cls, where: bytes, size_bytes: int, stamp: bytes) -> KeptIndex:
        directory = user_cache_directory()
        if directory is None:
            return cls(None, size_bytes)
        told = b"%b\0%d\0%b" % (where, size_bytes, stamp)
        name = hashlib.sha256(told).hexdigest()[:_DIGITS] + INDEX_SUFFIX
        return cls(directory / INDEXES_FOLDER / name, size_bytes)

    def may_list(self, records: int) -> bool:
        """Return whether there is a kept index whose length allows for so many records."""
        try:
            size = self.path.stat().st_size if self.path is not None else -1
        except OSError:
            return False
        return size >= 0 and size // _LEAST_LINE_BYTES >= records and size // _MOST_LINE_BYTES <= records

    def read(self) -> NDArray[np.uint64] | None:
        """Return uint64 (N, 2) of (offset, size) of each whole frame, in bytes; None if there is no whole index."""
        if self.path is None:
            return None
        try:
            return read_index_file(self.path, self.shard_bytes)
        except (OSError, IndexMismatchError):
            return None

    def write(self, rows: NDArray[np.uint64]) -> None:
        """Keep an index, if the system allows it; otherwise the shard is scanned again next time."""
        if self.path is None:
            return
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_atomically(self.path, format_index(rows[:, 1]))


def kept_indexes(directory: Path) -> Iterator[Path]:
    """Yield the indexes that are kept in a cache directory, unfinished ones included; nothing else is ever named."""
    folder = directory / INDEXES_FOLDER
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        digits, _, rest = path.name.partition(".")
        named = len(digits) == _DIGITS and set(digits) <= set("0123456789abcdef")
        if named and f".{rest}".startswith(INDEX_SUFFIX) and path.is_file() and not path.is_symlink():
            yield path
