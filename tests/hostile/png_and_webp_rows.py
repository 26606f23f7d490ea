"""Odd PNGs and WebPs, whole and damaged, and the verdict on each."""

from __future__ import annotations

import struct
import zlib
from functools import cache
from typing import TYPE_CHECKING

from PIL import Image

from hostile.verdict_rows import Row, bad, good, unseen
from reference import pictures
from reference.jpeg import put
from reference.png import END, MAGIC, chunk, chunks, png

if TYPE_CHECKING:
    from collections.abc import Callable

WIDTH, HEIGHT = 70, 90
ROW_BYTES = 1 + 3 * WIDTH
SHARES = (0.02, 0.3, 0.6, 0.97)

# PNG.


@cache
def plain(mode: str = "RGB") -> bytes:
    return pictures.jpeg(WIDTH, HEIGHT, 1, mode, format="PNG")


def interlaced() -> bytes:
    return png(WIDTH, HEIGHT, 2, 8, interlaced=True, seed=3)


def joined(parts: list[tuple[bytes, bytes, int | None]]) -> bytes:
    return MAGIC + b"".join(chunk(*part) for part in parts)


def changed(data: bytes, name: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Another body of each chunk of a name, with its right checksum."""
    return joined(
        [(kind, change(body), None) if kind == name else (kind, body, sum_) for kind, body, sum_ in chunks(data)]
    )


def wrong_sum(data: bytes, name: bytes) -> bytes:
    return joined([(kind, body, sum_ ^ 1 if kind == name else sum_) for kind, body, sum_ in chunks(data)])


def without(data: bytes, name: bytes) -> bytes:
    return joined([part for part in chunks(data) if part[0] != name])


def with_chunk(data: bytes, before: bytes, name: bytes, body: bytes, sum_: int | None = None) -> bytes:
    at = data.index(before) - 4
    return data[:at] + chunk(name, body, sum_) + data[at:]


def in_header(at: int, value: bytes) -> bytes:
    """Other bytes at an offset in the header: 0 width, 4 height, 8 bits, 9 colour type, 10 methods, 12 interlacing."""
    return changed(plain(), b"IHDR", lambda body: put(body, at, value))


def compressed() -> bytes:
    return b"".join(body for name, body, _ in chunks(plain()) if name == b"IDAT")


def of_rows(change: Callable[[bytes], bytes], behind: bytes = b"") -> bytes:
    """The image with other filtered rows, or bytes behind its compressed data."""
    data = zlib.compress(change(zlib.decompress(compressed()))) + behind
    return MAGIC + chunk(b"IHDR", chunks(plain())[0][1]) + chunk(b"IDAT", data) + END


def of_data(*parts: bytes) -> bytes:
    """The image with other compressed data, in so many chunks."""
    return MAGIC + chunk(b"IHDR", chunks(plain())[0][1]) + b"".join(chunk(b"IDAT", part) for part in parts) + END


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def animated(kind: str) -> bytes:
    frames = [Image.fromarray(pictures.pixels(20, 30, seed)) for seed in range(3)]
    return pictures.encode(frames[0], format=kind, save_all=True, append_images=frames[1:])


PNG_ROWS: dict[str, Row] = {
    "png": good(plain),
    "png of a palette": good(lambda: plain("P")),
    "png with alpha": good(lambda: plain("RGBA")),
    "png of 16 bits": good(lambda: png(WIDTH, HEIGHT, 0, 16, seed=4)),
    "png interlaced": good(interlaced),
    "png animated": good(lambda: animated("PNG")),
    "png animated, second frame cut": good(lambda: animated("PNG")[: animated("PNG").index(b"fdAT") + 40]),
    "png, bytes behind its end": good(lambda: plain() + bytes(500)),
    "png without its end": good(lambda: plain()[: -len(END)]),
    "png, data in several chunks": good(
        lambda: of_data(compressed()[:100], b"", compressed()[100:4000], compressed()[4000:])
    ),
    "png, rows too many": good(lambda: of_rows(lambda rows: rows + rows[: 5 * ROW_BYTES])),
    "png, bytes behind its data": good(lambda: of_rows(bytes, b"x" * 8)),
    # Checksums: those before the data are wanted, others not.
    "png, checksum of header": bad(lambda: wrong_sum(plain(), b"IHDR"), "IHDR"),
    "png, checksum of palette": bad(lambda: wrong_sum(plain("P"), b"PLTE"), "PLTE"),
    "png, checksum of data": good(lambda: wrong_sum(plain(), b"IDAT")),
    "png, checksum of end": good(lambda: wrong_sum(plain(), b"IEND")),
    "png, checksum of a text before the data": bad(lambda: with_chunk(plain(), b"IDAT", b"tEXt", b"a\0b", 7), "tEXt"),
    "png, checksum of a text behind the data": good(lambda: with_chunk(plain(), b"IEND", b"tEXt", b"a\0b", 7)),
    # What says nothing of pixels.
    "png, text damaged": good(lambda: with_chunk(plain(), b"IDAT", b"zTXt", b"a\0\0not compressed")),
    "png, profile damaged": good(lambda: with_chunk(plain(), b"IDAT", b"iCCP", b"a\0\0not compressed")),
    "png, exif damaged": good(lambda: with_chunk(plain(), b"IDAT", b"eXIf", b"II*\0\xff\xff\xff\xff")),
    "png, chunk of an unknown kind": good(lambda: with_chunk(plain(), b"IDAT", b"abCd", b"x")),
    "png, transparency cut": Row(
        lambda: with_chunk(plain("L"), b"IDAT", b"tRNS", b"\0"), header=True, whole=True, pillow=False
    ),
    # Cut short.
    **{
        f"png, {share:.0%}": bad(lambda share=share: plain()[: int(share * len(plain()))], "cut short")
        for share in SHARES
    },
    **{
        f"png interlaced, {share:.0%}": bad(
            lambda share=share: interlaced()[: int(share * len(interlaced()))], "cut short"
        )
        for share in SHARES
    },
    "png cut in the checksum of its data": bad(lambda: plain()[: -len(END) - 2], "cut short", pillow=True, crop=True),
    "png without data": bad(lambda: without(plain(), b"IDAT"), "IEND"),
    "png without header": bad(lambda: MAGIC + plain()[plain().index(b"IDAT") - 4 :], "png"),
    # Data that are damaged.
    "png, checksum within its data": unseen(
        lambda: of_data(flipped(compressed(), len(compressed()) - 1)), "data check", pillow=False, crop=True
    ),
    "png, a byte of its data": unseen(
        lambda: of_data(flipped(compressed(), len(compressed()) * 2 // 3)), "", pillow=False, crop=True
    ),
    "png, a byte of its data, checksum wrong": bad(
        lambda: flipped(plain(), len(plain()) * 2 // 3), "", pillow=False, crop=True
    ),
    "png, filter that is none": unseen(
        lambda: of_rows(lambda rows: rows[: 60 * ROW_BYTES] + b"\5" + rows[60 * ROW_BYTES + 1 :]),
        "filter",
        pillow=False,
        crop=True,
    ),
    "png, data not compressed": bad(lambda: of_data(b"\0\0" + compressed()[2:]), "compression method", pillow=False),
    "png, rows missing": unseen(
        lambda: of_rows(lambda rows: rows[: 60 * ROW_BYTES]), "Not enough image data", crop=True
    ),
    "png, a byte missing": unseen(
        lambda: of_rows(lambda rows: rows[:-1]), "Not enough image data", pillow=False, crop=True
    ),
    "png, a text between its data": unseen(
        lambda: of_data(compressed()[:4000], b"@", compressed()[4000:]).replace(
            chunk(b"IDAT", b"@"), chunk(b"tEXt", b"@")
        ),
        "Not enough image data",
        pillow=False,
        crop=True,
    ),
    "png higher than its data": unseen(
        lambda: in_header(4, struct.pack(">I", HEIGHT + 20)), "Not enough image data", crop=True
    ),
    # What the specification forbids.
    "png, two headers": bad(lambda: with_chunk(plain(), b"IDAT", b"IHDR", chunks(plain())[0][1]), "IHDR", pillow=True),
    "png of a palette, without it": bad(lambda: without(plain("P"), b"PLTE"), "PLTE", pillow=True),
    "png, critical chunk of an unknown kind": bad(
        lambda: with_chunk(plain(), b"IDAT", b"ABCD", b"x"), "ABCD", pillow=True
    ),
    "png, header too short": bad(lambda: changed(plain(), b"IHDR", lambda body: body[:12]), "IHDR"),
    "png, header too long": bad(lambda: changed(plain(), b"IHDR", lambda body: body + b"\0"), "IHDR", pillow=True),
    "png, width 0": bad(lambda: in_header(0, bytes(4)), "IHDR"),
    "png of 3 bits": bad(lambda: in_header(8, b"\3"), "IHDR"),
    "png of colour type 1": bad(lambda: in_header(9, b"\1"), "IHDR"),
    "png, compression method 1": bad(lambda: in_header(10, b"\1"), "IHDR", pillow=True),
    "png, interlacing 2": bad(lambda: in_header(12, b"\2"), "IHDR"),
    "png, a size beyond all limits": bad(lambda: in_header(0, b"\0\0\x4e\x20" * 2), "limit"),
    "png, signature": bad(lambda: plain().replace(b"\r\n\x1a\n", b"\r\n\x1a\r"), "not an image of a known format"),
}

# WebP.


@cache
def webp(kind: str) -> bytes:
    if kind == "animated":
        return animated("WEBP")
    image = Image.fromarray(pictures.pixels(WIDTH, HEIGHT, 5))
    if kind == "with alpha":
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    return pictures.encode(image, format="WEBP", quality=70, lossless=kind == "lossless")


KINDS = ("lossy", "lossless", "with alpha", "animated")
WEBP_ROWS: dict[str, Row] = {
    **{f"webp {kind}": good(lambda kind=kind: webp(kind)) for kind in KINDS},
    **{f"webp {kind}, bytes behind its end": good(lambda kind=kind: webp(kind) + bytes(501)) for kind in KINDS},
    **{
        f"webp {kind}, {share:.0%}": bad(
            lambda kind=kind, share=share: webp(kind)[: int(share * len(webp(kind)))], "cut short"
        )
        for kind in KINDS
        for share in SHARES[1:]
    },
    **{f"webp {kind}, without its last byte": bad(lambda kind=kind: webp(kind)[:-1], "cut short") for kind in KINDS},
    "webp, a length beyond its bytes": bad(lambda: put(webp("lossy"), 4, struct.pack("<I", 10**6)), "cut short"),
    "webp, a length within its data": bad(lambda: put(webp("lossy"), 4, struct.pack("<I", 20)), "do not fit together"),
    "webp, a chunk beyond its bytes": bad(
        lambda: put(webp("lossy"), 16, struct.pack("<I", 10**6)), "do not fit together"
    ),
    "webp, a chunk of 5 bytes": bad(lambda: put(webp("lossy"), 16, struct.pack("<I", 5)), "do not fit together"),
    "webp, a chunk of an unknown kind": bad(lambda: put(webp("lossy"), 12, b"VP8Q"), "webp"),
    "webp lossy, header": bad(lambda: put(webp("lossy"), 20, b"\xff\xff\xff"), "do not fit together"),
    "webp lossy, start code": bad(lambda: put(webp("lossy"), 23, b"xxx"), "do not fit together"),
    "webp lossless, signature": bad(lambda: put(webp("lossless"), 20, b"\x30"), "do not fit together"),
    "webp with alpha, canvas": bad(lambda: put(webp("with alpha"), 24, b"\x64\0\0"), "do not fit together"),
    "webp, a size beyond all limits": bad(lambda: put(webp("lossless"), 21, b"\xff\xff\xff\x0f"), "limit"),
    # Data have no checksum: most changes give another image, to Pillow as to the core.
    "webp lossy, a byte of its data": good(lambda: flipped(webp("lossy"), len(webp("lossy")) // 2)),
    "webp lossless, a byte of its data": good(lambda: flipped(webp("lossless"), len(webp("lossless")) // 2)),
    "webp animated, a byte of a later frame": good(
        lambda: flipped(webp("animated"), webp("animated").rindex(b"ANMF") + 50)
    ),
    "webp lossy, a late byte of its data": unseen(
        lambda: flipped(webp("lossy"), len(webp("lossy")) * 95 // 100), "end early", pillow=False, crop=True
    ),
    "webp with alpha, alpha": bad(
        lambda: flipped(webp("with alpha"), webp("with alpha").index(b"ALPH") + 9), "damaged", pillow=False
    ),
}
