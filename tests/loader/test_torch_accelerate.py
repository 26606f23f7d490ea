"""The loader in the hands of Accelerate: its state in checkpoints, accumulation, skipped batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from accelerate import Accelerator
from accelerate.data_loader import BatchSamplerShard
from accelerate.utils import send_to_device

import stoker
from stoker.errors import ConfigError
from stoker.order import Position
from stoker.torch import DataLoader

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 22
SETTINGS = {"batch_size": 4, "transform": stoker.RandomResizedCrop(8, hflip=0.5), "shuffle": True, "seed": 9}


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


def test_the_last_batches_of_an_epoch_reach_a_step(train: stoker.Dataset) -> None:
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    model = accelerator.prepare(torch.nn.Linear(1, 1))
    with DataLoader(train, **SETTINGS) as loader, DataLoader(train, **SETTINGS) as validating:
        steps = []
        for _ in range(2):
            for batch in accelerator.prepare(loader):
                with accelerator.accumulate(model):
                    steps.append(accelerator.sync_gradients)
                for held_out in validating:
                    last = held_out.indices.numel() < 4
                    assert accelerator.gradient_state.end_of_dataloader == last
                assert accelerator.gradient_state.end_of_dataloader == (len(batch) < 4)
        assert steps == 2 * [False, False, False, True, False, True]  # groups of four, and what is left
        next(iter(loader))  # left early
        assert not accelerator.gradient_state.in_dataloader


def test_batches_are_skipped(train: stoker.Dataset) -> None:
    accelerator = Accelerator(cpu=True)
    with DataLoader(train, **SETTINGS) as loader, stoker.Loader(train, **SETTINGS) as plain:
        epochs = [[batch.indices.tolist() for batch in plain] for _ in range(3)]
        for epoch in (0, 2):
            loader.set_epoch(epoch)
            skipped = accelerator.skip_first_batches(loader, 2)
            assert len(skipped) == 4
            assert [batch.indices.tolist() for batch in skipped] == epochs[epoch][2:]
        loader.set_epoch(0)
        for epoch in (0, 1):  # one that was left early is over
            assert next(iter(accelerator.skip_first_batches(loader, 4))).indices.tolist() == epochs[epoch][4]


def test_a_loaded_state_and_skipping_do_not_add_up(train: stoker.Dataset) -> None:
    accelerator = Accelerator(cpu=True)
    with DataLoader(train, **SETTINGS) as loader, stoker.Loader(train, **SETTINGS) as plain:
        batches = [batch.indices.tolist() for batch in plain]
        at = loader.state_dict(Position(0, 8))
        loader.load_state_dict(at)
        assert [batch.indices.tolist() for batch in accelerator.skip_first_batches(loader, 2)] == batches[2:]
        loader.load_state_dict(at)
        with pytest.raises(ConfigError, match="the loaded state has consumed 8"):
            next(iter(accelerator.skip_first_batches(loader, 3)))


def test_batches_are_not_split(train: stoker.Dataset) -> None:
    with DataLoader(train, **SETTINGS) as loader:
        split = BatchSamplerShard(loader.batch_sampler, 2, 0, even_batches=False)
        half = torch.utils.data.DataLoader(loader.dataset, batch_sampler=split, collate_fn=loader.collate_fn)
        with pytest.raises(ConfigError, match="nothing can split it"):
            list(half)
