"""The samples of an epoch, and the record, object and random choices of each.

An epoch is an order of *slots* ``0 .. size - 1``. For a dataset, a slot is the position of an image in it, or with
`stoker.ObjectCrops` of an annotated object. For a mix (`mixes`), and for sampling by weight (`sampling`), a slot is a
position in the epoch; its sample is a function of (seed, epoch, position) in whole numbers, so that an epoch resumes
exactly on any topology. `docs/explanation/determinism.md` defines it. Native readers know whole splits, so the images
of a part are requested by their numbers in the split.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from copy import copy
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stoker.errors import ConfigError
from stoker.loader.pictures import box_classes
from stoker.loader.read_ahead import Upcoming
from stoker.loader.selection import numbers_at, same_numbers
from stoker.order import BlockShuffle, EpochOrder, steps_from, steps_left

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from numpy.typing import NDArray

    from stoker import _native
    from stoker.format import ClassLabel
    from stoker.loader.dataset import Dataset
    from stoker.order import Position, Topology


WHOLE_IMAGE = -1
"""The object number of a sample that is a whole image."""


class Request(NamedTuple):
    """The samples that the core is asked for."""

    numbers: NDArray[np.uint64]  # uint64 (B,), numbers of the images in the source
    objects: NDArray[np.int32] | None  # int32 (B,), object of each image, or `WHOLE_IMAGE`; None: all whole
    indices: NDArray[np.uint64]  # uint64 (B,), `Batch.indices`
    streams: NDArray[np.uint64]  # uint64 (B,), random choices depend on these, besides seed and epoch


class Samples(ABC):
    """The samples of a loader. Immutable, and safe from any thread."""

    classes: Sequence[ClassLabel]  # name and text of each class that samples have, by label; none where unknown
    has_box_classes = False  # whether only boxes have these classes, so that a whole image has none

    def __init__(self, size: int, identity: str, *, shuffle: bool | BlockShuffle, seed: int) -> None:
        self.size = self.length = size  # number of slots, and number of positions of an epoch
        self.identity = identity  # identifies the data, and what counts as a sample
        self._shuffle, self._seed = shuffle, seed

    def order(self, epoch: int) -> EpochOrder:
        """Return the order of the slots in an epoch."""
        return EpochOrder(self.size, self._shuffle, self._seed, epoch, self.length)

    def until(self, length: int) -> Self:
        """Return the same samples, in epochs that have only the first ``length`` positions of each order."""
        part = copy(self)
        part.length = length
        return part

    @abstractmethod
    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        """Return the request for the samples of slots."""

    @abstractmethod
    def source(self, *, check: bool) -> _native.SampleSource:
        """Return the source that the core reads; with ``check`` it verifies the checksum of every record."""


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
        numbers = slots  # of a whole split, the most common case
        if not self._is_whole:
            numbers = numbers_at(self._dataset.numbers, slots.astype(np.int64)).astype(np.uint64)
        return Request(numbers, None, numbers, numbers)

    def labels(self) -> NDArray[np.int64]:
        """Return the label of each slot, int64 (size,)."""
        return self._dataset.labels

    def source(self, *, check: bool) -> _native.SampleSource:
        return self._dataset.reader.source(check=check)


class Objects(Images):
    """Annotated objects, in the order of their images, and within an image in the order of its annotation.

    An image without objects counts as one. The first use of a dataset reads all of its annotations.
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
        """Return the label of each slot, int64 (size,): that of its box, or for an image without boxes its own."""
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


def upcoming(samples: Samples, topology: Topology, position: Position) -> Iterator[Upcoming]:
    """Yield this rank's batches from a position on, epoch after epoch; batches without samples are left out."""
    consumed = position.consumed
    for epoch in itertools.count(position.epoch):
        order = samples.order(epoch)
        for step in steps_from(order, consumed, topology):
            if len(step.indices):
                request = samples.locate(step.indices, epoch)
                group = np.full(len(step.indices), _group(order, consumed), np.int64)
                yield Upcoming(request.numbers, request.objects, group)
            consumed = step.consumed
        if steps_left(order.length, 0, topology) == 0:  # no epoch has a batch
            return
        consumed = 0


def _group(order: EpochOrder, position: int) -> int:
    """Return a number that positions in one window of blocks share; without block shuffle, positions in one epoch.

    The edges of windows are approximate: a shorter last block moves them by less than a block.
    """
    if not isinstance(order.shuffle, BlockShuffle):
        return order.epoch % 2**31
    span = order.shuffle.block * order.shuffle.window
    return (order.epoch % 2**31 << 32) + position // span
