"""Real processes with torch.distributed: every rank its share, no hang, and going on with more of them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import torch

import preloaded
import stoker
from loader import torch_ranks
from programs import run_python

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.needs("torch")
RECORDS = 23  # no multiple of a step of 2 or 3 ranks
FRAMEWORKS = ("torch", "accelerate", "lightning.pytorch")
LIMIT = 150  # seconds; a hang is a failure


def run_with_frameworks(*words: object, seconds: float) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return run_python(*words, python=preloaded.python(*FRAMEWORKS), env=environment, seconds=seconds)


def torchrun(processes: int, tasks: str, train: stoker.Dataset, out: Path, *more: str) -> list[dict[str, Any]]:
    """Run tasks, separated by commas, on so many ranks; return what each rank found, by task."""
    out.mkdir()
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes, torch_ranks.__file__]
    finished = run_with_frameworks(*words, tasks, train.path, out, *more, seconds=LIMIT)
    assert finished.returncode == 0, finished.stderr[-4000:]
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(processes)]


@pytest.fixture(scope="module")
def two_ranks(train: stoker.Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks found before they knew of each other, in whole epochs, and in the first steps of one."""
    return torchrun(2, "made_too_early,epochs,gradients", train, tmp_path_factory.mktemp("ranks") / "two")


