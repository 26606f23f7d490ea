"""How far a build has come that was interrupted, or whose manifest is withheld: the notes of its journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.build.journal_entries import LONGEST_LINE_BYTES, parse_settings, read_results
from stoker.build.receipts import Receipts
from stoker.errors import DestinationError
from stoker.records.layout import JOURNAL_NAME
from stoker.storage import RemotePath, open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stoker.build.job import ShardResult
    from stoker.storage import Location


@dataclass(frozen=True, slots=True)
class UnfinishedInfo:
    """An unfinished build.

    Attributes:
        path: Its directory.
        settings: What decides its bytes, as the journal has them; empty when it does not say.
        planned_shards: Shards it will have; None when the journal does not say.
        shards: Shards that are complete.
        records: Records in them.
        size_bytes: Their bytes.
        rejects: Source items rejected so far.
    """

    path: str
    settings: Mapping[str, Any]
    planned_shards: int | None
    shards: int
    records: int
    size_bytes: int
    rejects: int

    @property
    def remedy(self) -> str:
        """What to do to finish it."""
        again = "run the same 'stoker build' again"
        if self.rejects and self.shards == self.planned_shards:
            return f"{again} with --max-rejects {self.rejects} to accept the rejects and publish the manifest"
        return f"{again} to finish it"


def unfinished_info(directory: Location) -> UnfinishedInfo:
    """Return how far the build in a directory has come; what its journal holds that is damaged does not count.

    Raises:
        OSError: The journal cannot be read.
    """
    settings, results = _received(directory) if isinstance(directory, RemotePath) else _noted(directory)
    shards = {result.file.name: result for result in results}.values()
    return UnfinishedInfo(
        path=str(directory),
        settings=settings,
        planned_shards=_planned(settings),
        shards=len(shards),
        records=sum(shard.file.records for shard in shards),
        size_bytes=sum(shard.file.size_bytes for shard in shards),
        rejects=sum(len(shard.rejects) for shard in shards),
    )


def _received(directory: RemotePath) -> tuple[Mapping[str, Any], list[ShardResult]]:
    """Return the settings, and each complete shard, of a build in a store."""
    try:
        receipts = Receipts(directory)
    except DestinationError:  # what is there says nothing
        return {}, []
    return receipts.settings or {}, receipts.results


def _noted(directory: Path) -> tuple[Mapping[str, Any], list[ShardResult]]:
    """Return the same of a build on this machine."""
    with open_regular(directory / JOURNAL_NAME) as file:
        header = file.readline(LONGEST_LINE_BYTES)
        settings = parse_settings(header) if header.endswith(b"\n") else "is not whole"
        results = [result for result, _ in read_results(file)]
    return {} if isinstance(settings, str) else settings, results


def _planned(settings: Mapping[str, Any]) -> int | None:
    shards = settings.get("shards")
    if not isinstance(shards, dict) or not all(type(count) is int for count in shards.values()):
        return None
    return sum(shards.values())
