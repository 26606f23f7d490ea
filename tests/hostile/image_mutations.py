"""PNG and WebP changed at random, with the checksums that fit, and what the core and Pillow make of them.

By hand, for longer: ``PYTHONPATH=tests python -m hostile.image_mutations png|webp SECONDS [SEED]``
"""

from __future__ import annotations

import re
import struct
import sys
import tempfile
import time
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from reference import pictures
from reference.png import END, KINDS, MAGIC, chunk, chunks, png
from stoker import _native
from stoker.errors import ImageError, ImageTooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Chunks = list[tuple[bytes, bytes]]
"""(kind, data) of each chunk of a file, in order."""

PNG_KINDS = (b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"tEXt", b"zTXt", b"iCCP", b"eXIf", b"acTL", b"fcTL",
             b"fdAT", b"abCd", b"ABCD", b"\0\0\0\0")  # fmt: skip
WEBP_KINDS = (b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP", b"EXIF", b"XMP ", b"abcd")


def png_seeds() -> list[bytes]:
    """Small PNGs of every kind, and animations."""
    seeds = [
        png(width, height, color, bits, interlaced=interlaced, transparent=True, entries=200, seed=bits)
        for color, bits in KINDS
        for interlaced in (False, True)
        for width, height in ((9, 7),)
    ]
    frames = [Image.fromarray(pictures.pixels(20, 14, seed)) for seed in range(3)]
    seeds.append(pictures.encode(frames[0], format="PNG", save_all=True, append_images=frames[1:]))
    seeds.append(pictures.encode(frames[0], format="PNG", save_all=True, append_images=frames[1:], default_image=True))
    return seeds


def webp_seeds() -> list[bytes]:
    """Small WebPs of every kind, and animations."""
    files = []
    for mode in ("RGB", "RGBA"):
        frames = [Image.fromarray(pictures.pixels(36, 27, seed)).convert(mode) for seed in range(3)]
        if mode == "RGBA":
            for frame in frames:
                frame.putalpha(Image.linear_gradient("L").resize(frame.size))
        for lossless in (False, True):
            options = {"format": "WEBP", "lossless": lossless, "quality": 40, "method": 1}
            files.append(pictures.encode(frames[0], **options, exif=b"Exif\0\0junk"))
            files.append(pictures.encode(frames[0], **options))
            files.append(pictures.encode(frames[0], **options, save_all=True, append_images=frames[1:]))
    return files


def png_chunks(data: bytes) -> Chunks:
    return [(kind, body) for kind, body, _ in chunks(data)]


def webp_chunks(data: bytes) -> Chunks:
    chunks, at = [], 12
    while at < len(data):
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        chunks.append((data[at : at + 4], data[at + 8 : at + 8 + size]))
        at += 8 + size + size % 2
    return chunks


def webp_of(chunks: Chunks) -> bytes:
    body = b"".join(kind + struct.pack("<I", len(data)) + data + bytes(len(data) % 2) for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def _bits(data: bytes, random: Random) -> bytes:
    """Some bits turned, or some bytes replaced by telling ones."""
    if not data:
        return data
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(changed))
        changed[at] = (
            changed[at] ^ 1 << random.randrange(8) if random.random() < 0.6 else random.choice((0, 1, 4, 127, 255))
        )
    return bytes(changed)


def _length(data: bytes, random: Random) -> bytes:
    """Cut, or longer."""
    if random.random() < 0.5:
        return data[: random.randint(0, len(data))]
    return data + random.randbytes(random.choice((1, 2, 3, 40)))


def _any_chunk(chunks: Chunks, random: Random, kinds: tuple[bytes, ...]) -> None:
    """Change what chunks there are, or the data of one."""
    at = random.randrange(len(chunks)) if chunks else 0
    what = random.randrange(7)
    if what == 0 or not chunks:
        data = random.choice((b"", random.randbytes(random.randrange(20)), bytes(26)))
        chunks.insert(random.randint(0, len(chunks)), (random.choice(kinds), data))
    elif what == 1:
        del chunks[at]
    elif what == 2:
        chunks.insert(random.randint(0, len(chunks)), chunks[at])
    elif what == 3:
        chunks.insert(random.randrange(len(chunks)), chunks.pop(at))
    elif what == 4:
        chunks[at] = (chunks[at][0], _length(chunks[at][1], random))
    elif what == 5:
        chunks[at] = (random.choice(kinds), chunks[at][1])
    else:
        chunks[at] = (chunks[at][0], _bits(chunks[at][1], random))


def _png_header(chunks: Chunks, random: Random) -> None:
    """Another size, depth, colour type or method."""
    for number, (kind, data) in enumerate(chunks):
        if kind == b"IHDR" and len(data) == 13:
            fields = list(struct.unpack(">IIBBBBB", data))
            at = random.randrange(7)
            sizes = (0, 1, 8, fields[at] + 1, max(0, fields[at] - 1), 2**31 - 1, 2**31)
            fields[at] = random.choice(sizes) if at < 2 else random.choice((0, 1, 2, 3, 4, 6, 8, 16, 32))
            chunks[number] = (kind, struct.pack(">IIBBBBB", *fields))


def _png_data(chunks: Chunks, random: Random) -> None:
    """Other compressed data, or the same in other chunks or compressed otherwise."""
    positions = [number for number, (kind, _) in enumerate(chunks) if kind == b"IDAT"]
    if not positions:
        return
    data = b"".join(chunks[number][1] for number in positions)
    what = random.randrange(4)
    try:
        rows = zlib.decompress(data)
    except zlib.error:
        what = 3
        rows = b""
    if what == 0:
        rows = _bits(rows, random)
    elif what == 1:
        rows = _length(rows, random)
    if what < 3:
        packer = zlib.compressobj(random.randrange(10), zlib.DEFLATED, random.randint(9, 15), 8, random.randrange(5))
        data = packer.compress(rows)
        if random.random() < 0.1:
            data += packer.flush(zlib.Z_FULL_FLUSH)
        data += packer.flush()
        data = (
            data if random.random() < 0.8 else random.choice((data[:-1], data[:-4], data + b"\0", _bits(data, random)))
        )
    else:
        data = _bits(data, random)
    pieces = sorted(random.randint(0, len(data)) for _ in range(random.choice((0, 0, 1, 3, 30))))
    edges = [0, *pieces, len(data)]
    parts = [(b"IDAT", data[low:high]) for low, high in pairwise(edges)]
    chunks[positions[0] : positions[-1] + 1] = parts


def changed_png(data: bytes, random: Random) -> bytes:
    """Another file, whose checksums mostly fit."""
    chunks = png_chunks(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        change: Callable[[], None] = random.choice((
            lambda: _any_chunk(chunks, random, PNG_KINDS),
            lambda: _png_header(chunks, random),
            lambda: _png_data(chunks, random),
        ))  # fmt: skip
        change()
    parts = [chunk(kind, body) for kind, body in chunks]
    if parts and random.random() < 0.1:  # a chunk that lies
        at = random.randrange(len(parts))
        parts[at] = _bits(parts[at], random)
    whole = MAGIC + b"".join(parts)
    return whole[: random.randint(8, len(whole))] if random.random() < 0.1 else whole


def _webp_header(chunks: Chunks, random: Random) -> None:
    """Other flags or sizes in a chunk that has them."""
    for number, (kind, data) in enumerate(chunks):
        if kind in (b"VP8X", b"ANMF", b"ANIM") and random.random() < 0.5:
            head = 10 if kind == b"VP8X" else 16
            chunks[number] = (kind, _bits(data[:head], random) + data[head:])


def _webp_frame(chunks: Chunks, random: Random) -> None:
    """Other chunks within a frame of an animation."""
    for number, (kind, data) in enumerate(chunks):
        if kind == b"ANMF" and random.random() < 0.6:
            parts = webp_chunks(bytes(12) + data[16:])
            _any_chunk(parts, random, WEBP_KINDS)
            chunks[number] = (kind, data[:16] + webp_of(parts)[12:])


def changed_webp(data: bytes, random: Random) -> bytes:
    """Another file, whose lengths mostly fit."""
    chunks = webp_chunks(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        change: Callable[[], None] = random.choice((
            lambda: _any_chunk(chunks, random, WEBP_KINDS),
            lambda: _webp_header(chunks, random),
            lambda: _webp_frame(chunks, random),
        ))  # fmt: skip
        change()
    whole = bytearray(webp_of(chunks))
    what = random.random()
    if what < 0.1:  # the length of the whole
        whole[4:8] = struct.pack("<I", max(0, len(whole) - 8 + random.choice((-10, -2, -1, 1, 2, 8, 2**31))))
    elif what < 0.2:  # of a chunk
        at = random.randrange(len(whole))
        whole[at] = random.choice((0, 1, 255))
    elif what < 0.3:
        del whole[random.randint(12, len(whole)) :]
    elif what < 0.35:
        whole += random.randbytes(9)
    return bytes(whole)


# What is made of them.

MAX_PIXELS = 2**24

STRICTER = (
    # What the specification forbids, and Pillow passes over: other methods in the header, chunks in another order or
    # twice, palettes that are missing or not of whole colours, critical chunks that nobody knows.
    "Invalid IHDR data|IHDR: invalid",
    "out of place|duplicate|missing IHDR|Missing IHDR",
    "Missing PLTE|PLTE: invalid|Invalid palette",
    "unhandled critical chunk|invalid chunk type|unsigned integer out of range",
    # Rows or checksums that are missing: Pillow shows black where compressed data end in due form.
    "Not enough image data|cut short|incorrect data check",
)
"""Why the core refuses a PNG that Pillow shows."""


def bare_png(data: bytes) -> bytes:
    """The header, the palette and the first run of data chunks, and nothing else."""
    chunks = png_chunks(data)
    first = next(at for at, (kind, _) in enumerate(chunks) if kind == b"IDAT")
    last = next((at for at in range(first, len(chunks)) if chunks[at][0] != b"IDAT"), len(chunks))
    kept = [(kind, body) for kind, body in chunks[:first] if kind in (b"IHDR", b"PLTE")] + chunks[first:last]
    return MAGIC + b"".join(chunk(kind, body) for kind, body in kept) + END


def bare_webp(data: bytes) -> bytes:
    """The header, and the first frame with what it needs; no metadata, no other frames."""
    chunks = webp_chunks(data)
    frame = next(at for at, (kind, _) in enumerate(chunks) if kind in (b"VP8 ", b"VP8L", b"ANMF"))
    kept = [(kind, body) for kind, body in chunks[: frame + 1] if kind in (b"VP8X", b"ANIM", b"ALPH", chunks[frame][0])]
    if kept[0][0] == b"VP8X":
        kept[0] = (b"VP8X", bytes([kept[0][1][0] & 0x12]) + kept[0][1][1:10])
    return webp_of(kept)


def bare_by_pillow(data: bytes) -> NDArray[np.uint8]:
    """What Pillow shows of the file without its metadata and its further frames."""
    return pictures.whole(bare_png(data) if data.startswith(MAGIC) else bare_webp(data))


def same(first: NDArray[np.uint8] | None, second: NDArray[np.uint8] | None) -> bool:
    return first is second or (first is not None and second is not None and np.array_equal(first, second))


def pixels_or_none(show: Callable[[bytes], NDArray[np.uint8]], data: bytes) -> NDArray[np.uint8] | None:
    try:
        return show(data)
    except Exception:  # whatever Pillow raises  # noqa: BLE001
        return None


def difference(data: bytes) -> str | None:
    """What is wrong with the core's verdict on a file; None if nothing is.

    It has the pixels of Pillow, or those that Pillow shows of the file without its metadata and its further frames; or
    it refuses what Pillow refuses of either, or refuses it for one of `STRICTER`. A check has the same verdict.
    """
    pixels, refused = None, []
    for look in (_native.check_image, _native.decode_image):
        try:
            pixels = look(data, max_pixels=MAX_PIXELS)
        except ImageTooLargeError:
            return None
        except ImageError as error:
            refused.append(str(error))
    if len(refused) == 1 or len(set(refused)) > 1:
        return f"a check and a decode have two verdicts: {refused}"
    if refused and data.startswith(MAGIC) and any(re.search(reason, refused[0]) for reason in STRICTER):
        return None
    if same(pixels, pixels_or_none(pictures.whole, data)) or same(pixels, pixels_or_none(bare_by_pillow, data)):
        return None
    return f"Pillow shows it: {refused[0]}" if refused else "Pillow refuses it, or shows other pixels"


CHANGES = {"png": (png_seeds, changed_png), "webp": (webp_seeds, changed_webp)}


def main() -> None:
    make, change = CHANGES[sys.argv[1]]
    end = time.monotonic() + float(sys.argv[2])
    random = Random(int(sys.argv[3]) if sys.argv[3:] else 0)
    seeds, counts = make(), Counter[str | None]()
    while time.monotonic() < end:
        data = change(random.choice(seeds), random)
        what = difference(data)
        counts[what] += 1
        if what is not None and counts[what] == 1:
            path = Path(tempfile.gettempdir()) / f"difference-{zlib.crc32(data):08x}.{sys.argv[1]}"
            path.write_bytes(data)
            sys.stdout.write(f"{path}: {what}\n")
    sys.stdout.write(f"{counts.total()} files, {counts.total() - counts[None]} differences\n")


if __name__ == "__main__":
    main()
