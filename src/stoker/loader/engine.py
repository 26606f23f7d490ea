"""The native engine of one loader: steps of an epoch in, batches out."""

from __future__ import annotations

import time
import warnings
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from stoker import _native
from stoker.errors import (
    BadSampleWarning,
    ClosedError,
    ExampleError,
    ImageError,
    ShardError,
    StorageError,
    TooManyBadSamplesError,
)
from stoker.forks import process_number
from stoker.loader.batch import NO_BOXES, Batch, BatchOrigin, batch_value, empty_column, native_column
from stoker.loader.epochs import WHOLE_IMAGE, Request, upcoming
from stoker.loader.mixes import parts_of
from stoker.loader.pictures import first_mask
from stoker.loader.read_ahead import Prefetcher, Upcoming
from stoker.loader.readers import converter
from stoker.loader.stats import LoaderStats, stats_of
from stoker.loader.tracing import EventLog, FetchLog
from stoker.order import Position, random_numbers
from stoker.transforms import MultiCrop, native_transforms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from stoker.loader.batch import NativeBoxes, NativeColumn, Where
    from stoker.loader.feed import Feed
    from stoker.order import Step

NativeBatch = tuple[
    "Sequence[NDArray[Any]]",
    "NDArray[np.int64]",
    "NDArray[np.uint64]",
    "NDArray[np.uint64]",
    "Sequence[NativeBoxes]",
    "Sequence[NativeColumn]",
    "Sequence[Sequence[NDArray[Any]]]",
]
"""Images of each transform, labels, indices, seeds, boxes of each transform, columns and planes of the fields."""

_MAX_AHEAD = 1 << 16
"""The most samples that are planned beyond those in use, however small they are; at most about one epoch."""

_SAMPLE_ERRORS = (ShardError, ExampleError, ImageError, OSError)
"""Errors about one sample; any other ends the epoch, whatever ``on_bad`` says."""

_ATTEMPTS = 16
_SUBSTITUTE = 5 << 16  # RandomOp::kSubstitute of the core
_MOST_LISTED = 1000  # bad samples of a report


@dataclass(frozen=True, slots=True)
class BadSample:
    """A sample that could not be loaded, and its substitute.

    Attributes:
        index: Index of the bad sample.
        substitute: Index of the sample that took its place.
        epoch: Epoch in which it happened.
        error: What was wrong, and where.
    """

    index: int
    substitute: int
    epoch: int
    error: Exception


class BadSampleReport:
    """The bad samples of one epoch on this rank.

    Attributes:
        epoch: Number of the epoch.
        count: Number of samples that were replaced.
        samples: The first 1000 of them.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.count = 0
        self.samples: list[BadSample] = []

    def add(self, sample: BadSample) -> None:
        """Count a bad sample."""
        self.count += 1
        if len(self.samples) < _MOST_LISTED:
            self.samples.append(sample)

    def warn(self) -> None:
        """Warn if there were any."""
        if self.count:
            first = self.samples[0]
            message = f"epoch {self.epoch}: {self.count} bad samples were replaced; the first is {first.index}"
            warnings.warn(f"{message}: {first.error}", BadSampleWarning, stacklevel=3)


class _Submitted(NamedTuple):
    step: Step
    epoch: int
    request: Request | None  # none for a rank's empty share of a last step

    @property
    def position(self) -> Position:
        return Position(self.epoch + 1, 0) if self.step.last else Position(self.epoch, self.step.consumed)


class BatchMaker:
    """Describes to the core what batches of a feed need, and makes batches of what it returns.

    The core collects the values of ``columns``, and crops and resizes the images of ``planes`` as the main image.
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._forms = {name: field.form() for name, field in feed.fields.items()}
        self.columns = [native_column(name, form) for name, form in self._forms.items() if not form.is_plane]
        self.planes = [_native.FieldPlane(f"{name}/encoded", f.bits) for name, f in self._forms.items() if f.is_plane]
        self.specs = native_transforms(feed.settings.transform)
        self._origin = BatchOrigin(feed.output, feed.dataset.mode, tuple(feed.samples.classes), first_mask(feed.fields))

    def batch(
        self, taken: NativeBatch, valid: NDArray[np.bool_], position: Position, where: Callable[[int], Where]
    ) -> Batch:
        """Return a batch made of what the core returns; ``where`` locates the record of a row."""
        images, labels, indices, seeds, boxes, columns, planes = taken
        of_columns, of_planes = iter(columns), iter(planes)
        fields: dict[str, Any] = {}
        for name, form in self._forms.items():
            if form.is_plane:
                fields[name] = self._of_transforms(next(of_planes))
            else:
                fields[name] = batch_value(name, form, next(of_columns), where)
        boxes_form = self._feed.settings.boxes
        return Batch(
            images=self._of_transforms(images),
            labels=labels,
            indices=indices,
            valid=valid,
            seeds=seeds,
            position=position,
            boxes=None if boxes_form is None else self._of_transforms(list(map(boxes_form.form, boxes))),
            fields=fields,
            origin=self._origin,
        )

    def empty(self, position: Position) -> Batch:
        """Return a batch without samples, whose arrays have the usual types and shapes."""
        output, none = self._feed.output, np.empty(0, np.uint64)
        shapes = [output.shape(*spec.shape, self._feed.dataset.mode) for spec in self.specs]
        images = [np.empty((0, *shape), output.dtype) for shape in shapes]
        planes = [
            images if form.kind == "image" else [np.empty((0, *spec.shape), form.dtype) for spec in self.specs]
            for form in self._forms.values()
            if form.is_plane
        ]
        boxes = [NO_BOXES] * len(shapes)
        columns = [empty_column(form) for form in self._forms.values() if not form.is_plane]
        taken = (images, np.empty(0, np.int64), none, none, boxes, columns, planes)
        return self.batch(taken, np.empty(0, np.bool_), position, lambda row: ("", row, 0))

    def _of_transforms(self, each: Sequence[Any]) -> Any:
        return tuple(each) if isinstance(self._feed.settings.transform, MultiCrop) else each[0]


