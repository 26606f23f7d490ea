"""`check_resume` holds for Stoker's loader, and finds every loader that resumes wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import stoker
from loader.shards import write_annotated, write_shards
from stoker.errors import ConfigError
from stoker.inspect.resume import check_resume
from stoker.order import Topology, steps_left

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TRANSFORM = stoker.RandomResizedCrop(8, hflip=0.5)
SHORT = ((1, 3), (2, 4))


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> stoker.Dataset:
    directory = tmp_path_factory.mktemp("resume")
    write_shards(directory, 29, 2)
    return stoker.open(directory)


def test_resuming_is_exact_with_a_stop_at_every_step(train: stoker.Dataset) -> None:
    report = check_resume(train, transform=TRANSFORM, topologies=((1, 7), (3, 2), (2, 5), (8, 3)), every=1)
    assert (report.samples, report.epoch_samples, report.epoch) == (29, 29, 1)
    assert 60 < report.state_bytes < 200
    rows = {(row.before, row.after, row.tail): row for row in report.changes}
    assert len(rows) == 3 * 4 + 1
    # A stop before the first step and after each other one that leaves something to do.
    assert rows["1 x 7", "3 x 2", "short"].stops == 5
    assert rows["1 x 7", "3 x 2", "short"].samples == 29 + 22 + 15 + 8 + 1
    assert rows["1 x 7", "3 x 2", "drop"].samples == 24 + 18 + 12 + 6
    assert rows["1 x 7", "3 x 2", "pad"].samples == 30 + 24 + 18 + 12 + 6
    assert rows["1 x 7", "3 x 2", "wrap"].steps == 5 + 4 + 3 + 2 + 1
    assert rows["all", "in turn", "short"].samples == 29
    text = str(report)
    assert len(text.splitlines()) == 2 + len(rows)
    assert "resuming is exact" in text
    assert "all 29 samples of epoch 1, seed 17" in text
    assert ["3", "x", "2", "->", "2", "x", "5", "pad"] in [line.split()[:8] for line in text.splitlines()]


def test_stops_are_fewer_by_default_and_as_asked(train: stoker.Dataset) -> None:
    few = check_resume(train, transform=TRANSFORM, topologies=((1, 1), (2, 4)))
    assert [row.stops for row in few.changes] == [8, 3, 3, 3, few.changes[-1].stops]
    tenth = check_resume(train, transform=TRANSFORM, topologies=((1, 1), (2, 4)), every=10)
    assert tenth.changes[0].stops == 3


def test_of_a_large_dataset_the_end_of_an_epoch_is_read(train: stoker.Dataset) -> None:
    report = check_resume(train, transform=TRANSFORM, topologies=SHORT, limit=10)
    assert (report.samples, report.epoch_samples) == (10, 29)
    assert "the last 10 of 29 samples" in str(report)
    assert report.changes[0].samples == 10 + 7 + 4 + 1


def test_batches_larger_than_the_dataset_objects_and_no_shuffle(train: stoker.Dataset, tmp_path: Path) -> None:
    check_resume(train, transform=TRANSFORM, topologies=((1, 100), (3, 40), (2, 1)), shuffle=False)
    write_annotated(tmp_path / "train-00000-of-00001", 6)
    objects = check_resume(stoker.open(tmp_path), transform=stoker.ObjectCrops(8), topologies=SHORT)
    assert objects.epoch_samples == 9  # 0, 1, 2, 3, 0, 1 of them, and an image without any counts as one


class OffByOne(stoker.Loader):
    """Goes on one sample too late."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        late = state["consumed"] + (1 if 0 < state["consumed"] < len(self.dataset) - 1 else 0)
        super().load_state_dict({**state, "consumed": late})


