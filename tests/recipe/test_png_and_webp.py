"""PNG and WebP by the native decoders: their pixels and their verdicts against Pillow's."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from reference import pictures
from reference.png import END, KINDS, chunk, header, png, rows
from small_cases import each
from stoker import _native
from stoker.errors import ImageError
from stoker.recipe import check, convert, parse_encode
from stoker.recipe.recipe import Recipe

if TYPE_CHECKING:
    from collections.abc import Callable


WIDTH, HEIGHT = 16, 12
pytestmark = [
    pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning"),
    pytest.mark.decodes("png", "webp"),
]


def webp(width: int, height: int, seed: int = 0, mode: str = "RGB", **options: object) -> bytes:
    return pictures.jpeg(width, height, seed, mode, format="WEBP", method=1, **options)


def check_regions(data: bytes, seed: int) -> None:
    whole = pictures.whole(data)
    assert (_native.decode_image(data) == whole).all()
    rng = np.random.default_rng(seed)
    height, width = whole.shape[:2]
    for _ in range(3):
        left, top = int(rng.integers(width)), int(rng.integers(height))
        right, bottom = int(rng.integers(left, width)) + 1, int(rng.integers(top, height)) + 1
        part = _native.decode_image(data, (left, top, right, bottom))
        assert (part == whole[top:bottom, left:right]).all(), (left, top, right, bottom)


@pytest.mark.parametrize(("color", "bits"), KINDS)
@given(
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    interlaced=st.booleans(),
    transparent=st.booleans(),
    entries=st.sampled_from((1, 3, 256)),
    seed=st.integers(0, 2**20),
)
@settings(max_examples=15, deadline=None)
@pytest.mark.slow
def test_every_kind_of_png_has_the_pixels_of_pillow(color: int, bits: int, seed: int, **shape: int) -> None:
    check_regions(png(color=color, bits=bits, seed=seed, **shape), seed)


@given(
    width=st.integers(1, 70),
    height=st.integers(1, 70),
    mode=st.sampled_from(("RGB", "RGBA", "L")),
    lossless=st.booleans(),
    quality=st.integers(0, 100),
    seed=st.integers(0, 2**20),
)
@settings(max_examples=40, deadline=None)
def test_every_kind_of_webp_has_the_pixels_of_pillow(seed: int, **options: object) -> None:
    check_regions(webp(seed=seed, **options), seed)


def test_of_an_animation_the_first_frame_is_shown() -> None:
    frames = [Image.new("RGBA", (40, 30)) for _ in range(3)]
    for number, frame in enumerate(frames):
        frame.paste((255, 40 * number, 9, 255), (10 + number, 8, 20 + number, 20))
    for kind, options in (("PNG", {}), ("WEBP", {"lossless": True}), ("WEBP", {"background": (1, 2, 3, 255)})):
        check_regions(pictures.encode(frames[0], format=kind, save_all=True, append_images=frames[1:], **options), 1)
    first = pictures.encode(frames[0], format="PNG", save_all=True, append_images=frames[1:], default_image=True)
    check_regions(first, 1)


@pytest.mark.parametrize("kind", ["png", "webp"])
def test_what_is_built_is_what_pillow_decodes(kind: str) -> None:
    data = png(20, 14, 6) if kind == "png" else webp(20, 14, mode="RGBA")
    stored = convert(data, Recipe(encode=parse_encode("raw")))
    assert stored.data == pictures.whole(data).tobytes()
    assert stored.storing.converted == kind


@pytest.mark.parametrize("kind", ["PNG", "WEBP"])
def test_orientation_is_applied_where_it_is_asked_for(kind: str) -> None:
    data = pictures.jpeg(20, 14, format=kind, exif=pictures.exif(6), lossless=True)
    for apply, size in (("apply", (14, 20)), ("keep", (20, 14))):
        stored = convert(data, Recipe(encode=parse_encode("raw"), exif=apply))
        assert (stored.width, stored.height) == size


RNG = np.random.default_rng(5)
ROWS = rows(WIDTH, HEIGHT, 24, RNG)
DATA = zlib.compress(ROWS)
HEAD = header(WIDTH, HEIGHT, 2, 8)
PALETTE = header(WIDTH, HEIGHT, 3, 8)
INDICES = zlib.compress(rows(WIDTH, HEIGHT, 8, RNG))


def idat(data: bytes) -> bytes:
    return chunk(b"IDAT", data)


# Beside the many of ``hostile/png_and_webp_rows.py``.
AGREED = {
    "as it should be": HEAD + idat(DATA) + END,
    "another checksum of an unknown chunk": HEAD + chunk(b"prVt", b"a\0b", 1) + idat(DATA) + END,
    "pixels that end early": HEAD + idat(DATA[:-5]) + END,
    "fewer rows than the header says": HEAD + idat(zlib.compress(ROWS[:-10])) + END,
    "a data chunk behind the pixels": HEAD + idat(DATA) + idat(b"xxxx") + END,
    "data chunks of a byte": HEAD + b"".join(idat(DATA[i : i + 1]) for i in range(len(DATA))) + END,
    "gamma": HEAD + chunk(b"gAMA", struct.pack(">I", 45455)) + idat(DATA) + END,
    "a palette beside RGB": HEAD + chunk(b"PLTE", b"abc") + idat(DATA) + END,
    "EXIF that is none": HEAD + chunk(b"eXIf", b"junk") + idat(DATA) + END,
    "a window that is too small": HEAD + idat(b"\x18\x19" + DATA[2:]) + END,
    "a stream that needs a dictionary": HEAD + idat(b"\x78\xbb" + DATA[2:]) + END,
    "a stream without its header": HEAD + idat(DATA[2:]) + END,
    "a palette of 16 bits": header(WIDTH, HEIGHT, 3, 16) + idat(DATA) + END,
    "a palette of 3 entries": PALETTE + chunk(b"PLTE", b"abcdefghi") + idat(INDICES) + END,
    "a palette of 257 entries": PALETTE + chunk(b"PLTE", bytes(771)) + idat(INDICES) + END,
    "transparency before the palette": PALETTE + chunk(b"tRNS", b"\0") + chunk(b"PLTE", b"abc") + idat(INDICES) + END,
    "a palette beside grey": header(WIDTH, HEIGHT, 0, 8) + chunk(b"PLTE", b"abc") + idat(INDICES) + END,
}
STRICTER = {  # what Pillow shows although the specification forbids it, or the file ends within its checksums
    "cut within the checksum of its chunk": HEAD + idat(DATA)[:-4],
    "no checksum of the pixels": HEAD + idat(DATA[:-4]) + END,
    "another checksum of the pixels, in a chunk of its own": HEAD + idat(DATA[:-4]) + idat(b"abcd") + END,
    "an empty palette": PALETTE + chunk(b"PLTE", b"") + idat(INDICES) + END,
    "a palette of 3 entries and a third": PALETTE + chunk(b"PLTE", b"abcdefghij") + idat(INDICES) + END,
}
LENIENT = {  # what Pillow refuses although it says nothing of pixels
    "a resolution cut short": HEAD + chunk(b"pHYs", b"abcd") + idat(DATA) + END,
    "an empty profile": HEAD + chunk(b"iCCP", b"") + idat(DATA) + END,
    "a text of many zeros": HEAD + chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(2**21))) + idat(DATA) + END,
}


def verdict(decode: Callable[[bytes], object], data: bytes) -> bool:
    try:
        decode(data)
    except Exception:  # whatever Pillow raises  # noqa: BLE001
        return False
    return True


@each("case", AGREED)
def test_the_verdict_is_that_of_pillow(case: str) -> None:
    data = AGREED[case]
    if verdict(pictures.whole, data):
        assert (_native.decode_image(data) == pictures.whole(data)).all()
        check(data, Recipe())
        return
    whole = Recipe(check="entropy")
    for refuses in (_native.decode_image, _native.check_image, lambda data: check(data, whole)):
        with pytest.raises(ImageError):
            refuses(data)


@each("case", [*STRICTER, *LENIENT])
def test_where_the_verdict_is_another(case: str) -> None:
    data = {**STRICTER, **LENIENT}[case]
    assert verdict(pictures.whole, data) == (case in STRICTER)
    assert verdict(_native.decode_image, data) == verdict(_native.check_image, data) == (case in LENIENT)
    if case in LENIENT:
        assert (_native.decode_image(data) == _native.decode_image(AGREED["as it should be"])).all()


@pytest.mark.parametrize("interlaced", [False, True])
def test_a_png_cut_anywhere_in_its_data_is_refused(interlaced: bool) -> None:
    data = png(9, 7, interlaced=interlaced)
    for size in range(len(data)):
        refused = not verdict(_native.decode_image, data[:size])
        assert refused == (size < len(data) - len(END)), size
        assert refused or verdict(pictures.whole, data[:size]), size


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"mode": "RGBA"}], ids=str)
def test_damage_in_a_webp_has_the_verdict_of_pillow(options: dict) -> None:
    data = webp(24, 18, 3, **options)
    for size in range(len(data)):
        assert not verdict(_native.decode_image, data[:size]), size
    for at in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        shown = verdict(pictures.whole, bytes(damaged))
        assert verdict(_native.decode_image, bytes(damaged)) == shown, at
        if shown:
            assert (_native.decode_image(bytes(damaged)) == pictures.whole(bytes(damaged))).all(), at


def test_a_crop_of_a_png_does_not_see_damage_below_itself() -> None:
    data = bytearray(png(64, 300))
    data[-60] ^= 0x10
    with pytest.raises(ImageError):
        _native.decode_image(bytes(data))
    assert _native.decode_image(bytes(data), (3, 5, 30, 20)).shape == (15, 27, 3)
