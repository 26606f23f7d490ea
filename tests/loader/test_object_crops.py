"""Annotated objects as samples: their numbers, their pixels, and what holds for images holds for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import stoker
from loader.shards import boxes, image, write_shards
from reference import pictures, transform
from stoker.errors import ConfigError, ExampleError

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 21
SEED = 12345
TRANSFORM = stoker.ObjectCrops(20, hflip=0.5)
# In the canonical order: by record, then by box; a record without boxes counts once.
SAMPLES = [(i, box) for i in range(RECORDS) for box in (boxes(i) or [None])]


def test_every_object_of_an_epoch_is_cut_out_as_pillow_does(annotated: stoker.Dataset) -> None:
    with stoker.Loader(annotated, batch_size=7, transform=TRANSFORM, shuffle=True, seed=SEED, threads=3) as loader:
        assert len(loader) == -(-len(SAMPLES) // 7)
        for epoch in range(2):
            seen = []
            for batch in loader:
                for pixels, label, index in zip(batch.images, batch.labels, batch.indices.tolist(), strict=True):
                    number, box = SAMPLES[index]
                    corners = None if box is None else np.float32(box)
                    draws = transform.Draws(SEED, epoch, index)
                    expected = transform.object_crop(pictures.rgb(image(number)), TRANSFORM, draws, corners)
                    assert (pixels == expected).all()
                    assert label == number + 1
                    seen.append(index)
            assert sorted(seen) == list(range(len(SAMPLES)))


def test_the_counts_are_those_of_the_annotation(annotated: stoker.Dataset) -> None:
    assert annotated.object_counts.tolist() == [len(boxes(i)) for i in range(RECORDS)]
    assert annotated.object_counts.dtype == np.uint32


def test_a_state_of_images_is_none_of_objects(annotated: stoker.Dataset) -> None:
    with stoker.Loader(annotated, batch_size=5, transform=stoker.Resize(20)) as images:
        state = images.state_dict()
    with (
        stoker.Loader(annotated, batch_size=5, transform=TRANSFORM) as objects,
        pytest.raises(ConfigError, match="dataset"),
    ):
        objects.load_state_dict(state)


def test_objects_that_went_missing_are_an_error_by_name(annotated: stoker.Dataset) -> None:
    wrong = annotated.object_counts.copy()
    wrong[4] = 2  # it has none
    opened = stoker.open(annotated.path)
    opened._object_counts = wrong
    with stoker.Loader(opened, batch_size=4, transform=TRANSFORM) as loader, pytest.raises(ExampleError) as caught:
        list(loader)
    assert "there is no object 0" in str(caught.value)
    assert caught.value.source == "picture-4.JPEG"


def test_records_without_boxes_have_no_objects(tmp_path: Path) -> None:
    write_shards(tmp_path, 4, 1)
    with stoker.Loader(stoker.open(tmp_path), batch_size=4, transform=TRANSFORM) as loader:
        assert [batch.indices.tolist() for batch in loader] == [[0, 1, 2, 3]]


BOX = {"xmin": 0.1, "ymin": 0.1, "xmax": 0.6, "ymax": 0.9}
OWN = stoker.fields.Boxes(names=["wheel", "door"])
OF_IMAGES = stoker.fields.Boxes()


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize(("field", "other", "whole"), [(OF_IMAGES, 2, 2), (OWN, -1, -1)])
def test_labels_are_those_of_the_boxes_and_without_them_of_the_image(
    tmp_path: Path, field: stoker.fields.Boxes, other: int, whole: int, cached: bool
) -> None:
    records: list[dict[str, Any]] = [
        {"image": image(0), "label": 2, "boxes": [BOX | {"label": 1}, BOX]},
        {"image": image(1), "label": 2, "boxes": []},
        {"image": image(2), "label": 0, "boxes": [BOX | {"label": 0}]},
    ]
    labels = {2: [1, other], 0: [whole], 1: [0]}  # by the number of boxes
    fields = {"image": stoker.fields.Image(), "label": stoker.fields.Label(), "boxes": field}
    stoker.build(records, tmp_path, fields=fields, progress=False, preset="imagenet", label_base=0)
    for dataset in (stoker.open(records, fields=fields), stoker.open(tmp_path)):
        expected = [label for sample in dataset for label in labels[len(sample.boxes)]]
        cache = {"cache": stoker.MemoryCache(2**24, "decoded")} if cached else {}
        with stoker.Loader(dataset, batch_size=4, transform=stoker.ObjectCrops(8), **cache) as loader:
            for _ in range(2):
                assert [batch.labels.tolist() for batch in loader] == [expected]
        mixed = stoker.mix([dataset, dataset[1:]])
        with stoker.Loader(mixed, batch_size=8, transform=stoker.ObjectCrops(8)) as loader:
            (batch,) = loader
        assert [expected[index % 4] for index in batch.indices.tolist()] == batch.labels.tolist()


@pytest.mark.filterwarnings("ignore::stoker.errors.BadSampleWarning")
def test_a_substitute_has_its_own_label() -> None:
    # Every other image is broken, with a box or without, and so are the substitutes.
    fields = {"image": stoker.fields.Image(), "label": stoker.fields.Label(), "boxes": OWN}
    records = [
        {"image": image(i) if i % 2 else image(i)[:200], "label": 5, "boxes": [BOX | {"label": 1}] * (i // 2 % 2)}
        for i in range(12)
    ]
    opened = stoker.open(records, fields=fields)
    labels = [1 if record["boxes"] else -1 for record in records]
    settings: dict[str, Any] = {"transform": stoker.ObjectCrops(8), "on_bad": "substitute", "seed": SEED}
    with stoker.Loader(opened, batch_size=12, **settings) as loader:
        (batch,) = loader
    assert [labels[index] for index in batch.indices.tolist()] == batch.labels.tolist()
    assert {index % 2 for index in batch.indices.tolist()} == {1}


def test_classes_are_balanced_by_those_of_the_boxes(tmp_path: Path) -> None:
    fields = {"image": stoker.fields.Image(), "boxes": OWN}
    records = [{"image": image(0), "boxes": [BOX | {"label": 1}, BOX | {"label": 1}, BOX | {"label": 0}]}]
    stoker.build(records, tmp_path, fields=fields, progress=False, preset="imagenet", label_base=1)
    sampling = stoker.Weighted({"wheel": 3, "door": 1}, 12)
    for dataset, base in ((stoker.open(records, fields=fields), 0), (stoker.open(tmp_path), 1)):
        with stoker.Loader(dataset, 12, transform=stoker.ObjectCrops(8), sampling=sampling) as loader:
            (batch,) = loader
        assert np.bincount(batch.labels - base).tolist() == [9, 3]
        assert loader_classes(batch)[base:] == ["wheel", "door"]


def loader_classes(batch: stoker.Batch) -> list[str]:
    return [each.name for each in batch.origin.classes]
