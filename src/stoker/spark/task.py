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
from typing import TYPE_CHECKING

from stoker.build import ItemConverter, ShardJob, ShardResult, build_shard
from stoker.errors import ConfigError
from stoker.sources import SourceTree
from stoker.spark.kit import Kit, difference
from stoker.storage import is_remote

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.core.broadcast import Broadcast

    from stoker.spark.fence import Fence
    from stoker.storage import Location

FAILURE_MARK = "STOKER-SHARD-FAILED "
"""Stands before what a failed task has to say, so that the driver finds it in the traces of Spark."""

_FAST = 1
_READS_AT_ONCE = 16
"""Of a task whose images lie in a store, which answers after milliseconds; a core alone would wait most of the time."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all tasks of a build need, sent once to every executor.

    Attributes:
        converter: Turns items into records; without the list of items.
        destination: The dataset; an absolute path, or a place in a store.
        fence: Tells whether it is still being built.
    """

    converter: ItemConverter
    destination: Location
    fence: Fence

    def build(self, job: ShardJob) -> ShardResult:
        """Build one shard.

        Raises:
            ConfigError: This machine does not see what the driver sees.
            OSError: The source or the destination failed.
        """
        self.fence.check(self.destination)
        self._check_source()
        threads = _READS_AT_ONCE if is_remote(self.converter.tree.root) else 1
        return build_shard(
            self.converter, self.destination, job, threads, before_commit=lambda: self.fence.check(self.destination)
        )

    def _check_source(self) -> None:
        """See that the images are here; an empty folder would make a reject of every one of them.

        Raises:
            ConfigError: They are not.
        """
        tree = self.converter.tree
        if not isinstance(tree, SourceTree) or is_remote(tree.root):
            return
        for place in (tree.base, *tree.archives):
            if not os.path.exists(place):  # noqa: PTH110 - bytes
                message = f"the source {os.fsdecode(place)} is not there"
                raise ConfigError(f"{message}; put the images where all executors see them, or into a bucket")


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
                raise ConfigError(
                    f"on this executor {different}: the bytes could differ; give it the driver's versions"
                )
            job: ShardJob = pickle.loads(zlib.decompress(packed))  # noqa: S301 - from the driver
            name = job.name
            result = self._shared.value.build(job)
        except Exception as error:
            raise ShardTaskError(FAILURE_MARK + json.dumps(_described(error, name))) from error
        self._results.add([result])
        return result


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
