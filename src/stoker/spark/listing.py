"""Listing on the cluster: each task lists some folders, and sends names and sizes back in columns.

Only for trees of class folders in a store. There a page of a thousand names takes tens of milliseconds and some CPU, so
one machine lists a hundred million objects in hours; a directory of this machine is listed before executors start.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from stoker.sources import Listing, Skipped, list_folders
from stoker.spark.jobs import Jobs
from stoker.spark.kit import Kit, kit, require
from stoker.spark.telling import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from stoker.sources.folders import FolderLister

_TASKS_PER_CORE = 4  # so that a large folder keeps no other waiting
_MOST_FOLDERS = 16
_SEPARATOR = b"\0"  # of names: no file system and no store allows it in one


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """What lies in a folder, as it is sent.

    Attributes:
        names: The paths below the folder, end to end, with a zero byte between two.
        sizes: int64 (N,): bytes of each.
        ignored: What is not an item, by kind.
        warnings: What a person should know.
    """

    names: bytes
    sizes: NDArray[np.int64]
    ignored: dict[str, int]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, listing: Listing) -> ListedFolder:
        """Return a listing as it is sent."""
        names = _SEPARATOR.join(path for path, _ in listing.files)
        sizes = np.asarray([size for _, size in listing.files], np.int64)
        return cls(names, sizes, dict(listing.skipped.ignored), tuple(listing.skipped.warnings))

    def listing(self) -> Listing:
        """Return it as it was listed."""
        names = self.names.split(_SEPARATOR) if len(self.sizes) else []
        skipped = Skipped(Counter(self.ignored), list(self.warnings))
        return Listing(list(zip(names, self.sizes.tolist(), strict=True)), skipped)


class ListTask:
    """Lists some folders. Sent to the executors.

    Args:
        wanted: The driver's versions.
        root: What the folders lie in.
    """

    def __init__(self, wanted: Kit, root: bytes) -> None:
        self._wanted = wanted
        self._root = root

    def __call__(self, folders: list[bytes]) -> list[ListedFolder]:
        """List the folders, in their order.

        Raises:
            TaskError: Something went wrong that may not go wrong the next time.
        """
        try:
            require(self._wanted)
            return [ListedFolder.of(listing) for listing in list_folders(self._root, folders)]
        except Exception as error:
            raise told(error, f"listing {folders[0].decode('utf-8', 'replace')}") from error


def cluster_lister(session: SparkSession) -> FolderLister:
    """Return what lists folders with the executors of an application, as `stoker.sources.list_folders` does here."""

    def list_on_cluster(root: bytes, folders: Iterable[bytes]) -> Iterator[Listing]:
        task = ListTask(kit(compressed=False), root)
        todo = list(folders)
        tasks = _TASKS_PER_CORE * session.sparkContext.defaultParallelism
        each = max(1, min(_MOST_FOLDERS, -(-len(todo) // tasks)))  # a split may have no folder at all
        jobs: Jobs[list[ListedFolder]] = Jobs(session, f"stoker list {root.decode('utf-8', 'replace')}", 1)
        with jobs:
            for first in range(0, len(todo), each * tasks):
                wave = todo[first : first + each * tasks]
                jobs.submit(task, [wave[at : at + each] for at in range(0, len(wave), each)])
                while jobs.under_way:
                    for answers in jobs.ended():
                        yield from (found.listing() for answer in answers for found in answer)

    return list_on_cluster
