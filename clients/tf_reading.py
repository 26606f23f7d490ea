"""The feature maps of four of the original readers, and reading records with them, in both ways of TensorFlow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

tf1 = tf.compat.v1

CORNERS = ("xmin", "ymin", "xmax", "ymax")

GOOGLE_MAP = {
    "image/encoded": tf1.FixedLenFeature([], dtype=tf.string, default_value=""),
    "image/class/label": tf1.FixedLenFeature([1], dtype=tf.int64, default_value=-1),
    "image/class/text": tf1.FixedLenFeature([], dtype=tf.string, default_value=""),
    **{f"image/object/bbox/{corner}": tf1.VarLenFeature(dtype=tf.float32) for corner in CORNERS},
}
GOOGLE_REST = {
    "image/height": tf1.FixedLenFeature([], tf.int64),
    "image/width": tf1.FixedLenFeature([], tf.int64),
    "image/channels": tf1.FixedLenFeature([], tf.int64),
    "image/colorspace": tf1.FixedLenFeature([], tf.string),
    "image/format": tf1.FixedLenFeature([], tf.string),
    "image/filename": tf1.FixedLenFeature([], tf.string),
    "image/class/synset": tf1.FixedLenFeature([], tf.string),
    "image/object/bbox/label": tf1.VarLenFeature(tf.int64),
}
NVIDIA_MAP = {
    key: feature
    for key, feature in (GOOGLE_MAP | GOOGLE_REST).items()
    if "bbox" not in key and key != "image/class/synset"
}
HOPS_MAP = {
    "height": tf1.FixedLenFeature([], tf.int64),
    "width": tf1.FixedLenFeature([], tf.int64),
    "channel": tf1.FixedLenFeature([], tf.int64),
    "label": tf1.FixedLenFeature([], tf.int64),
    "label_one_hot": tf1.FixedLenFeature([], tf.string),
    "image_raw": tf1.FixedLenFeature([], tf.string),
}
DOGS_MAP = {
    "image": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
}


def in_eager_mode(shards: list[str], features: Mapping[str, Any], compression: str = "") -> Iterator[dict[str, Any]]:
    """Yield every record as TensorFlow 2 reads it."""
    dataset = tf.data.TFRecordDataset(shards, compression_type=compression)
    for record in dataset.map(lambda example: tf.io.parse_single_example(example, features)):
        yield {key: _dense(value) for key, value in record.items()}


def in_graph_mode(shards: list[str], features: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every record as a program for TensorFlow 1 reads it: a graph, an iterator, a session."""
    with tf.Graph().as_default(), tf1.Session() as session:
        dataset = tf1.data.TFRecordDataset(shards).map(lambda example: tf1.parse_single_example(example, features))
        record = tf1.data.make_one_shot_iterator(dataset).get_next()
        while True:
            try:
                values = session.run(record)
            except tf.errors.OutOfRangeError:
                return
            yield {key: _dense(value) for key, value in values.items()}


def _dense(value: Any) -> Any:
    if isinstance(value, (tf.SparseTensor, tf1.SparseTensorValue)):
        value = value.values
    value = value.numpy() if isinstance(value, tf.Tensor) else value
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object else value


def decode(data: bytes) -> tf.Tensor:
    """Return the pixels of a JPEG or PNG; TensorFlow's own choice of transform is the fast and rough one."""
    return tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")


def matching_shards(pattern: Path, count: int) -> list[str]:
    """Return what a glob of an original reader finds: as many files as there are shards, and nothing else."""
    paths = sorted(tf.io.gfile.glob(str(pattern)))
    assert len(paths) == count, f"{pattern} finds {paths}, not {count} shards"
    return paths
