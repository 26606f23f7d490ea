"""Boxes go where the pixels go: the core against exact fractions, in every transform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import stoker
from reference import boxes as twin
from reference import example, pictures, tfrecord, transform
from small_cases import each
from transforms.cases import EACH, any_transform, of_image

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.transforms import Operation

SIDES = st.integers(8, 60)
EDGE = st.one_of(st.floats(-0.5, 1.5, width=32), st.sampled_from([0.0, 1.0, float("nan"), float("inf")]))
SHARE = st.floats(0, 1, width=32)
SOUND = st.tuples(SHARE, SHARE, SHARE, SHARE).map(
    lambda e: (min(e[0], e[2]), min(e[1], e[3]), max(e[0], e[2]), max(e[1], e[3]))
)
BOXES = st.lists(st.one_of(SOUND, SOUND, st.tuples(EDGE, EDGE, EDGE, EDGE)), max_size=5)
SEEDS = st.integers(0, 2**64 - 1)
LEAST = st.sampled_from([0.0, 0.3, 0.9])


def open_one(shard_file: Path, extent: tuple, boxes: list, labels: list[int] | None) -> stoker.Dataset:
    features = {"image/encoded": ("bytes", [pictures.jpeg(*extent, 1)]), "image/class/label": ("int64", [7])}
    for side, name in enumerate(("xmin", "ymin", "xmax", "ymax")):
        features[f"image/object/bbox/{name}"] = ("float", [box[side] for box in boxes])
    if labels is not None:
        features["image/object/bbox/label"] = ("int64", labels)
    shard_file.write_bytes(tfrecord.frame(example.write(features)))
    return stoker.open(shard_file)


def check_boxes(
    shard_file: Path, extent: tuple, boxes: list, chosen: Any, seed: int, least: float = 0.0, *, named: bool = False
) -> None:
    dataset = open_one(shard_file, extent, boxes, list(range(10, 10 + len(boxes))) if named else None)
    output = stoker.BoxOutput(min_visible=least)
    with stoker.Loader(dataset, batch_size=1, transform=chosen, seed=seed, boxes=output, threads=1) as loader:
        placed = next(iter(loader)).boxes
    geometry = twin.geometry(*extent, chosen, transform.Draws(seed, 0, 0))
    edges = [tuple(float(np.float32(edge)) for edge in box) for box in boxes]
    surely, maybe = (
        {box[4]: box[:4] for box in twin.transform(edges, *extent, geometry, least, slack)} for slack in (1e-9, -3e-9)
    )
    numbers = placed.objects.tolist()
    assert surely.keys() <= set(numbers) <= maybe.keys()
    assert numbers == sorted(numbers)
    for corners, label, number in zip(placed.corners, placed.labels.tolist(), numbers, strict=True):
        np.testing.assert_allclose(corners, maybe[number], atol=1e-3)
        assert label == (number + 10 if named else 7)
    assert placed.offsets.tolist() == [0, len(placed.labels)]
    assert placed.corners.dtype == np.float32


@given(extent=st.tuples(SIDES, SIDES), boxes=BOXES, data=st.data(), seed=SEEDS, least=LEAST, named=st.booleans())
@settings(max_examples=150)
@pytest.mark.slow
def test_boxes_are_where_their_pixels_are(
    shard_file: Path, extent: tuple, boxes: list, data: st.DataObject, seed: int, least: float, *, named: bool
) -> None:
    chosen = data.draw(any_transform(*extent))
    assume(not isinstance(chosen, stoker.ObjectCrops) or not boxes)  # that crops each object: another sample
    check_boxes(shard_file, extent, boxes, chosen, seed, least, named=named)


@each("operation", [case for case in EACH if not isinstance(case, stoker.ObjectCrops)])
def test_boxes_all_over_an_image_show_every_setting(shard_file: Path, operation: Operation) -> None:
    extent, tiles = (50, 31), [(x / 5, y / 4, (x + 1) / 5, (y + 1) / 4) for x in range(5) for y in range(4)]
    for seed in range(3):
        check_boxes(shard_file, extent, tiles, of_image(operation, *extent), seed)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(1, 5))
def test_padded_boxes_are_the_first_ones_of_each_sample(counts: list[int], most: int) -> None:
    total = sum(counts)
    ragged = (
        np.arange(4 * total, dtype=np.float32),
        np.arange(total, dtype=np.int64),
        np.arange(total, dtype=np.int32),
        np.cumsum([0, *counts]),
    )
    padded = stoker.BoxOutput(pad_to=most).form(ragged)
    assert padded.counts.tolist() == counts
    assert padded.corners.shape == (len(counts), most, 4)
    first = 0
    for sample, count in enumerate(counts):
        kept = min(count, most)
        assert padded.labels[sample].tolist() == [*range(first, first + kept), *[-1] * (most - kept)]
        assert padded.objects[sample].tolist() == padded.labels[sample].tolist()
        assert padded.corners[sample].ravel()[: 4 * kept].tolist() == list(range(4 * first, 4 * (first + kept)))
        assert not padded.corners[sample, kept:].any()
        first += count


def test_a_box_that_is_all_there_is_never_lost(shard_file: Path) -> None:
    for width in range(30, 130, 7):
        dataset = open_one(shard_file, (width, 40), [(0.0, 0.0, 1.0, 1.0)], None)
        output = stoker.BoxOutput(min_visible=1.0)
        with stoker.Loader(dataset, batch_size=1, transform=stoker.Resize(224), boxes=output, threads=1) as loader:
            assert next(iter(loader)).boxes.corners.tolist() == [[0, 0, 224, 224]]
