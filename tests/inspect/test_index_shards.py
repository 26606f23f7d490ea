"""`stoker index` makes TFRecords random-access."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import stoker
from loader.shards import write_shards
from stoker.cli.main import main
from stoker.format.index import index_path

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_indexes_are_written_left_alone_or_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards = write_shards(tmp_path, 10, 3)
    assert main(["index", str(tmp_path)]) == 0
    assert "3 files, 10 records: 3 written" in capsys.readouterr().out
    index = index_path(shards[1])
    text = index.read_text()
    assert len(text.splitlines()) == 3
    index_path(shards[0]).write_text("0 99\n")
    index.write_text(text[:-2])
    assert main(["index", *map(str, shards), "--json"]) == 0
    outcomes = [shard["outcome"] for shard in json.loads(capsys.readouterr().out)["shards"]]
    assert outcomes == ["rewritten", "rewritten", "up to date"]
    assert index.read_text() == text
    assert len(stoker.open(tmp_path)) == 10


def test_a_damaged_file_is_named_and_the_others_are_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shards = write_shards(tmp_path, 9, 3)
    shards[1].write_bytes(shards[1].read_bytes()[:-1])
    assert main(["index", f"{tmp_path}/train-*"]) == 4
    printed = capsys.readouterr().out
    assert "damaged: record 2 at byte" in printed
    assert str(shards[1]) in printed
    assert "1 damaged" in printed
    assert not index_path(shards[1]).exists()
    assert index_path(shards[2]).exists()


def test_a_pattern_that_names_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", str(tmp_path / "*.tfrecord")]) == 2
    assert "no file matches it" in capsys.readouterr().err


def test_what_a_shell_names_besides_shards_is_left_alone(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", *map(str, dataset.iterdir())]) == 0
    assert "3 files, 50 records: 3 up to date" in capsys.readouterr().out


def test_an_index_that_cannot_be_written_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shards = write_shards(tmp_path, 6, 2)
    index_path(shards[0]).mkdir(parents=True)
    assert main(["index", str(tmp_path)]) == 1
    assert "1 failed, 1 written" in capsys.readouterr().out
    assert index_path(shards[1]).is_file()
