"""What a journal holds, whichever way it is kept: the settings of the build, and an entry for each finished shard."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from stoker.build.job import ItemReject, ShardResult
from stoker.records.manifest import Shard
from stoker.storage import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

JOURNAL_FORMAT = "stoker-journal"
JOURNAL_VERSION = 2
"""Raised whenever the same settings would give other bytes, so that no dataset is half old and half new."""

LONGEST_LINE_BYTES = 2**28
"""What is longer is no line of a journal, and does not have to fit into memory."""

_NOT_OURS = (AttributeError, KeyError, TypeError, ValueError)
"""What a line raises that was damaged, or that somebody else wrote."""


def format_settings(settings: dict[str, Any]) -> bytes:
    """Return the line that a journal begins with."""
    return _line({"format": JOURNAL_FORMAT, "version": JOURNAL_VERSION, "settings": settings})


def parse_settings(line: bytes) -> dict[str, Any] | str:
    """Return the settings in the first line of a journal, or what is wrong with it."""
    try:
        content = parse_json(line)
        if content["format"] == JOURNAL_FORMAT and content["version"] == JOURNAL_VERSION:
            return dict(content["settings"])
        return f"is of version {content['version']}, and this Stoker goes on with version {JOURNAL_VERSION} only"
    except _NOT_OURS:
        return "is not a journal of Stoker's"


def format_result(result: ShardResult) -> bytes:
    """Return the line of a shard that is complete."""
    file = result.file
    return _line(
        {
            "shard": file.name,
            "split": result.split,
            "records": file.records,
            "bytes": file.size_bytes,
            "crc32c": f"{file.crc32c:08x}",
            "rejects": [[reject.key, reject.label, reject.reason] for reject in result.rejects],
            "converted": dict(result.converted),
            "annotation_errors": list(result.annotation_errors),
        }
    )


def parse_result(line: bytes) -> ShardResult | None:
    """Return the shard of one line, or None if the line is damaged."""
    try:
        entry = parse_json(line)
        return ShardResult(
            Shard(str(entry["shard"]), int(entry["records"]), int(entry["bytes"]), int(entry["crc32c"], 16)),
            str(entry["split"]),
            tuple(ItemReject(str(key), int(label), str(reason)) for key, label, reason in entry["rejects"]),
            {str(kind): int(count) for kind, count in entry["converted"].items()},
            tuple(map(str, entry["annotation_errors"])),
        )
    except _NOT_OURS:
        return None


def read_results(file: IO[bytes]) -> Iterator[tuple[ShardResult, int]]:
    """Yield the shards of the lines that follow, each with the length of its line, up to one that is damaged or cut."""
    while (line := file.readline(LONGEST_LINE_BYTES)).endswith(b"\n") and (result := parse_result(line)) is not None:
        yield result, len(line)


def _line(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode() + b"\n"
