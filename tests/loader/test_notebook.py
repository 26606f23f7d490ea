"""Datasets, loaders and batches show themselves in a notebook: truly, within bounds, and whatever is in them."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from loader.shards import write_shards, write_wrong_boxes
from page_checks import checked
from reference import pictures
from stoker.errors import ExampleError
from stoker.loader.pictures import corners_of

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 8
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def images(text: str) -> list[Image.Image]:
    encoded = re.findall(r"data:image/jpeg;base64,([A-Za-z0-9+/=]+)", text)
    return [Image.open(io.BytesIO(base64.b64decode(data))) for data in encoded]


def first_batch(dataset: stoker.Dataset, **settings: Any) -> stoker.Batch:
    with stoker.Loader(dataset, batch_size=5, **settings) as loader:
        return next(iter(loader))


def test_pixels_are_shown_as_they_were_before_the_output(annotated: stoker.Dataset) -> None:
    output = stoker.Output("float16", "NCHW", mean=MEAN, std=STD)
    plain, batch = (first_batch(annotated, transform=stoker.CenterCrop(16, 24), output=each) for each in (None, output))
    shown, expected = images(batch._repr_html_()), images(plain._repr_html_())
    assert len(shown) == len(expected) == 5
    for image, other in zip(shown, expected, strict=True):
        assert np.abs(np.asarray(image).astype(int) - np.asarray(other)).mean() < 3


def test_a_batch_says_what_it_is(annotated: stoker.Dataset) -> None:
    batch = first_batch(annotated, transform=stoker.CenterCrop(16, 24), boxes=stoker.BoxOutput())
    assert repr(batch) == "<stoker.Batch of 5: images uint8 (5, 16, 16, 3), with boxes, epoch 0 up to sample 5>"
    page = checked(batch._repr_html_())
    for text in ("label 1", "label 5", "#4", "up to sample 5"):
        assert text in page.text


@pytest.mark.parametrize("form", [stoker.BoxOutput(), stoker.BoxOutput(pad_to=2), stoker.BoxOutput(pad_to=9)])
def test_the_boxes_that_are_drawn_are_those_of_the_sample(annotated: stoker.Dataset, form: stoker.BoxOutput) -> None:
    transform = stoker.Resize(40)
    ragged = first_batch(annotated, transform=transform, boxes=stoker.BoxOutput()).boxes
    batch = first_batch(annotated, transform=transform, boxes=form)
    for row in range(5):
        first, last = ragged.offsets[row : row + 2]
        assert (corners_of(batch.boxes, row) == ragged.corners[first:last][: form.pad_to]).all()
    assert len(corners_of(None, 0)) == 0
    plain = first_batch(annotated, transform=transform)
    for row, (image, other) in enumerate(zip(images(batch._repr_html_()), images(plain._repr_html_()), strict=True)):
        changed = np.abs(np.asarray(image).astype(int) - np.asarray(other)).max(-1) > 30
        assert changed.any() == (row % 4 > 0)


def test_several_transforms_are_shown_side_by_side(annotated: stoker.Dataset) -> None:
    transform = stoker.MultiCrop(stoker.CenterCrop(16, 24), stoker.Resize((20, 30)))
    batch = first_batch(annotated, transform=transform, boxes=stoker.BoxOutput())
    assert len(images(batch._repr_html_())) == 10
    assert "(5, 16, 16, 3) and uint8 (5, 20, 30, 3)" in repr(batch)


def test_the_batches_of_pytorch(annotated: stoker.Dataset) -> None:
    import torch  # noqa: PLC0415

    settings = {"batch_size": 5, "transform": stoker.CenterCrop(16, 24), "boxes": stoker.BoxOutput()}
    output = stoker.Output("float32", "NCHW", mean=MEAN, std=STD)
    with stoker.torch.DataLoader(annotated, output=output, **settings) as loader:
        assert repr(loader).startswith("<stoker.torch.DataLoader of <stoker.Dataset")
        assert "stoker.torch.DataLoader" in loader._repr_html_()
        batch = next(iter(loader))
    assert repr(batch).startswith("<stoker.TorchBatch of 5: images torch.float32 (5, 3, 16, 16), with boxes")
    plain = first_batch(annotated, transform=settings["transform"], boxes=settings["boxes"])
    for shown in (batch, batch.to("cpu")):
        for image, other in zip(images(shown._repr_html_()), images(plain._repr_html_()), strict=True):
            assert np.abs(np.asarray(image).astype(int) - np.asarray(other)).mean() < 3
    batch.images = batch.images.to(torch.bfloat16)
    assert len(images(batch._repr_html_())) == 5


def test_a_batch_with_replaced_fields_breaks_nothing(annotated: stoker.Dataset) -> None:
    batch = first_batch(annotated, transform=stoker.CenterCrop(16, 24))
    assert "does not have an axis of 3 channels" in replace(batch, images=np.zeros((5, 7))[:, None, None])._repr_html_()
    assert "cannot be shown" in replace(batch, images=None)._repr_html_()
    assert len(images(replace(batch, origin=None)._repr_html_())) == 5
    assert "cannot be shown" in replace(batch, images=object())._repr_html_()
    strange = np.full((5, 16, 16, 3), np.nan, np.float32)
    assert len(images(replace(batch, images=strange)._repr_html_())) == 5


def test_a_large_batch_is_shown_in_part(tmp_path: Path) -> None:
    write_shards(tmp_path, 40, 1)
    with stoker.Loader(stoker.open(tmp_path), batch_size=40, transform=stoker.Resize(8)) as loader:
        text = next(iter(loader))._repr_html_()
    assert len(images(text)) == 24
    assert "the first 24; 16 more" in text


def test_a_dataset_shows_some_of_its_images(dataset: Path) -> None:
    page = checked(stoker.open(dataset, split="train")._repr_html_())
    assert "40 samples in 2 shards" in page.text
    assert "5 classes" in page.text
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 8


def test_what_is_damaged_is_shown_as_that(tmp_path: Path) -> None:
    write_shards(tmp_path, 6, 1, bad={2: b"\xff\xd8<script>alert(1)</script>", 4: b"nothing"})
    page = checked(stoker.open(tmp_path)._repr_html_())
    assert page.text.count("damaged:") == 2
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 4
    opened = stoker.open(tmp_path)
    (tmp_path / "train-00000-of-00001").write_bytes(b"")
    assert checked(opened._repr_html_()).text.count("damaged:") == 6


def test_a_sample_shows_its_image_and_not_its_bytes(annotated: stoker.Dataset, tmp_path: Path) -> None:
    sample = annotated[3]
    assert repr(sample).startswith("<stoker.Sample #3 from 'picture-3.JPEG': label 4, ")
    assert len(repr(sample)) < 150
    page = checked(sample._repr_html_())
    assert "3 boxes" in page.text
    assert len([tag for tag, _ in page.tags if tag == "img"]) == 1
    write_shards(tmp_path, 1, 1, bad={0: b"nothing"})
    assert "damaged:" in stoker.open(tmp_path)[0]._repr_html_()


def test_boxes_of_the_wrong_kind_are_reported_and_not_raised(tmp_path: Path) -> None:
    sample = stoker.open(write_wrong_boxes(tmp_path / "shard.tfrecord"))[0]
    with pytest.raises(ExampleError, match=r"sample 0 \(picture-0.JPEG\): 'image/object/bbox/xmin' holds bytes values"):
        _ = sample.boxes
    assert "damaged: sample 0" in checked(sample._repr_html_()).text


def test_a_huge_image_is_not_decoded_for_a_strip(tmp_path: Path) -> None:
    data = pictures.encode(Image.new("L", (8000, 8000)), format="PNG")
    write_shards(tmp_path, 2, 1, bad={0: data})
    assert "8000 x 8000 pixels are too many" in stoker.open(tmp_path)._repr_html_()


def test_a_loader_says_its_settings_and_where_it_is(annotated: stoker.Dataset) -> None:
    transform = stoker.RandomResizedCrop(24, hflip=0.5)
    with stoker.Loader(annotated, batch_size=3, transform=transform, shuffle=True, seed=9, threads=2) as loader:
        assert repr(loader).splitlines()[1:] == [
            "  transform RandomResizedCrop(24, hflip=0.5)",
            "  uint8 NHWC, decode 'exact', threads=2",
            "  3 batches of 3 an epoch, tail 'short', shuffle=True, seed=9",
            "  at epoch 0, 0 samples consumed>",
        ]
        next(iter(loader))
        assert "at epoch 0, 3 samples consumed" in repr(loader)
        checked(loader._repr_html_())
    assert "at epoch 0, 3 samples consumed" in repr(loader)  # also when it is closed
    mixed = stoker.mix([annotated] * 2)
    with stoker.Loader(mixed, batch_size=3, transform=transform, rank=1, world_size=4) as loader:
        assert "stoker.Mix of 2 datasets" in repr(loader)
        assert "rank 1 of 4" in repr(loader)


def test_transforms_show_what_is_not_the_default() -> None:
    assert repr(stoker.RandomResizedCrop(224)) == "RandomResizedCrop(224)"
    jitter = stoker.ColorJitter(hue=0.1)
    transform = stoker.MultiCrop(stoker.Resize((2, 3), color_jitter=jitter), stoker.CenterCrop(8, 9, "bicubic"))
    expected = "MultiCrop(Resize((2, 3), color_jitter=ColorJitter(hue=0.1)), CenterCrop(8, resize=9, filter='bicubic'))"
    assert repr(transform) == expected
    assert repr(stoker.Output("float32", std=STD)) == f"Output('float32', std={STD})"
