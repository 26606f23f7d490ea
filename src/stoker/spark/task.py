"""What an executor does: one shard, from the paths of its images to its final name.

Nothing of pyspark is needed here but the two things that arrive with the task: a broadcast and an accumulator.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.build.job import ItemConverter, ShardJob, ShardResult, build_shard
from stoker.errors import ConfigError
from stoker.records.layout import JOURNAL_NAME
from stoker.sources import SourceTree
from stoker.spark.kit import Kit, difference

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.core.broadcast import Broadcast

    from stoker.storage import Location

FAILURE_MARK = "STOKER-SHARD-FAILED "
"""Stands before what a failed task has to say, so that the driver finds it in the traces of Spark."""

_FAST = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """What all tasks of a build need, sent once to every executor.

    Attributes:
        converter: Turns items into records; without the list of items.
        destination: The dataset; an absolute path, or a place in a store.
    """

    converter: ItemConverter
    destination: Location


class ShardTaskError(Exception):
    """A shard could not be made; the message is `FAILURE_MARK` and a line of JSON."""


def pack(job: ShardJob) -> bytes:
    """Return a job as it is sent: about the bytes of its names, fewer where they resemble each other."""
    return zlib.compress(pickle.dumps(job, pickle.HIGHEST_PROTOCOL), _FAST)


class ShardTask:
    """Makes one shard. Sent to the executors.

    Args:
        wanted: The driver's versions.
        shared: What all tasks need.
        results: Brings the result to the driver as soon as the task ends.
    """

    def __init__(self, wanted: Kit, shared: Broadcast[Shared], results: Accumulator[list[ShardResult]]) -> None:
        self._wanted = wanted
        self._shared = shared
        self._results = results

    def __call__(self, packed: bytes) -> ShardResult:
        """Make the shard of one packed job.

        Raises:
            ShardTaskError: Something went wrong that may not go wrong the next time.
        """
        name = None
        try:
            different = difference(self._wanted)
            if different:
                raise ConfigError(f"on this executor {different}: the bytes could differ; give it the driver's versions")
            job: ShardJob = pickle.loads(zlib.decompress(packed))  # noqa: S301 - from the driver
            name = job.name
            shared = self._shared.value
            check_places(shared)
            result = build_shard(shared.converter, shared.destination, job)
        except Exception as error:
            raise ShardTaskError(FAILURE_MARK + json.dumps(_described(error, name))) from error
        self._results.add([result])
        return result


def check_places(shared: Shared) -> None:
    """See that this machine has the same files as the driver; an empty folder would make a reject of every image.

    Raises:
        ConfigError: It has not.
    """
    tree, destination = shared.converter.tree, shared.destination
    here = f"on {socket.gethostname()}"
    if isinstance(destination, Path) and not (destination / JOURNAL_NAME).is_file():
        message = f"{destination} is not the dataset that the driver builds, or the build has ended, {here}"
        raise ConfigError(f"{message}; build into a directory that all executors share, or into a bucket")
    if isinstance(tree, SourceTree):
        local = [place for place in (tree.base, *tree.archives) if b"://" not in place[:32]]
        missing = next((place for place in local if not os.path.exists(place)), None)  # noqa: PTH110 - bytes
        if missing is not None:
            message = f"the source {os.fsdecode(missing)} is not there {here}"
            raise ConfigError(f"{message}; put the images where all executors see them, or into a bucket")


def _described(error: Exception, shard: str | None) -> dict[str, object]:
    filename = getattr(error, "filename", None)
    return {
        "shard": shard,
        "host": socket.gethostname(),
        "kind": type(error).__name__,
        "message": str(error),
        "errno": getattr(error, "errno", None),
        "filename": os.fsdecode(filename) if isinstance(filename, (str, bytes)) else None,
    }
