"""A real standalone Spark cluster: a master and workers, each a process, from the jars of the package pyspark.

Each worker has a loopback address of its own, 127.0.0.2 and on, because Spark puts no speculative copy of a task on a
host that runs the task already; so this is for Linux. It needs Java 17 or newer.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from .hdfs import java
from .plain_http import ask
from .processes import Process, ServerError, free_ports, started

if TYPE_CHECKING:
    from collections.abc import Iterator

_READY_SECONDS = 90
_MASTER_HOST = "127.0.0.1"
# Half the CPU time of a start on a small machine: what a JVM compiles well it never runs long enough here.
_QUICK_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True)
class Size:
    """Of a cluster: workers, and what each of them has to give."""

    workers: int = 2
    cores: int = 1
    memory_mb: int = 1024


class SparkCluster:
    """A cluster that runs.

    Attributes:
        url: ``spark://127.0.0.1:PORT``, for ``--master``.
        size: Its size; workers are called by their number from 0.
        folder: Where its logs are, and the folders of executors below ``worker-N``.
    """

    def __init__(self, folder: Path, size: Size) -> None:
        """Prepare one; `running` is the way to have one."""
        port, self._web_port = free_ports(2)
        self.url = f"spark://{_MASTER_HOST}:{port}"
        self.size = size
        self.folder = folder
        self._master = self._process("master", "master.Master", _MASTER_HOST, port, self._web_port)
        self._workers = [self._worker(number) for number in range(size.workers)]

    def start(self) -> None:
        """Start it, or start it again at the same address, and wait until all workers have reported to the master."""
        self._master.start()
        # A worker that finds no master waits long for its next try.
        self._master.wait_until(lambda: self._alive_workers() == 0, _READY_SECONDS)
        for worker in self._workers:
            worker.start()
        self._wait_for_workers()

    def kill(self) -> None:
        """End it at once, with all executors and their Python processes."""
        for worker in self._workers:
            for pid in self._family(worker):
                _kill(pid)
            worker.kill()
        self._master.kill()

    def kill_worker(self, number: int) -> None:
        """Kill a worker's daemon alone with SIGKILL; its executors end when they see that it is gone."""
        _kill(self._workers[number].pid)

    def start_worker(self, number: int) -> None:
        """Start a worker anew after `kill_worker`, and wait until all workers are there."""
        self._workers[number].kill()
        self._workers[number].start()
        self._wait_for_workers()

    def executors(self, number: int | None = None) -> list[int]:
        """Process ids of the JVMs that run executors, of one worker or of all."""
        return self._running("CoarseGrainedExecutorBackend", number)

    def python_workers(self, number: int | None = None) -> list[int]:
        """Process ids of the Python processes that run tasks, of one worker or of all; not of those that fork them."""
        running = self._running("pyspark.daemon", number)
        parents = {pid: parent for pid, (parent, _, _) in _processes().items()}
        return [pid for pid in running if parents.get(pid) in running]

    def kill_process(self, pid: int) -> None:
        """Kill one of `executors` or `python_workers` with SIGKILL.

        Raises:
            ServerError: It belongs to none of the workers.
        """
        if not any(pid in self._family(worker) for worker in self._workers):
            raise ServerError(f"Process {pid} is none of this cluster, or is gone")
        _kill(pid)

    def settings(self) -> dict[str, str]:
        """What an application must set to run here beside its own settings."""
        return {
            "spark.master": self.url,
            "spark.driver.host": _MASTER_HOST,
            "spark.driver.bindAddress": _MASTER_HOST,
            "spark.driver.extraJavaOptions": " ".join(_QUICK_JVM),
            "spark.executor.extraJavaOptions": " ".join(_QUICK_JVM),
            "spark.ui.enabled": "false",
            "spark.executor.memory": f"{self.size.memory_mb // 2}m",
            "spark.local.dir": str(self.folder / "scratch"),
        }

    def environment(self) -> dict[str, str]:
        """What a driver should have in its environment; without it executors run whatever ``python3`` they find."""
        return {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": _MASTER_HOST, "SPARK_HOME": str(_home())}

    def _worker(self, number: int) -> Process:
        host = f"127.0.0.{number + 2}"
        port, web_port = free_ports(2, host)
        process = self._process(f"worker {number}", "worker.Worker", host, port, web_port)
        size = ["-c", str(self.size.cores), "-m", f"{self.size.memory_mb}m"]
        process.command += [*size, "-d", str(self.folder / f"worker-{number}"), self.url]
        return process

    def _process(self, name: str, main: str, host: str, port: int, web_port: int) -> Process:
        home = _home()
        scala = next((home / "jars").glob("scala-library-*.jar")).stem.split("-")[-1].rpartition(".")[0]
        command = [
            *(java(), "-Xmx256m", *_QUICK_JVM, "-cp", f"{home / 'jars'}/*"),
            f"org.apache.spark.deploy.{main}",
            *("--host", host, "--port", str(port), "--webui-port", str(web_port)),
        ]
        # A worker starts executors with the launcher of the distribution, which looks for these.
        environment = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": host, "SPARK_SCALA_VERSION": scala}
        return Process(f"Spark {name}", command, self.folder, environment)

    def _alive_workers(self) -> int:
        state = ask("GET", f"http://{_MASTER_HOST}:{self._web_port}/json/").body
        return state.count(b'"state" : "ALIVE"')

    def _wait_for_workers(self) -> None:
        for worker in self._workers:
            worker.wait_until(lambda: self._alive_workers() == self.size.workers, _READY_SECONDS)

    def _running(self, what: str, number: int | None) -> list[int]:
        workers = self._workers if number is None else [self._workers[number]]
        processes = _processes()
        return [pid for worker in workers for pid in self._family(worker) if what in processes.get(pid, (0, 0, ""))[2]]

    def _family(self, worker: Process) -> list[int]:
        """The processes of a worker but itself: its group, which outlives it, and their children in other groups."""
        if not worker.started:
            return []
        processes = _processes()
        family = {pid for pid, (_, group, _) in processes.items() if group == worker.pid}
        while more := {pid for pid, (parent, _, _) in processes.items() if parent in family} - family:
            family |= more
        return sorted(family - {worker.pid})


@contextmanager
def running(size: Size = Size()) -> Iterator[SparkCluster]:
    """A cluster with all of its workers; it is gone afterwards.

    Args:
        size: Its size.

    Raises:
        ServerError: There is no Java or no pyspark, or it did not come up.
    """
    with started("spark", partial(SparkCluster, size=size)) as server:
        yield server


def _home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ServerError("There is no Spark here: pip install pyspark")
    return Path(spec.origin).parent


def _processes() -> dict[int, tuple[int, int, str]]:
    """Parent, process group and command line of every process."""
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            # The name, in parentheses, may hold anything.
            _, parent, group, *_ = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            processes[int(folder.name)] = (int(parent), int(group), command)
    return processes


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
