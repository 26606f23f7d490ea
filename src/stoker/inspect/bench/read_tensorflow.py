"""The ladder in tf.data, as the tutorials that Stoker started from climb it: one step more in each case.

Every case decodes whole JPEGs with ``decode_jpeg`` and resizes without antialiasing, as the originals do. A tuned
pipeline is measured by ``make bench-rivals``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.inspect.bench.cases import RATIO, RAW_SIDE, RESIZE, SCALE, SEED, SIDE
from stoker.inspect.bench.images import ImageList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.inspect.bench.cases import Task

_ATTEMPTS = 10
_BATCHES_AHEAD = 2
_WINDOW = 1000
_FILE_WINDOW = 64
"""Decoded images in the shuffle buffer behind a file cache: few, or the buffer would be a cache in memory."""
_SHARDS_AT_A_TIME = 8
_SIDES = ("ymin", "xmin", "ymax", "xmax")


def batches(task: Task, form: str) -> Iterator[int]:
    """Run one case's pipeline without end; yield the images of each batch."""
    for pixels in pipeline(task, form):
        yield int(pixels.shape[0])


def pipeline(task: Task, form: str) -> tf.data.Dataset:
    """Return one case's pipeline: batches of pixels, uint8 (B, 224, 224, 3), without end."""
    is_serial = form == "serial"
    parallel = {} if is_serial else {"num_parallel_calls": task.threads}
    if form in ("serial", "parallel", "prefetch"):
        images = _loose(task, parallel)
    elif form.startswith("cache"):
        images = _cached(task, form, parallel)
    elif form == "raw":
        images = _raw(task, parallel)
    else:
        images = _records(task, form, parallel)
    if task.transform == "objects":
        images = images.unbatch()
    batched = images.batch(task.batch_size, drop_remainder=True)
    if form not in ("serial", "parallel"):
        batched = batched.prefetch(_BATCHES_AHEAD)
    # TensorFlow would add steps by itself that the case does not have.
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1 if is_serial else task.threads
    options.threading.max_intra_op_parallelism = 1
    options.experimental_optimization.map_parallelization = False
    options.experimental_optimization.inject_prefetch = False
    return batched.with_options(options)


def load_transform(transform: str) -> Callable[[Any, Any], Any]:
    """Return a function of (pixels uint8 (H, W, 3), corners float32 (N, 4)) to uint8 pixels.

    These are (224, 224, 3), or with ``transform="objects"`` (N, 224, 224, 3).
    """
    return {"train": _random_crop, "eval": _center, "objects": _objects}[transform]


def _loose(task: Task, parallel: dict[str, int]) -> Any:
    transform = load_transform(task.transform)
    return _paths(task).repeat().map(lambda *image: transform(*_decoded(*image)), **parallel)


def _cached(task: Task, form: str, parallel: dict[str, int]) -> Any:
    in_file = form == "cache-file"
    place = task.place(form)
    if in_file:
        place.mkdir(exist_ok=True)
    decoded = _paths(task).map(_decoded, **parallel).cache(str(place / "images") if in_file else "")
    if task.is_shuffled:
        decoded = decoded.shuffle(_FILE_WINDOW if in_file else _WINDOW, SEED)
    return decoded.repeat().map(load_transform(task.transform), **parallel)


def _records(task: Task, form: str, parallel: dict[str, int]) -> Any:
    transform = load_transform(task.transform)
    with_boxes = task.transform == "objects"
    boxes = [f"image/object/bbox/{side}" for side in _SIDES]
    features: dict[str, Any] = {"image/encoded": tf.io.FixedLenFeature([], tf.string)}
    features |= {name: tf.io.VarLenFeature(tf.float32) for name in boxes} if with_boxes else {}

    def load(record: Any) -> Any:
        found = tf.io.parse_single_example(record, features)
        corners = tf.zeros([0, 4])
        if with_boxes:
            corners = tf.stack([tf.sparse.to_dense(found[name]) for name in boxes], 1)
            whole = tf.constant([[0.0, 0.0, 1.0, 1.0]])
            corners = tf.cond(tf.shape(corners)[0] > 0, lambda: corners, lambda: whole)
        return transform(tf.io.decode_jpeg(found["image/encoded"], channels=3), corners)

    if form == "interleave":
        records = _interleaved(_shards(task, "plain"), parallel)
    elif form == "tfrecord-gzip":
        records = tf.data.TFRecordDataset(_shards(task, "gzip"), "GZIP")
    else:
        records = tf.data.TFRecordDataset(_shards(task, "plain"))
    return _shuffled(records, task).map(load, **parallel)


