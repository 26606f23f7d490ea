"""A small network trained with PyTorch on the CPU, for a few steps: python torch_training.py DATASET."""

from __future__ import annotations

import sys

import torch
from torch import nn

import stoker
import stoker.torch

STEPS = 12


def main(path: str) -> None:
    """Train and print the loss."""
    torch.manual_seed(0)
    train = stoker.open(path, split="train")
    transform = stoker.RandomResizedCrop(64, hflip=0.5)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, len(train.classes)),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    # Under torch.distributed, rank and world size are taken from there.
    with stoker.torch.DataLoader(
        train, batch_size=16, transform=transform, shuffle=True, seed=17, tail="wrap"
    ) as loader:
        step = 0
        while step < STEPS:
            epoch = loader.state_dict()["epoch"]
            for images, labels in loader:  # one epoch; the next `for` is the next one, in another order
                # (B, H, W, 3) to a channels-last view (B, 3, H, W); no pixel is moved.
                inputs = images.permute(0, 3, 1, 2).float().div(255)
                loss = nn.functional.cross_entropy(model(inputs), labels)
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                step += 1
                print(f"step {step:2d}  epoch {epoch}  loss {loss.item():.3f}")
                if step == STEPS:
                    break


if __name__ == "__main__":
    main(sys.argv[1])
