"""Builds from sources that are listed, as a whole or in parts, and from records without a length.

Records without a length are read once, and stored in their order, in shards of equally many records; the first records
decide how many. A run that resumes reads the same records again, and compares the digest of the values of each finished
shard with the digest in the journal.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections import Counter, deque
from dataclasses import replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING

import numpy as np

from stoker.builder.companions import describe_build, rejects_of
from stoker.builder.convert import ItemConverter
from stoker.builder.destination import MAX_UNLISTED, check_destination
from stoker.builder.estimate import ExpectedSize, sample_records, sampled, split_of
from stoker.builder.local import LocalEngine
from stoker.builder.parts import NO_PART
from stoker.builder.plan import Plan, ShardJob, SplitPlan, make_plan, plan_settings
from stoker.builder.report import BuildReport, PartReport, build_report
from stoker.builder.writing import Task, write
from stoker.config import option
from stoker.errors import ConfigError, DestinationError, SourceWarning
from stoker.format import MANIFEST_NAME, MAX_SHARDS, ShardNaming, is_unfinished, new_index_name
from stoker.recipe import KEPT_FORMATS
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from stoker.builder.convert import Outcome
    from stoker.builder.estimate import ListedSource
    from stoker.builder.local import EngineFactory
    from stoker.builder.parts import Part
    from stoker.builder.settings import BuildSettings
    from stoker.builder.writing import Run
    from stoker.format import Manifest, ShardResult
    from stoker.sources import Item, RecordStream, Source
    from stoker.storage import Location, LocationLike
    from stoker.types import Progress


def build_source(
    source: Source,
    settings: BuildSettings,
    destination: LocationLike,
    progress: Progress | None = None,
    announce: Callable[[ExpectedSize], None] | None = None,
    engine: EngineFactory = LocalEngine,
    overwrite: Callable[[str], None] | None = None,
) -> BuildReport:
    """Build a dataset from a source that is listed, or resume a build that was interrupted.

    The same settings give the same bytes for any number of threads, in any destination that `check_destination`
    accepts, and after any number of interruptions. Only one build at a time can write to a directory; in a store two
    may, with the same settings. ``announce`` is called with the expected size of the dataset before anything is
    written. If there is a finished dataset, or an unfinished build with other settings, ``overwrite`` is called with a
    description of it; it raises to keep it, otherwise it is removed. The same call then resumes an interrupted build.
    Without ``overwrite``, such destinations are refused.

    Raises:
        ConfigError: The settings do not fit the source, or the dataset is huge and ``allow_huge`` is not set.
        DestinationError: The destination holds something else, or another build is writing to it.
        OSError: The destination cannot be written, or the store of the source or of the destination has gone. Run
            again to resume.
        KeyboardInterrupt: Run again to resume.
    """
    started = time.monotonic()
    listed = sampled(source, settings, progress)
    _warn_of_converted(settings, listed.known.values())
    task = ListedBuild(listed, settings, location(destination), engine)
    written = write(
        task,
        source=None if settings.root is None else location(settings.root),
        announce=lambda: task.check_size(announce),
        overwrite=overwrite,
        progress=progress,
    )
    return build_report(written, source, task.destination, time.monotonic() - started)


def _warn_of_converted(settings: BuildSettings, sample: Iterable[Outcome]) -> None:
    """Warn of images that are not kept only because readers of the preset do not take their format."""
    recipe, looked_at, converted = settings.recipe, 0, Counter[str]()
    if recipe.formats == KEPT_FORMATS or recipe.encode is not None or recipe.resize is not None:
        return
    for outcome in sample:
        looked_at, converted = looked_at + 1, converted + outcome.converted
    if converted:
        preset = settings.schema.info(0).preset
        taken, others = " and ".join(sorted(recipe.formats)), ", ".join(f"{n} {kind}" for kind, n in converted.items())
        message = f"readers of preset {preset} take {taken}, so that some images are not kept as they are"
        advice = "'stoker plan' with the same settings says how they are stored"
        warnings.warn(f"{message}: {others} of {looked_at} looked at; {advice}", SourceWarning, stacklevel=5)


def build_part(
    listed: ListedSource,
    settings: BuildSettings,
    destination: LocationLike,
    part: Part,
    progress: Progress | None = None,
    announce: Callable[[ExpectedSize], None] | None = None,
) -> PartReport:
    """Build one part of a dataset, or resume it; whichever part ends last finishes the dataset.

    The shards of a dataset are divided among the parts, which may run at the same time, one after another, and several
    times, in any number of processes on any machines that see the source and the destination. The dataset is byte for
    byte that of `build`. A build may continue with another number of parts: complete shards are not built again.
    `NO_PART` only finishes the dataset. Parts that begin before any shard is built call ``announce``.

    Raises:
        ConfigError: As `build_source`.
        SourceError: As `build_source`.
        DestinationError: The destination holds something else, or a build with other settings or without parts; or a
            shard is missing, and this is `NO_PART`.
        KeyboardInterrupt: Run again to resume.
    """
    started = time.monotonic()
    source = listed.source
    task = ListedBuild(listed, settings, location(destination))
    written = write(task, part=part, announce=lambda: task.check_size(announce), progress=progress)
    own_shards = frozenset(name for shard, name in enumerate(task.shard_names) if part.has(shard))
    own_results = [result for result in written.results if result.file.name in own_shards]
    seconds = time.monotonic() - started
    return PartReport(
        part=part,
        shards=len(own_shards),
        resumed_shards=len(own_shards & written.resumed),
        all_shards=len(task.shard_names),
        missing_shards=written.missing,
        seconds=seconds,
        items=written.items,
        size_bytes=written.size_bytes,
        rejects=tuple(rejects_of(own_results)),
        annotation_errors=tuple(error for result in own_results for error in result.annotation_errors),
        warnings=source.warnings,
        dataset=None if written.missing else build_report(written, source, task.destination, seconds),
    )


def check_part_destination(destination: Location, source: str, part: Part) -> None:
    """Refuse a destination in which no part can be built, before the source is looked at.

    Raises:
        DestinationError: As `check_destination`; or no part has begun there, and this is `NO_PART`.
    """
    check_destination(destination, source)
    if part == NO_PART and not is_unfinished(destination) and not (destination / MANIFEST_NAME).lexists():
        message = f"no build has begun in {destination}, so there is nothing to finish; begin with {option('part')} 0/N"
        raise DestinationError(message, path=str(destination))


class ListedBuild(Task):
    """A dataset of a source that is listed."""

    def __init__(
        self,
        listed: ListedSource,
        settings: BuildSettings,
        destination: Location,
        engine: EngineFactory = LocalEngine,
    ) -> None:
        source = listed.source
        self._converter = ItemConverter(source, settings.recipe, settings.schema)
        self._converter.known = listed.known
        self._converter.dropped = {
            (source.table[row], split_of(source, row)): reject for row, reject in listed.dropped.items()
        }
        self._size, self._build_settings, self._engine = listed.size, settings, engine
        self._plan = make_plan(source, settings, listed.size)
        self._reader = source.reader
        self._rows = self._plan.rows_of_shards() if source.reader.has_witness else {}
        self.destination = destination
        self.settings = plan_settings(self._plan, settings)
        self.max_rejects = settings.options.max_rejects + len(listed.dropped)  # these are intended
        self.shard_names = self._plan.shard_names

    def count_items(self, shards: Collection[str]) -> int:
        """Return how many items some shards have together."""
        return self._plan.items_of(shards)

    def check_size(self, announce: Callable[[ExpectedSize], None] | None) -> None:
        """Announce the expected size of the dataset, and refuse it if it is huge."""
        expected = ExpectedSize.of(self._plan, self._size, self.destination)
        if announce is not None:
            announce(expected)
        if not self._build_settings.options.allow_huge:
            expected.refuse_huge()

    def make(self, shards: Collection[str], run: Run) -> None:
        """Make shards, after checking that existing ones were made of the same records."""
        reader, rows = self._reader, self._rows
        for name, result in run.finished.items():
            if reader.has_witness and result.digest != reader.witness(rows[name]()):
                raise made_of_others(self.destination, name, "the records are others now")
            run.resumed(result)
            if reader.has_witness:  # comparing them takes time
                run.advanced(0, 0, 0)

        def add_digest(result: ShardResult) -> None:
            if reader.has_witness:
                result = replace(result, digest=reader.witness(rows[result.file.name]()))
            run.committed(result)

        threads = self._build_settings.threads
        running = self._engine(self._converter, self.destination, threads, add_digest, run.advanced)
        running.run(self._plan.jobs(shards))

    def describe(self, results: Sequence[ShardResult]) -> Manifest:
        """Write the files beside the shards, and return the manifest."""
        return describe_build(self._plan, self._build_settings, results, self.destination)


def made_of_others(destination: Location, shard: str, why: str) -> DestinationError:
    """Return an error about a shard that an earlier run made of other records."""
    message = f"{shard} in {destination} was made of other records by an earlier run: {why}"
    message += "; give the same records in the same order, build into another directory, or overwrite it"
    return DestinationError(message, path=str(destination / shard))


STREAM_NAMES = "{split}-{shard:05}.tfrecord"
"""Names of shards whose number is not known in advance."""


def build_stream(
    stream: RecordStream,
    source: Source,
    settings: BuildSettings,
    destination: Location,
    progress: Progress | None = None,
    overwrite: Callable[[str], None] | None = None,
) -> BuildReport:
    """Build a dataset from records without a length, or resume a build that was interrupted.

    The records are iterated once; ``source`` has the first ones. ``progress`` gets 0 for their unknown number.
    """
    started = time.monotonic()
    task = StreamBuild(stream, source, _checked(settings), destination)
    written = write(task, overwrite=overwrite, progress=progress)
    return build_report(written, source, destination, time.monotonic() - started)


def _checked(settings: BuildSettings) -> BuildSettings:
    """Return the settings, with names of shards that do not contain the number of shards."""
    options, unknown = settings.options, "how many records there are is not known before they are read"
    for name, value in ((option("shards"), options.shards), (option("validation_shards"), options.validation_shards)):
        if value is not None:
            raise ConfigError(f"{name} is {value}, but {unknown}; give {option('shard_size')}, or a sequence")
    for name, choice in ((option("num_images"), options.num_images), (option("split_fraction"), settings.held_out)):
        if choice is not None:
            raise ConfigError(f"{name} chooses among all records, but {unknown}; omit it, or give a sequence")
    if options.seed:
        raise ConfigError(
            f"{option('seed')} is {options.seed}, but records without a length are stored in their order; omit it"
        )
    if options.drop_duplicates is not None:
        message = f"{option('drop_duplicates')} needs records that can be read twice"
        raise ConfigError(f"{message}; give a list, or build without it and then from the dataset")
    if settings.naming == ShardNaming():
        return replace(settings, naming=ShardNaming(STREAM_NAMES))
    if settings.naming.tells_number:
        message = f"{option('shard_names')} {settings.naming.text!r} tells how many shards there are, but {unknown}"
        raise ConfigError(f"{message}; give 'part' or a template such as '{STREAM_NAMES}'")
    return settings


def _split_plan(split: str, lengths: list[int], naming: ShardNaming) -> SplitPlan:
    bounds = np.cumsum([0, *lengths])
    rows = np.broadcast_to(np.int64(0), int(bounds[-1]))  # the table has no class for any
    names = tuple(naming.name(split, shard, len(lengths)) for shard in range(len(lengths)))
    return SplitPlan(split, rows, bounds, names, 0)


class StreamBuild(Task):
    """A dataset of records without a length."""

    def __init__(self, stream: RecordStream, source: Source, settings: BuildSettings, destination: Location) -> None:
        self._stream = stream
        self._converter = ItemConverter(source, settings.recipe, settings.schema)
        size, self._converter.known = sample_records(self._converter, settings.threads)
        sizes = source.table.sizes
        mean = max(1.0, size.of(len(sizes), int(sizes.sum())) / len(sizes))
        self._length = max(1, round(settings.shard_bytes / mean))  # records of a shard
        self._build_settings = settings
        self._naming = settings.naming
        self._plan = Plan(source, (), settings.compression)
        self._digests: dict[str, str] = {}
        self._lengths: dict[str, list[int]] = {split: [] for split in stream.names}
        self.destination = destination
        self.settings = plan_settings(self._plan, settings) | {"shard_records": self._length}
        self.max_rejects = settings.options.max_rejects

    def settings_when_finished(self) -> dict[str, Any]:
        """Go through all records, and return the settings of a dataset of them."""
        for *_, items in self._shards():
            deque(items, maxlen=0)
        self._plan_shards()
        return plan_settings(self._plan, self._build_settings)

    def make(self, shards: Collection[str], run: Run) -> None:  # noqa: ARG002 - names are not known yet
        """Make the missing shards; compare the existing ones with the records."""

        def add_digest(result: ShardResult) -> None:
            run.committed(replace(result, digest=self._digests[result.file.name]))

        threads = self._build_settings.threads
        running = LocalEngine(self._converter, self.destination, threads, add_digest, run.advanced)
        running.run(self._jobs(run))
        self._plan_shards()
        self._remove_beyond()

    def describe(self, results: Sequence[ShardResult]) -> Manifest:
        """Write the files beside the shards, and return the manifest."""
        return describe_build(self._plan, self._build_settings, results, self.destination)

    def _plan_shards(self) -> None:
        """Make the plan of the shards that were made or compared."""
        self._stream.shard_digests += self._digests.values()
        splits = [_split_plan(split, lengths, self._naming) for split, lengths in self._lengths.items() if lengths]
        if splits:
            splits[0] = replace(splits[0], size_bytes=self._stream.size_bytes)
        self._plan = replace(self._plan, splits=tuple(splits))
        self.shard_names = self._plan.shard_names

    def _jobs(self, run: Run) -> Iterator[ShardJob]:
        """Yield the missing shards, in order; each must be made before the next one is requested."""
        remaining = dict(run.finished)
        for split, name, items in self._shards():
            result = remaining.pop(name, None)
            if result is None:
                yield ShardJob(name, split, items, self._plan.compression)
                continue
            number = sum(1 for _ in items)
            if (result.file.records + len(result.rejects), result.digest) != (number, self._digests[name]):
                raise made_of_others(self.destination, name, "the records are others now")
            run.resumed(result)
        if remaining:
            raise made_of_others(self.destination, next(iter(remaining)), "there are no records for it any more")

    def _shards(self) -> Iterator[tuple[str, str, Iterator[Item]]]:
        """Yield split, name and items of each shard; the items must be taken before the next shard is requested."""
        for split in self._stream.names:
            records = self._stream.records(split)
            for shard in count():
                first = next(records, None)
                if first is None:
                    break
                if shard == MAX_SHARDS:
                    raise ConfigError(
                        f"split {split!r} has more than {MAX_SHARDS} shards; raise {option('shard_size')}"
                    )
                name = self._naming.name(split, shard, 0)
                yield split, name, self._items_of(split, name, chain([first], islice(records, self._length - 1)))

    def _items_of(self, split: str, name: str, records: Iterable[tuple[int, Any]]) -> Iterator[Item]:
        """Yield the items of one shard, and record their number and the digest of all of their values."""
        digest, number = hashlib.sha256(), 0
        for record in records:
            item, values = self._stream.item(*record)
            digest.update(values)
            number += 1
            yield item
        self._digests[name] = digest.hexdigest()
        self._lengths[split].append(number)

    def _remove_beyond(self) -> None:
        """Remove shards that a killed run made of records that are gone now, and that no journal lists."""
        for split, lengths in self._lengths.items():
            for shard in range(len(lengths), len(lengths) + MAX_UNLISTED):
                name = self._naming.name(split, shard, 0)
                (self.destination / name).unlink(missing_ok=True)
                (self.destination / new_index_name(name)).unlink(missing_ok=True)
