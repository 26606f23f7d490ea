"""Telling TFRecords, plain or compressed, from other files by their first bytes; inflating compressed ones."""

from __future__ import annotations

import os
import weakref
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from stoker import _native
from stoker.errors import TruncatedShardError
from stoker.storage import append_to_scratch, location, scratch_file

if TYPE_CHECKING:
    from collections.abc import Iterator
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
_ANY_HEADER = 47  # zlib's number for a header of GZIP or of ZLIB


def payload_length(header: bytes) -> int | None:
    """Return the payload length in the first 12 bytes of a frame; None if they are fewer or their checksum is wrong.

    Nothing else that a file may begin with passes for one, but for one in 2**32.
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
    """Return how a shard is compressed that begins with these 12 bytes, or is shorter."""
    if payload_length(head) is not None:
        return "none"
    if head[:3] == b"\x1f\x8b\x08":
        return "gzip"
    # RFC 1950: deflate with a window of at most 32 KiB, and a check that makes the first two bytes a multiple of 31.
    is_zlib = len(head) > 1 and head[0] & 0x0F == 8 and head[0] >> 4 <= 7 and int.from_bytes(head[:2], "big") % 31 == 0
    return "zlib" if is_zlib else "none"


def holds_records(path: LocationLike) -> bool:
    """Return whether a file, whatever it is called, begins as a shard does, compressed or not.

    Twelve bytes are read, and more only of what begins as GZIP or ZLIB does.
    """
    place = location(path)
    head = place.read_range(0, HEADER_BYTES, known_size=HEADER_BYTES)
    if payload_length(head) is not None:
        return True
    if compression_of_head(head) == "none":
        return False
    head = place.read_head(_COMPRESSED_HEAD_BYTES)
    try:
        return payload_length(zlib.decompressobj(_ANY_HEADER).decompress(head, HEADER_BYTES)) is not None
    except zlib.error:
        return False


class InflatedShard:
    """The uncompressed bytes of a shard in a file without a name. It is closed when the last reference dies."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)

    @property
    def path(self) -> Path:
        """A path that opens this very file, as long as this object lives."""
        return Path(f"/proc/self/fd/{self._descriptor}")

    def close(self) -> None:
        """Give the bytes back. Idempotent."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def inflate(place: LocationLike) -> InflatedShard:
    """Return the uncompressed bytes of a shard.

    Nothing in a GZIP or ZLIB stream can be reached without inflating all that precedes it. A shard that is to be read
    in any order is therefore inflated once, into a file without a name: it vanishes with the last process that has it
    open, also after ``kill -9``. It lies in the directory for temporary files, which the environment variable
    ``TMPDIR`` names. Several streams end to end are one shard, as GZIP defines it. What follows a header that is not
    that of a record cannot be read, and is not inflated.

    Raises:
        OSError: The shard cannot be read; or there is no space for the temporary file, see
            `stoker.storage.is_scratch_full`.
        TruncatedShardError: The stream is damaged or ends too early.
    """
    path = location(place)
    why = f"{path} is compressed and has to be inflated there"
    with scratch_file(why) as file:
        frames = _Frames()
        for part in _inflated(path):
            append_to_scratch(file, part, why)
            if not frames.go_on(part):
                break
        return InflatedShard(os.dup(file.fileno()))


class _Frames:
    """Where the frames begin in bytes that come in parts."""

    def __init__(self) -> None:
        self._header = b""
        self._left = 0  # bytes of the frame that has begun

    def go_on(self, part: bytes) -> bool:
        """Look at the headers in the next part, and return whether each is that of a record."""
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
    """Yield the uncompressed bytes, at most `_READ_BYTES` at a time, however well they were compressed."""
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
