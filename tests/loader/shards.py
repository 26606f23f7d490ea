"""Small shards for the tests of the read path, written with the slow twins alone."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from reference import example, pictures, tfrecord

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

KINDS = [
    {"subsampling": 0},
    {"subsampling": 2},
    {"subsampling": 1, "progressive": True},
    {"mode": "L"},
    {"mode": "CMYK"},
    {"subsampling": 2, "restart_marker_blocks": 2},
]


@functools.cache
def image(i: int) -> bytes:
    width, height = 40 + 13 * i % 70, 30 + 29 * i % 60
    return pictures.jpeg(width, height, i, **KINDS[i % len(KINDS)])


def payload(i: int, encoded: bytes | None = None) -> bytes:
    features = {
        "image/encoded": ("bytes", [image(i) if encoded is None else encoded]),
        "image/class/label": ("int64", [i + 1]),
        "image/filename": ("bytes", [b"picture-%d.JPEG" % i]),
    }
    return example.write(features)


def tensor(i: int, pixels: np.ndarray, order: str = "HWC") -> example.Features:
    """A record of the layout dlbs: pixels with their shape and order beside them."""
    axes = pixels if order == "HWC" else pixels.transpose(2, 0, 1)
    return {
        "image/height": ("int64", [pixels.shape[0]]),
        "image/width": ("int64", [pixels.shape[1]]),
        "image/channels": ("int64", [3]),
        "image/order": ("bytes", [order.encode()]),
        "image/format": ("bytes", [b"tensor"]),
        "image/class/label": ("int64", [i]),
        "image/filename": ("bytes", [b"%d.JPEG" % i]),
        "image/encoded": ("bytes", [axes.tobytes()]),
    }


def write_shards(directory: Path, records: int, shards: int, bad: dict[int, bytes] | None = None) -> list[Path]:
    """Write records 0, 1, ... to consecutive shards; ``bad`` replaces the images of some."""
    paths = []
    for shard in range(shards):
        numbers = range(records * shard // shards, records * (shard + 1) // shards)
        path = directory / f"train-{shard:05d}-of-{shards:05d}"
        path.write_bytes(b"".join(tfrecord.frame(payload(i, (bad or {}).get(i))) for i in numbers))
        paths.append(path)
    return paths


def boxes(i: int) -> list[tuple[float, float, float, float]]:
    """Annotated objects of picture ``i``: none, or up to three, as (xmin, ymin, xmax, ymax)."""
    return [(0.1 * n, 0.05 * (i % 5), 0.5 + 0.1 * n, 0.6 + 0.07 * (i % 4)) for n in range(i % 4)]


def write_wrong_boxes(path: Path) -> None:
    """Write one shard of one picture whose boxes are words."""
    features: dict[str, tuple[str, list[object]]] = {
        "image/encoded": ("bytes", [image(0)]),
        "image/class/label": ("int64", [1]),
        "image/filename": ("bytes", [b"words.JPEG"]),
    }
    for name in ("xmin", "ymin", "xmax", "ymax"):
        features[f"image/object/bbox/{name}"] = ("bytes", [b"left"])
    path.write_bytes(tfrecord.frame(example.write(features)))


def write_annotated(path: Path, records: int) -> None:
    """Write one shard of the pictures with their objects."""
    frames = []
    for i in range(records):
        features = {
            "image/encoded": ("bytes", [image(i)]),
            "image/class/label": ("int64", [i + 1]),
            "image/filename": ("bytes", [b"picture-%d.JPEG" % i]),
        }
        for side, name in enumerate(("xmin", "ymin", "xmax", "ymax")):
            features[f"image/object/bbox/{name}"] = ("float", [box[side] for box in boxes(i)])
        frames.append(tfrecord.frame(example.write(features)))
    path.write_bytes(b"".join(frames))
