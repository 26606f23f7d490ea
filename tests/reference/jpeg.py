"""JPEGs changed by hand."""

from __future__ import annotations

import re
import struct

EOI, SOS = b"\xff\xd9", b"\xff\xda"


def put(data: bytes, at: int, value: bytes) -> bytes:
    return data[:at] + value + data[at + len(value) :]


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def inside(data: bytes, added: bytes) -> bytes:
    """The file with something behind its start-of-image marker."""
    return data[:2] + added + data[2:]


def in_frame(data: bytes, at: int, value: bytes) -> bytes:
    """Another value at an offset in the frame header: 1 kind, 4 bits, 5 height, 7 width, 9 components, 11 sampling."""
    return put(data, data.index(re.findall(rb"\xff[\xc0-\xc2]", data)[0]) + at, value)


def resized(data: bytes, width: int, height: int) -> bytes:
    """The same file, claiming another size."""
    return in_frame(data, 5, struct.pack(">HH", height, width))
