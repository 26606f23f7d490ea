"""The one way to write a dataset: a journal, the shards, the files that describe them, and the manifest last.

::

    empty ─► begun ─────► shards complete ──────────────────────► described ─► published ─► clean
             (journal)    (temporary name, fsync, rename, line     (labels,     (manifest)   (journal gone)
                           of the journal)                          rejects)

An interrupted call leaves an unfinished dataset. The next call with equal settings resumes it; a call with others is
refused or overwrites it. Builds, parts of builds, records without a length and merges are each a `Task`.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from stoker.builder.destination import finished_dataset, forget_missing, remove_dataset, resume, what_is_replaced
from stoker.builder.parts import NO_PART, missing_error, note_part
from stoker.errors import DestinationError, StorageError
from stoker.format import is_unfinished, open_journal, read_journal_head, write_manifest
from stoker.progress import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from typing import Any

    from stoker.builder.parts import Part
    from stoker.format import Journal, Manifest, ShardResult
    from stoker.storage import Location
    from stoker.types import Progress


class Task(ABC):
    """A dataset to write: what differs between builds, records without a length and merges."""

    destination: Location
    settings: dict[str, Any]  # everything that decides its bytes, as the journal has it
    shard_names: Sequence[str] = ()  # of all shards, in order; for records without a length, known at the end
    max_rejects: int | None = None  # number of rejects above which the manifest is withheld; None: no limit

    def settings_when_finished(self) -> dict[str, Any]:
        """Return the settings as its manifest has them; to find them out, all records may have to be read."""
        return self.settings

    def count_items(self, shards: Collection[str]) -> int:  # noqa: ARG002 - it is not known
        """Return how many items some shards have together; 0 if it is not known."""
        return 0

    @abstractmethod
    def make(self, shards: Collection[str], run: Run) -> None:
        """Make shards.

        Args:
            shards: Names of the shards to make; empty if names are not known yet.
            run: Has the shards of earlier runs. It must be told of all items, those of earlier runs first, and once of
                each complete shard, from one thread at a time.

        Raises:
            DestinationError: Existing shards were made of something else.
            OSError: The source or the destination failed. What is committed stays; the rest is removed.
            KeyboardInterrupt: The same.
        """

    @abstractmethod
    def describe(self, results: Sequence[ShardResult]) -> Manifest:
        """Write the files beside the shards, given all shards in order; return the manifest, which is written last."""


class Run(Tally):
    """A run of a task: shards that earlier runs have finished, by name, and a function to record a complete shard."""

    def __init__(
        self,
        total: int,
        progress: Progress | None,
        finished: Mapping[str, ShardResult],
        committed: Callable[[ShardResult], None],
    ) -> None:
        super().__init__(total, progress)
        self.finished, self.committed = finished, committed

    def resumed(self, result: ShardResult) -> None:
        """Count the items of a shard of an earlier run."""
        self._done += result.file.records + len(result.rejects)
        self._rejects += len(result.rejects)


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a call of `write`."""

    # ``written``; ``complete``: it was finished before, nothing was touched; ``withheld``: everything is there except
    # the manifest; ``part``: shards of other parts are missing
    outcome: Literal["written", "complete", "withheld", "part"]
    manifest: Manifest | None  # of the dataset; None for a ``part``
    results: tuple[ShardResult, ...] = ()  # the existing shards, in order; empty if ``complete``
    resumed: frozenset[str] = frozenset()  # names of the shards that earlier runs had finished
    items: int = 0  # items converted by this run
    size_bytes: int = 0  # source bytes of these items
    missing: int = 0  # number of missing shards

    @classmethod
    def before(cls, manifest: Manifest) -> Written:
        """Return the result of a call that found the dataset finished."""
        shards = (shard.name for split in manifest.splits.values() for shard in split.shards)
        return cls("complete", manifest, resumed=frozenset(shards))


