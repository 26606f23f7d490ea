"""What the core decodes in modes L, RGBA and I;16 is what Pillow gives, for every kind of file."""

from __future__ import annotations

import struct
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from reference import pictures
from reference.png import KINDS, chunk, png
from stoker import _native
from stoker.errors import ConfigError, ImageError

CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4, "I;16": 1}
WIDTH, HEIGHT = 53, 37
BOX = (7, 5, 40, 31)
Pixels = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")


def pillow(data: bytes, mode: str) -> Pixels | None:
    """What Pillow gives; None where it has no such pixels."""
    try:
        return pictures.whole(data, mode)
    except ValueError:
        return None


def difference(data: bytes, mode: str) -> int | None:
    """The largest difference of the whole image and of a region; None where both refuse."""
    expected = pillow(data, mode)
    if expected is None:
        with pytest.raises(ImageError, match=r"palette.*I;16.*choose mode RGB, L or RGBA"):
            _native.decode_image(data, mode=mode)
        return None
    whole, part = _native.decode_image(data, mode=mode), _native.decode_image(data, BOX, mode=mode)
    assert (whole.dtype, whole.shape) == (expected.dtype, expected.shape)
    left, top, right, bottom = BOX
    pairs = ((whole, expected), (part, expected[top:bottom, left:right]))
    return max(int(np.abs(seen.astype(np.int64) - wanted).max()) for seen, wanted in pairs)


def files() -> dict[str, bytes]:
    encoded = {}
    for color, bits in KINDS:
        for seed, (interlaced, transparent, entries) in enumerate(
            [(False, False, 256), (True, True, 256), (False, True, 3), (True, False, 3)]
        ):
            encoded[f"png {color}/{bits} {seed}"] = png(
                WIDTH, HEIGHT, color, bits, interlaced=interlaced, transparent=transparent, entries=entries, seed=seed
            )
    noise = np.random.default_rng(2).integers(0, 256, (HEIGHT, WIDTH, 4), dtype=np.uint8)
    picture = Image.fromarray(np.dstack([pictures.pixels(WIDTH, HEIGHT, 1), noise[..., 3]]))
    for mode in ("RGB", "L", "CMYK"):
        for progressive in (False, True):
            data = pictures.encode(picture.convert(mode), format="JPEG", progressive=progressive)
            encoded[f"jpeg {mode} progressive={progressive}"] = data
    for mode in ("RGB", "RGBA", "L"):
        for options in ({"quality": 30}, {"quality": 90, "alpha_quality": 20}, {"lossless": True, "exact": True}):
            encoded[f"webp {mode} {options}"] = pictures.encode(picture.convert(mode), format="WEBP", **options)
    lossy = encoded["webp RGBA {'quality': 30}"]
    assert lossy[12:16] == b"VP8X"
    encoded["webp that denies its alpha"] = lossy[:20] + bytes([lossy[20] & ~0x10]) + lossy[21:]
    frame = picture.crop((0, 0, 30, 20))
    for mode in ("RGB", "RGBA"):
        encoded[f"webp animation {mode}"] = pictures.encode(
            picture.convert(mode), format="WEBP", save_all=True, append_images=[frame.resize((WIDTH, HEIGHT))]
        )
    return encoded


@pytest.mark.decodes("png", "webp")
def test_every_kind_of_file_is_decoded_as_pillow_does() -> None:
    table: dict[str, list[int | None]] = {}
    for name, data in files().items():
        for mode in CHANNELS:
            worst = difference(data, mode)
            table.setdefault(f"{name.split()[0]:5}{mode:5}", []).append(worst)
            assert not worst, (name, mode, worst)
    for row, differences in table.items():
        shown = [value for value in differences if value is not None]
        line = f"{row} {len(shown):3} files, difference {max(shown)}, {differences.count(None)} refused by both"
        sys.stdout.write(f"{line}\n")
    assert [differences.count(None) for differences in table.values()] == [0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.decodes("png", "webp")
@given(st.sampled_from([(0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (2, 8), (2, 16)]), st.data())
def test_a_transparent_colour_is_that_of_pillow(kind: tuple[int, int], data: st.DataObject) -> None:
    color, bits = kind
    file = png(40, 40, color, bits, transparent=True, seed=data.draw(st.integers(0, 3)))
    there = pictures.opened(file).getpixel((data.draw(st.integers(0, 39)), data.draw(st.integers(0, 39))))
    values = list(there) if isinstance(there, tuple) else [there]
    if data.draw(st.booleans()):
        values = [data.draw(st.integers(0, 65535)) for _ in values]
    elif bits == 8:
        values = [value + 256 * data.draw(st.integers(0, 255)) for value in values]  # whose low bytes count
    count = 3 if color == 2 else 1
    key = struct.pack(f">{count}H", *values)
    file = file.replace(chunk(b"tRNS", b"\0\1" * count), chunk(b"tRNS", key))
    assert (_native.decode_image(file, mode="RGBA") == pillow(file, "RGBA")).all()


@pytest.mark.decodes("png", "webp")
def test_transparency_that_nobody_can_read_is_refused_where_it_matters() -> None:
    file = png(9, 7, 2, 8, transparent=True).replace(chunk(b"tRNS", b"\0\1" * 3), chunk(b"tRNS", b"\0\1"))
    for mode in ("RGB", "L", "I;16"):
        assert _native.decode_image(file, mode=mode).shape == (7, 9, CHANNELS[mode])
    with pytest.raises(ImageError, match="The PNG cannot be decoded whole: tRNS: invalid"):
        _native.decode_image(file, mode="RGBA")


def test_other_modes_are_refused() -> None:
    with pytest.raises(ConfigError, match="mode is 'CMYK'; it must be 'RGB', 'L', 'RGBA' or 'I;16'"):
        _native.decode_image(png(2, 2), mode="CMYK")
