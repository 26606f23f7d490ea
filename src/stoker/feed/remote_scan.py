"""Finding the records of a shard in a store that has no index: by reading it through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stoker.errors import CorruptRecordError, TruncatedShardError
from stoker.records.frame import HEADER_BYTES, payload_length
from stoker.records.index import FRAME_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.storage import RemotePath

_STROKE_BYTES = 8 << 20


def scan_remote(path: RemotePath, size_bytes: int) -> NDArray[np.uint64]:
    """Return where the records of a shard lie, uint64 (N, 2) of (offset, size) of each whole frame, in bytes.

    The checksum of every length is verified, payloads are left to whoever reads them. Payloads that are longer than a
    stroke of 8 MiB are not fetched.

    Raises:
        TruncatedShardError: The shard ends inside a record.
        CorruptRecordError: The checksum of a length does not match.
        OSError: The store cannot be read.
    """
    rows: list[tuple[int, int]] = []
    at, start, stroke = 0, 0, memoryview(b"")
    while at < size_bytes:
        if size_bytes - at < FRAME_BYTES:
            raise _cut_short(path, len(rows), at, size_bytes)
        if not start <= at <= start + len(stroke) - HEADER_BYTES:
            stroke = memoryview(path.store.read(path.key, at, min(_STROKE_BYTES, size_bytes - at)))
            start = at
        length = payload_length(bytes(stroke[at - start : at - start + HEADER_BYTES]))
        if length is None:
            raise _wrong_length(path, len(rows), at)
        size = FRAME_BYTES + length
        if size > size_bytes - at:
            raise _cut_short(path, len(rows), at, size_bytes)
        rows.append((at, size))
        at += size
    return np.array(rows, np.uint64).reshape(-1, 2)


def _wrong_length(path: RemotePath, record: int, offset: int) -> CorruptRecordError:
    message = f"record {record} at byte {offset} of {path}: the checksum of its length does not match"
    return CorruptRecordError(f"{message}; restore the shard", path=str(path), record=record, offset=offset)


def _cut_short(path: RemotePath, record: int, offset: int, size_bytes: int) -> TruncatedShardError:
    message = f"record {record} at byte {offset} of {path}: it goes beyond the end of the shard at byte {size_bytes}"
    return TruncatedShardError(
        f"{message}; restore it, or build it again", path=str(path), record=record, offset=offset
    )