def _raw(task: Task, parallel: dict[str, int]) -> Any:
    transform = load_transform(task.transform)

    def load(record: Any) -> Any:
        pixels = tf.io.parse_single_example(record, {"image_raw": tf.io.FixedLenFeature([], tf.string)})["image_raw"]
        return transform(tf.reshape(tf.io.decode_raw(pixels, tf.uint8), [RAW_SIDE, RAW_SIDE, 3]), tf.zeros([0, 4]))

    return _shuffled(_interleaved(_shards(task, "raw"), parallel), task).map(load, **parallel)


def _paths(task: Task) -> Any:
    """Paths and boxes, in an order of each epoch's own."""
    images = ImageList.read(task)
    paths = images.files(task)
    corners = tf.ragged.constant(images.corners, ragged_rank=1, inner_shape=(4,), dtype=tf.float32)
    listed = tf.data.Dataset.from_tensor_slices((paths, corners))
    return listed.shuffle(len(paths), SEED) if task.is_shuffled else listed


def _decoded(path: Any, corners: Any) -> tuple[Any, Any]:
    return tf.io.decode_jpeg(tf.io.read_file(path), channels=3), corners


def _shards(task: Task, form: str) -> list[str]:
    return sorted(str(path) for path in task.place(form).iterdir() if path.suffix == ".tfrecord")


def _interleaved(shards: list[str], parallel: dict[str, int]) -> Any:
    files = tf.data.Dataset.from_tensor_slices(shards)
    return files.interleave(tf.data.TFRecordDataset, cycle_length=min(_SHARDS_AT_A_TIME, len(shards)), **parallel)


def _shuffled(records: Any, task: Task) -> Any:
    return (records.shuffle(_WINDOW, SEED) if task.is_shuffled else records).repeat()


def _random_crop(image: Any, _corners: Any) -> Any:
    top, left, height, width = tf.unstack(_random_window(tf.shape(image)))
    pixels = _resized(tf.slice(image, [top, left, 0], [height, width, 3]))
    return tf.image.random_flip_left_right(pixels)


def _random_window(shape: Any) -> Any:
    """The crop that torchvision's RandomResizedCrop draws: the first of ten attempts that fits, or all."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    area = height * width * tf.random.uniform([_ATTEMPTS], *SCALE)
    aspect = tf.exp(tf.random.uniform([_ATTEMPTS], math.log(RATIO[0]), math.log(RATIO[1])))
    widths, heights = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (widths >= 1) & (heights >= 1) & (widths <= width) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    w, h = tf.where(fits[first], widths[first], width), tf.where(fits[first], heights[first], height)
    place = tf.floor(tf.random.uniform([2]) * tf.stack([height - h + 1, width - w + 1]))
    return tf.cast(tf.concat([place, [h, w]], 0), tf.int32)


def _center(image: Any, _corners: Any) -> Any:
    """What a resize to 256 and the centre 224 see, as one crop."""
    shape = tf.shape(image)
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    side = tf.maximum(1, tf.cast(tf.round(short * (SIDE / RESIZE)), tf.int32))
    top, left = tf.unstack((shape[:2] - side) // 2)
    return _resized(tf.slice(image, [top, left, 0], tf.stack([side, side, 3])))


def _objects(image: Any, corners: Any) -> Any:
    found = tf.image.crop_and_resize(image[None], corners, tf.zeros([tf.shape(corners)[0]], tf.int32), [SIDE, SIDE])
    return tf.ensure_shape(tf.cast(found, tf.uint8), [None, SIDE, SIDE, 3])


def _resized(image: Any) -> Any:
    return tf.ensure_shape(tf.cast(tf.image.resize(image, [SIDE, SIDE], "bilinear"), tf.uint8), [SIDE, SIDE, 3])
