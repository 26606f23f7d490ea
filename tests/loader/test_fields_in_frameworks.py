"""Fields in each framework: the same values as in NumPy, in its own types."""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
import tensorflow as tf
import torch

import stoker
from loader.field_records import FIELDS
from stoker import fields
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.types import Field

RECORDS = 12
SETTINGS: dict[str, Any] = {
    "batch_size": 5,
    "transform": stoker.RandomResizedCrop(9, hflip=0.5),
    "shuffle": True,
    "seed": 11,
}
PADDED: dict[str, Field] = {
    **FIELDS,
    "tags": fields.Labels(pad_to=2),
    "track": fields.Array("float32", (None, 2), 3),
}
del PADDED["path"], PADDED["number"]  # its numbers do not fit into the integers of JAX


def in_numpy(rich: stoker.Dataset, wanted: dict[str, Field]) -> list[stoker.Batch]:
    with stoker.Loader(rich, fields=wanted, **SETTINGS) as loader:
        return list(loader)


def same(actual: Any, expected: Any) -> None:
    """Check values against those of NumPy; int32 may stand for int64."""
    if isinstance(expected, np.ndarray | torch.Tensor):
        assert np.array_equal(np.asarray(actual), np.asarray(expected))
    elif isinstance(expected, fields.Ragged):
        same(actual.values, expected.values)
        same(actual.offsets, expected.offsets)
    elif isinstance(expected, fields.Padded):
        same(actual.values, expected.values)
        same(actual.counts, expected.counts)
    else:
        assert actual == expected


def test_tensors_of_pytorch_share_the_memory_and_text_stays(rich: stoker.Dataset) -> None:
    expected = in_numpy(rich, FIELDS)
    with stoker.torch.DataLoader(rich, fields=FIELDS, **SETTINGS) as loader:
        for batch, plain in zip(loader, expected, strict=True):
            assert list(batch.fields) == list(FIELDS)
            for name, column in batch.fields.items():
                same(column, plain.fields[name])
            assert batch.fields["parts"].dtype == torch.uint16
            assert batch.fields["tags"].values.dtype == torch.int64
            assert batch.fields["flags"].dtype == torch.bool
            moved = batch.to("meta")
            assert moved.fields["mask"].device.type == moved.fields["tags"].offsets.device.type == "meta"
            assert moved.fields["caption"] == batch.fields["caption"]
    with stoker.torch.DataLoader(rich, **SETTINGS) as loader:
        assert next(iter(loader)).fields == {}


def test_items_of_a_map_style_dataset_have_the_fields_of_batches(rich: stoker.Dataset) -> None:
    wanted = {**FIELDS, "tags": fields.Labels(pad_to=2)}
    settings: Any = {"transform": SETTINGS["transform"], "seed": 11, "fields": wanted}
    with stoker.torch.DataLoader(rich, len(rich), **settings) as loader:
        (batch,) = loader
    mapped = stoker.torch.MapDataset(rich, **settings)
    for number in (7, 0, 11):
        image, label, values = mapped[number]
        assert torch.equal(image, batch.images[number])
        assert (label, list(values)) == (number, list(wanted))
        for name, whole in batch.fields.items():
            if isinstance(whole, list):
                expected = whole[number]
            elif isinstance(whole, fields.Ragged):
                expected = whole.values[whole.offsets[number] : whole.offsets[number + 1]]
            else:
                expected = (whole.values if isinstance(whole, fields.Padded) else whole)[number]
            same(values[name], expected)
    fixed = {name: kind for name, kind in wanted.items() if name not in ("track", "path", "meta")}
    mapped = stoker.torch.MapDataset(rich, **settings | {"fields": fixed})
    images, _, collated = next(iter(torch.utils.data.DataLoader(mapped, len(rich))))
    assert torch.equal(images, batch.images)
    for name, column in collated.items():
        whole = batch.fields[name].values if name == "tags" else batch.fields[name]
        same(column, whole)
        assert isinstance(column, list) or column.dtype == whole.dtype
    several = stoker.MultiCrop(*[stoker.RandomResizedCrop(side) for side in (8, 6)])
    (first, second), _, values = stoker.torch.MapDataset(rich, several, fields={"mask": fields.Mask()})[3]
    assert [mask.shape for mask in values["mask"]] == [first.shape[:2], second.shape[:2]]


def test_a_function_of_your_own_leaves_fields_as_they_are(tmp_path: Path) -> None:
    mask = np.arange(12, dtype=np.uint8).reshape(3, 4)
    record = {"image": np.zeros((3, 4, 3), np.uint8), "caption": "four", "weight": 0.5, "mask": mask, "tags": [1, 2]}
    kinds = {"image": fields.Image(), "caption": fields.Text(), "weight": fields.Float(), "mask": fields.Mask()}
    stoker.build([record], tmp_path, fields={**kinds, "tags": fields.Labels()}, progress=False)
    chosen = {
        "caption": fields.Text(),
        "weight": fields.Float(),
        "mask": fields.Mask(),
        "tags": fields.Labels(pad_to=3),
    }
    dataset = stoker.open(tmp_path)
    image, label, values = stoker.torch.MapDataset(dataset, lambda image: image.size, fields=chosen)[0]
    assert (image, label, values["caption"], values["weight"].dtype) == ((4, 3), -1, "four", torch.float32)
    assert (values["tags"].tolist(), values["mask"].tolist()) == ([1, 2, -1], mask.tolist())
    with pytest.raises(ConfigError, match="has no field 'none'; it has 'caption', 'weight', 'mask', 'tags'"):
        stoker.torch.MapDataset(dataset, stoker.CenterCrop(2), fields=["none"])


