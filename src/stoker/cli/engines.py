"""Where a build runs: on this machine, or on a cluster."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.build.local import LocalEngine
from stoker.errors import ConfigError
from stoker.sources import list_folders

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from stoker.build import EngineFactory
    from stoker.sources.folders import FolderLister


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add what says where a build runs."""
    add = parser.add_argument
    add("--engine", choices=["local", "spark"], default="local", help="threads here (default), or a Spark cluster")
    text = "with --engine spark: local[4], spark://HOST:7077, yarn, ... (default: what Spark's configuration says)"
    add("--master", metavar="URL", help=text)
    text = "with --engine spark: a property of Spark's, such as spark.executor.memory=2g; may be given again"
    add("--spark-conf", metavar="NAME=VALUE", action="append", default=[], help=text)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Where a build runs.

    Attributes:
        engine: Makes its engine.
        lister: Lists the class folders of its source.
    """

    engine: EngineFactory
    lister: FolderLister


@contextmanager
def chosen_engine(args: argparse.Namespace) -> Iterator[Chosen]:
    """Keep the engine that the options name while the ``with`` block runs.

    Raises:
        ConfigError: An option is for another engine, or is not understood.
        ClusterError: Spark does not start.
    """
    if args.engine == "local":
        if args.master is not None or args.spark_conf:
            raise ConfigError("--master and --spark-conf are for --engine spark; give that, or leave them away")
        yield Chosen(LocalEngine, list_folders)
        return
    settings = dict(_setting(text) for text in args.spark_conf)
    from stoker.spark.building import Cluster  # noqa: PLC0415 - other builds need nothing of it
    from stoker.spark.session import spark_session  # noqa: PLC0415

    with spark_session(args.master, settings) as session:
        cluster = Cluster(session)
        yield Chosen(cluster.engine(), cluster.lister(args.source))


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise ConfigError(f"--spark-conf {text} is not understood; write it as spark.executor.memory=2g")
    return name, value
