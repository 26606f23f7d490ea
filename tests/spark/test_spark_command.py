"""``stoker build --engine spark``: a driver of its own, that is killed, interrupted, or sends the wheel along."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import zipfile
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stoker.spark
from builder.killing import journal_lines
from builder.trees import build, contents
from programs import run
from spark.clusters import COMMAND, OPTIONS, same, settings_of, write_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from commands import Cli
    from servers.spark_cluster import SparkCluster
    from stoker.builder import BuildReport

pytestmark = pytest.mark.servers

PACKAGE = Path(stoker.__file__).parent


def wait_for_shards(destination: Path, driver: subprocess.Popen[str], shards: int) -> None:
    while journal_lines(destination) <= shards:
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.01)


@contextmanager
def driver_of(
    source: Path, destination: Path, environment: dict[str, str], *more: str
) -> Iterator[subprocess.Popen[str]]:
    """A driver that runs; what is left of it afterwards is killed."""
    command = [*COMMAND, str(source), str(destination), *OPTIONS, "--engine", "spark", "--json", *more]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as driver:
        try:
            yield driver
        finally:
            driver.kill()  # its JVM ends with it


def test_a_driver_that_is_killed_or_interrupted_is_gone_on_with(
    session: SparkSession, driver_environment: dict[str, str], tmp_path: Path
) -> None:
    source = write_source(tmp_path / "source", images=2400)  # half a second a shard, so that there is time to interrupt
    settings = settings_of(source)
    local = build(settings, tmp_path / "local"), tmp_path / "local"
    out = tmp_path / "out"
    with driver_of(source, out, driver_environment, "--master", "local[1]") as driver:
        wait_for_shards(out, driver, 1)
        driver.send_signal(signal.SIGINT)
        interrupted = time.monotonic()
        printed, stderr = driver.communicate(timeout=60)
    assert (driver.returncode, printed) == (130, "")
    assert time.monotonic() - interrupted < 10
    assert "stoker: interrupted; what is finished is kept; run the same command again to resume" in stderr
    assert "Traceback" not in stderr
    before = journal_lines(out)
    assert 2 <= before < 7

    with driver_of(source, out, driver_environment, "--master", "local[1]") as driver:
        wait_for_shards(out, driver, before)
        driver.kill()
    report = build(settings, out, engine=stoker.spark.engine(session))
    assert report.resumed_shards >= before
    same(report, out, local)


def archive_of(folder: Path, version: str) -> Path:
    """The wheel, unzipped, with another version: proves that executors use what was sent."""
    info = next(path for path in (distribution("stoker").files or ()) if path.name == "METADATA").locate()
    path = folder / f"stoker-{version}.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in PACKAGE.rglob("*.*"):
            archive.write(file, Path("stoker") / file.relative_to(PACKAGE))
        metadata = Path(str(info)).read_text(encoding="utf-8")
        there = next(line for line in metadata.splitlines() if line.startswith("Version: "))
        archive.writestr(f"stoker-{version}.dist-info/METADATA", metadata.replace(there, f"Version: {version}"))
    return path


def build_with_archive(
    archive: Path, cluster: SparkCluster, source: Path, destination: Path, environment: dict[str, str]
) -> tuple[int, dict[str, Any]]:
    settings = {
        **cluster.settings(),
        "spark.cores.max": "2",
        "spark.executor.memory": "490m",
        "spark.archives": f"{archive}#sent",
        "spark.executorEnv.PYTHONPATH": "./sent",
    }
    master = settings.pop("spark.master")
    more = [word for name, value in settings.items() for word in ("--spark-conf", f"{name}={value}")]
    with driver_of(source, destination, environment, "--master", master, *more) as driver:
        printed, stderr = driver.communicate(timeout=140)
    assert printed, stderr
    return driver.returncode, json.loads(printed)


def test_the_wheel_can_be_sent_along_and_its_version_is_compared(
    cluster: SparkCluster,
    source: Path,
    local: tuple[BuildReport, Path],
    driver_environment: dict[str, str],
    tmp_path: Path,
) -> None:
    right = archive_of(tmp_path, stoker.__version__)
    code, printed = build_with_archive(right, cluster, source, tmp_path / "out", driver_environment)
    assert (code, printed["dataset_id"]) == (0, local[0].manifest.dataset_id)
    assert contents(tmp_path / "out") == contents(local[1])
    other = archive_of(tmp_path, "9.9.9")
    code, printed = build_with_archive(other, cluster, source, tmp_path / "other", driver_environment)
    assert code == 2
    assert f"stoker is 9.9.9 and not {stoker.__version__} on an executor" in printed["error"]["message"]


def test_options_of_another_engine_are_refused(source: Path, tmp_path: Path, cli: Cli) -> None:
    cli("build", source, tmp_path / "out", "--master", "local[2]", code=2)
    assert "--master has no effect without --engine spark; give it too" in cli.err
    words = ["build", str(source), str(tmp_path / "out"), "--engine", "spark", "--spark-conf", "memory=1"]
    assert "--spark-conf memory=1 is not understood" in cli(*words, code=2)


@pytest.mark.parametrize(
    ("hidden", "message"),
    [("pyspark", "run pip install 'stoker[spark]'"), ("java", "Spark needs Java 17 or newer, and there is none")],
)
def test_what_is_not_installed_is_named(hidden: str, message: str, source: Path, tmp_path: Path) -> None:
    program = f"import sys; sys.modules[{hidden!r}] = None\nfrom stoker.cli.main import main; sys.exit(main())"
    words = ["build", str(source), str(tmp_path / "out"), "--engine", "spark", "--master", "local[1]"]
    environment = {"PATH": str(tmp_path)} if hidden == "java" else None
    done = run(program, *words, env=environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()
