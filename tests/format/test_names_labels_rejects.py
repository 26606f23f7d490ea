"""Names of shards, labels.txt and rejects.jsonl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from small_cases import each
from stoker.errors import ConfigError, ManifestError
from stoker.format import read_rejects, write_rejects
from stoker.format.directory import ClassLabel, read_labels, write_labels
from stoker.format.shard_names import ShardName, ShardNaming, SplitShards, find_shards, parse_shard_name
from stoker.types import Reject
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path


@each(
    ("name", "expected"),
    [
        ("train-00003-of-01024", ShardName("train", 3, 1024)),
        ("validation-00000-of-00128.tfrecord", ShardName("validation", 0, 128)),
        ("imagenet2012-validation.tfrecord-00001-of-00064", ShardName("validation", 1, 64)),
        ("my-train.tfrecords-00001-of-00064", ShardName("train", 1, 64)),
        ("output_file-part-0.tfrecord", ShardName("train", None, None)),
        ("17.tfrecords", ShardName("train", None, None)),
        ("val.tfrecords", ShardName("validation", None, None)),
        ("test.tfrecord", ShardName("test", None, None)),
        ("dogs-Testing.tfrecord-00001-of-00002", ShardName("test", 1, 2)),
        ("contest.tfrecord", ShardName("train", None, None)),
        ("train-00004-of-00004", None),
        ("train-00003-of-01024.tfrecord.idx", None),
        ("train-00003-of-01024.tfrecord.tmp-12-ab", None),
        ("labels.txt", None),
        (".tfrecord", None),
    ],
)
def test_names_that_are_recognised(name: str, expected: ShardName | None) -> None:
    assert parse_shard_name(name) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("default", "train-00003-of-01024.tfrecord"),
        ("google", "train-00003-of-01024"),
        ("tfds:dogs", "dogs-train.tfrecord-00003-of-01024"),
        ("part", "output_file-part-3.tfrecord"),
        ("{split}_{shard:3}.tfrecord", "train_003.tfrecord"),
    ],
)
def test_names_that_are_written_are_recognised(text: str, name: str) -> None:
    assert ShardNaming(text).name("train", 3, 1024) == name
    parsed = parse_shard_name(name)
    assert parsed is not None
    assert parsed.split == "train"
    assert parsed.shard in (3, None)


def test_the_names_of_one_shard_for_each_class() -> None:
    naming = ShardNaming("per-class")
    assert naming.per_class
    assert naming.name("train", 17, 200) == "train/17.tfrecords"
    assert naming.name("validation", 0, 1) == "val/val.tfrecords"
    assert naming.name("test", 0, 1) == "test/test.tfrecords"


@pytest.mark.parametrize(
    "text",
    [
        "", "{split}.tfrecord", "../{shard}", "{shard}/x", "{shard!r}", "{rank}-{shard}",
        "a{shard}.idx", ".{shard}", "x" * 300 + "{shard}"],
)  # fmt: skip
def test_templates_that_make_no_names(text: str) -> None:
    with pytest.raises(ConfigError, match="shard_names"):
        ShardNaming(text)


def test_shards_in_folders_of_their_splits(tmp_path: Path) -> None:
    names = ("train/10.tfrecords", "train/9.tfrecords", "val/val.tfrecords", "Test/1.tfrecords")
    write_files(tmp_path, dict.fromkeys([*names, "idx/train/9.tfrecords.idx", "other/x.tfrecord"], b""))
    assert find_shards(tmp_path) == {
        "train": SplitShards((tmp_path / "train/9.tfrecords", tmp_path / "train/10.tfrecords"), ()),
        "test": SplitShards((tmp_path / "Test/1.tfrecords",), ()),
        "validation": SplitShards((tmp_path / "val/val.tfrecords",), ()),
    }


def test_shards_are_found_without_a_manifest(tmp_path: Path) -> None:
    names = ("train-00002-of-00004", "train-00000-of-00004", "val.tfrecord", "labels.txt", "train-00000-of-00004.idx")
    write_files(tmp_path, dict.fromkeys(names, b""))
    (tmp_path / "folder.tfrecord").mkdir()
    assert find_shards(tmp_path) == {
        "train": SplitShards((tmp_path / "train-00000-of-00004", tmp_path / "train-00002-of-00004"), (1, 3)),
        "validation": SplitShards((tmp_path / "val.tfrecord",), ()),
    }


def test_a_name_that_promises_a_billion_shards_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-999999999").touch()
    assert len(find_shards(tmp_path)["train"].missing) < 100_000


@pytest.mark.parametrize("base", [0, 1])
def test_labels_line_number_is_the_class_id(tmp_path: Path, base: int) -> None:
    write_labels(tmp_path, [b"n01", b"caf\xe9", b"n03"], [b"tench, Tinca", b"", "\u00e9".encode()], base)
    lines = (tmp_path / "labels.txt").read_bytes().split(b"\n")
    assert lines[base:] == [b"n01\ttench, Tinca", b"caf\xe9", b"n03\t\xc3\xa9", b""]
    labels = read_labels(tmp_path)
    assert labels[base:] == (
        ClassLabel("n01", "tench, Tinca"),
        ClassLabel("caf\udce9", ""),
        ClassLabel("n03", "\u00e9"),
    )
    assert labels[:base] == (ClassLabel("background", ""),) * base


def labels_as_slim_reads_them(path: Path) -> dict[int, str]:
    """What `read_label_file` of TF-Slim's ``datasets/dataset_utils.py`` does, without TensorFlow."""
    lines = (line for line in path.read_bytes().decode().split("\n") if line)
    return {int(line[: line.index(":")]): line[line.index(":") + 1 :] for line in lines}


