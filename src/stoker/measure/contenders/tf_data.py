"""A tuned tf.data pipeline: parallel interleave, fused decode and crop with the fast DCT, private thread pool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.feed import open_dataset
from stoker.measure.task import RATIO, RESIZE, SCALE, SIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.measure.task import Task

_SHUFFLE_WINDOW = 1000
_READ_BUFFER_BYTES = 8 << 20
_ATTEMPTS = 10


def _random_window(shape: Any) -> Any:
    """The crop that torchvision's RandomResizedCrop draws: first of ten attempts that fits."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    area = height * width * tf.random.uniform([_ATTEMPTS], *SCALE)
    aspect = tf.exp(tf.random.uniform([_ATTEMPTS], *(tf.math.log(tf.constant(r)) for r in RATIO)))
    widths, heights = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (widths >= 1) & (heights >= 1) & (widths <= width) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    crop_width = tf.where(fits[first], widths[first], tf.minimum(width, tf.round(height * RATIO[1])))
    crop_height = tf.where(fits[first], heights[first], tf.minimum(height, tf.round(width / RATIO[0])))
    place = tf.random.uniform([2])
    top = tf.floor(place[0] * (height - crop_height + 1))
    left = tf.floor(place[1] * (width - crop_width + 1))
    return tf.cast(tf.stack([top, left, crop_height, crop_width]), tf.int32)


def _center_window(shape: Any) -> Any:
    """The square of the source that becomes the centre after the resize."""
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    side = tf.cast(tf.round(short * (SIDE / RESIZE)), tf.int32)
    return tf.stack([(shape[0] - side) // 2, (shape[1] - side) // 2, side, side])


def batches(task: Task) -> Iterator[int]:
    """Run the pipeline without end."""
    dataset = open_dataset(task.dataset, task.split)
    keys = {
        dataset.schema.image_key: tf.io.FixedLenFeature([], tf.string),
        dataset.schema.label_key: tf.io.FixedLenFeature([], tf.int64),
    }
    training = task.view == "train"

    def decode(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, keys)
        encoded = parsed[dataset.schema.image_key]
        shape = tf.image.extract_jpeg_shape(encoded)
        window = _random_window(shape) if training else _center_window(shape)
        pixels = tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_FAST")
        resized = tf.cast(tf.image.resize(pixels, [SIDE, SIDE], "bilinear"), tf.uint8)
        if training:
            resized = tf.image.random_flip_left_right(resized)
        resized.set_shape([SIDE, SIDE, 3])
        return resized, parsed[dataset.schema.label_key]

    for _, labels in _pipeline([str(s.path) for s in dataset.shards], decode, task):
        yield int(labels.shape[0])


def _pipeline(paths: list[str], decode: Any, task: Task) -> Any:
    shards = tf.data.Dataset.from_tensor_slices(paths)
    records = shards.interleave(
        lambda path: tf.data.TFRecordDataset(path, buffer_size=_READ_BUFFER_BYTES),
        cycle_length=min(8, len(paths)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )
    if task.view == "train":
        records = records.shuffle(_SHUFFLE_WINDOW)
    decoded = records.repeat().map(decode, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    options = tf.data.Options()
    options.threading.private_threadpool_size = task.threads
    options.threading.max_intra_op_parallelism = 1
    options.deterministic = False
    return decoded.batch(task.batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE).with_options(options)
