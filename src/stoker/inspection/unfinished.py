"""How far a build has come that was interrupted, or whose manifest is withheld: the notes of its journal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.build.receipts import Receipts
from stoker.errors import DestinationError
from stoker.records.layout import JOURNAL_NAME
from stoker.storage import RemotePath, open_regular, parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stoker.storage import Location

    Shards = Mapping[str, tuple[int, int, int]]
    """By the name of each complete shard: its records, bytes and rejects."""

_MAX_LINE_BYTES = 2**28


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
    settings, shards = _received(directory) if isinstance(directory, RemotePath) else _noted(directory)
    return UnfinishedInfo(
        path=str(directory),
        settings=settings,
        planned_shards=_planned(settings),
        shards=len(shards),
        records=sum(records for records, _, _ in shards.values()),
        size_bytes=sum(size for _, size, _ in shards.values()),
        rejects=sum(rejects for _, _, rejects in shards.values()),
    )


def _received(directory: RemotePath) -> tuple[Mapping[str, Any], Shards]:
    """Return the settings, and each complete shard, of a build in a store."""
    try:
        receipts = Receipts(directory)
    except DestinationError:  # what is there says nothing
        return {}, {}
    found = {one.file.name: (one.file.records, one.file.size_bytes, len(one.rejects)) for one in receipts.results}
    return receipts.settings or {}, found


def _noted(directory: Path) -> tuple[Mapping[str, Any], Shards]:
    """Return the same of a build on this machine. A line that is not whole, and what follows it, do not count."""
    shards: dict[str, tuple[int, int, int]] = {}
    with open_regular(directory / JOURNAL_NAME) as file:
        settings = _settings(file.readline(_MAX_LINE_BYTES))
        while line := file.readline(_MAX_LINE_BYTES):
            entry = _object(line)
            try:
                shards[str(entry["shard"])] = (int(entry["records"]), int(entry["bytes"]), len(entry["rejects"]))
            except (KeyError, TypeError, ValueError):
                break
    return settings, shards


def _settings(header: bytes) -> dict[str, Any]:
    settings = _object(header).get("settings")
    return settings if isinstance(settings, dict) else {}


def _planned(settings: Mapping[str, Any]) -> int | None:
    shards = settings.get("shards")
    if not isinstance(shards, dict) or not all(type(count) is int for count in shards.values()):
        return None
    return sum(shards.values())


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object of a whole line; an empty one if it is something else."""
    try:
        content = parse_json(line) if line.endswith(b"\n") else {}
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
