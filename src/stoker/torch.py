"""The loader for PyTorch, and a map-style dataset for PyTorch's own loader."""

from __future__ import annotations

import copy
import dataclasses
import operator
import sys
import warnings
import weakref
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Never, cast, overload

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import SequentialSampler, get_worker_info
from typing_extensions import TypeVar  # PyTorch needs it, too

from stoker import _native
from stoker.config import check_range
from stoker.errors import ConfigError
from stoker.forks import process_number
from stoker.habits import (
    BATCHES,
    ITERATING,
    LOADERS,
    answer_to,
    needs_transform,
    no_attribute,
    refuse_no_transform,
    refuse_unknown,
)
from stoker.loader import (
    Dataset,
    Feed,
    LoaderSettings,
    SampleEngine,
    batch_text,
    box_classes,
    chosen_fields,
    dataset_of,
    loader_of,
    notebook_batch,
    row_of,
    settings_given,
    value_of_sample,
)
from stoker.order import Position, Step, unrepeated
from stoker.recipe import image_of
from stoker.transforms import CenterCrop, ImageTransform, MultiCrop, ObjectCrops, Output, Transform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Self

    from stoker.loader import (
        Balanced,
        Batch,
        BatchOrigin,
        BoxOutput,
        Loader,
        MemoryCache,
        Mix,
        NodeCache,
        OnBad,
        ReadAhead,
        Weighted,
    )
    from stoker.order import BlockShuffle, Tail
    from stoker.types import DecodeMode, Field

    OwnTransform = Callable[[Any], Any]

__all__ = ["DataLoader", "MapDataset", "TorchBatch"]

TransformT_co = TypeVar("TransformT_co", bound=Transform, covariant=True, default=ImageTransform | ObjectCrops)
ImagesT_co = TypeVar("ImagesT_co", bound=Tensor | tuple[Tensor, ...], covariant=True, default=Tensor)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__


if not TYPE_CHECKING:  # type checkers know the names

    def __getattr__(name: str) -> Never:
        raise AttributeError(f"module 'stoker.torch' has no attribute {name!r}{answer_to(name, __all__, {})}")


