"""TensorFlow Datasets opens a directory that Stoker built, as it opens one that it prepared itself.

Run in the client's environment: `python clients/read_tfds.py DIRECTORY`, with what `datasets.py` made.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from documented import check_program
from source_trees import must_be_converted, photographs, report


def read_split(data: Path, split: str) -> int:
    """Compare every record of a split with the photographs; return how many there are."""
    builder = tfds.builder_from_directory(data / "tfds")
    truth, converted = photographs(data / "photos" / split), must_be_converted(data)
    label = builder.info.features["label"]
    assert builder.info.splits[split].num_examples == len(truth)
    assert label.names == sorted({photo.folder for photo in truth.values()})
    seen = set()
    for record in builder.as_dataset(split=split):
        photo = truth[record["file_name"].numpy().decode()]
        assert label.int2str(int(record["label"])) == photo.folder
        stored = photo.path.read_bytes()
        if photo.path.name not in converted or stored.startswith(b"\x89PNG"):
            wanted = tf.io.decode_image(stored, channels=3, expand_animations=False)
            assert np.array_equal(record["image"], wanted), photo.path.name
        seen.add(photo.path.name)
    assert seen == set(truth)
    return len(seen)


def read_parts(data: Path) -> None:
    """Cut a split into parts, which TFDS does by the lengths of the shards, and ask for pairs of image and label."""
    builder = tfds.builder_from_directory(data / "tfds")
    parts = [builder.as_dataset(split=f"train[{part}]") for part in (":10%", "10%:40%", "40%:")]
    names = [record["file_name"].numpy().decode() for part in parts for record in part]
    assert sorted(names) == sorted(photographs(data / "photos" / "train"))
    image, label = next(iter(builder.as_dataset(split="validation", as_supervised=True)))
    assert (image.dtype, label.dtype) == (tf.uint8, tf.int64)


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    check_program("TensorFlow Datasets", directory, lambda photo: photo.folder)
    read_parts(directory)
    report("TFDS", tfds.__version__, sum(read_split(directory, split) for split in ("train", "validation")))
    assert "stoker" not in sys.modules
