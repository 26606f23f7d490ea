"""The journal of a build that was stopped: it is refused, or its entries are written again as the same."""

from __future__ import annotations

from scripts.fuzz_python.scratch import folder
from stoker.format import ItemReject, ShardResult
from stoker.format.directory import JOURNAL_NAME
from stoker.format.journal import (
    JournalFile,
    format_result,
    format_settings,
    parse_result,
    parse_settings,
    with_checksum,
)
from stoker.format.manifest import Shard

_FOLDER = folder()
_SETTINGS = {"shards": {"train": 2}, "seed": 1}


def one_input(data: bytes) -> None:
    """Open any bytes as a journal, and parse them as lines."""
    for line in data.split(b"\n")[:8]:
        assert isinstance(parse_settings(line), dict | str)
        assert isinstance(parse_settings(with_checksum(line)), dict | str)
        for entry in (line + b"\n", with_checksum(line, _SETTINGS)):
            result = parse_result(entry, _SETTINGS)
            assert result is None or parse_result(format_result(result, _SETTINGS), _SETTINGS) == result
    path = _FOLDER / JOURNAL_NAME
    path.write_bytes(data)
    with JournalFile(_FOLDER) as journal:
        settings, results = journal.settings, list(journal.results)
    with JournalFile(_FOLDER) as journal:
        assert journal.settings == settings
        assert journal.results == results


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    file = Shard("train-00000-of-00002.tfrecord", 10, 1000, 0xABCD)
    rejects = (ItemReject("n1/a.JPEG", 1, "it is damaged"),)
    line = format_result(ShardResult(file, "train", rejects, {"png": 1}, ("odd",)), _SETTINGS)
    return [format_settings(_SETTINGS) + line * 2, line]
