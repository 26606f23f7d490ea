"""What an executor does: one shard, from the paths of its images to its final name.

Nothing of pyspark is needed here but the two things that arrive with the task: a broadcast and an accumulator.
"""

from __future__ import annotations

import os
import pickle
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.build import ItemConverter, ShardJob, ShardResult, build_shard
from stoker.errors import ConfigError
from stoker.sources import SourceTree
from stoker.spark.kit import Kit, require
from stoker.spark.telling import told
from stoker.storage import is_remote

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.core.broadcast import Broadcast

    from stoker.spark.fence import Fence
    from stoker.storage import Location

_FAST = 1


@dataclass(frozen=True, slots=True)
class Shared:
    """What all tasks of a build need, sent once to every executor.

    Attributes:
        converter: Turns items into records; without the list of items.
        destination: The dataset; an absolute path, or a place in a store.
        fence: Tells whether it is still being built.
        remote: Whether images or annotations lie in a store.
    """

    converter: ItemConverter
    destination: Location
    fence: Fence
    remote: bool

    def build(self, job: ShardJob) -> ShardResult:
        """Build one shard.

        Raises:
            ConfigError: This machine does not see what the driver sees.
            OSError: The source or the destination failed.
        """
        self.fence.check(self.destination)
        self._check_source()
        return build_shard(
            self.converter,
            self.destination,
            job,
            load_ahead=self.remote,
            before_commit=lambda: self.fence.check(self.destination),
        )

    def _check_source(self) -> None:
        """See that the images are here; an empty folder would make a reject of every one of them.

        Raises:
            ConfigError: They are not.
        """
        tree = self.converter.tree
        for place in (tree.base, *tree.archives) if isinstance(tree, SourceTree) else ():
            if not is_remote(place) and not os.path.exists(place):  # noqa: PTH110 - bytes
                message = f"the source {os.fsdecode(place)} is not there"
                raise ConfigError(f"{message}; put the images where all executors see them, or into a bucket")


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
            TaskError: Something went wrong that may not go wrong the next time.
        """
        name = None
        try:
            require(self._wanted)
            job: ShardJob = pickle.loads(zlib.decompress(packed))  # noqa: S301 - from the driver
            name = job.name
            result = self._shared.value.build(job)
        except Exception as error:
            raise told(error, f"shard {name}" if name else "") from error
        self._results.add([result])
        return result
