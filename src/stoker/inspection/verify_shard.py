"""The frames of one shard: length, checksums, index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.errors import IndexMismatchError, ShardError
from stoker.inspection.problem import Problem, problem_of
from stoker.records.index import index_path, parse_index, read_index

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.records.manifest import Shard

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ShardCheck:
    """What is known of a shard's frames.

    Attributes:
        rows: uint64 (N, 2), the extents of the records to look into.
        size_bytes: Length of the shard; 0 when it is missing.
        problems: Damage of the shard as a whole.
    """

    rows: NDArray[np.uint64]
    size_bytes: int
    problems: list[Problem]


def check_shard(path: Path, listed: Shard | None) -> ShardCheck:
    """Check the frames of a shard, against the manifest's line on it if there is one."""
    problems: list[Problem] = []
    try:
        size = path.stat().st_size
        scanned: NDArray[np.uint64] | None = _native.scan_shard(str(path))
    except FileNotFoundError:
        return ShardCheck(
            np.empty((0, 2), np.uint64), 0, [Problem(str(path), None, None, None, "the shard is missing")]
        )
    except OSError as error:
        problem = Problem(str(path), None, None, None, f"cannot be read: {error.strerror}")
        return ShardCheck(np.empty((0, 2), np.uint64), 0, [problem])
    except ShardError as error:
        damage = problem_of(error, path)
        scanned = None
    indexed = _indexed(path, size, scanned, problems)
    rows = scanned if scanned is not None else indexed
    if rows is None:
        rows = np.empty((0, 2), np.uint64)
        problems.append(damage)
        problems.append(Problem(str(path), None, None, None, "no index leads to the other records"))
    if listed is not None:
        problems += _against_manifest(path, listed, size, len(rows))
    return ShardCheck(rows, size, problems)


def _indexed(
    path: Path, size: int, scanned: NDArray[np.uint64] | None, problems: list[Problem]
) -> NDArray[np.uint64] | None:
    """Return the rows of the index, and note where it disagrees with a scan that went through."""
    try:
        rows = read_index(path, size)
    except FileNotFoundError:
        return None
    except IndexMismatchError as error:
        problems.append(problem_of(error, index_path(path)))
        return None if scanned is not None else _usable(path)
    if scanned is not None and not np.array_equal(rows, scanned):
        what = f"lists {len(rows)} records at other places than the {len(scanned)} that the shard has"
        problems.append(Problem(str(index_path(path)), None, None, None, f"{what}; write it anew with 'stoker index'"))
    return rows


def _usable(path: Path) -> NDArray[np.uint64] | None:
    """Return what an index lists that does not fit its shard, which may have been cut; None if it is no index."""
    try:
        return parse_index(index_path(path).read_bytes(), path)
    except IndexMismatchError:
        return None


def _against_manifest(path: Path, listed: Shard, size: int, records: int) -> list[Problem]:
    wrong = []
    if size != listed.size_bytes:
        wrong.append(f"has {size} bytes; the manifest says {listed.size_bytes}")
    if records != listed.records:
        wrong.append(f"has {records} records; the manifest says {listed.records}")
    if (found := _checksum(path)) != listed.crc32c:
        wrong.append(f"has the CRC-32C {found:08x}; the manifest says {listed.crc32c:08x}")
    return [Problem(str(path), None, None, None, what) for what in wrong]


def _checksum(path: Path) -> int:
    crc = 0
    with path.open("rb", buffering=0) as file:
        while piece := file.read(_READ_BYTES):
            crc = _native.crc32c(piece, crc)
    return crc
