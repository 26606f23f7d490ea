"""Small shards for the tests of the read path, written with the slow twins alone."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from reference import example, pictures, tfrecord
from stoker import _native

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    import stoker
    from stoker.loader.caches import MemoryCache, NodeCache

KINDS = [
    {"subsampling": 0},
    {"subsampling": 2},
    {"subsampling": 1, "progressive": True},
    {"mode": "L"},
    {"mode": "CMYK"},
    {"subsampling": 2, "restart_marker_blocks": 2},
]
SIDES = ("xmin", "ymin", "xmax", "ymax")


@functools.cache
def image(i: int) -> bytes:
    width, height = 40 + 13 * i % 70, 30 + 29 * i % 60
    return pictures.jpeg(width, height, i, **KINDS[i % len(KINDS)])


def features(i: int, encoded: bytes | None = None) -> example.Features:
    return {
        "image/encoded": ("bytes", [image(i) if encoded is None else encoded]),
        "image/class/label": ("int64", [i + 1]),
        "image/filename": ("bytes", [b"picture-%d.JPEG" % i]),
    }


def payload(i: int, encoded: bytes | None = None) -> bytes:
    return example.write(features(i, encoded))


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


def behind(cache: MemoryCache | NodeCache, dataset: stoker.Dataset) -> _native.CachedSource:
    """The samples of a dataset as they are read through a cache."""
    source = cache.source(dataset, dataset.reader.source(check=True))
    assert isinstance(source, _native.CachedSource)
    return source


def boxes(i: int) -> list[tuple[float, float, float, float]]:
    """Annotated objects of picture ``i``: none, or up to three, as (xmin, ymin, xmax, ymax)."""
    return [(0.1 * n, 0.05 * (i % 5), 0.5 + 0.1 * n, 0.6 + 0.07 * (i % 4)) for n in range(i % 4)]


def write_wrong_boxes(path: Path) -> Path:
    """Write one shard of one picture whose boxes are words."""
    words = {f"image/object/bbox/{side}": ("bytes", [b"left"]) for side in SIDES}
    path.write_bytes(tfrecord.frame(example.write(features(0) | words)))
    return path


def write_annotated(path: Path, records: int) -> Path:
    """Write one shard of the pictures with their objects."""
    frames = []
    for i in range(records):
        sides = {f"image/object/bbox/{side}": ("float", [box[at] for box in boxes(i)]) for at, side in enumerate(SIDES)}
        frames.append(tfrecord.frame(example.write(features(i) | sides)))
    path.write_bytes(b"".join(frames))
    return path
