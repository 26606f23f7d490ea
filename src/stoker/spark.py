"""Builds on a Spark cluster: the same shards, byte for byte, made by executors."""

from __future__ import annotations

import json
import os
import pickle
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np
from pyspark import inheritable_thread_target
from pyspark.accumulators import AccumulatorParam

from stoker.builder import ItemConverter, ShardJob, ShardResult, build_shard, build_tree, check_destination, open_source
from stoker.errors import ClusterError, ConfigError, SourceError, StokerError, StorageError
from stoker.format import BUILD_FOLDER, JOURNAL_NAME
from stoker.sources import Listing, Skipped, SourceTree, list_folders
from stoker.storage import location, open_regular, place_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from numpy.typing import NDArray
    from pyspark import Accumulator, SparkConf
    from pyspark.core.broadcast import Broadcast
    from pyspark.sql import SparkSession

    from stoker.builder import BuildReport, BuildSettings, EngineFactory, ItemConverter, ShardJob, ShardResult
    from stoker.sources import FolderLister
    from stoker.storage import Location
    from stoker.types import Progress

__all__ = ["build"]


# `stoker.spark.build`: a build on an application of Spark's that is there already.


def build(
    spark: SparkSession,
    settings: BuildSettings,
    destination: str | os.PathLike[str] | Location,
    progress: Progress | None = None,
) -> BuildReport:
    """Build a dataset with the executors of a Spark application, or go on with a build that was interrupted.

    The dataset is byte for byte that of the engine for one machine. Executors need the same version of Stoker and
    must reach the images and the destination: in a store, or below a directory that all of them share. The session is
    used as it is, and is not stopped.

    Args:
        spark: The session. One of Spark Connect cannot be used.
        settings: What to build.
        destination: Directory of the dataset, or its URL; created if missing.
        progress: Told about every shard, from the calling thread.

    Raises:
        ConfigError: The settings do not fit, or the executors lack something.
        SourceError: The source cannot be listed.
        DestinationError: The destination holds something else, or another build is writing to it.
        ClusterError: Spark failed; also an ``OSError``. Run again to resume.
        OSError: The destination cannot be written. Run again to resume.
        KeyboardInterrupt: The jobs are cancelled. Run again to resume.
    """
    place = location(destination)
    cluster = Cluster(spark)
    check_destination(place, settings.source.root)
    tree = open_source(settings.source, lister=cluster.lister(settings.source.root))
    return build_tree(tree, settings, place, progress, engine=cluster.engine())


class Cluster:
    """What a session of Spark's can do for a build.

    Args:
        session: It is not stopped.

    Raises:
        ConfigError: It is one of Spark Connect.
    """

    def __init__(self, session: SparkSession) -> None:
        try:
            _ = session.sparkContext
        except Exception as error:  # what Spark Connect raises has had several names
            message = "this session has no SparkContext: it is one of Spark Connect, which runs no functions of ours on"
            raise ConfigError(
                f"{message} executors; use a classic session (on Databricks, dedicated access)"
            ) from error
        self._session = session

    def engine(self) -> EngineFactory:
        """Return what makes the engine of one build."""
        return partial(SparkEngine, self._session)

    def lister(self, root: str) -> FolderLister:
        """Return what lists the class folders of a source: the executors, if it lies in a store."""
        return list_folders if location(root).is_local else cluster_lister(self._session)


# Keeps attempts that nobody waits for any more from touching what has taken the place of their build.
#
# Spark may lose sight of an attempt that goes on: on a machine that is cut off, of a driver that was killed. While the
# same build is under way, a late attempt does no harm, for it writes the same bytes. Afterwards somebody may have
# begun another one in the same place.