def write(
    task: Task,
    *,
    part: Part | None = None,
    source: Location | None = None,
    announce: Callable[[], None] = lambda: None,
    overwrite: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Written:
    """Write a dataset, or resume one that was interrupted.

    With a part, only its shards are made, while other processes make those of other parts; `NO_PART` makes none, and
    needs all to be there. ``source`` must not lie in a destination that is overwritten. ``announce`` is called before
    anything of a new dataset is written, and may raise to prevent that; `build_source` explains ``overwrite``.

    Raises:
        DestinationError: The destination holds something else, or another process is writing to it; or a shard is
            missing, and this is `NO_PART`.
        KeyboardInterrupt: Run again to resume.
    """
    destination, in_parts = task.destination, part is not None
    replaced = None if overwrite is None else what_is_replaced(destination, task.settings)
    if replaced is not None and source is not None and source.lies_in(destination):
        message = f"{source} lies in {destination}, which would be overwritten; build into another directory"
        raise DestinationError(message, path=str(destination))
    if replaced is not None or not (_has_settings(destination) if in_parts else is_unfinished(destination)):
        finished = None if replaced is not None else finished_dataset(destination, task.settings_when_finished)
        if finished is not None and not in_parts:
            if not destination.is_local:  # a second run of the build may have been killed since
                destination.remove_temporaries()
            return Written.before(finished)
        if finished is None:
            announce()
    if replaced is not None and overwrite is not None:
        overwrite(replaced)
    try:
        with open_journal(destination, in_parts=in_parts) as journal, _left_resumable(journal, destination):
            if replaced is not None:
                remove_dataset(destination, journal, task.settings)
            return _finished_or_begun(task, journal, in_parts=in_parts) or _write(task, journal, part, progress)
    except FileNotFoundError:
        # Another part has finished the dataset, and removed the journal, while this one wrote.
        finished = finished_dataset(destination, task.settings_when_finished) if in_parts else None
        if finished is None:
            raise
        return Written.before(finished)


def _has_settings(destination: Location) -> bool:
    """Return whether a part has begun to build, and not only listed the source."""
    try:
        read_journal_head(destination)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _left_resumable(journal: Journal, destination: Location) -> Iterator[None]:
    try:
        yield
    except (OSError, MemoryError, KeyboardInterrupt) as error:
        if journal.has_lock:
            # An interrupt may come between making a file and noting it. If nothing can be written, removing fails too;
            # the next run does it.
            with contextlib.suppress(OSError):
                destination.remove_temporaries()
        if isinstance(error, OSError) and not isinstance(error, StorageError) and error.filename is None:
            error.filename = str(destination)  # a failed write carries no file name
        error.add_note("what is finished is kept; run the same command again to resume")
        raise


def _finished_or_begun(task: Task, journal: Journal, *, in_parts: bool) -> Written | None:
    """Resume the journal, or begin it, and return None; return a result if the dataset is finished by now."""
    # Another run may have ended since we looked, or died just before it could remove its journal.
    finished = finished_dataset(task.destination, task.settings_when_finished)
    if finished is None:
        resume(journal, task.destination, task.settings, in_parts=in_parts)
        if journal.has_lock:
            return None
        try:
            # Without a lock another run may have ended since we looked, and removed its journal before we read it.
            finished = finished_dataset(task.destination, task.settings_when_finished)
        except DestinationError:
            journal.remove()
            raise
    return None if finished is None else _cleaned(task, journal, Written.before(finished))


def _cleaned(task: Task, journal: Journal, written: Written) -> Written:
    task.destination.remove_temporaries()
    journal.remove()
    return written


def _write(task: Task, journal: Journal, part: Part | None, progress: Progress | None) -> Written:
    """Make the missing shards; then publish the dataset, unless shards of other parts are missing."""
    destination = task.destination
    own_shards = frozenset(name for shard, name in enumerate(task.shard_names) if part is None or part.has(shard))
    if part is not None:
        note_part(destination, part)
    earlier = {result.file.name: result for result in journal.results if part is None or result.file.name in own_shards}
    run = Run(task.count_items(own_shards), progress, earlier, journal.append)
    task.make(own_shards - earlier.keys(), run)
    if part is not None:
        journal = open_journal(destination, in_parts=True)  # with what other parts have done
        finished = finished_dataset(destination, task.settings_when_finished)
        if finished is not None:
            return _cleaned(task, journal, Written.before(finished))
        forget_missing(journal, destination, task.settings)
    by_name, names = {result.file.name: result for result in journal.results}, task.shard_names
    results = tuple(by_name[name] for name in names if name in by_name)
    missing = [shard for shard, name in enumerate(names) if name not in by_name]
    if missing and part == NO_PART:
        raise missing_error(destination, names, missing)
    written = Written("part", None, results, frozenset(earlier), run.items, run.size_bytes, len(missing))
    if missing:
        assert part is not None, "a shard was made and not committed"
        return written
    manifest = task.describe(results)
    if task.max_rejects is not None and manifest.rejects > task.max_rejects:
        return replace(written, outcome="withheld", manifest=manifest)
    write_manifest(destination, manifest)
    return _cleaned(task, journal, replace(written, outcome="written", manifest=manifest))
