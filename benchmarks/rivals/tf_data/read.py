"""tf.data: ``tuned``, ``idiom`` (TensorFlow's own crop draw), ``files`` (loose files), ``files-smaller``, ``naive``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from benchmarks.rivals.serving import Batch, serve_batches
from benchmarks.rivals.work import RATIO, RAW_SIDE, RESIZE, SCALE, SIDE, THUMBNAIL_SIDE, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

AUTO = tf.data.AUTOTUNE
FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}
RAW_FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def random_window(shape: Any) -> Any:
    """The crop that torchvision's RandomResizedCrop draws, so that all readers have the same work."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    area = height * width * tf.random.uniform([10], *SCALE)
    aspect = tf.exp(tf.random.uniform([10], *np.log(RATIO).astype(np.float32)))
    widths, heights = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (widths <= width) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    w = tf.where(fits[first], widths[first], tf.minimum(width, tf.round(height * RATIO[1])))
    h = tf.where(fits[first], heights[first], tf.minimum(height, tf.round(width / RATIO[0])))
    corner = tf.random.uniform([2]) * tf.stack([height - h + 1, width - w + 1])
    return tf.cast(tf.stack([tf.floor(corner[0]), tf.floor(corner[1]), h, w]), tf.int32)


def idiom_window(shape: Any) -> Any:
    """The crop as TensorFlow's own scripts draw it: 0.37 of the image on average, and not 0.43 as torchvision's."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        tf.constant([[[0.0, 0.0, 1.0, 1.0]]]),
        min_object_covered=0.0,
        aspect_ratio_range=RATIO,
        area_range=SCALE,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
    )
    return tf.concat([begin[:2], size[:2]], 0)


def center_window(shape: Any) -> Any:
    """What a resize to 256 and the centre 224 see, as one crop."""
    side = tf.cast(tf.round(tf.cast(tf.minimum(shape[0], shape[1]), tf.float32) * (SIDE / RESIZE)), tf.int32)
    return tf.stack([(shape[0] - side) // 2, (shape[1] - side) // 2, side, side])


def decode_crop_smaller(encoded: Any, window: Any) -> Any:
    """A crop of a JPEG, shrunk while it is decoded as far as 224 pixels are left; the ratio has to be a constant."""

    def at(factor: int) -> Any:
        part = window // factor
        return tf.image.decode_and_crop_jpeg(encoded, part, channels=3, ratio=factor, dct_method="INTEGER_FAST")

    side = tf.reduce_min(window[2:])
    cases = [(side >= factor * SIDE, lambda factor=factor: at(factor)) for factor in (8, 4, 2)]
    return tf.case(cases, default=lambda: at(1))


class Pixels:
    """From encoded bytes to the transform of a line."""

    def __init__(self, work: Work) -> None:
        self._line, self._form, self._train = work.line, work.form, work.transform == "train"
        window = idiom_window if work.form == "idiom" else random_window
        self._window = window if self._train else center_window

    def __call__(self, encoded: Any) -> Any:
        """Return uint8 (224, 224, 3), or of a thumbnail (32, 32, 3)."""
        if self._line == "thumbnails":
            return tf.ensure_shape(tf.image.decode_png(encoded, channels=3), [THUMBNAIL_SIDE, THUMBNAIL_SIDE, 3])
        if self._line in ("png", "webp"):
            is_png = self._line == "png"  # of a WebP come frames, here one
            image = tf.image.decode_png(encoded, 3) if is_png else tf.image.decode_webp(encoded, 3)[0]
            image = tf.image.crop_to_bounding_box(image, *tf.unstack(self._window(tf.shape(image))))
        else:
            image = self._jpeg_crop(encoded)
        # Cast before the mirror: a quarter of the bytes to move.
        image = tf.cast(tf.image.resize(image, [SIDE, SIDE], "bilinear"), tf.uint8)
        return tf.image.random_flip_left_right(image) if self._train else image

    def _jpeg_crop(self, encoded: Any) -> Any:
        window = self._window(tf.image.extract_jpeg_shape(encoded))
        if self._form == "naive":
            return tf.image.crop_to_bounding_box(tf.image.decode_jpeg(encoded, channels=3), *tf.unstack(window))
        if self._form == "files-smaller":
            return decode_crop_smaller(encoded, window)
        return tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_FAST")


def shards_of(work: Work) -> list[str]:
    """The TFRecord shards of a line."""
    return sorted(map(str, Path(work.path_of("raw" if work.line == "raw" else "photos")).glob("*.tfrecord")))


def interleaved(work: Work, **settings: Any) -> Any:
    """Records of all shards, eight at a time."""
    shards = shards_of(work)
    records = tf.data.Dataset.from_tensor_slices(shards).shuffle(len(shards))
    return records.interleave(lambda p: tf.data.TFRecordDataset(p, buffer_size=8 << 20), cycle_length=8, **settings)


def tuned_photos(work: Work) -> Any:
    """Parallel interleave, shuffle, parallel map without a fixed order, batches ahead."""
    pixels = Pixels(work)

    def from_record(record: Any) -> Any:
        features = tf.io.parse_single_example(record, FEATURES)
        return pixels(features["image/encoded"]), features["image/class/label"]

    def from_file(path: Any, number: Any) -> Any:
        return pixels(tf.io.read_file(path)), number

    if work.form.startswith("files"):
        paths = work.photos()
        items = tf.data.Dataset.from_tensor_slices((paths, np.arange(len(paths)))).shuffle(len(paths)).repeat()
        images = items.map(from_file, num_parallel_calls=AUTO, deterministic=False)
    else:
        records = interleaved(work, num_parallel_calls=AUTO, deterministic=False).shuffle(work.window).repeat()
        images = records.map(from_record, num_parallel_calls=AUTO, deterministic=False)
    return images.batch(work.batch, drop_remainder=True).prefetch(AUTO)


def naive_photos(work: Work) -> Any:
    """The form of most tutorials: one file after another, serial map, full decode, no batches ahead."""
    pixels = Pixels(work)

    def from_record(record: Any) -> Any:
        features = tf.io.parse_single_example(record, FEATURES)
        return pixels(features["image/encoded"]), features["image/class/label"]

    return tf.data.TFRecordDataset(shards_of(work)).shuffle(work.window).repeat().map(from_record).batch(work.batch)


def raw_batches(work: Work) -> Any:
    """Batched before the Examples are parsed, all of a batch in one call; or one by one where naive."""

    def parsed(records: Any) -> Any:
        features = tf.io.parse_example(records, RAW_FEATURES)
        return tf.reshape(tf.io.decode_raw(features["image"], tf.uint8), [-1, RAW_SIDE, RAW_SIDE, 3]), features["label"]

    def parsed_one(record: Any) -> Any:
        features = tf.io.parse_single_example(record, RAW_FEATURES)
        return tf.reshape(tf.io.decode_raw(features["image"], tf.uint8), [RAW_SIDE, RAW_SIDE, 3]), features["label"]

    if work.form == "naive":
        records = tf.data.TFRecordDataset(shards_of(work)).shuffle(work.window).repeat()
        return records.map(parsed_one).batch(work.batch)
    # A serial interleave is faster than a parallel one for records of 12 KB.
    records = interleaved(work, block_length=16).shuffle(work.window).repeat().batch(work.batch, drop_remainder=True)
    return records.map(parsed, num_parallel_calls=AUTO, deterministic=False).prefetch(AUTO)


def batches(work: Work) -> Iterator[Batch]:
    """Run a pipeline without end."""
    if work.line == "raw":
        dataset = raw_batches(work)
    else:
        dataset = naive_photos(work) if work.form == "naive" else tuned_photos(work)
    if work.form != "naive":
        options = tf.data.Options()
        options.threading.private_threadpool_size = work.threads
        options.threading.max_intra_op_parallelism = 1
        options.deterministic = False
        dataset = dataset.with_options(options)
    for images, numbers in dataset:
        yield Batch(images.numpy(), numbers.numpy())


if __name__ == "__main__":
    serve_batches(batches)