# Lightning's half precision casts the fields of a copy. It refuses frozen dataclasses, and skips fields without init,
# as it must skip boxes in pixels and the position.
@dataclass(slots=True, eq=False)
class TorchBatch(Generic[ImagesT_co]):
    """One batch as tensors; ``images, labels = batch`` unpacks the two that a training step needs.

    ========  ======================  ============================================================================
    field     dtype and shape         meaning
    ========  ======================  ============================================================================
    images    that of the loader      as in `stoker.Batch`: a tensor, or a tuple of them if the transform gives
                                      several; ``images.permute(0, 3, 1, 2)`` is a channels-last view of NHWC. PyTorch
                                      supports little for uint16, as in mode I;16: ask for floats, or convert it
    labels    int64 (B,)              as stored in the records; -1 for no label
    indices   int64 (B,)              index of each sample in its split
    valid     bool (B,)               false for samples that are repeated to fill the last batch of an epoch
    seeds     int64 (B,)              for random choices of your own: the 64 bits of the batch's uint64
    boxes     as in `stoker.Batch`    with tensors in place of arrays; None without
    fields    dict                    as in `stoker.Batch`, with tensors in place of arrays; empty without
    position  Position                where the loader is right after this batch; see `DataLoader.state_dict`
    origin    BatchOrigin             how a notebook shows it
    ========  ======================  ============================================================================

    The tensors share the memory of the loader's arrays, or are pinned copies of them.
    """

    images: ImagesT_co
    labels: Tensor
    indices: Tensor
    valid: Tensor
    seeds: Tensor
    boxes: Any = field(default=None, init=False)
    fields: dict[str, Any] = field(default_factory=dict, init=False)
    position: Position | None = field(default=None, init=False)
    origin: BatchOrigin | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return batch_text(self)

    def _repr_html_(self) -> str:
        return notebook_batch(self._each(_for_numpy))

    @overload
    def __iter__(self: TorchBatch[Tensor]) -> Iterator[Tensor]: ...
    @overload
    def __iter__(self) -> Iterator[Any]: ...
    def __iter__(self) -> Iterator[Any]:
        return iter((self.images, self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, key: object) -> Never:
        raise TypeError(f"stoker.torch.TorchBatch is no dict and no tuple: {BATCHES['[]']}")

    __getattr__ = no_attribute("stoker.torch.TorchBatch", BATCHES)

    def to(self, device: torch.device | str | int, *, non_blocking: bool | None = None) -> TorchBatch[ImagesT_co]:
        """Return the batch with its tensors on a device.

        Args:
            device: The target device.
            non_blocking: Whether the copy may still run when this returns. Default: if a tensor is pinned, which is
                always safe.
        """

        def move(tensor: Tensor) -> Tensor:
            return tensor.to(device, non_blocking=tensor.is_pinned() if non_blocking is None else non_blocking)

        return self._each(move)

    def pin_memory(self) -> TorchBatch[ImagesT_co]:
        """Return the batch in page-locked memory; needs CUDA."""
        return self._each(Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> TorchBatch[ImagesT_co]:
        return _changed(self, Tensor, change)


def torch_batch(batch: Batch) -> TorchBatch[Any]:
    """Return a batch as tensors that share its memory."""
    return _changed(batch, np.ndarray, _tensor)


def _changed(batch: Batch | TorchBatch[Any], kind: type, change: Callable[[Any], Any]) -> TorchBatch[Any]:
    names = ("images", "labels", "indices", "valid", "seeds", "boxes", "fields")
    *arrays, boxes, fields = (_mapped(getattr(batch, name), kind, change) for name in names)
    changed: TorchBatch[Any] = TorchBatch(*arrays)
    changed.boxes, changed.fields, changed.position, changed.origin = boxes, fields, batch.position, batch.origin
    return changed


def _for_numpy(tensor: Tensor) -> Tensor:
    """Return a tensor that NumPy can read: on the CPU, and not of bfloat16."""
    on_cpu = tensor.detach().cpu()
    return on_cpu.float() if on_cpu.dtype == torch.bfloat16 else on_cpu


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    # PyTorch supports little for uint64. The bits stay the same.
    return torch.from_numpy(array.view(np.int64) if array.dtype == np.uint64 else array)


def _mapped(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """Return a value in which all objects of a type are changed: itself, or those in tuples, dicts and dataclasses."""
    if isinstance(value, kind):
        return change(value)
    if type(value) is tuple:
        return tuple(_mapped(each, kind, change) for each in value)
    if type(value) is dict:
        return {name: _mapped(each, kind, change) for name, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _mapped(getattr(value, f.name), kind, change) for f in dataclasses.fields(value) if f.init}
        return dataclasses.replace(value, **changed)
    return value


class DataLoader(Generic[TransformT_co]):
    """`stoker.Loader` for PyTorch: the same batches, as tensors.

    There are no worker processes: decoding runs on native threads. It is not a ``torch.utils.data.DataLoader``, so that
    trainers do not split it among ranks: it already takes only the share of its rank. If it was made before the ranks
    were known, its first iteration raises; but if a trainer pickled it into a process that it has spawned, it takes the
    rank of that process at its first use. The settings are those of `stoker.Loader`, which explains them.

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
        pin_memory: Whether batches are copied to page-locked memory, for fast transfers to a GPU. Default: if there is
            CUDA. The consumer's thread makes the copy when it takes a batch.
        unknown: Not a setting: those of PyTorch's loader without a meaning here are refused with the one to use.

    Attributes:
        loader: The `stoker.Loader` behind it.

    Raises:
        ConfigError: A setting is out of range, or the launcher's variables for ranks make no sense. While iterating:
            ``torch.distributed`` was initialised after this loader was made, and has other ranks.
        TypeError: A setting does not exist.

    Warns:
        RankWarning: Two sources disagree about the ranks, or other processes may read the same samples.
        UserWarning: ``pin_memory=True``, and there is no CUDA.
    """

    _is_accelerate_prepared = True  # Accelerate then leaves the loader as it is
    prefetch_factor = None  # wrappers read it; there are no worker processes

    @needs_transform
    def __init__(
        self,
        dataset: Dataset | Mix,
        # settings: loader.settings.LoaderSettings transform=TransformT_co
        batch_size: int = 1,
        shuffle: bool | BlockShuffle = False,
        *,
        transform: TransformT_co,
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
        pin_memory: bool | None = None,
        **unknown: Never,
    ) -> None:
        settings = settings_given("stoker.torch.DataLoader", locals())
        if pin_memory and not torch.cuda.is_available():
            message = "pin_memory=True, but this PyTorch finds no CUDA device; batches stay in ordinary memory"
            warnings.warn(message, stacklevel=2)
        self._pin = torch.cuda.is_available() and pin_memory is not False
        self._discovered = settings.rank is None
        self._loaded = False  # whether the next batch is the first after a loaded state
        self._unpickled = False  # whether it came from another process and was not used yet
        self._asked = 0  # number of the batch that a stock loader requested last
        self._answers: Iterator[tuple[int, TorchBatch[Any]]] | None = None  # batches for it, with their numbers
        self.loader = loader_of(dataset, settings)

    @property
    def dataset(self) -> Dataset | Mix:
        """The dataset or mix that is read."""
        return self.loader.dataset

    @property
    def batch_size(self) -> int:
        """Images per batch on this rank."""
        return self.loader.topology.batch_size

    @property
    def sampler(self) -> _Epochs:
        """The sampler whose epoch a trainer sets; a new object each time."""
        settings = self.loader.settings
        return _Epochs(self) if settings.shuffle or settings.sampling else _SequentialEpochs(self)

    @property
    def batch_sampler(self) -> _BatchNumbers:
        """Numbers of batches, for wrappers that skip the first ones of an epoch; refuses wrappers that split them."""
        return _BatchNumbers(self)

    @property
    def collate_fn(self) -> Callable[[object], TorchBatch[Any]]:
        """The function that gives a wrapper of `batch_sampler` the batches that it did not skip."""
        return self._answer

    @property
    def worker_init_fn(self) -> Never:
        """Raises, so that Ray's ``prepare_data_loader`` fails instead of splitting the batches."""
        message = "stoker.torch.DataLoader has no worker processes, and takes its rank's share already"
        raise AttributeError(f"{message}; iterate it as it is, without ray.train.torch.prepare_data_loader()")

    def __repr__(self) -> str:
        return repr(self.loader).replace("<stoker.Loader", "<stoker.torch.DataLoader", 1)

    def _repr_html_(self) -> str:
        return self.loader._repr_html_().replace("stoker.Loader", "stoker.torch.DataLoader", 1)

    def __getitem__(self, key: object) -> Any:
        return self.loader[key]

    __getattr__ = no_attribute("stoker.torch.DataLoader", ITERATING)

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        self._take_rank()
        return len(self.loader)

    @overload
    def __iter__(self: DataLoader[MultiCrop]) -> Iterator[TorchBatch[tuple[Tensor, ...]]]: ...
    @overload
    def __iter__(self: DataLoader[ImageTransform | ObjectCrops]) -> Iterator[TorchBatch]: ...
    def __iter__(self) -> Iterator[TorchBatch[Any]]:
        """Yield the next epoch, or the rest of a loaded state's, as `stoker.Loader` does."""
        self._take_rank()
        self.loader._check_group()
        return self._epoch()

    def _epoch(self) -> Iterator[TorchBatch[Any]]:
        # Trainers make iterators that they never use, and set an epoch after they have made one: so everything waits
        # for the first batch.
        batches = iter(self.loader)
        self._loaded = self._unpickled = False
        progress = _Progress(self.loader)
        with _shown_to_accelerate(progress):
            for batch in batches:
                progress.steps -= 1
                converted = torch_batch(batch)
                yield converted.pin_memory() if self._pin else converted

    def _answer(self, _: object) -> TorchBatch[Any]:
        """Return the batch with the requested number; batches before the first requested one are skipped."""
        if self._answers is None:
            self._skip(self._asked)
            self._answers = enumerate(self, self._asked)
        number, batch = next(self._answers)
        if number != self._asked:
            raise ConfigError(_NOT_TO_SPLIT)
        return batch

    def _skip(self, batches: int) -> None:
        consumed = batches * self.loader.topology.global_batch
        iter(self.loader)  # goes to the next epoch, if this one has begun
        state = self.loader.state_dict()
        if state["consumed"] not in (0, consumed):
            message = f"{batches} batches are to be skipped, which are {consumed} samples of epoch {state['epoch']}"
            message += f", but the loaded state has consumed {state['consumed']}"
            raise ConfigError(f"{message}; skip batches or load a state, not both")
        self.loader.load_state_dict(self.loader.state_dict(Position(state["epoch"], consumed)))

    def _take_rank(self) -> None:
        """Take the rank that this process has now, if a trainer pickled the loader here before the ranks were known."""
        distributed = torch.distributed
        if self._unpickled and self._discovered and distributed.is_available() and distributed.is_initialized():
            self._unpickled = False
            early, self.loader = self.loader, copy.copy(self.loader)
            early.close()

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__.update(saved, _unpickled=True)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch, which the next iteration yields. A loaded state in this epoch stays.

        Trainers call it before each epoch, even before the one that they resume.

        Warns:
            UserWarning: A state was loaded, is in another epoch and was not used.
        """
        current = self.loader.state_dict()["epoch"]
        if self._loaded and current == epoch:
            return
        if self._loaded:
            message = f"set_epoch({epoch}) drops the loaded state, which is in epoch {current}"
            warnings.warn(f"{message}; go on with epoch {current}, as with loader.state_dict()['epoch']", stacklevel=2)
        self._loaded = False
        self.loader.set_epoch(epoch)

    def state_dict(self, position: Position | None = None) -> dict[str, Any]:
        """Return the state of this loader; see `stoker.Loader.state_dict`.

        Args:
            position: Position of the last batch that was used (`TorchBatch.position`), if something in between takes
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

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Epochs:
    """A sampler for trainers that set its epoch, as Lightning does before each epoch.

    A loaded state has priority: the rest of its epoch comes first, even if the trainer considers that epoch over
    because its limit of steps has cut it short.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        if not self._loader._loaded:
            self._loader.set_epoch(epoch)


class _SequentialEpochs(_Epochs, SequentialSampler):
    """The same for a loader that does not shuffle; trainers check for it before they use the same images again."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        _Epochs.__init__(self, loader)
        SequentialSampler.__init__(self, loader.dataset)


_NOT_TO_SPLIT = (
    "stoker.torch.DataLoader takes its own share of every batch; nothing can split it. To go on in the middle of an "
    "epoch use load_state_dict(), or skip fewer batches than it has"
)


class _BatchNumbers:
    """The batches of an epoch by number, in place of a batch sampler.

    `accelerate.skip_first_batches`, and with it the Trainer of transformers, builds a stock loader of this and of the
    loader's `DataLoader.collate_fn`. The lists of samples are empty: `collate_fn` returns the batch.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        self._loader.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        loader = self._loader
        loader._answers = None
        try:
            for number in range(len(loader)):
                loader._asked = number
                yield []
            if loader._answers is None:
                raise ConfigError(_NOT_TO_SPLIT)
        finally:
            loader._answers = None


class _Progress:
    """The state of an iteration, for Accelerate's ``accumulate`` and ``gather_for_metrics``."""

    def __init__(self, loader: Loader) -> None:
        feed, consumed = loader.feed, loader.state_dict()["consumed"]
        self.steps = feed.steps_after(consumed)  # batches of this epoch that are still to come
        # Samples of the last batch, over all ranks, that are not repeats; 0: there are no repeats.
        self.remainder = unrepeated(feed.samples.length, consumed, feed.topology)

    @property
    def end_of_dataloader(self) -> bool:
        return self.steps == 0


@contextmanager
def _shown_to_accelerate(progress: _Progress) -> Iterator[None]:
    """Register an iteration with Accelerate while it runs, if the program has imported it."""
    accelerate: Any = sys.modules.get("accelerate.state")
    if accelerate is None:
        yield
        return
    state = accelerate.GradientState()
    state.dataloader_references = [*state.dataloader_references, progress]
    try:
        yield
    finally:
        state = accelerate.GradientState()
        state.dataloader_references = [each for each in state.dataloader_references if each is not progress]


class MapDataset(TorchDataset[tuple[Any, ...]]):
    """A dataset for ``torch.utils.data.DataLoader`` and for samplers of your own: pairs of image and label.

    With ``fields`` an item is the image, the label and a dict of the fields: text, bytes and JSON as they are, numbers
    as tensors, masks and extra images as tensors with the geometry of the image. ``default_collate`` turns them into
    what `TorchBatch` has, except for JSON, whose values it collates, too, and for arrays and labels whose number
    differs: these need ``pad_to``, or a collate of your own.

    An image is a tensor, or with `stoker.MultiCrop` a tuple of them, one for each transform. Functions of your own get
    it as a Pillow image (a tuple of them), as the ``transform`` of torchvision's datasets does. Pixels are those of
    `stoker.torch.DataLoader` with the same seed, in the same epoch. The indices of a whole batch, which the stock
    loader requests together, are decoded at once by native threads, so ``num_workers=0`` is already parallel. In worker
    processes, forked or spawned, it decodes with one thread, unless ``threads`` says otherwise. Not safe from several
    threads of one process.

    Args:
        dataset: What to read; see `stoker.open`.
        transform: How an image becomes a tensor: a transform of Stoker's, a function of your own, or a list that starts
            with one of Stoker's and goes on with functions, each of which gets what the one before returned. A function
            that comes first gets the whole image, decoded by the thread that asks for it. With `stoker.ObjectCrops`
            samples are annotated objects, not images.
        seed: Seed of the random choices of Stoker's transform, 0 to 2**64 - 1.
        output: Type, layout and scale of the pixels. Default: uint8, NHWC. Not with functions of your own.
        fields: Names of the fields of the dataset that items have, or a mapping from names to `stoker.fields`. If a
            function of your own comes first, masks and extra images are as large as they are stored.
        threads: Number of decoding threads. Default: as many as `stoker.Loader` starts; one in a worker process.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more pixels are refused before anything is allocated for them.
        unknown: Not a setting: those of PyTorch's loader are refused with what to use instead.

    Attributes:
        dataset: The dataset that is read.
        classes: Names of the classes, by label, as torchvision's datasets have them; empty where unknown.

    Raises:
        ConfigError: A setting is out of range, ``dataset`` is a mix or lacks a field, or ``transform`` is not of these
            forms; or, in a spawned worker, another dataset lies where this one was opened.
        ShardError: On use: a record is damaged.
        ExampleError: On use: a record lacks the image or the label.
        ImageError: On use: an image cannot be decoded without losing pixels.
    """

    @needs_transform
    def __init__(
        self,
        dataset: Dataset,
        transform: Transform | OwnTransform | Sequence[Transform | OwnTransform],
        *,
        seed: int = 0,
        output: Output | None = None,
        fields: Sequence[str] | Mapping[str, Field] = (),
        threads: int | None = None,
        check: bool = True,
        max_pixels: int = _native.DEFAULT_MAX_PIXELS,
        **unknown: Never,
    ) -> None:
        refuse_unknown("stoker.torch.MapDataset", unknown, locals(), LOADERS)
        refuse_no_transform("stoker.torch.MapDataset", transform)
        dataset = dataset_of(dataset)
        if not isinstance(dataset, Dataset):
            message = f"MapDataset takes one dataset, and not {dataset!r}"
            raise ConfigError(f"{message}; a mix has positions in an epoch: give it to stoker.torch.DataLoader")
        self.dataset = dataset
        self.classes = [known.name for known in dataset.classes]
        self.transform = transform
        self._fields = chosen_fields(dataset, fields)
        self._first, self._functions = _split(transform)
        if self._functions and output is not None:
            message = f"functions of your own get Pillow images, so there is no output={output!r}"
            raise ConfigError(f"{message}; omit it and convert in the last function")
        self._process = process_number()
        self._settings = LoaderSettings(
            transform=self._first or CenterCrop(1),  # functions alone need no engine
            seed=seed,
            output=output,
            fields=self._fields,
            threads=threads,
            prefetch=0,
            rank=0,
            world_size=1,
            check=check,
            max_pixels=max_pixels,
        )
        self._size = len(dataset)
        if isinstance(self._first, ObjectCrops):
            self.classes = [known.name for known in box_classes(dataset.schema, dataset.classes)]
            self._size = int(np.maximum(dataset.object_counts, 1).sum())
        # In shared memory, so that workers that outlive an epoch see the next one.
        self._epoch = cast("Any", torch.zeros((), dtype=torch.int64)).share_memory_()
        self._engine: SampleEngine | None = None
        self._most = 0  # samples that the engine takes at once

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._size

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """Return one image, as the transform shows it in this epoch, its label, and its fields if ``fields`` has some.

        Raises:
            IndexError: There is no such sample.
        """
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return several samples at once; the stock loader calls this. The images share one block of memory.

        Raises:
            IndexError: There is no such sample.
        """
        if not indices:
            return []
        if self._process != process_number():  # a fork: the engine is the parent's
            self._engine, self._process = None, process_number()
        numbers = [self._number(index) for index in indices]
        samples = self._whole(numbers) if self._first is None else self._transformed(numbers)
        return [(self._through_functions(image), *others) for image, *others in samples]

    def _whole(self, numbers: list[int]) -> Iterator[tuple[Any, ...]]:
        forms = {name: field.form() for name, field in self._fields.items()}
        for sample in map(self.dataset.__getitem__, numbers):
            if not forms:
                yield sample.decode(), sample.label
                continue
            known = dataclasses.replace(sample, schema=dataclasses.replace(sample.schema, fields=self._fields)).fields
            values = {name: value_of_sample(form, known[name]) for name, form in forms.items()}
            yield sample.decode(), sample.label, _mapped(values, np.ndarray, _tensor)

    def _transformed(self, numbers: list[int]) -> Iterator[tuple[Any, ...]]:
        engine = self._engine_for(len(numbers))
        slots = np.array(numbers, np.uint64)
        engine.submit(Step(slots, np.ones(len(slots), np.bool_), consumed=0), int(self._epoch))
        batch = engine.next()
        images = batch.images if self._functions else _mapped(batch.images, np.ndarray, _tensor)
        each = zip(*images, strict=True) if isinstance(images, tuple) else images
        labels = batch.labels.tolist()
        if not self._fields:
            return zip(each, labels, strict=True)
        fields = _mapped(batch.fields, np.ndarray, _tensor)
        rows = ({name: row_of(value, row) for name, value in fields.items()} for row in range(len(labels)))
        return zip(each, labels, rows, strict=True)

    def _through_functions(self, image: Any) -> Any:
        if self._functions:
            image = _mapped(image, np.ndarray, image_of)
        for function in self._functions:
            image = function(image)
        return image

    def set_epoch(self, epoch: int) -> None:
        """Go to an epoch, in which random transforms make other choices. Running worker processes follow."""
        self._epoch.fill_(check_range("epoch", epoch, 0, 2**63 - 1))

    def close(self) -> None:
        """Stop the threads of this process; using it again starts new ones."""
        if self._engine is not None:
            self._close_engine()
            self._engine = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_engine": None, "_close_engine": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _process=process_number())

    def _number(self, index: int) -> int:
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(f"{index!r} is no number of a sample; for a part, give MapDataset dataset[:1000]") from None
        if not -self._size <= index < self._size:
            raise IndexError(f"there is no sample {index}; split {self.dataset.split} has {self._size}")
        return index % self._size

    def _engine_for(self, count: int) -> SampleEngine:
        if self._engine is None or self._most < count:
            self.close()
            self._most = check_range("the number of samples asked for at once", count, 1, 2**20)
            settings = dataclasses.replace(self._settings, batch_size=self._most)
            if settings.threads is None and get_worker_info() is not None:
                settings = dataclasses.replace(settings, threads=1)
            self._engine = SampleEngine(Feed(self.dataset, settings))
            # At the latest when the interpreter exits; in a forked process it does nothing.
            self._close_engine = weakref.finalize(self, self._engine.close)
        return self._engine


def _split(
    transform: Transform | OwnTransform | Sequence[Transform | OwnTransform],
) -> tuple[Transform | None, tuple[OwnTransform, ...]]:
    """Return the transform of Stoker's that comes first, if one does, and the functions after it."""
    steps = list(transform) if isinstance(transform, (list, tuple)) else [transform]
    if not steps:
        raise ConfigError("transform is an empty list; give a transform of Stoker's, a function, or both")
    first = steps[0] if isinstance(steps[0], Transform) else None
    functions: list[OwnTransform] = []
    for step in steps[0 if first is None else 1 :]:
        if isinstance(step, Transform):
            raise ConfigError(f"transform has {step!r} in its list; only the first may be one of Stoker's")
        if not callable(step):
            message = f"transform is {step!r}; it must be a transform of Stoker's, a function of your own"
            raise ConfigError(f"{message}, or a list that starts with one of Stoker's")
        functions.append(step)
    return first, tuple(functions)
