"""The loader for JAX: an endless stream of pytrees, on the host or on a sharding."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.loader import Loader, box_arrays

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from stoker.loader import Batch, Dataset, Mix
    from stoker.transforms import Transform


class BatchIterator:
    """Batches of one epoch after another, as dicts; made by `batches`. Serves one thread.

    Attributes:
        loader: The loader behind it.
    """

    def __init__(self, loader: Loader, epochs: int | None, sharding: jax.sharding.Sharding | None) -> None:
        self.loader = loader
        self._epochs = epochs
        self._sharding = sharding
        self._epoch: Iterator[Batch] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """Batches of a whole epoch, the same on every process."""
        return len(self.loader)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, Any]:
        """Return the next batch, of the next epoch where this one is over.

        Raises:
            StopIteration: All epochs that were asked for are over.
            StokerError: A sample is bad; the state stays before its batch.
        """
        while True:
            if self._epoch is None:
                self._epoch = iter(self.loader)
                if self._epochs is not None and self.loader.state_dict()["epoch"] >= self._epochs:
                    self._epoch = None
                    raise StopIteration
            try:
                batch = next(self._epoch, None)
            except BaseException:  # Ctrl-C, too: the next call tries this batch again, and skips nothing
                self.set_state(self.get_state())
                raise
            if batch is not None:
                leaves = _leaves(batch)
                return leaves if self._sharding is None else self._on_devices(leaves, self._sharding)
            self._epoch = None

    def _on_devices(self, leaves: dict[str, Any], sharding: jax.sharding.Sharding) -> dict[str, Any]:
        halves = {name: _halves(leaves[name]) for name in ("indices", "seeds")}
        narrow = jax.tree.map(_narrow, {name: leaves[name] for name in leaves.keys() - halves.keys()}) | halves
        place = partial(_place, sharding, self.loader.topology.world_size)
        placed: dict[str, Any] = jax.tree.map(place, narrow)
        return placed

    def get_state(self) -> dict[str, Any]:
        """Return where this iterator is, after the last batch it gave; see `stoker.Loader.state_dict`."""
        return self.loader.state_dict()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to where another one was, or a loader of another framework; see `stoker.Loader.load_state_dict`."""
        self.loader.load_state_dict(state)
        self._epoch = None

    def close(self) -> None:
        """Stop the threads; batches already given stay valid."""
        self.loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def batches(
    dataset: Dataset | Mix,
    *,
    batch_size: int,
    transform: Transform,
    sharding: jax.sharding.Sharding | None = None,
    shard_index: int | None = None,
    shard_count: int | None = None,
    epochs: int | None = None,
    **settings: Any,
) -> BatchIterator:
    """Return an iterator of batches, through one epoch after another, each in its own order.

    A batch is a dict. Without ``sharding`` its leaves are the loader's own NumPy arrays; with it, each is a global
    ``jax.Array`` over the batches of all processes. Unless JAX is configured to have numbers of 64 bits, some
    leaves then have another type; no bit is lost:

    ==========  =====================  ===================  =====================================================
    leaf        without sharding       with sharding        meaning
    ==========  =====================  ===================  =====================================================
    ``images``  uint8 (B, H, W, 3)     the same             RGB 0..255; of `stoker.MultiCrop` a tuple
    ``labels``  int64 (B,)             int32 (B,)           as stored in the records; -1 where there is none
    ``indices``  uint64 (B,)            uint32 (B, 2)        index of each sample: high half, low half
    ``valid``   bool (B,)              the same             false where ``tail="pad"`` filled the batch up
    ``seeds``   uint64 (B,)            uint32 (B, 2)        random bits of each sample in this epoch; the pairs are
                                                            what ``jax.random.wrap_key_data`` takes
    ``boxes``   with ``boxes=`` only   int32 for int64      a dict of the arrays of `stoker.Boxes` or
                                                            `stoker.PaddedBoxes`; of `stoker.MultiCrop` a tuple
    ==========  =====================  ===================  =====================================================

    With ``sharding`` ``B`` is the batch of all processes together, otherwise that of this one.

    Args:
        dataset: What to read; see `stoker.open` and `stoker.mix`.
        batch_size: Images per batch on this process.
        transform: What becomes of each image.
        sharding: How batches lie on the devices of all processes: along their first axis, which is the only one that it
            may divide, as ``NamedSharding(mesh, PartitionSpec("data"))``. Every process has to give its own part.
        shard_index: This process's number; left out: ``jax.process_index()``.
        shard_count: How many processes share an epoch; left out: ``jax.process_count()``.
        epochs: The iterator ends before epoch ``epochs``, counted from 0 in whatever state it begins; None: never.
        settings: Any other setting of `stoker.Loader`, but ``rank`` and ``world_size``.

    Raises:
        ConfigError: A setting is out of range; or an epoch has no batch; or, with ``sharding``, batches may be smaller
            than ``batch_size``, do not divide among the devices, or are shared by others than JAX's processes.
    """
    if epochs is not None:
        check_range("epochs", epochs, 1, 2**63)
    ranks: dict[str, Any] = {
        "rank": jax.process_index() if shard_index is None else shard_index,
        "world_size": jax.process_count() if shard_count is None else shard_count,
    }
    if sharding is not None:
        _check_one_shape(settings)
        _check_sharding(sharding, batch_size, ranks["world_size"])
    loader = Loader(dataset, batch_size=batch_size, transform=transform, **ranks, **settings)
    if len(loader) == 0:
        loader.close()
        message = f"an epoch has no batch: {ranks['world_size']} x {batch_size} is more than all samples"
        raise ConfigError(f"{message}, and tail='drop' leaves out what does not fill one")
    return BatchIterator(loader, epochs, sharding)


