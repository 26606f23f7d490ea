"""The native engine of one loader: slots of an epoch in, batches out."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from stoker import _native
from stoker.errors import ConfigError
from stoker.feed.bad_samples import OF_A_SAMPLE, BadSample, BadSamplePolicy, BadSampleReport, substitutes
from stoker.feed.caches import MemoryCache, NodeCache
from stoker.feed.mixing import Mix, MixedSamples
from stoker.feed.odd_images import to_jpeg
from stoker.feed.samples import WHOLE_IMAGE, Images, Objects, Request, Samples, Shuffling
from stoker.types import DecodeMode
from stoker.views import ObjectCrops, Output, native_views

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stoker.feed.boxes import Boxes, BoxOutput, PaddedBoxes
    from stoker.feed.dataset import Dataset
    from stoker.order import BlockShuffle
    from stoker.views import View


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How batches are made.

    Attributes:
        seed: Of the order and of the random choices of views.
        shuffle: Whether the samples of an epoch are shuffled, and whether as blocks.
        decode: How closely images are decoded and resized; see `stoker.Loader`.
        check: Whether the checksum of every record is verified.
        max_pixels: Images that declare more are refused.
        batch_size: The most samples of a batch.
        threads: Decoding threads.
        spare_buffers: Buffers of a batch's pixels that are kept for reuse, of each view.
        output: Type and layout of the pixels.
        boxes: In which form batches have boxes; None for none.
        cache: Where samples are kept, so that they need not be read again; None for nowhere.
        bad: What becomes of samples that cannot be loaded.
    """

    seed: int
    check: bool
    max_pixels: int
    batch_size: int
    threads: int
    spare_buffers: int
    shuffle: bool | BlockShuffle = False
    decode: DecodeMode = "exact"
    output: Output = field(default_factory=Output)
    boxes: BoxOutput | None = None
    cache: MemoryCache | NodeCache | None = None
    bad: BadSamplePolicy = field(default_factory=BadSamplePolicy)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a batch holds, with one entry for each view in ``images`` and ``boxes``."""

    images: tuple[NDArray[Any], ...]
    labels: NDArray[np.int64]
    keys: NDArray[np.uint64]
    seeds: NDArray[np.uint64]
    boxes: tuple[Boxes | PaddedBoxes, ...]


@dataclass(frozen=True, slots=True)
class _Submitted:
    request: Request
    epoch: int


class SampleEngine:
    """Slots of an epoch in, batches out, in the order in which they are submitted. Serves one thread.

    Args:
        dataset: Where the images are.
        view: What becomes of each sample.
        settings: How.

    Attributes:
        samples: Which samples there are.
        report: The bad samples since `begin_report`.
        image_shapes: Shape of an image of each view.

    Raises:
        ConfigError: There is nothing to load, or no boxes where the view or the settings want some.
        ShardError: A record that had to be read for its objects is damaged.
    """

    def __init__(self, dataset: Dataset | Mix, view: View, settings: EngineSettings) -> None:
        _check_decode(settings)
        self._settings = settings
        self.samples = _samples(dataset, view, settings)
        if settings.boxes is not None:
            _check_boxes(dataset)
        self.report = BadSampleReport(0)
        self._specs = native_views(view)
        self.image_shapes = [settings.output.shape(*spec.shape[:2]) for spec in self._specs]
        self._submitted: deque[_Submitted] = deque()
        self._native = _native.BatchEngine(
            source=self._source(dataset),
            views=self._specs,
            seed=settings.seed,
            max_pixels=settings.max_pixels,
            batch_size=settings.batch_size,
            threads=settings.threads,
            spare_buffers=settings.spare_buffers,
            format=settings.output.native(),
            decode=settings.decode,
            boxes=None if settings.boxes is None else settings.boxes.min_visible,
            decoded=_decoded(settings.cache),
            convert=partial(to_jpeg, max_pixels=settings.max_pixels),
        )
        self.close = self._native.close

    def _source(self, dataset: Dataset | Mix) -> _native.SampleSource:
        cache = self._settings.cache
        # What is kept is found good from then on, so it is checked whatever was asked for.
        source = self.samples.source(check=self._settings.check or cache is not None)
        return source if cache is None else cache.source(dataset, source)

    def begin_report(self, epoch: int) -> None:
        """Count bad samples from 0 again."""
        self.report = BadSampleReport(epoch)

    def end_report(self) -> None:
        """Warn of bad samples, if there were any, and of a cache that is of no use."""
        self.report.warn()
        if self._settings.cache is not None:
            self._settings.cache.warn_of_problems()

    def submit(self, slots: NDArray[np.uint64], epoch: int) -> None:
        """Queue one batch; never blocks."""
        request = self.samples.locate(slots, epoch)
        self._native.submit(request.numbers, epoch, request.objects, request.keys, request.streams)
        self._submitted.append(_Submitted(request, epoch))

    def next(self) -> Loaded:
        """Return the oldest batch queued, when all of its samples are loaded.

        Raises:
            TooManyBadSamplesError: More samples were bad than may be replaced.
            StokerError: A sample is bad, and is not to be replaced; of several, the first.
        """
        finished = self._native.next()
        submitted = self._submitted.popleft()
        for index, error in finished.failures:
            self._replace(finished, index, submitted, error)
        images, labels, keys, seeds, boxes = finished.take()
        form = self._settings.boxes
        return Loaded(tuple(images), labels, keys, seeds, () if form is None else tuple(map(form.form, boxes)))

    def nothing(self) -> Loaded:
        """Return a batch without samples."""
        form = self._settings.boxes
        boxes = () if form is None else tuple(form.nothing() for _ in self._specs)
        images = tuple(np.empty((0, *shape), self._settings.output.numpy_dtype) for shape in self.image_shapes)
        return Loaded(images, np.empty(0, np.int64), np.empty(0, np.uint64), np.empty(0, np.uint64), boxes)

    def drop_pending(self) -> None:
        """Forget every queued batch."""
        self._native.drop_pending()
        self._submitted.clear()

    def _replace(self, finished: _native.FinishedBatch, index: int, submitted: _Submitted, error: Exception) -> None:
        self._settings.bad.accept(error, self.report)
        stream = int(submitted.request.streams[index])
        for slot in substitutes(self._settings.seed, submitted.epoch, stream, self.samples.size):
            other = self.samples.locate(slot, submitted.epoch)
            object_ = WHOLE_IMAGE if other.objects is None else int(other.objects[0])
            try:
                self._native.replace(finished, index, int(other.numbers[0]), object_, int(other.keys[0]))
            except OF_A_SAMPLE:
                continue
            bad = BadSample(int(submitted.request.keys[index]), int(other.keys[0]), submitted.epoch, error)
            return self.report.add(bad)
        raise error


def _samples(dataset: Dataset | Mix, view: View, settings: EngineSettings) -> Samples:
    kind = Objects if isinstance(view, ObjectCrops) else Images
    shuffling = Shuffling(settings.shuffle, settings.seed)
    return MixedSamples(dataset, kind, shuffling) if isinstance(dataset, Mix) else kind(dataset, shuffling)


def _check_decode(settings: EngineSettings) -> None:
    if settings.decode not in get_args(DecodeMode):
        raise ConfigError(f"decode is {settings.decode!r}; it must be 'exact' or 'fast'")
    if settings.decode == "fast" and _decoded(settings.cache) is not None:
        message = "decode='fast' shrinks images while it decodes them, and this cache keeps them whole"
        raise ConfigError(f"{message}; use MemoryCache(..., keep='encoded'), or decode='exact'")


def _decoded(cache: MemoryCache | NodeCache | None) -> _native.MemoryCache | None:
    return cache.native if isinstance(cache, MemoryCache) and cache.keep == "decoded" else None


def _check_boxes(dataset: Dataset | Mix) -> None:
    for one in dataset.datasets if isinstance(dataset, Mix) else (dataset,):
        if not one.has_boxes:
            message = f"{one.path} has no boxes: its records follow the layout {one.schema.preset!r}"
            raise ConfigError(f"{message}; leave out boxes=, or build with --preset imagenet")
        one.load_boxes()
