"""What Spark says of a task that failed, which passes through Java's traces: an error of ours, whatever it is."""

from __future__ import annotations

from stoker.errors import ClusterError, ConfigError
from stoker.spark import explain, task_error


def one_input(data: bytes) -> None:
    """Explain any text."""
    error = explain(Exception(data.decode("utf-8", "surrogateescape")))
    assert isinstance(error, ClusterError | ConfigError)
    assert str(error)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    failed = str(task_error(OSError("the disk is full"), "train-00000-of-00002")).encode()
    refused = str(task_error(ConfigError("pillow is 1 and not 2"), None)).encode()
    trace = (
        b"Job aborted: most recent failure: Lost task: org.apache.spark.api.python.PythonException: %b\n\n\tat org.X"
    )
    return [failed, trace % refused, trace % b"java.lang.OutOfMemoryError", b"STOKER-TASK-FAILED {}"]
