"""What tells the datasets of a cache apart: changed files must never be served from old bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stoker.feed.mixing import parts_of
from stoker.records.index import FRAME_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker.feed.dataset import Dataset
    from stoker.feed.mixing import Mix

KEY_DIGITS = 32


def sample_sizes(dataset: Dataset | Mix) -> NDArray[np.uint64]:
    """Return the bytes of each sample as its source gives them, uint64 (N,)."""
    return np.concatenate([_sizes(part) for part in parts_of(dataset)])


def cache_key(dataset: Dataset | Mix, sizes: NDArray[np.uint64]) -> str:
    """Return 32 hex digits that stand for the samples of a dataset.

    They depend on the size of every sample and,

    - for a dataset with a manifest, on its ``dataset_id``, which stands for every byte of it, and the split;
    - for other datasets in stores, on the URL, the size and the etag of each shard, and on the listing of images;
    - for other shards, and for images in archives, on path, size and time of change of each file;
    - for images that are files, on the listing (names, sizes, labels) and on path and time of change of each folder.

    Raises:
        OSError: A file is not there any more.
    """
    digest = hashlib.sha256()
    for part in parts_of(dataset):
        for told in _state(part):
            digest.update(b"%d\0%b" % (len(told), told))
    digest.update(np.ascontiguousarray(sizes, "<u8").data)
    return digest.hexdigest()[:KEY_DIGITS]


def _sizes(dataset: Dataset) -> NDArray[np.uint64]:
    if dataset._files is not None:
        return np.ascontiguousarray(dataset._files.table.sizes, np.uint64)
    extents = [shard.extents[:, 1] for shard in dataset.shards]
    return np.concatenate([np.empty(0, np.uint64), *extents]) - np.uint64(FRAME_BYTES)


def _state(dataset: Dataset) -> Iterator[bytes]:
    yield dataset.identity.encode("utf-8", "surrogateescape")
    if dataset.manifest is not None:
        return
    if dataset.remote is not None:
        yield dataset.path.encode("utf-8", "surrogateescape")
        yield from (f"{shard.path} {shard.size_bytes} {shard.stamp}".encode() for shard in dataset.shards)
        return
    if dataset._files is None:
        places = [shard.path for shard in dataset.shards if isinstance(shard.path, Path)]
    else:
        yield os.fsencode(Path(dataset.path).absolute())
        places = _places(dataset)
    for place in places:
        status = place.stat()
        yield b"%b\0%d\0%d" % (os.fsencode(place.absolute()), status.st_size, status.st_mtime_ns)


def _places(dataset: Dataset) -> list[Path]:
    """Return the archives that hold images, and the folders of those that are files of their own."""
    found = set()
    for number in range(len(dataset)):
        path, _, offset = dataset.records.where(number)
        found.add(path if offset else os.path.dirname(path))  # noqa: PTH120 - a million of them
    return [Path(path) for path in sorted(found)]
