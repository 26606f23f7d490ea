"""The loader in the hands of Lightning: epochs, validation, checkpoints in the middle of an epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning_utilities.core.apply_func import apply_to_collection

import stoker
from stoker.torch import DataLoader, TorchBatch

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 22
SETTINGS = {"batch_size": 4, "transform": stoker.RandomResizedCrop(8, hflip=0.5), "shuffle": True, "seed": 9}
# Lightning warns of its own dependencies, of few workers and of short epochs.
pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}Warning") for kind in ("User", "Future", "Deprecation")]


class Seer(pl.LightningModule):
    """A tiny model that notes which samples each step saw."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 3, 32))
        self.seen: list[tuple[int, list[int]]] = []
        self.validated: list[list[int]] = []

    def _loss(self, batch: TorchBatch) -> torch.Tensor:
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.net(images.float() / 255), labels)

    def training_step(self, batch: TorchBatch, _: int) -> torch.Tensor:
        self.seen.append((self.current_epoch, batch.indices.tolist()))
        loss = self._loss(batch)
        self.log("loss", loss)  # Lightning finds out the batch size by itself
        return loss

    def validation_step(self, batch: TorchBatch, _: int) -> None:
        self.validated.append(batch.indices.tolist())
        self.log("validation_loss", self._loss(batch))

    def predict_step(self, batch: TorchBatch, _: int) -> list[int]:
        return batch.indices.tolist()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def trainer(epochs: int | None = None, **settings: Any) -> pl.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    return pl.Trainer(**{"accelerator": "cpu", "devices": 1, "max_epochs": epochs, **quiet, **settings})


def epochs_of(dataset: stoker.Dataset, count: int) -> list[tuple[int, list[int]]]:
    with stoker.Loader(dataset, **SETTINGS) as loader:
        return [(epoch, batch.indices.tolist()) for epoch in range(count) for batch in loader]