@dataclass(frozen=True, slots=True)
class Fence:
    """A build that is under way.

    Attributes:
        settings: What its journal begins with.
    """

    settings: bytes

    @classmethod
    def of(cls, destination: Location) -> Self:
        """Return that of the build that has begun in a destination."""
        return cls(_settings(destination))

    def check(self, destination: Location) -> None:
        """See that this build is still under way.

        Raises:
            ConfigError: It is not, or it cannot be seen from this machine.
        """
        try:
            same = _settings(destination) == self.settings
        except FileNotFoundError:
            message = f"{destination} is not the directory that the driver builds in, or that build has ended"
            raise ConfigError(f"{message}; build into a directory that all executors share, or into a bucket") from None
        if not same:
            raise ConfigError(f"another build has begun in {destination}")


def _settings(destination: Location) -> bytes:
    if isinstance(destination, Path):
        with open_regular(destination / JOURNAL_NAME) as file:
            return file.readline()
    return (destination / BUILD_FOLDER / "settings.json").read_bytes()


# How a task tells the driver what went wrong: as a marked line in the midst of Spark's traces.


FAILURE_MARK = "STOKER-TASK-FAILED "
"""Stands before what a failed task has to say, so that the driver finds it."""


class TaskError(Exception):
    """A task failed; the message is `FAILURE_MARK` and a line of JSON."""


def told(error: Exception, doing: str) -> TaskError:
    """Return what a task raises instead of an error, so that the driver can raise that again.

    Args:
        error: What it met.
        doing: What it was about, such as ``shard train-00001-of-00008.tfrecord``; empty if nobody knows.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - an extra, which is there where tasks run

    context = TaskContext.get()
    filename = error.filename if isinstance(error, OSError) else None
    where = error.path if isinstance(error, StokerError) else None
    return TaskError(
        FAILURE_MARK
        + json.dumps(
            {
                "doing": doing,
                "host": socket.gethostname(),
                "attempt": 1 if context is None else context.attemptNumber() + 1,
                "kind": type(error).__name__,
                "message": str(error),
                "errno": error.errno if isinstance(error, OSError) else None,
                "filename": os.fsdecode(filename) if isinstance(filename, (str, bytes)) else where,
            }
        )
    )


# From the traces of Spark to one sentence: what failed, where, and what to do.


SHIPPING = "install the same wheel on every node or send it along, as docs/spark.md says"

_MARKED = re.compile(re.escape(FAILURE_MARK) + r"(?P<line>\{.*\})")
_MEMORY = "raise spark.executor.memoryOverhead, or give each executor fewer cores, if memory was at its end"
_KNOWN: tuple[tuple[str, str], ...] = (
    (
        r"No module named '(?P<what>(?:stoker|numpy|PIL|defusedxml|rich)[\w.]*)'",
        f"the executors have no module {{what!r}}; {SHIPPING}",
    ),
    (
        r"Can't get attribute '\w+' on <module 'stoker|module 'stoker\S* has no attribute",
        f"the executors have another version of Stoker; {SHIPPING}",
    ),
    (
        r'Cannot run program "(?P<what>[^"]+)"',
        "the executors have no program {what}; say which Python they have with --spark-conf spark.pyspark.python=PATH",
    ),
    (
        r"PYTHON_VERSION_MISMATCH\W+(?P<what>[^\n]+)",
        "the executors run another Python: {what}; name the driver's with --spark-conf spark.pyspark.python=PATH",
    ),
    (
        r"Python worker exited unexpectedly",
        f"the Python process of an executor was killed, again and again; {_MEMORY}",
    ),
    (
        r"ExecutorLostFailure \((?P<what>[^\n]{1,300})",
        f"executors were lost, again and again: {{what}}; see their logs; {_MEMORY}",
    ),
    (
        r"SPARK_JOB_CANCELLED|[Jj]ob \S+ cancelled|was cancelled",
        "its job was cancelled",
    ),
)
"""What Spark's own traces hold, and what that means; looked for in this order."""


