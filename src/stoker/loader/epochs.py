"""Which samples an epoch has, and which record, object and random choices each stands for.

An epoch is a sequence of *slots* ``0 .. size - 1``. Of a dataset a slot is a position in it: of an image, or
with `stoker.ObjectCrops` of an annotated object. Of a mix (`MixedSamples`), and where samples or classes come as often
as their weights say (`Sampled`), it is a position in the epoch; there everything is a function of (seed, epoch,
position) in whole numbers, so that an epoch goes on exactly on any topology. `docs/explanation/determinism.md` defines
it. The native readers know the whole split, so the images of a part are asked for by their numbers in that.
"""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stoker import _native
from stoker.config import check_range, format_count, without_address
from stoker.errors import ConfigError
from stoker.loader.dataset import Dataset
from stoker.loader.pictures import box_classes
from stoker.loader.read_ahead import Upcoming
from stoker.loader.selection import label_named, numbers_at, refuse_unlabelled, same_numbers
from stoker.order import BlockShuffle, EpochOrder, random_numbers, steps_from, steps_left

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from stoker.format import ClassLabel
    from stoker.order import Position, Topology
    from stoker.types import Exif, Field, Mode


# Keep what is drawn for these apart from what else is drawn from a loader's seed.
# "mixt" and "samp" keep these numbers apart from what else is drawn from the seed of a loader.
_MIX_PURPOSE, _SAMPLING_PURPOSE = 0x6D697874, 0x73616D70

_ONE = 2**32
"""The heaviest weight as a whole number: lighter ones are rounded to parts of it."""

WHOLE_IMAGE = -1
"""The object of a sample that is all of its image."""


class Request(NamedTuple):
    """The samples that the core is asked for."""

    numbers: NDArray[np.uint64]  # uint64 (B,), images of the source
    objects: NDArray[np.int32] | None  # int32 (B,), which object of each, or `WHOLE_IMAGE`; None: all whole
    indices: NDArray[np.uint64]  # uint64 (B,), what the batch calls the samples
    streams: NDArray[np.uint64]  # uint64 (B,), what random choices depend on, besides seed and epoch


class Samples(ABC):
    """The samples of a loader. Immutable, and safe from any thread."""

    classes: Sequence[ClassLabel]  # name and text of each class that samples have, by label; none where unknown
    has_box_classes = False  # whether these are those of boxes alone, so that an image without any has none

    def __init__(self, size: int, identity: str, *, shuffle: bool | BlockShuffle, seed: int) -> None:
        self.size = self.length = size  # number of slots, and of positions of an epoch
        self.identity = identity  # stands for the data and for what a sample of them is
        self._shuffle, self._seed = shuffle, seed

    def order(self, epoch: int) -> EpochOrder:
        """Return the order of the slots in an epoch."""
        return EpochOrder(self.size, self._shuffle, self._seed, epoch, self.length)

    def until(self, length: int) -> Self:
        """Return the same samples in epochs that have the first positions of each order only."""
        part = copy(self)
        part.length = length
        return part

    @abstractmethod
    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        """Return the samples of slots."""

    @abstractmethod
    def source(self, *, check: bool) -> _native.SampleSource:
        """Return where the core reads them; with ``check`` it verifies the checksum of every record."""


class Images(Samples):
    """Whole images: every image of a dataset is a sample."""

    def __init__(self, dataset: Dataset, *, shuffle: bool | BlockShuffle, seed: int) -> None:
        if len(dataset) == 0:
            part = "" if len(dataset.whole) == 0 else "this part of "
            message = f"{part}split {dataset.split} of {dataset.path} has no samples"
            raise ConfigError(f"{message}, so there is nothing to load")
        super().__init__(len(dataset), dataset.identity, shuffle=shuffle, seed=seed)
        self._dataset = dataset
        self.classes = dataset.classes
        self._is_whole = same_numbers(dataset.numbers, dataset.whole.numbers)
        self.images = self.indices = len(dataset.whole)  # images and samples of the whole split

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:  # noqa: ARG002 - a slot is always the same
        numbers = slots  # of a whole split, which is most often asked for
        if not self._is_whole:
            numbers = numbers_at(self._dataset.numbers, slots.astype(np.int64)).astype(np.uint64)
        return Request(numbers, None, numbers, numbers)

    def labels(self) -> NDArray[np.int64]:
        """Return the label of each slot, int64 (size,)."""
        return self._dataset.labels

    def source(self, *, check: bool) -> _native.SampleSource:
        return self._dataset.reader.source(check=check)


