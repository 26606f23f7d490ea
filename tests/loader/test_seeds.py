"""The seed of a loader that was given none: new in one process, 0 on several ranks, or that of a loaded state."""

from __future__ import annotations

import copy
import json
import pickle
import sys
import warnings
from typing import Any

import pytest

import stoker
from programs import output_of
from stoker.errors import ClosedError, ConfigError
from stoker.forks import PerProcess
from stoker.loader.feed import _default_seed

RECORDS = 12
SETTINGS: dict[str, Any] = {"batch_size": 4, "transform": stoker.RandomResizedCrop(8), "shuffle": True}
SEVERAL = {"rank": 0, "world_size": 2}


@pytest.fixture(autouse=True)
def nothing_read_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.loader.loader._first_epochs", PerProcess(set))


def epoch_of(loader: Any) -> list[tuple[list[int], bytes]]:
    return [(batch.indices.tolist(), batch.images.tobytes()) for batch in loader]


def test_every_loader_of_a_process_has_a_seed_of_its_own(train: stoker.Dataset) -> None:
    with stoker.Loader(train, **SETTINGS) as first, stoker.Loader(train, **SETTINGS) as other:
        drawn = {loader.state_dict()["seed"] for loader in (first, other)}
        assert len(drawn) == 2
        assert all(0 <= seed < 2**63 for seed in drawn)
        assert epoch_of(first) != epoch_of(other)
        assert len(json.dumps(first.state_dict())) < 200
    with stoker.Loader(train, **{**SETTINGS, "seed": first.feed.seed}) as again:
        one_epoch = epoch_of(again)
        again.set_epoch(0)
        assert epoch_of(again) == one_epoch


def test_without_pytorch_the_seed_is_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert len({_default_seed(1) for _ in range(3)}) == 3
    assert _default_seed(2) == 0
    assert "torch" not in sys.modules


@pytest.mark.needs("torch")
def test_pytorchs_generator_decides(train: stoker.Dataset) -> None:
    import torch  # noqa: PLC0415 - as a program has it

    epochs = []
    for _ in range(2):
        torch.manual_seed(5)
        for _ in range(2):  # a new loader for each epoch
            with stoker.Loader(train, **SETTINGS) as loader:
                epochs.append(epoch_of(loader))
    assert epochs[0] == epochs[2] != epochs[1] == epochs[3]
    before = torch.get_rng_state()
    with stoker.Loader(train, **SETTINGS, seed=1), stoker.Loader(train, **SETTINGS, **SEVERAL) as several:
        assert several.state_dict()["seed"] == 0
    with pickle.loads(pickle.dumps(loader)) as unpickled, copy.copy(loader) as copied:
        assert unpickled.state_dict() == copied.state_dict() == loader.state_dict()
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loaded_state_brings_its_seed_along(train: stoker.Dataset) -> None:
    with stoker.Loader(train, **SETTINGS, seed=2**64 - 1) as loader:
        next(iter(loader))
        state = json.loads(json.dumps(loader.state_dict()))
        loader.load_state_dict(state)
        rest = epoch_of(loader)
    for given in ({}, SEVERAL):
        with stoker.Loader(train, **SETTINGS, tail="short", **given) as other:
            under_way = iter(other)
            next(under_way)
            other.load_state_dict(state)
            with pytest.raises(ClosedError, match="another iteration"):
                next(under_way)
            assert other.state_dict() == state
            assert other.feed.seed == 2**64 - 1
            if not given:
                assert epoch_of(other) == rest
            with pickle.loads(pickle.dumps(other)) as unpickled:
                unpickled.load_state_dict({**state, "seed": 3})  # it still has no seed of its own
                assert unpickled.state_dict()["seed"] == 3
        other.load_state_dict(state)
        with pytest.raises(ClosedError, match="make a new one"):
            other.load_state_dict({**state, "seed": 4})
    with stoker.Loader(train, **SETTINGS, seed=1) as mine, pytest.raises(ConfigError, match="the state is for seed"):
        mine.load_state_dict(state)


@pytest.mark.parametrize(
    "change", [{"seed": -1}, {"seed": 2**64}, {"seed": "1"}, {"seed": None}, {"seed": True}, {"epoch": -1}]
)
def test_a_damaged_state_changes_nothing(train: stoker.Dataset, change: dict[str, Any]) -> None:
    with stoker.Loader(train, **SETTINGS) as loader:
        state = loader.state_dict()
        for damaged in ({**state, "seed": 5, **change}, {"seed": 5}, [5], None):
            with pytest.raises(ConfigError):
                loader.load_state_dict(damaged)  # type: ignore[arg-type]
        assert loader.state_dict() == state


def warned(train: stoker.Dataset, *loaders: dict[str, Any], epochs: int = 1, state: bool = False) -> list[str]:
    """What is warned of where a loader with each of the settings is read for some epochs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for given in loaders:
            with stoker.Loader(train, **{**SETTINGS, **SEVERAL, **given}) as loader:
                if state:
                    loader.load_state_dict(loader.state_dict())
                for _ in range(epochs):
                    list(loader)
    return [str(warning.message) for warning in caught]


def test_a_new_loader_that_repeats_an_epoch_is_warned_of(train: stoker.Dataset) -> None:
    first, *others = warned(train, {}, {}, {"batch_size": 3})
    assert first == others[0]
    assert len(others) == 1
    assert "repeats epoch 0" in first
    assert "give the loader of each epoch its own seed=" in first
    assert warned(train, *({"seed": epoch} for epoch in range(2))) == []  # what it says


@pytest.mark.parametrize(
    ("given", "more"),
    [
        ({"seed": 0}, {}),
        ({"shuffle": False}, {}),
        ({"rank": 0, "world_size": 1}, {}),
        ({}, {"epochs": 2}),
        ({}, {"state": True}),
    ],
    ids=str,
)
def test_other_loaders_are_not_warned_of(train: stoker.Dataset, given: dict[str, Any], more: dict[str, Any]) -> None:
    assert warned(train, given, given, **more) == []


def test_both_ranks_in_one_process_are_not_warned_of(train: stoker.Dataset) -> None:
    assert warned(train, {"rank": 0}, {"rank": 1}) == []


@pytest.mark.needs("jax")
@pytest.mark.needs("torch")
def test_the_adapters_have_it_too(train: stoker.Dataset) -> None:
    for make in (stoker.torch.DataLoader, stoker.jax.batches):
        with (
            make(train, **SETTINGS) as first,
            make(train, **SETTINGS) as other,
            make(train, **SETTINGS, **SEVERAL) as several,
        ):
            assert first.loader.feed.seed != other.loader.feed.seed
            assert several.loader.feed.seed == 0
            other.loader.load_state_dict(first.loader.state_dict())
            assert first.loader.feed.seed == other.loader.feed.seed


@pytest.mark.slow
def test_two_runs_of_a_program_differ(train: stoker.Dataset) -> None:
    program = """
        import sys, stoker
        with stoker.Loader(stoker.open(sys.argv[1]), 12, True, transform=stoker.Resize(8)) as loader:
            print(next(iter(loader)).indices.tolist())
    """
    assert len({output_of(program, train.path) for _ in range(2)}) == 2