def explain(error: Exception) -> StokerError | OSError:
    """Return an error of ours for one of Spark's."""
    text = str(error)
    marked = _MARKED.search(text)
    if marked is not None:
        return _from_task(json.loads(marked["line"]))
    for pattern, message in _KNOWN:
        found = re.search(pattern, text)
        if found is not None:
            return ClusterError(f"Spark could not build: {message.format(**found.groupdict())}")
    return ClusterError(f"Spark could not build: {_first_lines(text)}")


def _from_task(told: dict[str, Any]) -> StokerError | OSError:
    """Return the error that a task met, as this process would have met it."""
    problem: StokerError | OSError
    kinds: dict[str, type[StokerError]] = {kind.__name__: kind for kind in (ConfigError, SourceError, StorageError)}
    if told["kind"] in kinds:
        problem = kinds[told["kind"]](told["message"], path=told["filename"])
    elif told["errno"] is not None:
        problem = OSError(told["errno"], os.strerror(told["errno"]), told["filename"])
    else:
        problem = ClusterError(f"a task failed: {told['kind']}: {told['message']}")
    doing = f"{told['doing']}, " if told["doing"] else ""
    problem.add_note(f"{doing}on {told['host']}, attempt {told['attempt']}")
    return problem


def _first_lines(text: str) -> str:
    lines = [line.strip(": ") for line in text.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    wanted = next((line for line in lines if "Exception" in line or "Error" in line or "fail" in line), None)
    return (wanted or (lines[0] if lines else "it gave no reason"))[:500]


# Jobs of Spark's that are run in threads, so that the caller can look around meanwhile, and stop them.


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


# What must be the same on the driver and on every executor for the bytes to be the same.


Kit = dict[str, str]
"""The version of each piece of software that decides bytes, by its name."""

_PACKAGES = ("stoker", "pillow")


def kit(*, compressed: bool) -> Kit:
    """Return the versions here.

    Args:
        compressed: Whether shards are compressed, so that zlib decides bytes, too.
    """
    found = {name: _version(name) for name in _PACKAGES}
    return found | ({"zlib": zlib.ZLIB_RUNTIME_VERSION} if compressed else {})


def require(wanted: Kit) -> None:
    """See that the versions here are those of the driver.

    Raises:
        ConfigError: One is not.
    """
    here = kit(compressed="zlib" in wanted)
    other = [
        f"{name} is {here.get(name)} and not {wanted[name]}"
        for name in sorted(wanted)
        if here.get(name) != wanted[name]
    ]
    if other:
        message = f"{', '.join(other)} on an executor, so its bytes could differ"
        raise ConfigError(f"{message}; give it the driver's versions, as docs/spark.md says")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed as a package"


# What an executor does: one shard, from the paths of its images to its final name.
#
# Nothing of pyspark is needed here but the two things that arrive with the task: a broadcast and an accumulator.


_FAST = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """What all tasks of a build need, sent once to every executor.

    Attributes:
        converter: Turns items into records; without the list of items.
        destination: The dataset; an absolute path, or a place in a store.
        fence: Tells whether it is still being built.
        remote: Whether images or annotations lie in a store.
    """

    converter: ItemConverter
    destination: Location
    fence: Fence
    remote: bool

    def build(self, job: ShardJob) -> ShardResult:
        """Build one shard.

        Raises:
            ConfigError: This machine does not see what the driver sees.
            OSError: The source or the destination failed.
        """
        self.fence.check(self.destination)
        self._check_source()
        return build_shard(
            self.converter,
            self.destination,
            job,
            load_ahead=self.remote,
            before_commit=lambda: self.fence.check(self.destination),
        )

    def _check_source(self) -> None:
        """See that the images are here; an empty folder would make a reject of every one of them.

        Raises:
            ConfigError: They are not.
        """
        tree = self.converter.tree
        for place in (tree.base, *tree.archives) if isinstance(tree, SourceTree) else ():
            if place_at(place).is_local and not place_at(place).exists():
                message = f"the source {os.fsdecode(place)} is not there"
                raise ConfigError(f"{message}; put the images where all executors see them, or into a bucket")


def pack(job: ShardJob) -> bytes:
    """Return a job as it is sent: about the bytes of its names, fewer where they resemble each other."""
    return zlib.compress(pickle.dumps(job, pickle.HIGHEST_PROTOCOL), _FAST)


class ShardTask:
    """Makes one shard. Sent to the executors.

    Args:
        wanted: The driver's versions.
        shared: What all tasks need.
        results: Brings the result to the driver as soon as the task ends.
    """

    def __init__(self, wanted: Kit, shared: Broadcast[Shared], results: Accumulator[list[ShardResult]]) -> None:
        self._wanted = wanted
        self._shared = shared
        self._results = results

    def __call__(self, packed: bytes) -> ShardResult:
        """Make the shard of one packed job.

        Raises:
            TaskError: Something went wrong that may not go wrong the next time.
        """
        name = None
        try:
            require(self._wanted)
            job: ShardJob = pickle.loads(zlib.decompress(packed))  # noqa: S301 - from the driver
            name = job.name
            result = self._shared.value.build(job)
        except Exception as error:
            raise told(error, f"shard {name}" if name else "") from error
        self._results.add([result])
        return result


# The engine for a cluster: a task for every shard.
#
# ::
#
#     jobs ─► waves of tasks, two at a time ─► executors (build_shard) ─► results ─► journal
#                                                         └► shards, straight to the destination
#
# Only what executors must be told goes out: paths, not images. Only what the driver must know comes back: a line about
# each shard. The second wave fills the executors while the last tasks of the first one end.


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
    """Builds shards on the executors of a Spark application; see `stoker.builder.local.Engine`.

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
        remote = not self._converter.tree.is_local  # what is sent has no list of items to tell it by
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


# Listing on the cluster: each task lists some folders, and sends names and sizes back in columns.
#
# Only for trees of class folders in a store. There a page of a thousand names takes tens of milliseconds and some CPU,
# so one machine lists a hundred million objects in hours; a directory of this machine is listed before executors
# start.


_LISTING_TASKS_PER_CORE = 4  # so that a large folder keeps no other waiting
_MOST_FOLDERS = 16
_SEPARATOR = b"\0"  # of names: no file system and no store allows it in one


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """What lies in a folder, as it is sent.

    Attributes:
        names: The paths below the folder, end to end, with a zero byte between two.
        sizes: int64 (N,): bytes of each.
        ignored: What is not an item, by kind.
        warnings: What a person should know.
    """

    names: bytes
    sizes: NDArray[np.int64]
    ignored: dict[str, int]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, listing: Listing) -> ListedFolder:
        """Return a listing as it is sent."""
        names = _SEPARATOR.join(path for path, _ in listing.files)
        sizes = np.asarray([size for _, size in listing.files], np.int64)
        return cls(names, sizes, dict(listing.skipped.ignored), tuple(listing.skipped.warnings))

    def listing(self) -> Listing:
        """Return it as it was listed."""
        names = self.names.split(_SEPARATOR) if len(self.sizes) else []
        skipped = Skipped(Counter(self.ignored), list(self.warnings))
        return Listing(list(zip(names, self.sizes.tolist(), strict=True)), skipped)


class ListTask:
    """Lists some folders. Sent to the executors.

    Args:
        wanted: The driver's versions.
        root: What the folders lie in.
    """

    def __init__(self, wanted: Kit, root: bytes) -> None:
        self._wanted = wanted
        self._root = root

    def __call__(self, folders: list[bytes]) -> list[ListedFolder]:
        """List the folders, in their order.

        Raises:
            TaskError: Something went wrong that may not go wrong the next time.
        """
        try:
            require(self._wanted)
            return [ListedFolder.of(listing) for listing in list_folders(self._root, folders)]
        except Exception as error:
            raise told(error, f"listing {folders[0].decode('utf-8', 'replace')}") from error


def cluster_lister(session: SparkSession) -> FolderLister:
    """Return what lists folders with the executors of an application, as `stoker.sources.list_folders` does here."""

    def list_on_cluster(root: bytes, folders: Iterable[bytes]) -> Iterator[Listing]:
        task = ListTask(kit(compressed=False), root)
        todo = list(folders)
        tasks = _LISTING_TASKS_PER_CORE * session.sparkContext.defaultParallelism
        each = max(1, min(_MOST_FOLDERS, -(-len(todo) // tasks)))  # a split may have no folder at all
        jobs: Jobs[list[ListedFolder]] = Jobs(session, f"stoker list {root.decode('utf-8', 'replace')}", 1)
        with jobs:
            for first in range(0, len(todo), each * tasks):
                wave = todo[first : first + each * tasks]
                jobs.submit(task, [wave[at : at + each] for at in range(0, len(wave), each)])
                while jobs.under_way:
                    for answers in jobs.ended():
                        yield from (found.listing() for answer in answers for found in answer)

    return list_on_cluster


# A Spark application of our own, for the command line: quiet, and gone when the build is.


_APPLICATION = "stoker build"
_QUIET = {"spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
_SHOWN_LINES = 3


@contextmanager
def spark_session(master: str | None, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Run a Spark application while the ``with`` block runs.

    What Spark writes to its log does not reach the terminal. Under ``spark-submit`` the application is the one that
    it has prepared. Executors start the Python that runs this, unless ``spark.pyspark.python`` or ``PYSPARK_PYTHON``
    names another.

    Args:
        master: Address of the cluster, such as ``local[4]``, ``spark://host:7077`` or ``yarn``; None for what Spark's
            own configuration says.
        settings: Properties of Spark's, by their names.

    Raises:
        ConfigError: pyspark or Java is not installed.
        ClusterError: The application cannot be started.
    """
    conf = _configuration(master, settings)
    interrupt = signal.getsignal(signal.SIGINT)
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        session = _start(conf, log)
        try:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, interrupt)  # Spark's own handler talks to Java in the midst of anything
            yield session
        finally:
            session.stop()


