"""What precedes the payload of a TFRecord: its length, and the masked CRC-32C of the length."""

from __future__ import annotations

from stoker import _native

HEADER_BYTES = 12
_LENGTH_BYTES = 8
_MASK_DELTA = 0xA282EAD8


def payload_length(header: bytes) -> int | None:
    """Return the length that the first 12 bytes of a frame tell; None if they are fewer, or their checksum is another.

    Nothing else that a file may begin with passes for one, but for one in 2**32.
    """
    length, checksum = header[:_LENGTH_BYTES], header[_LENGTH_BYTES:]
    crc = _native.crc32c(length)
    masked = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
    if len(header) != HEADER_BYTES or masked != int.from_bytes(checksum, "little"):
        return None
    return int.from_bytes(length, "little")