def flat(batches: list[list[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


def test_fit_with_validation(train: stoker.Dataset) -> None:
    model = Seer()
    validation = {"batch_size": 5, "transform": stoker.CenterCrop(8)}
    with DataLoader(train, **SETTINGS) as training, DataLoader(train, **validation) as validating:
        trainer(2, enable_checkpointing=False, num_sanity_val_steps=2).fit(model, training, validating)
    assert model.seen == epochs_of(train, 2)
    # Two batches of the sanity check, then all of each of two validations.
    assert flat(model.validated) == [*range(10), *range(RECORDS), *range(RECORDS)]


def test_a_second_fit_begins_with_the_first_epoch_again(train: stoker.Dataset) -> None:
    model = Seer()
    with DataLoader(train, **SETTINGS) as training:
        for _ in range(2):
            trainer(1, enable_checkpointing=False).fit(model, training)
    assert model.seen == 2 * epochs_of(train, 1)


def test_loaders_that_are_made_anew_go_on_with_the_epoch(train: stoker.Dataset) -> None:
    class Reloading(Seer):
        def train_dataloader(self) -> DataLoader:
            return DataLoader(train, **SETTINGS)

    model = Reloading()
    trainer(3, enable_checkpointing=False, reload_dataloaders_every_n_epochs=1).fit(model)
    assert model.seen == epochs_of(train, 3)


@pytest.mark.parametrize("step", range(1, 13))
def test_a_run_goes_on_after_any_step_with_what_is_left(train: stoker.Dataset, tmp_path: Path, step: int) -> None:
    whole = epochs_of(train, 3)
    kept = ModelCheckpoint(tmp_path / "kept", every_n_train_steps=1, save_top_k=-1, filename="{step}")
    model = Seer()
    with DataLoader(train, **SETTINGS) as training:
        trainer(3, max_steps=step, callbacks=[kept]).fit(model, training)
    assert model.seen == whole[:step]
    resumed = Seer()
    with DataLoader(train, **SETTINGS) as training:
        trainer(3, enable_checkpointing=False).fit(
            resumed, training, ckpt_path=tmp_path / "kept" / f"step={step}.ckpt", weights_only=True
        )
    assert resumed.seen == whole[step:]


def test_a_run_goes_on_after_an_epoch(train: stoker.Dataset, tmp_path: Path) -> None:
    kept = ModelCheckpoint(tmp_path / "kept", save_top_k=-1, filename="{epoch}", save_on_train_epoch_end=True)
    first, second = Seer(), Seer()
    with DataLoader(train, **SETTINGS) as training:
        trainer(1, callbacks=[kept]).fit(first, training)
    with DataLoader(train, **SETTINGS) as training:
        checkpoint = tmp_path / "kept" / "epoch=0.ckpt"
        trainer(3, enable_checkpointing=False).fit(second, training, ckpt_path=checkpoint, weights_only=True)
    assert first.seen + second.seen == epochs_of(train, 3)


def stopped(dataset: stoker.Dataset, first: dict[str, Any], second: dict[str, Any], folder: Path) -> list[list[int]]:
    """The batches of a fit and of one that goes on from a checkpoint taken after it."""
    models = (Seer(), Seer())
    with DataLoader(dataset, **SETTINGS) as training:
        begun = trainer(enable_checkpointing=False, **first)
        begun.fit(models[0], training)
        begun.save_checkpoint(folder / "stopped.ckpt")
    with DataLoader(dataset, **SETTINGS) as training:
        goes_on = trainer(enable_checkpointing=False, **second)
        goes_on.fit(models[1], training, ckpt_path=folder / "stopped.ckpt", weights_only=True)
    return [keys for model in models for _, keys in model.seen]


def test_what_is_left_after_max_steps_comes_first(train: stoker.Dataset, tmp_path: Path) -> None:
    # Lightning takes the epoch that max_steps has ended for over, and goes on with another.
    seen = stopped(train, {"max_steps": 2}, {"max_steps": 6}, tmp_path)
    assert seen == [keys for _, keys in epochs_of(train, 1)]


def test_epochs_that_are_cut_short_are_those_of_a_run_without_a_stop(train: stoker.Dataset, tmp_path: Path) -> None:
    limits = {"limit_train_batches": 2}
    seen = stopped(train, {"epochs": 1, **limits}, {"epochs": 3, **limits}, tmp_path)
    whole = [keys for _, keys in epochs_of(train, 3)]
    assert seen == whole[:2] + whole[6:8] + whole[12:14]


def test_validate_test_and_predict_see_every_sample(train: stoker.Dataset) -> None:
    model = Seer()
    with DataLoader(train, batch_size=5, transform=stoker.CenterCrop(8)) as loader:
        for _ in range(2):
            trainer(1).validate(model, loader, verbose=False)
            assert flat(model.validated) == list(range(RECORDS))
            model.validated.clear()
            assert flat(trainer(1).predict(model, loader)) == list(range(RECORDS))


def test_the_same_images_again_and_again(train: stoker.Dataset) -> None:
    model = Seer()
    with DataLoader(train, **{**SETTINGS, "shuffle": False}) as training:
        trainer(3, enable_checkpointing=False, overfit_batches=2).fit(model, training)
    assert [keys for _, keys in model.seen] == 3 * [[0, 1, 2, 3], [4, 5, 6, 7]]
    with DataLoader(train, **SETTINGS) as training, pytest.raises(ValueError, match="needs to subclass"):
        trainer(3, enable_checkpointing=False, overfit_batches=2).fit(Seer(), training)


def test_two_loaders_at_once(train: stoker.Dataset) -> None:
    class Pair(Seer):
        def training_step(self, batch: dict[str, TorchBatch], _: int) -> torch.Tensor:
            self.validated.append(batch["b"].indices.tolist())
            return super().training_step(batch["a"], _)

    model = Pair()
    with DataLoader(train, **SETTINGS) as first, DataLoader(train, **{**SETTINGS, "batch_size": 11}) as second:
        trainer(2, enable_checkpointing=False).fit(model, {"a": first, "b": second})
    assert model.seen == epochs_of(train, 2)
    assert [len(keys) for keys in model.validated] == [11] * 12


def test_half_precision_casts_images_and_nothing_else() -> None:
    ones = torch.ones(2)
    batch = TorchBatch(ones, ones.long(), ones.long(), ones.bool(), ones.long())
    batch.boxes, batch.position = (ones, object())
    cast = apply_to_collection(batch, torch.Tensor, lambda t: t.bfloat16() if t.is_floating_point() else t)
    assert isinstance(cast, TorchBatch)
    assert cast.images.dtype == torch.bfloat16
    assert cast.labels.dtype == torch.int64
    assert cast.boxes is ones  # pixels have no business in 8 bits of mantissa
    assert cast.position is batch.position
    assert batch.images.dtype == torch.float32
