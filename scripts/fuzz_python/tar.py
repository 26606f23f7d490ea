"""A tar of class folders or of samples: it is refused, or every image lies in the tar, and in a folder has a class."""

from __future__ import annotations

import contextlib

from scripts.fuzz_python.scratch import folder
from scripts.fuzz_python.seed_data import sealed, tar_of
from stoker.errors import SourceError
from stoker.sources import list_source
from stoker.sources.webdataset import hold_samples
from stoker.storage import location

_PATH = folder() / "train.tar"


def one_input(data: bytes) -> None:
    """List any bytes as a tar; the first byte says whether its checksums are made to be right."""
    data = sealed(data[1:]) if data[:1] < b"\xc0" else data[1:]
    _PATH.write_bytes(data)
    tree = list_source(str(_PATH))
    least = -int(bool(hold_samples([location(_PATH)])))  # a sample may have no class
    for rows in tree.splits.values():
        for row in rows.tolist():
            item = tree.table[row]
            assert least <= item.label < len(tree.classes)
            assert 0 <= item.columns["offset"] <= item.columns["offset"] + item.size_bytes <= len(data)
            with contextlib.suppress(SourceError):
                assert tree.stored.values(item).keys() == tree.fields.keys()


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    members = {"n1/a.JPEG": b"x" * 600, "n2/b.JPEG": b"y"}
    return [
        b"\0" + tar_of(members),
        b"\xff" + tar_of(members),
        b"\xff" + tar_of({"n1.tar": tar_of({"a.JPEG": b"x"}), "n2.tar": tar_of({"b.JPEG": b"y"})}),
        b"\0" + tar_of({"n1/" + "a" * 150: b"z"}),
        b"\0"
        + tar_of(
            {
                "1.jpg": b"x",
                "1.cls": b"1",
                "1.txt": b"t",
                "1.json": b"[1]",
                "1.mask.png": b"m",
                "2.cls": b"0",
                "2.png": b"y",
            }
        ),
    ]
