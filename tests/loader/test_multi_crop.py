"""Several transforms of one decode, boxes beside them, and the seeds of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from loader.shards import boxes, image, write_shards
from reference import pictures, transform
from reference.philox import sample_draw
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

RECORDS, SEED = 21, 99
CROP = stoker.RandomResizedCrop(20, hflip=0.5)
SMALL = stoker.RandomResizedCrop(12, scale=(0.05, 0.4), filter="bicubic")
CENTER = stoker.CenterCrop(16, 18)
TRANSFORMS = stoker.MultiCrop(CROP, CENTER, SMALL, CROP)


def load(annotated: stoker.Dataset, **settings: object) -> stoker.Batch:
    with stoker.Loader(annotated, batch_size=RECORDS, shuffle=True, seed=SEED, **settings) as loader:
        loader.set_epoch(3)
        return next(iter(loader))


def test_each_transform_equals_pillow_with_random_choices_of_its_own(annotated: stoker.Dataset) -> None:
    batch = load(annotated, transform=TRANSFORMS, threads=3)
    assert [images.shape[1] for images in batch.images] == [20, 16, 12, 20]
    for at, index in enumerate(batch.indices.tolist()):
        picture = pictures.rgb(image(index))
        for number, (chosen, images) in enumerate(zip(TRANSFORMS.transforms, batch.images, strict=True)):
            draws = transform.Draws(SEED, 3, index, number)
            assert (images[at] == transform.show(picture, chosen, draws)).all()
    assert (batch.images[0] != batch.images[3]).any()


def test_the_first_transform_is_what_it_is_alone(annotated: stoker.Dataset) -> None:
    alone = load(annotated, transform=CROP)
    assert (load(annotated, transform=TRANSFORMS).images[0] == alone.images).all()
    assert (load(annotated, transform=stoker.MultiCrop(CROP)).images[0] == alone.images).all()


def test_each_transform_has_its_own_boxes(annotated: stoker.Dataset) -> None:
    batch = load(annotated, transform=TRANSFORMS, boxes=stoker.BoxOutput())
    alone = load(annotated, transform=CENTER, boxes=stoker.BoxOutput())
    assert len(batch.boxes) == 4
    assert (batch.boxes[1].corners == alone.boxes.corners).all()
    whole = load(annotated, transform=stoker.Resize(100), boxes=stoker.BoxOutput(pad_to=3)).boxes
    for at, index in enumerate(batch.indices.tolist()):
        assert whole.counts[at] == len(boxes(index))
        assert whole.labels[at, : len(boxes(index))].tolist() == [index + 1] * len(boxes(index))
        expected = np.clip(np.float32(boxes(index)) * 100, 0, 100).reshape(-1, 4)
        np.testing.assert_allclose(whole.corners[at, : len(boxes(index))], expected, atol=1e-3)


def test_a_share_of_a_short_last_step_may_be_empty_in_every_form(annotated: stoker.Dataset) -> None:
    settings = {"batch_size": 20, "transform": TRANSFORMS, "boxes": stoker.BoxOutput(pad_to=2), "world_size": 2}
    batches = []
    for rank in range(2):
        with stoker.Loader(annotated, rank=rank, tail="short", **settings) as loader:
            batches.append(next(iter(loader)))
    assert sum(len(batch) for batch in batches) == RECORDS
    settings = {"transform": TRANSFORMS, "boxes": stoker.BoxOutput(), "tail": "short"}
    with stoker.Loader(annotated, batch_size=20, world_size=2, rank=0, **settings) as loader:
        loader.load_state_dict(loader.state_dict() | {"consumed": RECORDS - 1})
        (batch,) = loader
    assert [images.shape for images in batch.images] == [(0, 20, 20, 3), (0, 16, 16, 3), (0, 12, 12, 3), (0, 20, 20, 3)]
    assert batch.boxes[0].offsets.tolist() == [0]
    assert batch.position == stoker.Position(1, 0)


def test_seeds_belong_to_the_sample_and_the_epoch(annotated: stoker.Dataset) -> None:
    batch = load(annotated, transform=CENTER, threads=2)
    for index, seed in zip(batch.indices.tolist(), batch.seeds.tolist(), strict=True):
        words = sample_draw(SEED, 3, index, 4, 0)
        assert seed == words[0] << 32 | words[1]
    assert len(set(batch.seeds.tolist())) == RECORDS


@pytest.mark.parametrize("transforms", [(), (stoker.ObjectCrops(8),), (stoker.MultiCrop(CROP),), (CROP,) * 65, (7,)])
def test_what_cannot_be_shown_together_is_refused(transforms: tuple) -> None:
    with pytest.raises(ConfigError, match="MultiCrop"):
        stoker.MultiCrop(*transforms)


def test_boxes_need_a_layout_that_has_them(tmp_path: Path) -> None:
    write_shards(tmp_path, 4, 1)
    plain = stoker.open(tmp_path, keys=stoker.RecordKeys("image/encoded", "image/class/label"))
    with pytest.raises(ConfigError, match="has no boxes"):
        stoker.Loader(plain, batch_size=2, transform=CROP, boxes=stoker.BoxOutput())
    with pytest.raises(ConfigError, match="pad_to is 0"):
        stoker.BoxOutput(pad_to=0)
    for share in (2, "half", None):
        with pytest.raises(ConfigError, match=f"min_visible is {share!r}; it must be a number between 0 and 1"):
            stoker.BoxOutput(min_visible=share)  # type: ignore[arg-type]
