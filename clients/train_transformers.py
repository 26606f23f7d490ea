"""The Trainer of transformers trains, resumes and evaluates with the program of docs/how-to/transformers.md.

Run in the client's environment: `python clients/train_transformers.py DIRECTORY`, with what `datasets.py` made. It
starts itself under torchrun, on one rank and on two.
"""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from documented import run_program
from source_trees import report

import stoker
import stoker.torch

EPOCHS = 2


def noting(trainer: type) -> type:
    """Return the page's trainer, which notes each batch that it trains on by the sum of its pixels."""

    class Noting(trainer):
        def training_step(self, model: Any, inputs: dict[str, torch.Tensor], *others: Any) -> torch.Tensor:
            self.seen.append(inputs["pixel_values"].double().sum().item())
            return super().training_step(model, inputs, *others)

    return Noting


def expected(page: dict[str, Any]) -> list[float]:
    """Return what this rank has to see in all epochs."""
    transform = stoker.RandomResizedCrop(32, hflip=0.5)
    settings = {"shuffle": True, "seed": page["arguments"].seed, "output": page["PIXELS"]}
    with stoker.torch.DataLoader(page["train"], 8, transform=transform, **settings) as loader:
        return [batch.images.double().sum().item() for _ in range(EPOCHS) for batch in loader]


def on_a_rank() -> None:
    """Run the page's program, then resume from checkpoints in mid-epoch and at the end of one, and compare."""
    page = run_program("transformers.md", "# Train with the Trainer of transformers")
    wanted = expected(page)
    epoch = len(wanted) // EPOCHS
    assert page["trainer"].evaluate()["eval_images"] == len(page["validation"])
    for accumulated in (1, 4):
        steps = -(-epoch // accumulated)
        whole = train(page, wanted, accumulated)
        for stop in (1, steps - 1, steps, steps + 1):
            done = stop // steps * epoch + stop % steps * accumulated
            resumed = train(page, wanted[done:], accumulated, stop)
            assert all(torch.equal(*pair) for pair in zip(whole, resumed, strict=True)), (accumulated, stop)


def train(page: dict[str, Any], wanted: list[float], accumulated: int, stop: int | None = None) -> list[torch.Tensor]:
    """Return the weights after all epochs, begun anew or at a checkpoint; every batch must be the one wanted."""
    folder = f"accumulated-{accumulated}"
    changed = {"output_dir": folder, "save_steps": 1, "gradient_accumulation_steps": accumulated, "disable_tqdm": True}
    torch.manual_seed(0)
    model = page["Model"](len(page["train"].classes))
    arguments = dataclasses.replace(page["arguments"], **changed)
    trainer = noting(page["ImageTrainer"])(model, arguments, train_dataset=page["train"])
    trainer.seen = []
    trainer.train(resume_from_checkpoint=None if stop is None else f"{folder}/checkpoint-{stop}")
    assert trainer.seen == wanted, (accumulated, stop, len(trainer.seen), len(wanted))
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def main(data: Path) -> None:
    """Start this program on one rank and on two."""
    for ranks in ("1", "2"):
        with tempfile.TemporaryDirectory() as temporary:
            Path(temporary, "dataset").symlink_to(data / "tfds", target_is_directory=True)
            command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks]
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            subprocess.run([*command, __file__], cwd=temporary, env=environment, check=True, stdout=sys.stderr)
    train, validation = (len(stoker.open(data / "tfds", split=split)) for split in ("train", "validation"))
    report("transformers", version("transformers"), train + validation)


if __name__ == "__main__":
    if "LOCAL_RANK" in os.environ:
        on_a_rank()
        torch.distributed.destroy_process_group()
    else:
        main(Path(sys.argv[1]).resolve())
