"""Stanford Dogs in Cloud Storage, as Google's notebook has them: from images in a bucket to a model of Keras.

    python examples/stanford_dogs_gcs.py dataset/ gs://bucket/dogs

The images of a dataset stand for the dogs. See docs/how-to/migrate/dogs.md.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import gcsfs
import numpy as np
import tensorflow as tf
from stanford_dogs import write_dogs

import stoker
import stoker.tensorflow
from stoker.cli.main import main as run

SIZE = 64


def upload(dataset: str, bucket: str) -> None:
    """Put images and annotations into the bucket, where the notebook finds them."""
    with tempfile.TemporaryDirectory() as work:
        write_dogs(dataset, Path(work, "dogs"))
        gcsfs.GCSFileSystem().put(f"{work}/dogs", bucket, recursive=True)


def notebook_pipeline(shards: str, batch_size: int) -> tf.data.Dataset:
    """The last pipeline of the notebook, which reads what it wrote."""
    description = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
    }

    def get_tfrecord(filename: tf.Tensor) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(filename, compression_type="GZIP", num_parallel_reads=tf.data.AUTOTUNE)

    def process_image(record: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        image = tf.io.decode_jpeg(record["image"], channels=3)
        return tf.image.convert_image_dtype(image, dtype=tf.float32), record["label"]

    filenames = tf.data.Dataset.from_tensor_slices(tf.io.gfile.glob(shards))
    records = filenames.interleave(get_tfrecord, num_parallel_calls=tf.data.AUTOTUNE)
    parsed = records.map(lambda record: tf.io.parse_single_example(record, description))
    return parsed.map(process_image, num_parallel_calls=tf.data.AUTOTUNE).batch(batch_size).prefetch(tf.data.AUTOTUNE)


def train(photos: stoker.Dataset) -> float:
    """Fit a small model for an epoch straight from the bucket, and return its loss."""
    transform = stoker.RandomResizedCrop(SIZE, hflip=0.5)
    batches = stoker.tensorflow.dataset(photos, batch_size=8, transform=transform, shuffle=True, seed=17, tail="drop")
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((SIZE, SIZE, 3)),
            tf.keras.layers.Rescaling(1 / 255),
            tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(len(photos.classes)),
        ]
    )
    model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return float(model.fit(batches, epochs=1, shuffle=False, verbose=0).history["loss"][0])


def main(dataset: str, bucket: str) -> None:
    """Upload, build in the bucket, and read from there in three ways."""
    dogs, tfrecords, photos = f"{bucket}/stanford-dogs", f"{bucket}/tfrecords", f"{bucket}/photos"
    upload(dataset, dogs)
    assert run(["build", dogs, tfrecords, "--preset", "dogs-onehot", "--shards", "4"]) == 0
    assert run(["build", dogs, photos, "--shards", "4"]) == 0

    labels = np.concatenate(
        [labels for _, labels in notebook_pipeline(f"{tfrecords}/*.tfrecord", 8).as_numpy_iterator()]
    )
    one_hot = stoker.open(tfrecords)
    assert sorted(labels.argmax(1)) == sorted(one_hot.labels)
    print(f"the notebook's tf.data pipeline reads {len(labels)} dogs of {labels.shape[1]} breeds from {tfrecords}")

    whole = stoker.open(photos)
    print(f"{whole!r}: an epoch of Keras, loss {train(whole):.3f}")
    with stoker.Loader(whole, batch_size=8, transform=stoker.ObjectCrops(SIZE), shuffle=True) as loader:
        images, numbers = next(iter(loader))
    print(f"{whole.object_counts.sum()} dogs have a box; cut out: {images.shape}, classes {numbers[:6]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
