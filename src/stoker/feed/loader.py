"""The loader: epochs of batches in a known order, decoded on native threads.

Failure protocol. An error of a sample is raised by the batch that holds it, at its turn, and names shard, record, byte
and source; the batches before it are delivered, the iteration then is over, and the state stays before the failed
batch. A consumer may leave an iteration early: its state says exactly where, and the next iteration is the next epoch.
`Loader.close`, the end of a ``with`` block and the end of the program stop the threads.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.config import available_cpus, check_range
from stoker.errors import ClosedError, ConfigError
from stoker.feed.batch import Batch
from stoker.feed.dataset import check_not_empty
from stoker.feed.engine import EngineSettings, SampleEngine
from stoker.order import EpochOrder, Step, Tail, Topology, steps_left, take_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from stoker.feed.dataset import Dataset
    from stoker.views import View

_STATE_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Position:
    epoch: int
    consumed: int


class Loader:
    """Epochs of fixed-shape image batches.

    Every iteration yields one whole epoch, the first one epoch 0 and each other the next, also when the one before was
    left early; after `load_state_dict` it yields the rest of the epoch that the state is in. The order is a pure
    function of (dataset, seed, epoch), and pixels of (seed, epoch, sample): threads, prefetch, batch size and the
    number of ranks never change them. One instance serves one consumer thread; any number may run at once.

    Args:
        dataset: What to read; see `stoker.open`.
        batch_size: Images per batch on this rank.
        view: What becomes of each image. With `stoker.ObjectCrops` samples are annotated objects, not images.
        shuffle: Whether every epoch has its own random order.
        seed: Of the order and of the views' random choices, 0 to 2**64 - 1.
        tail: What happens to samples that do not fill a last batch; see `stoker.order.Tail`.
        threads: Decoding threads; all CPUs of the process's affinity mask when left out.
        prefetch: Batches decoded ahead of the consumer; costs ``prefetch * batch_size * H * W * 3`` bytes.
        rank: This process's number among the ranks that consume an epoch together.
        world_size: How many they are.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more are refused before anything is allocated for them.

    Raises:
        ConfigError: A setting is out of range, or the dataset is empty or has no objects for `stoker.ObjectCrops`.
            Raised here, before any record is read.
        ShardError: While iterating: a record is damaged. With `stoker.ObjectCrops` also here, where the first loader
            of a dataset counts the objects of all records.
        ExampleError: While iterating: a record lacks the image or the label.
        ImageError: While iterating: an image cannot be decoded without losing pixels.

    Example:
        >>> with stoker.Loader(train, batch_size=64, view=stoker.CenterCrop(224)) as loader:  # doctest: +SKIP
        ...     images, labels = next(iter(loader))
    """

    def __init__(  # noqa: PLR0913 - the settings of a loader, all by name
        self,
        dataset: Dataset,
        *,
        batch_size: int,
        view: View,
        shuffle: bool = False,
        seed: int = 0,
        tail: Tail = "short",
        threads: int | None = None,
        prefetch: int = 3,
        rank: int = 0,
        world_size: int = 1,
        check: bool = True,
        max_pixels: int = _native.DEFAULT_MAX_PIXELS,
    ) -> None:
        check_not_empty(dataset)
        self.dataset = dataset
        self.topology = Topology(batch_size, rank, world_size, tail)
        self.view = view
        self._prefetch = check_range("prefetch", prefetch, 1, 1024)
        self._position = _Position(0, 0)
        self._begun = False  # whether batches of the current epoch were handed out in an iteration
        self._iterations = 0
        self._process = os.getpid()
        settings = EngineSettings(
            seed=check_range("seed", seed, 0, 2**64 - 1),
            check=check,
            max_pixels=check_range("max_pixels", max_pixels, 1, 2**32),
            batch_size=batch_size,
            threads=check_range("threads", available_cpus() if threads is None else threads, 1, 4096),
            spare_buffers=prefetch + 2,
        )
        self._engine = SampleEngine(dataset, view, settings)
        self._order = EpochOrder(self._engine.size, shuffle, seed, 0)
        # Runs at the latest when the interpreter exits, while the threads can still be joined.
        self._close = weakref.finalize(self, self._engine.close)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return steps_left(self._order.n, 0, self.topology)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the next epoch, or the rest of the one that a loaded state is in."""
        self._check_usable()
        self._iterations += 1
        self._engine.drop_pending()  # of an iteration that was left early
        if self._begun or steps_left(self._order.n, self._position.consumed, self.topology) == 0:
            self._go_to(_Position(self._position.epoch + 1, 0))
        return self._rest_of_epoch(self._iterations)

    def _rest_of_epoch(self, iteration: int) -> Iterator[Batch]:
        position = self._position
        order = replace(self._order, epoch=position.epoch)
        left = steps_left(order.n, position.consumed, self.topology)
        queued: deque[Step] = deque()
        ahead = position.consumed
        for number in range(left):
            while len(queued) < min(self._prefetch + 1, left - number):
                step = take_step(order, ahead, self.topology)
                if len(step.keys):
                    self._engine.submit(step.keys, order.epoch)
                queued.append(step)
                ahead = step.consumed
            batch = self._wait(queued.popleft(), iteration)
            yield batch
            self._check_current(iteration)
        self._go_to(_Position(position.epoch + 1, 0))

    def _go_to(self, position: _Position) -> None:
        self._position = position
        self._begun = False

    def _wait(self, step: Step, iteration: int) -> Batch:
        self._check_usable()
        self._check_current(iteration)
        if len(step.keys):
            images, labels, keys = self._engine.next()
        else:  # this rank's share of a short last step
            images, labels, keys = self._engine.nothing(), np.empty(0, np.int64), step.keys
        self._position = _Position(self._position.epoch, step.consumed)
        self._begun = True
        return Batch(images, labels, keys, step.valid)

    def _check_usable(self) -> None:
        if not self._close.alive:
            raise ClosedError("this loader is closed; make a new one")
        if os.getpid() != self._process:
            message = "this loader was made before a fork, and threads do not survive one"
            raise ClosedError(f"{message}; make the loader in the process that uses it")

    def _check_current(self, iteration: int) -> None:
        if iteration != self._iterations:
            raise ClosedError("another iteration of this loader has begun; one loader serves one iteration at a time")

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; the next iteration yields it."""
        self._go_to(_Position(check_range("epoch", epoch, 0, 2**63), 0))

    def state_dict(self) -> dict[str, Any]:
        """Return where this loader is: small enough for any checkpoint, valid for any topology, the same on every rank.

        It counts the batches that were handed out, not those decoded ahead.
        """
        return {
            "version": _STATE_VERSION,
            "dataset": self._engine.identity,
            "seed": self._order.seed,
            "shuffle": self._order.shuffle,
            "epoch": self._position.epoch,
            "consumed": self._position.consumed,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where another loader of the same dataset, seed and shuffle was; the next iteration goes on there.

        Raises:
            ConfigError: The state is of another dataset, seed or order, or is no such state.
        """
        mine = self.state_dict()
        if set(state) != set(mine):
            raise ConfigError(f"this is no state of a loader: it has the keys {sorted(state)}, not {sorted(mine)}")
        for key in ("version", "dataset", "seed", "shuffle"):
            if state[key] != mine[key]:
                raise ConfigError(f"the state is for {key} {state[key]!r}, but this loader has {mine[key]!r}")
        epoch = check_range("epoch", state["epoch"], 0, 2**63)
        self._go_to(_Position(epoch, check_range("consumed", state["consumed"], 0, self._order.n)))

    def close(self) -> None:
        """Stop the threads; the samples being decoded are finished first. Batches already handed out stay valid."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
