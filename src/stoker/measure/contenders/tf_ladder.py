"""The ladder in tf.data, as the documents that started this project climb it: one step more on each rung.

Every rung decodes whole JPEGs with ``decode_jpeg`` and resizes without antialiasing, as the originals do; what a tuned
pipeline does beyond that is the rival in `stoker.measure.contenders.tf_data`.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.measure.contenders.tf_views import load_views
from stoker.measure.selection import made_by
from stoker.measure.task import RAW_SIDE, SEED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stoker.measure.task import Task

_BATCHES_AHEAD = 2
_WINDOW = 1000
_FILE_WINDOW = 64
"""Decoded images in the shuffle buffer behind a file cache: few, or the buffer would be a cache in memory."""
_SHARDS_AT_A_TIME = 8
_IMAGE, _BOX = "image/encoded", "image/object/bbox/"


def batches(task: Task, form: str) -> Iterator[int]:
    """Run one rung's pipeline without end."""
    for pixels in pipeline(task, form):
        yield int(pixels.shape[0])


def pipeline(task: Task, form: str) -> tf.data.Dataset:
    """Return one rung's pipeline: batches of pixels, uint8 (B, 224, 224, 3), without end."""
    is_serial = form == "serial"
    parallel = {} if is_serial else {"num_parallel_calls": task.threads}
    images = _PIPELINES[form](task, parallel)
    if task.view == "objects":
        images = images.unbatch()
    batched = images.batch(task.batch_size, drop_remainder=True)
    if form not in ("serial", "parallel"):
        batched = batched.prefetch(_BATCHES_AHEAD)
    return batched.with_options(_options(1 if is_serial else task.threads))


def _options(threads: int) -> tf.data.Options:
    """No step that the rung does not have: TensorFlow would add some by itself."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    options.experimental_optimization.map_parallelization = False
    options.experimental_optimization.inject_prefetch = False
    return options


def _paths(task: Task) -> Any:
    """Paths and boxes, in an order of each epoch's own."""
    files = task.files()
    corners = tf.ragged.constant(files.corners, ragged_rank=1, inner_shape=(4,), dtype=tf.float32)
    listed = tf.data.Dataset.from_tensor_slices((list(files.paths), corners))
    return listed.shuffle(len(files.paths), SEED) if task.is_shuffled else listed


def _decoded(path: Any, corners: Any) -> tuple[Any, Any]:
    return tf.io.decode_jpeg(tf.io.read_file(path), channels=3), corners


def _loose(task: Task, parallel: dict[str, int]) -> Any:
    view = load_views(task.view)
    return _paths(task).repeat().map(lambda *image: view(*_decoded(*image)), **parallel)


def _cached(cache: Callable[[Task], str], window: int) -> Callable[[Task, dict[str, int]], Any]:
    def pipeline(task: Task, parallel: dict[str, int]) -> Any:
        decoded = _paths(task).map(_decoded, **parallel).cache(cache(task))
        if task.is_shuffled:
            decoded = decoded.shuffle(window, SEED)
        return decoded.repeat().map(load_views(task.view), **parallel)

    return pipeline


def _file(task: Task) -> str:
    place = made_by("cache-file", task)
    # What a killed process leaves; TensorFlow takes it for another one that is filling the cache.
    if any(place.glob("*.lockfile")):
        shutil.rmtree(place)
    place.mkdir(exist_ok=True)
    return str(place / "images")


def _record_images(records: Any, task: Task, parallel: dict[str, int]) -> Any:
    view = load_views(task.view)
    boxes = {f"{_BOX}{side}": tf.io.VarLenFeature(tf.float32) for side in ("ymin", "xmin", "ymax", "xmax")}
    features = {_IMAGE: tf.io.FixedLenFeature([], tf.string)} | (boxes if task.view == "objects" else {})

    def load(record: Any) -> Any:
        found = tf.io.parse_single_example(record, features)
        corners = tf.zeros([0, 4])
        if task.view == "objects":
            corners = tf.stack([tf.sparse.to_dense(found[side]) for side in boxes], 1)
            whole = tf.constant([[0.0, 0.0, 1.0, 1.0]])
            corners = tf.cond(tf.shape(corners)[0] > 0, lambda: corners, lambda: whole)
        return view(tf.io.decode_jpeg(found[_IMAGE], channels=3), corners)

    return _shuffled(records, task).map(load, **parallel)


def _shuffled(records: Any, task: Task) -> Any:
    return (records.shuffle(_WINDOW, SEED) if task.is_shuffled else records).repeat()


def _shards(task: Task, form: str) -> list[str]:
    return sorted(str(path) for path in task.place(form).iterdir() if path.suffix == ".tfrecord")


def _records(task: Task, parallel: dict[str, int]) -> Any:
    return _record_images(tf.data.TFRecordDataset(_shards(task, "plain")), task, parallel)


def _gzip_records(task: Task, parallel: dict[str, int]) -> Any:
    return _record_images(tf.data.TFRecordDataset(_shards(task, "gzip"), "GZIP"), task, parallel)


def _interleaved(task: Task, parallel: dict[str, int]) -> Any:
    return _record_images(_interleave(_shards(task, "plain"), parallel), task, parallel)


def _interleave(shards: list[str], parallel: dict[str, int]) -> Any:
    files = tf.data.Dataset.from_tensor_slices(shards)
    return files.interleave(tf.data.TFRecordDataset, cycle_length=min(_SHARDS_AT_A_TIME, len(shards)), **parallel)


def _raw_records(task: Task, parallel: dict[str, int]) -> Any:
    view = load_views(task.view)

    def load(record: Any) -> Any:
        pixels = tf.io.parse_single_example(record, {"image_raw": tf.io.FixedLenFeature([], tf.string)})["image_raw"]
        return view(tf.reshape(tf.io.decode_raw(pixels, tf.uint8), [RAW_SIDE, RAW_SIDE, 3]), tf.zeros([0, 4]))

    return _shuffled(_interleave(_shards(task, "raw"), parallel), task).map(load, **parallel)


_PIPELINES: dict[str, Callable[[Task, dict[str, int]], Any]] = {
    "serial": _loose,
    "parallel": _loose,
    "prefetch": _loose,
    "cache-memory": _cached(lambda _: "", _WINDOW),
    "cache-file": _cached(_file, _FILE_WINDOW),
    "tfrecord": _records,
    "tfrecord-gzip": _gzip_records,
    "interleave": _interleaved,
    "raw": _raw_records,
}
