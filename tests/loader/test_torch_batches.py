"""Batches as tensors: every field, on any device, and what trainers look for in a loader."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import stoker
from stoker.errors import ConfigError, RankWarning
from stoker.torch import DataLoader, TorchBatch, torch_batch

SETTINGS = {"batch_size": 4, "transform": stoker.RandomResizedCrop(8, hflip=0.5), "shuffle": True, "seed": 9}


@dataclass(frozen=True, slots=True)
class Corners:
    corners: Any
    count: int


def batch(**changes: Any) -> SimpleNamespace:
    fields = {
        "images": np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3),
        "labels": np.array([3, -1]),
        "indices": np.array([0, 2**63 - 1], np.uint64),
        "valid": np.array([True, False]),
        "seeds": np.array([1, 2**64 - 1], np.uint64),
        "boxes": None,
        "fields": {},
        "position": ("epoch", 1),
        "origin": None,
    }
    return SimpleNamespace(**{**fields, **changes})


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_every_field_shares_its_memory(dtype: str) -> None:
    plain = batch(images=np.ones((2, 3), dtype))
    tensors = torch_batch(plain)
    assert tensors.images.dtype == getattr(torch, dtype)
    assert [tensors.labels.dtype, tensors.indices.dtype, tensors.seeds.dtype] == [torch.int64] * 3
    assert tensors.valid.dtype == torch.bool
    assert tensors.indices.tolist() == [0, 2**63 - 1]
    assert tensors.seeds.tolist() == [1, -1]
    assert tensors.position == ("epoch", 1)
    plain.images[0, 0] = 5
    assert tensors.images[0, 0] == 5
    assert len(tensors) == 2
    assert [id(part) for part in tensors] == [id(tensors.images), id(tensors.labels)]


def test_several_transforms_and_their_boxes_are_tuples() -> None:
    boxes = Corners(np.ones((5, 4), np.float32), 5)
    tensors = torch_batch(batch(images=(np.zeros(1), np.ones(2)), boxes=(boxes, boxes)))
    assert [image.tolist() for image in tensors.images] == [[0], [1, 1]]
    assert isinstance(tensors.boxes[1], Corners)
    assert tensors.boxes[1].corners.shape == (5, 4)
    assert tensors.boxes[1].corners.dtype == torch.float32
    assert tensors.boxes[1].count == 5


@pytest.mark.parametrize("how", [{}, {"non_blocking": True}])
def test_a_batch_moves_as_a_whole(how: dict[str, bool]) -> None:
    tensors = torch_batch(batch(boxes=Corners(np.ones(4), 1))).to("meta", **how)
    assert isinstance(tensors, TorchBatch)
    for tensor in (
        tensors.images, tensors.labels, tensors.indices, tensors.valid, tensors.seeds, tensors.boxes.corners,
    ):  # fmt: skip
        assert tensor.device.type == "meta"
    assert tensors.position == ("epoch", 1)


def test_a_loader_has_what_trainers_look_for(train: stoker.Dataset) -> None:
    with DataLoader(train, **SETTINGS) as loader, DataLoader(train, **{**SETTINGS, "shuffle": False}) as plain:
        assert loader.dataset is train
        assert loader.batch_size == 4
        assert not isinstance(loader.sampler, torch.utils.data.SequentialSampler)
        assert isinstance(plain.sampler, torch.utils.data.SequentialSampler)
        with pytest.raises(ConfigError, match="load_state_dict"):
            list(loader.batch_sampler)
        with pytest.raises(AttributeError, match="without ray"):
            loader.worker_init_fn  # noqa: B018 - what Ray does


def test_a_trainer_that_names_an_epoch_does_not_undo_a_loaded_state(train: stoker.Dataset) -> None:
    with DataLoader(train, **SETTINGS) as loader:
        loader.set_epoch(3)
        next(iter(loader))
        state = loader.state_dict()
        loader.sampler.set_epoch(3)  # begun here: from its start again
        assert loader.state_dict()["consumed"] == 0
        for epoch in (3, 4):
            loader.load_state_dict(state)
            loader.sampler.set_epoch(epoch)
            assert loader.state_dict() == state
        list(loader)
        loader.sampler.set_epoch(6)
        assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (6, 0)
        loader.load_state_dict(state)
        loader.set_epoch(3)  # as the Trainer of transformers says it before an epoch that it goes on with
        assert loader.state_dict() == state
        with pytest.warns(UserWarning, match=r"set_epoch\(7\) drops the loaded state, which is in epoch 3"):
            loader.set_epoch(7)
        loader.set_epoch(8)  # there is none to drop any more
        assert (loader.state_dict()["epoch"], loader.state_dict()["consumed"]) == (8, 0)


def test_rank_and_world_size_come_from_the_launcher(train: stoker.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with DataLoader(train, **SETTINGS) as launched, DataLoader(train, rank=0, world_size=1, **SETTINGS) as given:
        assert (launched.loader.topology.rank, launched.loader.topology.world_size, len(launched)) == (1, 2, 3)
        assert (given.loader.topology.world_size, len(given)) == (1, 5)
    with pytest.raises(ConfigError, match="give both or none"):
        DataLoader(train, rank=0, **SETTINGS)
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.warns(RankWarning), DataLoader(train, **SETTINGS) as launched:
        assert launched.loader.topology.rank == 1


def test_a_state_of_a_batch_that_waits_in_a_queue(train: stoker.Dataset) -> None:
    with DataLoader(train, **SETTINGS) as loader:
        batches = iter(loader)
        used, *ahead = next(batches), next(batches), next(batches)
        assert loader.state_dict()["consumed"] == 12
        loader.load_state_dict(loader.state_dict(used.position))
        assert next(iter(loader)).indices.tolist() == ahead[0].indices.tolist()


def test_a_loader_without_references_is_gone_at_once(train: stoker.Dataset) -> None:
    loader = DataLoader(train, **SETTINGS)
    loader.sampler.set_epoch(1)
    next(iter(loader))
    gone = weakref.ref(loader)
    gc.disable()
    try:
        del loader
        assert gone() is None  # its threads with it, without waiting for the garbage collector
    finally:
        gc.enable()
