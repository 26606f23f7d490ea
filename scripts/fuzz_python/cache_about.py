"""The descriptions in a cache directory: a damaged one is an entry of which nothing is known."""

from __future__ import annotations

from scripts.fuzz_python.scratch import folder
from stoker.loader.caches import find_entries

_FOLDER = folder()
(_FOLDER / ("0" * 32 + ".samples")).write_bytes(b"")


def one_input(data: bytes) -> None:
    """Read any bytes as a description."""
    (_FOLDER / ("0" * 32 + ".json")).write_bytes(data)
    (entry,) = find_entries(_FOLDER)
    assert entry.key == "0" * 32
    assert entry.about is None or isinstance(entry.about.samples, int)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    return [b'{"dataset": "d", "split": "train", "samples": 3}', b"{}"]
