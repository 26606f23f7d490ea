"""Pixels stored as they are, turned, and objects cut out: against Pillow. And input that must not be trusted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from reference import pictures, transform
from reference.tf1_resize import resize_tf1
from small_cases import each
from stoker.errors import ImageError, ImageTooLargeError
from stoker.recipe import JpegEncode, RawEncode, Recipe, StoredSize, convert
from stoker.recipe.geometry import object_corners
from stoker.types import Box

FILTERS = ("box", "bilinear", "bicubic", "lanczos", "nearest", "tf1-align-corners", "tf1-legacy", "tf2-nearest")
RAW = Recipe(encode=RawEncode())


def array(stored: bytes, width: int, height: int, order: str = "HWC") -> np.ndarray:
    values = np.frombuffer(stored, np.uint8)
    return values.reshape(height, width, 3) if order == "HWC" else values.reshape(3, height, width).transpose(1, 2, 0)


@each("order", ["HWC", "CHW"])
@each(
    ("mode", "options"),
    [
        ("L", {}), ("CMYK", {}), ("RGB", {"progressive": True}), ("RGB", {"format": "BMP"}), ("P", {"format": "PNG"}),
        ("LA", {"format": "PNG"}), ("1", {"format": "TIFF"}),
    ],
)  # fmt: skip
def test_every_kind_of_file_is_stored_as_pillow_decodes_it(mode: str, options: dict, order: str) -> None:
    data = pictures.jpeg(43, 29, mode=mode, **options)
    recipe = Recipe(encode=RawEncode("HWC" if order == "HWC" else "CHW"))
    stored = convert(data, recipe)
    assert (stored.storing.format, stored.order, stored.width, stored.height) == ("raw", order, 43, 29)
    assert np.array_equal(array(stored.data, 43, 29, order), np.asarray(pictures.rgb(data)))
    cut = convert(data, recipe, Box(0.5, 0.25, 0.9, 0.8))
    expected = np.asarray(pictures.rgb(data).crop((21, 7, 39, 24)))
    assert np.array_equal(array(cut.data, 18, 17, order), expected)


@each("orientation", range(1, 9))
@each("kind", ["JPEG", "PNG"])
@each("words", ["apply", "keep"])
def test_planes_of_a_turned_image(kind: str, orientation: int, words: str) -> None:
    data = pictures.encode(Image.fromarray(pictures.pixels(31, 18)), format=kind, exif=pictures.exif(orientation))
    image = pictures.opened(data)
    seen = np.asarray(ImageOps.exif_transpose(image) if words == "apply" else image)
    stored = convert(data, Recipe(encode=RawEncode("CHW"), exif="apply" if words == "apply" else "keep"))
    assert (stored.height, stored.width) == seen.shape[:2]
    assert np.array_equal(array(stored.data, stored.width, stored.height, "CHW"), seen)


@each("orientation", range(1, 9))
@each("kind", ["JPEG", "PNG"])
@each("crop", [None, Box(24 / 96, 16 / 64, 88 / 96, 56 / 64)])
@each("resize", [None, StoredSize("exact", 120, 90), StoredSize("square", 60, 60)])
def test_objects_are_where_boxes_say(kind: str, orientation: int, crop: Box | None, resize: StoredSize | None) -> None:
    marked = np.zeros((64, 96, 3), np.uint8)
    marked[24:40, 40:56] = 255
    data = pictures.encode(Image.fromarray(marked), format=kind, exif=pictures.exif(orientation))
    stored = convert(data, Recipe(resize, RawEncode(), "box", exif="apply"), crop)
    (box,) = stored.geometry.place([Box(40 / 96, 24 / 64, 56 / 96, 40 / 64)])
    rows, columns = np.nonzero(array(stored.data, stored.width, stored.height)[:, :, 1] > 127)
    wide, high = stored.width, stored.height
    edges = [columns.min() / wide, rows.min() / high, (columns.max() + 1) / wide, (rows.max() + 1) / high]
    assert np.allclose(edges, [box.xmin, box.ymin, box.xmax, box.ymax], atol=0.02)
    of = 96 * 64 if crop is None else 64 * 40
    whole, middle = (16 * 16 / of, 16 * 16 / (64 if crop is None else 40) ** 2)
    area = middle if resize is not None and resize.mode == "square" else whole
    assert (box.xmax - box.xmin) * (box.ymax - box.ymin) == pytest.approx(area)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 900), (900, 1), (3, 700)])
def test_extreme_shapes_with_every_filter(name: str, width: int, height: int) -> None:
    data = pictures.jpeg(width, height)
    whole = np.asarray(pictures.rgb(data))
    for size in [(1, 1), (40, 40), (7, 300)]:
        stored = convert(data, Recipe(StoredSize("exact", *size), RawEncode(), name))
        assert (stored.width, stored.height) == size
        if name in transform.FILTERS:
            expected = np.asarray(Image.fromarray(whole).resize(size, transform.FILTERS[name]))
        elif name == "tf2-nearest":
            rows, columns = (((np.arange(out) + 0.5) * side / out).astype(int) for out, side in zip(
                size[::-1], (height, width), strict=True))  # fmt: skip
            expected = whole[rows][:, columns]
        else:
            expected = resize_tf1(whole, *size, align_corners=name == "tf1-align-corners")
        assert np.array_equal(array(stored.data, *size), expected)


odd = st.sampled_from([-0.5, 0.0, 1.0, 1.5, float("inf"), float("-inf"), float("nan")])
edges = st.one_of(st.floats(0, 1), st.floats(), odd)


@given(st.integers(1, 900), st.integers(1, 900), st.tuples(edges, edges, edges, edges))
def test_any_box_gives_pixels_of_transforms(width: int, height: int, box: tuple[float, float, float, float]) -> None:
    corners = object_corners(Box(*box), width, height)
    assert corners == transform.object_rectangle(width, height, box)
    assert 0 <= corners[0] < corners[2] <= width
    assert 0 <= corners[1] < corners[3] <= height


@pytest.mark.parametrize(("width", "height"), [(64, 40), (41, 64), (50, 50), (1, 9)])
def test_a_square_of_pixels(width: int, height: int) -> None:
    data = pictures.jpeg(width, height)
    square = pictures.square(pictures.rgb(data))
    stored = convert(data, Recipe(StoredSize("square", 30, 30), RawEncode(), "bilinear"))
    assert np.array_equal(array(stored.data, 30, 30), np.asarray(square.resize((30, 30), Image.Resampling.BILINEAR)))
    old = convert(data, Recipe(StoredSize("square", 30, 30), RawEncode(), "tf1-align-corners"))
    assert np.array_equal(array(old.data, 30, 30), resize_tf1(np.asarray(square), 30, 30, align_corners=True))
    assert Recipe(StoredSize("square", 30, 30), RawEncode()).fixed_bytes() == len(stored.data)


@given(st.integers(1, 16_000), st.data())
def test_whole_pixels_survive_the_way_through_float32(width: int, data: st.DataObject) -> None:
    left = data.draw(st.integers(0, width - 1))
    right = data.draw(st.integers(left + 1, width))
    stored = Box(float(np.float32(left / width)), 0.0, float(np.float32(right / width)), 1.0)
    for box in (stored, Box(left / width, 0.0, right / width, 1.0)):
        assert object_corners(box, width, 5) == (left, 0, right, 5)


@settings(deadline=None, max_examples=80)
@given(*[st.floats(0, 1, width=32)] * 4, st.integers(1, 40), st.integers(1, 40))
def test_an_object_is_pillows_crop(x1: float, x2: float, y1: float, y2: float, width: int, height: int) -> None:
    box = Box(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
    data = pictures.jpeg(width, height)
    part = pictures.rgb(data).crop(transform.object_rectangle(width, height, (box.xmin, box.ymin, box.xmax, box.ymax)))
    stored = convert(data, Recipe(encode=RawEncode()), box)
    assert np.array_equal(array(stored.data, stored.width, stored.height), np.asarray(part))
    small = convert(data, Recipe(StoredSize("exact", 16, 12), RawEncode(), "bilinear"), box)
    assert np.array_equal(array(small.data, 16, 12), np.asarray(part.resize((16, 12), Image.Resampling.BILINEAR)))


@each("orientation", range(1, 9))
@each("mode", ["exact", "square"])
def test_an_object_of_a_turned_image(orientation: int, mode: str) -> None:
    width, height, box = 48, 32, Box(0.25, 0.125, 0.75, 0.5)
    data = pictures.jpeg(width, height, exif=pictures.exif(orientation))
    part = pictures.rgb(data).crop((12, 4, 36, 16))
    out = pictures.encode(part, format="PNG", exif=pictures.exif(orientation))
    upright = ImageOps.exif_transpose(pictures.rgb(out))
    if mode == "square":
        upright = pictures.square(upright)
    recipe = Recipe(
        StoredSize("square" if mode == "square" else "exact", 10, 10), RawEncode(), "bilinear", exif="apply"
    )
    stored = convert(data, recipe, box)
    assert np.array_equal(array(stored.data, 10, 10), np.asarray(upright.resize((10, 10), Image.Resampling.BILINEAR)))
    placed = stored.geometry.place([box])
    if mode == "exact":
        assert placed == [Box(0.0, 0.0, 1.0, 1.0)]
    else:
        assert len(placed) == 1


def test_other_boxes_move_into_the_window_of_a_crop() -> None:
    stored = convert(pictures.jpeg(100, 100), Recipe(encode=RawEncode()), Box(0.2, 0.2, 0.6, 0.6))
    placed = stored.geometry.place([Box(0.3, 0.1, 0.5, 0.4), Box(0.7, 0.7, 0.8, 0.8)])
    assert [(box.xmin, box.ymin, box.xmax, box.ymax) for box in placed] == [pytest.approx((0.25, 0.0, 0.75, 0.5))]


def test_an_object_is_stored_as_jpeg_of_quality_100_without_a_resize() -> None:
    stored = convert(pictures.jpeg(60, 40), Recipe(), Box(0.0, 0.0, 0.5, 0.5))
    assert (stored.storing.format, stored.width, stored.height) == ("jpeg", 30, 20)
    assert pictures.rgb(stored.data).size == (30, 20)


def test_pixels_are_taken_in() -> None:
    pixels = np.asarray(pictures.rgb(pictures.jpeg(30, 20)))
    assert convert(pixels, Recipe(encode=RawEncode())).data == pixels.tobytes()
    small = convert(pixels, Recipe(StoredSize("short", 8, 8), JpegEncode(95), "bilinear"))
    assert pictures.rgb(small.data).size == (12, 8)
    with pytest.raises(ImageTooLargeError):
        convert(pixels, Recipe(encode=RawEncode(), max_pixels=599))


@each("recipe", [RAW, Recipe(), Recipe(StoredSize("square", 3, 3), RawEncode())])
@each(
    "pixels",
    [
        np.zeros((4, 5, 5), np.uint8), np.zeros(5, np.uint8), np.zeros((4, 5, 3), np.uint16),
        np.zeros((0, 5, 3), np.uint8), np.zeros((0, 5), np.uint8), np.zeros((2, 4, 5, 3), np.uint8),
        np.zeros((4, 5, 3), np.float32),
    ],
)  # fmt: skip
def test_arrays_that_are_not_images_are_refused(pixels: np.ndarray, recipe: Recipe) -> None:
    with pytest.raises(ImageError, match="pixels are uint8"):
        convert(pixels, recipe)


@pytest.mark.parametrize("recipe", [RAW, Recipe(StoredSize("exact", 9, 9), RawEncode(), "tf1-legacy")])
def test_pixels_may_lie_apart_and_be_read_only(recipe: Recipe) -> None:
    pixels = pictures.pixels(20, 12)[::2, ::-1]
    pixels.flags.writeable = False
    assert convert(pixels, recipe) == convert(np.ascontiguousarray(pixels), recipe)
    assert convert(pixels, RAW, Box(0.5, 0.0, 1.0, 0.5)).data == pixels[:3, 10:].tobytes()


@pytest.mark.parametrize("crop", [None, Box(0.0, 0.0, 0.4, 0.1)])
def test_a_file_cut_short_is_refused_though_the_missing_part_is_not_needed(crop: Box | None) -> None:
    data = pictures.jpeg(40, 200)
    recipe = Recipe(StoredSize("square", 8, 8), RawEncode())
    convert(data, recipe, crop)
    with pytest.raises(ImageError):
        convert(data[:-200], recipe, crop)


def test_only_jpegs_have_the_limits_of_jpegs() -> None:
    wide = pictures.encode(Image.new("RGB", (40_000, 1)), format="PNG")
    assert len(convert(wide, Recipe(StoredSize("short", 2, 2), RawEncode())).data) == 80_000 * 2 * 3
    with pytest.raises(ImageError, match="end at 65500"):
        convert(wide, Recipe(StoredSize("short", 2, 2), JpegEncode()))
