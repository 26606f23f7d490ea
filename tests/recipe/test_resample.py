"""Resampling is bit-equal to Pillow for every filter. Sets of kernels are compared in resample_test.cpp."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from reference.strategies import regions
from reference.transform import FILTERS
from stoker import _native
from stoker.errors import ConfigError

sides = st.integers(1, 90)
filters = st.sampled_from(sorted(FILTERS))
CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4, "I;16": 1}


def noise(width: int, height: int, mode: str, seed: int) -> np.ndarray:
    """Noise, or all or nothing, so that sums leave the range of numbers."""
    rng = np.random.default_rng(seed)
    dtype, most = (np.uint16, 65535) if mode == "I;16" else (np.uint8, 255)
    shape = (height, width, CHANNELS[mode])
    return (rng.integers(0, 2, shape) * most if seed % 2 else rng.integers(0, most + 1, shape)).astype(dtype)


@pytest.mark.parametrize("mode", CHANNELS)
@given(sides, sides, sides, sides, filters, st.integers(0, 99))
@example(40, 80, 30, 20, "bilinear", 1)  # vertical pass first
@example(80, 40, 20, 30, "bicubic", 1)
@example(50, 30, 50, 10, "lanczos", 1)  # only one pass
@example(50, 30, 10, 30, "box", 0)
@example(33, 21, 33, 21, "bicubic", 1)  # none
@example(1500, 3, 224, 224, "bicubic", 0)
def test_resize_equals_pillow(mode: str, w: int, h: int, width: int, height: int, name: str, seed: int) -> None:
    pixels = noise(w, h, mode, seed)
    image = Image.fromarray(pixels if CHANNELS[mode] > 1 else pixels[..., 0])
    assert image.mode == mode
    expected = np.asarray(image.resize((width, height), FILTERS[name])).reshape(height, width, -1)
    seen = _native.resize(pixels, width, height, name)
    assert seen.dtype == expected.dtype
    assert (seen == expected).all()
    window = (width // 3, height // 4, width, height - height // 5)
    part = _native.resize(pixels, width, height, name, window=window, flip=True)
    assert (part == expected[window[1] : window[3], window[0] :][:, ::-1]).all()


@given(st.tuples(sides, sides), st.tuples(sides, sides), filters, st.booleans(), st.data())
def test_a_window_equals_the_same_part_of_the_whole(
    source: tuple[int, int], size: tuple[int, int], name: str, flip: bool, data: st.DataObject
) -> None:
    width, height = size
    pixels = noise(*source, "RGB", 6)
    left, top, right, bottom = window = data.draw(regions(width, height))
    whole = np.asarray(Image.fromarray(pixels).resize((width, height), FILTERS[name]))[top:bottom, left:right]
    part = _native.resize(pixels, width, height, name, window=window, flip=flip)
    assert (part == (whole[:, ::-1] if flip else whole)).all()


def test_large_reductions_and_enlargements_equal_pillow() -> None:
    pixels = noise(1500, 1100, "RGB", 4)
    for size in [(7, 5), (224, 224), (1, 1), (1500, 3), (1600, 1200)]:
        for name, resampling in FILTERS.items():
            expected = np.asarray(Image.fromarray(pixels).resize(size, resampling))
            assert (_native.resize(pixels, *size, name) == expected).all(), (size, name)


def test_wrong_arguments_are_refused() -> None:
    pixels = noise(4, 4, "RGB", 0)
    with pytest.raises(ConfigError, match="hamming"):
        _native.resize(pixels, 2, 2, "hamming")
    with pytest.raises(ConfigError, match="every side must be 1"):
        _native.resize(pixels, 0, 2, "box")
    with pytest.raises(ConfigError, match="window"):
        _native.resize(pixels, 2, 2, "box", window=(0, 0, 3, 2))
    with pytest.raises(TypeError):
        _native.resize(pixels[:, :, 0], 2, 2, "box")
    for array in (np.zeros((4, 4, 2), np.uint8), np.zeros((4, 4, 3), np.uint16), np.zeros((4, 4, 1), np.int16)):
        with pytest.raises(ConfigError, match="Only uint8"):
            _native.resize(array, 2, 2, "box")
