"""One batch as tensors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from stoker.feed.batch import batch_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.feed import Batch, Position
    from stoker.feed.batch import BatchOrigin


# Lightning's half precision casts the fields of a copy: it refuses frozen dataclasses, and passes over fields without
# init, which boxes in pixels and the position have to be.
@dataclass(slots=True, eq=False)
class TorchBatch:
    """One batch as tensors; ``images, labels = batch`` unpacks the two that a training step needs.

    ========  ======================  ============================================================================
    field     dtype and shape         meaning
    ========  ======================  ============================================================================
    images    that of the loader      as `stoker.Batch` has them: a tensor, or a tuple of them where the view gives
                                      several; ``images.permute(0, 3, 1, 2)`` is a channels-last view of NHWC
    labels    int64 (B,)              as stored in the records; -1 where there is none
    keys      int64 (B,)              number of each sample in its split
    valid     bool (B,)               false where ``tail="pad"`` filled the batch up
    seeds     int64 (B,)              for random choices of your own: the 64 bits of the batch's uint64
    boxes     as the batch has them   with tensors in the place of arrays; None without
    position  Position                where the loader is right after this batch; see `DataLoader.state_dict`
    origin    BatchOrigin             how a notebook shows it
    ========  ======================  ============================================================================

    The tensors share the memory of the loader's arrays, or are pinned copies of them.
    """

    images: Tensor | tuple[Tensor, ...]
    labels: Tensor
    keys: Tensor
    valid: Tensor
    seeds: Tensor
    boxes: Any = field(default=None, init=False)
    position: Position | None = field(default=None, init=False)
    origin: BatchOrigin | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return batch_text(self)

    def _repr_html_(self) -> str:
        from stoker.feed.notebook import batch_block  # noqa: PLC0415 - only notebooks need it

        return batch_block(self._each(_for_numpy))

    def __iter__(self) -> Iterator[Any]:
        return iter((self.images, self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device | str | int, *, non_blocking: bool | None = None) -> TorchBatch:
        """Return the batch with its tensors on a device.

        Args:
            device: Where to.
            non_blocking: Whether the copy may still run when this returns. Left out: where a tensor is pinned, which
                is always safe.
        """

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=tensor.is_pinned() if non_blocking is None else non_blocking)

        return self._each(move)

    def pin_memory(self) -> TorchBatch:
        """Return the batch in page-locked memory; needs CUDA."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> TorchBatch:
        return _changed(self, Tensor, change)


def torch_batch(batch: Batch) -> TorchBatch:
    """Return a batch as tensors that share its memory."""
    return _changed(batch, np.ndarray, _tensor)


def _changed(batch: Batch | TorchBatch, kind: type, change: Callable[[Any], Any]) -> TorchBatch:
    names = ("images", "labels", "keys", "valid", "seeds", "boxes", "position")
    *fields, boxes, position = (_mapped(getattr(batch, name), kind, change) for name in names)
    made = TorchBatch(*fields)
    made.boxes, made.position, made.origin = boxes, position, batch.origin
    return made


def tensors(value: Any) -> Any:
    """Return an array, or a tuple of them, as tensors that share its memory."""
    return _mapped(value, np.ndarray, _tensor)


def _for_numpy(tensor: Tensor) -> Tensor:
    """Return a tensor that NumPy can read: it knows no memory of a GPU, and no bfloat16."""
    there = tensor.detach().cpu()
    return there.float() if there.dtype == torch.bfloat16 else there


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    # PyTorch can do little with uint64; the bits stay.
    return torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)


def _mapped(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Return a value with everything of one kind in it changed: the value itself, or in tuples and dataclasses."""
    if isinstance(value, kind):
        return change(value)
    if type(value) is tuple:
        return tuple(_mapped(each, kind, change) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _mapped(getattr(value, f.name), kind, change) for f in dataclasses.fields(value) if f.init}
        return dataclasses.replace(value, **changed)
    return value
