"""The engine for a cluster: a task for every shard.

::

    jobs ─► waves of tasks, two at a time ─► executors (build_shard) ─► results ─► journal
                                                        └► shards, straight to the destination

Only what executors must be told goes out: paths, not images. Only what the driver must know comes back: a line about
each shard. The second wave fills the executors while the last tasks of the first one end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.accumulators import AccumulatorParam

from stoker.spark.fence import Fence
from stoker.spark.jobs import Jobs
from stoker.spark.kit import kit
from stoker.spark.task import ShardTask, Shared, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark import Accumulator
    from pyspark.sql import SparkSession

    from stoker.build import ItemConverter, ShardJob, ShardResult
    from stoker.storage import Location

_WAVES = 2
_WAVE_BYTES = 2**26
_WAVE_JOBS = 10_000
_TASKS_PER_CORE = 2  # so that a wave never is too small for the cluster


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
        self._source_bytes: dict[str, int] = {}
        self._results: Accumulator[list[ShardResult]] = self._spark.accumulator([], _Results())
        self._seen = 0

    def run(self, jobs: Iterable[ShardJob]) -> None:
        """Build all jobs. Once per engine.

        Raises:
            OSError: The source, the destination or the cluster failed. What is complete stays.
            ConfigError: The executors lack something.
            KeyboardInterrupt: The jobs of Spark's are cancelled.
        """
        remote = self._converter.tree.is_remote  # what is sent has no list of items to tell it by
        shared = Shared(self._converter, self._destination, Fence.of(self._destination), remote)
        sent = self._spark.broadcast(shared)
        self._advanced(0, 0, 0)  # the rate counts from here
        try:
            running: Jobs[ShardResult] = Jobs(self._session, f"stoker build {self._destination}", _WAVES)
            with running:
                for compressed, wave in self._waves(jobs):
                    running.submit(ShardTask(kit(compressed=compressed), sent, self._results), wave)
                    while running.under_way == _WAVES:
                        self._take(running)
                while running.under_way:
                    self._take(running)
                running.settle()
        finally:
            sent.unpersist()

    def _waves(self, jobs: Iterable[ShardJob]) -> Iterator[tuple[bool, list[bytes]]]:
        """Yield packed jobs, and whether any shard of them is compressed."""
        fewest = _TASKS_PER_CORE * self._spark.defaultParallelism
        wave: list[bytes] = []
        size, compressed = 0, False
        for job in jobs:
            self._source_bytes[job.name] = int(job.items.sizes.sum())
            wave.append(pack(job))
            size += len(wave[-1])
            compressed |= job.compression != "none"
            if len(wave) == _WAVE_JOBS or (size >= _WAVE_BYTES and len(wave) >= fewest):
                yield compressed, wave
                wave, size = [], 0
        if wave:
            yield compressed, wave

    def _take(self, running: Jobs[ShardResult]) -> None:
        """Look what has come: from each task by the accumulator, and once more when all of a wave has ended."""
        ended = running.ended()
        news = self._results.value
        while self._seen < len(news):
            self._seen += 1
            self._note(news[self._seen - 1])
        for wave in ended:
            for result in wave:
                self._note(result)

    def _note(self, result: ShardResult) -> None:
        """Take a shard as complete, the first time it is told."""
        size_bytes = self._source_bytes.pop(result.file.name, None)
        if size_bytes is None:
            return
        self._committed(result)
        self._advanced(result.file.records + len(result.rejects), size_bytes, len(result.rejects))
