"""The parts of the Spark engine that need no cluster: what a failure is called, what keeps late attempts away."""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stoker import spark as telling
from stoker.builder import ShardJob
from stoker.errors import ClusterError, ConfigError, SourceError, StorageError
from stoker.sources import Item, ItemTableBuilder
from stoker.spark import FAILURE_MARK, Fence, explain, kit, pack, require

if TYPE_CHECKING:
    from pathlib import Path

TRACE = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 0.0 failed 4 times, most recent \
failure: Lost task 3.3 in stage 0.0 (TID 9) (10.0.0.7 executor 12): {cause}
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


def told(**what: object) -> str:
    fields = {
        "doing": "shard train-00003-of-00008.tfrecord",
        "host": "node7",
        "attempt": 4,
        "errno": None,
        "filename": None,
        **what,
    }
    return TRACE.format(
        cause=f"org.apache...: Traceback:\nstoker.spark.TaskError: {FAILURE_MARK}{json.dumps(fields)}\n"
    )


def test_the_error_of_a_task_is_the_error_here() -> None:
    full = explain(
        RuntimeError(told(kind="OSError", errno=errno.ENOSPC, message="...", filename="/data/out/x.tmp-1-a"))
    )
    assert isinstance(full, OSError)
    assert (full.errno, full.filename) == (errno.ENOSPC, "/data/out/x.tmp-1-a")
    assert full.__notes__ == ["shard train-00003-of-00008.tfrecord, on node7, attempt 4"]
    gone = explain(RuntimeError(told(kind="StorageError", message="cannot write s3://b/k: 503")))
    assert isinstance(gone, StorageError)
    assert str(gone) == "cannot write s3://b/k: 503"
    wrong = explain(RuntimeError(told(kind="ConfigError", message="no module 'obstore'", doing="")))
    assert isinstance(wrong, ConfigError)
    assert wrong.__notes__ == ["on node7, attempt 4"]
    bug = explain(RuntimeError(told(kind="AssertionError", message="")))
    assert isinstance(bug, ClusterError)
    assert "AssertionError" in str(bug)


def test_the_place_of_an_error_reaches_the_driver() -> None:
    for error in (
        SourceError("s3://b/a.tar has become shorter", path="s3://b/a.tar"),
        StorageError("cannot read s3://b/k: 503", path="s3://b/k"),
    ):
        here = explain(RuntimeError(TRACE.format(cause=f"TaskError: {telling.told(error, '')}\n")))
        assert type(here) is type(error)
        assert here.path == error.path


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (
            "ModuleNotFoundError: No module named 'stoker'",
            "the executors have no module 'stoker'; install the same wheel",
        ),
        ("ModuleNotFoundError: No module named 'stoker._native'", "the executors have no module 'stoker._native'"),
        ("AttributeError: Can't get attribute 'ShardTask' on <module 'stoker.spark'", "another version of Stoker"),
        ('java.io.IOException: Cannot run program "/x/python": error=2', "the executors have no program /x/python"),
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9",
            "run another Python: Python in worker",
        ),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", "was killed, again and again"),
        ("ExecutorLostFailure (executor 3 exited caused by one of the running tasks)", "executors were lost"),
        ("java.lang.NullPointerException: null", "java.lang.NullPointerException"),
    ],
)
def test_a_failure_of_the_cluster_is_one_sentence(cause: str, message: str) -> None:
    error = explain(RuntimeError(TRACE.format(cause=cause)))
    assert isinstance(error, ClusterError)
    assert message in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 700


def test_a_job_that_is_cancelled_elsewhere_says_so() -> None:
    error = explain(
        RuntimeError(
            ": org.apache.spark.SparkException: [SPARK_JOB_CANCELLED] Job 4 cancelled because killed via the Web UI"
        )
    )
    assert "its job was cancelled" in str(error)


def test_a_fence_holds_only_while_its_build_is_under_way(tmp_path: Path) -> None:
    journal = tmp_path / "build.journal"
    journal.write_bytes(b'{"settings": 1}\n{"shard": "a"}\n')
    fence = Fence.of(tmp_path)
    fence.check(tmp_path)
    journal.write_bytes(b'{"settings": 1}\n{"shard": "a"}\n{"shard": "b"}\n')
    fence.check(tmp_path)
    journal.write_bytes(b'{"settings": 2}\n')
    with pytest.raises(ConfigError, match="another build has begun"):
        fence.check(tmp_path)
    journal.unlink()
    with pytest.raises(ConfigError, match="or that build has ended"):
        fence.check(tmp_path)


def test_versions_are_compared_by_name() -> None:
    require(kit(compressed=True))
    with pytest.raises(ConfigError, match=r"pillow is \S+ and not 0\.1 on an executor"):
        require({"pillow": "0.1"})
    assert "zlib" not in kit(compressed=False)


def test_a_job_is_sent_in_about_the_bytes_of_its_names() -> None:
    builder = ItemTableBuilder()
    rng = np.random.default_rng(5)
    for number in rng.permutation(100_000)[:10_000].tolist():
        builder.add(
            Item(b"n%08d/n%08d_%d.JPEG" % (number // 100, number // 100, number), number // 100, 100_000 + number)
        )
    table = builder.finish()
    assert len(pack(ShardJob("train-00000-of-00001.tfrecord", "train", table))) < len(table.names)
