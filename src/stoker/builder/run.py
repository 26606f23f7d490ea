"""One build from the first look at the destination to the manifest."""

from __future__ import annotations

import contextlib
import html
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from stoker.builder.convert import ItemConverter, class_number
from stoker.builder.destination import (
    check_destination,
    finished_dataset,
    forget_missing,
    remove_dataset,
    resume,
    what_is_replaced,
    write_companions,
)
from stoker.builder.estimate import ExpectedSize, sample_records
from stoker.builder.local import LocalEngine
from stoker.builder.parts import NO_PART, note_part, parts_lacking
from stoker.builder.plan import make_plan, plan_settings, recipe_record, stored_schema
from stoker.config import format_count, format_seconds, format_size, option, stoker_version
from stoker.errors import DestinationError, SourceWarning, StorageError, printable
from stoker.format import (
    LABELS_NAME,
    MANIFEST_NAME,
    REJECTS_NAME,
    Manifest,
    SourceInfo,
    Split,
    is_unfinished,
    nested_counts,
    open_journal,
    read_journal_head,
    read_rejects,
    write_labels,
    write_manifest,
    write_rejects,
)
from stoker.recipe import KEPT_FORMATS, encoder_versions
from stoker.sources import Records, counts_of
from stoker.storage import location
from stoker.types import Reject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stoker.builder.convert import Outcome
    from stoker.builder.local import EngineFactory
    from stoker.builder.parts import ListedSource, Part
    from stoker.builder.plan import Plan, SplitPlan
    from stoker.builder.settings import BuildSettings
    from stoker.format import Journal, ShardResult
    from stoker.sources import Source
    from stoker.storage import Location, LocationLike
    from stoker.types import Progress


_SHOWN_PARTS = 8


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

    def __repr__(self) -> str:
        return f"<stoker.BuildReport {'; '.join(self._facts())}>"

    def _repr_html_(self) -> str:
        return _as_html("BuildReport", self._facts())

    def _facts(self) -> list[str]:
        """Return what a person wants to know, the most important first."""
        manifest = self.manifest
        splits = [
            f"{name}: {format_count(split.records, 'record')} in {format_count(len(split.shards), 'shard')}, "
            f"{format_size(split.size_bytes)}"
            for name, split in manifest.splits.items()
        ]
        note = manifest.schema.label_note
        facts = [f"{self.outcome}: dataset {manifest.dataset_id}", *splits]
        facts.append(f"{format_count(manifest.classes, 'class')}{', ' * bool(note)}{note}")
        if self.rejects:
            facts.append(f"{format_count(len(self.rejects), 'reject')}, the first {self.rejects[0].key}")
        return [*facts, f"{format_count(self.items, 'image')} in {format_seconds(self.seconds)}"]


@dataclass(frozen=True, slots=True)
class PartReport:
    """What one part of a build did.

    Attributes:
        part: Which part: ``part.number``, from 0, of ``part.count``.
        shards: How many shards are its own; all of them are complete.
        resumed_shards: How many of those an earlier run had finished.
        all_shards: How many shards the dataset has.
        missing_shards: How many of those no part has finished yet.
        seconds: How long this run took.
        items: Items converted by this run.
        size_bytes: Source bytes of these items.
        rejects: Rejects in the shards of the part.
        annotation_errors: Damaged annotations in them, one sentence each.
        warnings: What the listing had to say.
        dataset: The report of the whole build, if no shard is missing any more; None otherwise.
    """

    part: Part
    shards: int
    resumed_shards: int
    all_shards: int
    missing_shards: int
    seconds: float
    items: int
    size_bytes: int
    rejects: tuple[Reject, ...]
    annotation_errors: tuple[str, ...]
    warnings: tuple[str, ...]
    dataset: BuildReport | None

    def __repr__(self) -> str:
        return f"<stoker.PartReport {'; '.join(self._facts())}>"

    def _repr_html_(self) -> str:
        return _as_html("PartReport", self._facts())

    def _facts(self) -> list[str]:
        """Return what a person wants to know, the most important first."""
        facts = [
            f"{self.part}: {self.shards:,} of {format_count(self.all_shards, 'shard')}",
            f"{format_count(self.missing_shards, 'shard')} of other parts missing",
        ]
        if self.rejects:
            facts.append(f"{format_count(len(self.rejects), 'reject')}, the first {self.rejects[0].key}")
        return [*facts, f"{format_count(self.items, 'image')} in {format_seconds(self.seconds)}"]


