"""Telling the format of an image from its first bytes, whatever the file is called."""

from __future__ import annotations

import re

SNIFF_BYTES = 32
"""How many leading bytes `sniff` looks at."""

_MAGIC: tuple[tuple[str, re.Pattern[bytes]], ...] = tuple(
    (name, re.compile(pattern, re.DOTALL))
    for name, pattern in (
        ("jpeg", rb"\xff\xd8\xff"),
        ("png", rb"\x89PNG\r\n\x1a\n"),
        ("gif", rb"GIF8[79]a"),
        ("bmp", rb"BM.{12}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\x00\x00\x00"),
        ("webp", rb"RIFF.{4}WEBP"),
        ("tiff", rb"II\*\x00|MM\x00\*"),
        ("jpeg2000", rb"\x00\x00\x00\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51"),
        ("ppm", rb"P[1-6][ \t\r\n#]"),
        ("heif", rb".{4}ftyp(?:heic|heix|hevc|mif1|msf1|avif|avis)"),
        ("pdf", rb"%PDF-"),
    )
)


def sniff(head: bytes) -> str:
    """Return the format that a file starts like.

    Args:
        head: The first `SNIFF_BYTES` bytes of the file, or more.

    Returns:
        ``jpeg``, ``png``, ``gif``, ``bmp``, ``webp``, ``tiff``, ``jpeg2000``, ``ppm``, ``heif`` (also AVIF), ``pdf``,
        ``empty``, ``text`` or ``unknown``.
    """
    for name, magic in _MAGIC:
        if magic.match(head):
            return name
    if not head:
        return "empty"
    start = head[:SNIFF_BYTES]
    return "text" if all(32 <= byte < 127 or byte in b"\t\n\r" for byte in start) else "unknown"