@pytest.mark.parametrize("base", [0, 1])
def test_labels_in_the_form_that_slim_reads(tmp_path: Path, base: int) -> None:
    write_labels(tmp_path, [b"n01", b"3:2", b"n03"], [b"tench: fish", b"", b""], base, numbered=True)
    named = [*["background"] * base, "n01\ttench: fish", "3:2", "n03"]
    assert labels_as_slim_reads_them(tmp_path / "labels.txt") == dict(enumerate(named))
    numbered = read_labels(tmp_path)
    write_labels(tmp_path, [b"n01", b"3:2", b"n03"], [b"tench: fish", b"", b""], base)
    assert read_labels(tmp_path) == numbered
    with pytest.raises(ValueError, match=r"substring not found|invalid literal"):
        labels_as_slim_reads_them(tmp_path / "labels.txt")


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("names", [[b"0:a", b"1:b"], [b"0:a", b"b"], [b"1:a", b"2:b"], [b"0:0:a"], [b"0:"], []])
def test_names_that_look_numbered_keep_their_numbers(tmp_path: Path, names: list[bytes], *, numbered: bool) -> None:
    write_labels(tmp_path, names, [b""] * len(names), 0, numbered=numbered)
    assert [label.name.encode() for label in read_labels(tmp_path)] == names


def test_rejects_round_trip_also_odd_names(tmp_path: Path) -> None:
    rejects = (Reject('a/caf\udce9 "x"\n.jpg', "train", "the file is empty"), Reject("b", "test", "\u00e9"))
    assert read_rejects(tmp_path) == ()
    write_rejects(tmp_path, rejects)
    assert read_rejects(tmp_path) == rejects
    assert (tmp_path / "rejects.jsonl").read_bytes().count(b"\n") == 2


@pytest.mark.parametrize(
    "line",
    ['{"key": 1', '{"key": 1, "split": "train", "reason": "x"}', '{"key": "a", "split": null}', "[]", "[" * 100_000],
    ids=["cut", "a number", "a part", "a list", "deep"],
)
def test_a_damaged_reject_is_named(tmp_path: Path, line: str) -> None:
    write_rejects(tmp_path, [Reject("a", "train", "x")])
    with (tmp_path / "rejects.jsonl").open("a") as file:
        file.write(line)
    with pytest.raises(ManifestError, match="line 2") as caught:
        read_rejects(tmp_path)
    assert caught.value.record == 1
