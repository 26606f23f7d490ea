"""The frames of one shard: length, checksums, index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.build.blame import is_of_the_machine
from stoker.errors import IndexMismatchError, ShardError
from stoker.inspection.problem import Problem, problem_of
from stoker.records.index import FRAME_BYTES, index_path, is_there, parse_index, read_index
from stoker.records.inflate import compression_of, inflate
from stoker.storage import is_scratch_full, open_regular, read_small
from stoker.storage.named import naming

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.records.inflate import InflatedShard
    from stoker.records.manifest import Shard
    from stoker.storage import Location

_READ_BYTES = 1 << 20
_MAX_INDEX_BYTES = 1 << 28
_NO_ROWS = np.empty((0, 2), np.uint64)


@dataclass(frozen=True, slots=True)
class ShardCheck:
    """What is known of a shard's frames.

    Attributes:
        rows: uint64 (N, 2), the extents of the records to look into, before any compression.
        size_bytes: Length of the shard; 0 when it is missing.
        problems: Damage of the shard as a whole.
        inflated: The shard without its compression; None if it has none.
    """

    rows: NDArray[np.uint64]
    size_bytes: int
    problems: list[Problem]
    inflated: InflatedShard | None = None

    def readable(self, copy: Path) -> Path:
        """Return the path under which the records of the shard whose bytes lie at ``copy`` can be read."""
        return copy if self.inflated is None else self.inflated.path


def check_shard(path: Location, copy: Path, listed: Shard | None) -> ShardCheck:
    """Check the frames of a shard, against the manifest's line on it if there is one.

    Args:
        path: The shard.
        copy: Where its bytes are on this machine; the same where it is one of this machine.
        listed: What the manifest says of it.

    Raises:
        OSError: It cannot be read; see `unreadable`.
    """
    size = copy.stat().st_size
    if size and compression_of(copy) != "none":
        return _check_compressed(path, copy, listed)
    return _check_plain(path, copy, listed)


def unreadable(path: Location, error: OSError) -> ShardCheck:
    """Return what is known of a shard that cannot be read.

    Raises:
        OSError: It is not the shard's fault: there is no room for temporary files, or the process has run out of files
            or memory.
    """
    if is_scratch_full(error) or is_of_the_machine(error):
        raise error
    missing = isinstance(error, FileNotFoundError)
    what = "the shard is missing" if missing else f"cannot be read: {error.strerror or error}"
    return ShardCheck(_NO_ROWS, 0, [Problem(str(path), None, None, None, what)])


def _check_plain(path: Location, copy: Path, listed: Shard | None) -> ShardCheck:
    problems: list[Problem] = []
    size = copy.stat().st_size
    scanned, checksum = _scan(copy, path, problems)
    indexed = _indexed(path, size, scanned, problems)
    rows = indexed if scanned is None else scanned
    if rows is None:  # the index would lead to all of them
        assert problems[0].offset is not None
        rows = _rows_before(copy, problems[0].offset)
        problems.append(Problem(str(path), None, None, None, "no index leads to the records behind the damage"))
    elif scanned is None:
        del problems[0]  # the record itself will tell
    if listed is not None:
        problems += _against_manifest(path, listed, size, len(rows), _checksum(copy) if checksum is None else checksum)
        if not is_there(index_path(path)):
            what = "the index is missing; write it with 'stoker index'"
            problems.append(Problem(str(index_path(path)), None, None, None, what))
    return ShardCheck(rows, size, problems)


def _check_compressed(path: Location, copy: Path, listed: Shard | None) -> ShardCheck:
    problems: list[Problem] = []
    rows, inflated = _NO_ROWS, None
    try:
        inflated = inflate(copy)
    except ShardError as error:
        problems.append(problem_of(error, path, copy))
    if inflated is not None:
        plain = inflated.path
        scanned, _ = _scan(plain, path, problems)  # the manifest has the checksum of the compressed bytes
        rows = scanned if scanned is not None else _rows_before(plain, problems[0].offset or 0)
    if listed is not None:
        problems += _against_manifest(path, listed, copy.stat().st_size, len(rows), _checksum(copy))
    return ShardCheck(rows, copy.stat().st_size, problems, inflated)


def _scan(plain: Path, path: Location, problems: list[Problem]) -> tuple[NDArray[np.uint64] | None, int | None]:
    """Return the extents of all records and the checksum of the file ``plain``.

    None for both, and a problem of ``path`` that says where, if a frame is damaged.
    """
    try:
        return _native.scan_and_sum(str(plain))
    except ShardError as error:
        problems.append(problem_of(error, path, plain))
        return None, None


def _rows_before(path: Path, end: int) -> NDArray[np.uint64]:
    """Return the extents of the records before the byte up to which a scan found no damage."""
    rows = []
    with open_regular(path) as file:
        offset = 0
        while offset < end:
            file.seek(offset)
            size = int.from_bytes(file.read(8), "little") + FRAME_BYTES
            rows.append((offset, size))
            offset += size
    return np.array(rows, np.uint64).reshape(-1, 2)


def _indexed(
    path: Location, size: int, scanned: NDArray[np.uint64] | None, problems: list[Problem]
) -> NDArray[np.uint64] | None:
    """Return the rows of the index, if it is of any use, and note what is wrong with it."""
    index = index_path(path)
    try:
        rows = read_index(path, size)
    except FileNotFoundError:
        return None
    except IndexMismatchError as error:
        problems.append(problem_of(error, index))
        return None if scanned is not None else _usable(index)
    except OSError as error:
        problems.append(Problem(str(index), None, None, None, f"cannot be read: {error.strerror or error}"))
        return None
    if scanned is not None and not np.array_equal(rows, scanned):
        what = f"lists {len(rows)} records at other places than the {len(scanned)} that the shard has"
        problems.append(Problem(str(index), None, None, None, f"{what}; write it anew with 'stoker index'"))
    return rows


def _usable(index: Location) -> NDArray[np.uint64] | None:
    """Return what an index lists that does not fit its shard, which may have been cut; None if it is no index."""
    try:
        return parse_index(read_small(index, _MAX_INDEX_BYTES), index)
    except (IndexMismatchError, OSError):
        return None


def _against_manifest(path: Location, listed: Shard, size: int, records: int, checksum: int) -> list[Problem]:
    """Compare a shard with what the manifest says of it."""
    wrong = []
    if size != listed.size_bytes:
        wrong.append(f"has {size} bytes; the manifest says {listed.size_bytes}")
    if records != listed.records:
        wrong.append(f"has {records} records; the manifest says {listed.records}")
    if checksum != listed.crc32c:
        wrong.append(f"has the CRC-32C {checksum:08x}; the manifest says {listed.crc32c:08x}")
    return [Problem(str(path), None, None, None, what) for what in wrong]


def _checksum(path: Path) -> int:
    crc = 0
    with naming(path), path.open("rb", buffering=0) as file:
        while piece := file.read(_READ_BYTES):
            crc = _native.crc32c(piece, crc)
    return crc
