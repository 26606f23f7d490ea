"""Pixels stored as they are, objects cut out, pixels taken in: against Pillow."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from reference import pictures
from reference.tf1_resize import resize_tf1
from small_cases import each
from stoker.errors import ImageTooLargeError
from stoker.recipe import JpegEncode, RawEncode, Recipe, StoredSize, convert
from stoker.recipe.geometry import object_corners
from stoker.types import Box

FRACTIONS = st.floats(0, 1, width=32)


def jpeg(width: int, height: int, *, orientation: int = 1, mode: str = "RGB") -> bytes:
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    noise = np.random.default_rng(width * 7 + height).integers(0, 256, shape, np.uint8)
    image = Image.fromarray(noise).resize((width, height))
    return pictures.encode(image, quality=90, exif=pictures.exif(orientation))


def decoded(data: bytes, *, turned: bool = False) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    return (ImageOps.exif_transpose(image) if turned else image).convert("RGB")


def raw(stored: bytes, width: int, height: int) -> np.ndarray:
    return np.frombuffer(stored, np.uint8).reshape(height, width, 3)


@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_raw_pixels_are_the_decoded_image(mode: str) -> None:
    data = jpeg(37, 23, mode=mode)
    image = np.asarray(decoded(data))
    stored = convert(data, Recipe(encode=RawEncode()))
    assert (stored.storing.format, stored.order, stored.width, stored.height) == ("raw", "HWC", 37, 23)
    assert stored.data == image.tobytes()
    planes = convert(data, Recipe(encode=RawEncode("CHW")))
    assert planes.data == image.transpose(2, 0, 1).tobytes()
    assert planes.order == "CHW"


@pytest.mark.parametrize(("width", "height"), [(64, 40), (41, 64), (50, 50), (1, 9)])
def test_a_square_of_pixels(width: int, height: int) -> None:
    data = jpeg(width, height)
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    square = decoded(data).crop((left, top, left + side, top + side))
    stored = convert(data, Recipe(StoredSize("square", 30, 30), RawEncode(), "bilinear"))
    assert np.array_equal(raw(stored.data, 30, 30), np.asarray(square.resize((30, 30), Image.Resampling.BILINEAR)))
    old = convert(data, Recipe(StoredSize("square", 30, 30), RawEncode(), "tf1-align-corners"))
    assert np.array_equal(raw(old.data, 30, 30), resize_tf1(np.asarray(square), 30, 30, align_corners=True))
    assert Recipe(StoredSize("square", 30, 30), RawEncode()).fixed_bytes() == len(stored.data)


def expected_corners(box: Box, width: int, height: int) -> tuple[int, int, int, int]:
    near = 1 / 1024
    left = min(math.floor(box.xmin * width + near), width - 1)
    top = min(math.floor(box.ymin * height + near), height - 1)
    right = max(left + 1, min(width, math.ceil(box.xmax * width - near)))
    return left, top, right, max(top + 1, min(height, math.ceil(box.ymax * height - near)))


@given(st.integers(1, 16_000), st.data())
def test_whole_pixels_survive_the_way_through_float32(width: int, data: st.DataObject) -> None:
    left = data.draw(st.integers(0, width - 1))
    right = data.draw(st.integers(left + 1, width))
    stored = Box(float(np.float32(left / width)), 0.0, float(np.float32(right / width)), 1.0)
    for box in (stored, Box(left / width, 0.0, right / width, 1.0)):
        assert object_corners(box, width, 5) == (left, 0, right, 5)


@settings(deadline=None, max_examples=80)
@given(FRACTIONS, FRACTIONS, FRACTIONS, FRACTIONS, st.integers(1, 40), st.integers(1, 40))
def test_an_object_is_pillows_crop(x1: float, x2: float, y1: float, y2: float, width: int, height: int) -> None:
    box = Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    data = jpeg(width, height)
    part = decoded(data).crop(expected_corners(box, width, height))
    stored = convert(data, Recipe(encode=RawEncode()), box)
    assert np.array_equal(raw(stored.data, stored.width, stored.height), np.asarray(part))
    small = convert(data, Recipe(StoredSize("exact", 16, 12), RawEncode(), "bilinear"), box)
    assert np.array_equal(raw(small.data, 16, 12), np.asarray(part.resize((16, 12), Image.Resampling.BILINEAR)))


@each("orientation", range(1, 9))
@each("mode", ["exact", "square"])
def test_an_object_of_a_turned_image(orientation: int, mode: str) -> None:
    width, height, box = 48, 32, Box(0.25, 0.125, 0.75, 0.5)
    data = jpeg(width, height, orientation=orientation)
    part = decoded(data).crop((12, 4, 36, 16))
    out = pictures.encode(part, format="PNG", exif=pictures.exif(orientation))
    upright = decoded(out, turned=True)
    if mode == "square":
        side = min(upright.size)
        left, top = (upright.width - side) // 2, (upright.height - side) // 2
        upright = upright.crop((left, top, left + side, top + side))
    recipe = Recipe(
        StoredSize("square" if mode == "square" else "exact", 10, 10), RawEncode(), "bilinear", exif="apply"
    )
    stored = convert(data, recipe, box)
    assert np.array_equal(raw(stored.data, 10, 10), np.asarray(upright.resize((10, 10), Image.Resampling.BILINEAR)))
    placed = stored.geometry.place([box])
    if mode == "exact":
        assert placed == [Box(0.0, 0.0, 1.0, 1.0)]
    else:
        assert len(placed) == 1


def test_other_boxes_move_into_the_window_of_a_crop() -> None:
    stored = convert(jpeg(100, 100), Recipe(encode=RawEncode()), Box(0.2, 0.2, 0.6, 0.6))
    placed = stored.geometry.place([Box(0.3, 0.1, 0.5, 0.4), Box(0.7, 0.7, 0.8, 0.8)])
    assert [(box.xmin, box.ymin, box.xmax, box.ymax) for box in placed] == [pytest.approx((0.25, 0.0, 0.75, 0.5))]


def test_an_object_is_stored_as_jpeg_of_quality_100_without_a_resize() -> None:
    stored = convert(jpeg(60, 40), Recipe(), Box(0.0, 0.0, 0.5, 0.5))
    assert (stored.storing.format, stored.width, stored.height) == ("jpeg", 30, 20)
    assert decoded(stored.data).size == (30, 20)


def test_pixels_are_taken_in() -> None:
    pixels = np.asarray(decoded(jpeg(30, 20)))
    assert convert(pixels, Recipe(encode=RawEncode())).data == pixels.tobytes()
    small = convert(pixels, Recipe(StoredSize("short", 8, 8), JpegEncode(95), "bilinear"))
    assert decoded(small.data).size == (12, 8)
    with pytest.raises(ImageTooLargeError):
        convert(pixels, Recipe(encode=RawEncode(), max_pixels=599))
