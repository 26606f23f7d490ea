"""Properties of the lossless transcode: every pixel stays, and the markers lie where the rule says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import pictures, restart
from reference.jpeg import segment
from stoker import _native
from stoker.errors import ConfigError, ImageError, ImageTooLargeError

KINDS = {
    "4:4:4": {"subsampling": 0},
    "4:2:2": {"subsampling": 1},
    "4:2:0": {"subsampling": 2},
    "progressive": {"subsampling": 2, "progressive": True},
    "optimised": {"subsampling": 0, "optimize": True},
    "markers": {"subsampling": 2, "restart_marker_blocks": 3},
    "grey": {"mode": "L"},
    "rgb": {"keep_rgb": True},
    "quality 20": {"quality": 20},
}
sizes = st.tuples(st.integers(1, 200), st.integers(1, 60))


@given(st.integers(1, 3000), st.integers(1, 40))
def test_the_interval_is_that_of_the_slow_twin(mcus_per_row: int, tiles: int) -> None:
    interval = _native.restart_interval(mcus_per_row, tiles)
    assert interval == restart.interval(mcus_per_row, tiles)
    assert -(-mcus_per_row // interval) <= tiles


@pytest.mark.parametrize(("row", "tiles"), [(0, 5), (5, 0), (65536, 5), (5, 65536)])
def test_senseless_intervals_are_refused(row: int, tiles: int) -> None:
    with pytest.raises(ConfigError, match="both must be"):
        _native.restart_interval(row, tiles)


@given(st.sampled_from(sorted(KINDS)), sizes, st.integers(0, 5))
def test_a_transcode_shows_the_same_pixels(kind: str, size: tuple[int, int], seed: int) -> None:
    source = pictures.jpeg(*size, seed, **KINDS[kind])
    out = _native.transcode_jpeg(source)
    assert out is not None
    assert (np.asarray(pictures.rgb(out)) == np.asarray(pictures.rgb(source))).all()
    assert pictures.opened(out).quantization == pictures.opened(source).quantization
    before, after = _native.probe_jpeg(source), _native.check_jpeg(out)
    assert (after.width, after.height, after.color, after.subsampling) == (*size, before.color, before.subsampling)
    assert not after.progressive


@given(st.sampled_from(sorted(KINDS)), sizes)
def test_markers_lie_where_the_rule_says(kind: str, size: tuple[int, int]) -> None:
    out = _native.transcode_jpeg(pictures.jpeg(*size, **KINDS[kind]))
    assert out is not None
    frame = next(body for marker, body in restart.segments(out) if marker == 0xC0)
    across, down = (8, 8) if frame[5] == 1 else (8 * (frame[7] >> 4), 8 * (frame[7] & 15))
    columns, rows = -(-size[0] // across), -(-size[1] // down)
    interval = restart.declared_interval(out)
    assert interval == restart.interval(columns, _native.LOSSLESS_TILES)
    count = (columns * rows - 1) // interval
    assert restart.markers(out) == list(itertools.islice(itertools.cycle(range(8)), count))


@given(sizes, st.booleans(), st.sampled_from(["4:4:4", "4:2:0"]))
def test_an_encoding_with_markers_shows_the_same_pixels(size: tuple[int, int], grey: bool, subsampling: str) -> None:
    image = pictures.pixels(*size)
    pixels = np.ascontiguousarray(image[:, :, 0]) if grey else image
    without, with_markers = (_native.encode_jpeg(pixels, 90, subsampling, restart=on) for on in (False, True))
    assert (np.asarray(pictures.rgb(without)) == np.asarray(pictures.rgb(with_markers))).all()
    across = 16 if subsampling == "4:2:0" and not grey else 8
    expected = restart.interval(-(-size[0] // across), _native.ENCODED_TILES)
    assert restart.declared_interval(with_markers) == expected
    assert restart.declared_interval(without) == 0


def test_what_says_how_pixels_are_meant_is_copied_and_the_rest_left_out() -> None:
    kept = [
        (0xE0, b"JFIF\0\x01\x02\x01\x00\x48\x00\x48\x00\x00"),
        (0xE1, b"Exif\0\0II*\0\x08\0\0\0\0\0"),
        (0xE2, b"ICC_PROFILE\0\x01\x02" + b"a" * 65519),
        (0xE2, b"ICC_PROFILE\0\x02\x02" + b"b" * 100),
        (0xEE, b"Adobe\0\x64\0\0\0\0\x01"),
    ]
    left_out = [
        (0xE0, b"JFXX\0\x10"),
        (0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"),
        (0xE2, b"FPXR\0"),
        (0xE3, b"Exif\0\0"),
        (0xED, b"Photoshop 3.0\0"),
        (0xEE, b"Ado"),
        (0xFE, b"a comment"),
    ]
    plain = pictures.jpeg(40, 30)
    body = b"".join(segment(*part) for pair in itertools.zip_longest(left_out, kept) for part in pair if part)
    length = int.from_bytes(plain[4:6], "big")
    out = _native.transcode_jpeg(plain[:2] + body + plain[4 + length :])
    assert out is not None
    copied = [(marker, body) for marker, body in restart.segments(out) if marker >= 0xE0]
    assert copied == kept
    assert (np.asarray(pictures.rgb(out)) == np.asarray(pictures.rgb(plain))).all()


def test_other_colours_stay_what_they_are() -> None:
    cmyk = pictures.jpeg(50, 40, mode="CMYK")
    out = _native.transcode_jpeg(cmyk)
    assert out is not None
    before, after = pictures.opened(cmyk), pictures.opened(out)
    assert after.mode == "CMYK"
    assert (np.asarray(before) == np.asarray(after)).all()


@given(st.floats(0.05, 0.98))
def test_a_truncated_file_is_an_error(share: float) -> None:
    encoded = pictures.jpeg(60, 45)
    with pytest.raises(ImageError, match="cut short"):
        _native.transcode_jpeg(encoded[: int(len(encoded) * share)])


@given(st.integers(0, 10_000), st.integers(1, 255), st.booleans())
def test_a_changed_byte_is_an_error_or_shows_what_the_source_shows(at: int, flip: int, progressive: bool) -> None:
    encoded = bytearray(pictures.jpeg(64, 48, progressive=progressive))
    encoded[at % len(encoded)] ^= flip
    source = bytes(encoded)
    try:
        out = _native.transcode_jpeg(source, 10**6)
        pixels = _native.decode_image(source, max_pixels=10**6)
    except ImageError:
        return
    if out is not None:
        assert (_native.decode_image(out) == pixels).all()


@pytest.mark.parametrize("damage", [b"\xff\xd3", b"\xff\xd9", b"\xff\xff\xd0"])
def test_a_damaged_run_of_entropy_bytes_is_an_error(damage: bytes) -> None:
    encoded = bytearray(pictures.jpeg(120, 90, quality=95))
    middle = len(encoded) // 2
    encoded[middle : middle + len(damage)] = damage
    with pytest.raises(ImageError):
        _native.transcode_jpeg(bytes(encoded))


def test_too_many_pixels_are_refused() -> None:
    with pytest.raises(ImageTooLargeError, match="30 x 20"):
        _native.transcode_jpeg(pictures.jpeg(30, 20), max_pixels=599)
