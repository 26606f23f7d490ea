r"""The text index of a shard: ``offset size\n`` for each record, as DALI and other readers use it.

Offset and size, in decimal, are those of the whole frame in bytes (payload and 16 bytes around it). Records follow
each other without gaps from byte 0 to the end of the shard, so an index can be checked against its shard's length.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.config import user_cache_directory
from stoker.errors import IndexMismatchError
from stoker.splits import SPLIT_WORDS
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.storage import Location, LocationLike


INDEX_SUFFIX = ".idx"
INDEX_FOLDER = "idx"
PLAIN_SUFFIX = ".tfrecord"
FOLDER_SUFFIX = ".tfrecords"
FRAME_BYTES = 16
"""Bytes of a frame around its payload; the smallest frame."""

_MAX_DIGITS = 18  # keeps every number below 2**63
_MAX_LINE_BYTES = 2 * _MAX_DIGITS + 2
_MIN_LINE_BYTES = 4
_FAULT_EXCERPT = 40

INDEXES_FOLDER = "indexes"
"""Folder of the user's cache for indexes that cannot lie beside their shards, such as those of a read-only mount."""
_DIGITS = 32


def index_path(shard: LocationLike) -> Location:
    """Return where the index of a shard lies, or where it has to be written if there is none.

    Readers of other systems find their shards by patterns such as ``train-*-of-*`` or ``train/*``, which an index
    beside the shard would match too. So only shards called ``NAME.tfrecord`` have it beside them. All others have it in
    a folder ``idx``: ``idx/NAME.idx``, or ``idx/FOLDER/NAME.idx`` for ``FOLDER/NAME.tfrecords`` where ``FOLDER`` is
    that of a split.
    """
    candidates = index_candidates(location(shard))
    return next((candidate for candidate in candidates if candidate.lexists()), candidates[0])


def index_candidates(shard: Location) -> list[Location]:
    """Return where the index of a shard may lie; the first is where it has to be written. See `index_path`."""
    beside = shard.with_name(f"{shard.name}{INDEX_SUFFIX}")
    apart = shard.parent / INDEX_FOLDER / beside.name
    above = shard.parent.parent / INDEX_FOLDER / shard.parent.name / beside.name
    in_split_folder = shard.parent.name.lower() in SPLIT_WORDS and shard.suffix == FOLDER_SUFFIX
    preferred = beside if shard.suffix == PLAIN_SUFFIX else above if in_split_folder else apart
    return [preferred, *(candidate for candidate in (beside, apart, above) if candidate != preferred)]


def new_index_name(name: str) -> str:
    """Return where a build writes the index of a shard; both are relative to the directory of the dataset."""
    beside = f"{name}{INDEX_SUFFIX}"
    return beside if "/" not in name and name.endswith(PLAIN_SUFFIX) else f"{INDEX_FOLDER}/{beside}"


def read_index(shard: LocationLike, shard_bytes: int) -> NDArray[np.uint64]:
    """Read the index of a shard of ``shard_bytes``, and check that its records add up to this length.

    Returns (offset, size) of each whole frame in bytes, uint64 (N, 2). The length also bounds how much is read.

    Raises:
        FileNotFoundError: There is no index.
        IndexMismatchError: It is not the index of a shard of that length; scan the shard instead.
    """
    return read_index_file(index_path(shard), shard_bytes)