class SampleEngine:
    """Steps of an epoch in, batches out, in the order in which they are submitted. Serves one thread."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._maker = BatchMaker(feed)
        self.report = BadSampleReport(0)  # the bad samples since `begin_report`
        self._submitted: deque[_Submitted] = deque()
        parts = parts_of(feed.dataset)
        self._given = [part.reader.given for part in parts if part.reader.given is not None]
        files = [part.remote for part in parts if part.remote is not None]
        self.ranges = _native.RemoteRanges(feed.read_ahead.budget_bytes) if files else None
        self._begun = time.monotonic()
        self._process = process_number()
        self._native = self._native_engine()
        self._ahead: Prefetcher | None = None
        self._scheduled = False  # whether samples are known before they are submitted
        self._continues_at: Position | None = None
        """Position that reading ahead has reached; known between epochs only."""
        if self.ranges is not None:
            least = 4 * self._spare_buffers * feed.topology.batch_size
            most_ahead = max(least, min(_MAX_AHEAD, feed.samples.size))
            locate = self._native.remote_spans
            self._ahead = Prefetcher([*files, *self._given], feed.read_ahead, self.ranges, locate, most_ahead)
        # Stops the threads: samples being decoded are finished first, those being fetched are not. It keeps neither the
        # engine nor the dataset alive, because a program may store the loader in its dataset.
        self.close = partial(_close, self._native, self._ahead)

    @property
    def _spare_buffers(self) -> int:
        """Number of pixel buffers, each of one batch, that are kept for reuse for each transform."""
        return self._feed.settings.prefetch + 2

    def _native_engine(self) -> _native.BatchEngine:
        feed, settings, mode = self._feed, self._feed.settings, self._feed.dataset.mode
        # Cached samples are not checked again, so they are checked now, whatever the setting.
        source = feed.samples.source(check=settings.check or settings.cache is not None)
        return _native.BatchEngine(
            source=source if settings.cache is None else settings.cache.source(feed.dataset, source),
            transforms=self._maker.specs,
            seed=feed.seed,
            max_pixels=settings.max_pixels,
            batch_size=feed.topology.batch_size,
            threads=feed.threads,
            spare_buffers=self._spare_buffers,
            format=feed.output.native(mode),
            decode=settings.decode,
            boxes=None if settings.boxes is None else settings.boxes.min_visible,
            decoded=settings.decoded_cache,
            ahead=self.ranges,
            convert=converter(self._given, settings.max_pixels, mode),
            mode=mode,
            columns=self._maker.columns,
            planes=self._maker.planes,
            turns=feed.dataset.exif == "apply",
        )

    def check_process(self) -> None:
        """Refuse to work in a forked process, which has none of the threads."""
        if self._process != process_number():
            message = "this loader was made before a fork, and threads do not survive one"
            raise ClosedError(f"{message}; make the loader in the process that uses it")

    def stats(self) -> LoaderStats:
        """Return what was done since it was made."""
        self.check_process()
        return stats_of(self._native.totals(), time.monotonic() - self._begun)

    def events(self) -> EventLog:
        """Return the log of what its threads do."""
        self.check_process()
        fetches, connections = FetchLog(), 0
        if self._ahead is not None:
            fetches, connections = self._ahead.log, self._feed.read_ahead.connections
        return EventLog(self._native, self._feed.threads, fetches, connections)

    def look_ahead(self, position: Position) -> None:
        """Read ahead from a position on, if samples are remote; if reading ahead is there already, go on with it."""
        self._scheduled = True
        if self._ahead is not None and position != self._continues_at:
            self._ahead.begin(upcoming(self._feed.samples, self._feed.topology, position))
        self._continues_at = None

    def begin_report(self, epoch: int) -> None:
        """Count bad samples from 0 again."""
        self.report = BadSampleReport(epoch)

    def end_report(self) -> None:
        """End an epoch: warn of bad samples, and of a cache that could not be used."""
        self._continues_at = Position(self.report.epoch + 1, 0)
        self.report.warn()
        if self._feed.settings.cache is not None:
            self._feed.settings.cache.warn_of_problems()

    def submit(self, step: Step, epoch: int) -> None:
        """Queue the batch of a step; never blocks."""
        request = self._request(step.indices, epoch) if len(step.indices) else None
        self._submitted.append(_Submitted(step, epoch, request))

    def _request(self, slots: NDArray[np.uint64], epoch: int) -> Request:
        request = self._feed.samples.locate(slots, epoch)
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
            StokerError: A sample is bad and must not be replaced; the error is that of the first such sample.
        """
        request = self._submitted[0].request
        if request is None:
            return self._maker.empty(self._submitted.popleft().position)
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
                    del error, problem  # a raised error holds this frame: a cycle would keep the whole loader alive
        taken, numbers = finished.take(), request.numbers
        if self._feed.samples.has_box_classes:
            taken[1][request.objects == WHOLE_IMAGE] = -1
        valid, position = submitted.step.valid, submitted.position
        return self._maker.batch(taken, valid, position, lambda row: self._native.where(int(numbers[row])))

    def drop_pending(self) -> None:
        """Forget every queued batch."""
        self._native.drop_pending()
        self._submitted.clear()

    def _replace(
        self, finished: _native.FinishedBatch, row: int, submitted: _Submitted, error: Exception
    ) -> Exception | None:
        """Replace a bad sample by another one; return its error if it must not be replaced, or cannot."""
        settings, epoch, request = self._feed.settings, submitted.epoch, cast("Request", submitted.request)
        if settings.on_bad == "raise" or not isinstance(error, _SAMPLE_ERRORS):
            return error
        if self.report.count >= settings.max_bad:
            message = f"more than max_bad={settings.max_bad} samples were bad in epoch {epoch}; the last: {error}"
            hint = "run 'stoker verify' on a dataset, 'stoker audit' on what is not built, or raise max_bad"
            raise TooManyBadSamplesError(f"{message}; {hint}") from error
        for slot in substitutes(self._feed.seed, epoch, int(request.streams[row]), self._feed.samples.size):
            other = self._feed.samples.locate(slot, epoch)
            object_ = WHOLE_IMAGE if other.objects is None else int(other.objects[0])
            try:
                self._native.replace(finished, row, int(other.numbers[0]), object_, int(other.indices[0]))
            except _SAMPLE_ERRORS as another:
                if isinstance(error, StorageError) and isinstance(another, StorageError):
                    break  # the store fails, and each further attempt would take minutes
                continue
            self.report.add(BadSample(int(request.indices[row]), int(other.indices[0]), epoch, error))
            request.numbers[row] = other.numbers[0]
            if request.objects is not None:
                request.objects[row] = object_
            return None
        return error


def substitutes(seed: int, epoch: int, stream: int, size: int) -> Iterator[NDArray[np.uint64]]:
    """Yield the slots to try in place of a bad sample: a pure function of (seed, epoch, sample), of any topology."""
    for attempt in range(_ATTEMPTS):
        number, _ = random_numbers(seed, stream % 2**32, stream >> 32, epoch % 2**32, _SUBSTITUTE | attempt)
        yield np.array([number * size >> 64], np.uint64)


def _close(native: _native.BatchEngine, ahead: Prefetcher | None) -> None:
    if ahead is not None:
        ahead.close()
    native.close()
