"""A tar of class folders as a source: it is refused, or every image lies in the tar and has a class."""

from __future__ import annotations

from scripts.fuzz_python.made import tar_of
from scripts.fuzz_python.scratch import folder
from stoker.sources import list_source

_PATH = folder() / "train.tar"


def one_input(data: bytes) -> None:
    """List any bytes as a tar."""
    _PATH.write_bytes(data)
    tree = list_source(str(_PATH))
    for rows in tree.splits.values():
        for row in rows.tolist():
            item = tree.table[row]
            assert 0 <= item.label < len(tree.classes)
            assert 0 <= item.offset <= item.offset + item.size_bytes <= len(data)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    members = {"n1/a.JPEG": b"x" * 600, "n2/b.JPEG": b"y"}
    return [
        tar_of(members),
        tar_of({"n1.tar": tar_of({"a.JPEG": b"x"}), "n2.tar": tar_of({"b.JPEG": b"y"})}),
        tar_of({"n1/" + "a" * 150: b"z"}),
    ]
