"""Files of PNG, WebP and of the formats that Pillow decodes, small ones that ask for much memory or time."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from PIL import Image

from hostile.image_mutations import Chunks, webp_chunks, webp_of
from reference import pictures
from reference.png import END, chunk, header

if TYPE_CHECKING:
    from collections.abc import Callable

MIB = 2**20
GIB = 2**30
MOST_PIXELS = 134_217_728
"""The default of max_pixels."""
SIDE = 11_585
"""Squared, just below it."""


@dataclass(frozen=True)
class Bomb:
    """One file.

    Attributes:
        name: What it is.
        suffix: Of its name.
        claims: Bytes of memory that it asks for, about.
        make: Its bytes.
        pixels: Of an image that is what it claims to be.
    """

    name: str
    suffix: str
    claims: int
    make: Callable[[], bytes]
    pixels: int = 0


@cache
def zeros(size: int) -> bytes:
    """So many zeros, deflated."""
    stream = zlib.compressobj(9)
    parts = [stream.compress(bytes(MIB)) for _ in range(size // MIB)]
    return b"".join(parts) + stream.flush()


SMALL = header(8, 8, 2, 8)
ROWS = chunk(b"IDAT", zlib.compress(bytes(8 * 25)))


def small_png(before: bytes = b"", behind: bytes = b"") -> bytes:
    """8 x 8 pixels, and other chunks."""
    return SMALL + before + ROWS + behind + END


def frames(count: int) -> bytes:
    """Frames of an animated PNG that are never shown."""
    rows = zlib.compress(bytes(8 * 25))
    chunks = []
    for number in range(1, 2 * count, 2):
        chunks.append(chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, 8, 8, 0, 0, 1, 1, 0, 0)))
        chunks.append(chunk(b"fdAT", struct.pack(">I", number + 1) + rows))
    return b"".join(chunks)


def png_bombs() -> list[Bomb]:
    side = 2**31 - 1
    text, wide = b"x\0\0", b"x\0\1\0\0\0"
    first = chunk(b"acTL", struct.pack(">II", 2**31 - 1, 0)) + chunk(b"fcTL", struct.pack(">IIIII6x", 0, 8, 8, 0, 0))
    column = header(1, MOST_PIXELS, 0, 1, interlaced=True)
    files: list[tuple[str, int, Callable[[], bytes]]] = [
        ("of 2**31 x 2**31", 2**63, lambda: header(side, side, 2, 8) + ROWS + END),
        ("of 2**31 x 1 in seven passes", 2**33, lambda: header(side, 1, 6, 16, interlaced=True) + ROWS + END),
        ("of one column in seven passes, with a few rows", 4 * MOST_PIXELS, lambda: column + ROWS + END),
        (
            "of one column",
            20 * MOST_PIXELS,
            lambda: header(1, MOST_PIXELS, 0, 1) + chunk(b"IDAT", zeros(256 * MIB)) + END,
        ),
        ("with a text of 256 MiB", 256 * MIB, lambda: small_png(chunk(b"zTXt", text + zeros(256 * MIB)))),
        (
            "with an international text of 256 MiB",
            256 * MIB,
            lambda: small_png(chunk(b"iTXt", wide + zeros(256 * MIB))),
        ),
        ("with a profile of 256 MiB", 256 * MIB, lambda: small_png(chunk(b"iCCP", text + zeros(256 * MIB)))),
        ("with 500 texts of 64 MiB", 32 * GIB, lambda: small_png(chunk(b"zTXt", text + zeros(64 * MIB)) * 500)),
        ("with a text of 256 MiB behind", 256 * MIB, lambda: small_png(b"", chunk(b"zTXt", text + zeros(256 * MIB)))),
        ("with 256 MiB behind its rows", 256 * MIB, lambda: SMALL + chunk(b"IDAT", zeros(256 * MIB)) + END),
        ("with a chunk of 2 GiB", 2 * GIB, lambda: SMALL + struct.pack(">I", 2**31 - 1) + b"tEXt" + bytes(99)),
        ("with data of 2 GiB", 2 * GIB, lambda: SMALL + struct.pack(">I", 2**31 - 1) + ROWS[4:] + END),
        ("of 100,000 chunks", GIB, lambda: small_png(chunk(b"teXt", b"") * 100_000)),
        ("of 100,000 palettes", GIB, lambda: small_png(chunk(b"sPLT", b"a\0\x08" + bytes(6)) * 100_000)),
        ("of 100,000 data chunks", GIB, lambda: small_png(chunk(b"IDAT", b"") * 100_000)),
        ("of 2**31 frames, 20,000 of them there", 2**40, lambda: small_png(first, frames(20_000))),
        ("with EXIF of 50 MB", GIB, lambda: small_png(chunk(b"eXIf", b"MM\0*" + bytes(50_000_000)))),
    ]
    return [Bomb(f"PNG {name}", "png", claims, make) for name, claims, make in files]


@cache
def webp_parts(*, lossless: bool = False, alpha: bool = False) -> Chunks:
    """The chunks of a picture of 32 x 24."""
    picture = Image.fromarray(pictures.pixels(32, 24))
    if alpha:
        picture.putalpha(Image.linear_gradient("L").resize(picture.size))
    return webp_chunks(pictures.encode(picture, format="WEBP", lossless=lossless, quality=50))


def extended(width: int, height: int, flags: int = 0) -> tuple[bytes, bytes]:
    return b"VP8X", bytes([flags, 0, 0, 0]) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


def animation(width: int, height: int, count: int, x: int = 0, y: int = 0) -> bytes:
    """So many frames of 32 x 24 on a canvas."""
    sides = b"".join(size.to_bytes(3, "little") for size in (x, y, 31, 23, 10))
    frame = (b"ANMF", sides + b"\0" + webp_of(webp_parts())[12:])
    return webp_of([extended(width, height, 2), (b"ANIM", bytes(6)), *[frame] * count])


def resized_vp8(width: int, height: int) -> bytes:
    """A lossy picture whose header claims another size."""
    [(kind, data)] = webp_parts()
    return webp_of([(kind, data[:6] + struct.pack("<HH", width, height) + data[10:])])


def resized_vp8l(width: int, height: int) -> bytes:
    """A lossless picture whose header claims another size."""
    [(kind, data)] = webp_parts(lossless=True)
    return webp_of([(kind, data[:1] + struct.pack("<I", width - 1 | height - 1 << 14) + data[5:])])


def webp_bombs() -> list[Bomb]:
    many, still = 2**24, extended(32, 24)
    length = struct.pack("<I", 2**32 - 2)
    files: list[tuple[str, int, Callable[[], bytes]]] = [
        ("of 16,383 x 16,383", 2**30, lambda: resized_vp8(16_383, 16_383)),
        ("of 11,585 x 11,585", 4 * SIDE**2, lambda: resized_vp8(SIDE, SIDE)),
        ("of 16,384 x 8,191, lossless", 4 * SIDE**2, lambda: resized_vp8l(16_384, 8_191)),
        ("of 2**24 x 2**24", 2**50, lambda: webp_of([extended(many, many), *webp_parts()])),
        ("of 2**24 x 1 on another canvas", 2**26 * 10, lambda: webp_of([extended(many, 1), *webp_parts()])),
        ("of a frame outside of its canvas", 2**32, lambda: animation(32, 24, 1, x=many - 1, y=many - 1)),
        ("of 20,000 frames", 2**40, lambda: animation(32, 24, 20_000)),
        ("of 1,000,000 chunks", GIB, lambda: webp_of([still, *webp_parts(), *[(b"abcd", b"")] * 1_000_000])),
        ("with a chunk of 4 GiB", 4 * GIB, lambda: webp_of([still, *webp_parts()]) + b"EXIF" + length + bytes(99)),
        ("whose length is 4 GiB", 4 * GIB, lambda: b"RIFF" + length + webp_of(webp_parts())[8:]),
        ("whose data claim 4 GiB", 4 * GIB, lambda: webp_of(webp_parts())[:16] + length + webp_of(webp_parts())[20:]),
        ("with XMP of 50 MB", GIB, lambda: webp_of([extended(32, 24, 4), *webp_parts(), (b"XMP ", bytes(50_000_000))])),
        (
            "with a profile of 50 MB",
            GIB,
            lambda: webp_of([extended(32, 24, 32), (b"ICCP", bytes(50_000_000)), *webp_parts()]),
        ),
    ]
    canvas = Bomb(
        "WebP of a frame on 6,000 x 6,000", "webp", 4 * 6_000**2, lambda: animation(6_000, 6_000, 1), 6_000**2
    )
    return [canvas, *(Bomb(f"WebP {name}", "webp", claims, make) for name, claims, make in files)]


def gif(width: int, height: int, frame: tuple[int, int], count: int = 1, data: bytes = b"\x02\x02\x44\x01\0") -> bytes:
    """Frames of a size each on a canvas."""
    image = b"," + struct.pack("<HHHHB", 0, 0, *frame, 0) + data
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6) + image * count + b";"


def bmp(width: int, height: int, bits: int = 24, compression: int = 0, colors: int = 0, data: bytes = b"") -> bytes:
    head = struct.pack("<IHHI", 54 + len(data), 0, 0, 54)
    return (
        b"BM" + head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, 0, 0, 0, colors, 0) + data
    )


def tiff(*tags: tuple[int, int, int, int], behind: bytes = b"", following: int = 0) -> bytes:
    """Tags of (number, kind, count, value)."""
    rows = b"".join(struct.pack("<HHII", *tag) for tag in tags)
    return b"II*\0\x08\0\0\0" + struct.pack("<H", len(tags)) + rows + struct.pack("<I", following) + behind


def tiff_tags(width: int, height: int, compression: int = 1, size: int = 16) -> list[tuple[int, int, int, int]]:
    return [(256, 4, 1, width), (257, 4, 1, height), (258, 3, 1, 8), (259, 3, 1, compression), (262, 3, 1, 1),
            (273, 4, 1, 8), (277, 3, 1, 1), (278, 4, 1, height), (279, 4, 1, size)]  # fmt: skip


def tiff_pages(count: int) -> bytes:
    """So many directories, each of which leads to the next; the first is of 1 x 1."""
    size = 2 + 9 * 12 + 4
    pages = []
    for number in range(count):
        rows = b"".join(struct.pack("<HHII", *tag) for tag in tiff_tags(1, 1, size=1))
        following = 8 + size * (number + 1) if number + 1 < count else 0
        pages.append(struct.pack("<H", 9) + rows + struct.pack("<I", following))
    return b"II*\0\x08\0\0\0" + b"".join(pages)


def jpeg_2000(*changes: tuple[int, bytes]) -> bytes:
    """A code stream of 16 x 16 with other bytes at offsets behind its marker SIZ."""
    buffer = pictures.encode(Image.new("RGB", (16, 16)), format="JPEG2000", no_jp2=True)
    data = bytearray(buffer)
    start = data.index(b"\xff\x51")
    for at, value in changes:
        data[start + at : start + at + len(value)] = value
    return bytes(data)


def pillow_bombs() -> list[Bomb]:
    most, side = b"\xff\xff\xff\xff", struct.pack(">I", SIDE)
    files: list[tuple[str, str, int, Callable[[], bytes]]] = [
        ("GIF whose frame is larger than its canvas", "gif", 4 * SIDE**2, lambda: gif(1, 1, (SIDE, SIDE))),
        ("GIF whose frame is of 65,535 x 65,535", "gif", 2**32, lambda: gif(1, 1, (65_535, 65_535))),
        ("GIF of 50,000 frames", "gif", 50_000 * 2**20, lambda: gif(512, 512, (512, 512), 50_000)),
        ("GIF of a million empty codes", "gif", GIB, lambda: gif(8, 8, (8, 8), 1, b"\x02" + b"\1\4" * MIB + b"\0")),
        ("BMP of 2**31 colours", "bmp", 2**33, lambda: bmp(8, 8, 8, 0, 2**31 - 1, bytes(64))),
        ("BMP in runs, without data", "bmp", 4 * SIDE**2, lambda: bmp(SIDE, SIDE, 8, 1, 2, bytes(16))),
        ("BMP from the top, of 2**31 rows", "bmp", 2**33, lambda: bmp(1, -(2**31), 24)),
        ("TIFF of 2**31 x 2**31", "tiff", 2**62, lambda: tiff(*tiff_tags(2**31, 2**31), behind=bytes(16))),
        ("TIFF of 2**32 strips", "tiff", 2**34, lambda: tiff(*tiff_tags(SIDE, SIDE)[:5], (273, 4, 2**32 - 1, 8),
                                                            (278, 3, 1, 1), (279, 4, 2**32 - 1, 8), behind=bytes(99))),
        ("TIFF with a text of 4 GiB", "tiff", 2**32, lambda: tiff((270, 2, 2**32 - 1, 8), *tiff_tags(8, 8))),
        ("TIFF of 10,000 pages", "tiff", GIB, lambda: tiff_pages(10_000)),
        ("TIFF in LZW, without data", "tiff", 4 * SIDE**2, lambda: tiff(*tiff_tags(SIDE, SIDE, 5), behind=bytes(16))),
        ("TIFF in runs, empty", "tiff", 4 * SIDE**2, lambda: tiff(*tiff_tags(SIDE, SIDE, 32_773), behind=bytes(9))),
        ("TIFF of fax, without data", "tiff", 4 * SIDE**2, lambda: tiff(*tiff_tags(SIDE, SIDE, 4), behind=bytes(16))),
        ("JPEG 2000 of 2**32 x 2**32", "jp2", 2**63, lambda: jpeg_2000((6, most * 2))),
        ("JPEG 2000 of tiles of a pixel", "jp2", 2**40, lambda: jpeg_2000((6, side * 2), (22, b"\0\0\0\1" * 2))),
        ("JPEG 2000 of 16,384 components", "jp2", 2**36, lambda: jpeg_2000((38, b"\x40\0"))),
        ("PPM of one column", "ppm", 2**33, lambda: b"P6\n1 2147483647\n255\n" + bytes(30)),
        ("PPM in digits", "ppm", 3 * SIDE**2, lambda: b"P3\n%d %d\n255\n" % (SIDE, SIDE) + b"1 " * 10_000),
    ]  # fmt: skip
    return [Bomb(*file) for file in files]


def bombs() -> list[Bomb]:
    return [*png_bombs(), *webp_bombs(), *pillow_bombs()]
