"""Lists of boxes: the CSV of the ImageNet scripts, Tiny ImageNet's, and a tar of XML files; every box is inside."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import numpy as np

from scripts.fuzz_python.scratch import folder
from scripts.fuzz_python.seed_data import tar_of
from stoker.sources import Item, ItemTableBuilder
from stoker.sources.boxes import BOX, read_box_csv, read_box_tar, read_tiny_boxes

if TYPE_CHECKING:
    from stoker.sources.boxes import BoxTable

_FOLDER = folder()
_NAMES = frozenset((b"n1", b"n2"))


def _check(listed: BoxTable | None) -> None:
    if listed is None:
        return
    images = ItemTableBuilder()
    for name in (b"a.JPEG", b"n1/a.JPEG", b"", b"n1_0.JPEG"):
        images.add(Item(name, 0, 0))
    table = images.finish()
    for boxes, _ in listed.columns(table, np.arange(len(table)), [b"n1", b"n2"]):
        for xmin, ymin, xmax, ymax in np.frombuffer(boxes, BOX)["corners"].tolist():
            assert 0.0 <= xmin < xmax <= 1.0
            assert 0.0 <= ymin < ymax <= 1.0


def one_input(data: bytes) -> None:
    """Read any bytes as each of the three; the first byte says as which."""
    path = _FOLDER / "boxes"
    kind = data[0] % 3 if data else 0
    if kind == 2:
        path = _FOLDER / "train" / "n1" / "n1_boxes.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data[1:])
    if kind == 0:
        _check(read_box_csv(path)[0])
    elif kind == 1:
        _check(read_box_tar(path, None))
    else:
        _check(read_tiny_boxes(_FOLDER, _NAMES, []))


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    csv = b"n1_0.JPEG,0.1,0.2,0.5,0.6\nn1_1.JPEG,0.9,0.9,0.1,0.1\n"
    xml = b"<annotation><size><width>50</width><height>40</height></size><object><name>n1</name><bndbox><xmin>1</xmin>"
    xml += b"<ymin>2</ymin><xmax>30</xmax><ymax>9</ymax></bndbox></object></annotation>"
    tiny = b"n1_0.JPEG\t0\t1\t40\t50\nn1_1.JPEG\t3\t3\t3\t3\n"
    archive = tar_of({"n1/n1_0.xml": xml, "n1/a": xml})
    return [b"\0" + csv, b"\1" + archive, b"\1" + gzip.compress(archive), b"\2" + tiny]
