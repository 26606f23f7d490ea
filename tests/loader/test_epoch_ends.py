"""States at the ends of epochs: whatever loops save them and go on from them, no epoch is trained twice."""

from __future__ import annotations

import pickle
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from loader.resuming import SEED, steps_of, while_epochs_are_left
from reference.epochs import steps_of_a_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from loader.resuming import Loop

RECORDS = 14
TRANSFORM = stoker.Resize(8)


def for_the_epochs_of_the_state(loader: stoker.Loader, state: dict[str, Any], epochs: int) -> Iterator[stoker.Batch]:
    return chain.from_iterable(loader for _ in range(state["epoch"], epochs))


def with_islice(loader: stoker.Loader, _: dict[str, Any], epochs: int) -> Iterator[stoker.Batch]:
    while loader.state_dict()["epoch"] < epochs:
        yield from islice(loader, max(1, len(loader)))  # of a whole epoch it never asks for more than there is


def with_a_break(loader: stoker.Loader, state: dict[str, Any], epochs: int) -> Iterator[stoker.Batch]:
    for epoch in range(state["epoch"], epochs):
        for batch in loader:
            yield batch
            if loader.state_dict()["epoch"] > epoch:
                break


LOOPS = [while_epochs_are_left, for_the_epochs_of_the_state, with_islice, with_a_break]
topologies = st.tuples(st.integers(1, 6), st.integers(1, 3), st.sampled_from(["short", "drop", "pad", "wrap"]))


@settings(max_examples=60)
@given(st.integers(1, RECORDS), topologies, topologies, st.sampled_from(LOOPS), st.sampled_from(LOOPS), st.data())
@pytest.mark.slow
def test_a_run_that_was_stopped_trains_what_is_left_and_no_more(
    train: stoker.Dataset, size: int, first: Any, second: Any, before: Loop, after: Loop, data: st.DataObject
) -> None:
    epochs = data.draw(st.integers(1, 3), label="epochs")
    part = train[:size]
    with stoker.Loader(part, transform=TRANSFORM, seed=SEED) as loader:
        state = loader.state_dict()
    wanted = steps_of_a_run(size, epochs, first[0] * first[1], first[2], 0, 0)
    stop = data.draw(st.integers(0, len(wanted)) | st.just(len(wanted)), label="stop")
    wanted = wanted[:stop]
    for topology, loop, most in ((first, before, stop), (second, after, 1000)):
        indices, states = steps_of(part, topology, state, epochs, loop=loop, most=most)
        assert [(after["epoch"], after["consumed"]) for after in states] == [after for _, _, after in wanted]
        expected = [known for _, known, _ in wanted]
        assert [step[: len(known)] for step, known in zip(indices, expected, strict=True)] == expected
        state = states[-1] if states else state
        if state["consumed"] == 0 < state["epoch"] and data.draw(st.booleans(), label="as saved by older versions"):
            state = {**state, "epoch": state["epoch"] - 1, "consumed": size}
        wanted = steps_of_a_run(size, epochs, second[0] * second[1], second[2], state["epoch"], state["consumed"])


def test_an_epoch_without_a_batch_is_one_epoch(train: stoker.Dataset) -> None:
    with stoker.Loader(train, RECORDS + 1, transform=TRANSFORM, drop_last=True) as loader:
        for epoch in range(3):
            assert loader.state_dict()["epoch"] == epoch
            assert list(loader) == []


def test_the_state_after_the_last_batch_survives_all_that_is_done_with_it(train: stoker.Dataset) -> None:
    with stoker.Loader(train, 5, transform=TRANSFORM, shuffle=True, seed=2) as loader:
        epochs = [[batch.indices.tolist() for batch in loader] for _ in range(2)]
        loader.set_epoch(0)
        *_, batch = islice(loader, 3)
        assert batch.position == stoker.Position(1, 0)
        assert "the last of epoch 0" in repr(batch)
        assert loader.bad_samples.epoch == 0  # of the epoch that is over, until the next begins
        with pickle.loads(pickle.dumps(loader)) as other:
            assert [batch.indices.tolist() for batch in other] == epochs[1]
        assert [batch.indices.tolist() for batch in loader] == epochs[1]


@pytest.mark.needs("torch")
def test_a_trainer_may_name_the_epochs(train: stoker.Dataset) -> None:
    seen = []
    state: dict[str, Any] = {"epoch": 0}
    for stop in (4, 5, 100):  # in the second epoch, at its end, never
        with stoker.torch.DataLoader(train, 5, transform=TRANSFORM, shuffle=True, seed=2) as loader:
            if seen:
                loader.load_state_dict(state)
            for epoch in range(state["epoch"], 3):
                loader.sampler.set_epoch(epoch)
                for batch in islice(loader, stop - len(seen)):
                    seen.append(batch.indices.tolist())
                    state = loader.state_dict()
                if len(seen) == stop:
                    break
    with stoker.Loader(train, 5, transform=TRANSFORM, shuffle=True, seed=2) as loader:
        assert seen == [batch.indices.tolist() for _ in range(3) for batch in loader]
    assert (state["epoch"], state["consumed"]) == (3, 0)


@pytest.mark.needs("jax")
def test_an_iterator_of_jax_ends_where_the_run_ended(train: stoker.Dataset) -> None:
    given = {"transform": TRANSFORM, "shuffle": True, "seed": 2, "epochs": 2}
    with stoker.jax.batches(train, 5, **given) as batches:
        *_, state = (batches.get_state() for _ in batches)
    assert (state["epoch"], state["consumed"]) == (2, 0)
    for finished in (state, {**state, "epoch": 1, "consumed": RECORDS}):
        with stoker.jax.batches(train, 5, **given) as batches:
            batches.set_state(finished)
            assert list(batches) == []
