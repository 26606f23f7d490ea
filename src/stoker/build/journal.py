"""Which shards of an unfinished build are complete, so that the next run does only what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from stoker.build.journal_file import JournalFile
from stoker.build.receipts import Receipts
from stoker.records.files import make_directory
from stoker.storage import RemotePath

if TYPE_CHECKING:
    from types import TracebackType

    from stoker.build.job import ShardResult
    from stoker.storage import Location


class Journal(Protocol):
    """The journal of one destination; for one thread at a time.

    Attributes:
        settings: Of the build that was begun here; None if none was.
        results: The shards that are complete.
    """

    settings: dict[str, Any] | None
    results: list[ShardResult]

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def begin(self, settings: dict[str, Any]) -> None:
        """Start the journal of a new build.

        Afterwards ``settings`` may be others than these, if another build has begun at the same time.
        """

    def append(self, result: ShardResult) -> None:
        """Note that a shard is complete; that lasts when this returns.

        Raises:
            OSError: The disk is full, the store has gone, or the like.
        """

    def remove(self) -> None:
        """Delete the journal, at the end of a build."""


def open_journal(destination: Location) -> Journal:
    """Open the journal of a destination, and make the directory if it is one of this machine.

    Raises:
        DestinationError: Another build holds its lock, or it is no journal.
        OSError: It cannot be opened.
    """
    if isinstance(destination, RemotePath):
        return Receipts(destination)
    make_directory(destination)
    return JournalFile(destination)
