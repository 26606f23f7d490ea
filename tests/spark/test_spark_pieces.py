"""The parts of the Spark engine that need no cluster: errors, the guard against late attempts, versions."""

from __future__ import annotations

import errno
import pickle
import socket
from typing import TYPE_CHECKING

import numpy as np
import pytest

from stoker.builder import PRESETS, ItemConverter, ShardJob
from stoker.errors import ClusterError, ConfigError
from stoker.format import read_journal_head
from stoker.recipe import Recipe
from stoker.sources import Item, ItemTableBuilder, SourceOptions, list_source
from stoker.spark import (
    check_under_way,
    check_versions,
    explain,
    pack,
    task_error,
    versions,
)
from stoker.storage import location

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.needs("pyspark")
TRACE = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 0.0 failed 4 times, most recent \
failure: Lost task 3.3 in stage 0.0 (TID 9) (10.0.0.7 executor 12): {cause}
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


def failed(error: Exception, shard: str | None) -> RuntimeError:
    """What Spark raises for a task that met an error."""
    return RuntimeError(
        TRACE.format(cause=f"org.apache...: Traceback:\nstoker.spark.TaskError: {task_error(error, shard)}\n")
    )


@pytest.mark.parametrize(
    "message",
    [
        *("{}", "{", "3", '{"message": 1}', "[" * 100_000, '{"message": "x", "is_setup": fa'),
        '{"message": "", "is_setup": true}',
    ],
)
def test_what_a_task_said_that_was_cut_on_its_way(message: str) -> None:
    """Spark shortens long messages; the error is one of ours nevertheless."""
    error = explain(RuntimeError(f"Job aborted: most recent failure: STOKER-TASK-FAILED {message}\n\tat org.X"))
    assert str(error).startswith("Spark could not build: ")


def test_the_error_of_a_task_names_the_shard_and_the_host() -> None:
    full = explain(
        failed(OSError(errno.ENOSPC, "No space left on device", "/data/out/x"), "train-00003-of-00008.tfrecord")
    )
    assert isinstance(full, ClusterError)
    where = f"shard train-00003-of-00008.tfrecord, on {socket.gethostname()}"
    assert str(full) == f"[Errno 28] No space left on device: '/data/out/x' ({where})"
    wrong = explain(failed(ConfigError("the source /photos is not there"), None))
    assert isinstance(wrong, ConfigError)
    assert str(wrong) == f"the source /photos is not there (on {socket.gethostname()})"
    assert "AssertionError (" in str(explain(failed(AssertionError(), None)))


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (
            "PythonException: Traceback:\nModuleNotFoundError: No module named 'stoker'\n",
            "No module named 'stoker'; docs",
        ),
        ('java.io.IOException: Cannot run program "/x/python": error=2', 'Cannot run program "/x/python": error=2'),
        ("ExecutorLostFailure (executor 3 exited)\nDriver stacktrace:", "ExecutorLostFailure (executor 3 exited)"),
    ],
)
def test_a_failure_of_the_cluster_is_one_sentence(cause: str, message: str) -> None:
    error = explain(RuntimeError(TRACE.format(cause=cause)))
    assert isinstance(error, ClusterError)
    assert message in str(error)
    assert "\n" not in str(error)
    assert len(str(error)) < 700


def test_a_build_is_under_way_as_long_as_its_journal_begins_so(tmp_path: Path) -> None:
    journal = tmp_path / "build.journal"
    journal.write_bytes(b'{"settings": 1}\n{"shard": "a"}\n')
    head = read_journal_head(location(tmp_path))
    check_under_way(head, location(tmp_path))
    journal.write_bytes(b'{"settings": 1}\n{"shard": "a"}\n{"shard": "b"}\n')
    check_under_way(head, location(tmp_path))
    journal.write_bytes(b'{"settings": 2}\n')
    with pytest.raises(ConfigError, match="another build has begun"):
        check_under_way(head, location(tmp_path))
    journal.unlink()
    with pytest.raises(ConfigError, match="or that build has ended"):
        check_under_way(head, location(tmp_path))


def test_versions_are_compared_by_name() -> None:
    check_versions(versions(compressed=True))
    with pytest.raises(ConfigError, match=r"pillow is \S+ and not 0\.1 on an executor"):
        check_versions({"pillow": "0.1"})
    assert "zlib" not in versions(compressed=False)


def test_a_job_is_sent_in_about_the_bytes_of_its_names() -> None:
    builder = ItemTableBuilder()
    rng = np.random.default_rng(5)
    for number in rng.permutation(100_000)[:10_000].tolist():
        builder.add(
            Item(b"n%08d/n%08d_%d.JPEG" % (number // 100, number // 100, number), number // 100, 100_000 + number)
        )
    table = builder.finish()
    assert len(pack(ShardJob("train-00000-of-00001.tfrecord", "train", table))) < len(table.paths.data)


def test_values_of_a_table_are_sent_with_the_jobs_they_belong_to(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    lines = [f'{{"file_name": "{number}.png", "caption": "{rng.bytes(200).hex()}"}}' for number in range(2000)]
    (tmp_path / "metadata.jsonl").write_text("\n".join(lines))
    for number in range(2000):
        (tmp_path / f"{number}.png").write_bytes(b"image")
    tree = list_source(str(tmp_path), SourceOptions())
    converter = ItemConverter(tree, Recipe(), PRESETS[None].schema())
    rows = np.asarray([7, 1999, 3])
    job = ShardJob("train-00000-of-00001.tfrecord", "train", tree.table.take(rows))
    assert [tree.stored.values(item) for item in job.items] == [tree.stored.values(tree.table[row]) for row in rows]
    assert len(pack(job)) < 3000
    assert len(pickle.dumps(converter)) < 20_000
    assert converter.source is tree
