"""Batches as pytrees: epoch after epoch, states, and global arrays on several devices."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import stoker
from loader.processes import run_together
from loader.shards import image, write_shards
from reference import example, tfrecord
from stoker.errors import ClosedError, ConfigError, ImageError

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS: dict[str, Any] = {"batch_size": 4, "transform": stoker.RandomResizedCrop(24), "shuffle": True, "seed": 9}


def one_device() -> NamedSharding:
    return NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), PartitionSpec("data"))


def indices_of(batches: Any) -> list[list[int]]:
    return [batch["indices"].tolist() for batch in batches]


def as_pairs(seeds: Any) -> Any:
    return np.stack([seeds >> np.uint64(32), seeds & np.uint64(2**32 - 1)], 1)


def test_batches_are_the_loaders_in_types_that_jax_keeps(train: stoker.Dataset) -> None:
    with stoker.jax.batches(train, tail="pad", epochs=1, **SETTINGS) as batches:
        got = list(batches)
        assert batches.steps_per_epoch == len(got) == 5
    with stoker.Loader(train, tail="pad", **SETTINGS) as loader:
        for batch, plain in zip(got, loader, strict=True):
            assert list(batch) == ["images", "labels", "indices", "valid", "seeds"]
            kept = jax.jit(lambda leaves: leaves)(batch)
            for name, leaf in batch.items():
                expected = as_pairs(plain.seeds) if name == "seeds" else getattr(plain, name)
                assert (leaf == expected).all()
                assert kept[name].dtype == leaf.dtype
                assert (np.asarray(kept[name]) == expected).all()
            assert (batch["labels"].dtype, batch["indices"].dtype, batch["seeds"].dtype) == ("int32", "int32", "uint32")
        assert jax.random.wrap_key_data(batch["seeds"]).shape == (4,)
    assert got[-1]["valid"].tolist() == [True, True, False, False]


def test_epochs_follow_one_another_without_end(train: stoker.Dataset) -> None:
    with stoker.Loader(train, **SETTINGS) as loader:
        epochs = [[batch.indices.tolist() for batch in loader] for _ in range(3)]
    with stoker.jax.batches(train, **SETTINGS) as batches:
        assert iter(batches) is batches
        assert indices_of(itertools.islice(batches, 15)) == [keys for epoch in epochs for keys in epoch]
    with stoker.jax.batches(train, epochs=2, **SETTINGS) as batches:
        assert indices_of(batches) == epochs[0] + epochs[1]
        assert indices_of(batches) == []


@pytest.mark.parametrize("taken", [0, 3, 5, 8])
def test_a_state_goes_on_and_ends_where_the_whole_run_would(train: stoker.Dataset, taken: int) -> None:
    with stoker.jax.batches(train, epochs=2, **SETTINGS) as batches:
        whole = indices_of(batches)
    with stoker.jax.batches(train, epochs=2, **SETTINGS) as batches:
        list(itertools.islice(batches, taken))
        state = json.loads(json.dumps(batches.get_state()))
    with stoker.jax.batches(train, epochs=2, **SETTINGS) as batches:
        next(batches)  # set_state may come at any time
        batches.set_state(state)
        assert indices_of(batches) == whole[taken:]


def test_a_closed_iterator_says_so(train: stoker.Dataset) -> None:
    with stoker.jax.batches(train, **SETTINGS) as batches:
        next(batches)
    with pytest.raises(ClosedError):
        next(batches)


@pytest.mark.parametrize("mode", ["RGB", "I;16"])
def test_on_a_sharding_no_bit_is_lost(train: stoker.Dataset, mode: Any) -> None:
    transform = stoker.MultiCrop(stoker.RandomResizedCrop(24), stoker.CenterCrop(8, 16))
    settings = {**SETTINGS, "transform": transform, "epochs": 1}
    opened = stoker.open(train.path, mode=mode)
    with (
        stoker.jax.batches(opened, sharding=one_device(), **settings) as on_device,
        stoker.jax.batches(opened, tail="pad", **settings) as on_host,
    ):
        for there, here in zip(on_device, on_host, strict=True):
            leaves, expected = jax.tree.leaves(there), jax.tree.leaves(here)
            assert all(isinstance(leaf, jax.Array) for leaf in leaves)
            for leaf, array in zip(leaves, expected, strict=True):
                assert leaf.dtype == array.dtype
                assert (np.asarray(leaf) == array).all()
    assert jax.random.wrap_key_data(there["seeds"]).shape == (4,)


FOUR_DEVICES = """
    import json, os, sys
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    import stoker

    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec("data"))
    train, transform = stoker.open(sys.argv[1]), stoker.RandomResizedCrop(16)
    settings = {"transform": transform, "shuffle": True, "seed": 9, "tail": "pad", "epochs": 1}
    with stoker.jax.batches(train, batch_size=8, sharding=sharding, **settings) as batches:
        shards = [
            [np.asarray(part.data).tolist() for part in batch["indices"].addressable_shards] for batch in batches
        ]
    refused = []
    for size, axes in ((6, ["data"]), (8, [None, "data"]), (8, ["data", None])):
        sharding = NamedSharding(Mesh(np.array(jax.devices()), ("data",)), PartitionSpec(*axes))
        try:
            stoker.jax.batches(train, batch_size=size, sharding=sharding, **settings)
        except stoker.errors.ConfigError as error:
            refused.append(str(error))
    print(json.dumps([shards, refused]))