def _as_html(name: str, facts: Sequence[str]) -> str:
    """Return what a notebook shows of a report."""
    title, *others = (html.escape(printable(fact)) for fact in facts)
    lines = "".join(f"<div style='opacity:.65'>{fact}</div>" for fact in others)
    return f"<div style='font-family:system-ui,sans-serif'><div><b>stoker.{name}</b> {title}</div>{lines}</div>"


def build_tree(
    tree: Source,
    settings: BuildSettings,
    destination: LocationLike,
    progress: Progress | None = None,
    announce: Callable[[ExpectedSize], None] | None = None,
    engine: EngineFactory = LocalEngine,
    overwrite: Callable[[str], None] | None = None,
) -> BuildReport:
    """Build a dataset from a source that is listed, or resume a build that was interrupted.

    The same settings give the same bytes for any number of threads, in any destination, and after any number of
    interruptions. Only one build at a time can write to a directory; in a store two may, with the same settings.

    Args:
        tree: The source.
        settings: What to build.
        destination: Directory of the dataset, created if missing, or where it lies in a store; one that
            `check_destination` accepts.
        progress: Called after every few items, from the calling thread.
        announce: Called with the size that the dataset will have, before anything is written.
        engine: Makes the shards; threads of this process unless another is given.
        overwrite: Called with what is there if that is a finished dataset, or an unfinished build with other settings,
            which are then removed; raises to keep it. A build that was interrupted after that is resumed by the same
            call. Without it they are refused.

    Raises:
        ConfigError: The settings do not fit the source, or the dataset is huge and ``accept_size`` is not set.
        DestinationError: The destination holds something else, or another build is writing to it.
        OSError: The destination cannot be written, or the store of the source or of the destination has gone. Run
            again to resume.
        KeyboardInterrupt: Run again to resume.
    """
    started = time.monotonic()
    destination = location(destination)
    converter = ItemConverter(tree, settings.recipe, settings.schema)
    size, converter.known = sample_records(converter, settings.threads)
    _warn_of_converted(settings, converter.known.values())
    plan = make_plan(tree, settings, size)
    wanted = plan_settings(plan, settings)
    replaced = None if overwrite is None else what_is_replaced(destination, wanted)
    source = settings.source.root
    if replaced is not None and source is not None and location(source).lies_in(destination):
        message = (
            f"{settings.source.root} lies in {destination}, which would be overwritten; build into another directory"
        )
        raise DestinationError(message, path=str(destination))
    if replaced is not None or not is_unfinished(destination):
        finished = None if replaced is not None else finished_dataset(destination, wanted)
        if finished is not None:
            if not destination.has_locks:  # a second build of the same may have been killed after the first
                destination.remove_temporaries()
            return complete_report(finished, destination, tree, started)
        expected = ExpectedSize.of(plan, size, destination)
        if announce is not None:
            announce(expected)
        if not settings.accept_size:
            expected.refuse_huge()
    if replaced is not None and overwrite is not None:
        overwrite(replaced)
    with open_journal(destination) as journal:
        run = Run(plan, settings, destination, journal, progress)
        return run.run(engine, converter, started, overwrites=replaced is not None)


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
        advice = "'stoker plan' with the same settings says what becomes of them"
        warnings.warn(f"{message}: {others} of {looked_at} looked at; {advice}", SourceWarning, stacklevel=4)


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
    byte that of `build`. A build may go on with another number of parts: complete shards are not built again.

    Args:
        listed: What `list_once` has returned.
        settings: What to build; the same for all parts.
        destination: Directory of the dataset, created if missing, or where it lies in a store; one that
            `check_part_destination` accepts.
        part: Which part; `NO_PART` only finishes the dataset.
        progress: Called after every few items of the part, from the calling thread.
        announce: Called with the size that the dataset will have, by parts that begin before any shard is built.

    Raises:
        ConfigError: As `build_tree`.
        SourceError: As `build_tree`.
        DestinationError: The destination holds something else, or a build with other settings or without parts; or
            there is a shard missing, and no part that builds it.
        OSError: As `build_tree`.
        KeyboardInterrupt: Run again to resume.
    """
    started = time.monotonic()
    destination = location(destination)
    converter = ItemConverter(listed.tree, settings.recipe, settings.schema)
    converter.known = listed.known
    plan = make_plan(listed.tree, settings, listed.size)
    wanted = plan_settings(plan, settings)
    if not _has_begun(destination) and finished_dataset(destination, wanted) is None:
        expected = ExpectedSize.of(plan, listed.size, destination)
        if announce is not None:
            announce(expected)
        if not settings.accept_size:
            expected.refuse_huge()
    try:
        with open_journal(destination, in_parts=True) as journal:
            return Run(plan, settings, destination, journal, progress, part).run_part(converter, started)
    except FileNotFoundError:
        # Another part has finished the dataset while this one wrote what was there already.
        finished = finished_dataset(destination, wanted)
        if finished is None:
            raise
        shards = sum(part.has(shard) for shard in range(len(plan.shard_names)))
        complete = complete_report(finished, destination, plan.tree, started)
        return _part_report(part, shards, complete)


def check_part_destination(destination: Location, source: str, part: Part) -> None:
    """Refuse a destination in which no part can be built, before the source is looked at.

    Raises:
        DestinationError: As `check_destination`; or no part has begun there, and this is none.
        OSError: It cannot be listed.
    """
    check_destination(destination, source)
    if part == NO_PART and not is_unfinished(destination) and not (destination / MANIFEST_NAME).lexists():
        message = f"no build has begun in {destination}, so there is nothing to finish; begin with {option('part')} 0/N"
        raise DestinationError(message, path=str(destination))


def _has_begun(destination: Location) -> bool:
    try:
        read_journal_head(destination)
    except FileNotFoundError:
        return False
    return True


class Run:
    """The part of a build that has the journal open.

    Args:
        plan: All of the build.
        settings: What to build.
        destination: Where.
        journal: Of the destination.
        progress: Called after every few items.
        part: Whose shards are built, while other processes build other parts; None for all.
    """

    def __init__(
        self,
        plan: Plan,
        settings: BuildSettings,
        destination: Location,
        journal: Journal,
        progress: Progress | None,
        part: Part | None = None,
    ) -> None:
        self._plan = plan
        self._settings = settings
        self._destination = destination
        self._journal = journal
        self._progress = progress
        self._part = part
        self._wanted = plan_settings(plan, settings)
        names = enumerate(plan.shard_names)
        self._mine = frozenset(name for shard, name in names if part is None or part.has(shard))
        self._total = plan.items_of(self._mine)
        self._records = plan.tree if isinstance(plan.tree, Records) else None
        self._rows = plan.rows_of_shards() if self._records is not None else {}
        self._resumed: frozenset[str] = frozenset()
        self._items = 0
        self._rejects = 0
        self._new_items = 0
        self._new_bytes = 0

    def run(
        self, engine: EngineFactory, converter: ItemConverter, started: float, *, overwrites: bool = False
    ) -> BuildReport:
        """Build what is missing and finish the dataset; whatever stops it leaves a build to resume."""
        with self._left_resumable():
            if overwrites:
                remove_dataset(self._destination, self._journal, self._wanted)
            # By a build that ended since we looked, or died just before it could remove its journal.
            finished = finished_dataset(self._destination, self._wanted) or self._resume()
            if finished is not None:
                return self._complete(finished, started)
            self._build_shards(engine, converter)
            return self._finish(started)

    def run_part(self, converter: ItemConverter, started: float) -> PartReport:
        """Build what is missing of the part; then finish the dataset, if no shard of any part is missing.

        Raises:
            DestinationError: A shard is missing, and this is `NO_PART`.
        """
        assert self._part is not None
        with self._left_resumable():
            finished = finished_dataset(self._destination, self._wanted) or self._resume()
            if finished is not None:
                return _part_report(self._part, len(self._mine), self._complete(finished, started))
            note_part(self._destination, self._part)
            self._build_shards(LocalEngine, converter)
            mine = self._ordered_results(self._mine)
            self._journal = open_journal(self._destination, in_parts=True)  # with what other parts have done
            finished = finished_dataset(self._destination, self._wanted)
            if finished is not None:
                return _part_report(self._part, len(self._mine), self._complete(finished, started))
            forget_missing(self._journal, self._destination, self._wanted)
            missing = self._missing_shards()
            if missing and self._part == NO_PART:
                raise self._missing_error(missing)
            return PartReport(
                part=self._part,
                shards=len(self._mine),
                resumed_shards=len(self._resumed),
                all_shards=len(self._plan.shard_names),
                missing_shards=len(missing),
                seconds=time.monotonic() - started,
                items=self._new_items,
                size_bytes=self._new_bytes,
                rejects=tuple(_rejects_of(mine)),
                annotation_errors=tuple(error for result in mine for error in result.annotation_errors),
                warnings=self._plan.tree.warnings,
                dataset=None if missing else self._finish(started),
            )

    def _complete(self, finished: Manifest, started: float) -> BuildReport:
        self._destination.remove_temporaries()
        self._journal.remove()
        return complete_report(finished, self._destination, self._plan.tree, started)

    def _missing_shards(self) -> list[int]:
        """Return the places of the shards that are not there."""
        there = {result.file.name for result in self._journal.results}
        return [shard for shard, name in enumerate(self._plan.shard_names) if name not in there]

    def _missing_error(self, missing: Sequence[int]) -> DestinationError:
        names = self._plan.shard_names
        lacking = list(parts_lacking(self._destination, missing).items())
        shown = [
            f"{part} lacks {names[shards[0]]}" + (f" and {len(shards) - 1} more" if len(shards) > 1 else "")
            for part, shards in lacking[:_SHOWN_PARTS]
        ] or [names[missing[0]] + (", ..." if len(missing) > 1 else "")]
        if len(lacking) > _SHOWN_PARTS:
            shown.append(f"and {len(lacking) - _SHOWN_PARTS} parts more")
        message = f"{len(missing):,} of {len(names):,} shards are missing in {self._destination}: {', '.join(shown)}"
        return DestinationError(f"{message}; run those parts again", path=str(self._destination))

    @contextlib.contextmanager
    def _left_resumable(self) -> Iterator[None]:
        """Leave a build to resume when the ``with`` block is stopped."""
        try:
            yield
        except (OSError, MemoryError, KeyboardInterrupt) as error:
            if self._journal.has_lock:
                # An interrupt may come between making a file and noting it. Where nothing can be written, nothing can
                # be removed either; the next run does.
                with contextlib.suppress(OSError):
                    self._destination.remove_temporaries()
            if isinstance(error, OSError) and not isinstance(error, StorageError) and error.filename is None:
                error.filename = str(self._destination)  # a failed write carries no file name
            error.add_note("what is finished is kept; run the same command again to resume")
            raise

    def _resume(self) -> Manifest | None:
        """Resume the build, or begin it; return the manifest if it is finished by now."""
        resume(self._journal, self._destination, self._wanted, in_parts=self._part is not None)
        if self._journal.has_lock:
            return None
        try:
            # Without a lock another build may have ended since we looked, and removed its journal before we read it.
            return finished_dataset(self._destination, self._wanted)
        except DestinationError:
            self._journal.remove()
            raise

    def _build_shards(self, engine: EngineFactory, converter: ItemConverter) -> None:
        """Build every shard of this run that is not there yet."""
        results = [result for result in self._journal.results if result.file.name in self._mine]
        self._resumed = frozenset(result.file.name for result in results)
        for result in results:
            if self._records is not None and result.digest != self._records.read_digest(self._rows[result.file.name]()):
                raise self._made_of_others(result.file.name, "the records are others now")
            self._count(result)
        threads = self._settings.threads
        running = engine(converter, self._destination, threads, self._committed, self._advanced)
        running.run(self._plan.jobs(self._mine - self._resumed))

    def _committed(self, result: ShardResult) -> None:
        """Note that a shard is complete, and what stands for the values that it was made of."""
        if self._records is not None:
            result = replace(result, digest=self._records.digest(self._rows[result.file.name]()))
        self._journal.append(result)

    def _made_of_others(self, name: str, why: str) -> DestinationError:
        message = f"{name} in {self._destination} was made of other records by an earlier run: {why}"
        message += "; give the same records in the same order, build into another directory, or overwrite it"
        return DestinationError(message, path=str(self._destination / name))

    def _finish(self, started: float) -> BuildReport:
        """Write what describes the shards; the manifest last, and only if the rejects are accepted."""
        results = self._ordered_results(frozenset(self._plan.shard_names))
        tree, base = self._plan.tree, self._settings.schema.label_base
        classes, texts = _classes(tree, results)
        manifest = _make_manifest(self._plan, self._settings, results, len(classes))
        labels = write_labels(self._destination, classes, texts, base, numbered=self._settings.numbered_labels)
        rejects = tuple(_rejects_of(results))
        files = {LABELS_NAME: labels, REJECTS_NAME: write_rejects(self._destination, rejects)}
        manifest = replace(manifest, files=files | write_companions(self._destination, manifest, classes))
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

    def _ordered_results(self, names: frozenset[str]) -> list[ShardResult]:
        """Return the results of some shards in the order of the plan, which is not always that of the journal."""
        by_name = {result.file.name: result for result in self._journal.results}
        return [by_name[name] for name in self._plan.shard_names if name in names]

    def _count(self, result: ShardResult) -> None:
        """Count the items of a shard of an earlier run, whose records may take time to compare."""
        self._items += result.file.records + len(result.rejects)
        self._rejects += len(result.rejects)
        if self._records is not None:
            self._show()

    def _advanced(self, items: int, size_bytes: int, rejects: int) -> None:
        self._items += items
        self._rejects += rejects
        self._new_items += items
        self._new_bytes += size_bytes
        self._show()

    def _show(self) -> None:
        if self._progress is not None:
            self._progress(done=self._items, total=self._total, size_bytes=self._new_bytes, rejects=self._rejects)


def _part_report(part: Part, shards: int, complete: BuildReport) -> PartReport:
    """Return what a part did that found the dataset finished."""
    return PartReport(
        part=part,
        shards=shards,
        resumed_shards=shards,
        all_shards=complete.resumed_shards,
        missing_shards=0,
        seconds=complete.seconds,
        items=0,
        size_bytes=0,
        rejects=(),
        annotation_errors=(),
        warnings=complete.warnings,
        dataset=complete,
    )


def complete_report(manifest: Manifest, destination: Location, tree: Source, started: float) -> BuildReport:
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


def _classes(tree: Source, results: Sequence[ShardResult]) -> tuple[tuple[bytes, ...], tuple[bytes, ...]]:
    """Return the names and the texts of all classes: those of the source, and numbers for those without one."""
    most = max((label for result in results for label in result.labels), default=-1)
    unnamed = tuple(class_number(label) for label in range(len(tree.classes), most + 1))
    return (*tree.classes, *unnamed), (*tree.texts, *[b""] * len(unnamed))


def _make_manifest(plan: Plan, settings: BuildSettings, results: Sequence[ShardResult], classes: int) -> Manifest:
    """Return the manifest of a build whose shards are all complete, but for the files beside them.

    Args:
        plan: What was planned.
        settings: How it was built.
        results: All shards, in the order of the plan.
        classes: How many classes there are.
    """
    converted: Counter[str] = Counter()
    formats: Counter[tuple[str, str]] = Counter()
    for result in results:
        converted.update(result.converted)
        formats.update({(name, how): count for name, counts in result.formats.items() for how, count in counts.items()})
    has_images = any(field.is_image for field in plan.tree.fields.values())
    return Manifest(
        stoker_version=stoker_version(),
        schema=stored_schema(plan.tree, settings, classes),
        recipe=recipe_record(settings),
        seed=settings.seed,
        source=SourceInfo(plan.items, plan.size_bytes, plan.tree.fingerprint(), plan.tree.ignored),
        converted=dict(sorted(converted.items())),
        annotation_errors=sum(len(result.annotation_errors) for result in results),
        splits={split.name: _split(plan, split, settings.schema.label_base, results, classes) for split in plan.splits},
        compression=settings.shards.compression,
        shard_names=settings.shards.naming.text,
        limit=settings.source.limit,
        formats=nested_counts(formats),
        encoders=encoder_versions() if has_images or formats.keys() & {("png", "encoded"), ("webp", "encoded")} else {},
    )


def _rejects_of(results: Sequence[ShardResult]) -> Iterator[Reject]:
    """Yield every reject, in the order of the plan."""
    for result in results:
        for reject in result.rejects:
            yield Reject(reject.key, result.split, reject.reason)


def _split(plan: Plan, split: SplitPlan, label_base: int, results: Sequence[ShardResult], classes: int) -> Split:
    mine = [result for result in results if result.split == split.name]
    rejected = np.asarray([reject.label for result in mine for reject in result.rejects], np.int64)
    # Item -1 counts what has no class.
    counts = counts_of(plan.tree.table.labels, [split.rows], classes)
    counts -= np.bincount(rejected + 1, minlength=len(counts))
    for label, count in [pair for result in mine for pair in result.labels.items()]:
        counts[0] -= count
        counts[label + 1] += count
    boxes: Counter[int] = Counter()
    for result in mine:
        boxes.update(result.boxes)
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
        box_counts={label + label_base: count for label, count in sorted(boxes.items())},
    )
