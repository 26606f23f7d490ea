"""TFRecord framing and CRC-32C, one byte at a time."""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass


class CutError(Exception):
    """The bytes end inside a record."""

    def __init__(self, record: int, offset: int) -> None:
        super().__init__(f"record {record} at byte {offset} is cut")
        self.record = record
        self.offset = offset


class DamagedError(Exception):
    """A checksum does not match."""

    def __init__(self, record: int, offset: int) -> None:
        super().__init__(f"record {record} at byte {offset} is damaged")
        self.record = record
        self.offset = offset


@dataclass(frozen=True)
class Record:
    """One record of a shard: where its frame lies, and what it carries."""

    offset: int
    size: int
    payload: bytes


def _divided(register: int) -> int:
    """The remainder of long division after eight bits."""
    for _ in range(8):
        register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return register


_REMAINDERS = [_divided(byte) for byte in range(256)]


def crc32c(data: bytes, crc: int = 0) -> int:
    """CRC-32C by long division, as RFC 3720 defines it, with the remainders of the 256 bytes at hand."""
    register = crc ^ 0xFFFFFFFF
    for byte in data:
        register = _REMAINDERS[(register ^ byte) & 0xFF] ^ (register >> 8)
    return register ^ 0xFFFFFFFF


@functools.lru_cache(1000)
def masked(data: bytes) -> bytes:
    """The checksum as a frame stores it."""
    crc = crc32c(data)
    rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    return struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)


def frame(payload: bytes) -> bytes:
    """One framed record."""
    length = struct.pack("<Q", len(payload))
    return length + masked(length) + payload + masked(payload)


def scan(shard: bytes, *, check: bool = True) -> list[Record]:
    """All records of a shard.

    Raises:
        CutError: The shard ends inside a record.
        DamagedError: A checksum does not match; those of payloads count only with ``check``.
    """
    records: list[Record] = []
    rest = shard
    while rest:
        offset = len(shard) - len(rest)
        head, tail = rest[:12], rest[12:]
        if len(head) < 12:
            raise CutError(len(records), offset)
        if head[8:] != masked(head[:8]):
            raise DamagedError(len(records), offset)
        (length,) = struct.unpack("<Q", head[:8])
        if len(tail) < length + 4:
            raise CutError(len(records), offset)
        payload, footer, rest = tail[:length], tail[length : length + 4], tail[length + 4 :]
        if check and footer != masked(payload):
            raise DamagedError(len(records), offset)
        records.append(Record(offset, length + 16, payload))
    return records
