"""Builds on a Spark cluster: executors make the same shards, byte for byte.

::

    jobs ─► waves of tasks, two at a time ─► executors (build_shard) ─► results ─► journal
                                                        └► shards, straight to the destination

A task makes one shard. The driver sends paths, not images, and gets back one line about each shard. The second wave
keeps the executors busy while the last tasks of the first wave end.
"""

from __future__ import annotations

import json
import os
import pickle
import secrets
import shutil
import signal
import socket
import sys
import threading
import time
import zlib
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, cast

from pyspark import inheritable_thread_target
from pyspark.accumulators import AccumulatorParam
from pyspark.sql import SparkSession

from stoker.builder import build_shard
from stoker.errors import ClusterError, ConfigError
from stoker.format import ShardResult, read_journal_head
from stoker.storage import from_uri, given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark import Accumulator
    from pyspark.core.broadcast import Broadcast

    from stoker.builder import EngineFactory, ItemConverter, ShardJob
    from stoker.sources import ItemTable
    from stoker.storage import Given, Location

__all__ = ["engine"]

_WAVES = 2
_WAVE_BYTES = 2**26
_WAVE_JOBS = 10_000
_TASKS_PER_CORE = 2  # so that a wave is never too small for the cluster
_LOOK_SECONDS = 0.1
_SETTLE_SECONDS = 15.0
_FAST = 1  # zlib's level
_FAILURE_MARK = "STOKER-TASK-FAILED "
_MAX_REASON = 500


def engine(session: SparkSession) -> EngineFactory:
    """Return an engine for `stoker.build` whose shards are made by the executors of a Spark application.

    The dataset is byte for byte the same as on one machine. Executors need the same version of Stoker and must reach
    the images and the destination: in a store, or below a directory that all of them share. The session is used as it
    is, and is not stopped. A `stoker.errors.ClusterError` says that Spark failed; call again to resume.

    Args:
        session: The session, which must not be one of Spark Connect.

    Raises:
        ConfigError: The session is one of Spark Connect.
    """
    try:
        _ = session.sparkContext
    except Exception as error:  # Spark Connect has raised several types
        message = (
            "this session has no SparkContext: it is a session of Spark Connect, which cannot run Stoker's functions on"
        )
        raise ConfigError(f"{message} executors; use a classic session (on Databricks, dedicated access)") from error
    return partial(SparkEngine, session)


