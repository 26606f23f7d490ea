"""Images made to take all memory or all time, or to be accepted by one part and refused by the next."""

from __future__ import annotations

import resource
import struct
import zlib

import pytest
from PIL import Image

from hostile.image_bombs import MIB, zeros
from reference import pictures
from reference.jpeg import EOI, SOS, in_frame, inside, resized, segment
from reference.png import END, chunk, header
from small_cases import each
from stoker.errors import ImageError, ImageTooLargeError
from stoker.recipe import Recipe, convert, parse_encode, parse_resize

pytestmark = pytest.mark.decodes("png", "webp")  # Pillow refuses some in other words
RECIPES = {
    "keep": Recipe(),
    "decode": Recipe(check="decode"),
    "restart": Recipe(restart=True),
    "short": Recipe(resize=parse_resize("short:24"), encode=parse_encode("jpeg:90")),
    "square": Recipe(resize=parse_resize("square:24"), encode=parse_encode("jpeg:90"), restart=True),
    "raw": Recipe(encode=parse_encode("raw")),
}


PICTURE = Image.linear_gradient("L").resize((64, 48)).convert("RGB")
JPEG = pictures.encode(PICTURE)
PROGRESSIVE = pictures.encode(PICTURE, progressive=True)


def behind(added: bytes, jpeg: bytes = JPEG) -> bytes:
    """A JPEG with something between its last scan and its end-of-image marker."""
    return jpeg[:-2] + added + EOI


def png(width: int, height: int, extra: bytes = b"", rows: bytes | None = None) -> bytes:
    pixels = zlib.compress(bytes((3 * width + 1) * height)) if rows is None else rows
    return header(width, height, 2, 8) + extra + chunk(b"IDAT", pixels) + END


TIFF_SIDES = b"".join(struct.pack("<HHII", tag, 4, 1, 2**31) for tag in (256, 257))
REFUSED = {
    "a PNG of 10 gigapixels": (lambda: png(10**5, 10**5, rows=b""), "100000x100000 pixels"),
    "a PNG of more pixels than its bytes hold": (lambda: png(10**4, 10**4, rows=b""), "cut short: .* 10000 x 10000"),
    "a PNG without pixels": (lambda: png(0, 0), "Invalid IHDR"),
    "a PNG with a checksum of another chunk": (lambda: png(8, 8, chunk(b"tEXt", b"a\0b")[:-1] + b"x"), "CRC error"),
    "a BMP of 2**63 pixels": (
        lambda: b"BM" + struct.pack("<IHHIIiiHHIIiiII", 100, 0, 0, 54, 40, -5, -(2**31), 1, 24, 0, 0, 0, 0, 0, 0),
        "pixels",
    ),
    "a WebP that lies": (lambda: b"RIFF\xff\xff\xff\xffWEBPVP8X\x0a\0\0\0" + bytes(4) + b"\xff" * 50, "pixels"),
    "a PPM that lies": (lambda: b"P6\n100000 100000\n255\n", "pixels"),
    "a PPM of digits": (lambda: b"P6\n" + b"9" * 10**5 + b" 1\n255\n", "damaged ppm"),
    "a TIFF of 2**62 pixels": (lambda: b"II*\0\x08\0\0\0\2\0" + TIFF_SIDES + bytes(4), "pixels|damaged tiff"),
    "a TIFF that leads round": (lambda: b"II*\0\x08\0\0\0\1\0" + bytes(12) + b"\x08\0\0\0", "damaged tiff"),
    "a JPEG of 4 gigapixels": (lambda: resized(JPEG, 65535, 65535), "65535x65535 pixels"),
    "a JPEG that claims more than its data hold": (
        lambda: resized(JPEG, 8192, 8192),
        "its header claims 8192 x 8192",
    ),
    "a JPEG without height": (lambda: in_frame(JPEG, 5, b"\0\0"), "height 0"),
    "a JPEG without width": (lambda: in_frame(JPEG, 7, b"\0\0"), "width .* 0"),
    "a JPEG of 2 components": (lambda: in_frame(JPEG, 9, b"\2"), "2 components"),
    "a JPEG of 255 components": (lambda: in_frame(JPEG, 9, b"\xff"), "too short for its components"),
    "a JPEG of 12 bits": (lambda: in_frame(JPEG, 4, b"\x0c"), "12 bits"),
    "a lossless JPEG": (lambda: in_frame(JPEG, 1, b"\xc3"), "lossless"),
    "a JPEG of two frames": (lambda: inside(JPEG, segment(0xC0, bytes(15))), "frame"),
    "a JPEG with a frame behind its scan": (lambda: behind(segment(0xC0, bytes(15))), "second frame header"),
    "a segment of length 0": (lambda: inside(JPEG, b"\xff\xe1\0\0"), "the length 0"),
    "a segment beyond the end": (lambda: inside(JPEG, b"\xff\xe1\xff\xff"), "cut short inside a marker segment"),
    "a segment behind the scan that is cut": (lambda: behind(b"\xff\xe1\xff\xff"), "cut short inside a marker"),
    "a segment behind scans that is cut": (lambda: behind(b"\xff\xe1\xff\xff", PROGRESSIVE), "cut short inside"),
    "no end": (lambda: JPEG[:-2], "no end-of-image marker"),
    "no scan": (lambda: JPEG[: JPEG.index(SOS)] + EOI, "before its first scan"),
    "two markers": (lambda: b"\xff\xd8\xff\xd9", "before its first scan"),
    "a page": (lambda: b"<svg xmlns='http://www.w3.org/2000/svg'/>", "text: it starts with '<svg"),
    "a document": (lambda: b"%PDF-1.4\n", "pdf is not read"),
    "one byte": (lambda: b"\xff", "not an image"),
    "nothing": (lambda: b"", "empty"),
    "zeros": (lambda: bytes(1000), "not an image"),
}


