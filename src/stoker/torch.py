"""The loader for PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from stoker.errors import ConfigError
from stoker.feed import Loader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from torch import Tensor

    from stoker.feed import Batch, Dataset
    from stoker.views import View


@dataclass(frozen=True, slots=True)
class TorchBatch:
    """One batch as tensors; ``images, labels = batch`` unpacks the two that a training step needs.

    ========  ==================  ================================================================
    field     dtype and shape     meaning
    ========  ==================  ================================================================
    images    uint8 (B, H, W, 3)  RGB; ``images.permute(0, 3, 1, 2)`` is a channels-last NCHW view
    labels    int64 (B,)          as stored in the records; -1 where there is none
    keys      int64 (B,)          number of each sample in its split
    valid     bool (B,)           false where ``tail="pad"`` filled the batch up
    ========  ==================  ================================================================

    The tensors share the memory of the loader's arrays, or are pinned copies of them.
    """

    images: Tensor
    labels: Tensor
    keys: Tensor
    valid: Tensor

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.images, self.labels))


class DataLoader:
    """`stoker.Loader` for PyTorch: the same batches, as tensors.

    There are no worker processes: decoding runs on native threads, so nothing is forked or pickled.

    Args:
        dataset: What to read; see `stoker.open`.
        batch_size: Images per batch on this rank.
        view: What becomes of each image.
        pin_memory: Whether batches are copied to page-locked memory, for fast transfers to a GPU. Left out: if CUDA
            is there.
        settings: Any other setting of `stoker.Loader`. Rank and world size are those of ``torch.distributed`` when it
            is initialised and they are not given.

    Raises:
        ConfigError: A setting is out of range, or ``pin_memory`` is asked for without CUDA.
    """

    def __init__(
        self, dataset: Dataset, *, batch_size: int, view: View, pin_memory: bool | None = None, **settings: Any
    ) -> None:
        if pin_memory and not torch.cuda.is_available():
            raise ConfigError("pin_memory=True needs CUDA, which this PyTorch does not have; leave it out")
        self._pin = torch.cuda.is_available() if pin_memory is None else pin_memory
        distributed = torch.distributed
        if "rank" not in settings and distributed.is_available() and distributed.is_initialized():
            settings |= {"rank": distributed.get_rank(), "world_size": distributed.get_world_size()}
        self.loader = Loader(dataset, batch_size=batch_size, view=view, **settings)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return len(self.loader)

    def __iter__(self) -> Iterator[TorchBatch]:
        """Yield the next epoch, or the rest of a loaded state's, as `stoker.Loader` does."""
        return map(self._convert, iter(self.loader))

    def _convert(self, batch: Batch) -> TorchBatch:
        arrays = (batch.images, batch.labels, batch.keys.view("int64"), batch.valid)
        tensors = (torch.from_numpy(array) for array in arrays)
        return TorchBatch(*(tensor.pin_memory() if self._pin else tensor for tensor in tensors))

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch; the next iteration yields it."""
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return where this loader is; see `stoker.Loader.state_dict`."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to where another loader was; see `stoker.Loader.load_state_dict`."""
        self.loader.load_state_dict(state)

    def close(self) -> None:
        """Stop the threads; batches already handed out stay valid."""
        self.loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