class Forgetful(stoker.Loader):
    """Goes on in the first epoch."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict({**state, "epoch": state["epoch"] if state["consumed"] == 0 else 0})


class Talkative(stoker.Loader):
    """Says too much in its state."""

    def state_dict(self, position: stoker.Position | None = None) -> dict[str, Any]:
        return {**super().state_dict(position), "log": "x" * 100}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict({key: value for key, value in state.items() if key != "log"})


class OwnState(Talkative):
    """Has another state on each rank."""

    def state_dict(self, position: stoker.Position | None = None) -> dict[str, Any]:
        return {**super().state_dict(position), "log": self.topology.rank}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict({key: value for key, value in state.items() if key != "log"})


class Changing(stoker.Loader):
    """Spoils its batches."""

    def __iter__(self) -> Iterator[stoker.Batch]:
        for batch in super().__iter__():
            yield self.spoil(batch) if self.topology.world_size == 2 else batch

    def spoil(self, batch: stoker.Batch) -> stoker.Batch:
        return batch


class OtherPixels(Changing):
    def spoil(self, batch: stoker.Batch) -> stoker.Batch:
        images = batch.images.copy()
        images[-1, -1, -1, -1] ^= 1
        return replace(batch, images=images)


class OtherLabels(Changing):
    def spoil(self, batch: stoker.Batch) -> stoker.Batch:
        return replace(batch, labels=batch.labels + 1)


class OtherSeeds(Changing):
    def spoil(self, batch: stoker.Batch) -> stoker.Batch:
        return replace(batch, seeds=batch.seeds + np.uint64(1))


class OtherOrder(Changing):
    def spoil(self, batch: stoker.Batch) -> stoker.Batch:
        turned = {name: getattr(batch, name)[::-1] for name in ("images", "labels", "indices", "seeds")}
        return replace(batch, **turned)


class AlwaysValid(Changing):
    def spoil(self, batch: stoker.Batch) -> stoker.Batch:
        return replace(batch, valid=np.ones_like(batch.valid))


class Shorter(Changing):
    def spoil(self, batch: stoker.Batch) -> stoker.Batch:
        rest = {name: getattr(batch, name)[1:] for name in ("images", "labels", "indices", "valid", "seeds")}
        return replace(batch, **rest)


class LastRankStopsEarly(stoker.Loader):
    def __iter__(self) -> Iterator[stoker.Batch]:
        batches = super().__iter__()
        for batch in batches:
            if self.topology.rank == 1 and batch.position.consumed == 0:  # after the last one
                return
            yield batch


class AllStopEarly(stoker.Loader):
    def __iter__(self) -> Iterator[stoker.Batch]:
        topology: Topology = self.topology
        left = steps_left(len(self.dataset), self.state_dict()["consumed"], topology)
        for batch, _ in zip(super().__iter__(), range(max(1, left - topology.world_size + 1)), strict=False):
            yield batch


class Endless(stoker.Loader):
    def __iter__(self) -> Iterator[stoker.Batch]:
        yield from super().__iter__()
        if self.topology.world_size == 2:
            yield from super().__iter__()


class Repeating(stoker.Loader):
    def __iter__(self) -> Iterator[stoker.Batch]:
        for batch in super().__iter__():
            yield replace(batch, indices=batch.indices // np.uint64(2))


@pytest.mark.parametrize(
    ("loader", "said"),
    [
        (OffByOne, r"1 x 3 -> 2 x 4, tail short, stopped at 6 samples, step 0, rank 0: position 6 holds sample \d+, "),
        (Forgetful, r"stopped at 6 samples, step 0, rank 0: position 6 holds sample"),
        (Talkative, r"the state has 2\d\d bytes, not below 200"),
        (OwnState, r"step 0: the state of rank 1 is .*\"log\": 1}, but that of rank 0"),
        (
            OtherPixels,
            r"stopped at 0 samples, step 0, rank 0: sample \d+ has other pixels .*: CRC-32C \w{8}, not \w{8}",
        ),
        (OtherLabels, r"rank 0: sample \d+ has label (\d+), not \d+"),
        (OtherSeeds, r"rank 0: sample \d+ has the seed (\d+), not \d+"),
        (OtherOrder, r"position 0 holds sample"),
        (AlwaysValid, r"tail pad, stopped at 0 samples, step 3, rank 1: sample \d+ at position 29 has valid=True"),
        (Shorter, r"the ranks take \[3, 3\] samples, and not 4 each"),
        (LastRankStopsEarly, r"only 1 of 2 ranks make step 3"),
        (AllStopEarly, r"the ranks make 3 steps, where 4 are left"),
        (Endless, r"the ranks make more than the 4 steps that are left"),
        (Repeating, r"the uninterrupted epoch: sample \d+ comes again at position \d+; it came at \d+"),
    ],
)
def test_a_loader_that_resumes_wrongly_is_found(loader: type[stoker.Loader], said: str, train: stoker.Dataset) -> None:
    with pytest.raises(AssertionError, match=said):
        check_resume(train, transform=TRANSFORM, topologies=SHORT, loader=loader)


def test_settings_that_make_no_sense(train: stoker.Dataset) -> None:
    for bad, said in [
        ({"topologies": [(1, 2)]}, "topologies has 1"),
        ({"topologies": [(1, 2), (0, 1)]}, "world_size is 0"),
        ({"every": 0}, "every is 0"),
        ({"limit": 0}, "limit is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
    ]:
        with pytest.raises(ConfigError, match=said):
            check_resume(train, **bad)
