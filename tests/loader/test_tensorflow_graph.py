"""The pipeline of TensorFlow's own ops: what it reads, what it refuses, and that its pixels are about right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import tensorflow as tf

import stoker
from reference import example, pictures, tfrecord
from stoker.cli.main import main
from stoker.errors import ConfigError
from stoker.tensorflow import graph_dataset

if TYPE_CHECKING:
    from pathlib import Path

TRAINING = stoker.RandomResizedCrop(24, hflip=0.5)


@pytest.fixture
def train(tmp_path: Path) -> stoker.Dataset:
    """19 smooth photographs in shards of 6, 6 and 7; the label is the record's number plus one."""
    for shard, numbers in enumerate((range(6), range(6, 12), range(12, 19))):
        frames = []
        for i in numbers:
            encoded = ("bytes", [pictures.jpeg(60 + i, 50, i)])
            frames.append(
                tfrecord.frame(example.write({"image/encoded": encoded, "image/class/label": ("int64", [i + 1])}))
            )
        (tmp_path / f"train-{shard:05d}-of-00003").write_bytes(b"".join(frames))
    return stoker.open(tmp_path)


def labels_of(made: tf.data.Dataset) -> list[int]:
    return [label for _, labels in made for label in labels.numpy().tolist()]


def test_an_epoch_holds_every_record_once(train: stoker.Dataset) -> None:
    made = graph_dataset(train, batch_size=4, transform=TRAINING, shuffle_buffer=10)
    assert made.element_spec == (tf.TensorSpec((None, 24, 24, 3), tf.uint8), tf.TensorSpec((None,), tf.int64))
    assert made.cardinality() == 5
    assert sorted(labels_of(made)) == list(range(1, 20))


def test_whole_batches_have_static_shapes_and_end_with_the_last(train: stoker.Dataset) -> None:
    made = graph_dataset(train, batch_size=4, transform=TRAINING, drop_remainder=True, epochs=3)
    assert made.element_spec[0].shape.as_list() == [4, 24, 24, 3]
    assert made.cardinality() == len(list(made)) == 19 * 3 // 4


