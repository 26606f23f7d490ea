"""Writing one shard: nothing appears under its final name before all of it is on the disk."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from stoker import _native
from stoker.format.index import format_index, new_index_name
from stoker.format.manifest import Shard
from stoker.storage import location

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence

    from stoker.storage import LocationLike
    from stoker.types import Compression


_LEVEL = 6
_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # zlib's own way of saying which header it writes; GZIP's then holds no time
_MAX_BUFFERS = 512  # of one writev; POSIX promises 16, Linux and macOS allow 1024


@dataclass(frozen=True, slots=True)
class FramedRecords:
    """Records as a shard holds them."""

    data: bytes | memoryview  # their frames end to end
    sizes: Sequence[int]  # bytes of each frame
    crc32c: int  # CRC-32C of ``data``

    @classmethod
    def of(cls, frame: bytes) -> Self:
        """Return one record that `stoker._native.frame_record` or ``frame_example`` has framed."""
        return cls(frame, (len(frame),), _native.crc32c(frame))

    def frames(self) -> Iterator[bytes | memoryview]:
        """Yield the frame of each record."""
        view, start = memoryview(self.data), 0
        for size in self.sizes:
            yield view[start : start + size]
            start += size


class ShardWriter:
    """Writes a TFRecord shard and its index.

    The bytes go to ``NAME.tmp-...``, or, if the dataset lies in a store, to a scratch file of this machine. `commit`
    writes the index in full, and only then gives the shard its name, so a shard under its final name is complete and
    has its index. Leaving the ``with`` block without `commit` removes what was written. For one thread at a time.

    A compressed shard is one GZIP or ZLIB stream, as TensorFlow's readers expect it; it has no index, because nothing
    in it can be reached without inflating what precedes it. ``stop`` ends the waits for a store that does not answer,
    with `stoker.errors.ClosedError`.
    """

    def __init__(
        self,
        directory: LocationLike,
        name: str,
        compression: Compression = "none",
        stop: threading.Event | None = None,
    ) -> None:
        self._name = name
        self._staged = location(directory).stage(name, stop)
        self._deflate = (
            None if compression == "none" else zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS[compression])
        )
        self._sizes: list[int] = []
        self._size_bytes = 0
        self._crc32c = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.abort()

    def append(self, payload: bytes) -> None:
        """Write one record."""
        self.append_framed([FramedRecords.of(_native.frame_record(payload))])

    def append_framed(self, records: Sequence[FramedRecords]) -> None:
        """Write records that are framed already, in order."""
        for start in range(0, len(records), _MAX_BUFFERS):
            some = records[start : start + _MAX_BUFFERS]
            for framed in some:
                self._sizes += framed.sizes
            if self._deflate is not None:
                self._write_deflated([self._deflate.compress(frame) for framed in some for frame in framed.frames()])
                continue
            self._staged.write([framed.data for framed in some])
            for framed in some:
                self._crc32c = _native.crc32c_join(self._crc32c, framed.crc32c, len(framed.data))
                self._size_bytes += len(framed.data)

    def _write_deflated(self, parts: Sequence[bytes]) -> None:
        self._staged.write(parts)
        for part in parts:
            self._crc32c = _native.crc32c(part, self._crc32c)
            self._size_bytes += len(part)

    def commit(self) -> Shard:
        """Give the shard and its index their final names."""
        index = None
        if self._deflate is not None:
            self._write_deflated([self._deflate.flush()])
        else:
            index = new_index_name(self._name), format_index(np.asarray(self._sizes, np.uint64))
        self._staged.publish(index)
        return Shard(self._name, len(self._sizes), self._size_bytes, self._crc32c)

    def abort(self) -> None:
        """Remove what was written, unless it is committed."""
        self._staged.discard()
