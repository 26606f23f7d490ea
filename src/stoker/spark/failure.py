"""From the traces of Spark to one sentence: what failed, where, and what to do."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from stoker.errors import ClusterError, ConfigError, SourceError, StokerError, StorageError
from stoker.spark.telling import FAILURE_MARK

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