def test_a_pickled_loader_has_its_fields(rich: stoker.Dataset) -> None:
    with stoker.torch.DataLoader(rich, fields=PADDED, **SETTINGS) as loader:
        other = pickle.loads(pickle.dumps(loader))
        with other:
            for batch, plain in zip(other, loader, strict=True):
                assert batch.fields["caption"] == plain.fields["caption"]
                assert torch.equal(batch.fields["mask"], plain.fields["mask"])


def test_tensorflow_knows_every_field_before_the_first_batch(rich: stoker.Dataset) -> None:
    wanted = {**FIELDS, "tags": fields.Labels(pad_to=2)}
    elements = stoker.tensorflow.dataset(rich, fields=wanted, drop_last=True, **SETTINGS)
    images, labels, spec = elements.element_spec
    assert images.shape == (5, 9, 9, 3)
    assert labels.shape == (5,)
    assert spec["caption"] == tf.TensorSpec((5,), tf.string, "caption")
    assert (spec["meta"].dtype, spec["blob"].dtype) == (tf.string, tf.string)
    assert spec["mask"] == tf.TensorSpec((5, 9, 9), tf.uint8, "mask")
    assert spec["parts"] == tf.TensorSpec((5, 9, 9), tf.uint16, "parts")
    assert spec["right"].shape == (5, 9, 9, 3)
    assert spec["vector"].shape == (5, 2, 3)
    assert spec["track"] == tf.RaggedTensorSpec((5, None, 2), tf.float32, 1, tf.int64)
    assert spec["tags"]["values"].shape == (5, 2)
    for name in ("number", "scalar", "flags"):
        assert spec[name].shape.is_fully_defined()
    for (_, _, values), plain in zip(elements, in_numpy(rich, wanted), strict=False):
        assert [text.decode() for text in values["caption"].numpy()] == plain.fields["caption"]
        assert values["blob"].numpy().tolist() == plain.fields["blob"]
        assert [len(text) > 0 for text in values["meta"].numpy()] == [True] * 5
        for name in ("mask", "parts", "right", "vector", "depth", "flags", "number", "scalar", "weight"):
            same(values[name].numpy(), plain.fields[name])
        same(values["track"].values.numpy(), plain.fields["track"].values)
        same(values["track"].row_splits.numpy(), plain.fields["track"].offsets)
        same(values["path"].values.numpy(), plain.fields["path"].values)
        same(values["tags"]["counts"].numpy(), plain.fields["tags"].counts)


def test_elements_of_tensorflow_hold_what_is_named(rich: stoker.Dataset) -> None:
    settings = {**SETTINGS, "transform": stoker.MultiCrop(stoker.Resize(4), stoker.Resize(5))}
    pairs = stoker.tensorflow.dataset(rich, fields={"mask": fields.Mask()}, elements=("fields", "labels"), **settings)
    first, _ = pairs.element_spec
    assert [masks.shape for masks in first["mask"]] == [(None, 4, 4), (None, 5, 5)]
    for values, labels in pairs:
        assert [len(masks) for masks in values["mask"]] == [len(labels)] * 2
    assert len(stoker.tensorflow.dataset(rich, **SETTINGS).element_spec) == 2
    for elements in (("caption",), (), "images", 1, [["images"]]):
        message = re.escape(f"elements is {elements!r}; it must name one or more of images, labels")
        with pytest.raises(ConfigError, match=message):
            stoker.tensorflow.dataset(rich, elements=elements, **SETTINGS)


def test_jax_has_numbers_as_arrays_and_text_as_it_is(rich: stoker.Dataset) -> None:
    with stoker.jax.batches(rich, fields=PADDED, epochs=1, **SETTINGS) as batches:
        for leaves, plain in zip(batches, in_numpy(rich, PADDED), strict=True):
            values = leaves["fields"]
            assert values["caption"] == plain.fields["caption"]
            assert values["meta"] == plain.fields["meta"]
            assert values["other"].dtype == np.int32
            same(values["mask"], plain.fields["mask"])
            same(values["tags"]["values"], plain.fields["tags"].values)
            same(values["tags"]["counts"], plain.fields["tags"].counts)
            same(values["track"]["values"], plain.fields["track"].values)


def test_jax_places_numbers_and_needs_one_shape(rich: stoker.Dataset) -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    wanted = {name: PADDED[name] for name in ("caption", "tags", "mask", "vector")}
    with stoker.jax.batches(rich, fields=wanted, epochs=1, sharding=sharding, **SETTINGS) as batches:
        values = next(batches)["fields"]
    assert isinstance(values["caption"], list)
    for array in (values["mask"], values["vector"], values["tags"]["values"]):
        assert isinstance(array, jax.Array)
        assert array.sharding == sharding
    with (
        stoker.jax.batches(rich, fields={"number": fields.Int()}, **SETTINGS) as batches,
        pytest.raises(ConfigError, match=r"number of the field 'number' -?4[0-9]+ does not fit into int32"),
    ):
        next(batches)
    with pytest.raises(ConfigError, match="the field 'tags' does not give; give it with pad_to"):
        stoker.jax.batches(rich, fields={"tags": fields.Labels()}, sharding=sharding, **SETTINGS)
