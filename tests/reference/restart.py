"""Restart markers of a JPEG, found the slow way, and how many MCUs should lie between two."""

from __future__ import annotations

import math
from fractions import Fraction


def interval(mcus_per_row: int, tiles: int) -> int:
    """The fewest MCUs that divide the row into at most ``tiles`` and at least three quarters of them, or about so."""
    straight = [
        size for size in range(1, mcus_per_row + 1) if mcus_per_row % size == 0 and mcus_per_row // size <= tiles
    ]
    fewest = Fraction(3, 4) * tiles
    if mcus_per_row // straight[0] >= fewest:
        return straight[0]
    return math.ceil(Fraction(mcus_per_row, tiles))


def segments(data: bytes) -> list[tuple[int, bytes]]:
    """Marker and body of every segment up to the first scan, that of the scan included."""
    parts, at = [], 2
    while not parts or parts[-1][0] != 0xDA:
        assert data[at] == 0xFF
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        parts.append((data[at + 1], data[at + 4 : at + 2 + length]))
        at += 2 + length
    return parts


def declared_interval(data: bytes) -> int:
    """The restart interval that a file declares; 0 without one."""
    return next((int.from_bytes(body, "big") for marker, body in segments(data) if marker == 0xDD), 0)


def markers(data: bytes) -> list[int]:
    """The numbers 0..7 of the restart markers behind the first scan's header, in their order."""
    at = data.index(b"\xff\xda")
    return [data[i + 1] - 0xD0 for i in range(at, len(data) - 1) if data[i] == 0xFF and 0xD0 <= data[i + 1] <= 0xD7]
