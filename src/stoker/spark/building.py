"""``stoker.spark.build``: a build on an application of Spark's that is there already."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stoker.build import build_tree, check_destination, open_source
from stoker.errors import ConfigError
from stoker.storage import location

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

    from stoker.build import BuildReport, BuildSettings
    from stoker.build.engine import EngineFactory
    from stoker.storage import Location
    from stoker.types import Progress


def build(
    spark: SparkSession,
    settings: BuildSettings,
    destination: str | os.PathLike[str] | Location,
    progress: Progress | None = None,
) -> BuildReport:
    """Build a dataset with the executors of a Spark application, or go on with a build that was interrupted.

    The dataset is byte for byte that of the engine for one machine. Executors need the same version of Stoker and
    must reach the images and the destination: in a store, or below a directory that all of them share. The session is
    used as it is, and is not stopped.

    Args:
        spark: The session. One of Spark Connect cannot be used.
        settings: What to build.
        destination: Directory of the dataset, or its URL; created if missing.
        progress: Told about every shard, from the calling thread.

    Raises:
        ConfigError: The settings do not fit, or the executors lack something.
        SourceError: The source cannot be listed.
        DestinationError: The destination holds something else, or another build is writing to it.
        ClusterError: Spark failed; also an ``OSError``. Run again to resume.
        OSError: The destination cannot be written. Run again to resume.
        KeyboardInterrupt: The jobs are cancelled. Run again to resume.
    """
    place = location(destination)
    engine = engine_on(spark)
    check_destination(place, settings.source.root)
    return build_tree(open_source(settings.source), settings, place, progress, engine=engine)


def engine_on(spark: SparkSession) -> EngineFactory:
    """Return what makes the engine of one build.

    Raises:
        ConfigError: pyspark is not installed, or the session is one of Spark Connect.
    """
    try:
        from stoker.spark.engine import SparkEngine  # noqa: PLC0415 - pyspark is an extra
    except ModuleNotFoundError as error:
        raise ConfigError(f"no module {error.name!r}; run pip install 'stoker[spark]'") from error
    try:
        _ = spark.sparkContext
    except Exception as error:  # what Spark Connect raises has had several names
        message = "this session has no SparkContext: it is one of Spark Connect, which runs no Python of its own on"
        raise ConfigError(f"{message} executors; use a classic session (on Databricks, dedicated access)") from error
    return partial(SparkEngine, spark)
