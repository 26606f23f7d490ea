"""One real cluster for all tests of this folder, one application on it, and one tree that every engine builds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from builder.trees import build
from servers import spark_cluster
from spark.clusters import SHARDS, settings_of, write_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from servers.s3 import S3Server
    from stoker.builder import BuildReport, BuildSettings

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "2",
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[spark_cluster.SparkCluster]:
    """A master and two workers, each with room for an executor of `session` and for one of another application."""
    size = spark_cluster.Size(workers=2, cores=2, memory_mb=1200)
    with spark_cluster.running(size) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def session(cluster: spark_cluster.SparkCluster, s3_server: S3Server) -> Iterator[SparkSession]:
    """An application with a core on each worker, which leaves the others to a second one."""
    from stoker.spark import started_session  # noqa: PLC0415 - skips these tests alone where pyspark is missing

    store = s3_server.environment()
    executors = {f"spark.executorEnv.{name}": value for name, value in store.items()}
    room = {"spark.cores.max": "2", "spark.executor.memory": "700m"}  # never two executors on one worker
    settings = {**cluster.settings(), **SPECULATION, **executors, **room}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**cluster.environment(), **store}.items():
            patch.setenv(name, value)
        with started_session(settings.pop("spark.master"), settings) as session:
            yield session


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Class folders with images, and one file that is none."""
    return write_source(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="session")
def settings(source: Path) -> BuildSettings:
    return settings_of(source)


@pytest.fixture(scope="session")
def local(settings: BuildSettings, tmp_path_factory: pytest.TempPathFactory) -> tuple[BuildReport, Path]:
    """What the engine for one machine makes of it."""
    destination = tmp_path_factory.mktemp("local") / "dataset"
    report = build(settings, destination)
    assert len(report.manifest.splits["train"].shards) == SHARDS
    return report, destination


@pytest.fixture
def driver_environment(cluster: spark_cluster.SparkCluster) -> dict[str, str]:
    """The environment of a driver in a process of its own."""
    return {**os.environ, **cluster.environment()}
