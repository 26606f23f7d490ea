"""The engine for a cluster: a task for every shard.

::

    jobs ─► waves of tasks, two at a time ─► executors (build_shard) ─► results ─► journal
                                                        └► shards, straight to the destination

Only what executors must be told goes out: paths, not images. Only what the driver must know comes back: a line about
each shard. A wave holds what the driver can keep in memory twice; the second wave fills the executors while the last
tasks of the first one end.
"""

from __future__ import annotations

import secrets
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from pyspark import inheritable_thread_target
from pyspark.accumulators import AccumulatorParam

from stoker.spark.failure import explain
from stoker.spark.fence import Fence
from stoker.spark.kit import kit
from stoker.spark.task import ShardTask, Shared, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark import Accumulator
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import SparkSession

    from stoker.build.job import ItemConverter, ShardJob, ShardResult
    from stoker.storage import Location

_WAVES = 2
_WAVE_BYTES = 2**26
_WAVE_JOBS = 10_000
_TASKS_PER_CORE = 2  # so that a wave never is too small for the cluster
_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 15.0


class _Results(AccumulatorParam["list[ShardResult]"]):
    """Puts results of tasks end to end."""

    def zero(self, value: list[ShardResult]) -> list[ShardResult]:
        del value
        return []

    def addInPlace(  # noqa: N802 - the name is Spark's
        self, value1: list[ShardResult], value2: list[ShardResult]
    ) -> list[ShardResult]:
        value1 += value2
        return value1


class SparkEngine:
    """Builds shards on the executors of a Spark application; see `stoker.build.engine.Engine`.

    Args:
        session: Of the application; it is not stopped.
        converter: Turns items into records.
        destination: Where the shards go.
        threads: Not used: Spark says how many tasks run at a time.
        committed: Called with every shard that is complete.
        advanced: Called with the items, source bytes and rejects of every such shard.
    """

    def __init__(
        self,
        session: SparkSession,
        converter: ItemConverter,
        destination: Location,
        threads: int,
        committed: Callable[[ShardResult], None],
        advanced: Callable[[int, int, int], None],
    ) -> None:
        del threads
        self._session = session
        self._spark = session.sparkContext
        self._converter = converter
        self._destination = destination.absolute()
        self._committed = committed
        self._advanced = advanced
        self._group = f"stoker-build-{secrets.token_hex(4)}"
        self._source_bytes: dict[str, int] = {}
        self._results: Accumulator[list[ShardResult]] = self._spark.accumulator([], _Results())
        self._seen = 0
        self._compressed = False
        self._stopping = False

    def run(self, jobs: Iterable[ShardJob]) -> None:
        """Build all jobs. Once per engine.

        Raises:
            OSError: The source, the destination or the cluster failed. What is complete stays.
            ConfigError: The executors lack something.
            KeyboardInterrupt: The job was cancelled.
        """
        fence = Fence.of(self._destination)
        shared = self._spark.broadcast(Shared(self._converter, self._destination, fence))
        pool = ThreadPoolExecutor(_WAVES, "stoker-spark")
        run_wave = inheritable_thread_target(self._session)(self._run_wave)  # in the caller's pool of a fair scheduler
        running: set[Future[list[ShardResult]]] = set()
        self._advanced(0, 0, 0)
        try:
            for wave in self._waves(jobs):
                running.add(pool.submit(run_wave, wave, shared))
                while len(running) == _WAVES:
                    running = self._wait(running)
            while running:
                running = self._wait(running)
            self._settle()
        finally:
            self._stop(running)
            pool.shutdown()
            shared.unpersist()

    def _waves(self, jobs: Iterable[ShardJob]) -> Iterator[list[bytes]]:
        fewest = _TASKS_PER_CORE * self._spark.defaultParallelism
        wave: list[bytes] = []
        size = 0
        for job in jobs:
            self._source_bytes[job.name] = int(job.items.sizes.sum())
            self._compressed = job.compression != "none"
            wave.append(pack(job))
            size += len(wave[-1])
            if len(wave) == _WAVE_JOBS or (size >= _WAVE_BYTES and len(wave) >= fewest):
                yield wave
                wave, size = [], 0
        if wave:
            yield wave

    def _run_wave(self, wave: list[bytes], shared: Broadcast[Shared]) -> list[ShardResult]:
        """Run one job of Spark's; in a thread of its own."""
        if self._stopping:
            return []
        self._spark.setJobGroup(self._group, f"stoker build {self._destination}", interruptOnCancel=True)
        task = ShardTask(kit(compressed=self._compressed), shared, self._results)
        return self._spark.parallelize(wave, len(wave)).map(task).collect()

    def _wait(self, running: set[Future[list[ShardResult]]]) -> set[Future[list[ShardResult]]]:
        """Look what has come; return the waves that still run.

        Raises:
            OSError: A wave failed.
        """
        done, running = wait(running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
        news = self._results.value
        while self._seen < len(news):
            self._seen += 1
            self._note(news[self._seen - 1])
        for wave in done:
            try:
                results = wave.result()
            except Exception as error:  # noqa: BLE001 - whatever py4j makes of it
                raise explain(error) from None
            for result in results:
                self._note(result)
        return running

    def _note(self, result: ShardResult) -> None:
        """Take a shard as complete, the first time it is told."""
        size_bytes = self._source_bytes.pop(result.file.name, None)
        if size_bytes is None:
            return
        self._committed(result)
        self._advanced(result.file.records + len(result.rejects), size_bytes, len(result.rejects))

    def _settle(self) -> None:
        """Wait until the losing attempts of speculation have ended, so that none leaves a file behind the sweep.

        Spark ends a job with the first attempt that succeeds, and kills the others some seconds later.
        """
        tracker = self._spark.statusTracker()
        stages = {
            stage
            for job in tracker.getJobIdsForGroup(self._group)
            if (info := tracker.getJobInfo(job)) is not None
            for stage in info.stageIds
        }
        deadline = time.monotonic() + _SETTLE_SECONDS
        while stages and time.monotonic() < deadline:
            infos = [tracker.getStageInfo(stage) for stage in stages]
            if not any(info is not None and info.numActiveTasks for info in infos):
                return
            time.sleep(_LOOK_SECONDS)

    def _stop(self, running: set[Future[list[ShardResult]]]) -> None:
        """Cancel what runs; a job that is just being submitted is cancelled once it is there."""
        self._stopping = True
        while running:
            self._spark.cancelJobGroup(self._group)
            running = wait(running, timeout=_LOOK_SECONDS).not_done
