"""The engine for one machine: items are converted by threads, records are written in order.

::

    jobs ─► chunks of items ─► threads (convert) ─► window, in order ─► writer ─► committer (fsync, rename, journal)
                       └─► (load)─┘ many at a time, if the images lie in a store

The window extends across the borders of shards, so all threads have work until the last chunk of the last shard. Their
number does not change the bytes. Memory is bounded by the bytes of the sources in the window.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from stoker.builder.convert import LoadingAhead, Outcome
from stoker.format import ShardResult, ShardWriter, nested_counts
from stoker.storage import check_stacks, location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from stoker.builder.convert import ItemConverter
    from stoker.builder.plan import ShardJob
    from stoker.sources import Item
    from stoker.storage import Location, LocationLike


_CHUNK_ITEMS = 16  # one hand-over between threads costs about as much as a tenth of reading an image
_CHUNK_BYTES = 2**22
_CHUNKS_PER_THREAD = 8  # so that one slow image does not make the other threads wait
_KEPT_CHUNKS_PER_THREAD = 3  # files that are stored as they are take equally long, and all their bytes are in memory
_CHUNKS_BY_URL = 256  # so that one slow server does not make the other threads wait
_OPEN_COMMITS = 2  # shards that may wait for their fsync while the next one is written
_OPEN_UPLOADS = 4  # one upload does not fill the bandwidth to a store


@dataclass(slots=True)
class _Chunk:
    """Consecutive items of one shard, which are held only until they are converted."""

    job: ShardJob
    items: list[Item]
    size_bytes: int
    is_last: bool
    count: int


class Engine(Protocol):
    """Makes shards. Used once, from one thread."""

    def run(self, jobs: Iterable[ShardJob]) -> None:
        """Make every shard, in any order, and end only when all of them are reported.

        Args:
            jobs: The missing shards. Each job is made when it is requested, so only jobs in use take memory.

        Raises:
            OSError: The source or the destination failed. What is reported stays; the rest is removed.
            KeyboardInterrupt: The same.
        """


class EngineFactory(Protocol):
    """Returns the engine of one build; `LocalEngine` is one."""

    def __call__(
        self,
        converter: ItemConverter,
        destination: Location,
        threads: int,
        committed: Callable[[ShardResult], None],
        advanced: Callable[[int, int, int], None],
        /,
    ) -> Engine:
        """Return an engine.

        Args:
            converter: Turns items into records.
            destination: Where the shards go.
            threads: Items converted at the same time on one machine.
            committed: To be called, from one thread at a time, once for each shard that is complete in the destination.
            advanced: To be called, from the thread that runs the engine, with the items, source bytes and rejects since
                the last call.
        """


@dataclass(slots=True)
class _Shard:
    """A shard that is being written; ``tally`` holds no records."""

    job: ShardJob
    writer: ShardWriter
    tally: Outcome = field(default_factory=Outcome)

    def commit(self, before_commit: Callable[[], None]) -> ShardResult:
        before_commit()
        with self.writer:
            file = self.writer.commit()
        tally = self.tally
        return ShardResult(
            file,
            self.job.split,
            tuple(tally.rejects),
            dict(tally.converted),
            tuple(tally.annotation_errors),
            nested_counts(tally.formats),
            dict(tally.labels),
            boxes=dict(tally.boxes),
        )


class LocalEngine:
    """Builds shards with threads of this process; see `Engine`, and `EngineFactory` for its arguments.

    ``committed`` is called in the order of the jobs, and ``advanced`` after each chunk, from the calling thread.
    ``before_commit`` is called from any thread when all of a shard is written; it raises to prevent the final name.
    """

    def __init__(
        self,
        converter: ItemConverter,
        directory: Location,
        threads: int,
        committed: Callable[[ShardResult], None],
        advanced: Callable[[int, int, int], None],
        *,
        before_commit: Callable[[], None] = lambda: None,
    ) -> None:
        self._converter = converter
        self._directory = directory
        self._committed = committed
        self._advanced = advanced
        self._before_commit = before_commit
        recipe = converter.recipe
        is_kept = recipe.resize is None and recipe.encode is None and not recipe.restart
        per_thread = _KEPT_CHUNKS_PER_THREAD if is_kept and converter.is_local else _CHUNKS_PER_THREAD
        self._max_chunks = max(threads * per_thread, _CHUNKS_BY_URL * (converter.source.latency == "web"))
        self._max_bytes = self._max_chunks * _CHUNK_BYTES
        self._max_commits = _OPEN_UPLOADS if directory.requests_at_once > 1 else _OPEN_COMMITS
        check_stacks(threads + self._max_commits)
        self._pool = ThreadPoolExecutor(threads, "stoker-convert")
        self._committer = ThreadPoolExecutor(self._max_commits, "stoker-commit")
        self._stop = threading.Event()
        self._loading = None if converter.is_local else LoadingAhead(converter, self._stop)
        self._window: deque[tuple[_Chunk, Future[Outcome]]] = deque()
        self._window_bytes = 0
        self._shard: _Shard | None = None
        self._commits: deque[tuple[_Shard, Future[ShardResult]]] = deque()

    def run(self, jobs: Iterable[ShardJob]) -> None:
        """Build all jobs, in order. Once per engine.

        Raises:
            OSError: The destination cannot be written. What is committed stays; the rest is removed.
            KeyboardInterrupt: The same. Images that are being converted are not waited for; their results are dropped.
        """
        interrupted = False
        try:
            for chunk in _chunks(jobs):
                while self._window and (
                    len(self._window) >= self._max_chunks or self._window_bytes + chunk.size_bytes > self._max_bytes
                ):
                    self._drain_one()
                self._window.append((chunk, self._submit(chunk)))
                self._window_bytes += chunk.size_bytes
            while self._window:
                self._drain_one()
            while self._commits:
                self._finish_commit()
        except KeyboardInterrupt:
            interrupted = True
            raise
        finally:
            self._close(wait=not interrupted)

    def _submit(self, chunk: _Chunk) -> Future[Outcome]:
        split, items = chunk.job.split, chunk.items
        chunk.items = []
        load = None if self._loading is None else self._loading.begin(items, split)
        return self._pool.submit(self._converter.convert, items, split, self._stop.is_set, load)

    def _drain_one(self) -> None:
        chunk, future = self._window[0]
        outcome = future.result()
        self._window.popleft()
        self._window_bytes -= chunk.size_bytes
        if self._loading is not None:
            self._loading.written()
        if self._shard is None:
            job = chunk.job
            self._shard = _Shard(job, ShardWriter(self._directory, job.name, job.compression, self._stop))
        self._shard.writer.append_framed(outcome.records)
        self._shard.tally.add_notes(outcome)
        if chunk.is_last:
            shard, self._shard = self._shard, None
            self._commits.append((shard, self._committer.submit(shard.commit, self._before_commit)))
        while self._commits and (len(self._commits) > self._max_commits or self._commits[0][1].done()):
            self._finish_commit()
        self._advanced(chunk.count, chunk.size_bytes, len(outcome.rejects))

    def _finish_commit(self) -> None:
        result = self._commits[0][1].result()
        self._commits.popleft()
        self._committed(result)

    def _close(self, *, wait: bool) -> None:
        """End the threads; remove what is not committed. Waits for at most one commit, and with ``wait`` an item."""
        self._stop.set()
        if self._loading is not None:
            self._loading.close()
        self._pool.shutdown(wait, cancel_futures=True)
        self._committer.shutdown(cancel_futures=True)
        if self._shard is not None:
            self._shard.writer.abort()
        for shard, _ in self._commits:
            shard.writer.abort()
        for _, future in self._commits:
            complete = future.done() and not future.cancelled() and future.exception() is None
            if complete and self._directory.is_local:  # a store may take long to answer
                self._committed(future.result())


def build_shard(
    converter: ItemConverter,
    destination: LocationLike,
    job: ShardJob,
    before_commit: Callable[[], None] = lambda: None,
) -> ShardResult:
    """Build one shard, from the first item to its final name: distributed engines run this on their machines.

    Two attempts at the same job may run at once, on any machines: each writes to temporary names of its own, and both
    write the same bytes. ``before_commit`` is called when all is written, before anything has its final name; it raises
    to prevent that.

    Raises:
        OSError: The source or the destination failed; nothing of this attempt is left.
    """
    results: list[ShardResult] = []
    folder = location(destination)
    LocalEngine(converter, folder, 1, results.append, lambda *_: None, before_commit=before_commit).run([job])
    return results[0]


def _chunks(jobs: Iterable[ShardJob]) -> Iterator[_Chunk]:
    """Cut the items of each job into chunks; a chunk never crosses into the next shard."""
    for job in jobs:
        items: list[Item] = []
        size_bytes = 0
        for item in job.items:
            if items and (len(items) == _CHUNK_ITEMS or size_bytes + item.size_bytes > _CHUNK_BYTES):
                yield _Chunk(job, items, size_bytes, is_last=False, count=len(items))
                items, size_bytes = [], 0
            items.append(item)
            size_bytes += item.size_bytes
        yield _Chunk(job, items, size_bytes, is_last=True, count=len(items))
