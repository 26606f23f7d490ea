"""The pipelines of the ladder in tf.data.

Every case decodes whole images, JPEGs with ``decode_jpeg``, and resizes without antialiasing, as the originals do. A
tuned pipeline is measured by ``make bench-rivals``.
"""

from __future__ import annotations

import gzip
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.inspect.bench import RAW_SIDE, SEED
from stoker.inspect.measuring import RESIZE, SIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.inspect.bench import BenchImages, BenchSpec, Case

_ATTEMPTS = 10
_SCALE, _RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
_BATCHES_AHEAD = 2
_WINDOW = 1000
_FILE_WINDOW = 64
"""Decoded images in the shuffle buffer behind a file cache: few, or the buffer would be a cache in memory."""
_SHARDS_AT_A_TIME = 8


def batches(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Run one case's pipeline without end; yield the images of each batch."""
    for pixels in pipeline(spec, images, case.key):
        yield int(pixels.shape[0])


def pipeline(spec: BenchSpec, images: BenchImages, key: str) -> tf.data.Dataset:
    """Return one case's pipeline: batches of pixels, uint8 (B, 224, 224, 3), without end."""
    transform = load_transform(spec.transform)
    parallel = {} if key == "serial" else {"num_parallel_calls": spec.threads}

    decode = partial(tf.io.decode_jpeg, channels=3)
    if images.formats.keys() != {"jpeg"}:
        decode = partial(tf.io.decode_image, channels=3, expand_animations=False)

    def decoded(path: Any) -> Any:
        return decode(tf.io.read_file(path))

    def shuffled(samples: Any, window: int = _WINDOW) -> Any:
        return samples.shuffle(window, SEED) if spec.is_shuffled else samples

    if key in ("serial", "parallel", "prefetch"):
        paths = shuffled(tf.data.Dataset.from_tensor_slices(images.files()), len(images.numbers))
        elements = paths.repeat().map(lambda path: transform(decoded(path)), **parallel)
    elif key in ("cache-memory", "cache-file"):
        in_file = key == "cache-file"
        images.path_of(key).mkdir(exist_ok=True)
        pixels = tf.data.Dataset.from_tensor_slices(images.files()).map(decoded, **parallel)
        pixels = pixels.cache(str(images.path_of(key) / "images") if in_file else "")
        elements = shuffled(pixels, _FILE_WINDOW if in_file else _WINDOW).repeat().map(transform, **parallel)
    else:
        records = shuffled(_records(images, key, parallel)).repeat()
        load = _raw_pixels if key == "raw" else lambda record: decode(_feature(record, "image/encoded"))
        elements = records.map(lambda record: transform(load(record)), **parallel)
    batched = elements.batch(spec.batch_size, drop_remainder=True)
    if key not in ("serial", "parallel"):
        batched = batched.prefetch(_BATCHES_AHEAD)
    # TensorFlow would add steps by itself that the case does not have.
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1 if key == "serial" else spec.threads
    options.threading.max_intra_op_parallelism = 1
    options.experimental_optimization.map_parallelization = False
    options.experimental_optimization.inject_prefetch = False
    return batched.with_options(options)


def load_transform(transform: str) -> Callable[[Any], Any]:
    """Return a function of uint8 pixels (H, W, 3) to (224, 224, 3)."""
    return {"train": _random_crop, "eval": _center}[transform]


def _records(images: BenchImages, key: str, parallel: dict[str, int]) -> Any:
    folder = images.path_of("raw" if key == "raw" else "plain")
    shards = sorted(str(path) for path in folder.glob("*.tfrecord"))
    if key == "tfrecord":
        return tf.data.TFRecordDataset(shards)
    if key == "tfrecord-gzip":
        return tf.data.TFRecordDataset(_compressed(shards, images.path_of(key)), "GZIP")
    files = tf.data.Dataset.from_tensor_slices(shards)
    return files.interleave(tf.data.TFRecordDataset, cycle_length=min(_SHARDS_AT_A_TIME, len(shards)), **parallel)


def _compressed(shards: list[str], folder: Path) -> list[str]:
    folder.mkdir(exist_ok=True)
    compressed = [folder / Path(shard).name for shard in shards]
    for shard, path in zip(shards, compressed, strict=True):
        path.write_bytes(gzip.compress(Path(shard).read_bytes()))
    return [str(path) for path in compressed]


def _raw_pixels(record: Any) -> Any:
    return tf.reshape(tf.io.decode_raw(_feature(record, "image_raw"), tf.uint8), [RAW_SIDE, RAW_SIDE, 3])


def _feature(record: Any, name: str) -> Any:
    return tf.io.parse_single_example(record, {name: tf.io.FixedLenFeature([], tf.string)})[name]


def _random_crop(image: Any) -> Any:
    top, left, height, width = tf.unstack(_random_window(tf.shape(image)))
    pixels = _resized(tf.slice(image, [top, left, 0], [height, width, 3]))
    return tf.image.random_flip_left_right(pixels)


def _random_window(shape: Any) -> Any:
    """The crop that torchvision's RandomResizedCrop draws: the first of ten attempts that fits, or all."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    area = height * width * tf.random.uniform([_ATTEMPTS], *_SCALE)
    aspect = tf.exp(tf.random.uniform([_ATTEMPTS], math.log(_RATIO[0]), math.log(_RATIO[1])))
    widths, heights = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (widths >= 1) & (heights >= 1) & (widths <= width) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    w, h = tf.where(fits[first], widths[first], width), tf.where(fits[first], heights[first], height)
    corner = tf.floor(tf.random.uniform([2]) * tf.stack([height - h + 1, width - w + 1]))
    return tf.cast(tf.concat([corner, [h, w]], 0), tf.int32)


def _center(image: Any) -> Any:
    """What a resize to 256 and the centre 224 see, as one crop."""
    shape = tf.shape(image)
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    side = tf.maximum(1, tf.cast(tf.round(short * (SIDE / RESIZE)), tf.int32))
    top, left = tf.unstack((shape[:2] - side) // 2)
    return _resized(tf.slice(image, [top, left, 0], tf.stack([side, side, 3])))


def _resized(image: Any) -> Any:
    return tf.ensure_shape(tf.cast(tf.image.resize(image, [SIDE, SIDE], "bilinear"), tf.uint8), [SIDE, SIDE, 3])
