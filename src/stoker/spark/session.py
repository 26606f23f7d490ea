"""A Spark application of our own, for the command line: quiet, and gone when the build is."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from stoker.errors import ClusterError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

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