@pytest.fixture(scope="module")
def through_others(train: stoker.Dataset, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks found through Accelerate and through Lightning."""
    return torchrun(2, "accelerate,lightning", train, tmp_path_factory.mktemp("ranks") / "others")


def sequence(train: stoker.Dataset) -> list[int]:
    settings = {**torch_ranks.SETTINGS, "batch_size": RECORDS}
    with stoker.Loader(train, **settings) as loader:
        return next(iter(loader)).indices.tolist()


def flat(steps: Sequence[Sequence[int]]) -> list[int]:
    return [index for step in steps for index in step]


@pytest.mark.timeout(2 * LIMIT)
def test_two_ranks_share_an_epoch_with_every_tail(two_ranks: list[dict[str, Any]]) -> None:
    ranks = [rank["epochs"] for rank in two_ranks]
    everything = set(range(RECORDS))
    for tail in torch_ranks.TAILS:
        first, second = (rank[tail] for rank in ranks)
        assert len(first["steps"]) == len(second["steps"]) == first["length"] == second["length"]
        keys = flat(first["steps"]) + flat(second["steps"])
        if tail in ("short", "pad"):
            assert sorted(keys) == sorted(everything)
        elif tail == "drop":
            assert len(set(keys)) == len(keys) == RECORDS // 6 * 6
        else:
            assert len(keys) == 24
            assert set(keys) == everything


@pytest.mark.timeout(3 * LIMIT)
def test_two_ranks_stop_and_three_go_on(two_ranks: list[dict[str, Any]], train: stoker.Dataset, tmp_path: Path) -> None:
    before = [rank["gradients"] for rank in two_ranks]
    assert before[0]["state"] == before[1]["state"]
    resumed = torchrun(3, "gradients", train, tmp_path / "three", json.dumps(before[0]["state"]))
    after = [rank["gradients"] for rank in resumed]
    assert sorted(flat([rank["indices"] for rank in before])) == sorted(sequence(train)[:12])
    assert sorted(flat([rank["indices"] for rank in after])) == sorted(sequence(train)[12:])

    # DistributedDataParallel has averaged over the ranks: the same as one process with all samples, divided.
    for ranks, samples in ((before, sequence(train)[:12]), (after, sequence(train)[12:])):
        assert len({rank["gradients"] for rank in ranks}) == 1
        assert ranks[0]["gradients"] == pytest.approx(gradients_of(train, samples) / len(ranks), rel=1e-4)


def gradients_of(train: stoker.Dataset, samples: Sequence[int]) -> float:
    model = torch_ranks.network()
    shown = stoker.torch.MapDataset(train, torch_ranks.SETTINGS["transform"], seed=5).__getitems__(samples)
    images, labels = torch.stack([pair[0] for pair in shown]), torch.tensor([pair[1] for pair in shown])
    torch.nn.functional.cross_entropy(model(images.float() / 255), labels, reduction="sum").backward()
    return sum(float(parameter.grad.abs().sum()) for parameter in model.parameters())


@pytest.mark.timeout(2 * LIMIT)
def test_a_loader_that_was_made_before_the_ranks_were_known_says_so(two_ranks: list[dict[str, Any]]) -> None:
    for rank, outcome in enumerate(result["made_too_early"] for result in two_ranks):
        assert "rank 0 of 1, before torch.distributed" in outcome["refusal"]
        assert f"says rank {rank} of 2" in outcome["refusal"]
        assert "train_dataloader()" in outcome["refusal"]
        assert outcome["given"] == -(-RECORDS // torch_ranks.BATCH)


@pytest.mark.timeout(2 * LIMIT)
def test_two_ranks_in_the_hands_of_accelerate(through_others: list[dict[str, Any]], train: stoker.Dataset) -> None:
    ranks = [rank["accelerate"] for rank in through_others]
    assert [rank["processes"] for rank in ranks] == [2, 2]
    assert sorted(flat(ranks[0]["steps"]) + flat(ranks[1]["steps"])) == list(range(RECORDS))
    assert ranks[0]["gathered"] == ranks[1]["gathered"] == sequence(train)
    for rank in ranks:
        assert sorted(rank["metrics"]) == list(range(RECORDS))  # no sample counts twice


@pytest.mark.timeout(2 * LIMIT)
def test_two_ranks_in_the_hands_of_lightning(through_others: list[dict[str, Any]]) -> None:
    ranks = [rank["lightning"] for rank in through_others]
    for first in (0, 4):  # four steps an epoch
        keys = [index for rank in ranks for index in flat(rank["steps"][first : first + 4])]
        assert sorted(keys) == list(range(RECORDS))
    assert [len(rank["steps"]) for rank in ranks] == [8, 8]
    assert sorted(flat(flat([rank["predicted"] for rank in ranks]))) == list(range(RECORDS))


LIGHTNING = """
import sys
import lightning.pytorch as pl, torch
import stoker

class Model(pl.LightningModule):
    def __init__(self, given, validated):
        super().__init__()
        self.given, self.validated = given, validated
        self.net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8 * 8 * 3, 32))

    def write(self, out, batch):
        with open(f"{out}/{self.trainer.global_rank}", "a") as file:
            print(*batch.indices.tolist(), file=file)

    def training_step(self, batch, number):
        self.write(self.given, batch)
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.net(images.float() / 255), labels)

    def val_dataloader(self):
        return make_loader()

    def validation_step(self, batch, number):
        self.write(self.validated, batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

def make_loader():
    return stoker.torch.DataLoader(
        stoker.open(sys.argv[1]), 4, True, transform=stoker.CenterCrop(8, 16), seed=9, tail="pad"
    )

if __name__ == "__main__":
    pl.Trainer(
        accelerator="cpu", devices=2, strategy="ddp_spawn", max_epochs=2, num_sanity_val_steps=0, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    ).fit(Model(*sys.argv[2:]), make_loader())
"""


@pytest.mark.timeout(3 * LIMIT)
def test_ranks_that_lightning_spawns_take_their_shares_of_a_loader(train: stoker.Dataset, tmp_path: Path) -> None:
    outs = [tmp_path / "given", tmp_path / "made in each rank"]
    for out in outs:
        out.mkdir()
    (tmp_path / "fit.py").write_text(LIGHTNING)
    done = run_with_frameworks(tmp_path / "fit.py", train.path, *outs, seconds=2 * LIMIT)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "leaked" not in done.stderr
    for out in outs:
        lines = [(out / str(rank)).read_text().splitlines() for rank in range(2)]
        ranks = [[list(map(int, line.split())) for line in rank] for rank in lines]
        for epoch in range(2):
            steps = [rank[3 * epoch : 3 * epoch + 3] for rank in ranks]
            assert [[len(step) for step in rank] for rank in steps] == [[4, 4, 4]] * 2
            assert {index for rank in steps for step in rank for index in step} == set(range(RECORDS))
        assert ranks[0] != ranks[1]
