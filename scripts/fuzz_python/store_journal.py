"""The journal of a build into a store, which is a folder: refused, or what is read is written again as the same."""

from __future__ import annotations

from scripts.fuzz_python.scratch import folder
from stoker.errors import DestinationError
from stoker.format import ItemReject, ShardResult
from stoker.format.directory import BUILD_FOLDER
from stoker.format.journal import JournalFolder, format_result, format_settings, with_checksum
from stoker.format.manifest import Shard

_FOLDER, _AGAIN = folder(), folder()
_SETTINGS = {"shards": {"train": 2}, "seed": 1}
_NAME = "train-00000-of-00002.tfrecord"


def one_input(data: bytes) -> None:
    """Open any bytes as the settings or, with sound settings, as the entry of a shard; the first byte says which."""
    kind, text = data[:1], data[1:]
    folder = _FOLDER / BUILD_FOLDER
    (folder / "shards").make_directory()
    (folder / "settings.json").write_bytes(text if kind < b"\x40" else format_settings(_SETTINGS))
    entry = with_checksum(text, _SETTINGS) if kind < b"\xc0" else text
    (folder / "shards" / f"{_NAME}.json").write_bytes(entry)
    try:
        journal = JournalFolder(_FOLDER)
    except DestinationError:
        assert kind < b"\x40"
        raise
    assert len(journal.results) <= 1
    (_AGAIN / BUILD_FOLDER / "shards").make_directory()
    again = JournalFolder(_AGAIN)
    again.begin(journal.settings or {})
    for result in journal.results:
        assert result.file.name == _NAME
        again.append(result)
    assert JournalFolder(_AGAIN).results == journal.results
    again.remove()


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    rejects = (ItemReject("n1/a.JPEG", 1, "it is damaged"),)
    line = format_result(ShardResult(Shard(_NAME, 10, 1000, 0xABCD), "train", rejects, {"png": 1}, ("odd",)), _SETTINGS)
    open_line = line[: line.rindex(b', "checksum"')] + b"}"
    return [b"\xff" + line, b"\x80" + open_line, b"\0" + format_settings(_SETTINGS), b"\0{}"]
