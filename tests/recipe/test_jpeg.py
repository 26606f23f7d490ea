"""Properties of JPEG decoding and encoding, against Pillow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from reference import pictures
from reference.jpeg import inside, resized
from reference.strategies import regions
from small_cases import each
from stoker import _native
from stoker.errors import ConfigError, ImageError, ImageTooLargeError

KINDS = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "progressive 4:2:0": {"subsampling": 2, "progressive": True},
    "progressive 4:4:4": {"subsampling": 0, "progressive": True},
    "restart markers": {"subsampling": 2, "restart_marker_blocks": 3},
    "grey": {"mode": "L"},
    "grey progressive": {"mode": "L", "progressive": True},
    "cmyk": {"mode": "CMYK"},
    "rgb": {"keep_rgb": True},
    "quality 30": {"quality": 30},
}
sizes = st.tuples(st.integers(1, 70), st.integers(1, 70))


@given(st.sampled_from(sorted(KINDS)), sizes, st.integers(0, 5), st.data())
def test_any_region_is_that_of_pillow(kind: str, size: tuple[int, int], seed: int, data: st.DataObject) -> None:
    encoded = pictures.jpeg(*size, seed, **KINDS[kind])
    whole = np.asarray(pictures.rgb(encoded))
    assert (_native.decode_image(encoded) == whole).all()
    left, top, right, bottom = data.draw(regions(*size))
    part = _native.decode_image(encoded, (left, top, right, bottom))
    assert (part == whole[top:bottom, left:right]).all()


@each("kind", sorted(KINDS))
def test_the_header_says_what_pillow_says(kind: str) -> None:
    encoded = pictures.jpeg(49, 31, **KINDS[kind])
    info, image = _native.probe_jpeg(encoded), pictures.opened(encoded)
    assert (info.width, info.height) == image.size
    assert info.progressive == ("progressive" in kind)
    assert info.components == len(image.getbands())
    assert (info.restart_interval > 0) == (kind == "restart markers")
    assert _native.check_jpeg(encoded).width == info.width


def test_names_of_colours_and_samplings() -> None:
    def named(**options: object) -> tuple[str, str]:
        info = _native.probe_jpeg(pictures.jpeg(20, 20, **options))
        return info.color, info.subsampling

    assert named(subsampling=0) == ("ycbcr", "4:4:4")
    assert named(subsampling=1) == ("ycbcr", "4:2:2")
    assert named(subsampling=2) == ("ycbcr", "4:2:0")
    assert named(mode="L") == ("grey", "grey")
    assert named(mode="CMYK")[0] == "cmyk"
    assert named(keep_rgb=True) == ("rgb", "4:4:4")


@each("orientation", range(1, 9))
@each("order", [">", "<"])
def test_exif_orientation_is_found_in_either_byte_order(orientation: int, order: str) -> None:
    exif = Image.Exif()
    exif.endian = order
    exif[274] = orientation
    assert _native.probe_jpeg(pictures.jpeg(16, 16, exif=exif.tobytes())).orientation == orientation


@given(sizes, st.sampled_from(["4:4:4", "4:2:2", "4:2:0"]), st.integers(1, 100), st.booleans(), st.integers(0, 255))
def test_encoding_equals_pillows(size: tuple[int, int], subsampling: str, quality: int, grey: bool, noise: int) -> None:
    added = np.random.default_rng(quality).integers(0, noise, (size[1], size[0], 3), endpoint=True, dtype=np.uint8)
    image = Image.fromarray(pictures.pixels(*size) ^ added).convert("L" if grey else "RGB")
    mine = _native.encode_jpeg(np.asarray(image), quality, subsampling)
    theirs = pictures.encode(image, quality=quality, optimize=True, **({} if grey else {"subsampling": subsampling}))
    assert mine == theirs
    info = _native.check_jpeg(mine)
    assert info.subsampling == ("grey" if grey else subsampling)
    assert not info.progressive


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_never_gives_pixels_of_another_size(at: int, flip: int) -> None:
    encoded = bytearray(pictures.jpeg(30, 20, subsampling=2))
    encoded[at % len(encoded)] ^= flip
    try:
        info = _native.probe_jpeg(bytes(encoded))
        pixels = _native.decode_image(bytes(encoded), max_pixels=10**6)
    except ImageError:
        return
    assert pixels.shape == (info.height, info.width, 3)


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_an_error(data: bytes) -> None:
    with pytest.raises(ImageError):
        _native.check_jpeg(data)
    with pytest.raises(ImageError):
        _native.decode_image(b"\xff\xd8" + data)


@given(st.floats(0.05, 0.98))
def test_a_truncated_file_is_an_error(share: float) -> None:
    encoded = pictures.jpeg(60, 45)
    cut = encoded[: int(len(encoded) * share)]
    with pytest.raises(ImageError, match="cut short"):
        _native.check_jpeg(cut)
    with pytest.raises(ImageError):
        _native.decode_image(cut)


def test_a_damaged_run_of_entropy_bytes_is_an_error() -> None:
    encoded = bytearray(pictures.jpeg(120, 90, quality=95))
    middle = len(encoded) // 2
    encoded[middle : middle + 2] = b"\xff\xd3"  # a restart marker where none may be
    with pytest.raises(ImageError):
        _native.decode_image(bytes(encoded))


def test_extraneous_bytes_before_a_marker_are_harmless() -> None:
    encoded = pictures.jpeg(30, 20)
    assert (_native.decode_image(inside(encoded, b"\x00\x11\x22")) == _native.decode_image(encoded)).all()


def test_too_many_pixels_are_refused_before_decoding() -> None:
    with pytest.raises(ImageTooLargeError, match="60000 x 60000"):
        _native.decode_image(resized(pictures.jpeg(30, 20), 60_000, 60_000))
    with pytest.raises(ImageTooLargeError):
        _native.decode_image(pictures.jpeg(30, 20), max_pixels=599)


@pytest.mark.parametrize("box", [(0, 0, 31, 20), (-1, 0, 5, 5), (5, 5, 5, 9), (0, 0, 2**31 - 1, 1), (9, 9, 3, 12)])
def test_a_box_outside_the_image_is_refused(box: tuple[int, int, int, int]) -> None:
    with pytest.raises(ConfigError, match="box"):
        _native.decode_image(pictures.jpeg(30, 20), box)
