"""TFRecord shards as TensorFlow's users write them, and the index files that DALI reads."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from benchmarks.rivals.work import Work

if TYPE_CHECKING:
    from collections.abc import Iterable

SHARDS, RAW_SHARDS = 8, 16


def example(**values: bytes | int) -> bytes:
    """Serialise a tf.train.Example; two underscores in a name stand for a slash."""
    features = {}
    for name, value in values.items():
        feature = tf.train.Feature()
        if isinstance(value, bytes):
            feature.bytes_list.value.append(value)
        else:
            feature.int64_list.value.append(value)
        features[name.replace("__", "/")] = feature
    serialised: bytes = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    return serialised


def write_shard(path: Path, records: Iterable[bytes]) -> None:
    """Write one shard and its index."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    lines, offset, data = [], 0, path.read_bytes()
    while offset < len(data):
        size = struct.unpack_from("<Q", data, offset)[0] + 16
        lines.append(f"{offset} {size}\n")
        offset += size
    path.with_suffix(".idx").write_text("".join(lines))


def prepare(work: Work) -> None:
    """Write the photographs in one random order, and the tensors in their own."""
    photos, pixels = work.photos(), np.load(work.raw_file, mmap_mode="r")
    for name, count, shards in (("photos", len(photos), SHARDS), ("raw", len(pixels), RAW_SHARDS)):
        folder = Path(work.path_of(name))
        folder.mkdir(parents=True, exist_ok=True)
        order: Any = np.random.default_rng(0).permutation(count) if name == "photos" else np.arange(count)
        for shard, part in enumerate(np.array_split(order, shards)):
            ids = [int(number) for number in part]
            if name == "photos":
                records = (example(image__encoded=Path(photos[i]).read_bytes(), image__class__label=i) for i in ids)
            else:
                records = (example(image=pixels[i].tobytes(), label=i) for i in ids)
            write_shard(folder / f"{shard:05d}-of-{shards:05d}.tfrecord", records)


if __name__ == "__main__":
    prepare(Work.from_json(sys.argv[1]))
