"""Jobs of Spark's that are run in threads, so that the caller can look around meanwhile, and stop them."""

from __future__ import annotations

import secrets
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pyspark import inheritable_thread_target

from stoker.spark.failure import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from pyspark.sql import SparkSession

_Told = TypeVar("_Told")
_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 15.0


class Jobs(Generic[_Told]):
    """The jobs of one purpose: a group that is cancelled when the ``with`` block is left, whyever that is.

    For one thread at a time, which must be that of the caller: the jobs run in its pool of a fair scheduler.

    Args:
        session: Of the application.
        title: What Spark's pages call them.
        at_once: How many jobs run at the same time.
    """

    def __init__(self, session: SparkSession, title: str, at_once: int) -> None:
        self._spark = session.sparkContext
        self._title = title
        self._group = f"stoker-{secrets.token_hex(4)}"
        self._pool = ThreadPoolExecutor(at_once, "stoker-spark")
        self._run_as_caller = inheritable_thread_target(session)(self._run)
        self._running: set[Future[list[_Told]]] = set()
        self._stopping = False

    def __enter__(self) -> Jobs[_Told]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping = True
        while self._running:  # a job that is just being submitted is cancelled once it is there
            self._spark.cancelJobGroup(self._group)
            self._running = wait(self._running, timeout=_LOOK_SECONDS).not_done
        self._pool.shutdown()

    def submit(self, task: Callable[[Any], _Told], parts: Sequence[Any]) -> Future[list[_Told]]:
        """Begin a job with a task for each part; it gives their answers in the order of the parts."""
        future: Future[list[_Told]] = self._pool.submit(self._run_as_caller, task, parts)
        self._running.add(future)
        return future

    @property
    def under_way(self) -> int:
        """Jobs that have not been taken from `ended`."""
        return len(self._running)

    def ended(self) -> list[list[_Told]]:
        """Wait a moment for jobs to end, and return the answers of those that have.

        Raises:
            StokerError: One failed.
            OSError: The same.
        """
        done, self._running = wait(self._running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
        return [answers(job) for job in done]

    def settle(self) -> None:
        """Wait until no attempt is active any more.

        Spark ends a job with the first attempt that succeeds at each task, and kills the others some seconds later.
        """
        tracker = self._spark.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            infos = [tracker.getStageInfo(stage) for stage in stages]
            if not any(info.numActiveTasks for info in infos if info is not None):
                return
            time.sleep(_LOOK_SECONDS)

    def _run(self, task: Callable[[Any], _Told], parts: Sequence[Any]) -> list[_Told]:
        if self._stopping:
            return []
        self._spark.setJobGroup(self._group, self._title, interruptOnCancel=True)
        return self._spark.parallelize(parts, len(parts)).map(task).collect()


def answers(job: Future[list[_Told]]) -> list[_Told]:
    """Return the answers of a job, or raise what its failure means.

    Raises:
        StokerError: It failed.
        OSError: The same.
    """
    try:
        return job.result()
    except Exception as error:  # noqa: BLE001 - whatever py4j makes of it
        raise explain(error) from None
