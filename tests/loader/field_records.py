"""Records with fields, written with the slow twins alone, and what their fields must become."""

from __future__ import annotations

import functools
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from reference import example, pictures, tfrecord
from stoker import fields
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.types import Features, Field

RECORDS = 24
TEXTS = ("", "Kreuzotter", "caf\u00e9 \U0001f438", "line\nend\0")
FIELDS: dict[str, Field] = {
    "caption": fields.Text(),
    "blob": fields.Bytes(),
    "meta": fields.Json(),
    "number": fields.Int(),
    "weight": fields.Float(),
    "other": fields.Label(),
    "tags": fields.Labels(),
    "vector": fields.Array("float32", (2, 3)),
    "track": fields.Array("float32", (None, 2)),
    "depth": fields.Array("uint16", (2, 2)),
    "path": fields.Array("int16", (None,)),
    "flags": fields.Array("bool", (3,)),
    "scalar": fields.Array("int64", ()),
    "mask": fields.Mask(),
    "parts": fields.Mask(bits=16),
    "right": fields.Image(),
}
PLANES = ("mask", "parts", "right")
COLUMNS = [name for name in FIELDS if name not in PLANES]


def size(i: int) -> tuple[int, int]:
    """Width and height of the pictures of a record: down to one pixel, up to three hundred."""
    return (1 + 67 * i % 300, 1 + 131 * i % 300) if i else (1, 1)


@functools.cache
def mask(i: int, bits: int = 8) -> np.ndarray:
    width, height = size(i)
    rng = np.random.default_rng(1000 * bits + i)
    return rng.integers(0, 2**bits, (height, width)).astype(np.uint8 if bits == 8 else np.uint16)


@functools.cache
def right(i: int) -> bytes:
    """The extra image: of another format in every third record."""
    photo = Image.fromarray(pictures.pixels(*size(i), 500 + i))
    return pictures.encode(photo, format="PNG") if i % 3 == 0 else pictures.encode(photo, quality=90)


def png(pixels: np.ndarray) -> bytes:
    return pictures.encode(Image.fromarray(pixels), format="PNG")


def value(name: str, i: int) -> Any:
    """What a batch must have of a record: numbers as arrays."""
    rng = np.random.default_rng(i)
    values: dict[str, Any] = {
        "caption": TEXTS[i % 4] * (i % 5),
        "blob": bytes(rng.integers(0, 256, i % 7, np.uint8)),
        "meta": {"i": i, "list": [1.5, None, "\u00e9"]},
        "number": np.int64((-1) ** i * (2**62 + i)),
        "weight": np.float32(i / 3),
        "other": np.int64(i - 1),
        "tags": np.arange(i % 4),
        "vector": rng.normal(size=(2, 3)).astype(np.float32),
        "track": rng.normal(size=(i % 5, 2)).astype(np.float32),
        "depth": rng.integers(0, 2**16, (2, 2)).astype(np.uint16),
        "path": rng.integers(-(2**15), 2**15, 3 * i % 8).astype(np.int16),
        "flags": rng.integers(0, 2, 3).astype(np.bool_),
        "scalar": np.int64(-i),
    }
    return values[name]


@functools.cache
def features(i: int) -> Features:
    """What a record holds, as docs/reference/format.md says."""
    width, height = size(i)
    record: Features = {
        "image/encoded": ("bytes", [pictures.jpeg(width, height, i)]),
        "image/class/label": ("int64", [i]),
        "image/filename": ("bytes", [b"picture-%d.JPEG" % i]),
        "caption": ("bytes", [value("caption", i).encode()]),
        "blob": ("bytes", [value("blob", i)]),
        "meta": ("bytes", [json.dumps(value("meta", i)).encode()]),
        "mask/encoded": ("bytes", [png(mask(i))]),
        "parts/encoded": ("bytes", [png(mask(i, 16))]),
        "right/encoded": ("bytes", [right(i)]),
    }
    for name in ("number", "other", "tags", "scalar"):
        record[name] = ("int64", np.ravel(value(name, i)).tolist())
    for name in ("weight", "vector", "track"):
        record[name] = ("float", np.ravel(value(name, i)).tolist())
    for name in ("depth", "path", "flags"):
        stored = value(name, i)
        record[name] = ("bytes", [stored.astype(stored.dtype.newbyteorder("<")).tobytes()])
    return record


def rows(column: Any, count: int) -> list[Any]:
    """What each sample of a batch has of a field."""
    if isinstance(column, fields.Ragged):
        return [column.values[begin:end] for begin, end in pairwise(column.offsets)]
    if isinstance(column, fields.Padded):
        return [column.values[row, :number] for row, number in enumerate(column.counts)]
    assert len(column) == count
    return list(column)


def write(folder: Path, changes: dict[int, Any] | None = None, records: int = RECORDS) -> Path:
    """Write one shard; ``changes`` replaces features of some records, and drops those of kind none."""
    frames = []
    for i in range(records):
        record = {**features(i), **(changes or {}).get(i, {})}
        frames.append(tfrecord.frame(example.write({key: held for key, held in record.items() if held[0] != "none"})))
    return write_files(folder, {"train-00000-of-00001": b"".join(frames)}) / "train-00000-of-00001"
