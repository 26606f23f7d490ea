"""XML annotations: boxes inside the image that are not empty, or an error."""

from __future__ import annotations

import os

from scripts.fuzz_python.scratch import folder
from stoker.sources.boxes import read_boxes

_FILE = folder() / "a.xml"
_PATH = os.fsencode(_FILE)


def one_input(data: bytes) -> None:
    """Read any bytes as the annotation of an image."""
    _FILE.write_bytes(data)
    for box in read_boxes(_PATH, b"n1", frozenset((b"n1", b"n2"))):
        assert 0.0 <= box.xmin < box.xmax <= 1.0
        assert 0.0 <= box.ymin < box.ymax <= 1.0


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    box = b"<bndbox><xmin>%d</xmin><ymin>20</ymin><xmax>30.5</xmax><ymax>1e2</ymax></bndbox>"
    item = b"<object><name>n1</name>" + box % 10 + b"</object><object><name>n2</name>" + box % 3 + b"</object>"
    size = b"<size><width>50</width><height>40</height></size>"
    annotation = b"<annotation>" + size + item + b"</annotation>"
    return [
        annotation,
        b'<?xml version="1.0" encoding="utf-8"?>' + annotation,
        b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + annotation,
    ]
