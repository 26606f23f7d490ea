"""A saved listing: any bytes are no listing, or one whose every row can be read; with a sound checksum or without."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np

from scripts.fuzz_python.scratch import folder
from stoker import _native
from stoker.sources import Annotations, ItemTableBuilder, Source, read_listing, write_listing
from stoker.sources.boxes import BOX, MappedBoxes, TableBoxes
from stoker.sources.items import GrowingBlobs, Item
from stoker.sources.tar_format import MemberReader
from stoker.storage import location

_FILE = location(folder()) / "listing"
_MARK = b"\0\0JSON\0\0"  # between the columns and the rest


def one_input(data: bytes) -> None:
    """Read any bytes; unless the first one is 0, they get the length and the checksum that they need."""
    content = data[1:]
    if data[:1] > b"\0":
        columns, _, text = content.partition(_MARK)
        content = columns + text + struct.pack("<QI", len(text), _native.crc32c(columns + text))
    _FILE.write_atomically(content)
    listing = read_listing(_FILE)
    if listing is None:
        return
    tree = listing[1]
    for split, rows in tree.splits.items():
        for row in rows.tolist():
            item = tree.table[row]
            tree.stored.locate(item)
            tree.read_boxes(item, split)
    tree.fingerprint()


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    builder = ItemTableBuilder()
    boxes, damaged = GrowingBlobs(), GrowingBlobs()
    for number in range(3):
        builder.add(Item(b"a/%d.JPEG" % number, number % 2, 7 * number, number, -1, {"archive": 0, "offset": number}))
        boxes.append(np.array([((0.0, 0.1, 0.5, 0.6), number)], BOX).tobytes() * number)
        damaged.append(b"")
    table = builder.finish()
    table = replace(table, columns={**table.columns, "boxes": boxes.finish(), "damaged": damaged.finish()})
    rows = {"train": table.numbers[:2], "test": table.numbers[2:]}
    boxes_of: dict[str, Annotations] = {"train": TableBoxes("boxes.csv"), "test": MappedBoxes(b"/photos/Data")}
    reader = MemberReader(b"/photos", (b"/t.tar",) * 2, {})
    tree = Source("/photos", (b"a", b"b"), (b"", b""), table, rows, reader, boxes=boxes_of)
    write_listing(_FILE, tree, {"per_record": None})
    content = _FILE.read_bytes()
    length = struct.unpack("<QI", content[-12:])[0]
    return [b"\0" + content, b"\1" + content[: -12 - length] + _MARK + content[-12 - length : -12]]
