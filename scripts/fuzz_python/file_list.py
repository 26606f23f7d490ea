"""Configurations with lists of files: refused, or items with a class."""

from __future__ import annotations

from scripts.fuzz_python.scratch import folder
from stoker.sources import list_source
from stoker.sources.file_lists import read_config

_FOLDER = folder()
for _name in ("n1", "n2"):
    (_FOLDER / _name).mkdir()
    (_FOLDER / _name / "a.jpg").write_bytes(b"x")


def one_input(data: bytes) -> None:
    """Read any bytes as a configuration, or as the list that one names; the first byte says which."""
    config = _FOLDER / "config.json"
    if data[:1] < b"\x60":
        config.write_bytes(data[1:])
        read_config(config)
        return
    config.write_bytes(b'{"data": {"train_filelist": "list.txt"}}')
    (_FOLDER / "list.txt").write_bytes(data[1:])
    tree = list_source(str(config))
    lines = data.count(b"\n") + 1
    assert sum(len(items) for items in tree.splits.values()) <= lines


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    config = b'{"data": {"train_filelist": "list.txt", "batch_size": 4, "crop_image_size": [224, 224]}}'
    lists = (b"n1/a.jpg\nn2/a.jpg\n", b"n1/a.jpg\r\n\n./n2/a.jpg", b"path,label\nn1/a.jpg,3\nn2/a.jpg,-1\n")
    return [b"\0" + config, *(b"\xff" + text for text in lists)]