def test_without_end(train: stoker.Dataset) -> None:
    made = graph_dataset(train, batch_size=4, transform=TRAINING, epochs=None)
    assert made.cardinality() == tf.data.INFINITE_CARDINALITY
    assert len(list(made.take(50))) == 50


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_ranks_share_the_records(train: stoker.Dataset, world_size: int) -> None:
    parts = [
        graph_dataset(train, batch_size=2, transform=TRAINING, rank=rank, world_size=world_size)
        for rank in range(world_size)
    ]
    labels = [labels_of(part) for part in parts]
    assert sorted(label for part in labels for label in part) == list(range(1, 20))
    assert [part.cardinality() for part in parts] == [-(-len(part) // 2) for part in labels]


def test_a_seed_repeats_order_and_crops(train: stoker.Dataset) -> None:
    def read(seed: int) -> list[tuple[np.ndarray, list[int]]]:
        made = graph_dataset(train, batch_size=19, transform=TRAINING, shuffle_buffer=19, seed=seed)
        return [(images.numpy(), labels.numpy().tolist()) for images, labels in made]

    ((first, order),), ((again, same),), ((_, other),) = read(1), read(1), read(2)
    assert (first == again).all()
    assert order == same != other


@pytest.mark.parametrize("transform", [stoker.CenterCrop((20, 24), 28), stoker.Resize((24, 20))], ids=repr)
def test_pixels_are_about_those_of_the_transform(tmp_path: Path, transform: stoker.CenterCrop | stoker.Resize) -> None:
    # A ramp from left to right and one from top to bottom, for which antialiasing makes no difference.
    rows, columns = np.mgrid[0:84, 0:120]
    ramps = np.stack([columns * 2, rows * 3, 0 * rows + 99], axis=-1).astype(np.uint8)
    encoded = tf.io.encode_jpeg(ramps, quality=100, chroma_downsampling=False).numpy()
    features = {"image/encoded": ("bytes", [encoded]), "image/class/label": ("int64", [1])}
    (tmp_path / "train-00000-of-00001").write_bytes(tfrecord.frame(example.write(features)))
    train = stoker.open(tmp_path)
    ((images, _),) = graph_dataset(train, batch_size=1, transform=transform)
    with stoker.Loader(train, batch_size=1, transform=transform) as loader:
        exact = next(iter(loader)).images
    assert np.abs(images.numpy().astype(int) - exact).max() <= 4


def test_random_crops_have_the_distribution_of_the_transform(tmp_path: Path) -> None:
    # The ramps tell where the corners of a crop were.
    rows, columns = np.mgrid[0:80, 0:120]
    ramps = np.stack([columns * 2, rows * 3, 0 * rows], axis=-1).astype(np.uint8)
    encoded = tf.io.encode_jpeg(ramps, quality=100, chroma_downsampling=False).numpy()
    features = {"image/encoded": ("bytes", [encoded]), "image/class/label": ("int64", [1])}
    (tmp_path / "train-00000-of-00001").write_bytes(tfrecord.frame(example.write(features)) * 600)
    transform = stoker.RandomResizedCrop(16, scale=(0.2, 0.6), hflip=0.3)
    train = stoker.open(tmp_path)

    def extents(images: np.ndarray) -> np.ndarray:
        """Left, top, width, height and whether mirrored, of each crop."""
        across, down = images[:, 8, [0, -1], 0] / 2, images[:, [0, -1], 8, 1] / 3
        flipped = across[:, 0] > across[:, 1]
        sizes = np.abs(across[:, 1] - across[:, 0]), np.abs(down[:, 1] - down[:, 0])
        return np.stack([across.min(1), down.min(1), *sizes, flipped], axis=1)

    ((images, _),) = graph_dataset(train, batch_size=600, transform=transform, seed=5)
    with stoker.Loader(train, batch_size=600, transform=transform) as loader:
        exact = extents(next(iter(loader)).images.astype(float))
    found = extents(images.numpy().astype(float))
    assert np.abs(found.mean(0) - exact.mean(0)).max() < 4
    assert np.abs(found.std(0) - exact.std(0)).max() < 3
    assert abs(found[:, 4].mean() - 0.3) < 0.07


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--preset", "dlbs", "--img-size", "32"], "raw tensors"),
        (["--preset", "dogs-onehot", "--shard-names", "{split}-{shard}.tfrecord"], "one-hot"),
        ([], "TFRecords"),
    ],
)
def test_what_it_cannot_read_is_refused(photos: Path, tmp_path: Path, words: list[str], message: str) -> None:
    place = photos
    if words:
        place = tmp_path / "out"
        assert main(["build", str(photos), str(place), *words]) == 0
    with pytest.raises(ConfigError, match=message):
        graph_dataset(stoker.open(place, split="train"), batch_size=2, transform=TRAINING)


def test_a_mix_is_refused(train: stoker.Dataset) -> None:
    with pytest.raises(ConfigError, match=r"stoker\.Mix .* is no dataset of TFRecords"):
        graph_dataset(stoker.mix([train]), batch_size=2, transform=TRAINING)


def test_compressed_shards_are_read(photos: Path, tmp_path: Path) -> None:
    assert main(["build", str(photos), str(tmp_path / "out"), "--compression", "zlib"]) == 0
    train = stoker.open(tmp_path / "out", split="train")
    assert sorted(labels_of(graph_dataset(train, batch_size=7, transform=TRAINING))) == sorted(train.labels.tolist())


@pytest.mark.parametrize(
    "transform",
    [
        stoker.RandomResizedCrop(24, filter="bicubic"),
        stoker.TopLeft(16),
        stoker.ObjectCrops(16),
        stoker.MultiCrop(TRAINING),
    ],
    ids=repr,
)
def test_transforms_it_cannot_do_are_refused(train: stoker.Dataset, transform: object) -> None:
    with pytest.raises(ConfigError, match=r"stoker\.tensorflow\.dataset"):
        graph_dataset(train, batch_size=2, transform=transform)


@pytest.mark.parametrize(
    "settings",
    [{"batch_size": 0}, {"shuffle_buffer": -1}, {"rank": 1}, {"world_size": 0}, {"epochs": 0}, {"threads": 0}],
    ids=str,
)
def test_settings_out_of_range_are_refused(train: stoker.Dataset, settings: dict) -> None:
    with pytest.raises(ConfigError):
        graph_dataset(train, **{"batch_size": 2, "transform": TRAINING, **settings})