def _check_one_shape(settings: Mapping[str, Any]) -> None:
    if settings.get("tail", "short") == "short":
        message = "with sharding all batches have one shape, which tail='short' does not give"
        raise ConfigError(f"{message}; use tail='pad' (batch['valid'] marks what was filled up), 'wrap' or 'drop'")
    boxes = settings.get("boxes")
    if boxes is not None and boxes.pad_to is None:
        raise ConfigError("with sharding all batches have one shape; say how many boxes: BoxOutput(pad_to=...)")


def _check_sharding(sharding: jax.sharding.Sharding, batch_size: int, shard_count: int) -> None:
    if shard_count != jax.process_count():
        message = f"shard_count is {shard_count}, but with sharding batches are those of JAX's {jax.process_count()}"
        raise ConfigError(f"{message} processes; omit it")
    try:
        sharding.shard_shape((batch_size * shard_count,))
    except ValueError as error:
        message = f"batches of {batch_size} on {shard_count} processes do not divide by the sharding"
        raise ConfigError(f"{message} {sharding}, which must be along the first axis alone: {error}") from error


def _leaves(batch: Batch) -> dict[str, Any]:
    leaves = {name: getattr(batch, name) for name in ("images", "labels", "indices", "valid", "seeds")}
    return leaves if batch.boxes is None else leaves | {"boxes": box_arrays(batch.boxes)}


def _halves(numbers: Any) -> Any:
    """Return uint64 (B,) as uint32 (B, 2), high half first."""
    return np.stack([numbers >> np.uint64(32), numbers & np.uint64(0xFFFFFFFF)], axis=1).astype(np.uint32)


def _narrow(labels: Any) -> Any:
    if labels.dtype != np.int64:
        return labels
    narrow = labels.astype(np.int32)
    if (narrow != labels).any():
        raise ConfigError(
            f"label {labels[narrow != labels][0]} does not fit into int32, which JAX has; see docs/how-to/jax.md"
        )
    return narrow


def _place(sharding: jax.sharding.Sharding, shard_count: int, array: Any) -> jax.Array:
    shape = (len(array) * shard_count, *array.shape[1:])
    placed: jax.Array = jax.make_array_from_process_local_data(sharding, array, shape)  # type: ignore[no-untyped-call]
    return placed
