"""The resume law, tried with real loaders on any dataset."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, get_args

from stoker.config import available_cpus, check_range
from stoker.errors import ConfigError
from stoker.feed import Loader
from stoker.order import Tail, Topology, steps_left
from stoker.testing.ranks import Ranks
from stoker.testing.reference import Reference
from stoker.testing.report import ResumeChange, ResumeReport
from stoker.views import RandomResizedCrop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stoker.feed import Dataset
    from stoker.order import BlockShuffle
    from stoker.testing.ranks import PlayedStep
    from stoker.views import View

TOPOLOGIES = ((1, 7), (3, 32), (2, 5), (8, 7))
"""Ranks and batch sizes that a run goes through, unless others are named."""

_EPOCH = 1  # not the first one, so that a loader which forgets the epoch is noticed
_STOPS = 8
_STOPS_OF_OTHER_TAILS = 3


def check_resume(  # noqa: PLR0913 - settings, all by name
    dataset: Dataset,
    *,
    view: View | None = None,
    batch_size: int = 32,
    topologies: Sequence[tuple[int, int]] = TOPOLOGIES,
    seed: int = 17,
    shuffle: bool | BlockShuffle = True,
    every: int | None = None,
    limit: int = 256,
    loader: Callable[..., Loader] = Loader,
) -> ResumeReport:
    """Check on a dataset that a run goes on exactly after any stop, on any number of ranks and with any batch size.

    An uninterrupted epoch on one rank is the reference. Then, for every change from one topology to the next and every
    tail, runs are stopped, and resumed from the state that was saved there; at the end one run goes through all
    topologies in turn, with a stop after every step. All ranks are played in this process. Each must give every sample
    exactly once with the same pixels and label (what a tail leaves out or fills up excepted), the ranks must make the
    same number of steps, and a state must be the same on every rank and shorter than 200 bytes of JSON.

    With the defaults some ten thousand images are decoded, which takes seconds.

    Args:
        dataset: What to read.
        view: What becomes of each image; a random crop to 32 pixels, mirrored half of the time, when left out.
        batch_size: Of the uninterrupted epoch.
        topologies: Ranks and batch size of each run, in order; at least two.
        seed: Of the order and of the view's random choices.
        shuffle: Kind of the order.
        every: Steps between two stops, 1 being every step; when left out, as many as make 8 stops for ``short`` and 3
            for each other tail.
        limit: Samples to read of an epoch: of a larger one, the last ones.
        loader: What makes the loaders: a class with the settings and methods of `stoker.Loader`.

    Raises:
        AssertionError: The law does not hold; the message names the run and the first step or sample that breaks it.
        ConfigError: A setting is out of range.
    """
    chain = [Topology(size, world_size=ranks) for ranks, size in topologies]
    if len(chain) < 2:
        raise ConfigError(f"topologies has {len(chain)} of them; name at least two, to change from one to the other")
    check_range("limit", limit, 1, 2**62)
    settings = {"view": view or RandomResizedCrop(32, hflip=0.5), "seed": seed, "shuffle": shuffle}
    check = _Check(loader, dataset, settings, None if every is None else check_range("every", every, 1, 2**62))
    check.read_reference(Topology(batch_size), limit)
    return check.report(chain)


class _Check:
    """One check: its loaders, its reference and what it has counted."""

    def __init__(
        self, loader: Callable[..., Loader], dataset: Dataset, settings: dict[str, Any], every: int | None
    ) -> None:
        self._loader = loader
        self._dataset = dataset
        self._settings = settings
        self._every = every
        self._start: dict[str, Any] = {}  # state before the first sample that is read
        self.reference = Reference(0, 0)
        self.state_bytes = 0

    def ranks(self, topology: Topology) -> Ranks:
        """Open the loaders of all ranks."""

        def make(rank: int) -> Loader:
            return self._loader(
                self._dataset,
                batch_size=topology.batch_size,
                tail=topology.tail,
                rank=rank,
                world_size=topology.world_size,
                threads=max(1, available_cpus() // topology.world_size),
                prefetch=2,
                **self._settings,
            )

        return Ranks(make, topology.world_size)

    def read_reference(self, topology: Topology, limit: int) -> None:
        """Read the end of an epoch without a stop."""
        with self._loader(self._dataset, batch_size=1, rank=0, world_size=1, threads=1, **self._settings) as single:
            size = len(single)  # batches of one: of objects, too, this is how many there are
            single.set_epoch(_EPOCH)
            self._start = single.state_dict() | {"consumed": max(0, size - limit)}
        self.reference = Reference(self._start["consumed"], size)
        with self.ranks(topology) as ranks:
            for step in ranks.play(self._start, "the uninterrupted epoch"):
                self.reference.add(step.batches[0])
        self.reference.finish()

    def report(self, chain: list[Topology]) -> ResumeReport:
        """Try every change with every tail, and all of them in turn."""
        changes = [
            self.change(replace(before, tail=tail), replace(after, tail=tail))
            for before, after in pairwise(chain)
            for tail in get_args(Tail)
        ]
        changes.append(self.all_in_turn(chain))
        return ResumeReport(
            dataset=f"{self._dataset.path} ({self._dataset.split})",
            samples=len(self.reference.sequence),
            epoch_samples=self.reference.size,
            epoch=_EPOCH,
            seed=self._settings["seed"],
            state_bytes=self.state_bytes,
            changes=tuple(changes),
        )

    def change(self, before: Topology, after: Topology) -> ResumeChange:
        """Stop a run of one topology at many steps, and go on with the other."""
        with self.ranks(before) as ranks:
            run = self._run(ranks, before, self._start, f"{_name(before)}, tail {before.tail}")
            states = [self._start, *(step.state for step, _ in run)]
        stops = [state for state in states if steps_left(self.reference.size, state["consumed"], after)]
        most = _STOPS if after.tail == "short" else _STOPS_OF_OTHER_TAILS
        stops = stops[:: self._every or max(1, -(-len(stops) // most))]
        compared: list[int] = []
        with self.ranks(after) as ranks:
            for stop in stops:
                where = f"{_name(before)} -> {_name(after)}, tail {after.tail}, stopped at {stop['consumed']} samples"
                compared += [samples for _, samples in self._run(ranks, after, stop, where)]
        return ResumeChange(_name(before), _name(after), after.tail, len(stops), len(compared), sum(compared))

    def all_in_turn(self, chain: list[Topology]) -> ResumeChange:
        """Go through one epoch with another topology at every step."""
        compared: list[int] = []
        state = self._start
        for topology in cycle(chain):
            with self.ranks(topology) as ranks:
                where = f"all in turn, {_name(topology)} from {state['consumed']} samples on"
                step, samples = next(self._run(ranks, topology, state, where))
            compared.append(samples)
            state = step.state
            if state["consumed"] == self.reference.size:
                break
        return ResumeChange("all", "in turn", chain[0].tail, len(compared) - 1, len(compared), sum(compared))

    def _run(
        self, ranks: Ranks, topology: Topology, state: dict[str, Any], where: str
    ) -> Iterator[tuple[PlayedStep, int]]:
        """Go on from a state and hold every step against the reference; yield it and how many samples it had."""
        position = state["consumed"]
        left = steps_left(self.reference.size, position, topology)
        made = 0
        for step in ranks.play(state, where) if left else ():  # of nothing, a loader would begin the next epoch
            if step.number == left:
                raise AssertionError(f"{where}: the ranks make more than the {left} steps that are left")
            samples = self.reference.check(step, position, topology, where)
            position = min(position + topology.global_batch, self.reference.size)
            expected = self._start | {"consumed": position}
            if step.state != expected:
                raise AssertionError(f"{where}, step {made}: the state is {step.state}, and should be {expected}")
            self.state_bytes = max(self.state_bytes, step.state_bytes)
            made += 1
            yield step, samples
        if made < left:
            raise AssertionError(f"{where}: the ranks make {made} steps, where {left} are left")


def _name(topology: Topology) -> str:
    return f"{topology.world_size} x {topology.batch_size}"
