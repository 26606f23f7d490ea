"""TFRecord shards: recognised by their first bytes, decompressed, and written.

A shard appears under its final name only when all of it is on the disk.
"""

from __future__ import annotations

import os
import weakref
import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from stoker import _native
from stoker.errors import TruncatedShardError
from stoker.format.index import format_index, new_index_name
from stoker.format.manifest import Shard
from stoker.storage import append_to_scratch, location, scratch_file

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Sequence
    from typing import Self

    from stoker.storage import Location, LocationLike
    from stoker.types import Compression


HEADER_BYTES = 12
_LENGTH_BYTES = 8
_CHECKSUM_BYTES = 4  # behind the payload
_MAX_PAYLOAD_BYTES = 2**31 - 1
_MASK_DELTA = 0xA282EAD8
_READ_BYTES = 2**20
_COMPRESSED_HEAD_BYTES = 2**17  # the header of GZIP may hold a file name of any length
_ANY_HEADER = 47  # wbits of zlib for reading: the header of GZIP or that of ZLIB


def payload_length(header: bytes) -> int | None:
    """Return the payload length in the first 12 bytes of a frame; None if they are fewer or their checksum is wrong.

    Other bytes pass for the start of a frame with a probability of 1 in 2**32.
    """
    length, checksum = header[:_LENGTH_BYTES], header[_LENGTH_BYTES:]
    crc = _native.crc32c(length)
    masked = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
    if len(header) != HEADER_BYTES or masked != int.from_bytes(checksum, "little"):
        return None
    return int.from_bytes(length, "little")


def compression_of(path: LocationLike) -> Compression:
    """Return how a shard is compressed, by its first bytes.

    A TFRecord begins with the length of a record and the masked CRC-32C of that length; a file for which the two agree
    is not compressed, whatever its first bytes look like.
    """
    return compression_of_head(location(path).read_head(HEADER_BYTES))


def compression_of_head(head: bytes) -> Compression:
    """Return how a shard is compressed, by its first 12 bytes, or by all of them if it is shorter."""
    if payload_length(head) is not None:
        return "none"
    if head[:3] == b"\x1f\x8b\x08":
        return "gzip"
    # RFC 1950: deflate with a window of at most 32 KiB, and a check that makes the first two bytes a multiple of 31.
    is_zlib = len(head) > 1 and head[0] & 0x0F == 8 and head[0] >> 4 <= 7 and int.from_bytes(head[:2], "big") % 31 == 0
    return "zlib" if is_zlib else "none"


def holds_records(path: LocationLike) -> bool:
    """Return whether a file begins as a shard does, compressed or not, whatever its name.

    Reads 12 bytes, and more only if these look like GZIP or ZLIB.
    """
    shard = location(path)
    head = shard.read_range(0, HEADER_BYTES, known_size=HEADER_BYTES)
    if payload_length(head) is not None:
        return True
    if compression_of_head(head) == "none":
        return False
    head = shard.read_head(_COMPRESSED_HEAD_BYTES)
    try:
        return payload_length(zlib.decompressobj(_ANY_HEADER).decompress(head, HEADER_BYTES)) is not None
    except zlib.error:
        return False


class InflatedShard(AbstractContextManager["InflatedShard"]):
    """The decompressed bytes of a shard in a file without a name, which is closed when the last reference dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    @property
    def path(self) -> Path:
        """A path that opens this file, as long as this object lives."""
        return Path(f"/proc/self/fd/{self._descriptor}")

    def close(self) -> None:
        """Delete the decompressed bytes. Idempotent."""
        self._close()

    def __exit__(self, *exception: object) -> None:
        self.close()


def inflate(shard: LocationLike) -> InflatedShard:
    """Return the decompressed bytes of a shard.

    A GZIP or ZLIB stream can only be read from its start. A shard that is to be read in any order is therefore
    decompressed once, into a file without a name. The system deletes it with the last process that has it open, also
    after ``kill -9``. It lies in the directory for temporary files, which the environment variable ``TMPDIR`` names.
    Several streams end to end are one shard, as GZIP defines it. Decompression stops at a damaged header of a record,
    because nothing behind it can be read.

    Raises:
        OSError: The shard cannot be read; or there is no space for the temporary file, see
            `stoker.storage.is_scratch_full`.
        TruncatedShardError: The stream is damaged or ends too early.
    """
    path = location(shard)
    why = f"{path} is compressed and has to be inflated there"
    with scratch_file(why) as file:
        frames = _Frames()
        for part in _inflated(path):
            append_to_scratch(file, part, why)
            if not frames.feed(part):
                break
        return InflatedShard(os.dup(file.fileno()))


class _Frames:
    """Follows the frames of a shard through bytes that arrive in parts."""

    def __init__(self) -> None:
        self._header = b""
        self._left = 0  # bytes of the frame that has begun

    def feed(self, part: bytes) -> bool:
        """Check the headers in the next part, and return whether each is that of a record."""
        at = 0
        while len(part) - at > self._left:
            at += self._left
            header = part[at : at + HEADER_BYTES - len(self._header)]
            self._header += header
            at += len(header)
            self._left = 0
            if len(self._header) == HEADER_BYTES:
                length = payload_length(self._header)
                if length is None or length > _MAX_PAYLOAD_BYTES:
                    return False
                self._header, self._left = b"", length + _CHECKSUM_BYTES
        self._left -= len(part) - at
        return True


def _inflated(path: Location) -> Iterator[bytes]:
    """Yield the decompressed bytes, at most `_READ_BYTES` at a time, however well they were compressed."""
    stream = zlib.decompressobj(_ANY_HEADER)
    begun = False
    with path.reader() as file:
        while data := file.read(_READ_BYTES):
            while data:
                if stream.eof:
                    stream = zlib.decompressobj(_ANY_HEADER)
                try:
                    part = stream.decompress(data, _READ_BYTES)
                except zlib.error as error:
                    raise _damaged(path, f"its compression is damaged before byte {file.tell()}: {error}") from error
                begun = True
                data = stream.unused_data if stream.eof else stream.unconsumed_tail
                yield part
    if begun and not stream.eof:
        raise _damaged(path, f"its compressed stream continues behind byte {path.size()}, the last")


def _damaged(path: Location, problem: str) -> TruncatedShardError:
    return TruncatedShardError(f"{path}: {problem}; restore the file", path=str(path))


_LEVEL = 6
_WINDOW_BITS = {"gzip": 31, "zlib": 15}  # wbits of zlib: which header it writes, GZIP's without a time
_MAX_BUFFERS = 512  # of one writev; POSIX promises 16, Linux and macOS allow 1024


@dataclass(frozen=True, slots=True)
class FramedRecords:
    """Records with their frames, as a shard holds them."""

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


class ShardWriter(AbstractContextManager["ShardWriter"]):
    """Writes a TFRecord shard and its index.

    The bytes go to ``NAME.tmp-...``, or, if the dataset lies in a store, to a scratch file of this machine. `commit`
    writes the index in full, and only then gives the shard its name, so a shard under its final name is complete and
    has its index. Leaving the ``with`` block without `commit` removes what was written. For one thread at a time.

    A compressed shard is one GZIP or ZLIB stream, as TensorFlow's readers expect it. It has no index, because such a
    stream can only be read from its start. Setting ``stop`` ends waits for a store that does not answer, with
    `stoker.errors.ClosedError`.
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
