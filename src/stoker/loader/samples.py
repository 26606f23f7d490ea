"""Which samples a loader has, and which record, object and random choices each stands for.

An epoch is a sequence of *slots* ``0 .. size - 1``. Of a dataset a slot is the number of a sample: an image, or with
`stoker.ObjectCrops` an annotated object. Of a mix it is a position in the epoch (`stoker.loader.mix`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from stoker import _native
from stoker.loader.dataset import check_not_empty
from stoker.order import EpochOrder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.loader.dataset import Dataset
    from stoker.order import BlockShuffle
    from stoker.types import SchemaInfo


# What the native core must know of a layout.


def record_keys(schema: SchemaInfo) -> _native.RecordKeys:
    """Return where records of a layout hold what, in the core's form."""
    return _native.RecordKeys(
        image_key=schema.image_key,
        label_key=schema.label_key,
        source_key=schema.filename_key or "",
        label_encoding=schema.label_encoding,
        label_base=schema.label_base,
        image_encoding=schema.image_encoding,
        height_key=schema.height_key or "",
        width_key=schema.width_key or "",
        order_key=schema.order_key or "",
        box_prefix=schema.box_prefix or "",
    )


WHOLE_IMAGE = -1


@dataclass(frozen=True, slots=True)
class Request:
    """What the core is asked for.

    Attributes:
        numbers: uint64 (B,), images of the source.
        objects: int32 (B,), which object of each, or `WHOLE_IMAGE`; None: all whole.
        indices: uint64 (B,), what the batch calls the samples.
        streams: uint64 (B,), what random choices depend on, besides seed and epoch.
    """

    numbers: NDArray[np.uint64]
    objects: NDArray[np.int32] | None
    indices: NDArray[np.uint64]
    streams: NDArray[np.uint64]


class Samples(Protocol):
    """The samples of a loader. Immutable, and safe from any thread.

    Attributes:
        size: How many an epoch has.
        identity: Stands for the data and for what a sample of them is.
        images: How many images the source has.
    """

    size: int
    identity: str
    images: int

    def order(self, epoch: int) -> EpochOrder:
        """Return the order of the slots in an epoch."""

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        """Return what slots stand for."""

    def source(self, *, check: bool) -> _native.SampleSource:
        """Return where the core reads them; with ``check`` it verifies the checksum of every record."""


@dataclass(frozen=True, slots=True)
class Shuffling:
    """How the samples of an epoch are ordered.

    Attributes:
        shuffle: Whether they are shuffled, and whether as blocks.
        seed: 0 to 2**64 - 1.
    """

    shuffle: bool | BlockShuffle
    seed: int


class Images:
    """Whole images: every image of a dataset is a sample."""

    def __init__(self, dataset: Dataset, shuffling: Shuffling) -> None:
        self._dataset = dataset
        self._shuffling = shuffling
        self.size = self.images = len(dataset)
        self.identity = dataset.identity
        check_not_empty(dataset)

    def order(self, epoch: int) -> EpochOrder:
        """Return the order of an epoch."""
        return EpochOrder(self.size, self._shuffling.shuffle, self._shuffling.seed, epoch)

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:  # noqa: ARG002 - a slot is always the same
        """Return the images with these numbers."""
        return Request(slots, None, slots, slots)

    def source(self, *, check: bool) -> _native.SampleSource:
        """Return the native reader of the dataset."""
        records = self._dataset.records
        if isinstance(records, _native.FileSet):
            return records
        return _native.RecordSource(records, record_keys(self._dataset.schema), check)


class Objects(Images):
    """Annotated objects, in the order of their images, and of the annotation within an image.

    An image without any counts as one. The first use of a dataset reads all of its annotations.
    """

    def __init__(self, dataset: Dataset, shuffling: Shuffling) -> None:
        super().__init__(dataset, shuffling)
        self._counts = dataset.object_counts
        self._ends = np.cumsum(np.maximum(self._counts, 1), dtype=np.int64)  # of the samples of each image
        self.size = int(self._ends[-1])
        self.identity = f"{dataset.identity}/objects"

    def locate(self, slots: NDArray[np.uint64], epoch: int) -> Request:  # noqa: ARG002 - a slot is always the same
        """Return which object of which image each sample is."""
        positions = slots.astype(np.int64)
        images = np.searchsorted(self._ends, positions, side="right")
        first = self._ends[images] - self._counts[images]
        objects = np.where(self._counts[images] == 0, WHOLE_IMAGE, positions - first)
        return Request(images.astype(np.uint64), objects.astype(np.int32), slots, slots)

    def of_image(self, number: int) -> range:
        """Return the samples of one image: one for each of its objects, or one for all of it."""
        end = int(self._ends[number])
        return range(end - max(1, int(self._counts[number])), end)
