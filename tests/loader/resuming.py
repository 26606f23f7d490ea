"""Runs that stop and go on with other ranks and batch sizes, against an epoch without a stop."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, cycle, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np

import stoker
from loader.field_records import rows
from stoker import _native
from stoker.order import Tail, Topology, steps_left

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Loop = Callable[[stoker.Loader, dict[str, Any], int], Iterator[stoker.Batch]]

EPOCH = 1  # not the first one, so that a loader which forgets the epoch is noticed
STATE_BYTES = 200
TRANSFORM = stoker.RandomResizedCrop(8, hflip=0.5)
SEED = 5


class Content(NamedTuple):
    """A sample of a batch, with a CRC-32C of each image made of it, and its fields as text."""

    index: int
    pixels: tuple[int, ...]
    label: int
    seed: int
    fields: str


def while_epochs_are_left(loader: stoker.Loader, _: dict[str, Any], epochs: int) -> Iterator[stoker.Batch]:
    while loader.state_dict()["epoch"] < epochs:
        yield from loader


def contents_of(batch: stoker.Batch) -> list[Content]:
    """Return what each sample of a batch became."""
    images = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    pixels = zip(*([_native.crc32c(image.tobytes()) for image in np.asarray(part)] for part in images), strict=True)
    fields = [rows(column, len(batch)) for column in batch.fields.values()]
    texts = [
        str([value.tolist() if isinstance(value, np.ndarray) else value for value in row])
        for row in zip(*fields, strict=True)
    ]
    texts = texts or [""] * len(batch)
    columns = batch.indices.tolist(), pixels, batch.labels.tolist(), batch.seeds.tolist(), texts
    return [Content(*row) for row in zip(*columns, strict=True)]


def steps_of(
    dataset: stoker.Dataset,
    topology: tuple[int, int, Any],
    state: dict[str, Any] | None,
    epochs: int,
    *,
    loop: Loop = while_epochs_are_left,
    most: int = 1000,
    **given: Any,
) -> tuple[list[list[int]], list[dict[str, Any]]]:
    """The valid samples of each step, rank after rank, from a state on to the end of the last epoch; the states.

    A loop makes the steps of a rank, of which there are ``most`` at most; the states of all ranks must be equal.
    """
    batch_size, world_size, tail = topology
    ranks, states = [], []
    for rank in range(world_size):
        where = {"rank": rank, "world_size": world_size, "tail": tail, "threads": 1, "seed": SEED}
        with stoker.Loader(dataset, batch_size, transform=stoker.CenterCrop(8), **where, **given) as loader:
            start = loader.state_dict() if state is None else state
            loader.load_state_dict(start)
            steps = []
            for batch in islice(loop(loader, start, epochs), most):
                assert loader.state_dict(batch.position) == loader.state_dict()
                steps.append((batch.indices[batch.valid].tolist(), json.loads(json.dumps(loader.state_dict()))))
        ranks.append([indices for indices, _ in steps])
        states.append([after for _, after in steps])
    assert all(each == states[0] for each in states)
    return [list(chain(*shares)) for shares in zip(*ranks, strict=True)], states[0]


def check_resume(
    dataset: stoker.Dataset | stoker.Mix,
    topologies: Sequence[tuple[int, int]],
    *,
    transform: Any = TRANSFORM,
    shuffle: bool | stoker.BlockShuffle = True,
    every: int = 1,
    limit: int | None = None,
    loader: Callable[..., stoker.Loader] = stoker.Loader,
    **more: Any,
) -> ResumeCheck:
    """Assert that a run goes on exactly after any stop, on any number of ranks and with any batch size.

    For every change from one topology to the next and every tail, runs are stopped and resumed from the state that was
    saved there; then one run goes through all topologies, with a stop after every step. All ranks are played in this
    process. Every sample must come once with the pixels of the epoch without a stop (what a tail omits or fills up
    excepted), the ranks must make the same number of steps, and their states must be equal and short.

    Args:
        dataset: What to read.
        topologies: Ranks and batch size of each run.
        transform: Of the loaders.
        shuffle: Of the loaders.
        every: Steps between two stops.
        limit: Samples to read at the end of the epoch. Default: all.
        loader: A class like `stoker.Loader`.
        more: Other settings of the loaders.
    """
    settings = {"transform": transform, "shuffle": shuffle, "seed": 17, "threads": 1, "prefetch": 2, **more}
    check = ResumeCheck(lambda **given: loader(dataset, **settings, **given), limit)
    turns = [Topology(batch_size, world_size=ranks) for ranks, batch_size in topologies]
    for before, after in pairwise(turns):
        for tail in get_args(Tail):
            check.change(replace(before, tail=tail), replace(after, tail=tail), every)
    check.take_turns(turns)
    return check


class ResumeCheck:
    """One check.

    Args:
        make: Returns the loader of a rank.
        limit: Samples to read at the end of the epoch; None: all.

    Attributes:
        size: Samples of an epoch.
        reference: Samples of the epoch without a stop, from the first that is read on.
        compared: Samples compared after stops, by the topologies before and after them and the tail; ``("all", "in
            turn", "short")`` of the run through all of them.
        state_bytes: Length of the longest state as JSON.
    """

    def __init__(self, make: Callable[..., stoker.Loader], limit: int | None) -> None:
        self._make = make
        self.compared: dict[tuple[str, str, str], int] = {}
        self.state_bytes = 0
        with make(batch_size=1, rank=0, world_size=1) as loader:
            self.size = len(loader)
            loader.set_epoch(EPOCH)
            first = 0 if limit is None else max(0, self.size - limit)
            self._start: dict[str, Any] = loader.state_dict() | {"consumed": first}
            loader.load_state_dict(self._start)
            self.reference = [content for batch in loader for content in contents_of(batch)]
            assert len(self.reference) == self.size - first
            if loader.settings.sampling is None and not isinstance(loader.dataset, stoker.Mix):
                assert len({content.index for content in self.reference}) == self.size - first

    def change(self, before: Topology, after: Topology, every: int) -> None:
        """Stop runs of one topology, and go on with the other."""
        states = [self._start, *(state for state, _ in self._run(before, self._start))]
        stops = [state for state in states if self._left(state, after)][::every]
        compared = sum(samples for stop in stops for _, samples in self._run(after, stop))
        self.compared[_name(before), _name(after), after.tail] = compared

    def take_turns(self, topologies: Sequence[Topology]) -> None:
        """Go through the epoch with another topology at every step."""
        state, compared = self._start, 0
        for topology in cycle(topologies):
            ((state, samples),) = islice(self._run(topology, state), 1)
            compared += samples
            if state["epoch"] != EPOCH:
                break
        self.compared["all", "in turn", topologies[0].tail] = compared

    def _left(self, state: dict[str, Any], topology: Topology) -> int:
        return steps_left(self.size, state["consumed"], topology) if state["epoch"] == EPOCH else 0

    def _run(self, topology: Topology, state: dict[str, Any]) -> Iterator[tuple[dict[str, Any], int]]:
        """Go on from a state to the end of the epoch; yield the state after each step, and how many samples it had."""
        where = f"{_name(topology)}, tail {topology.tail}, from {state['consumed']} samples on"
        position, left = state["consumed"], self._left(state, topology)
        given = {"batch_size": topology.batch_size, "tail": topology.tail, "world_size": topology.world_size}
        with ExitStack() as stack:
            ranks = [stack.enter_context(self._make(rank=rank, **given)) for rank in range(topology.world_size)]
            for loader in ranks:
                loader.load_state_dict(state)
            iterators = [iter(loader) for loader in ranks]
            for step in range(left):
                batches = [batch for batch in (next(iterator, None) for iterator in iterators) if batch is not None]
                assert len(batches) == len(ranks), f"{where}: {len(batches)} of {len(ranks)} ranks make step {step}"
                samples = self._compare(batches, position, topology, f"{where}, step {step}")
                position = min(position + topology.global_batch, self.size)
                is_over = step == left - 1
                expected = {"epoch": EPOCH + 1, "consumed": 0} if is_over else {"consumed": position}
                texts = [json.dumps(loader.state_dict()) for loader in ranks]
                assert [json.loads(text) for text in texts] == [self._start | expected] * len(ranks), where
                assert len(texts[0]) < STATE_BYTES, where
                self.state_bytes = max(self.state_bytes, len(texts[0]))
                yield json.loads(texts[0]), samples
            assert not any(next(iterator, None) for iterator in iterators), f"{where}: more than {left} steps"

    def _compare(self, batches: Sequence[stoker.Batch], before: int, topology: Topology, where: str) -> int:
        """Compare a step of all ranks with the epoch without a stop; return its number of samples."""
        shares, left = [len(batch) for batch in batches], self.size - before
        if left < topology.global_batch and topology.tail == "short":
            assert sum(shares) == left and max(shares) - min(shares) <= 1, f"{where}: {shares} of {left} samples"  # noqa: PT018
        else:
            assert shares == [topology.batch_size] * len(batches), f"{where}: {shares} samples"
        valid = [flag for batch in batches for flag in batch.valid.tolist()]
        contents = [content for batch in batches for content in contents_of(batch)]
        for position, content in enumerate(contents, before):
            row = position % self.size - self._start["consumed"]  # negative: fills up from what was not read
            assert row < 0 or content == self.reference[row], f"{where}: sample at position {position} differs"
        filled = [position < self.size or topology.tail != "pad" for position in range(before, before + len(valid))]
        assert valid == filled, f"{where}: valid is {valid}"
        return len(contents)


def _name(topology: Topology) -> str:
    return f"{topology.world_size} x {topology.batch_size}"
