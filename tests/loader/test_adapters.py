"""The same batches from NumPy, PyTorch, TensorFlow and JAX."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
import torch

import stoker
from loader.modes import INTEGERS, OUTPUTS
from stoker.errors import ConfigError

CROP = stoker.RandomResizedCrop(24, hflip=0.5)
SETTINGS = {"batch_size": 4, "transform": CROP, "shuffle": True, "seed": 9}


@pytest.mark.parametrize(("mode", "output"), OUTPUTS, ids=str)
def test_all_frameworks_give_the_same_batches(train: stoker.Dataset, mode: Any, output: stoker.Output) -> None:
    train = stoker.open(train.path, mode=mode)
    settings = {
        **SETTINGS,
        "transform": stoker.MultiCrop(CROP, stoker.Resize((7, 11))),
        "output": output,
        "tail": "pad",
    }
    in_tensorflow = stoker.tensorflow.dataset(
        train, elements=("images", "labels", "indices", "seeds", "valid", "position"), **settings
    )
    with (
        stoker.Loader(train, **settings) as plain,
        stoker.torch.DataLoader(train, **settings) as in_torch,
        stoker.jax.batches(train, **settings) as in_jax,
    ):
        assert len(plain) == len(in_torch) == in_tensorflow.cardinality() == in_jax.steps_per_epoch == 5
        for _ in range(2):
            for a, b, c in zip(plain, in_torch, in_tensorflow, strict=True):
                d = next(in_jax)
                for number, (spec, mine) in enumerate(zip(in_tensorflow.element_spec[0], a.images, strict=True)):
                    assert mine.dtype == (output.dtype or INTEGERS[mode])
                    assert spec.shape[1:] == mine.shape[1:]
                    for pixels in (b.images[number].numpy(), c[0][number].numpy(), d["images"][number]):
                        assert (pixels.dtype, pixels.shape) == (mine.dtype, mine.shape)
                        assert pixels.tobytes() == mine.tobytes()
                assert b.position == a.position
                assert c[5].numpy().tolist() == [a.position.epoch, a.position.consumed, SETTINGS["seed"]]
                images, labels = b
                assert images is b.images
                for others in (labels.numpy(), c[1].numpy(), d["labels"]):
                    assert (a.labels == others).all()
                for number, name in enumerate(("indices", "seeds", "valid"), 2):
                    mine = getattr(a, name)
                    for others in (getattr(b, name).numpy(), c[number].numpy()):
                        assert others.tobytes() == mine.tobytes()
                    halves = [mine >> np.uint64(32), mine & np.uint64(2**32 - 1)] if name == "seeds" else [mine]
                    assert (d[name].reshape(-1) == np.stack(halves, 1).reshape(-1)).all()
            assert a.valid.tolist() == [True, True, False, False]


def as_tuple(parts: object) -> tuple:
    """What each of several transforms gives, or the only one."""
    return parts if isinstance(parts, tuple) else (parts,)


@pytest.mark.parametrize("boxes", [stoker.BoxOutput(), stoker.BoxOutput(pad_to=2)], ids=["ragged", "padded"])
@pytest.mark.parametrize("transform", [CROP, stoker.MultiCrop(CROP, stoker.Resize(9)), stoker.ObjectCrops(9)], ids=str)
def test_frameworks_give_the_same_boxes(annotated: stoker.Dataset, boxes: stoker.BoxOutput, transform: object) -> None:
    settings = {**SETTINGS, "boxes": boxes, "transform": transform}
    in_tensorflow = stoker.tensorflow.dataset(annotated, elements=("boxes", "images", "labels"), **settings)
    with (
        stoker.Loader(annotated, **settings) as plain,
        stoker.torch.DataLoader(annotated, **settings) as in_torch,
        stoker.jax.batches(annotated, **settings) as in_jax,
    ):
        assert len(plain) == len(in_torch) == in_tensorflow.cardinality() == in_jax.steps_per_epoch
        for a, b, (boxes_, images, labels) in zip(plain, in_torch, in_tensorflow, strict=True):
            d = next(in_jax)
            assert a.labels.tolist() == b.labels.tolist() == labels.numpy().tolist() == d["labels"].tolist()
            for mine, *others in zip(*map(as_tuple, (a.images, b.images, images, d["images"])), strict=True):
                assert all((np.asarray(other) == mine).all() for other in others)
            for mine, *others in zip(*map(as_tuple, (a.boxes, b.boxes, boxes_, d["boxes"])), strict=True):
                for name in dataclasses.asdict(mine):
                    array = getattr(mine, name)
                    assert (getattr(others[0], name).numpy() == array).all()
                    assert (others[1][name].numpy() == array).all()
                    assert (others[2][name] == array).all()


def test_boxes_need_to_be_asked_for(train: stoker.Dataset) -> None:
    with pytest.raises(ConfigError, match=r"boxes=stoker\.BoxOutput"):
        stoker.tensorflow.dataset(train, elements=("images", "boxes"), **SETTINGS)


def test_boxes_on_devices(annotated: stoker.Dataset) -> None:
    along = jax.sharding.PartitionSpec("data")
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(jax.devices()), "data"), along)
    settings = {**SETTINGS, "tail": "pad", "sharding": sharding}
    with pytest.raises(ConfigError, match="pad_to"):
        stoker.jax.batches(annotated, boxes=stoker.BoxOutput(), **settings)
    with stoker.jax.batches(annotated, boxes=stoker.BoxOutput(pad_to=3), **settings) as batches:
        boxes = next(batches)["boxes"]
    assert isinstance(boxes["corners"], jax.Array)
    assert boxes["corners"].shape == (4, 3, 4)
    assert boxes["labels"].dtype == np.int32


def test_states_pass_between_frameworks(train: stoker.Dataset) -> None:
    with stoker.Loader(train, **SETTINGS) as plain:
        expected = [index for batch in plain for index in batch.indices.tolist()]
    taken = []
    with stoker.torch.DataLoader(train, **SETTINGS) as first:
        taken += next(iter(first)).indices.tolist()
        state = first.state_dict()
    with stoker.jax.batches(train, **{**SETTINGS, "batch_size": 3}) as second:
        second.set_state(state)
        taken += next(second)["indices"].tolist()
        state = second.get_state()
    settings = {**SETTINGS, "batch_size": 5, "elements": ("indices", "position")}
    third = stoker.tensorflow.dataset(train, state=state, **settings)
    for keys, position in third.take(1):
        taken += keys.numpy().tolist()
        order = {name: SETTINGS[name] for name in ("transform", "shuffle", "seed")}
        state = stoker.tensorflow.state_at(position, train, **order)
    with stoker.Loader(train, **SETTINGS) as fourth:
        fourth.load_state_dict(state)
        taken += [index for batch in fourth for index in batch.indices.tolist()]
    assert taken == expected


def test_without_cuda_nothing_is_pinned(train: stoker.Dataset) -> None:
    if torch.cuda.is_available():
        assert next(iter(stoker.torch.DataLoader(train, pin_memory=True, **SETTINGS))).images.is_pinned()
    else:
        with (
            pytest.warns(UserWarning, match="no CUDA"),
            stoker.torch.DataLoader(train, pin_memory=True, **SETTINGS) as loader,
        ):
            assert len(next(iter(loader))) == 4
