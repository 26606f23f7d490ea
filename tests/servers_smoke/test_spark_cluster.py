"""The Spark cluster is a real one: a job runs on all workers, and lives through the death of what runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from servers.spark_cluster import SparkCluster

pytestmark = [
    pytest.mark.servers,
    pytest.mark.skipif(sys.platform != "linux", reason="workers are at 127.0.0.2 and on, as only Linux has them"),
]

# Each partition says where it ran, and waits until it may end.
JOB = """if True:
    import json, os, sys, time
    from pathlib import Path
    from pyspark import SparkConf, SparkContext

    settings, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    context = SparkContext(conf=SparkConf().setAll(settings.items()))

    def work(index, numbers):
        (folder / f"{index}-{os.getpid()}").touch()
        while not (folder / "go").exists():
            time.sleep(0.05)
        yield index, os.environ["SPARK_LOCAL_IP"], sum(numbers)

    print(json.dumps(context.parallelize(range(100), 4).mapPartitionsWithIndex(work).collect()))
    context.stop()
"""


def wait_for(what: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_job_runs_on_both_workers_and_survives_what_dies_of_it(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    program = [sys.executable, "-c", JOB, json.dumps(spark_cluster.settings()), str(tmp_path)]
    environment = {**os.environ, **spark_cluster.environment()}
    with (tmp_path / "job.log").open("wb") as log:
        job = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE, stderr=log)
    try:
        wait_for(lambda: len(list(tmp_path.glob("[0-3]-*"))) == 2)
        first = [spark_cluster.python_workers(number) for number in (0, 1)]
        started = {int(path.name.partition("-")[2]) for path in tmp_path.glob("[0-3]-*")}
        assert {pid for pids in first for pid in pids} == started
        spark_cluster.kill_process(first[0][0])
        wait_for(lambda: len(list(tmp_path.glob("[0-3]-*"))) == 3)
        assert [len(spark_cluster.executors(number)) for number in (0, 1)] == [1, 1]
        spark_cluster.kill_worker(0)
        wait_for(lambda: spark_cluster.executors(0) == [])
        (tmp_path / "go").touch()
        answer = job.communicate(timeout=60)[0]
    finally:
        job.kill()
        spark_cluster.start_worker(0)
        sys.stderr.write((tmp_path / "job.log").read_text()[-3000:])  # shown if this test fails
    assert job.returncode == 0
    assert [(index, total) for index, _, total in json.loads(answer)] == [(0, 300), (1, 925), (2, 1550), (3, 2175)]
    assert {host for _, host, _ in json.loads(answer)} == {"127.0.0.3"}
