"""Mixes of datasets: how their samples alternate in an epoch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.config import check_range, without_address
from stoker.errors import ConfigError
from stoker.loader.dataset import Dataset
from stoker.loader.epochs import WHOLE_IMAGE, Images, Objects, Request, Samples
from stoker.order import BlockShuffle, random_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stoker.format import ClassLabel
    from stoker.types import Exif, Field, Mode


_PURPOSE = 0x6D697874  # "mixt": keeps these draws apart from others of the same seed


class Mix:
    """Several datasets as one, for `stoker.Loader` and the adapters; make one with `stoker.mix`.

    Attributes:
        datasets: The datasets that are mixed.
        weights: Share of each dataset in an epoch; they sum to 1. None: each has as many positions as samples.
        samples_per_epoch: Length of an epoch; None: the sizes of all datasets together.
        label_offsets: Number that is added to the labels of each dataset.
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
        """Channels and depth of the pixels, the same for all datasets."""
        return self.datasets[0].mode

    @property
    def exif(self) -> Exif:
        """Whether images are turned upright, the same for all datasets."""
        return self.datasets[0].exif or "keep"

    def __len__(self) -> int:
        """Return the number of positions of an epoch of whole images."""
        return self.samples_per_epoch or sum(len(dataset) for dataset in self.datasets)

    @property
    def classes(self) -> tuple[ClassLabel, ...]:
        """Name and text of each class, by label; empty if ``label_offsets`` moves the labels of a dataset."""
        return () if any(self.label_offsets) else self.datasets[0].classes

    @property
    def fields(self) -> dict[str, Field]:
        """Extra fields that all of the datasets have alike, by name."""
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

    ``Batch.indices`` are numbers in the whole datasets laid end to end: those of the second dataset begin at
    ``len(datasets[0].whole)``, and so on.

    Args:
        datasets: At least one dataset, and none without samples.
        weights: Share of each dataset in every epoch, and as nearly as possible in every batch; positive, of any sum.
            Default: the datasets' sizes, so that an epoch holds every sample once.
        samples_per_epoch: Length of an epoch, at most 2**31. Default: the sizes of all datasets together.
        label_offsets: Number that is added to the labels of each dataset, to keep their classes apart. Needed if the
            datasets have different class names; zeros say that equal labels mean the same.

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
    """Return the datasets of a mix, or a single dataset, in the order in which a loader's source has them."""
    return dataset.datasets if isinstance(dataset, Mix) else (dataset,)


class MixedSamples(Samples):
    """The samples of a mix, which alternate as evenly as whole numbers allow. A slot is a position in the epoch.

    So every stretch of an epoch, and with it every batch, has the proportions of the weights. Each dataset has its own
    order, by a seed derived from that of the mix. It is read pass after pass, and the next epoch continues where the
    last one ended: after any number of epochs, the counts of a dataset's samples differ by at most one. Everything is
    arithmetic on (position, epoch).
    """

    def __init__(
        self, mixed: Mix, kind: type[Images] | type[Objects], *, shuffle: bool | BlockShuffle, seed: int
    ) -> None:
        self._parts = [
            kind(dataset, shuffle=shuffle, seed=random_numbers(seed, number, 0, 0, _PURPOSE)[0])
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
        # Positions are not shuffled: `locate` decides which sample is at each.
        super().__init__(size, f"mix-{_native.crc32c(counted.encode()):08x}-{size}", shuffle=False, seed=seed)

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        """Return the samples at positions of an epoch. See `Samples.locate`."""
        part_of, numbers = interleave(slots, self._counts)
        request = Request(np.empty_like(slots), np.full(len(slots), WHOLE_IMAGE, np.int32), np.empty_like(slots), slots)
        for number, part in enumerate(self._parts):
            rows = np.flatnonzero(part_of == number)
            if len(rows) == 0:
                continue
            part_request = _sample_at(part, numbers[rows] + np.uint64(epoch * self._counts[number] % 2**64))
            request.numbers[rows] = part_request.numbers + self._image_starts[number]
            request.indices[rows] = part_request.indices + self._first_indices[number]
            if part_request.objects is not None and request.objects is not None:
                request.objects[rows] = part_request.objects
        return request

    def source(self, *, check: bool) -> _native.SampleSource:
        """Return the source that the core reads. See `Samples.source`."""
        sources = (part.source(check=check) for part in self._parts)
        return _native.Concatenation(list(zip(sources, self._offsets, strict=True)))


def interleave(positions: NDArray[np.uint64], counts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the part at each position of an epoch, and the number of the position among those of its part.

    Of the first ``t`` positions that parts ``0 .. d`` share, ``floor(t * S[d - 1] / S[d])`` belong to parts
    ``0 .. d - 1``, where ``S`` are the running sums of the counts: nested Bresenham lines. The counts are at least 1,
    their sum at most 2**31.
    """
    sums = np.cumsum(counts, dtype=np.uint64)
    part_of = np.zeros(len(positions), np.int64)
    numbers = positions.copy()
    undecided = np.ones(len(positions), np.bool_)  # positions that belong to one of the remaining parts
    for part in range(len(counts) - 1, 0, -1):
        before, after = (at * sums[part - 1] // sums[part] for at in (numbers, numbers + np.uint64(1)))
        in_earlier_part = after > before
        in_this_part = undecided & ~in_earlier_part
        part_of[in_this_part] = part
        numbers = np.where(in_this_part, numbers - before, np.where(undecided, before, numbers))
        undecided &= in_earlier_part
    return part_of, numbers


def _sample_at(part: Samples, running: NDArray[np.uint64]) -> Request:
    """Return the samples at positions of the endless sequence of a part: its order of pass 0, of pass 1, and so on."""
    passes, positions = np.divmod(running, np.uint64(part.size))
    slots = np.empty_like(running)
    for number in np.unique(passes):
        order = part.order(int(number))
        rows = np.flatnonzero(passes == number)
        for run in np.split(rows, np.flatnonzero(np.diff(positions[rows].astype(np.int64)) != 1) + 1):
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
