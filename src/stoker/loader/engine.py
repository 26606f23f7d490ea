"""The native engine of one loader: steps of an epoch in, batches out."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import numpy as np

from stoker import _native
from stoker.config import check_range
from stoker.errors import ClosedError, ConfigError, StorageError, TooManyBadSamplesError
from stoker.forks import process_number
from stoker.loader.bad_samples import OF_A_SAMPLE, BadSample, BadSampleReport, OnBad, substitutes
from stoker.loader.batch import Batch, BatchOrigin
from stoker.loader.boxes import NO_BOXES, BoxOutput
from stoker.loader.caches import MemoryCache, NodeCache
from stoker.loader.dataset import Dataset
from stoker.loader.mixes import Mix, MixedSamples, parts_of
from stoker.loader.pictures import first_mask
from stoker.loader.position import Position, RunIdentity
from stoker.loader.read_ahead import Prefetcher, ReadAhead, Upcoming
from stoker.loader.record_fields import FieldReader, chosen_fields
from stoker.loader.samples import WHOLE_IMAGE, Images, Objects, Request, Samples, upcoming
from stoker.loader.sampling import Balanced, Sampled, Weighted
from stoker.loader.stats import LoaderStats, stats_of
from stoker.loader.tracing import EventLog, event_log
from stoker.order import BlockShuffle, EpochOrder, Step
from stoker.recipe import decode
from stoker.transforms import (
    MultiCrop,
    ObjectCrops,
    Output,
    Transform,
    check_colors,
    native_transforms,
    without_address,
)
from stoker.types import DecodeMode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.loader.boxes import NativeBoxes
    from stoker.loader.record_fields import NativeColumn, Where
    from stoker.order import Topology
    from stoker.types import Field

NativeBatch = tuple[
    "Sequence[NDArray[Any]]",
    "NDArray[np.int64]",
    "NDArray[np.uint64]",
    "NDArray[np.uint64]",
    "Sequence[NativeBoxes]",
    "Sequence[NativeColumn]",
    "Sequence[Sequence[NDArray[Any]]]",
]
"""Images of each transform, labels, indices, seeds, boxes of each transform, and of the fields columns and planes."""

_RANGES = {"seed": (0, 2**64 - 1), "threads": (1, 4096), "max_pixels": (1, 2**32), "max_bad": (0, 2**62)}
_CHOICES = {"decode": DecodeMode, "on_bad": OnBad}
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "shuffle": ((bool, BlockShuffle), "True, False or a stoker.BlockShuffle"),
    "sampling": ((Balanced, Weighted, NoneType), "a stoker.Balanced, a stoker.Weighted or None"),
    "output": ((Output,), "a stoker.Output"),
    "boxes": ((BoxOutput, NoneType), "a stoker.BoxOutput or None"),
    "cache": ((MemoryCache, NodeCache, NoneType), "a stoker.MemoryCache, a stoker.NodeCache or None"),
    "read_ahead": ((ReadAhead,), "a stoker.ReadAhead"),
}
_MAX_AHEAD = 1 << 16
"""The most samples that are planned beyond those in use, however small they are; and never much beyond an epoch."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How batches are made, for any consumer: the settings of `stoker.Loader` that are not about ranks and steps.

    Attributes:
        batch_size: The most samples of a batch.
        threads: Decoding threads.
        spare_buffers: Buffers of a batch's pixels that are kept for reuse, of each transform.
        output, boxes, fields, decode, shuffle, sampling, seed, check, max_pixels, cache, read_ahead, on_bad, max_bad:
            As `stoker.Loader` takes them.

    Raises:
        ConfigError: A setting is of another kind or out of range, or ``decode`` does not go with the cache.
    """

    batch_size: int
    threads: int
    spare_buffers: int = 2
    output: Output = field(default_factory=Output)
    boxes: BoxOutput | None = None
    fields: Sequence[str] | Mapping[str, Field] = ()
    decode: DecodeMode = "exact"
    shuffle: bool | BlockShuffle = False
    sampling: Balanced | Weighted | None = None
    seed: int = 0
    check: bool = True
    max_pixels: int = _native.DEFAULT_MAX_PIXELS
    cache: MemoryCache | NodeCache | None = None
    read_ahead: ReadAhead = field(default_factory=ReadAhead)
    on_bad: OnBad = "raise"
    max_bad: int = 100

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            object.__setattr__(self, name, check_range(name, getattr(self, name), low, high))
        for name, (kinds, known) in _KINDS.items():
            if not isinstance(getattr(self, name), kinds):
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be {known}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in get_args(choices):
                known = " or ".join(map(repr, get_args(choices)))
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be {known}")
        if self.sampling is not None and isinstance(self.shuffle, BlockShuffle):
            message = f"sampling decides the order of an epoch, and shuffle={self.shuffle!r} asks for another"
            raise ConfigError(f"{message}; omit one of them")
        if self.decode == "fast" and self.decoded_cache is not None:
            message = "decode='fast' shrinks images while it decodes them, and this cache keeps them whole"
            raise ConfigError(f"{message}; use MemoryCache(..., keep='encoded'), or decode='exact'")

    @property
    def decoded_cache(self) -> _native.MemoryCache | None:
        """What keeps whole images as pixels, if anything does."""
        return self.cache.native if isinstance(self.cache, MemoryCache) and self.cache.keep == "decoded" else None


class _Submitted(NamedTuple):
    """A step that is queued, and what the core was asked for.

    Attributes:
        step: Which samples.
        epoch: Of which epoch.
        request: None for a rank's empty share of a last step.
    """

    step: Step
    epoch: int
    request: Request | None


class SampleEngine:
    """Steps of an epoch in, batches out, in the order in which they are submitted. Serves one thread.

    Args:
        dataset: Where the images are.
        transform: What becomes of each sample.
        settings: How.

    Attributes:
        settings: How batches are made; the type of the pixels is that of the dataset's mode where it was left out.
        samples: Which samples there are.
        fields: What batches have of the records' fields.
        report: The bad samples since `begin_report`.
        ranges: What was fetched ahead from stores; None where nothing is remote.

    Raises:
        ConfigError: There is nothing to load, or no boxes or fields where the transform or the settings want some; or
            the transform or the type of the pixels has no meaning in the dataset's mode.
        ShardError: A record that had to be read for its objects is damaged.
    """

    def __init__(self, dataset: Dataset | Mix, transform: Transform, settings: EngineSettings) -> None:
        self.samples = _samples(dataset, transform, settings)
        self._mode = dataset.mode
        check_colors(transform, self._mode)
        self.settings = settings = replace(settings, output=settings.output.for_mode(self._mode))
        if settings.boxes is not None:
            _check_boxes(dataset)
        fields = chosen_fields(dataset, settings.fields)
        self.fields = FieldReader(fields)
        self.report = BadSampleReport(0)
        self._origin = BatchOrigin(settings.output, dataset.mode, dataset.classes, first_mask(fields))
        self._many = isinstance(transform, MultiCrop)
        self._specs = native_transforms(transform)
        self._submitted: deque[_Submitted] = deque()
        files = [part.remote for part in parts_of(dataset) if part.remote is not None]
        self.ranges = _native.RemoteRanges(settings.read_ahead.budget_bytes) if files else None
        self._begun = time.monotonic()
        self._process = process_number()
        self._native = self._native_engine(dataset)
        self._ahead: Prefetcher | None = None
        self._scheduled = False  # otherwise no more is known than what is submitted
        self._goes_on: Position | None = None
        """Where the samples that are read ahead go on when all batches were taken."""
        if self.ranges is not None:
            least = 4 * settings.spare_buffers * settings.batch_size
            most_ahead = max(least, min(_MAX_AHEAD, self.samples.size))
            self._ahead = Prefetcher(files, settings.read_ahead, self.ranges, self._native.remote_places, most_ahead)

    def _native_engine(self, dataset: Dataset | Mix) -> _native.BatchEngine:
        settings = self.settings
        return _native.BatchEngine(
            source=self._source(dataset),
            transforms=self._specs,
            seed=settings.seed,
            max_pixels=settings.max_pixels,
            batch_size=settings.batch_size,
            threads=settings.threads,
            spare_buffers=settings.spare_buffers,
            format=settings.output.native(self._mode),
            decode=settings.decode,
            boxes=None if settings.boxes is None else settings.boxes.min_visible,
            decoded=settings.decoded_cache,
            ahead=self.ranges,
            convert=partial(decode, max_pixels=settings.max_pixels, mode=self._mode),
            mode=self._mode,
            columns=self.fields.columns,
            planes=self.fields.planes,
        )

    def _source(self, dataset: Dataset | Mix) -> _native.SampleSource:
        cache = self.settings.cache
        # What is kept is found good from then on, so it is checked whatever was asked for.
        source = self.samples.source(check=self.settings.check or cache is not None)
        return source if cache is None else cache.source(dataset, source)

    def check_process(self) -> None:
        """See that this is the process that the threads were started in: they do not survive a fork.

        Raises:
            ClosedError: It is another one.
        """
        if self._process != process_number():
            message = "this loader was made before a fork, and threads do not survive one"
            raise ClosedError(f"{message}; make the loader in the process that uses it")

    def run_identity(self) -> RunIdentity:
        """Return what a state must agree with: which samples, in which order."""
        order = EpochOrder(self.samples.size, self.settings.shuffle, self.settings.seed, 0)
        sampling = self.settings.sampling
        name = order.name if sampling is None else f"{sampling.name}:{order.n}"
        return RunIdentity(self.samples.identity, order.seed, name, order.n)

    def stats(self) -> LoaderStats:
        """Return what was done since it was made."""
        self.check_process()
        return stats_of(self._native.totals(), time.monotonic() - self._begun)

    def events(self) -> EventLog:
        """Return the log of what its threads do."""
        self.check_process()
        fetches = None if self._ahead is None else self._ahead.log
        return event_log(self._native, self.settings.threads, fetches, self.settings.read_ahead.connections)

    def close(self) -> None:
        """Stop the threads; samples being decoded are finished first, those being waited for are not."""
        _close(self._native, self._ahead)

    def closing(self) -> Callable[[], None]:
        """Return what does the same as `close` and keeps neither this engine nor the dataset alive.

        A program may have the dataset hold the loader, which could never be freed otherwise.
        """
        return partial(_close, self._native, self._ahead)

    def look_ahead(self, position: Position, topology: Topology) -> None:
        """Read ahead from a position on, if samples are remote; what was read ahead before is used where it fits."""
        self._scheduled = True
        if self._ahead is not None and position != self._goes_on:
            self._ahead.begin(upcoming(self.samples, topology, position))
        self._goes_on = None

    def begin_report(self, epoch: int) -> None:
        """Count bad samples from 0 again."""
        self.report = BadSampleReport(epoch)

    def end_report(self) -> None:
        """An epoch is over: warn of bad samples, if there were any, and of a cache that is of no use."""
        self._goes_on = Position(self.report.epoch + 1, 0)
        self.report.warn()
        if self.settings.cache is not None:
            self.settings.cache.warn_of_problems()

    def submit(self, step: Step, epoch: int) -> None:
        """Queue the batch of a step; never blocks."""
        request = self._request(step.indices, epoch) if len(step.indices) else None
        self._submitted.append(_Submitted(step, epoch, request))

    def _request(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        request = self.samples.locate(slots, epoch)
        if self._ahead is not None and self._scheduled:
            self._ahead.ensure_planned(len(slots))
        elif self._ahead is not None:
            group = np.zeros(len(slots), np.int64)
            self._ahead.begin(iter([Upcoming(request.numbers, request.objects, group)]))
        self._native.submit(request.numbers, epoch, request.objects, request.indices, request.streams)
        return request

    def next(self) -> Batch:
        """Return the oldest batch queued, when all of its samples are loaded.

        Raises:
            TooManyBadSamplesError: More samples were bad than may be replaced.
            StokerError: A sample is bad, and is not to be replaced; of several, the first.
        """
        if self._submitted[0].request is None:
            return self._empty_batch(self._submitted.popleft())
        try:
            finished = self._native.next()
        except BaseException:  # Ctrl-C, or no memory: the next call must not get what this one asked for
            self.drop_pending()
            raise
        submitted = self._submitted.popleft()
        if self._ahead is not None:
            self._ahead.release(len(submitted.step.indices))
        for index, error in finished.failures:
            problem = self._replace(finished, index, submitted, error)
            if problem is not None:
                try:
                    raise problem
                finally:
                    del error, problem  # raised, they hold this frame: a cycle would keep the whole loader alive
        return self._batch(submitted, finished.take())

    def _empty_batch(self, submitted: _Submitted) -> Batch:
        output, none = self.settings.output, np.empty(0, np.uint64)
        shapes = [output.shape(*spec.shape, self._mode) for spec in self._specs]
        images = [np.empty((0, *shape), output.dtype) for shape in shapes]
        masks = [np.empty((0, *spec.shape), np.uint8) for spec in self._specs]
        planes = [
            images if form.kind == "image" else [one.astype(form.dtype) for one in masks]
            for form in self.fields.forms.values()
            if form.is_plane
        ]
        boxes, columns = [NO_BOXES] * len(shapes), self.fields.empty_columns()
        return self._batch(submitted, (images, np.empty(0, np.int64), none, none, boxes, columns, planes))

    def _batch(self, submitted: _Submitted, taken: NativeBatch) -> Batch:
        images, labels, indices, seeds, boxes, columns, planes = taken
        form, step = self.settings.boxes, submitted.step
        return Batch(
            images=self._of_transforms(images),
            labels=labels,
            indices=indices,
            valid=step.valid,
            seeds=seeds,
            position=Position(submitted.epoch + 1, 0) if step.last else Position(submitted.epoch, step.consumed),
            boxes=None if form is None else self._of_transforms([form.form(one) for one in boxes]),
            fields=self._fields_of(submitted, columns, planes) if self.fields.forms else {},
            origin=self._origin,
        )

    def _of_transforms(self, each: Sequence[Any]) -> Any:
        """Return what each transform gives, as batches have it."""
        return tuple(each) if self._many else each[0]

    def _fields_of(
        self, submitted: _Submitted, columns: Sequence[NativeColumn], planes: Sequence[Sequence[Any]]
    ) -> dict[str, Any]:
        shown = list(map(self._of_transforms, planes))
        return self.fields.values(columns, shown, lambda row: self._place(submitted, row))

    def _place(self, submitted: _Submitted, row: int) -> Where:
        """Return where a sample of a batch lies."""
        return self._native.where(int(cast("Request", submitted.request).numbers[row]))

    def drop_pending(self) -> None:
        """Forget every queued batch."""
        self._native.drop_pending()
        self._submitted.clear()

    def _replace(
        self, finished: _native.FinishedBatch, row: int, submitted: _Submitted, error: Exception
    ) -> Exception | None:
        """Load another sample in the place of a bad one; return its error where that is not to be, or fails.

        Raises:
            TooManyBadSamplesError: As many were replaced as may be.
        """
        settings, epoch, request = self.settings, submitted.epoch, cast("Request", submitted.request)
        if settings.on_bad == "raise" or not isinstance(error, OF_A_SAMPLE):
            return error
        if self.report.count >= settings.max_bad:
            message = f"more than max_bad={settings.max_bad} samples were bad in epoch {epoch}; the last: {error}"
            hint = "run 'stoker verify' on the dataset, or raise max_bad"
            raise TooManyBadSamplesError(f"{message}; {hint}") from error
        for slot in substitutes(settings.seed, epoch, int(request.streams[row]), self.samples.size):
            other = self.samples.locate(slot, epoch)
            object_ = WHOLE_IMAGE if other.objects is None else int(other.objects[0])
            try:
                self._native.replace(finished, row, int(other.numbers[0]), object_, int(other.indices[0]))
            except OF_A_SAMPLE as another:
                if isinstance(error, StorageError) and isinstance(another, StorageError):
                    break  # it is the store, and each further try would take minutes
                continue
            self.report.add(BadSample(int(request.indices[row]), int(other.indices[0]), epoch, error))
            request.numbers[row] = other.numbers[0]  # for `_place`
            return None
        return error


def _close(native: _native.BatchEngine, ahead: Prefetcher | None) -> None:
    if ahead is not None:
        ahead.close()
    native.close()


def _samples(dataset: Dataset | Mix, transform: Transform, settings: EngineSettings) -> Samples:
    if not isinstance(dataset, Dataset | Mix):
        message = f"dataset is {without_address(dataset)}, which is not a dataset"
        raise ConfigError(f"{message}; give what stoker.open or stoker.mix returned")
    if not isinstance(transform, Transform):
        message = (
            f"transform is {without_address(transform)}; it must be one of Stoker's, such as stoker.CenterCrop(224)"
        )
        own = "functions of your own work on batches, or in stoker.torch.MapDataset"
        raise ConfigError(f"{message}, or stoker.MultiCrop(...) of several; {own}")
    kind = Objects if isinstance(transform, ObjectCrops) else Images
    if isinstance(dataset, Mix):
        if settings.sampling is not None:
            raise ConfigError("a mix has weights of its own; omit sampling=, or give weights to stoker.mix")
        return MixedSamples(dataset, kind, shuffle=settings.shuffle, seed=settings.seed)
    samples = kind(dataset, shuffle=settings.shuffle, seed=settings.seed)
    return samples if settings.sampling is None else Sampled(samples, dataset, settings.sampling, settings.seed)


def _check_boxes(dataset: Dataset | Mix) -> None:
    for one in parts_of(dataset):
        if not one.has_boxes:
            message = f"{one.path} has no boxes: its records follow the layout {one.schema.preset!r}"
            raise ConfigError(f"{message}; omit boxes=, or build with --preset imagenet")
        one.load_boxes()
    if isinstance(dataset, Mix):
        _check_box_classes(dataset)


def _check_box_classes(mixed: Mix) -> None:
    """Refuse datasets in which equal labels of boxes would differ in meaning.

    Raises:
        ConfigError: They have boxes of different classes, or such as ``label_offsets`` would move.
    """
    first, *others = mixed.datasets
    for other in others:
        if other.schema.box_names != first.schema.box_names:
            message = f"{first.path} and {other.path} do not have the same classes of boxes, so equal labels differ"
            raise ConfigError(f"{message} in meaning; join them with 'stoker merge', or omit boxes=")
    if first.schema.box_names and any(mixed.label_offsets):
        message = f"label_offsets would move the labels of boxes, too, which have classes of their own in {first.path}"
        raise ConfigError(f"{message}; omit label_offsets= or boxes=")
