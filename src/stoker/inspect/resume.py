"""Check on any dataset that a run resumes exactly with other numbers of ranks and other batch sizes."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import cycle, pairwise
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from stoker import _native
from stoker.config import available_cpus, check_range
from stoker.errors import ConfigError
from stoker.loader import Loader, Objects
from stoker.order import Tail, Topology, steps_left
from stoker.transforms import ObjectCrops, RandomResizedCrop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    from stoker.loader import Batch, Dataset
    from stoker.order import BlockShuffle
    from stoker.transforms import Transform

__all__ = ["ResumeChange", "ResumeReport", "check_resume"]


STATE_BYTES = 200
"""A state is shorter than this, as JSON."""
TOPOLOGIES = ((1, 7), (3, 32), (2, 5), (8, 7))
"""Ranks and batch sizes that a run goes through, unless others are named."""

_EPOCH = 1  # not the first one, so that a loader which forgets the epoch is noticed
_STOPS = 8
_STOPS_OF_OTHER_TAILS = 3


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """One step of all ranks.

    Attributes:
        number: From 0, since the state that was loaded.
        batches: What each rank was given.
        state: The state right after it, the same on every rank, as it comes out of JSON.
        state_bytes: Its length as JSON.
    """

    number: int
    batches: list[Batch]
    state: dict[str, Any]
    state_bytes: int


class RankLoaders:
    """The loaders of all ranks; a context manager, which closes them.

    Args:
        make: Returns the loader of a rank.
        world_size: Number of ranks.
    """

    def __init__(self, make: Callable[[int], Loader], world_size: int) -> None:
        self._stack = ExitStack()
        with ExitStack() as opened:
            self._loaders = [opened.enter_context(make(rank)) for rank in range(world_size)]
            self._stack = opened.pop_all()

    def play(self, state: dict[str, Any], where: str) -> Iterator[PlayedStep]:
        """Load a state on every rank, and yield the steps from there to the end of the epoch.

        Args:
            state: Where to go on.
            where: What to say in a message.

        Raises:
            AssertionError: The ranks do not make the same number of steps, or their states differ or are too long.
        """
        for loader in self._loaders:
            loader.load_state_dict(state)
        iterators = [iter(loader) for loader in self._loaders]
        number = 0
        while True:
            batches = [batch for batch in (next(iterator, None) for iterator in iterators) if batch is not None]
            if not batches:
                return
            if len(batches) < len(iterators):
                raise AssertionError(f"{where}: only {len(batches)} of {len(iterators)} ranks make step {number}")
            yield PlayedStep(number, batches, *self._state(f"{where}, step {number}"))
            number += 1

    def _state(self, where: str) -> tuple[dict[str, Any], int]:
        texts = [json.dumps(loader.state_dict()) for loader in self._loaders]
        for rank, text in enumerate(texts):
            if text != texts[0]:
                raise AssertionError(f"{where}: the state of rank {rank} is {text}, but that of rank 0 is {texts[0]}")
        if len(texts[0]) >= STATE_BYTES:
            raise AssertionError(f"{where}: the state has {len(texts[0])} bytes, not below {STATE_BYTES}: {texts[0]}")
        return json.loads(texts[0]), len(texts[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


@dataclass(frozen=True, slots=True)
class Content:
    """What a sample became.

    Attributes:
        pixels: CRC-32C of each image that was made of it.
        label: Its class.
        seed: Its random number, for transforms of the user's own.
    """

    pixels: tuple[int, ...]
    label: int
    seed: int


@dataclass(slots=True)
class Reference:
    """The samples of an uninterrupted epoch, from a position on.

    Attributes:
        start: The position.
        size: Samples of a whole epoch.
        indices: What the numbers of samples are below: more than ``size`` where the dataset is a part of a split.
        sequence: Numbers of the samples from ``start`` on.
        contents: What each of them became.
    """

    start: int
    size: int
    indices: int
    sequence: list[int] = field(default_factory=list)
    contents: dict[int, Content] = field(default_factory=dict)

    def add(self, batch: Batch) -> None:
        """Take down the next batch of the uninterrupted epoch.

        Raises:
            AssertionError: A sample comes twice.
        """
        for index, content in zip(batch.indices.tolist(), contents_of(batch), strict=True):
            position = self.start + len(self.sequence)
            if index in self.contents:
                message = f"the uninterrupted epoch: sample {index} comes again at position {position}"
                raise AssertionError(f"{message}; it came at {self.start + self.sequence.index(index)}")
            self.sequence.append(index)
            self.contents[index] = content

    def finish(self) -> None:
        """Look at the whole.

        Raises:
            AssertionError: A sample is missing, or there is one too many.
        """
        expected = self.size - self.start
        if len(self.sequence) != expected:
            raise AssertionError(f"the uninterrupted epoch: {len(self.sequence)} samples came, and not {expected}")
        strange = next((index for index in self.sequence if not 0 <= index < self.indices), None)
        if strange is not None:
            raise AssertionError(f"the uninterrupted epoch: there is no sample {strange}; there are {self.indices}")

    def check(self, step: PlayedStep, before: int, topology: Topology, where: str) -> int:
        """Hold one step of a run against the uninterrupted epoch.

        Args:
            step: What the ranks were given.
            before: Position before the step.
            topology: Ranks, batch size and tail of the run; its rank is not looked at.
            where: What to say in a message.

        Returns:
            How many samples were compared.

        Raises:
            AssertionError: A sample is another one, or has other pixels, another label or another seed, or counts as
                valid where it should not, or the other way round; or the shares of the ranks are wrong.
        """
        where = f"{where}, step {step.number}"
        left = self.size - before
        self._check_shares([len(batch) for batch in step.batches], left, topology, where)
        position = before
        for rank, batch in enumerate(step.batches):
            for index, valid, content in zip(
                batch.indices.tolist(), batch.valid.tolist(), contents_of(batch), strict=True
            ):
                self._check_sample(position, index, content, f"{where}, rank {rank}")
                if valid != (position < self.size or topology.tail != "pad"):
                    raise AssertionError(
                        f"{where}, rank {rank}: sample {index} at position {position} has valid={valid}"
                    )
                position += 1
        return position - before

    def _check_shares(self, shares: list[int], left: int, topology: Topology, where: str) -> None:
        expected = topology.global_batch
        if left < expected and topology.tail == "short":
            if sum(shares) == left and max(shares) - min(shares) <= 1:
                return
            raise AssertionError(f"{where}: {left} samples are left, and the ranks take {shares} of them")
        if any(share != topology.batch_size for share in shares):
            raise AssertionError(f"{where}: the ranks take {shares} samples, and not {topology.batch_size} each")

    def _check_sample(self, position: int, index: int, content: Content, where: str) -> None:
        place = position % self.size - self.start
        if place < 0:  # a filling from a part of the epoch that was not read
            return
        expected = self.sequence[place]
        if index != expected:
            message = f"{where}: position {position} holds sample {index}, where the uninterrupted epoch has {expected}"
            raise AssertionError(f"{message}; so a sample comes twice and another never")
        known = self.contents[index]
        if content.pixels != known.pixels:
            message = f"{where}: sample {index} has other pixels than in the uninterrupted epoch"
            raise AssertionError(f"{message}: CRC-32C {_hex(content)}, not {_hex(known)}")
        if content.label != known.label:
            raise AssertionError(f"{where}: sample {index} has label {content.label}, not {known.label}")
        if content.seed != known.seed:
            raise AssertionError(f"{where}: sample {index} has the seed {content.seed}, not {known.seed}")


def contents_of(batch: Batch) -> list[Content]:
    """Return what each sample of a batch became."""
    parts = batch.images if isinstance(batch.images, tuple) else (batch.images,)
    arrays = [np.asarray(part) for part in parts]
    return [
        Content(tuple(_native.crc32c(array[row].tobytes()) for array in arrays), label, seed)
        for row, (label, seed) in enumerate(zip(batch.labels.tolist(), batch.seeds.tolist(), strict=True))
    ]


def _hex(content: Content) -> str:
    return " ".join(f"{crc:08x}" for crc in content.pixels)


@dataclass(frozen=True, slots=True)
class ResumeChange:
    """One change of topology, and at how many places of an epoch it was tried.

    Attributes:
        before: Ranks and batch size up to the stop, such as ``1 x 7``; of the row of all changes, in their turn.
        after: Ranks and batch size from there on.
        tail: What happened to samples that filled no last batch.
        stops: How often a run was stopped and resumed.
        steps: Steps that all ranks made together after a stop.
        samples: Samples that were compared after a stop, on all ranks together.
    """

    before: str
    after: str
    tail: str
    stops: int
    steps: int
    samples: int


@dataclass(frozen=True, slots=True)
class ResumeReport:
    """What a check of resuming has tried, without finding a fault. ``str(report)`` is a table.

    Attributes:
        dataset: What was read.
        samples: Samples that were read of the epoch: all, or its last ones.
        epoch_samples: Samples of an epoch.
        epoch: Number of the epoch.
        seed: Of the order and the pixels.
        state_bytes: Length of the longest state that was seen, as JSON.
        changes: What was tried.
    """

    dataset: str
    samples: int
    epoch_samples: int
    epoch: int
    seed: int
    state_bytes: int
    changes: tuple[ResumeChange, ...]

    def __str__(self) -> str:
        part = "all" if self.samples == self.epoch_samples else f"the last {self.samples:,} of"
        samples = f"{part} {self.epoch_samples:,} samples of epoch {self.epoch}, seed {self.seed}"
        lines = [
            f"resuming is exact: {self.dataset}, {samples}; states of at most {self.state_bytes} bytes",
            f"{'before':>12}    {'after':<12}{'tail':<7}{'stops':>7}{'steps':>9}{'samples':>11}",
        ]
        lines += [
            f"{row.before:>12} -> {row.after:<12}{row.tail:<7}{row.stops:>7,}{row.steps:>9,}{row.samples:>11,}"
            for row in self.changes
        ]
        return "\n".join(lines)


def check_resume(  # noqa: PLR0913 - settings, all by name
    dataset: Dataset,
    *,
    transform: Transform | None = None,
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
        transform: What becomes of each image; a random crop to 32 pixels, mirrored half of the time, when left out.
        batch_size: Of the uninterrupted epoch.
        topologies: Ranks and batch size of each run, in order; at least two.
        seed: Of the order and of the transform's random choices.
        shuffle: Kind of the order.
        every: Steps between two stops, 1 being every step; when left out, as many as make 8 stops for ``short`` and 3
            for each other tail.
        limit: Samples to read of an epoch: of a larger one, the last ones.
        loader: What makes the loaders: a class with the settings and methods of `stoker.Loader`.

    Raises:
        AssertionError: Resuming is not exact; the message names the run and the first step or sample that breaks it.
        ConfigError: A setting is out of range.
    """
    chain = [Topology(size, world_size=ranks) for ranks, size in topologies]
    if len(chain) < 2:
        raise ConfigError(f"topologies has {len(chain)} of them; name at least two, to change from one to the other")
    check_range("limit", limit, 1, 2**62)
    settings = {"transform": transform or RandomResizedCrop(32, hflip=0.5), "seed": seed, "shuffle": shuffle}
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
        self.reference = Reference(0, 0, 0)
        self.state_bytes = 0

    def ranks(self, topology: Topology) -> RankLoaders:
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

        return RankLoaders(make, topology.world_size)

    def read_reference(self, topology: Topology, limit: int) -> None:
        """Read the end of an epoch without a stop."""
        with self._loader(self._dataset, batch_size=1, rank=0, world_size=1, threads=1, **self._settings) as single:
            size = len(single)  # batches of one: of objects, too, this is how many there are
            single.set_epoch(_EPOCH)
            self._start = single.state_dict() | {"consumed": max(0, size - limit)}
        whole = len(self._dataset.whole)
        if isinstance(self._settings["transform"], ObjectCrops):
            whole = Objects(self._dataset, shuffle=False, seed=0).indices
        self.reference = Reference(self._start["consumed"], size, whole)
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
        stops = [state for state in states if self._left(state, after)]
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
            if state["epoch"] != _EPOCH:
                break
        return ResumeChange("all", "in turn", chain[0].tail, len(compared) - 1, len(compared), sum(compared))

    def _left(self, state: dict[str, Any], topology: Topology) -> int:
        """Return the number of steps from a state to the end of the epoch that is read."""
        return steps_left(self.reference.size, state["consumed"], topology) if state["epoch"] == _EPOCH else 0

    def _run(
        self, ranks: RankLoaders, topology: Topology, state: dict[str, Any], where: str
    ) -> Iterator[tuple[PlayedStep, int]]:
        """Go on from a state and hold every step against the reference; yield it and how many samples it had."""
        position, left = state["consumed"], self._left(state, topology)
        made = 0
        for step in ranks.play(state, where):
            if step.number == left:
                raise AssertionError(f"{where}: the ranks make more than the {left} steps that are left")
            samples = self.reference.check(step, position, topology, where)
            position = min(position + topology.global_batch, self.reference.size)
            over = step.number == left - 1
            expected = self._start | ({"epoch": _EPOCH + 1, "consumed": 0} if over else {"consumed": position})
            if step.state != expected:
                raise AssertionError(f"{where}, step {made}: the state is {step.state}, and should be {expected}")
            self.state_bytes = max(self.state_bytes, step.state_bytes)
            made += 1
            yield step, samples
        if made < left:
            raise AssertionError(f"{where}: the ranks make {made} steps, where {left} are left")


def _name(topology: Topology) -> str:
    return f"{topology.world_size} x {topology.batch_size}"
