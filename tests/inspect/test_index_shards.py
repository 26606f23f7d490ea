"""`stoker index` makes TFRecords random-access."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stoker
from loader.shards import write_shards
from stoker.format.index import index_path

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli


def test_indexes_are_written_left_alone_or_replaced(tmp_path: Path, cli: Cli) -> None:
    shards = write_shards(tmp_path, 10, 3)
    assert "3 files, 10 records: 3 written" in cli("index", tmp_path)
    index = index_path(shards[1])
    text = index.read_text()
    assert len(text.splitlines()) == 3
    index_path(shards[0]).write_text("0 99\n")
    index.write_text(text[:-2])
    cli("index", *shards, "--json")
    outcomes = [shard["outcome"] for shard in cli.json["shards"]]
    assert outcomes == ["rewritten", "rewritten", "up to date"]
    assert index.read_text() == text
    assert len(stoker.open(tmp_path)) == 10


def test_a_damaged_file_is_named_and_the_others_are_done(tmp_path: Path, cli: Cli) -> None:
    shards = write_shards(tmp_path, 9, 3)
    shards[1].write_bytes(shards[1].read_bytes()[:-1])
    cli("index", f"{tmp_path}/train-*", code=4)
    printed = cli.out
    assert "damaged: record 2 at byte" in printed
    assert str(shards[1]) in printed
    assert "1 damaged" in printed
    assert not index_path(shards[1]).exists()
    assert index_path(shards[2]).exists()


def test_a_pattern_that_names_nothing_is_an_error(tmp_path: Path, cli: Cli) -> None:
    assert "no file matches it" in cli("index", tmp_path / "*.tfrecord", code=2)


def test_what_a_shell_names_besides_shards_is_left_alone(dataset: Path, cli: Cli) -> None:
    assert "3 files, 50 records: 3 up to date" in cli("index", *dataset.iterdir())


def test_an_index_that_cannot_be_written_does_not_stop_the_others(tmp_path: Path, cli: Cli) -> None:
    shards = write_shards(tmp_path, 6, 2)
    index_path(shards[0]).mkdir(parents=True)
    cli("index", tmp_path, code=1)
    assert "1 failed, 1 written" in cli.out
    assert index_path(shards[1]).is_file()