"""


def test_a_batch_is_split_among_the_devices(train: stoker.Dataset) -> None:
    ((shards, refused),) = run_together(FOUR_DEVICES, [[str(train.path)]], "jax")
    assert [[len(part) for part in parts] for parts in shards] == [[2] * 4] * 3
    with stoker.Loader(train, **{**SETTINGS, "batch_size": 8}, tail="pad") as loader:
        expected = [batch.indices.tolist() for batch in loader]
        assert [[key for part in parts for key in part] for parts in shards] == expected
    assert "batches of 6 on 1 processes do not divide" in refused[0]
    assert ["must be along the first axis alone" in error for error in refused] == [True] * 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sharding": True, "tail": "short"}, "drop_last=True"),
        ({"sharding": True, "world_size": 2, "rank": 0}, "rank=0, world_size=1"),
        ({"epochs": 0}, "epochs"),
        ({"rank": 2, "world_size": 2}, "rank"),
        ({"tail": "drop", "batch_size": 19}, "no batch"),
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_refused(train: stoker.Dataset, settings: dict, message: str) -> None:
    if "sharding" in settings:
        settings = {**settings, "sharding": one_device()}
    with pytest.raises(ConfigError, match=message):
        stoker.jax.batches(train, **{**SETTINGS, **settings})


def test_a_device_is_no_sharding(train: stoker.Dataset) -> None:
    with pytest.raises(ConfigError, match=r"it must be a sharding, such as jax.sharding.SingleDeviceSharding"):
        stoker.jax.batches(train, sharding=jax.devices()[0], **SETTINGS)


def test_labels_that_jax_cannot_hold_are_refused(tmp_path: Path) -> None:
    features = {"image/encoded": ("bytes", [image(0)]), "image/class/label": ("int64", [2**31])}
    (tmp_path / "train-00000-of-00001").write_bytes(tfrecord.frame(example.write(features)))
    settings = {**SETTINGS, "batch_size": 1}
    for sharding in (None, one_device()):
        batches = stoker.jax.batches(stoker.open(tmp_path), sharding=sharding, **settings)
        with batches, pytest.raises(ConfigError, match=r"label 2147483648 does not fit into int32.*jax_enable_x64"):
            next(batches)
    with jax.enable_x64(True), stoker.jax.batches(stoker.open(tmp_path), **settings) as batches:
        assert next(batches)["labels"].tolist() == [2**31]


def test_after_an_error_nothing_is_skipped(tmp_path: Path) -> None:
    write_shards(tmp_path, 6, 1, {2: image(2)[:100]})
    with stoker.jax.batches(stoker.open(tmp_path), batch_size=1, transform=stoker.Resize(8)) as batches:
        seen = [next(batches)["indices"].tolist() for _ in range(2)]
        for _ in range(3):
            with pytest.raises(ImageError):
                next(batches)
        assert batches.get_state()["consumed"] == 2
    assert seen == [[0], [1]]