class Objects(Images):
    """Annotated objects, in the order of their images, and of the annotation within an image.

    An image without any counts as one. The first use of a dataset reads all of its annotations.
    """

    def __init__(self, dataset: Dataset, *, shuffle: bool | BlockShuffle, seed: int) -> None:
        super().__init__(dataset, shuffle=shuffle, seed=seed)
        self.classes = box_classes(dataset.schema, dataset.classes)
        self.has_box_classes = bool(dataset.schema.box_names)
        self._counts = dataset.object_counts
        self._ends = _ends(self._counts)
        self._whole_ends = _ends(dataset.whole.object_counts)
        self.size = self.length = int(self._ends[-1])
        self.indices = int(self._whole_ends[-1])
        self.identity = f"{dataset.identity}/objects"

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:  # noqa: ARG002 - a slot is always the same
        positions = slots.astype(np.int64)
        rows = np.searchsorted(self._ends, positions, side="right")
        counts = self._counts[rows].astype(np.int64)
        from_end = positions - self._ends[rows]  # -1: the last sample of its image
        objects = np.where(counts == 0, WHOLE_IMAGE, from_end + counts)
        numbers = numbers_at(self._dataset.numbers, rows)
        indices = (from_end + self._whole_ends[numbers]).astype(np.uint64)
        return Request(numbers.astype(np.uint64), objects.astype(np.int32), indices, indices)

    def labels(self) -> NDArray[np.int64]:
        """Return the label of each slot: that of its box, and of an image without any its own; int64 (size,)."""
        numbers, objects, *_ = self.locate(np.arange(self.size, dtype=np.uint64), 0)
        assert objects is not None
        counts = self._dataset.whole.object_counts
        rows = np.cumsum(counts, dtype=np.int64)[numbers] - counts[numbers] + objects
        is_object = objects != WHOLE_IMAGE
        labels = np.full(self.size, -1, np.int64)
        if not self.has_box_classes:
            labels = np.repeat(self._dataset.labels, np.maximum(self._counts, 1))
        labels[is_object] = self._dataset.reader.box_labels[rows[is_object]]
        return labels

    def of_image(self, number: int) -> range:
        """Return the slots of one image of the dataset: one for each of its objects, or one for all of it."""
        end = int(self._ends[number])
        return range(end - max(1, int(self._counts[number])), end)


