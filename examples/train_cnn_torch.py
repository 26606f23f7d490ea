"""A small network trained with PyTorch, stopped in mid-epoch and resumed: python train_cnn_torch.py DATASET.

Run to the end at once, or stopped and resumed from a file by another process of any number of threads: the weights are
the same, bit for bit.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

import stoker
import stoker.torch

EPOCHS, BATCH = 3, 8
TRANSFORM = stoker.RandomResizedCrop(48, scale=(0.3, 1.0), hflip=0.5, color_jitter=stoker.ColorJitter(0.2, 0.2, 0.2))
OUTPUT = stoker.Output("float32", "NCHW", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


class Training:
    """Everything that a checkpoint holds: the network, its optimizer, and where the loader is."""

    def __init__(self, train: stoker.Dataset, **settings: Any) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, len(train.classes)),
        )  # fmt: skip
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)
        order: dict[str, Any] = {"shuffle": True, "seed": 17, "tail": "wrap"}
        self.loader = stoker.torch.DataLoader(
            train, batch_size=BATCH, transform=TRANSFORM, output=OUTPUT, **order, **settings
        )

    def run(self, steps: int | None = None) -> list[float]:
        """Train so many steps, or up to the end of the last epoch; return the losses."""
        losses: list[float] = []
        while self.loader.state_dict()["epoch"] < EPOCHS:
            for images, labels in self.loader:  # the next epoch, or the rest of the one that a loaded state is in
                loss = nn.functional.cross_entropy(self.model(images), labels)
                self.optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimizer.step()
                losses.append(loss.item())
                if len(losses) == steps:
                    return losses
        return losses

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        parts: dict[str, Any] = {"model": self.model, "optimizer": self.optimizer, "loader": self.loader}
        torch.save({name: part.state_dict() for name, part in parts.items()}, path)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint."""
        saved = torch.load(path)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])


def main(path: str) -> None:
    """Train at once and in two parts, and compare."""
    torch.use_deterministic_algorithms(mode=True)
    train = stoker.open(path, split="train")
    whole = Training(train)
    losses = whole.run()
    epoch = len(losses) // EPOCHS
    means = [sum(losses[first : first + epoch]) / epoch for first in range(0, len(losses), epoch)]
    print(f"{len(losses)} steps, mean loss of each epoch: {', '.join(f'{mean:.3f}' for mean in means)}")

    with tempfile.TemporaryDirectory() as folder:
        first = Training(train)
        stop = len(whole.loader) + len(whole.loader) // 2  # in the middle of the second epoch
        before = first.run(stop)
        first.save(Path(folder, "checkpoint.pt"))
        second = Training(train, threads=1, prefetch=1)
        second.load(Path(folder, "checkpoint.pt"))
    print(f"stopped after {len(before)} steps, at {second.loader.state_dict()}")
    after = second.run()
    assert before + after == losses
    for weight, other in zip(whole.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(weight, other)
    print("resumed: the same losses and the same weights, bit for bit")


if __name__ == "__main__":
    main(sys.argv[1])
