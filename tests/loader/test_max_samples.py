"""``max_samples=N``: an epoch is the first N positions of its order, and all else is as of a dataset of N."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from loader.resuming import SEED, steps_of
from loader.shards import write_shards
from reference import order as reference
from reference.epochs import steps_of_a_run
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 13
TRANSFORM = stoker.CenterCrop(8)
topologies = st.tuples(st.integers(1, 5), st.integers(1, 3), st.sampled_from(["short", "drop", "pad", "wrap"]))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, RECORDS + 2), st.booleans(), topologies, topologies, st.data())
def test_an_epoch_is_the_first_positions_of_its_order(
    train: stoker.Dataset, most: int, shuffle: bool, first: Any, second: Any, data: st.DataObject
) -> None:
    """Against orders and steps in plain Python, stopped after any step and resumed on another topology."""
    epochs, size = 2, min(most, RECORDS)
    places = range(size)
    orders = [
        [reference.order(RECORDS, SEED, epoch, at) if shuffle else at for at in places] for epoch in range(epochs)
    ]
    given: dict[str, Any] = {"shuffle": shuffle, "max_samples": most}

    def check(topology: Any, state: dict[str, Any] | None, steps: list[list[int]]) -> Any:
        begun = (0, 0) if state is None else (state["epoch"], state["consumed"])
        known = steps_of_a_run(size, epochs, topology[0] * topology[1], topology[2], *begun)
        wanted = [[orders[epoch][at] for at in positions] for epoch, positions, _ in known]
        if topology[2] == "wrap":
            assert [step[: len(each)] for step, each in zip(steps, wanted, strict=True)] == wanted
        else:
            assert steps == wanted
        return known

    steps, states = steps_of(train, first, None, epochs, **given)
    known = check(first, None, steps)
    assert [(state["epoch"], state["consumed"]) for state in states] == [after for _, _, after in known]
    if states:
        state = data.draw(st.sampled_from(states), label="state")
        check(second, state, steps_of(train, second, state, epochs, **given)[0])


def test_a_loader_says_how_long_its_epochs_are(train: stoker.Dataset) -> None:
    for tail, steps in (("short", 3), ("drop", 2)):
        with stoker.Loader(train, 2, True, transform=TRANSFORM, max_samples=5, tail=tail) as loader:
            assert len(loader) == len(list(loader)) == steps


def test_a_state_is_of_one_number_of_samples(train: stoker.Dataset) -> None:
    def loader(most: int | None) -> stoker.Loader:
        return stoker.Loader(train, 2, transform=TRANSFORM, max_samples=most, seed=1)

    with loader(5) as five, loader(6) as six, loader(RECORDS) as all_, loader(None) as plain:
        with pytest.raises(ConfigError, match=r"the state is for dataset .*the samples and their order, max_samples="):
            six.load_state_dict(five.state_dict())
        all_.load_state_dict(plain.state_dict())


def test_a_bad_sample_is_replaced_by_any_of_the_dataset(train: stoker.Dataset, tmp_path: Path) -> None:
    write_shards(tmp_path, 40, 1)
    dataset = stoker.open(tmp_path)
    with next(tmp_path.glob("train-*")).open("r+b") as shard:
        shard.seek(200)  # in the first record
        shard.write(b"damage")
    given: dict[str, Any] = {"transform": TRANSFORM, "max_samples": 1, "on_bad": "substitute", "seed": 0}
    with stoker.Loader(dataset, 1, **given) as loader, pytest.warns(UserWarning, match="1 bad sample"):
        indices = [int(batch.indices[0]) for _ in range(6) for batch in loader]
    assert max(indices) > 1
    assert len(np.unique(indices)) > 1


@pytest.mark.parametrize("most", [0, -1, "few"])
def test_other_numbers_are_refused(train: stoker.Dataset, most: Any) -> None:
    with pytest.raises(ConfigError, match="max_samples is"):
        stoker.Loader(train, 2, transform=TRANSFORM, max_samples=most)
