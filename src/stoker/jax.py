"""The loader for JAX: an endless stream of pytrees, on the host or on a sharding."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Never

import jax
import numpy as np

from stoker import _native
from stoker.config import check_range, without_address
from stoker.errors import ConfigError
from stoker.habits import needs_transform
from stoker.loader import Loader, chosen_fields, loader_of, plain_arrays, settings_given

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from stoker.loader import (
        Balanced,
        Batch,
        BoxOutput,
        Dataset,
        LoaderSettings,
        MemoryCache,
        Mix,
        NodeCache,
        OnBad,
        ReadAhead,
        Weighted,
    )
    from stoker.order import BlockShuffle, Tail
    from stoker.transforms import Output, Transform
    from stoker.types import DecodeMode, Field

__all__ = ["BatchIterator", "batches"]


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


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
        """Return the next batch; if an epoch is over, the first batch of the next one.

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
                if self._sharding is None:
                    return leaves
                placed: dict[str, Any] = jax.tree.map(
                    partial(_place, self._sharding, self.loader.topology.world_size), leaves, is_leaf=_is_list
                )
                return placed
            self._epoch = None

    def get_state(self) -> dict[str, Any]:
        """Return the state after the last batch that was returned; see `stoker.Loader.state_dict`."""
        return self.loader.state_dict()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go to where another iterator or loader was, in any framework; see `stoker.Loader.load_state_dict`."""
        self.loader.load_state_dict(state)
        self._epoch = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_epoch": None}  # the state of the loader says where in the epoch it is

    def close(self) -> None:
        """Stop the threads; batches already given stay valid."""
        self.loader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


@needs_transform
def batches(
    dataset: Dataset | Mix,
    # settings: loader.settings.LoaderSettings
    batch_size: int = 1,
    shuffle: bool | BlockShuffle = False,
    *,
    transform: Transform,
    drop_last: bool = False,
    tail: Tail | None = None,
    sampling: Balanced | Weighted | None = None,
    max_samples: int | None = None,
    seed: int | None = None,
    output: Output | None = None,
    boxes: BoxOutput | None = None,
    fields: Sequence[str] | Mapping[str, Field] = (),
    decode: DecodeMode = "exact",
    threads: int | None = None,
    prefetch: int = 3,
    rank: int | None = None,
    world_size: int | None = None,
    check_ranks: bool = True,
    check: bool = True,
    max_pixels: int = _native.DEFAULT_MAX_PIXELS,
    cache: MemoryCache | NodeCache | None = None,
    read_ahead: ReadAhead | None = None,
    on_bad: OnBad = "raise",
    max_bad: int = 100,
    # end of settings
    epochs: int | None = None,
    sharding: jax.sharding.Sharding | None = None,
    **unknown: Never,
) -> BatchIterator:
    """Return an iterator of batches, epoch after epoch, each in its own order.

    A batch is a dict. Without ``sharding`` its leaves are NumPy arrays; with it, each is a global ``jax.Array`` over
    the batches of all processes. Either way they have types that JAX keeps, so that ``jax.jit`` truncates no number:

    ===========  =====================  =============================================================================
    leaf         dtype and shape        meaning
    ===========  =====================  =============================================================================
    ``images``   uint8 (B, H, W, C)     C is 3 in mode RGB, 1 in L, 4 in RGBA; I;16 is uint16 (B, H, W, 1); with
                                        `stoker.MultiCrop` a tuple
    ``labels``   int32 (B,)             as stored in the records; -1 for no label
    ``indices``  int32 (B,)             index of each sample in its split
    ``valid``    bool (B,)              false for samples that are repeated to fill the last batch of an epoch
    ``seeds``    uint32 (B, 2)          random bits of each sample in this epoch, as ``jax.random.wrap_key_data`` takes
                                        them
    ``boxes``    with ``boxes=`` only   a dict of the arrays of `stoker.Boxes` or `stoker.PaddedBoxes`, int32 for int64;
                                        with `stoker.MultiCrop` a tuple
    ``fields``   with ``fields=`` only  a dict: text, bytes and JSON as lists of this process's samples, the rest as
                                        arrays, `stoker.fields.Ragged` and `stoker.fields.Padded` as dicts of their
                                        arrays; int32 for int64, float32 for float64
    ===========  =====================  =============================================================================

    With ``jax_enable_x64``, int32 becomes int64. With ``sharding``, ``B`` is the batch of all processes together,
    otherwise that of this process.

    The settings are those of `stoker.Loader`, which explains them. If JAX runs on several processes, ``rank`` and
    ``world_size`` are by default ``jax.process_index()`` and ``jax.process_count()``.

    Args:
        dataset: What to read; see `stoker.open` and `stoker.mix`.
        batch_size: Number of images of a batch on this rank.
        shuffle: Whether each epoch has its own random order.
        transform: How each image is cropped, resized and changed.
        drop_last: Whether samples that do not fill a batch on every rank are left out of an epoch.
        tail: What happens to samples that do not fill a last batch.
        sampling: How often each class or sample comes in an epoch.
        max_samples: Number of samples of an epoch, over all ranks. Default: all.
        seed: Seed of the order and of the random choices. Default: a new one; 0 on several ranks.
        output: Type, layout and scale of the pixels.
        boxes: How batches hold the boxes of the annotated objects of their samples.
        fields: Names of the fields of the dataset that batches have, or a mapping from names to `stoker.fields`.
        decode: ``"exact"`` or ``"fast"``.
        threads: Number of decoding threads. Default: one per CPU of this rank.
        prefetch: Number of batches decoded ahead of the consumer.
        rank: Rank of this process, from 0. Default: as the framework or the launcher says.
        world_size: Number of ranks. Default: as ``rank``.
        check_ranks: Whether to raise an error if another rank has other settings or another state.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more pixels are refused before anything is allocated for them.
        cache: Where samples are cached after they are read.
        read_ahead: How much of a dataset in a bucket or in HDFS is fetched ahead.
        on_bad: What happens when a sample cannot be loaded.
        max_bad: Number of bad samples that an epoch may replace on this rank.
        epochs: The iterator ends before epoch ``epochs``, counted from 0 whatever state it begins with; None: never.
        sharding: How batches are placed on the devices of all processes. It may divide only their first axis, such as
            ``NamedSharding(mesh, PartitionSpec("data"))``, and every process has to give its own part. All batches then
            have one shape, so the default of ``tail`` is ``"pad"`` on a single process, too.
        unknown: Not a setting: keywords of other libraries are refused with the setting to use instead.

    Raises:
        ConfigError: A setting is out of range; or an epoch has no batch; or, while iterating, a label or an index does
            not fit into JAX's integers; or, with ``sharding``, batches may be smaller than ``batch_size``, do not
            divide among the devices, or have other ranks than JAX's processes.
        TypeError: A setting does not exist.
    """
    settings = settings_given("stoker.jax.batches", locals())
    if epochs is not None:
        check_range("epochs", epochs, 1, 2**63)
    if rank is None and world_size is None and jax.process_count() > 1:
        settings = replace(settings, rank=jax.process_index(), world_size=jax.process_count())
    if sharding is not None:
        if not isinstance(sharding, jax.sharding.Sharding):
            message = f"sharding is {without_address(sharding)}; it must be a sharding"
            raise ConfigError(f"{message}, such as jax.sharding.SingleDeviceSharding(device)")
        settings = replace(settings, tail="pad" if tail is None and not drop_last else tail)
        _check_one_shape(settings, chosen_fields(dataset, fields))
    loader = loader_of(dataset, settings)
    try:
        if sharding is not None:
            _check_sharding(sharding, loader.topology.batch_size, loader.topology.world_size)
        if len(loader) == 0:
            message = f"an epoch has no batch: {loader.topology.world_size} x {batch_size} is more than all samples"
            raise ConfigError(f"{message}, and drop_last=True leaves out what does not fill one")
    except BaseException:
        loader.close()
        raise
    return BatchIterator(loader, epochs, sharding)


def _check_one_shape(settings: LoaderSettings, fields: Mapping[str, Field]) -> None:
    if settings.tail == "short":
        message = "with sharding all batches have one shape, which tail='short' does not give"
        raise ConfigError(f"{message}; omit it (batch['valid'] then marks what is repeated), or give drop_last=True")
    if settings.boxes is not None and settings.boxes.pad_to is None:
        raise ConfigError("with sharding all batches have one shape; say how many boxes: BoxOutput(pad_to=...)")
    for name, field in fields.items():
        if field.form().kind == "ragged":
            message = f"with sharding all batches have one shape, which the field {name!r} does not give"
            padded = f"stoker.fields.{type(field).__name__}(..., pad_to=8)"
            raise ConfigError(f"{message}; give it with pad_to: fields={{{name!r}: {padded}}}")


def _check_sharding(sharding: jax.sharding.Sharding, batch_size: int, world_size: int) -> None:
    if world_size != jax.process_count():
        message = f"world_size is {world_size}, but with sharding batches are those of JAX's {jax.process_count()}"
        alone = f"give rank={jax.process_index()}, world_size={jax.process_count()}"
        raise ConfigError(f"{message} processes; call jax.distributed.initialize() first, or {alone}")
    try:
        sharding.shard_shape((batch_size * world_size,))
        _place(sharding, world_size, np.zeros(batch_size, np.bool_))  # as labels will be
    except (ValueError, IndexError) as error:
        message = f"batches of {batch_size} on {world_size} processes do not divide by the sharding"
        raise ConfigError(f"{message} {sharding}, which must be along the first axis alone: {error}") from error


def _leaves(batch: Batch) -> dict[str, Any]:
    leaves = {"images": batch.images, "labels": _fitting("label", batch.labels)}
    leaves |= {"indices": _fitting("sample index", batch.indices), "valid": batch.valid, "seeds": _halves(batch.seeds)}
    if batch.boxes is not None:
        leaves["boxes"] = jax.tree.map(partial(_fitting, "number of the boxes"), plain_arrays(batch.boxes))
    if batch.fields:
        leaves["fields"] = {
            name: jax.tree.map(partial(_fitting, f"number of the field {name!r}"), value, is_leaf=_is_list)
            for name, value in plain_arrays(batch.fields).items()
        }
    return leaves


def _is_list(value: object) -> bool:
    """Return whether a leaf is a list of text, bytes or JSON, which stays on the host as it is."""
    return isinstance(value, list)


def _halves(numbers: Any) -> Any:
    """Return uint64 (B,) as uint32 (B, 2), high half first."""
    return numbers.astype(">u8").view(">u4").reshape(-1, 2).astype(np.uint32)


def _fitting(what: str, numbers: Any) -> Any:
    """Return numbers of 64 bits in the types that JAX has for them, and everything else as it is."""
    if _is_list(numbers) or numbers.dtype not in (np.int64, np.uint64, np.float64):
        return numbers
    if numbers.dtype == np.float64:
        return numbers.astype(jax.dtypes.canonicalize_dtype(np.float64))
    fitting = numbers.astype(jax.dtypes.canonicalize_dtype(np.int64))
    if (fitting != numbers).any():
        message = f"{what} {numbers[fitting != numbers][0]} does not fit into int32, the integers of JAX"
        raise ConfigError(f'{message}; call jax.config.update("jax_enable_x64", True) first')
    return fitting


def _place(sharding: jax.sharding.Sharding, world_size: int, array: Any) -> Any:
    if _is_list(array):
        return array
    shape = (len(array) * world_size, *array.shape[1:])
    placed: jax.Array = jax.make_array_from_process_local_data(sharding, array, shape)  # type: ignore[no-untyped-call]
    return placed
