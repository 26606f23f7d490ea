"""A folder of images of every format: built, verified, fed, resumed in the middle, and read by tf.data.

The same images, labels and counts all the way.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from mixed_images import COUNTS, FILES, class_of, write_folder
from reference import pictures
from stoker.cli.main import main
from stoker.format import read_manifest
from stoker.inspect import verify_dataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of TensorFlow's own modules, while they are imported
    import tensorflow as tf

    import stoker.tensorflow

if TYPE_CHECKING:
    from pathlib import Path

NAMES = sorted(FILES)
LABELS = {name: class_of(number) for number, name in enumerate(FILES)}
KEPT = ("jpg", "png", "webp")
STORED = {"png": 12, "webp": 4, "jpeg": 3}  # the JPEG of inks, and what is none of these formats, became PNG
KEYS = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/format": tf.io.FixedLenFeature([], tf.string),
    "image/filename": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("photos"))


@pytest.fixture(scope="module")
def built(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("built") / "dataset"
    assert main(["build", str(folder), str(target), "--shards", "2", "--quiet"]) == 0
    return target


def name_of(sample: stoker.Sample) -> str:
    return sample.source.rpartition("/")[2]


def test_the_dataset_is_whole_and_says_what_it_holds(built: Path) -> None:
    report = verify_dataset(built)
    assert report.problems == ()
    assert report.formats == STORED
    manifest = read_manifest(built)
    assert {name: sum(counts.values()) for name, counts in manifest.formats.items()} == STORED
    assert manifest.formats["png"] == {"encoded": 7, "kept": 5}
    assert manifest.splits["train"].class_counts == tuple(Counter(LABELS.values())[label] for label in range(3))
    assert Counter(manifest.converted) == {"cmyk jpeg": 1, **{k: n for k, n in COUNTS.items() if k not in STORED}}


def test_records_hold_the_bytes_that_can_be_kept_and_the_pixels_of_all(built: Path) -> None:
    samples = stoker.open(built)
    assert len(samples) == len(FILES)
    for sample in map(samples.__getitem__, range(len(samples))):
        name = name_of(sample)
        assert sample.label == LABELS[name]
        assert (sample.encoded == FILES[name]) == (name.endswith(KEPT) and name != "cmyk.jpg"), name
        assert (sample.decode() == pictures.whole(FILES[name])).all(), name


def by_tensorflow(data: bytes, name: bytes) -> np.ndarray:
    """Pixels as TensorFlow reads them: of JPEGs with the DCT that Pillow has, all 16 bits, and WebP with its alpha."""
    if name == b"JPEG":
        return tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE").numpy()
    with pictures.opened(data) as image:
        if image.mode.startswith("I"):
            wide = tf.io.decode_png(data, channels=1, dtype=tf.uint16).numpy()
            return np.rint(np.repeat(wide, 3, axis=-1) / 257).astype(np.uint8)
        channels = 4 if (image.format, image.mode) == ("WEBP", "RGBA") else 3
    return tf.io.decode_image(data, channels=channels, expand_animations=False).numpy()[..., :3]


def test_tensorflow_reads_the_same_images_labels_and_counts(built: Path) -> None:
    """TensorFlow 2.21's `decode_image` reads JPEG, PNG and WebP, but of WebP no animation, and alpha only if asked."""
    shards = tf.data.Dataset.list_files(str(built / "train-*.tfrecord"), shuffle=False)
    records = tf.data.TFRecordDataset(shards).map(lambda record: tf.io.parse_single_example(record, KEYS))
    seen: dict[str, str] = {}
    for record in records.as_numpy_iterator():
        name = record["image/filename"].decode()
        seen[name] = record["image/format"].decode()
        assert record["image/class/label"] == LABELS[name]
        if name == "animated.webp":
            with pytest.raises(tf.errors.InvalidArgumentError, match="Animation"):
                by_tensorflow(record["image/encoded"], record["image/format"])
        else:
            pixels = by_tensorflow(record["image/encoded"], record["image/format"])
            assert (pixels == pictures.whole(FILES[name])).all(), name
    assert sorted(seen) == NAMES
    assert Counter(kind.lower() for kind in seen.values()) == STORED