def _ends(counts: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return where the samples of each image end among all: one for each of its objects, or one for all of it."""
    return np.cumsum(np.maximum(counts, 1), dtype=np.int64)


class Mix:
    """Several datasets as one, for `stoker.Loader` and the adapters; make one with `stoker.mix`.

    Attributes:
        datasets: What is mixed.
        weights: Share of each in an epoch; they sum to 1. None: each has as many positions as it has samples.
        samples_per_epoch: Positions of an epoch; None: as many as the datasets have samples together.
        label_offsets: What is added to the labels of each.
    """

    def __init__(
        self,
        datasets: Sequence[Dataset],
        weights: Sequence[float] | None,
        samples_per_epoch: int | None,
        label_offsets: Sequence[int] | None,
    ) -> None:
        self.datasets = tuple(datasets)
        self.weights = None if weights is None else _normalised(weights, len(self.datasets))
        self.samples_per_epoch = samples_per_epoch
        self.label_offsets = _checked_offsets(self.datasets, label_offsets)
        _check_modes(self.datasets)

    @property
    def mode(self) -> Mode:
        """Channels and depth of the pixels, the same of all datasets."""
        return self.datasets[0].mode

    @property
    def exif(self) -> Exif:
        """Whether images are turned upright, the same of all datasets."""
        return self.datasets[0].exif or "keep"

    def __len__(self) -> int:
        """Return the number of positions of an epoch of whole images."""
        return self.samples_per_epoch or sum(len(dataset) for dataset in self.datasets)

    @property
    def classes(self) -> tuple[ClassLabel, ...]:
        """Name and text of each class, by label, where all of the datasets have the same labels; otherwise none."""
        return () if any(self.label_offsets) else self.datasets[0].classes

    @property
    def fields(self) -> dict[str, Field]:
        """What samples of all of the datasets have beside the image, the class and the boxes, by name."""
        first, *others = self.datasets
        return {
            name: field
            for name, field in first.fields.items()
            if all(part.fields.get(name) == field for part in others)
        }

    def __repr__(self) -> str:
        shares = "as they are" if self.weights is None else ", ".join(f"{weight:.3g}" for weight in self.weights)
        return f"<stoker.Mix of {len(self.datasets)} datasets ({shares}): {len(self):,} samples an epoch>"


def mix(
    datasets: Sequence[Dataset],
    weights: Sequence[float] | None = None,
    *,
    samples_per_epoch: int | None = None,
    label_offsets: Sequence[int] | None = None,
) -> Mix:
    """Mix datasets by weight; a loader takes the result in place of a dataset.

    ``Batch.indices`` are numbers in the whole datasets laid end to end: ``indices - len(datasets[0].whole)`` of the
    second, and so on.

    Args:
        datasets: At least one; each has samples.
        weights: Share of each dataset in every epoch, and as nearly as possible in every batch; positive, of any sum.
            Default: the datasets' sizes, so that an epoch holds every sample once.
        samples_per_epoch: Length of an epoch, at most 2**31. Default: the sizes of all datasets together.
        label_offsets: What is added to the labels of each dataset, to keep their classes apart. Needed where the
            datasets name their classes and do not agree; zeros say that equal labels mean the same.

    Raises:
        ConfigError: A number is out of range, something is not a dataset, the datasets were opened in different modes,
            or the class names differ and ``label_offsets`` is left out.
    """
    if isinstance(datasets, Dataset | Mix | str | os.PathLike) or not isinstance(datasets, Iterable):
        value = os.fspath(datasets) if isinstance(datasets, os.PathLike) else datasets
        shown = "one dataset" if isinstance(value, Dataset | Mix) else without_address(value)
        raise ConfigError(f"datasets is {shown}; give a list of what stoker.open returned: stoker.mix([first, second])")
    if not datasets:
        raise ConfigError("there is nothing to mix: give at least one dataset")
    datasets = [*map(dataset_of, datasets)]
    for number, dataset in enumerate(datasets):
        if not isinstance(dataset, Dataset):
            message = f"datasets[{number}] is {without_address(dataset)}, which is not a dataset"
            raise ConfigError(f"{message}; give what stoker.open returned")
    if samples_per_epoch is not None:
        check_range("samples_per_epoch", samples_per_epoch, 1, 2**31)
    return Mix(datasets, weights, samples_per_epoch, label_offsets)


def dataset_of(given: Any) -> Any:
    """Return the part of a dataset that a ``Subset`` of PyTorch stands for; anything else as it is."""
    inner = dataset_of(given.dataset) if type(given).__name__ == "Subset" else None
    return inner[list(given.indices)] if isinstance(inner, Dataset) else given


def parts_of(dataset: Dataset | Mix) -> tuple[Dataset, ...]:
    """Return the datasets that lie end to end in the source of a loader."""
    return dataset.datasets if isinstance(dataset, Mix) else (dataset,)


class MixedSamples(Samples):
    """The samples of a mix, which alternate as evenly as whole numbers allow. A slot is a position in the epoch.

    So every stretch of an epoch, and with it every batch, has the proportions of the weights. The samples of a dataset
    come in its own order, pass after pass, by a seed made from that of the mix, and go on in the next epoch where they
    ended: after any number of epochs no sample of it has come twice more often than another. Everything is arithmetic
    on (position, epoch).
    """

    def __init__(
        self, mixed: Mix, kind: type[Images] | type[Objects], *, shuffle: bool | BlockShuffle, seed: int
    ) -> None:
        self._parts = [
            kind(dataset, shuffle=shuffle, seed=random_numbers(seed, number, 0, 0, _MIX_PURPOSE)[0])
            for number, dataset in enumerate(mixed.datasets)
        ]
        self._offsets = mixed.label_offsets
        self.classes = () if any(self._offsets) else self._parts[0].classes
        self.has_box_classes = self._parts[0].has_box_classes
        sizes = [part.size for part in self._parts]
        self._counts = _shares(sizes, mixed)
        self._first_indices = np.cumsum([0, *(part.indices for part in self._parts[:-1])]).astype(np.uint64)
        self._image_starts = np.cumsum([0, *(part.images for part in self._parts[:-1])]).astype(np.uint64)
        counted = ";".join(f"{part.identity}:{count}" for part, count in zip(self._parts, self._counts, strict=True))
        size = sum(self._counts)
        # The positions come one after the other: what stands at each is up to `locate`.
        super().__init__(size, f"mix-{_native.crc32c(counted.encode()):08x}-{size}", shuffle=False, seed=seed)

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        part_of, numbers = interleave(slots, self._counts)
        request = Request(np.empty_like(slots), np.full(len(slots), WHOLE_IMAGE, np.int32), np.empty_like(slots), slots)
        for number, part in enumerate(self._parts):
            here = np.flatnonzero(part_of == number)
            if len(here) == 0:
                continue
            part_request = _sample_at(part, numbers[here] + np.uint64(epoch * self._counts[number] % 2**64))
            request.numbers[here] = part_request.numbers + self._image_starts[number]
            request.indices[here] = part_request.indices + self._first_indices[number]
            if part_request.objects is not None and request.objects is not None:
                request.objects[here] = part_request.objects
        return request

    def source(self, *, check: bool) -> _native.SampleSource:
        sources = (part.source(check=check) for part in self._parts)
        return _native.Concatenation(list(zip(sources, self._offsets, strict=True)))


def interleave(positions: NDArray[np.uint64], counts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the part whose turn it is at positions of an epoch, and its number among the positions of that part.

    Among the first ``t`` positions, ``floor(t * S[d - 1] / S[d])`` of those of parts ``0 .. d`` belong to parts
    ``0 .. d - 1``, where ``S`` are the running sums of the counts: lines of whole numbers, one inside the other. The
    counts are at least 1, their sum at most 2**31.
    """
    sums = np.cumsum(counts, dtype=np.uint64)
    part_of = np.zeros(len(positions), np.int64)
    numbers = positions.copy()
    open_ = np.ones(len(positions), np.bool_)  # those that belong to one of the parts left
    for part in range(len(counts) - 1, 0, -1):
        before, after = (at * sums[part - 1] // sums[part] for at in (numbers, numbers + np.uint64(1)))
        rest = after > before
        mine = open_ & ~rest
        part_of[mine] = part
        numbers = np.where(mine, numbers - before, np.where(open_, before, numbers))
        open_ &= rest
    return part_of, numbers


def _sample_at(part: Samples, running: NDArray[np.uint64]) -> Request:
    """Return the samples at positions of the endless sequence of a part: its order of pass 0, of pass 1, and so on."""
    passes, positions = np.divmod(running, np.uint64(part.size))
    slots = np.empty_like(running)
    for number in np.unique(passes):
        order = part.order(int(number))
        here = np.flatnonzero(passes == number)
        for run in np.split(here, np.flatnonzero(np.diff(positions[here].astype(np.int64)) != 1) + 1):
            slots[run] = order.take(int(positions[run[0]]), len(run))
    return part.locate(slots, 0)


def _shares(sizes: Sequence[int], mixed: Mix) -> list[int]:
    """Return the positions of an epoch that each part gets: rounded down, and one more for the largest remainders."""
    total = mixed.samples_per_epoch or sum(sizes)
    check_range("samples_per_epoch", total, 1, 2**31)
    weights = mixed.weights or [size / sum(sizes) for size in sizes]
    exact = [weight * total for weight in weights]
    shares = [int(share) for share in exact]
    for part in sorted(range(len(exact)), key=lambda i: shares[i] - exact[i])[: total - sum(shares)]:
        shares[part] += 1
    for number, share in enumerate(shares):
        if share == 0:
            message = f"dataset {number} of the mix would have no sample in an epoch of {total}"
            raise ConfigError(f"{message}; give it more weight, or raise samples_per_epoch")
    return shares


def _normalised(weights: Sequence[float], datasets: int) -> tuple[float, ...]:
    _check_count("weights", weights, datasets)
    if not all(isinstance(weight, Real) and 0.0 < weight < float("inf") for weight in weights):
        raise ConfigError(f"weights are {list(weights)}; each must be a number above 0")
    return tuple(weight / sum(weights) for weight in weights)


def _check_count(name: str, numbers: Sequence[float], datasets: int) -> None:
    if not hasattr(numbers, "__len__"):
        raise ConfigError(f"{name} is {numbers!r}; give a number for each dataset")
    if len(numbers) != datasets:
        raise ConfigError(f"{name} has {len(numbers)} of {datasets} numbers; give one for each dataset")


def _check_modes(datasets: Sequence[Dataset]) -> None:
    first = datasets[0]
    for number, dataset in enumerate(datasets):
        for name, value, wanted in (
            ("mode", dataset.mode, first.mode),
            ("exif", dataset.exif or "keep", first.exif or "keep"),
        ):
            if value != wanted:
                message = f"datasets[{number}], {dataset.path}, was opened with {name}={value!r}, and datasets[0]"
                raise ConfigError(f"{message}, {first.path}, with {name}={wanted!r}; open all with the same {name}=")


def _checked_offsets(datasets: Sequence[Dataset], offsets: Sequence[int] | None) -> tuple[int, ...]:
    if offsets is not None:
        _check_count("label_offsets", offsets, len(datasets))
        return tuple(check_range("label_offsets", offset, 0, 2**62) for offset in offsets)
    named = [dataset for dataset in datasets if dataset.classes]
    for dataset in named[1:]:
        if [known.name for known in dataset.classes] != [known.name for known in named[0].classes]:
            message = f"{dataset.path} and {named[0].path} do not have the same classes, so equal labels differ in"
            message += " meaning; open all with labels= of one file that lists all classes, or give label_offsets=,"
            raise ConfigError(f"{message} zeros if equal labels mean the same")
    return (0,) * len(datasets)


# Samples or classes as often as their weights say.


@dataclass(frozen=True, slots=True)
class Balanced:
    """Every class comes equally often: ``Loader(..., sampling=stoker.Balanced())``.

    An epoch has an equal share of each class, to within one sample. The samples of a class come in an order of its own,
    each once before any comes again, also from one epoch to the next. The order of an epoch is random, whatever
    ``shuffle`` says.

    Attributes:
        samples: Length of an epoch, at most 2**31; None: as many as the dataset has samples.
        replacement: Whether every position is drawn by itself instead: its class, then one of the samples of that. Then
            shares are near equal, and a sample may come again before others have come.

    Raises:
        ConfigError: ``samples`` is out of range.
    """

    samples: int | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        _check_samples(self.samples)

    @property
    def name(self) -> str:
        """What a saved state calls it."""
        return f"balanced{':replacement' * self.replacement}"


@dataclass(frozen=True, slots=True, eq=False)
class Weighted:
    """Classes or samples come as often as their weights say: ``Loader(..., sampling=stoker.Weighted(weights))``.

    Weights are shares of an epoch, of any sum; they are rounded to the 2**32th part of the heaviest. The order of an
    epoch is random, whatever ``shuffle`` says.

    Attributes:
        weights: A mapping gives the weight of each class, by label or by name: ``{"cat": 3, "dog": 1}``; samples of a
            class are equally likely. Anything else gives the weight of each sample of the dataset, in its order. 0
            leaves a class or a sample out.
        samples: Length of an epoch, at most 2**31; None: as many as the dataset has samples.
        replacement: False: in each epoch a sample comes as often as its share says, rounded down or up, so that none
            comes twice where no share is above one; of weighted classes each has its share, and the samples of a class
            come in turn, as `Balanced` has it. True: every position is drawn by itself.

    Raises:
        ConfigError: ``samples`` is out of range, or a weight is not a number of at least 0, or all are 0.
    """

    weights: Mapping[int | str, float] | ArrayLike
    samples: int | None = None
    replacement: bool = False

    def __post_init__(self) -> None:
        _check_samples(self.samples)
        whole_numbers(self.by_class().values() if self.is_by_class else self.weights)

    @property
    def is_by_class(self) -> bool:
        """Whether the weights are those of classes."""
        return isinstance(self.weights, Mapping)

    def by_class(self) -> dict[int | str, float]:
        """Return the weights of classes."""
        return dict(self.weights) if isinstance(self.weights, Mapping) else {}

    @property
    def name(self) -> str:
        """What a saved state calls it."""
        if isinstance(self.weights, Mapping):
            given = repr(sorted((str(key), float(weight)) for key, weight in self.weights.items())).encode()
        else:
            given = np.ascontiguousarray(whole_numbers(self.weights), "<u8").tobytes()
        return f"weighted:{_native.crc32c(given):08x}{':replacement' * self.replacement}"

    def __repr__(self) -> str:
        weights = repr(self.weights) if self.is_by_class else f"<{np.size(np.asarray(self.weights))} weights>"
        return f"Weighted({weights}, samples={self.samples}, replacement={self.replacement})"


Sampling = Balanced | Weighted


def whole_numbers(weights: Any) -> NDArray[np.uint64]:
    """Return weights as whole numbers, the heaviest as 2**32, and none that is above 0 as 0: uint64 (N,)."""
    values = np.asarray(
        list(weights) if not hasattr(weights, "__array__") and hasattr(weights, "__iter__") else weights
    )
    if values.ndim != 1 or len(values) == 0 or values.dtype.kind not in "iufb":
        actual = f"an array of {values.dtype}, shape {values.shape}"
        raise ConfigError(f"weights is {actual}; give one number for each sample, or a mapping from class to weight")
    values = values.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise ConfigError(f"weight {wrong[0]} is {values[wrong[0]]}; weights are numbers of at least 0")
    heaviest = values.max()
    if heaviest == 0:
        raise ConfigError("all weights are 0, so there is nothing to load")
    scaled: NDArray[np.uint64] = np.rint(values / heaviest * _ONE).astype(np.uint64)
    scaled[(scaled == 0) & (values > 0)] = 1
    return scaled


class Sampled(Samples):
    """The samples of a dataset, as often as a sampling says; a slot is one of the positions of an epoch."""

    def __init__(self, samples: Images, dataset: Dataset, sampling: Sampling, seed: int) -> None:
        size = samples.size if sampling.samples is None else sampling.samples
        # Independent draws come one after the other.
        super().__init__(size, samples.identity, shuffle=not sampling.replacement, seed=seed)
        self.classes, self.has_box_classes = samples.classes, samples.has_box_classes
        self._samples = samples
        self._independent = sampling.replacement
        self._choice: _Classes | _Samples
        if isinstance(sampling, Weighted) and not sampling.is_by_class:
            self._choice = _Samples(sampling, samples.size, self.size, seed)
        else:
            self._choice = _Classes(sampling, samples, dataset.path, self.size, seed)

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        """Return the samples at slots of an epoch; random choices depend on the slot, since a sample may come twice."""
        chosen = self._choice.draw(slots, epoch) if self._independent else self._choice.take(slots, epoch)
        request = self._samples.locate(chosen, epoch)
        return request._replace(streams=slots)

    def source(self, *, check: bool) -> _native.SampleSource:
        return self._samples.source(check=check)


class _Samples:
    def __init__(self, sampling: Weighted, count: int, size: int, seed: int) -> None:
        weights = whole_numbers(sampling.weights)
        if len(weights) != count:
            message = f"{format_count(len(weights), 'weight')} for {format_count(count, 'sample')}"
            raise ConfigError(f"{message}; give one for each, or a mapping from class to weight")
        self._weights, self._ends = weights, _running_sums(weights)
        self._size, self._seed = size, seed
        self._latest: tuple[tuple[int, NDArray[np.uint64], NDArray[np.uint64]], ...] = ()

    def draw(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        return _native.draw_weighted(slots, self._ends, _epoch_words(self._seed, epoch)[0])

    def take(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        offset = _epoch_words(self._seed, epoch)[1] * int(self._ends[-1]) >> 64
        order, ends = self._arranged(epoch)
        chosen: NDArray[np.uint64] = order[_native.spread_weighted(slots, ends, self._size, offset)]
        return chosen

    def _arranged(self, epoch: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the samples in an order of the epoch's own, and the running sums of their weights in it."""
        for known, order, ends in self._latest:
            if known == epoch:
                return order, ends
        count = len(self._weights)
        order = _native.permute(0, count, count, _epoch_words(self._seed, epoch)[0], 0)
        ends = _running_sums(self._weights[order])
        # Batches of the next epoch are begun before the last ones of this are done.
        self._latest = ((epoch, order, ends), *self._latest[:1])
        return order, ends


class _Classes:
    def __init__(self, sampling: Sampling, samples: Images, path: str, size: int, seed: int) -> None:
        labels = samples.labels()
        known, class_of, counts = np.unique(labels, return_inverse=True, return_counts=True)
        if known[0] < 0:
            refuse_unlabelled(path, labels)
            message = f"{format_count(int(counts[0]), 'sample')} of {path} have no label"
            raise ConfigError(f"{message}; leave them out: dataset[dataset.labels >= 0]")
        weights = np.full(len(known), _ONE, np.uint64)
        if isinstance(sampling, Weighted):
            weights = _weights_of(sampling.by_class(), samples.classes, path, known.tolist())
        self._members: NDArray[np.uint64] = np.argsort(class_of, kind="stable").astype(np.uint64)
        self._sizes: NDArray[np.uint64] = counts.astype(np.uint64)
        self._starts: NDArray[np.uint64] = np.cumsum(self._sizes, dtype=np.uint64) - self._sizes
        self._ends = _running_sums(weights)
        self._seed = seed
        self._class_seeds = np.array(
            [random_numbers(seed, label % 2**32, label >> 32, 2, _SAMPLING_PURPOSE)[0] for label in known.tolist()],
            np.uint64,
        )
        self._shares = np.zeros(0, np.uint64)
        if not sampling.replacement:
            shares = shares_of(size, weights.tolist())
            _refuse_no_share(shares, weights.tolist(), known.tolist(), size)
            self._shares = np.array(shares, np.uint64)
        self._slot_ends = np.cumsum(self._shares, dtype=np.uint64)

    def draw(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        classes, members = _native.draw_members(slots, self._ends, self._sizes, _epoch_words(self._seed, epoch)[0])
        return self._at(classes, members)

    def take(self, slots: NDArray[np.uint64], epoch: int) -> NDArray[np.uint64]:
        classes = np.searchsorted(self._slot_ends, slots, side="right")
        shares, sizes = self._shares[classes], self._sizes[classes]
        position = slots - (self._slot_ends[classes] - shares)
        before = np.uint64(epoch % 2**32) * shares  # of its class, in earlier epochs; below 2**63
        passes, position = np.divmod(before + position, sizes)
        member = _native.permute_each(position, sizes, self._class_seeds[classes], passes)
        return self._at(classes, member)

    def _at(self, classes: NDArray[Any], members: NDArray[np.uint64]) -> NDArray[np.uint64]:
        chosen: NDArray[np.uint64] = self._members[self._starts[classes] + members]
        return chosen


def shares_of(size: int, weights: Sequence[int]) -> list[int]:
    """Return how many of ``size`` slots each weight gets: rounded down, and one more for the largest remainders."""
    total = sum(weights)
    shares, remainders = zip(*(divmod(size * weight, total) for weight in weights), strict=True)
    given = list(shares)
    for number in sorted(range(len(weights)), key=lambda i: -remainders[i])[: size - sum(shares)]:
        given[number] += 1
    return given


def _weights_of(
    by_class: Mapping[int | str, float], classes: Sequence[ClassLabel], path: str, labels: list[int]
) -> NDArray[np.uint64]:
    weights: dict[int, float] = {}
    for key, weight in by_class.items():
        label = label_named(key, classes, path)
        if label in weights:
            raise ConfigError(f"class {key!r} has two weights, by its label and by its name; give one")
        weights[label] = weight
    for label in labels:
        if label not in weights:
            name = f" ({classes[label].name!r})" if label < len(classes) else ""
            raise ConfigError(f"class {label}{name} has samples and no weight; give it one, 0 to leave it out")
    present = set(labels)
    strange = next((label for label in weights if label not in present), None)
    if strange is not None and weights[strange] != 0:
        raise ConfigError(f"class {strange} has a weight and no sample in {path}; omit it, or give it 0")
    return whole_numbers([weights[label] for label in labels])


def _refuse_no_share(shares: list[int], weights: list[int], labels: list[int], size: int) -> None:
    for share, weight, label in zip(shares, weights, labels, strict=True):
        if share == 0 and weight > 0:
            message = f"class {label} would have no sample in an epoch of {format_count(size, 'sample')}"
            raise ConfigError(f"{message}; raise samples=, give it more weight, or draw with replacement=True")


def _running_sums(weights: NDArray[np.uint64]) -> NDArray[np.uint64]:
    check_range("the number of weights", len(weights), 1, 2**31)  # their sum fits 63 bits
    return np.cumsum(weights, dtype=np.uint64)


def _epoch_words(seed: int, epoch: int) -> tuple[int, int]:
    """Return the seed of an epoch's draws, and the number that its offset is made of."""
    return random_numbers(seed, epoch % 2**32, epoch >> 32, 0, _SAMPLING_PURPOSE)


def _check_samples(samples: int | None) -> None:
    if samples is not None:
        check_range("samples", samples, 1, 2**31)


# In the order of an epoch.


def upcoming(samples: Samples, topology: Topology, position: Position) -> Iterator[Upcoming]:
    """Yield this rank's batches from a position on, through one epoch after another; those without samples left out."""
    consumed = position.consumed
    for epoch in itertools.count(position.epoch):
        order = samples.order(epoch)
        for step in steps_from(order, consumed, topology):
            if len(step.indices):
                request = samples.locate(step.indices, epoch)
                group = np.full(len(step.indices), _group(order, consumed), np.int64)
                yield Upcoming(request.numbers, request.objects, group)
            consumed = step.consumed
        if steps_left(order.length, 0, topology) == 0:  # an epoch without a batch, and so are all others
            return
        consumed = 0


def _group(order: EpochOrder, position: int) -> int:
    """Return the same number for positions of one window of blocks, or where blocks do not matter, of one epoch.

    That is near enough: a last block that is shorter moves the edges by less than a block.
    """
    if not isinstance(order.shuffle, BlockShuffle):
        return order.epoch % 2**31
    span = order.shuffle.block * order.shuffle.window
    return (order.epoch % 2**31 << 32) + position // span
