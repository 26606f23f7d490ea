"""PNGs of every kind, put together by hand: Pillow itself writes only some of them."""

from __future__ import annotations

import struct
import zlib

import numpy as np

MAGIC = b"\x89PNG\r\n\x1a\n"
END = b"\0\0\0\0IEND\xaeB`\x82"
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
KINDS = [
    (color, bits)
    for color, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16)))
    for bits in depths
]
"""(colour type, bits) of every kind there is."""
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind: bytes, data: bytes, sum_: int | None = None) -> bytes:
    """One chunk, with another checksum if asked."""
    end = zlib.crc32(kind + data) if sum_ is None else sum_
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", end)


def chunks(data: bytes) -> list[tuple[bytes, bytes, int]]:
    """(kind, data, checksum) of each chunk of a file."""
    parts, at = [], len(MAGIC)
    while at < len(data):
        end = at + 8 + int.from_bytes(data[at : at + 4], "big")
        parts.append((data[at + 4 : at + 8], data[at + 8 : end], int.from_bytes(data[end : end + 4], "big")))
        at = end + 4
    return parts


def header(width: int, height: int, color: int, bits: int, interlaced: bool = False) -> bytes:
    """The signature and the chunk IHDR."""
    return MAGIC + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced))


def rows(width: int, height: int, bits_of_pixel: int, rng: np.random.Generator) -> bytes:
    """Rows at random as they are compressed: each with any of the five filters."""
    if width == 0:
        return b""
    row_bytes = (width * bits_of_pixel + 7) // 8
    scanlines = rng.integers(0, 256, (height, 1 + row_bytes), dtype=np.uint8)
    scanlines[:, 0] %= 5
    return scanlines.tobytes()


def png(
    width: int,
    height: int,
    color: int = 2,
    bits: int = 8,
    *,
    interlaced: bool = False,
    transparent: bool = False,
    entries: int = 256,
    seed: int = 0,
) -> bytes:
    """A whole file of random samples.

    Args:
        width: Columns of pixels.
        height: Rows of pixels.
        color: Colour type: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA.
        bits: Of a sample.
        interlaced: In seven passes.
        transparent: With a chunk tRNS, where there may be one.
        entries: Of a palette, at most.
        seed: Another one, other samples.
    """
    rng = np.random.default_rng(seed)
    sizes = [(width, height)]
    if interlaced:
        sizes = [(-((x - width) // dx), -((y - height) // dy)) for x, y, dx, dy in _PASSES]
    raw = b"".join(rows(max(w, 0), max(h, 0), bits * CHANNELS[color], rng) for w, h in sizes)
    parts = [header(width, height, color, bits, interlaced)]
    if color == 3:
        count = min(entries, 1 << bits)
        parts.append(chunk(b"PLTE", rng.integers(0, 256, 3 * count, dtype=np.uint8).tobytes()))
    if transparent and color in (0, 2, 3):
        parts.append(chunk(b"tRNS", b"\0\1" * {0: 1, 2: 3, 3: 1}[color]))
    return b"".join(parts) + chunk(b"IDAT", zlib.compress(raw)) + END
