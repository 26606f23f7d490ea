"""Small trees, tars and annotations for the tests of sources."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from reference import pictures
from reference.png import END, chunk, header
from stoker.config import settings_as_options
from stoker.errors import SourceError
from stoker.sources import SourceOptions, list_source, read_listing, write_listing
from stoker.storage import location
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from stoker.sources import Source


write = write_files

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".webp")


def fill(root: Path, *paths: str) -> Path:
    """Files whose content tells their own name, so that a wrong one is noticed; images where they are called so."""
    return write_files(root, {path: content(path) for path in paths})


def content(path: str) -> bytes:
    name = path.rpartition("/")[2]
    return png(name) if name.lower().endswith(IMAGE_ENDINGS) else name.encode() * 3


def png(text: str, channels: int = 3) -> bytes:
    """An image of 8 x 8 pixels that repeat a text, stored without compression: the bytes depend on no library."""
    length = 8 * channels
    pixels = (text.encode() * 8 * length)[: 8 * length]
    rows = b"".join(b"\0" + pixels[start : start + length] for start in range(0, len(pixels), length))
    stored = struct.pack("<BHH", 1, len(rows), len(rows) ^ 0xFFFF) + rows  # the last block of a zlib stream
    data = b"\x78\x01" + stored + struct.pack(">I", zlib.adler32(rows))
    return header(8, 8, {1: 0, 3: 2}[channels], 8) + chunk(b"IDAT", data) + END


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


def picture(number: int, kind: str = "JPEG") -> bytes:
    """A small image of noise."""
    pixels = np.random.default_rng(number).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return pictures.encode(Image.fromarray(pixels), format=kind)


def write_lines(path: Path, lines: Iterable[object]) -> Path:
    write(path.parent, {path.name: "".join(f"{line}\n" for line in lines)})
    return path


def listing(source: object, **options: Any) -> Source:
    return list_source(str(source), SourceOptions(**options))


def split_sizes(tree: Source) -> dict[str, int]:
    return {split: len(rows) for split, rows in tree.splits.items()}


def boxes_of(tree: Source) -> dict[str, Any]:
    """The boxes of each image by its split and key, or what is wrong with them; None where it is not there."""
    boxes: dict[str, Any] = {}
    for split, rows in tree.splits.items():
        for item in tree.table.take(rows):
            try:
                image = tree.load(item, split)
            except FileNotFoundError:
                boxes[f"{split} {item.key}"] = None
            else:
                boxes[f"{split} {item.key}"] = image.annotation_error or list(image.boxes)
    return boxes


def others_than_of_shapes(tree: Source) -> list[str]:
    """Warnings, but for those of images that are smaller than their annotations say: few tests need large ones."""
    return [message for message in tree.warnings if "of other shapes" not in message]


def check_refused(source: object, match: str | None = None, **options: Any) -> str:
    """Check that a source is refused, and return what is said of it."""
    with pytest.raises(SourceError, match=match) as caught:
        listing(source, **options)
    return str(caught.value)


def refused(source: Path, **options: Any) -> str:
    """What the command line says of a source that it refuses."""
    with settings_as_options():
        return check_refused(source, **options)


def write_table(path: Path, rows: Sequence[dict[str, Any]] | Mapping[str, Any], **how: Any) -> Path:
    """Write a table as pandas does."""
    import pandas as pd  # noqa: PLC0415

    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame(rows)
    if path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, **{"sep": "\t" if path.suffix == ".tsv" else ","} | how)
    return path


def tar_bytes(members: Mapping[str, bytes | None], kind: int = tarfile.GNU_FORMAT) -> bytes:
    """A tar; a member of None is a folder."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            if data is None:
                member.type = tarfile.DIRTYPE
                tar.addfile(member)
            else:
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def tar_of(*paths: str) -> bytes:
    return tar_bytes({path: content(path) for path in paths})


def train_tar(classes: Mapping[str, list[str]]) -> bytes:
    """ImageNet's train tar: one tar for each class."""
    return tar_bytes({f"{name}.tar": tar_of(*files) for name, files in classes.items()})


def listed(tree: Source, split: str = "train") -> list[tuple[str, str | None]]:
    """File name and class of each item of a split, in order; what was loaded is what the name says."""
    items = []
    for row in tree.splits[split].tolist():
        item = tree.table[row]
        image = tree.load(item, split)
        assert image.data == content(item.key), item
        assert len(image.data) == item.size_bytes
        items.append((image.filename.decode(), tree.classes[item.label].decode() if item.label >= 0 else None))
    return items


def read_back(tree: Source, folder: Path) -> Source:
    """The source of a saved listing."""
    file = location(folder) / "listing"
    write_listing(file, tree, {"one": 1})
    listing = read_listing(file)
    assert listing is not None
    assert listing[0] == {"one": 1}
    return listing[1]