@each("case", list(REFUSED))
def test_every_recipe_refuses_it_and_says_why(case: str) -> None:
    make, problem = REFUSED[case]
    data = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for recipe in RECIPES.values():
        with pytest.raises(ImageError, match=problem):
            convert(data, recipe)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10, "KiB"
    if "pixels" in problem and "|" not in problem:
        with pytest.raises(ImageTooLargeError):
            convert(data, RECIPES["keep"])


LOOP = b"II*\0\x08\0\0\0\1\0" + struct.pack("<HHII", 0x8769, 4, 1, 8) + b"\x08\0\0\0"
TURNED = b"II*\0\x08\0\0\0\1\0" + struct.pack("<HHII", 274, 3, 1, 99)
ACCEPTED = {
    "thousands of comments": lambda: inside(JPEG, segment(0xFE, b"") * 10_000),
    "megabytes of comments": lambda: inside(JPEG, segment(0xFE, b"c" * 65533) * 100),
    "megabytes of fill bytes": lambda: inside(JPEG, b"\xff" * 2**20),
    "segments of every kind": lambda: inside(
        JPEG, b"".join(segment(0xE0 + i % 16, bytes(i % 300)) for i in range(2000))
    ),
    "255 parts of a profile": lambda: inside(JPEG, segment(0xE2, b"ICC_PROFILE\0\xff\xffx") * 255),
    "tables over and over": lambda: inside(JPEG, segment(0xDB, bytes(1) + b"\1" * 64) * 1000),
    "EXIF that leads round": lambda: inside(JPEG, segment(0xE1, b"Exif\0\0" + LOOP)),
    "EXIF turned by 99": lambda: inside(JPEG, segment(0xE1, b"Exif\0\0" + TURNED)),
    "EXIF of 65535 entries": lambda: inside(JPEG, segment(0xE1, b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + bytes(60000))),
    "two images": lambda: JPEG * 2,
    "something behind the end": lambda: JPEG + bytes(1000),
    "restart markers before the frame": lambda: inside(JPEG, b"\xff\xd0\xff\xd3"),
    "a progressive image": lambda: PROGRESSIVE,
    "a PNG with a profile of zeros": lambda: png(
        8, 8, chunk(b"iCCP", b"x\0\0" + zeros(64 * MIB))
    ),  # which nobody inflates
    "a PNG with a text of zeros": lambda: png(8, 8, chunk(b"zTXt", b"x\0\0" + zeros(64 * MIB))),
    "a PNG with megabytes of unknown chunks": lambda: png(8, 8, chunk(b"stKr", bytes(2**20)) * 32),
    "a PNG with thousands of texts": lambda: png(8, 8, chunk(b"tEXt", b"a\0b") * 10_000),
    "a PNG of thousands of data chunks": lambda: png(8, 8, chunk(b"IDAT", b"") * 10_000),
}


@pytest.mark.parametrize("case", list(ACCEPTED))
@pytest.mark.slow
def test_what_is_stored_can_be_built_again_with_every_recipe(case: str) -> None:
    """What one recipe had found whole, another called cut short."""
    stored = {name: convert(ACCEPTED[case](), recipe) for name, recipe in RECIPES.items()}
    for name in ("keep", "decode", "restart", "short", "square"):
        for recipe in RECIPES.values():
            again = convert(stored[name].data, recipe)
            assert again.width > 0
