"""One build from the first look at the destination to the manifest."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker.builder.convert import ItemConverter
from stoker.builder.destination import (
    check_destination,
    finished_dataset,
    remove_dataset,
    resume,
    what_is_replaced,
    write_companions,
)
from stoker.builder.estimate import ExpectedSize, sample_records
from stoker.builder.local import LocalEngine
from stoker.builder.plan import make_plan, open_source, plan_settings, recipe_record
from stoker.config import stoker_version
from stoker.errors import DestinationError, StorageError
from stoker.format import (
    LABELS_NAME,
    REJECTS_NAME,
    Manifest,
    SourceInfo,
    Split,
    is_unfinished,
    open_journal,
    read_rejects,
    write_labels,
    write_manifest,
    write_rejects,
)
from stoker.storage import location
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stoker.builder.local import EngineFactory
    from stoker.builder.plan import Plan, SplitPlan
    from stoker.builder.settings import BuildSettings
    from stoker.format import Journal, ShardResult
    from stoker.sources import Source
    from stoker.storage import Location, LocationLike
    from stoker.types import Progress


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Attributes:
        outcome: ``built``; ``complete``: it was finished before, nothing was touched; ``withheld``: everything is
            there except the manifest, because there are more rejects than allowed.
        manifest: Of the dataset, whether or not it was written.
        seconds: How long this run took.
        items: Items converted by this run; fewer than the dataset holds after a resume.
        size_bytes: Source bytes of these items.
        resumed_shards: Shards that an earlier run had finished.
        rejects: All rejects of the dataset.
        annotation_errors: Damaged annotations met by this build, one sentence each.
        warnings: What the listing had to say.
    """

    outcome: Literal["built", "complete", "withheld"]
    manifest: Manifest
    seconds: float
    items: int
    size_bytes: int
    resumed_shards: int
    rejects: tuple[Reject, ...]
    annotation_errors: tuple[str, ...]
    warnings: tuple[str, ...]


def build(
    settings: BuildSettings,
    destination: LocationLike,
    progress: Progress | None = None,
    announce: Callable[[ExpectedSize], None] | None = None,
    engine: EngineFactory = LocalEngine,
) -> BuildReport:
    """Build a dataset from images, or resume one that was interrupted.

    The same settings give the same bytes for any number of threads, in any destination, and after any number of
    interruptions. Only one build at a time can write to a directory; in a store two may, with the same settings.

    Args:
        settings: What to build.
        destination: Directory of the dataset, created if missing; or where it lies in a store.
        progress: Called after every few items, from the calling thread.
        announce: Called with the size that the dataset will have, before anything is written.
        engine: Makes the shards; threads of this process unless another is given.

    Raises:
        ConfigError: The settings do not fit the source, or the dataset is huge and ``accept_size`` is not set.
        SourceError: The source cannot be listed.
        DestinationError: The destination holds something else, or another build is writing to it.
        OSError: The destination cannot be written, or the store of the source or of the destination has gone. Run
            again to resume.
        KeyboardInterrupt: Run again to resume.
    """
    destination = location(destination)
    check_destination(destination, settings.source.root)
    tree = open_source(settings.source, destination=destination)
    return build_tree(tree, settings, destination, progress, announce, engine)


def build_tree(
    tree: Source,
    settings: BuildSettings,
    destination: LocationLike,
    progress: Progress | None = None,
    announce: Callable[[ExpectedSize], None] | None = None,
    engine: EngineFactory = LocalEngine,
    overwrite: Callable[[str], None] | None = None,
) -> BuildReport:
    """Build a dataset from a source that is already listed; as `build` otherwise.

    The destination is one that `check_destination` accepts. With ``overwrite`` a dataset that is finished there, or an
    unfinished build with other settings, is removed first: ``overwrite`` is called with what it is, and raises to keep
    it. A build that was interrupted after that is resumed by the same call.
    """
    started = time.monotonic()
    destination = location(destination)
    converter = ItemConverter(tree, settings.recipe, settings.schema)
    size, converter.known = sample_records(converter, settings.threads)
    plan = make_plan(tree, settings, size)
    wanted = plan_settings(plan, settings)
    replaced = None if overwrite is None else what_is_replaced(destination, wanted)
    if replaced is not None and location(settings.source.root).lies_in(destination):
        message = (
            f"{settings.source.root} lies in {destination}, which would be overwritten; build into another directory"
        )
        raise DestinationError(message, path=str(destination))
    if replaced is not None or not is_unfinished(destination):
        finished = None if replaced is not None else finished_dataset(destination, wanted)
        if finished is not None:
            if not destination.has_locks:  # a second build of the same may have been killed after the first
                destination.remove_temporaries()
            return _complete_report(finished, destination, tree, started)
        expected = ExpectedSize.of(plan, size, destination)
        if announce is not None:
            announce(expected)
        if not settings.accept_size:
            expected.refuse_huge()
    if replaced is not None and overwrite is not None:
        overwrite(replaced)
    with open_journal(destination) as journal:
        run = _Run(plan, settings, destination, journal, progress)
        return run.run(engine, converter, started, overwrites=replaced is not None)


