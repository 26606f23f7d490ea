"""A ResNet trained by two processes, stopped, and resumed by one: python train_resnet_torch_ddp.py DATASET.

Each process has a loader of its own, which gives it its share of every step. As it stands the program calls torchrun
for two processes, which run `train` and stop in mid-epoch, and then goes on from their checkpoint alone. A checkpoint
fits any number of processes, because a position is a number of samples. The network is normalised in groups of
channels, not over the batch, so how a batch is divided among processes changes nothing but rounding.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

import stoker
import stoker.torch

EPOCHS, BATCH = 6, 12  # images in a step of all processes together
TRANSFORM = stoker.RandomResizedCrop(32, scale=(0.5, 1.0), hflip=0.5)
OUTPUT = stoker.Output("float32", "NCHW", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))


class Block(nn.Module):
    """Two convolutions and a way round them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False), nn.GroupNorm(4, outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.GroupNorm(4, outputs),
        )  # fmt: skip
        self.around: nn.Module = nn.Identity()
        if (inputs, stride) != (outputs, 1):
            self.around = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the feature maps."""
        return torch.relu(self.path(images) + self.around(images))


def resnet18(classes: int, width: int = 8) -> nn.Module:
    """Return ResNet-18 with `width` channels in its first stage; the published one has 64."""
    stages = [(width, width, 1), (width, 2 * width, 2), (2 * width, 4 * width, 2), (4 * width, 8 * width, 2)]
    blocks = [block for first, last, stride in stages for block in (Block(first, last, stride), Block(last, last, 1))]
    stem = [nn.Conv2d(3, width, 3, stride=2, padding=1, bias=False), nn.GroupNorm(4, width), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, classes))


class Training:
    """One process's part: the network and its optimizer, the loader, and what was seen of each epoch."""

    def __init__(self, path: str) -> None:
        torch.manual_seed(0)
        train = stoker.open(path, split="train")
        batch_size = BATCH // dist.get_world_size()
        order: dict[str, Any] = {"shuffle": True, "seed": 17, "tail": "pad"}
        self.model = nn.parallel.DistributedDataParallel(resnet18(len(train.classes)))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.001)
        # Rank and world size are those of torch.distributed.
        self.loader = stoker.torch.DataLoader(train, batch_size=batch_size, transform=TRANSFORM, output=OUTPUT, **order)
        self.samples = len(train)
        self.seen: list[tuple[int, int]] = []  # (epoch, sample), of all processes
        self.losses: list[tuple[int, float]] = []  # (epoch, sum over the samples of a step), of all processes

    def run(self, steps: int | None = None) -> None:
        """Train so many steps, or up to the end of the last epoch."""
        while (epoch := self.loader.state_dict()["epoch"]) < EPOCHS:
            for batch in self.loader:  # the next epoch, or the rest of the one that a loaded state is in
                self._step(epoch, batch)
                if len(self.losses) == steps:
                    return

    def _step(self, epoch: int, batch: stoker.torch.TorchBatch) -> None:
        images, labels = batch
        counted = batch.valid.float()  # what fills the last batch up does not count
        losses = nn.functional.cross_entropy(self.model(images), labels, reduction="none") * counted
        everywhere: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(everywhere, (batch.indices[batch.valid].tolist(), losses.sum().item()))
        indices = [index for part, _ in everywhere for index in part]
        self.optimizer.zero_grad()
        # DDP takes the mean over processes; this makes of it the mean over the samples of the step.
        (losses.sum() * dist.get_world_size() / len(indices)).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.seen += [(epoch, index) for index in indices]
        self.losses.append((epoch, sum(loss for _, loss in everywhere)))

    def save(self, path: Path) -> None:
        """Write a checkpoint; one process is enough, for all have the same state."""
        if dist.get_rank() == 0:
            parts: dict[str, Any] = {"model": self.model.module, "optimizer": self.optimizer, "loader": self.loader}
            states = {name: part.state_dict() for name, part in parts.items()}
            torch.save({**states, "seen": self.seen, "losses": self.losses}, path)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint."""
        saved = torch.load(path)
        self.model.module.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.loader.load_state_dict(saved["loader"])
        self.seen, self.losses = saved["seen"], saved["losses"]

    def report(self) -> None:
        """Check that every epoch had every sample once, and that something was learnt."""
        assert Counter(self.seen) == Counter((epoch, key) for epoch in range(EPOCHS) for key in range(self.samples))
        means = [sum(loss for at, loss in self.losses if at == epoch) / self.samples for epoch in range(EPOCHS)]
        assert means[-1] < means[0], means
        print(f"every sample once in each of {EPOCHS} epochs; mean losses {', '.join(f'{mean:.2f}' for mean in means)}")


def train(path: str, checkpoint: Path, steps: int | None) -> None:
    """Train in this process, one of its process group: from the checkpoint if it is there, and to it if stopped."""
    torch.set_num_threads(1)
    training = Training(path)
    with training.loader:
        if checkpoint.exists():
            training.load(checkpoint)
        training.run(steps)
        if steps is not None:
            training.save(checkpoint)
        elif dist.get_rank() == 0:
            training.report()
        if dist.get_rank() == 0:
            print(f"process(es): {dist.get_world_size()}, got to {training.loader.state_dict()}", flush=True)
    dist.destroy_process_group()


def torchrun(processes: int, *arguments: str) -> None:
    """Start this program in so many processes, and wait for them."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    command = [*launcher, "--nproc-per-node", str(processes), __file__, *arguments]
    subprocess.run(command, check=True, env={"OMP_NUM_THREADS": "1", **os.environ})  # noqa: S603 - this program


def main(path: str) -> None:
    """Train with two processes, and from the middle of the second epoch with one."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder, "checkpoint.pt")
        steps_of_an_epoch = -(-len(stoker.open(path, split="train")) // BATCH)
        torchrun(2, path, str(checkpoint), str(steps_of_an_epoch + steps_of_an_epoch // 2))
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=0, world_size=1)
        train(path, checkpoint, None)


if __name__ == "__main__":
    if "TORCHELASTIC_RUN_ID" in os.environ:  # torchrun sets it
        dist.init_process_group("gloo")  # rank, world size and where to meet come from torchrun
        train(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
    else:
        main(sys.argv[1])
