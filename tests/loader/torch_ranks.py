"""What test_torch_distributed.py starts on every rank: python torch_ranks.py TASKS SHARDS OUT [STATE]."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import stoker
from stoker.errors import ConfigError
from stoker.torch import DataLoader, TorchBatch

BATCH = 3
SETTINGS = {"batch_size": BATCH, "transform": stoker.RandomResizedCrop(8), "shuffle": True, "seed": 5, "threads": 1}
TAILS = ("short", "drop", "pad", "wrap")


def seen(batch: TorchBatch) -> list[int]:
    """The samples that a batch counts as new."""
    return batch.indices[batch.valid].tolist()


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 3, 32))


def epochs(dataset: stoker.Dataset) -> dict[str, Any]:
    """An epoch with every tail; all ranks meet in every step, so unequal steps would hang."""
    results = {}
    for tail in TAILS:
        with DataLoader(dataset, tail=tail, **SETTINGS) as loader:
            steps = []
            for batch in loader:
                steps.append(seen(batch))
                total = torch.tensor(len(steps[-1]))
                torch.distributed.all_reduce(total)
            results[tail] = {"steps": steps, "length": len(loader)}
    return results


def gradients(dataset: stoker.Dataset, state: dict[str, Any] | None = None) -> dict[str, Any]:
    """The first two steps, or all that is left, through DistributedDataParallel."""
    model = DistributedDataParallel(network())
    with DataLoader(dataset, **SETTINGS) as loader:
        if state is not None:
            loader.load_state_dict(state)
        keys = []
        for number, batch in enumerate(loader):
            images, labels = batch
            losses = torch.nn.functional.cross_entropy(model(images.float() / 255), labels, reduction="none")
            (losses * batch.valid).sum().backward()
            keys += seen(batch)
            if state is None and number == 1:
                break
        total = sum(float(parameter.grad.abs().sum()) for parameter in model.parameters())
        return {"indices": keys, "state": loader.state_dict(), "gradients": total}


def made_too_early(dataset: stoker.Dataset) -> dict[str, Any]:
    """Loaders that were made before the ranks were known."""
    rank, world_size = int(os.environ.pop("RANK")), int(os.environ.pop("WORLD_SIZE"))
    early = DataLoader(dataset, **SETTINGS)
    explicit = DataLoader(dataset, rank=0, world_size=1, **SETTINGS)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(world_size)}
    torch.distributed.init_process_group("gloo")
    torch.distributed.barrier()  # a rank that ended sooner would break the connections that others still make
    try:
        iter(early)
    except ConfigError as error:
        return {"refusal": str(error), "given": len(list(explicit))}
    return {}


def accelerate(dataset: stoker.Dataset) -> dict[str, Any]:
    """An epoch through Accelerate, with the gradients of all ranks, and one as it evaluates."""
    from accelerate import Accelerator  # noqa: PLC0415 - slow to import, and for one task only

    accelerator = Accelerator(cpu=True)
    net = network()
    loader = DataLoader(dataset, tail="pad", **SETTINGS)
    model, optimizer, loader = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.1), loader)
    steps, gathered = [], []
    for batch in loader:
        images, labels = batch.to(accelerator.device)
        losses = torch.nn.functional.cross_entropy(model(images.float() / 255), labels, reduction="none")
        accelerator.backward((losses * batch.valid).mean())
        optimizer.step()
        optimizer.zero_grad()
        steps.append(seen(batch))
        keys, valid = accelerator.gather((batch.indices, batch.valid))
        gathered += keys[valid].tolist()
    metrics = [key for batch in loader for key in accelerator.gather_for_metrics(batch.indices).tolist()]
    return {"steps": steps, "gathered": gathered, "metrics": metrics, "processes": accelerator.num_processes}


def lightning(dataset: stoker.Dataset) -> dict[str, Any]:
    """Two epochs through Lightning, whose loaders are made in hooks, and what it predicts."""
    import lightning.pytorch as pl  # noqa: PLC0415 - likewise

    class Module(pl.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.seen = network(), []

        def train_dataloader(self) -> DataLoader:
            return DataLoader(dataset, tail="pad", **SETTINGS)

        def training_step(self, batch: TorchBatch, _: int) -> torch.Tensor:
            self.seen.append(seen(batch))
            images, labels = batch
            losses = torch.nn.functional.cross_entropy(self.net(images.float() / 255), labels, reduction="none")
            return (losses * batch.valid).mean()

        def predict_dataloader(self) -> DataLoader:
            return DataLoader(dataset, 4, transform=SETTINGS["transform"], threads=1, tail="short")

        def predict_step(self, batch: TorchBatch, _: int) -> list[int]:
            return batch.indices.tolist()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Module()
    trainer = pl.Trainer(
        accelerator="cpu", devices=int(os.environ["WORLD_SIZE"]), strategy="ddp", max_epochs=2, logger=False,
        enable_checkpointing=False, enable_progress_bar=False,
    )  # fmt: skip
    trainer.fit(module)
    return {"steps": module.seen, "predicted": trainer.predict(module)}


def main(tasks: str, shards: str, out: str, *state: str) -> None:
    rank = os.environ["RANK"]
    dataset, results = stoker.open(shards), {}
    for name in tasks.split(","):
        if name in ("epochs", "gradients") and not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
        results[name] = TASKS[name](dataset, *map(json.loads, state))
    Path(out, f"{rank}.json").write_text(json.dumps(results))
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    # Gloo's threads release their last work late, and PyTorch aborts the process where Python is ending by then.
    time.sleep(0.5)


TASKS = {task.__name__: task for task in (epochs, gradients, made_too_early, accelerate, lightning)}

if __name__ == "__main__":
    main(*sys.argv[1:])