class _Run:
    """The part of a build that holds the lock."""

    def __init__(
        self, plan: Plan, settings: BuildSettings, destination: Location, journal: Journal, progress: Progress | None
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._destination = destination
        self._journal = journal
        self._progress = progress
        self._wanted = plan_settings(plan, settings)
        self._resumed: frozenset[str] = frozenset()
        self._items = 0
        self._rejects = 0
        self._new_items = 0
        self._new_bytes = 0

    def run(
        self, engine: EngineFactory, converter: ItemConverter, started: float, *, overwrites: bool = False
    ) -> BuildReport:
        """Build what is missing and finish the dataset; whatever stops it leaves a build to resume."""
        try:
            if overwrites:
                remove_dataset(self._destination, self._journal, self._wanted)
            # By a build that ended since we looked, or died just before it could remove its journal.
            finished = finished_dataset(self._destination, self._wanted) or self._resume()
            if finished is not None:
                self._destination.remove_temporaries()
                self._journal.remove()
                return _complete_report(finished, self._destination, self._plan.tree, started)
            self._count_resumed()
            self._build_shards(engine, converter)
            return self._finish(started)
        except (OSError, MemoryError, KeyboardInterrupt) as error:
            self._leave_resumable(error)
            raise

    def _leave_resumable(self, error: OSError | MemoryError | KeyboardInterrupt) -> None:
        if self._destination.has_locks:
            # An interrupt may come between making a file and noting it. Where nothing can be written, nothing can be
            # removed either; the next run does.
            with contextlib.suppress(OSError):
                self._destination.remove_temporaries()
        if isinstance(error, OSError) and not isinstance(error, StorageError) and error.filename is None:
            error.filename = str(self._destination)  # a failed write carries no file name
        error.add_note("what is finished is kept; run the same command again to resume")

    def _resume(self) -> Manifest | None:
        """Resume the build, or begin it; return the manifest if it is finished by now."""
        resume(self._journal, self._destination, self._wanted)
        if self._destination.has_locks:
            return None
        try:
            # Without a lock another build may have ended since we looked, and removed its journal before we read it.
            return finished_dataset(self._destination, self._wanted)
        except DestinationError:
            self._journal.remove()
            raise

    def _count_resumed(self) -> None:
        results = self._journal.results
        self._resumed = frozenset(result.file.name for result in results)
        self._items = sum(result.file.records + len(result.rejects) for result in results)
        self._rejects = sum(len(result.rejects) for result in results)

    def _build_shards(self, engine: EngineFactory, converter: ItemConverter) -> None:
        """Build every shard that is not there yet."""
        threads, committed = self._settings.threads, self._journal.append
        running = engine(converter, self._destination, threads, committed, self._advanced)
        running.run(self._plan.jobs(done=self._resumed))

    def _finish(self, started: float) -> BuildReport:
        """Write what describes the shards; the manifest last, and only if the rejects are accepted."""
        results = self._ordered_results()
        manifest = _make_manifest(self._plan, self._settings, results)
        tree, base = self._plan.tree, self._settings.schema.label_base
        numbered = self._settings.numbered_labels
        labels = write_labels(self._destination, tree.classes, tree.texts, base, numbered=numbered)
        rejects = tuple(_rejects_of(results))
        files = {LABELS_NAME: labels, REJECTS_NAME: write_rejects(self._destination, rejects)}
        manifest = replace(manifest, files=files | write_companions(self._destination, manifest, tree.classes))
        withheld = manifest.rejects > self._settings.max_rejects
        if not withheld:
            write_manifest(self._destination, manifest)
            self._destination.remove_temporaries()
            self._journal.remove()
        return BuildReport(
            outcome="withheld" if withheld else "built",
            manifest=manifest,
            seconds=time.monotonic() - started,
            items=self._new_items,
            size_bytes=self._new_bytes,
            resumed_shards=len(self._resumed),
            rejects=rejects,
            annotation_errors=tuple(error for result in results for error in result.annotation_errors),
            warnings=tree.warnings,
        )

    def _ordered_results(self) -> list[ShardResult]:
        """Return the results in the order of the plan: after a resume the journal may hold them in another."""
        by_name = {result.file.name: result for result in self._journal.results}
        names = [name for split in self._plan.splits for name in split.shard_names]
        return [by_name[name] for name in names]

    def _advanced(self, items: int, size_bytes: int, rejects: int) -> None:
        self._items += items
        self._rejects += rejects
        self._new_items += items
        self._new_bytes += size_bytes
        if self._progress is not None:
            self._progress(done=self._items, total=self._plan.items, size_bytes=self._new_bytes, rejects=self._rejects)


def _complete_report(manifest: Manifest, destination: Location, tree: Source, started: float) -> BuildReport:
    """Return what a build did that found its dataset finished.

    Args:
        manifest: Of the dataset.
        destination: Where it lies.
        tree: What it would have been built from.
        started: When it began, by a monotonic clock.
    """
    return BuildReport(
        outcome="complete",
        manifest=manifest,
        seconds=time.monotonic() - started,
        items=0,
        size_bytes=0,
        resumed_shards=sum(len(split.shards) for split in manifest.splits.values()),
        rejects=read_rejects(destination, manifest.files.get(REJECTS_NAME)),
        annotation_errors=(),
        warnings=tree.warnings,
    )


def _make_manifest(plan: Plan, settings: BuildSettings, results: Sequence[ShardResult]) -> Manifest:
    """Return the manifest of a build whose shards are all complete, but for the files beside them.

    Args:
        plan: What was planned.
        settings: How it was built.
        results: All shards, in the order of the plan.
    """
    converted: Counter[str] = Counter()
    for result in results:
        converted.update(result.converted)
    return Manifest(
        stoker_version=stoker_version(),
        schema=settings.schema.info(len(plan.tree.classes)),
        recipe=recipe_record(settings),
        seed=settings.seed,
        source=SourceInfo(plan.items, plan.size_bytes, plan.tree.fingerprint(), plan.tree.ignored),
        converted=converted,
        annotation_errors=sum(len(result.annotation_errors) for result in results),
        splits={split.name: _split(plan, split, settings.schema.label_base, results) for split in plan.splits},
        compression=settings.shards.compression,
        shard_names=settings.shards.naming.text,
        limit=settings.source.limit,
    )


def _rejects_of(results: Sequence[ShardResult]) -> Iterator[Reject]:
    """Yield every reject, in the order of the plan."""
    for result in results:
        for reject in result.rejects:
            yield Reject(reject.key, result.split, reject.reason)


def _split(plan: Plan, split: SplitPlan, label_base: int, results: Sequence[ShardResult]) -> Split:
    mine = [result for result in results if result.split == split.name]
    rejected = np.asarray([reject.label for result in mine for reject in result.rejects], np.int64)
    # Item -1 counts what has no class.
    counts = np.bincount(plan.tree.table.labels[split.rows] + 1, minlength=len(plan.tree.classes) + 1)
    counts -= np.bincount(rejected + 1, minlength=len(counts))
    shards = tuple(result.file for result in mine)
    records = sum(shard.records for shard in shards)
    assert records + len(rejected) == len(split.rows), "an item is neither in the dataset nor among its rejects"
    return Split(
        records=records,
        size_bytes=sum(shard.size_bytes for shard in shards),
        rejects=len(rejected),
        class_counts=(0,) * label_base + tuple(counts[1:].tolist()),
        shards=shards,
        unlabelled=int(counts[0]),
    )
