"""``stoker shuffle``: the table, the JSON, refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import stoker
from reference import example, pictures, tfrecord
from stoker.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def write_sorted(path: Path, classes: int, images: int) -> None:
    """One shard whose records are sorted by class, as shards of other origin often are."""
    picture = pictures.jpeg(16, 16, 0)
    frames = []
    for number in range(classes * images):
        features = {
            "image/encoded": ("bytes", [picture]),
            "image/class/label": ("int64", [number // images]),
        }
        frames.append(tfrecord.frame(example.write(features)))
    path.write_bytes(b"".join(frames))


def test_the_orders_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = tmp_path / "train-00000-of-00001"
    write_sorted(shard, 20, 20)
    words = ["shuffle", str(tmp_path), "--batch-size", "20", "--block", "20", "--window", "4"]
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    none, block, full = document["rows"]
    assert [row["order"] for row in document["rows"]] == ["none", "block:20:4", "full"]
    assert (none["classes"], none["blocks_read"]) == (1.0, 1)
    assert (block["blocks_read"], full["blocks_read"]) == (4, 20)
    assert full["quality"] == 1.0
    assert none["quality"] < block["quality"] < full["quality"]
    assert 3.5 < block["classes"] <= 5 < full["classes"]
    size = shard.stat().st_size
    assert (none["bytes_read"], block["bytes_read"], full["bytes_read"]) == (size // 20, size // 5, size)
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "400 samples of train, batches of 20, blocks of 20" in printed
    rows = {line.split()[0]: line.split()[1:] for line in printed.splitlines() if line}
    assert rows["full"][:2] == ["1.00", "20"]
    assert rows["block:20:4"][-1] == f"{block['classes']:.1f}"


def test_a_built_dataset_and_a_tree_of_images(photos: Path, dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shuffle", str(dataset), "--split", "validation", "--json"]) == 0
    built = json.loads(capsys.readouterr().out)
    assert built["samples"] == len(stoker.open(dataset, split="validation"))
    assert [row["classes"] for row in built["rows"]] == [5.0] * 3  # one batch is all
    assert main(["shuffle", str(photos)]) == 0
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines() if line}
    assert rows["none"][-2] == "-"  # files are no shards


def test_where_a_label_is_missing_no_classes_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shard = tmp_path / "train-00000-of-00001"
    write_sorted(shard, 3, 1)
    bare = example.write({"image/encoded": ("bytes", [pictures.jpeg(16, 16, 0)])})
    shard.write_bytes(shard.read_bytes() + tfrecord.frame(bare))
    assert main(["shuffle", str(tmp_path), "--json"]) == 0
    assert [row["classes"] for row in json.loads(capsys.readouterr().out)["rows"]] == [None] * 3


@pytest.mark.parametrize(
    ("option", "named"), [("--batch-size", "batch-size"), ("--block", "block"), ("--window", "window")]
)
def test_numbers_that_make_no_sense(option: str, named: str, dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shuffle", str(dataset), option, "0"]) == 2
    assert f"{named} is 0" in capsys.readouterr().err


def test_a_dataset_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shuffle", str(tmp_path / "nothing")]) == 2
    assert "no dataset at" in capsys.readouterr().err
