"""A shard that is compressed: the bytes that zlib gives, or an error; whatever its first bytes look like."""

from __future__ import annotations

import gzip
import zlib

from scripts.fuzz_python.scratch import folder
from stoker.format.frames import compression_of, holds_records, inflate, payload_length

_PATH = folder() / "shard"
_HEADER_BYTES, _MOST_BYTES = 12, 2**31
_ANY_HEADER = 47  # zlib's number for a header of GZIP or of ZLIB


def one_input(data: bytes) -> None:
    """Inflate any bytes; those with an odd first byte are compressed before."""
    if data[:1] and data[0] % 4 == 1:
        data = gzip.compress(data[1:40]) + gzip.compress(data[40:])
    elif data[:1] and data[0] % 4 == 3:
        data = zlib.compress(data[1:])
    _PATH.write_bytes(data)
    holds_records(_PATH)
    if compression_of(_PATH) == "none":
        return
    with inflate(_PATH) as plain:
        inflated = plain.path.read_bytes()
    whole = _whole(data)
    assert whole is None or whole.startswith(inflated)
    assert inflated == whole or not _are_records(inflated)  # what follows bytes that are no record is not read


def _are_records(data: bytes) -> bool:
    """Return whether the bytes are frames of records, the last of which may be cut short."""
    while len(data) >= _HEADER_BYTES:
        length = payload_length(data[:_HEADER_BYTES])
        if length is None or length >= _MOST_BYTES:
            return False
        data = data[_HEADER_BYTES + length + 4 :]
    return True


def _whole(data: bytes) -> bytes | None:
    """Inflate streams end to end, each at once, where `zlib.decompress` would pass over all but the first.

    None: they are damaged, or cut short.
    """
    parts = []
    while data:
        stream = zlib.decompressobj(_ANY_HEADER)
        try:
            parts.append(stream.decompress(data))
        except zlib.error:
            return None
        if not stream.eof:
            return None
        data = stream.unused_data
    return b"".join(parts)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    return [b"\1" + bytes(range(200)), b"\3" + bytes(400), gzip.compress(b"abc" * 50), zlib.compress(b"a" * 300) * 2]
