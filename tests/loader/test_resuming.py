"""A run resumes exactly, on any topology; and the check of that finds loaders that resume wrongly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from loader.resuming import check_resume
from loader.shards import write_annotated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

RECORDS = 29
SHORT = ((1, 3), (2, 4))


def test_resuming_is_exact_with_a_stop_at_every_step(train: stoker.Dataset) -> None:
    check = check_resume(train, ((1, 7), (3, 2), (2, 5), (8, 3)))
    assert check.size == len(check.reference) == 29
    assert 60 < check.state_bytes < 200
    assert len(check.compared) == 3 * 4 + 1
    # A stop before the first step and after each other one that leaves something to do.
    assert check.compared["1 x 7", "3 x 2", "short"] == 29 + 22 + 15 + 8 + 1
    assert check.compared["1 x 7", "3 x 2", "drop"] == 24 + 18 + 12 + 6
    assert check.compared["1 x 7", "3 x 2", "pad"] == 30 + 24 + 18 + 12 + 6
    assert check.compared["all", "in turn", "short"] == 29


def test_the_end_of_an_epoch_resumes_exactly(train: stoker.Dataset) -> None:
    check = check_resume(train, SHORT, limit=10)
    assert (check.size, len(check.reference)) == (29, 10)
    assert check.compared["1 x 3", "2 x 4", "short"] == 10 + 7 + 4 + 1


def test_batches_larger_than_the_dataset_objects_and_no_shuffle(train: stoker.Dataset, tmp_path: Path) -> None:
    check_resume(train, ((1, 100), (3, 40), (2, 1)), shuffle=False, every=10)
    annotated = stoker.open(write_annotated(tmp_path / "train-00000-of-00001", 6))
    objects = check_resume(annotated, SHORT, transform=stoker.ObjectCrops(8))
    assert objects.size == 9  # 0, 1, 2, 3, 0, 1 of them, and an image without any counts as one


class OffByOne(stoker.Loader):
    """Goes on one sample too late."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        late = state["consumed"] + (1 if 0 < state["consumed"] < len(self.dataset) - 1 else 0)
        super().load_state_dict({**state, "consumed": late})


class Forgetful(stoker.Loader):
    """Goes on in the first epoch."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict({**state, "epoch": state["epoch"] if state["consumed"] == 0 else 0})


class OtherPixels(stoker.Loader):
    """Has other pixels on two ranks than on one."""

    def __iter__(self) -> Iterator[stoker.Batch]:
        for batch in super().__iter__():
            yield replace(batch, images=batch.images ^ (1 if self.topology.world_size == 2 else 0))


class Endless(stoker.Loader):
    """Goes on after an epoch on two ranks."""

    def __iter__(self) -> Iterator[stoker.Batch]:
        yield from super().__iter__()
        if self.topology.world_size == 2:
            yield from super().__iter__()


class LastRankStopsEarly(stoker.Loader):
    """Withholds the last batch of the second rank."""

    def __iter__(self) -> Iterator[stoker.Batch]:
        for batch in super().__iter__():
            if self.topology.rank == 1 and batch.position.consumed == 0:  # after the last one
                return
            yield batch


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        (OffByOne, "2 x 4, tail short, from 3 samples on, step 0: sample at position 3 differs"),
        (Forgetful, "from 3 samples on, step 0: sample at position 3 differs"),
        (OtherPixels, "from 0 samples on, step 0: sample at position 0 differs"),
        (Endless, "more than 4 steps"),
        (LastRankStopsEarly, "1 of 2 ranks make step 3"),
    ],
)
def test_a_wrong_resume_is_found(loader: type[stoker.Loader], message: str, train: stoker.Dataset) -> None:
    with pytest.raises(AssertionError, match=message):
        check_resume(train, SHORT, loader=loader)
