"""The files that TFDS wants beside its shards. `make test-clients` has TFDS itself open them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stoker.builder.companions import write_tfds_metadata
from stoker.format.manifest import Shard, Split

if TYPE_CHECKING:
    from pathlib import Path

SPLITS = {
    "train": Split(5, 700, 0, (3, 2), (Shard("dogs-train.tfrecord-00000-of-00002", 3, 400, 1), Shard("b", 2, 300, 2))),
    "validation": Split(1, 90, 0, (1, 0), (Shard("dogs-validation.tfrecord-00000-of-00001", 1, 90, 3),)),
}


def write(directory: Path, names: list[str]) -> dict[str, bytes]:
    write_tfds_metadata(directory, name="dogs", splits=SPLITS, class_names=names)
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_the_information_names_splits_shards_and_bytes(tmp_path: Path) -> None:
    info = json.loads(write(tmp_path, ["a", "b"])["dataset_info.json"])
    assert (info["name"], info["fileFormat"], info["version"]) == ("dogs", "tfrecord", "1.0.0")
    template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    assert info["splits"] == [
        {"name": "train", "numBytes": "700", "shardLengths": ["3", "2"], "filepathTemplate": template},
        {"name": "validation", "numBytes": "90", "shardLengths": ["1"], "filepathTemplate": template},
    ]
    assert [item["featureKey"] for item in info["supervisedKeys"]["tuple"]["items"]] == ["image", "label"]


def test_the_features_are_those_of_the_preset(tmp_path: Path) -> None:
    features = json.loads(write(tmp_path, ["a", "b"])["features.json"])["featuresDict"]["features"]
    assert set(features) == {"image", "label", "file_name"}
    assert features["image"]["image"] == {
        "dtype": "uint8",
        "encodingFormat": "",
        "shape": {"dimensions": ["-1", "-1", "3"]},
    }
    assert features["label"]["classLabel"] == {"numClasses": "2"}
    assert features["file_name"]["text"] == {}


def test_the_same_arguments_give_the_same_bytes_and_nothing_else(tmp_path: Path) -> None:
    first = write(tmp_path, ["a", "b"])
    assert write(tmp_path, ["a", "b"]) == first
    assert set(first) == {"features.json", "dataset_info.json", "label.labels.txt"}
    assert first["label.labels.txt"] == b"a\nb\n"


def test_bytes_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    assert write(tmp_path, ["\udcff", "caf\xe9"])["label.labels.txt"] == b"\\udcff\ncaf\xc3\xa9\n"


@pytest.mark.parametrize("names", [["a", " a"], ["a", " "], ["a", ""], []])
def test_names_that_tfds_would_misread_are_left_out(tmp_path: Path, names: list[str]) -> None:
    write(tmp_path, ["of", "earlier"])
    files = write(tmp_path, names)
    assert set(files) == {"features.json", "dataset_info.json"}
    label = json.loads(files["features.json"])["featuresDict"]["features"]["label"]
    assert label["classLabel"] == {"numClasses": str(len(names))}
