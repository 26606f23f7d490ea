"""TensorFlow's resize, bit for bit: against arrays of NumPy, and against TensorFlow itself."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.tf1_resize import resize_tf1
from stoker import _native
from stoker.errors import StokerError
from stoker.recipe import RawEncode, Recipe, StoredSize, convert

SIDES = st.integers(1, 70)


def picture(width: int, height: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@settings(deadline=None, max_examples=200)
@given(SIDES, SIDES, SIDES, SIDES, st.booleans(), st.integers(0, 2**32))
def test_it_is_the_twin(width: int, height: int, wide: int, high: int, align: bool, seed: int) -> None:
    pixels = picture(width, height, seed)
    ours = _native.resize_tf1(pixels, wide, high, align_corners=align)
    assert np.array_equal(ours, resize_tf1(pixels, wide, high, align_corners=align))


@settings(deadline=None, max_examples=150)
@given(SIDES, SIDES, SIDES, SIDES, st.booleans(), st.integers(0, 2**32))
def test_it_is_tensorflow(width: int, height: int, wide: int, high: int, align: bool, seed: int) -> None:
    pixels = picture(width, height, seed)
    theirs = tf.compat.v1.image.resize_bilinear(pixels[None], (high, wide), align_corners=align)
    assert np.array_equal(
        _native.resize_tf1(pixels, wide, high, align_corners=align), theirs[0].numpy().astype(np.uint8)
    )


@pytest.mark.parametrize("align", [True, False])
def test_a_photographs_size(align: bool) -> None:
    pixels = picture(500, 375, 7)
    theirs = (
        tf.compat.v1.image.resize_bilinear(pixels[None], (300, 301), align_corners=align)[0].numpy().astype(np.uint8)
    )
    assert np.array_equal(_native.resize_tf1(pixels, 301, 300, align_corners=align), theirs)


@settings(deadline=None, max_examples=200)
@given(SIDES, SIDES, SIDES, SIDES, st.integers(0, 2**32))
def test_the_nearest_pixel_is_tensorflow_2s(width: int, height: int, wide: int, high: int, seed: int) -> None:
    pixels = picture(width, height, seed)
    recipe = Recipe(StoredSize("exact", wide, high), RawEncode(), "tf2-nearest")
    theirs = tf.image.resize(pixels, (high, wide), method="nearest").numpy()
    assert convert(pixels, recipe).data == theirs.tobytes()


def test_nothing_is_refused_by_name() -> None:
    with pytest.raises(StokerError):
        _native.resize_tf1(picture(3, 3, 0), 0, 5, align_corners=True)
    with pytest.raises(StokerError):
        _native.resize_tf1(np.empty((0, 3, 3), np.uint8), 4, 5, align_corners=True)
