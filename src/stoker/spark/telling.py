"""How a task tells the driver what went wrong: as a marked line in the midst of Spark's traces."""

from __future__ import annotations

import json
import os
import socket

from stoker.errors import StokerError

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
