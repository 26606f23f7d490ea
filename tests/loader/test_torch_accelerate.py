"""The loader in the hands of Accelerate: left as it is, and its state in the checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device

import stoker
from loader.shards import write_shards
from stoker.errors import ConfigError
from stoker.torch import DataLoader

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 22
SETTINGS = {"batch_size": 4, "transform": stoker.RandomResizedCrop(8, hflip=0.5), "shuffle": True, "seed": 9}


@pytest.fixture
def train(tmp_path: Path) -> stoker.Dataset:
    write_shards(tmp_path, RECORDS, 2)
    return stoker.open(tmp_path)


def test_prepare_leaves_the_loader_as_it_is(train: stoker.Dataset) -> None:
    accelerator = Accelerator(cpu=True)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 3, 32))
    with DataLoader(train, **SETTINGS) as loader, stoker.Loader(train, **SETTINGS) as plain:
        model, optimizer, prepared = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.01), loader)
        assert prepared is loader
        assert accelerator.prepare_data_loader(loader) is loader
        for _ in range(2):
            for batch, wanted in zip(prepared, plain, strict=True):
                images, labels = send_to_device(batch, accelerator.device, non_blocking=True)
                accelerator.backward(torch.nn.functional.cross_entropy(model(images.float() / 255), labels))
                optimizer.step()
                optimizer.zero_grad()
                assert batch.indices.tolist() == wanted.indices.tolist()


def test_the_state_is_part_of_a_checkpoint(train: stoker.Dataset, tmp_path: Path) -> None:
    accelerator = Accelerator(cpu=True)
    with DataLoader(train, **SETTINGS) as loader, stoker.Loader(train, **SETTINGS) as plain:
        accelerator.register_for_checkpointing(loader)
        batches = iter(loader)
        seen = [index for _ in range(3) for index in next(batches).indices.tolist()]
        accelerator.save_state(tmp_path / "kept")
        list(batches)
        accelerator.load_state(tmp_path / "kept")
        seen += [index for batch in loader for index in batch.indices.tolist()]
        assert seen == [index for batch in plain for index in batch.indices.tolist()]


def test_skipping_batches_is_refused(train: stoker.Dataset) -> None:
    with DataLoader(train, **SETTINGS) as loader, pytest.raises(ConfigError, match="load_state_dict"):
        list(Accelerator(cpu=True).skip_first_batches(loader, 2))