def read_index_file(path: LocationLike, shard_bytes: int) -> NDArray[np.uint64]:
    """Read and check the index at a path of its own; see `read_index`."""
    path = location(path)
    limit = (shard_bytes // FRAME_BYTES + 1) * _MAX_LINE_BYTES
    size = path.size()
    if size > limit:
        message = f"{size} bytes of index are too many for a shard of {shard_bytes} bytes"
        raise _mismatch(message, path)
    rows = parse_index(_content(path, limit), path)
    check_index(rows, shard_bytes, path)
    return rows


def _content(path: Location, limit: int) -> bytes:
    try:
        return path.read_at_most(limit)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise _mismatch(f"it {str(error.strerror).lower()}", path) from error


def write_index(shard: LocationLike, rows: NDArray[np.uint64]) -> Location:
    """Write the index of a shard atomically, with the rows of `stoker._native.scan_shard`, and return its path."""
    path = index_path(shard)
    path.parent.make_directory()
    path.write_atomically(format_index(rows[:, 1]))
    return path


def format_index(sizes: NDArray[np.uint64]) -> bytes:
    """Return the text of an index of records whose frames have these sizes, in their order."""
    ends = np.cumsum(sizes, dtype=np.uint64)
    return b"".join(b"%d %d\n" % pair for pair in zip((ends - sizes).tolist(), sizes.tolist(), strict=True))


def parse_index(text: bytes, path: str | Location) -> NDArray[np.uint64]:
    """Return the rows (offset, size) of an index, uint64 (N, 2), not yet checked against a shard.

    Raises:
        IndexMismatchError: ``text`` is not lines of two decimal numbers.
    """
    if not text:
        return np.empty((0, 2), np.uint64)
    data = np.frombuffer(text, np.uint8)
    separators = np.flatnonzero(data < ord("0"))
    if text[-1:] != b"\n" or len(separators) % 2 or data.max() > ord("9"):
        raise _not_an_index(text, path)
    digits = np.diff(separators, prepend=-1) - 1
    kinds = data[separators].reshape(-1, 2)
    if (kinds != (ord(" "), ord("\n"))).any() or digits.min() < 1 or digits.max() > _MAX_DIGITS:
        raise _not_an_index(text, path)
    return np.fromstring(text, np.int64, sep=" ").astype(np.uint64).reshape(-1, 2)


def check_index(rows: NDArray[np.uint64], shard_bytes: int, path: str | Location) -> None:
    """Check that rows (offset, size) cover a shard from its first byte to its last without gap or overlap.

    Raises:
        IndexMismatchError: They do not; the error names the first wrong record.
    """
    offsets, sizes = rows[:, 0], rows[:, 1]
    # Bounding every number by the length first keeps the sums below from wrapping.
    wrong = np.flatnonzero((sizes < FRAME_BYTES) | (sizes > shard_bytes) | (offsets > shard_bytes))
    if not len(wrong):
        expected = np.concatenate(([np.uint64(0)], (offsets + sizes)[:-1])) if len(rows) else offsets
        wrong = np.flatnonzero(offsets != expected)
    if len(wrong):
        record = int(wrong[0])
        message = f"record {record} cannot be {sizes[record]} bytes at {offsets[record]} of {shard_bytes}"
        raise _mismatch(message, path, record=record, offset=int(offsets[record]))
    end = int(offsets[-1] + sizes[-1]) if len(rows) else 0
    if end != shard_bytes:
        message = f"its {len(rows)} records end at byte {end} of {shard_bytes}"
        raise _mismatch(message, path, record=len(rows), offset=end)


def _not_an_index(text: bytes, path: str | Location) -> IndexMismatchError:
    return _mismatch(f"it is not lines of 'offset size'; it starts with {text[:_FAULT_EXCERPT]!r}", path)


def _mismatch(
    problem: str, path: str | Location, *, record: int | None = None, offset: int | None = None
) -> IndexMismatchError:
    message = f"{path} does not describe its shard: {problem}; write it again with 'stoker index'"
    return IndexMismatchError(message, path=str(path), record=record, offset=offset)


@dataclass(frozen=True, slots=True)
class CachedIndex:
    """The index of one shard in the user's cache.

    Its text is that of an index beside a shard. Its name is a hash of the shard's absolute path, length and time of the
    last change, so that a shard that has changed is scanned again. Like any index it is checked against the length of
    the shard; a damaged index counts as missing.

    Make this object before the shard is scanned, so that a change during the scan is noticed.
    """

    path: Path | None  # the file; None where the user has no cache
    shard_bytes: int

    @classmethod
    def of(cls, shard: Path) -> CachedIndex:
        """Return the cached index for a shard in its present state."""
        status = shard.stat()
        return cls._named(os.fsencode(shard.absolute()), status.st_size, b"%d" % status.st_mtime_ns)

    @classmethod
    def of_remote(cls, url: str, size_bytes: int, stamp: str) -> CachedIndex:
        """Return the cached index for a shard in a store.

        ``stamp`` identifies its content: a checksum from a manifest, or the identifier that the store has for it.
        """
        return cls._named(url.encode("utf-8", "surrogateescape"), size_bytes, stamp.encode())

    @classmethod
    def _named(cls, where: bytes, size_bytes: int, stamp: bytes) -> CachedIndex:
        directory = user_cache_directory()
        if directory is None:
            return cls(None, size_bytes)
        digest_input = b"%b\0%d\0%b" % (where, size_bytes, stamp)
        name = hashlib.sha256(digest_input).hexdigest()[:_DIGITS] + INDEX_SUFFIX
        return cls(directory / INDEXES_FOLDER / name, size_bytes)

    def may_list(self, records: int) -> bool:
        """Return whether there is a cached index whose length fits this number of records."""
        try:
            size = self.path.stat().st_size if self.path is not None else -1
        except OSError:
            return False
        return size >= 0 and size // _MIN_LINE_BYTES >= records and size // _MAX_LINE_BYTES <= records

    def read(self) -> NDArray[np.uint64] | None:
        """Return uint64 (N, 2) of (offset, size) of each whole frame, in bytes; None without an intact index."""
        if self.path is None:
            return None
        try:
            return read_index_file(self.path, self.shard_bytes)
        except (OSError, IndexMismatchError):
            return None

    def write(self, rows: NDArray[np.uint64]) -> None:
        """Store an index, if the system allows it; otherwise the shard is scanned again next time."""
        if self.path is None:
            return
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            location(self.path).write_atomically(format_index(rows[:, 1]))


def cached_indexes(directory: Path) -> Iterator[Path]:
    """Yield the index files of a cache directory, including unfinished ones, and no other files."""
    folder = directory / INDEXES_FOLDER
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        digits, _, rest = path.name.partition(".")
        named = len(digits) == _DIGITS and set(digits) <= set("0123456789abcdef")
        if named and f".{rest}".startswith(INDEX_SUFFIX) and path.is_file() and not path.is_symlink():
            yield path
