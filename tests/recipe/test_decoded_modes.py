"""What the core decodes and resizes in modes L, RGBA and I;16 is what Pillow gives, for every kind of file."""

from __future__ import annotations

import io
import struct
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from reference import pictures
from reference.png import KINDS, chunk, png
from reference.transform import FILTERS
from stoker import _native
from stoker.errors import ConfigError, ImageError

CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4, "I;16": 1}
WIDTH, HEIGHT = 53, 37
BOX = (7, 5, 40, 31)
Pixels = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")


def pillow(data: bytes, mode: str) -> Pixels | None:
    """What Pillow gives; None where it has no such pixels."""
    with Image.open(io.BytesIO(data)) as image:
        try:
            return pictures.channels_last(pictures.in_mode(image, mode))
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
            encoded[f"jpeg {mode} progressive={progressive}"] = pictures.encode(
                picture.convert(mode), format="JPEG", progressive=progressive
            )
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
    with Image.open(io.BytesIO(file)) as image:
        position = data.draw(st.integers(0, 39)), data.draw(st.integers(0, 39))
        there = image.getpixel(position)
    values = list(there) if isinstance(there, tuple) else [there]
    if data.draw(st.booleans()):
        values = [data.draw(st.integers(0, 65535)) for _ in values]
    elif bits == 8:
        values = [value + 256 * data.draw(st.integers(0, 255)) for value in values]  # whose low bytes count
    count = 3 if color == 2 else 1
    key = struct.pack(f">{count}H", *values)
    file = file.replace(chunk(b"tRNS", b"\0\1" * count), chunk(b"tRNS", key))
    expected = pillow(file, "RGBA")
    assert (_native.decode_image(file, mode="RGBA") == expected).all()


@pytest.mark.decodes("png", "webp")
def test_transparency_that_nobody_can_read_is_refused_where_it_matters() -> None:
    file = png(9, 7, 2, 8, transparent=True).replace(chunk(b"tRNS", b"\0\1" * 3), chunk(b"tRNS", b"\0\1"))
    for mode in ("RGB", "L", "I;16"):
        assert _native.decode_image(file, mode=mode).shape == (7, 9, CHANNELS[mode])
    with pytest.raises(ImageError, match="The PNG cannot be decoded whole: tRNS: invalid"):
        _native.decode_image(file, mode="RGBA")


def some_pixels(width: int, height: int, mode: str, seed: int) -> Pixels:
    """Noise, or all or nothing, so that sums leave the range of numbers."""
    rng = np.random.default_rng(seed)
    dtype, most = (np.uint16, 65535) if mode == "I;16" else (np.uint8, 255)
    shape = (height, width, CHANNELS[mode])
    return (rng.integers(0, 2, shape) * most if seed % 2 else rng.integers(0, most + 1, shape)).astype(dtype)


sides = st.integers(1, 70)


@pytest.mark.parametrize("mode", CHANNELS)
@given(sides, sides, sides, sides, st.sampled_from(sorted(FILTERS)), st.integers(0, 99))
@example(40, 80, 30, 20, "bilinear", 1)  # vertical pass first
@example(50, 30, 50, 10, "lanczos", 1)  # only one pass
@example(50, 30, 10, 30, "box", 0)
@example(33, 21, 33, 21, "bicubic", 1)  # none
@example(1500, 3, 224, 224, "bicubic", 0)
def test_resize_equals_pillow(mode: str, w: int, h: int, width: int, height: int, name: str, seed: int) -> None:
    pixels = some_pixels(w, h, mode, seed)
    image = Image.fromarray(pixels if CHANNELS[mode] > 1 else pixels[..., 0])
    assert image.mode == mode
    expected = np.asarray(image.resize((width, height), FILTERS[name])).reshape(height, width, -1)
    seen = _native.resize(pixels, width, height, name)
    assert seen.dtype == expected.dtype
    assert (seen == expected).all()
    window = (width // 3, height // 4, width, height - height // 5)
    part = _native.resize(pixels, width, height, name, window=window, flip=True)
    assert (part == expected[window[1] : window[3], window[0] :][:, ::-1]).all()


def test_other_modes_and_arrays_are_refused() -> None:
    with pytest.raises(ConfigError, match="mode is 'CMYK'; it must be 'RGB', 'L', 'RGBA' or 'I;16'"):
        _native.decode_image(png(2, 2), mode="CMYK")
    for array in (np.zeros((4, 4, 2), np.uint8), np.zeros((4, 4, 3), np.uint16), np.zeros((4, 4, 1), np.int16)):
        with pytest.raises(ConfigError, match="Only uint8"):
            _native.resize(array, 2, 2, "box")
