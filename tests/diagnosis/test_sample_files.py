"""Which files a diagnosis looks at: those that are read, wherever the dataset has its bytes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stoker
from stoker.cli.main import main
from stoker.diagnosis.files import files_of, look_at_files
from stoker.records.inflate import compression_of

if TYPE_CHECKING:
    from pathlib import Path


def test_of_compressed_shards_the_inflated_ones(photos: Path, tmp_path: Path) -> None:
    assert main(["build", str(photos), str(tmp_path / "out"), "--shards", "2", "--compression", "gzip"]) == 0
    train = stoker.open(tmp_path / "out", split="train")
    files = files_of(train)
    assert len(files) == 2
    assert {compression_of(path) for path in files} == {"none"}
    assert sum(path.stat().st_size for path in files) == train.size_bytes == look_at_files(train).size_bytes


def test_of_shards_and_images_they_themselves(dataset: Path, photos: Path) -> None:
    built, loose = stoker.open(dataset, split="train"), stoker.open(photos, split="train")
    assert files_of(built) == [shard.path for shard in built.shards]
    assert len(files_of(loose)) == len(loose)
    assert all(path.is_relative_to(photos / "train") and path.is_file() for path in files_of(loose))
    assert len(files_of(loose, 5)) == 5
    assert (
        look_at_files(stoker.mix([built, loose], label_offsets=[0, 0])).size_bytes
        == built.size_bytes + loose.size_bytes
    )
