"""The native engine of one loader, and which samples it has: images, or the objects annotated in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from stoker import _native
from stoker.feed.native_keys import record_keys
from stoker.feed.odd_images import to_jpeg
from stoker.views import ObjectCrops

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.feed.dataset import Dataset
    from stoker.views import View

WHOLE_IMAGE = -1


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How batches are made; none of it but the seed changes what is in them.

    Attributes:
        seed: Of the random choices of views.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more are refused.
        batch_size: The most samples of a batch.
        threads: Decoding threads.
        spare_buffers: Buffers of a batch's pixels that are kept for reuse.
    """

    seed: int
    check: bool
    max_pixels: int
    batch_size: int
    threads: int
    spare_buffers: int


class SampleEngine:
    """Numbers of samples in, batches of pixels out.

    With `stoker.ObjectCrops` the samples are the annotated objects in the order of their images, and in that of the
    annotation within an image; an image without any counts as one. With every other view they are the images.

    Args:
        dataset: Where the images are.
        view: What becomes of each sample.
        settings: How.

    Attributes:
        size: How many samples there are.
        identity: Stands for the dataset and for what its samples are.

    Raises:
        ConfigError: The dataset has no objects.
        ShardError: A record that had to be read for its objects is damaged.
    """

    def __init__(self, dataset: Dataset, view: View, settings: EngineSettings) -> None:
        self._objects = _Objects(dataset.object_counts) if isinstance(view, ObjectCrops) else None
        self.size = len(dataset) if self._objects is None else self._objects.size
        self.identity = dataset.identity if self._objects is None else f"{dataset.identity}/objects"
        self._spec = view.native()
        self._native = _native.BatchEngine(
            source=dataset.records,
            keys=record_keys(dataset.schema),
            view=self._spec,
            seed=settings.seed,
            check=settings.check,
            max_pixels=settings.max_pixels,
            batch_size=settings.batch_size,
            threads=settings.threads,
            spare_buffers=settings.spare_buffers,
            convert=partial(to_jpeg, max_pixels=settings.max_pixels),
        )
        self.next = self._native.next
        self.drop_pending = self._native.drop_pending
        self.close = self._native.close

    def submit(self, numbers: NDArray[np.uint64], epoch: int) -> None:
        """Queue one batch; never blocks."""
        if self._objects is None:
            self._native.submit(numbers, epoch)
        else:
            self._native.submit(*self._objects.locate(numbers, epoch))

    def nothing(self) -> NDArray[np.uint8]:
        """Return the images of a batch without samples."""
        return np.empty((0, *self._spec.shape), np.uint8)


class _Objects:
    """Which object of which image a sample is.

    Args:
        counts: How many objects each image has.
    """

    def __init__(self, counts: NDArray[np.uint32]) -> None:
        self._counts = counts
        self._ends = np.cumsum(np.maximum(counts, 1), dtype=np.int64)  # of the samples of each image
        self.size = int(self._ends[-1]) if len(counts) else 0

    def locate(
        self, numbers: NDArray[np.uint64], epoch: int
    ) -> tuple[NDArray[np.uint64], int, NDArray[np.int32], NDArray[np.uint64]]:
        """Return the arguments of the core's ``submit``: images, epoch, objects and numbers."""
        positions = numbers.astype(np.int64)
        images = np.searchsorted(self._ends, positions, side="right")
        first = self._ends[images] - self._counts[images]
        objects = np.where(self._counts[images] == 0, WHOLE_IMAGE, positions - first)
        return images.astype(np.uint64), epoch, objects.astype(np.int32), numbers
