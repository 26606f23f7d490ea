"""Properties of transforms: every transform of every kind of stored image gives the pixels of Pillow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import stoker
from reference import example, pictures, tfrecord, transform
from stoker import _native
from transforms.cases import any_transform

if TYPE_CHECKING:
    from pathlib import Path

KEYS = {"image_key": "image", "height_key": "height", "width_key": "width", "order_key": "order", "box_prefix": "box/"}
CORNERS = ("xmin", "ymin", "xmax", "ymax")

sides = st.integers(1, 60)
extents = st.tuples(sides, sides)
seeds = st.integers(0, 2**64 - 1)
draws_of = st.builds(transform.Draws, seeds, st.integers(0, 99), st.integers(0, 2**63))
flips = st.sampled_from([0.0, 0.5, 1.0])
filters = st.sampled_from(sorted(transform.FILTERS))
edges = st.one_of(
    st.floats(0, 1, width=32), st.floats(width=32, allow_nan=True), st.sampled_from([-0.5, 0.0, 0.5, 1.0, 1.5])
)
boxes = st.tuples(edges, edges, edges, edges)


def run(
    shard_file: Path,
    features: example.Features,
    chosen: stoker.transforms.Transform,
    *,
    encoding: str,
    draws: transform.Draws,
    **more: int,
) -> np.ndarray:
    """What the engine makes of one record."""
    shard_file.write_bytes(tfrecord.frame(example.write(features)))
    records = _native.RecordSet()
    records.add(str(shard_file), _native.scan_shard(str(shard_file)))
    engine = _native.BatchEngine(
        source=_native.RecordSource(records, _native.RecordKeys(image_encoding=encoding, **KEYS)),
        transforms=[chosen.native()],
        seed=draws.seed,
        max_pixels=2**20,
        batch_size=1,
        threads=1,
        spare_buffers=1,
    )
    objects = np.array([more.get("box", -1)], np.int32)
    engine.submit(np.zeros(1, np.uint64), draws.epoch, objects, np.array([draws.sample], np.uint64))
    finished = engine.next()
    for _, error in finished.failures:
        raise error
    (images,), _, keys, *_ = finished.take()
    engine.close()
    assert keys.tolist() == [draws.sample]
    return images[0]


@given(extents, st.sampled_from(["HWC", "CHW"]), draws_of, st.data())
@pytest.mark.slow
def test_a_raw_image_in_any_transform_equals_pillow(
    shard_file: Path, extent: tuple[int, int], order: str, draws: transform.Draws, data: st.DataObject
) -> None:
    width, height = extent
    pixels = pictures.pixels(width, height, draws.seed % 1000)
    chosen = data.draw(any_transform(width, height))
    stored = pixels if order == "HWC" else pixels.transpose(2, 0, 1)
    features = {
        "image": ("bytes", [stored.tobytes()]),
        "height": ("int64", [height]),
        "width": ("int64", [width]),
        "order": ("bytes", [order.encode()]),
    }
    seen = run(shard_file, features, chosen, encoding="raw", draws=draws)
    assert (seen == transform.show(Image.fromarray(pixels), chosen, draws)).all()


@given(extents, st.lists(boxes, min_size=1, max_size=4), draws_of, st.booleans(), st.data())
@settings(max_examples=60)
def test_an_object_is_cut_out_as_pillow_does(
    shard_file: Path, extent: tuple[int, int], objects: list, draws: transform.Draws, raw: bool, data: st.DataObject
) -> None:
    width, height = extent
    pixels = pictures.pixels(width, height, draws.seed % 1000)
    chosen = stoker.ObjectCrops(data.draw(st.integers(1, 40)), data.draw(flips), data.draw(filters))
    number = data.draw(st.integers(0, len(objects) - 1))
    encoded = pixels.tobytes() if raw else pictures.encode(Image.fromarray(pixels), quality=90)
    features = {
        "image": ("bytes", [encoded]),
        "height": ("int64", [height]),
        "width": ("int64", [width]),
        **{f"box/{side}": ("float", [box[i] for box in objects]) for i, side in enumerate(CORNERS)},
    }
    seen = run(shard_file, features, chosen, encoding="raw" if raw else "file", draws=draws, box=number)
    whole = Image.fromarray(pixels) if raw else pictures.rgb(encoded)
    assert (seen == transform.show(whole, chosen, draws, objects[number])).all()


@given(st.integers(1, 64), st.data(), st.sampled_from(["HWC", "CHW"]), flips)
@settings(max_examples=40)
@pytest.mark.slow
def test_objects_that_fit_are_copied(
    shard_file: Path, size: int, data: st.DataObject, order: str, hflip: float
) -> None:
    side = 64  # a power of two, so that the fractions are exact
    left, top = data.draw(st.integers(0, side - size)), data.draw(st.integers(0, side - size))
    pixels = pictures.pixels(side, side, size)
    stored = pixels if order == "HWC" else pixels.transpose(2, 0, 1)
    corners = (left / side, top / side, (left + size) / side, (top + size) / side)
    features = {
        "image": ("bytes", [stored.tobytes()]),
        "height": ("int64", [side]),
        "width": ("int64", [side]),
        "order": ("bytes", [order.encode()]),
        **{f"box/{name}": ("float", [corner]) for name, corner in zip(CORNERS, corners, strict=True)},
    }
    draws = transform.Draws(3, 0, 9)
    seen = run(shard_file, features, stoker.ObjectCrops(size, hflip), encoding="raw", draws=draws, box=0)
    expected = pixels[top : top + size, left : left + size]
    assert (seen == (expected[:, ::-1] if draws.flip(hflip) else expected)).all()


@given(st.integers(1, 500), st.integers(1, 500), boxes)
def test_the_rectangle_of_an_object_is_that_of_the_slow_twin(width: int, height: int, box: tuple) -> None:
    crop, *_ = stoker.ObjectCrops(8).native().plan(width, height, 0, 0, 0, box)
    assert crop == transform.object_rectangle(width, height, box)


@given(sides, sides, st.integers(1, 40), flips, seeds)
@settings(max_examples=40)
def test_jpeg_corners_are_exact(shard_file: Path, width: int, height: int, size: int, hflip: float, seed: int) -> None:
    data = pictures.jpeg(width, height, seed % 1000)
    draws = transform.Draws(seed, 0, 5)
    chosen = stoker.TopLeft(size, hflip)
    if size <= min(width, height):
        seen = run(shard_file, {"image": ("bytes", [data])}, chosen, encoding="file", draws=draws)
        assert (seen == transform.top_left(pictures.rgb(data), chosen, draws)).all()
        return
    with pytest.raises(stoker.errors.ImageError, match=f"is {width} x {height} .* at least {size} x {size}"):
        run(shard_file, {"image": ("bytes", [data])}, chosen, encoding="file", draws=draws)


int64s = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 70), st.sampled_from([2**31, 2**32, 2**62]))


@given(int64s, int64s, st.integers(0, 400))
@hypothesis.example(1, 1, 4)  # a byte too many for whole pixels
@hypothesis.example(2**32, 2**32, 0)  # a product that is 0 in 64 bits
def test_a_raw_image_is_read_only_if_its_shape_fits(shard_file: Path, height: int, width: int, size: int) -> None:
    features = {"image": ("bytes", [bytes(size)]), "height": ("int64", [height]), "width": ("int64", [width])}
    draws = transform.Draws(0, 0, 0)
    if height > 0 and width > 0 and height * width * 3 == size:
        assert not run(shard_file, features, stoker.Resize(4), encoding="raw", draws=draws).any()
        return
    with pytest.raises(stoker.errors.ExampleError, match=f"{size} bytes of pixels are not {height} x {width} x 3"):
        run(shard_file, features, stoker.Resize(4), encoding="raw", draws=draws)


digits = st.lists(st.one_of(st.just(0), st.integers(0, 1), st.integers(-2, 3)), max_size=12)


@given(st.lists(digits, min_size=1, max_size=5), st.booleans(), st.integers(-3, 1000))
def test_one_hot_labels_are_those_of_the_slow_twin(shard_file: Path, labels: list, packed: bool, base: int) -> None:
    if packed:
        labels = [[digit % 256 for digit in label] for label in labels]
    stored = [("bytes", [bytes(label)]) if packed else ("int64", label) for label in labels]
    shard_file.write_bytes(b"".join(tfrecord.frame(example.write({"label": label})) for label in stored))
    records = _native.RecordSet()
    records.add(str(shard_file), _native.scan_shard(str(shard_file)), "the shard")
    wrong = [i for i, label in enumerate(labels) if set(label) - {0, 1} or label.count(1) > 1]
    if not wrong:
        expected = [label.index(1) + base if 1 in label else -1 for label in labels]
        assert records.labels("label", True, base, 2).tolist() == expected
        return
    with pytest.raises(stoker.errors.ExampleError, match=r"the shard, record .*'label' is not one-hot") as caught:
        records.labels("label", True, base, 2)
    assert caught.value.record == wrong[0]
