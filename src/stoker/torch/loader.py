"""The loader for PyTorch, on its own or in the hands of a trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data import SequentialSampler

from stoker.errors import ConfigError
from stoker.feed import Loader
from stoker.torch.batch import TorchBatch, torch_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from stoker.feed import Batch, Dataset, Mix, Position
    from stoker.views import View


class DataLoader:
    """`stoker.Loader` for PyTorch: the same batches, as tensors.

    There are no worker processes: decoding runs on native threads, so nothing is forked or pickled. It is no
    ``torch.utils.data.DataLoader``, which keeps trainers from splitting it among ranks a second time: it takes its own
    share already. Where it is made before the ranks are known, its first iteration says so.

    Args:
        dataset: What to read; see `stoker.open` and `stoker.mix`.
        batch_size: Images per batch on this rank.
        view: What becomes of each image.
        pin_memory: Whether batches are copied to page-locked memory, for fast transfers to a GPU. Left out: if CUDA
            is there. The copy is made by the consumer's thread when it takes a batch.
        rank: This process's number among the ranks that consume an epoch together. Left out, like ``world_size``: as
            the framework or the launcher says; see `stoker.feed.ranks`.
        world_size: How many they are.
        settings: Any other setting of `stoker.Loader`.

    Attributes:
        loader: The `stoker.Loader` behind it.

    Raises:
        ConfigError: A setting is out of range, ``pin_memory`` is asked for without CUDA, or what the launcher says of
            the ranks makes no sense. While iterating: ``torch.distributed`` was initialised only afterwards, and says
            otherwise.

    Warns:
        RankWarning: Two sources disagree about the ranks.
    """

    _is_accelerate_prepared = True  # what Accelerate leaves as it is
    prefetch_factor = None  # of worker processes, which wrappers ask for

    def __init__(
        self,
        dataset: Dataset | Mix,
        *,
        batch_size: int,
        view: View,
        pin_memory: bool | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        **settings: Any,
    ) -> None:
        if pin_memory and not torch.cuda.is_available():
            raise ConfigError("pin_memory=True needs CUDA, which this PyTorch does not have; leave it out")
        self._pin = torch.cuda.is_available() if pin_memory is None else pin_memory
        self._discovered = rank is None
        self._loaded = False  # whether the next batch is the first after a loaded state
        self.loader = Loader(dataset, batch_size=batch_size, view=view, rank=rank, world_size=world_size, **settings)
        self._shuffled = bool(settings.get("shuffle", False))

    @property
    def dataset(self) -> Dataset | Mix:
        """What is read."""
        return self.loader.dataset

    @property
    def batch_size(self) -> int:
        """Images per batch on this rank."""
        return self.loader.topology.batch_size

    @property
    def sampler(self) -> _Epochs:
        """What a trainer tells the epoch to; made anew each time."""
        return _Epochs(self) if self._shuffled else _SequentialEpochs(self)

    @property
    def batch_sampler(self) -> _NoBatchSampler:
        """What refuses a wrapper that wants to skip batches or to split them."""
        return _NoBatchSampler()

    def __repr__(self) -> str:
        return repr(self.loader).replace("<stoker.Loader", "<stoker.torch.DataLoader", 1)

    def _repr_html_(self) -> str:
        return self.loader._repr_html_().replace("stoker.Loader", "stoker.torch.DataLoader", 1)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return len(self.loader)

    def __iter__(self) -> Iterator[TorchBatch]:
        """Yield the next epoch, or the rest of a loaded state's, as `stoker.Loader` does."""
        self._check_ranks()
        return self._epoch()

    def _epoch(self) -> Iterator[TorchBatch]:
        # Trainers ask for iterators that they never use, and go to an epoch after they have asked for one: all is left
        # to the first batch.
        batches = iter(self.loader)
        self._loaded = False
        for batch in batches:
            yield self._convert(batch)

    def _convert(self, batch: Batch) -> TorchBatch:
        made = torch_batch(batch)
        return made.pin_memory() if self._pin else made

    def _check_ranks(self) -> None:
        distributed = torch.distributed
        if not (self._discovered and distributed.is_available() and distributed.is_initialized()):
            return
        mine = self.loader.topology
        rank, world_size = distributed.get_rank(), distributed.get_world_size()
        if (rank, world_size) != (mine.rank, mine.world_size):
            message = f"this loader was made for rank {mine.rank} of {mine.world_size}, before torch.distributed"
            message += f" was initialised, which says rank {rank} of {world_size}"
            remedy = "make it afterwards (with Lightning in train_dataloader()), or give rank= and world_size="
            raise ConfigError(f"{message}; {remedy}")

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; the next iteration yields it."""
        self._loaded = False
        self.loader.set_epoch(epoch)

    def state_dict(self, position: Position | None = None) -> dict[str, Any]:
        """Return where this loader is; see `stoker.Loader.state_dict`.

        Args:
            position: That of the last batch that was used (`TorchBatch.position`), where something between takes
                batches ahead of their use.
        """
        return self.loader.state_dict(position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where another loader was; see `stoker.Loader.load_state_dict`."""
        self.loader.load_state_dict(state)
        self._loaded = True

    def close(self) -> None:
        """Stop the threads; batches already handed out stay valid."""
        self.loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Epochs:
    """What a trainer takes for a sampler, to tell it the epoch: Lightning does so before each.

    A loaded state counts for more: what is left of its epoch comes first, also where the trainer takes that epoch for
    over because its limit of steps has cut it short.
    """

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        if not self._loader._loaded:
            self._loader.set_epoch(epoch)


class _SequentialEpochs(_Epochs, SequentialSampler):
    """The same for a loader that does not shuffle: trainers that want to look at the same images again ask for it."""

    def __init__(self, loader: DataLoader) -> None:
        _Epochs.__init__(self, loader)
        SequentialSampler.__init__(self, loader.dataset)


class _NoBatchSampler:
    """Trainers ask whether there is one, and only those that would rebuild the loader ask for its batches."""

    def __iter__(self) -> Iterator[list[int]]:
        message = "stoker.torch.DataLoader takes its own share of every batch; nothing can split it or skip its batches"
        raise ConfigError(f"{message}. To go on in the middle of an epoch use load_state_dict()")