@contextmanager
def started_session(master: str | None, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Run an application for the command line while the ``with`` block runs.

    Under ``spark-submit`` it is the application that exists already. Otherwise ``master`` is the address of the
    cluster, such as ``local[4]``, ``spark://host:7077`` or ``yarn``, or None for that in Spark's configuration;
    ``settings`` are Spark's properties. Executors use the Python that runs this, unless ``spark.pyspark.python`` or
    ``PYSPARK_PYTHON`` names another.
    """
    if not {"PYSPARK_GATEWAY_PORT", "JAVA_HOME"} & os.environ.keys() and shutil.which("java") is None:
        raise ConfigError("Spark needs Java 17 or newer, and there is none: install it, or set JAVA_HOME")
    python = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    os.environ["PYSPARK_PYTHON"] = python  # PySpark itself reads only this
    builder = SparkSession.builder.appName("stoker build")
    quiet = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
    for name, value in {**quiet, **settings}.items():
        builder = builder.config(name, value)
    if master is not None:
        builder = builder.master(master)
    interrupt = signal.getsignal(signal.SIGINT)
    try:
        session = builder.getOrCreate()
    except Exception as error:  # py4j and Java raise many types
        where = master or "the master of Spark's configuration"
        raise ClusterError(f"Spark does not start on {where}: {_reason(str(error))}") from error
    try:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, interrupt)  # Spark's own handler calls Java at any point
        yield session
    finally:
        session.stop()


class SparkEngine:
    """Builds shards on the executors of a Spark application; see `stoker.builder.Engine`.

    Spark decides how many tasks run at a time: ``threads`` is not used. ``advanced`` is called with the items, source
    bytes and rejects of every shard that is complete.
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
        """Build all jobs. An engine runs only once.

        Raises:
            ClusterError: The source, the destination or the cluster failed; the message names the shard and the host.
                Complete shards stay.
            ConfigError: The executors lack something, or do not see what the driver sees.
            KeyboardInterrupt: Spark's jobs are cancelled first.
        """
        shared = _Shared(self._converter, self._destination, read_journal_head(self._destination), given)
        sent = self._spark.broadcast(shared)
        self._advanced(0, 0, 0)  # the rate counts from here
        try:
            with _Jobs(self._session, f"stoker build {self._destination}") as running:
                for compressed, wave in self._waves(jobs):
                    running.submit(ShardTask(versions(compressed=compressed), sent, self._results), wave)
                    while running.under_way == _WAVES:
                        self._take(running)
                while running.under_way:
                    self._take(running)
                running.settle()
        finally:
            sent.unpersist()

    def _waves(self, jobs: Iterable[ShardJob]) -> Iterator[tuple[bool, list[bytes]]]:
        """Yield waves of packed jobs, and whether any of their shards is compressed."""
        fewest = _TASKS_PER_CORE * self._spark.defaultParallelism
        wave: list[bytes] = []
        size, compressed = 0, False
        for job in jobs:
            self._source_bytes[job.name] = int(cast("ItemTable", job.items).sizes.sum())
            wave.append(pack(job))
            size += len(wave[-1])
            compressed |= job.compression != "none"
            if len(wave) == _WAVE_JOBS or (size >= _WAVE_BYTES and len(wave) >= fewest):
                yield compressed, wave
                wave, size = [], 0
        if wave:
            yield compressed, wave

    def _take(self, running: _Jobs) -> None:
        """Take new results from the accumulator, and all results of waves that have ended."""
        ended = running.ended()
        news = self._results.value
        while self._seen < len(news):
            self._seen += 1
            self._note(news[self._seen - 1])
        for wave in ended:
            for result in wave:
                self._note(result)

    def _note(self, result: ShardResult) -> None:
        """Record a shard as complete, the first time it is reported."""
        size_bytes = self._source_bytes.pop(result.file.name, None)
        if size_bytes is None:
            return
        self._committed(result)
        self._advanced(result.file.records + len(result.rejects), size_bytes, len(result.rejects))


class _Results(AccumulatorParam["list[ShardResult]"]):
    """Concatenates the results of tasks."""

    def zero(self, value: list[ShardResult]) -> list[ShardResult]:
        del value
        return []

    def addInPlace(  # noqa: N802 - the name is Spark's
        self, value1: list[ShardResult], value2: list[ShardResult]
    ) -> list[ShardResult]:
        value1 += value2
        return value1


class _Jobs(AbstractContextManager["_Jobs"]):
    """The jobs of one build, in threads; they are cancelled when the ``with`` block is left, for any reason.

    For the thread of the caller only: the jobs run in its pool of a fair scheduler.
    """

    def __init__(self, session: SparkSession, title: str) -> None:
        self._spark = session.sparkContext
        self._title = title
        self._group = f"stoker-{secrets.token_hex(4)}"
        self._pool = ThreadPoolExecutor(_WAVES, "stoker-spark")
        self._run_as_caller = inheritable_thread_target(session)(self._run)
        self._running: set[Future[list[ShardResult]]] = set()
        self._stopping = False

    def __exit__(self, *exception: object) -> None:
        self._stopping = True
        while self._running:  # a job that is being submitted is cancelled when it exists
            self._spark.cancelJobGroup(self._group)
            self._running = wait(self._running, timeout=_LOOK_SECONDS).not_done
        self._pool.shutdown()

    def submit(self, task: ShardTask, parts: Sequence[bytes]) -> None:
        self._running.add(self._pool.submit(self._run_as_caller, task, parts))

    @property
    def under_way(self) -> int:
        return len(self._running)

    def ended(self) -> list[list[ShardResult]]:
        """Wait a moment for jobs to end, and return the results of jobs that have ended."""
        done, self._running = wait(self._running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
        try:
            return [job.result() for job in done]
        except Exception as error:  # noqa: BLE001 - py4j has many
            raise explain(error) from None

    def settle(self) -> None:
        """Wait until no attempt is active: Spark kills other attempts of a task seconds after one has succeeded."""
        tracker = self._spark.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        deadline = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < deadline:
            infos = [tracker.getStageInfo(stage) for stage in stages]
            if not any(info.numActiveTasks for info in infos if info is not None):
                return
            time.sleep(_LOOK_SECONDS)

    def _run(self, task: ShardTask, parts: Sequence[bytes]) -> list[ShardResult]:
        if self._stopping:
            return []
        self._spark.setJobGroup(self._group, self._title, interruptOnCancel=True)
        return self._spark.parallelize(parts, len(parts)).map(task).collect()


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all tasks of a build need, sent once to every executor."""

    converter: ItemConverter  # turns items into records; pickled without the list of items
    destination: Location  # the dataset; an absolute path, or in a store
    head: bytes  # the beginning of its journal during this build
    given: Given  # settings of stores and signatures of URLs, which apply when it is unpickled

    def build(self, job: ShardJob) -> ShardResult:
        check = partial(check_under_way, self.head, self.destination)
        check()
        self._check_source()
        return build_shard(self.converter, self.destination, job, before_commit=check)

    def _check_source(self) -> None:
        """Check that the images are here; otherwise every one of them would become a reject."""
        for uri in self.converter.source.reader.uris:
            if from_uri(uri).is_local and not from_uri(uri).exists():
                message = f"the source {os.fsdecode(uri)} is not there"
                raise ConfigError(f"{message}; put the images where all executors see them, or into a bucket")


class ShardTask:
    """Makes one shard. It is sent to executors, and sends the result to the driver as soon as the task ends."""

    def __init__(
        self, wanted: Mapping[str, str], shared: Broadcast[_Shared], results: Accumulator[list[ShardResult]]
    ) -> None:
        self._wanted = wanted
        self._shared = shared
        self._results = results

    def __call__(self, packed: bytes) -> ShardResult:
        """Make the shard of one packed job."""
        name = None
        try:
            check_versions(self._wanted)
            job = pickle.loads(zlib.decompress(packed))  # noqa: S301 - from the driver
            name = job.name
            result = self._shared.value.build(job)
        except Exception as error:
            raise task_error(error, name) from error
        self._results.add([result])
        return result


def pack(job: ShardJob) -> bytes:
    """Return a job in compressed form, about as large as its names and values, or smaller if these are similar."""
    return zlib.compress(pickle.dumps(job, pickle.HIGHEST_PROTOCOL), _FAST)


def check_under_way(head: bytes, destination: Location) -> None:
    """Check that the build whose journal begins with ``head`` is still under way in a destination.

    An attempt may continue after Spark has lost track of it: on a machine that is cut off, or after the driver was
    killed. During the same build it does no harm, as it writes the same bytes. But later another build may have begun
    in the same folder, and this check keeps the attempt from writing into it.
    """
    try:
        same = read_journal_head(destination) == head
    except FileNotFoundError:
        message = f"{destination} is not the directory that the driver builds in, or that build has ended"
        raise ConfigError(f"{message}; build into a directory that all executors share, or into a bucket") from None
    if not same:
        raise ConfigError(f"another build has begun in {destination}")


def versions(*, compressed: bool) -> dict[str, str]:
    """Return the versions, by package, that the bytes of shards depend on here; zlib only if it compresses."""
    version_of = {name: _version(name) for name in ("stoker", "pillow")}
    return version_of | ({"zlib": zlib.ZLIB_RUNTIME_VERSION} if compressed else {})


def check_versions(wanted: Mapping[str, str]) -> None:
    """Check that the versions here are the same as on the driver."""
    here = versions(compressed="zlib" in wanted)
    other = [
        f"{name} is {here.get(name)} and not {wanted[name]}"
        for name in sorted(wanted)
        if here.get(name) != wanted[name]
    ]
    if other:
        message = f"{', '.join(other)} on an executor, so its bytes could differ"
        raise ConfigError(f"{message}; give it the driver's versions, as docs/how-to/spark.md says")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


class TaskError(Exception):
    """A task failed; its message is a mark and a line of JSON, which the driver finds among Spark's traces."""


def task_error(error: Exception, shard: str | None) -> TaskError:
    """Return the error that a task raises in place of another, with the name of its shard if that is known."""
    message = str(error) if str(error) else type(error).__name__
    where = f"{f'shard {shard}, ' if shard else ''}on {socket.gethostname()}"
    payload = {"message": f"{message} ({where})", "is_setup": isinstance(error, ConfigError)}
    return TaskError(_FAILURE_MARK + json.dumps(payload))


def explain(error: Exception) -> ClusterError | ConfigError:
    """Return Stoker's error for one of Spark's: the error of a task, or the last line before the traces of Java."""
    text = str(error)
    try:
        payload, _ = json.JSONDecoder().raw_decode(text.partition(_FAILURE_MARK)[2])
        message, is_setup = str(payload["message"]), payload["is_setup"]
        if not message:
            raise ValueError(payload)
    except (KeyError, RecursionError, TypeError, ValueError):  # no task has sent an error, or it was cut off
        message = f"Spark could not build: {_reason(text)}; docs/how-to/spark.md says what executors need"
        is_setup = False
    return ConfigError(message) if is_setup else ClusterError(message)


def _reason(trace: str) -> str:
    lines = trace.partition("\n\tat ")[0].replace("Driver stacktrace:", "").strip().splitlines()
    return lines[-1].rpartition("most recent failure: ")[2].strip(": ")[-_MAX_REASON:] if lines else "it gave no reason"
