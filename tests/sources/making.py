"""Small trees, tars and annotations for the tests of sources."""

from __future__ import annotations

import hashlib
import io
import struct
import tarfile
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stoker.sources import SourceTree


def fill(root: Path, *paths: str) -> Path:
    """Files whose content is their own name, so that a wrong one is noticed."""
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content(path))
    return root


def content(path: str) -> bytes:
    """A PNG of 8 by 8 pixels that follow from the file name, and that holds it; the same bytes with any zlib."""
    name = path.rpartition("/")[2].encode()
    pixels = (hashlib.sha256(name).digest() * 6)[: 8 * 24]
    rows = b"".join(b"\0" + pixels[row * 24 : row * 24 + 24] for row in range(8))
    stored = (
        b"\x78\x01\x01"
        + struct.pack("<HH", len(rows), 0xFFFF ^ len(rows))
        + rows
        + zlib.adler32(rows).to_bytes(4, "big")
    )
    header = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", header), (b"tEXt", name), (b"IDAT", stored), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def name_in(data: bytes) -> str:
    """The file name that `content` has put into an image."""
    at = data.index(b"tEXt")
    return data[at + 4 : at + 4 + int.from_bytes(data[at - 4 : at], "big")].decode()


def xml(
    *objects: tuple[str, str, str, str, str],
    size: tuple[str, str] = ("200", "100"),
    filename: str = "x",
    folder: str = "",
) -> str:
    items = "".join(
        f"<object><name>{name}</name><bndbox><xmin>{x0}</xmin><ymin>{y0}</ymin><xmax>{x1}</xmax><ymax>{y1}</ymax>"
        "</bndbox></object>"
        for name, x0, y0, x1, y1 in objects
    )
    head = f"<folder>{folder}</folder><filename>{filename}</filename>"
    return f"<annotation>{head}<size><width>{size[0]}</width><height>{size[1]}</height></size>{items}</annotation>"


def tar_bytes(members: Mapping[str, bytes | None], kind: int = tarfile.GNU_FORMAT) -> bytes:
    """A tar; a member of None is a folder."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=kind) as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            if data is None:
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
            else:
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return made.getvalue()


def tar_of(*paths: str) -> bytes:
    return tar_bytes({path: content(path) for path in paths})


def train_tar(classes: Mapping[str, list[str]]) -> bytes:
    """ImageNet's train tar: one tar for each class."""
    return tar_bytes({f"{name}.tar": tar_of(*files) for name, files in classes.items()})


def listed(tree: SourceTree, split: str = "train") -> list[tuple[str, str | None]]:
    """File name and class of each item of a split, in order; what was loaded is what the name says."""
    found = []
    for row in tree.splits[split].tolist():
        item = tree.table[row]
        image = tree.load(item, split)
        assert image.data == content(item.key), item
        assert len(image.data) == item.size_bytes
        found.append((image.filename.decode(), tree.classes[item.label].decode() if item.label >= 0 else None))
    return found
