"""Builds from records without a length: read once, stored in their order, in shards of equally many records.

How many records a shard has follows from the first ones. A run that resumes goes through the same records again, and
compares what stands for the values of each finished shard with what its line in the journal says.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from dataclasses import replace
from itertools import chain, count, islice
from typing import TYPE_CHECKING

import numpy as np

from stoker.builder.convert import ItemConverter
from stoker.builder.destination import NOT_NOTED
from stoker.builder.estimate import sample_records
from stoker.builder.listed import made_of_others
from stoker.builder.local import LocalEngine
from stoker.builder.plan import Plan, ShardJob, SplitPlan, plan_settings
from stoker.builder.report import build_report, describe_build
from stoker.builder.writing import Task, write
from stoker.config import option
from stoker.errors import ConfigError
from stoker.format import MAX_SHARDS, ShardNaming, new_index_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from stoker.builder.report import BuildReport
    from stoker.builder.settings import BuildSettings
    from stoker.builder.writing import Tally
    from stoker.format import Manifest, ShardResult
    from stoker.sources import Item, RecordStream, Source
    from stoker.storage import Location
    from stoker.types import Progress

STREAM_NAMES = "{split}-{shard:05}.tfrecord"
"""Names of shards while nobody knows how many there will be."""


def build_stream(
    stream: RecordStream,
    source: Source,
    settings: BuildSettings,
    destination: Location,
    progress: Progress | None = None,
    overwrite: Callable[[str], None] | None = None,
) -> BuildReport:
    """Build a dataset from records without a length, or resume a build that was interrupted.

    The records, of which ``source`` has the first, are gone through once. ``progress`` gets 0 for their unknown number.
    """
    started = time.monotonic()
    task = StreamBuild(stream, source, _checked(settings), destination)
    written = write(task, overwrite=overwrite, progress=progress)
    return build_report(written, source, destination, time.monotonic() - started)


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


def _split_plan(split: str, lengths: list[int], naming: ShardNaming) -> SplitPlan:
    bounds = np.cumsum([0, *lengths])
    rows = np.broadcast_to(np.int64(0), int(bounds[-1]))  # none has a class in the table
    names = tuple(naming.name(split, shard, len(lengths)) for shard in range(len(lengths)))
    return SplitPlan(split, rows, bounds, names, 0)


class StreamBuild(Task):
    """A dataset of records without a length."""

    def __init__(self, stream: RecordStream, source: Source, settings: BuildSettings, destination: Location) -> None:
        if settings.source.drop_duplicates is not None:
            message = f"{option('drop_duplicates')} needs records that can be read twice"
            raise ConfigError(f"{message}; give a list, or build without it and then from the dataset")
        self._stream = stream
        self._converter = ItemConverter(source, settings.recipe, settings.schema)
        size, self._converter.known = sample_records(self._converter, settings.threads)
        sizes = source.table.sizes
        mean = max(1.0, size.of(len(sizes), int(sizes.sum())) / len(sizes))
        self._length = max(1, round(settings.shards.size_bytes / mean))  # records of a shard
        self._build_settings = settings
        self._naming = settings.shards.naming
        self._plan = Plan(source, (), settings.shards.compression)
        self._digests: dict[str, str] = {}
        self._lengths: dict[str, list[int]] = {split: [] for split in stream.names}
        self.destination = destination
        self.settings = plan_settings(self._plan, settings) | {"shard_records": self._length}
        self.max_rejects = settings.max_rejects

    def settings_when_finished(self) -> dict[str, Any]:
        """Go through all records, and return the settings of a dataset of them."""
        for *_, items in self._shards():
            deque(items, maxlen=0)
        self._plan_shards()
        return plan_settings(self._plan, self._build_settings)

    def make(
        self,
        shards: Collection[str],  # noqa: ARG002 - their names are not known yet
        there: Mapping[str, ShardResult],
        committed: Callable[[ShardResult], None],
        tally: Tally,
    ) -> None:
        """Make every shard that is not there yet; compare those that are with the records."""

        def add_digest(result: ShardResult) -> None:
            committed(replace(result, digest=self._digests[result.file.name]))

        threads = self._build_settings.threads
        running = LocalEngine(self._converter, self.destination, threads, add_digest, tally.advanced)
        running.run(self._jobs(there, tally))
        self._plan_shards()
        self._remove_beyond()

    def describe(self, results: Sequence[ShardResult]) -> Manifest:
        """Write the files beside the shards, and return the manifest."""
        return describe_build(self._plan, self._build_settings, results, self.destination)

    def _plan_shards(self) -> None:
        """Take the shards that were made, or compared, for the plan."""
        self._stream.shard_digests += self._digests.values()
        splits = [_split_plan(split, lengths, self._naming) for split, lengths in self._lengths.items() if lengths]
        if splits:
            splits[0] = replace(splits[0], size_bytes=self._stream.size_bytes)
        self._plan = replace(self._plan, splits=tuple(splits))
        self.shard_names = self._plan.shard_names

    def _jobs(self, there: Mapping[str, ShardResult], tally: Tally) -> Iterator[ShardJob]:
        """Yield the shards that are not there, in order; each is to be made before the next one is asked for."""
        left = dict(there)
        for split, name, items in self._shards():
            result = left.pop(name, None)
            if result is None:
                yield ShardJob(name, split, items, self._plan.compression)
                continue
            number = sum(1 for _ in items)
            if (result.file.records + len(result.rejects), result.digest) != (number, self._digests[name]):
                raise made_of_others(self.destination, name, "the records are others now")
            tally.resumed(result)
        if left:
            raise made_of_others(self.destination, next(iter(left)), "there are no records for it any more")

    def _shards(self) -> Iterator[tuple[str, str, Iterator[Item]]]:
        """Yield split, name and items of each shard; the items are to be taken before the next one is asked for."""
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
        """Yield the items of one shard, and take note of their number and of what stands for all of their values."""
        digest, number = hashlib.sha256(), 0
        for record in records:
            item, values = self._stream.item(*record)
            digest.update(values)
            number += 1
            yield item
        self._digests[name] = digest.hexdigest()
        self._lengths[split].append(number)

    def _remove_beyond(self) -> None:
        """Remove shards that a killed run made of records that are no longer there; no journal knows of them."""
        for split, lengths in self._lengths.items():
            for shard in range(len(lengths), len(lengths) + NOT_NOTED):
                name = self._naming.name(split, shard, 0)
                (self.destination / name).unlink(missing_ok=True)
                (self.destination / new_index_name(name)).unlink(missing_ok=True)
