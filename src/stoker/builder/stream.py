"""Builds from records without a length: read once, stored in their order, in shards of equally many records.

How many records a shard has follows from the first ones. A run that resumes goes through the same records again, and
compares what stands for the values of each finished shard with what its line in the journal says.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING

import numpy as np

from stoker.builder.convert import ItemConverter
from stoker.builder.destination import NOT_NOTED, finished_dataset, what_is_replaced
from stoker.builder.estimate import sample_records
from stoker.builder.local import LocalEngine
from stoker.builder.plan import Plan, ShardJob, SplitPlan, plan_settings
from stoker.builder.run import BuildReport, Run, complete_report
from stoker.config import option
from stoker.errors import ConfigError
from stoker.format import MANIFEST_NAME, MAX_SHARDS, ShardNaming, new_index_name, open_journal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from stoker.builder.local import EngineFactory
    from stoker.builder.settings import BuildSettings
    from stoker.format import Journal, ShardResult
    from stoker.sources import Item, RecordStream
    from stoker.storage import Location
    from stoker.types import Progress

STREAM_NAMES = "{split}-{shard:05}.tfrecord"
"""Names of shards while nobody knows how many there will be."""


def build_stream(
    stream: RecordStream,
    settings: BuildSettings,
    destination: Location,
    progress: Progress | None = None,
    *,
    overwrite: bool = False,
) -> BuildReport:
    """Build a dataset from records without a length, or resume a build that was interrupted.

    Args:
        stream: The records; they are gone through once.
        settings: What to build.
        destination: Directory of the dataset; one that `check_destination` accepts.
        progress: Called after every few records, with 0 for their unknown number.
        overwrite: Whether a finished dataset, or an unfinished build with other settings, is removed first.

    Raises:
        ConfigError: A setting needs to know how many records there are.
        SourceError: There is no record that can be stored.
        DestinationError: The destination holds something else, or other records than these.
        OSError: The destination cannot be written. Run again to resume.
    """
    started = time.monotonic()
    settings = _checked(settings)
    converter = ItemConverter(stream, settings.recipe, settings.schema)
    size, converter.known = sample_records(converter, settings.threads)
    sizes = stream.table.sizes
    mean = max(1.0, size.of(len(sizes), int(sizes.sum())) / len(sizes))
    length = max(1, round(settings.shards.size_bytes / mean))
    plan = Plan(stream, (), settings.shards.compression)
    wanted = plan_settings(plan, settings) | {"shard_records": length}
    replaced = what_is_replaced(destination, wanted) if overwrite else None
    if replaced is None and (destination / MANIFEST_NAME).lexists():
        return _compared(stream, settings, destination, length, started)
    with open_journal(destination) as journal:
        run = StreamRun(stream, settings, destination, journal, progress, length)
        return run.run(LocalEngine, converter, started, overwrites=replaced is not None)


def _checked(settings: BuildSettings) -> BuildSettings:
    """Return the settings with names of shards that do not tell their number."""
    shards, source = settings.shards, settings.source
    unknown = "how many records there are is not known before they are read"
    for name, value in ((option("shards"), shards.train), (option("validation_shards"), shards.validation)):
        if value is not None:
            raise ConfigError(f"{name} is {value}, but {unknown}; give {option('shard_size')}, or a sequence")
    for name, choice in ((option("num_images"), source.limit), (option("split_fraction"), source.held_out)):
        if choice is not None:
            raise ConfigError(f"{name} chooses among all records, but {unknown}; omit it, or give a sequence")
    if settings.seed:
        raise ConfigError(
            f"{option('seed')} is {settings.seed}, but records without a length are stored in their order; omit it"
        )
    if shards.naming == ShardNaming():
        return replace(settings, shards=replace(shards, naming=ShardNaming(STREAM_NAMES)))
    if shards.naming.tells_number:
        message = f"{option('shard_names')} {shards.naming.text!r} tells how many shards there are, but {unknown}"
        raise ConfigError(f"{message}; give 'part' or a template such as '{STREAM_NAMES}'")
    return settings


def _compared(
    stream: RecordStream, settings: BuildSettings, destination: Location, length: int, started: float
) -> BuildReport:
    """Return the report of a finished dataset if it was made of the same records."""
    splits = []
    for split in stream.names:
        records = stream.records(split)
        lengths = []
        while group := list(islice(records, length)):
            digest = hashlib.sha256()
            for record in group:
                digest.update(stream.item(*record)[1])
            stream.shard_digests.append(digest.hexdigest())
            lengths.append(len(group))
        if lengths:
            splits.append(_split_plan(split, lengths, settings.shards.naming))
    plan = Plan(stream, tuple(splits), settings.shards.compression)
    finished = finished_dataset(destination, plan_settings(plan, settings))
    assert finished is not None, "a dataset is there"
    return complete_report(finished, destination, stream, started)


def _split_plan(split: str, lengths: list[int], naming: ShardNaming, size_bytes: int = 0) -> SplitPlan:
    """Return what became of a split whose shards were made of so many records."""
    bounds = np.cumsum([0, *lengths])
    rows = np.broadcast_to(np.int64(0), int(bounds[-1]))  # none has a class in the table
    names = tuple(naming.name(split, shard, len(lengths)) for shard in range(len(lengths)))
    return SplitPlan(split, rows, bounds, names, size_bytes)


class StreamRun(Run):
    """The part of a build of records without a length that has the journal open.

    Args:
        stream: The records.
        settings: What to build.
        destination: Where.
        journal: Of the destination.
        progress: Called after every few records.
        length: Records of a shard.
    """

    def __init__(
        self,
        stream: RecordStream,
        settings: BuildSettings,
        destination: Location,
        journal: Journal,
        progress: Progress | None,
        length: int,
    ) -> None:
        super().__init__(Plan(stream, (), settings.shards.compression), settings, destination, journal, progress)
        self._wanted |= {"shard_records": length}
        self._stream = stream
        self._length = length
        self._digests: dict[str, str] = {}
        self._lengths: dict[str, list[int]] = {}

    def _build_shards(self, engine: EngineFactory, converter: ItemConverter) -> None:
        """Build every shard that is not there yet; compare those that are with the records."""
        there = {result.file.name: result for result in self._journal.results}
        self._resumed = frozenset(there)
        engine(converter, self._destination, self._settings.threads, self._committed, self._advanced).run(
            self._jobs(dict(there))
        )
        self._stream.shard_digests += [self._digests[name] for name in self._digests]
        splits = [_split_plan(split, lengths, self._naming) for split, lengths in self._lengths.items() if lengths]
        if splits:
            splits[0] = replace(splits[0], size_bytes=self._stream.size_bytes)
        self._plan = Plan(self._stream, tuple(splits), self._settings.shards.compression)
        self._remove_beyond()

    @property
    def _naming(self) -> ShardNaming:
        return self._settings.shards.naming

    def _committed(self, result: ShardResult) -> None:
        self._journal.append(replace(result, digest=self._digests[result.file.name]))

    def _jobs(self, there: dict[str, ShardResult]) -> Iterator[ShardJob]:
        """Yield the shards that are not there, in order; each is to be made before the next one is asked for."""
        for split in self._stream.names:
            records = self._stream.records(split)
            lengths = self._lengths.setdefault(split, [])
            for shard in count():
                first = next(records, None)
                if first is None:
                    break
                if shard == MAX_SHARDS:
                    raise ConfigError(
                        f"split {split!r} has more than {MAX_SHARDS} shards; raise {option('shard_size')}"
                    )
                name = self._naming.name(split, shard, 0)
                items = self._items_of(name, chain([first], islice(records, self._length - 1)))
                if name in there:
                    self._compare(there.pop(name), items, lengths)
                else:
                    yield ShardJob(name, split, self._counted(items, lengths), self._settings.shards.compression)
        if there:
            raise self._made_of_others(next(iter(there)), "there are no records for it any more")

    def _items_of(self, name: str, records: Iterable[tuple[int, Any]]) -> Iterator[Item]:
        """Yield the items of one shard, and take note of what stands for all of their values."""
        digest = hashlib.sha256()
        for record in records:
            item, values = self._stream.item(*record)
            digest.update(values)
            yield item
        self._digests[name] = digest.hexdigest()

    def _counted(self, items: Iterable[Item], lengths: list[int]) -> Iterator[Item]:
        number = 0
        for item in items:
            number += 1
            yield item
        lengths.append(number)

    def _compare(self, result: ShardResult, items: Iterable[Item], lengths: list[int]) -> None:
        number = sum(1 for _ in items)
        lengths.append(number)
        name = result.file.name
        if (result.file.records + len(result.rejects), result.digest) != (number, self._digests[name]):
            raise self._made_of_others(name, "the records are others now")
        self._count(result)

    def _remove_beyond(self) -> None:
        """Remove shards that a killed run made of records that are no longer there; no journal knows of them."""
        for split, lengths in self._lengths.items():
            for shard in range(len(lengths), len(lengths) + NOT_NOTED):
                name = self._naming.name(split, shard, 0)
                (self._destination / name).unlink(missing_ok=True)
                (self._destination / new_index_name(name)).unlink(missing_ok=True)