def _configuration(master: str | None, settings: Mapping[str, str]) -> SparkConf:
    try:
        from pyspark import SparkConf  # noqa: PLC0415 - pyspark is an extra
    except ModuleNotFoundError as error:
        raise ConfigError(f"no module {error.name!r}; run pip install 'stoker[spark]'") from error
    if "PYSPARK_GATEWAY_PORT" not in os.environ and not _has_java():
        raise ConfigError("Spark needs Java 17 or newer, and there is none: install it, or set JAVA_HOME")
    conf = SparkConf(loadDefaults=False).setAppName(_APPLICATION)
    for name, value in {**_QUIET, **settings}.items():
        conf.set(name, value)
    if master is not None:
        conf.setMaster(master)
    python = settings.get("spark.pyspark.python")
    if python is not None:
        os.environ["PYSPARK_PYTHON"] = python
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return conf


def _has_java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return (home is not None and (Path(home) / "bin/java").exists()) or shutil.which("java") is not None


def _start(conf: SparkConf, log: IO[str]) -> SparkSession:
    from pyspark import SparkContext  # noqa: PLC0415 - see above
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    context: SparkContext | None = None
    try:
        gateway = SparkContext._gateway or launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        context = SparkContext(conf=conf, gateway=gateway)
        return SparkSession(context)
    except Exception as error:  # what py4j and Java make of it
        if context is not None:
            context.stop()
        where = conf.get("spark.master") or "the master of Spark's configuration"
        raise ClusterError(f"Spark does not start on {where}: {_reason(error, log)}") from error


def _reason(error: Exception, log: IO[str]) -> str:
    log.seek(0)
    lines = [line.strip() for line in log if " ERROR " in line or "rror:" in line or "Exception" in line]
    told = "; ".join(lines[-_SHOWN_LINES:])
    return told or str(error).strip().partition("\n")[0]
