"""``stoker.spark.build``: a build on an application of Spark's that is there already."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from stoker.build import build_tree, check_destination, open_source
from stoker.errors import ConfigError
from stoker.sources import list_folders
from stoker.storage import is_remote, location

if TYPE_CHECKING:
    import os

    from pyspark.sql import SparkSession

    from stoker.build import BuildReport, BuildSettings
    from stoker.build.engine import EngineFactory
    from stoker.sources.folders import FolderLister
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
    cluster = Cluster(spark)
    check_destination(place, settings.source.root)
    tree = open_source(settings.source, lister=cluster.lister(settings.source.root))
    return build_tree(tree, settings, place, progress, engine=cluster.engine())


class Cluster:
    """What a session of Spark's can do for a build.

    Args:
        session: It is not stopped.

    Raises:
        ConfigError: It is one of Spark Connect.
    """

    def __init__(self, session: SparkSession) -> None:
        try:
            _ = session.sparkContext
        except Exception as error:  # what Spark Connect raises has had several names
            message = "this session has no SparkContext: it is one of Spark Connect, which runs no functions of ours on"
            raise ConfigError(
                f"{message} executors; use a classic session (on Databricks, dedicated access)"
            ) from error
        self._session = session

    def engine(self) -> EngineFactory:
        """Return what makes the engine of one build."""
        from stoker.spark.engine import SparkEngine  # noqa: PLC0415 - needs pyspark

        return partial(SparkEngine, self._session)

    def lister(self, root: str) -> FolderLister:
        """Return what lists the class folders of a source: the executors, if it lies in a store."""
        from stoker.spark.listing import cluster_lister  # noqa: PLC0415 - needs pyspark

        return cluster_lister(self._session) if is_remote(root) else list_folders
