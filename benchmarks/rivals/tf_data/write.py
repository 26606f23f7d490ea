"""TFRecord writers: ``plain``, and ``inception`` as Google's build_imagenet_data.py, which decodes every image."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import tensorflow as tf

from benchmarks.rivals.serving import serve_builds
from benchmarks.rivals.tf_data.prepare import example
from benchmarks.rivals.work import SMALL_QUALITY, SMALL_SIDE, Work

SHARDS_A_THREAD = 4
BYTES = [tf.TensorSpec([], tf.string)]


@tf.function(input_signature=BYTES)  # type: ignore[untyped-decorator]
def shape_of(encoded: Any) -> Any:
    """Height and width, found by decoding."""
    return tf.shape(tf.image.decode_jpeg(encoded, channels=3))[:2]


@tf.function(input_signature=BYTES)  # type: ignore[untyped-decorator]
def smaller(encoded: Any) -> Any:
    """A JPEG with the shorter side of the small build, and its height and width."""
    image = tf.image.decode_jpeg(encoded, channels=3, dct_method="INTEGER_FAST")
    size = tf.cast(tf.shape(image)[:2], tf.float32)
    size = tf.cast(tf.round(size * (SMALL_SIDE / tf.reduce_min(size))), tf.int32)
    image = tf.saturate_cast(tf.round(tf.image.resize(image, size, "bilinear")), tf.uint8)
    return tf.io.encode_jpeg(image, format="rgb", quality=SMALL_QUALITY, chroma_downsampling=True), size


def record(work: Work, path: str, number: int) -> bytes:
    """The Example of one photograph."""
    encoded = Path(path).read_bytes()
    height = width = 0
    if work.line == "small":
        small, size = smaller(encoded)
        encoded, (height, width) = small.numpy(), size.numpy().tolist()
    elif work.form == "inception":
        height, width = shape_of(encoded).numpy().tolist()
    return example(
        image__encoded=encoded,
        image__class__label=number,
        image__height=height,
        image__width=width,
        image__channels=3,
        image__colorspace=b"RGB",
        image__format=b"JPEG",
        image__filename=Path(path).name.encode(),
    )


def build(work: Work, out: Path) -> None:
    """As many threads as others have, each with shards of its own."""
    photos = list(enumerate(work.build_photos()))
    shards = work.threads * SHARDS_A_THREAD

    def run(thread: int) -> None:
        for shard in range(thread, shards, work.threads):
            with tf.io.TFRecordWriter(str(out / f"train-{shard:05d}-of-{shards:05d}")) as writer:
                for number, path in photos[shard::shards]:
                    writer.write(record(work, path, number))

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(work.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(1)
    serve_builds(build)
