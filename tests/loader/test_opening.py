"""Opening datasets that are whole, of other origin, and damaged."""

from __future__ import annotations

import gzip
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from loader.shards import image, write_shards
from stoker.cli.main import main
from stoker.errors import ConfigError, DatasetNotFoundError, IndexMismatchError, ShardError, SourceError
from stoker.format.index import index_path
from stoker.inspect import dataset_info
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli


def test_shards_of_other_origin_open_by_directory_pattern_or_file(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 11, 3)
    for path in (tmp_path, str(tmp_path / "train-*-of-*3"), str(tmp_path)):
        opened = stoker.open(path)
        assert (len(opened), opened.split, len(opened.shards)) == (11, "train", 3)
        assert opened.labels.tolist() == list(range(1, 12))
    assert len(stoker.open(shards[1])) == 4
    sample = stoker.open(tmp_path)[-1]
    assert (sample.index, sample.label, sample.source, sample.encoded) == (10, 11, "picture-10.JPEG", image(10))
    assert sample.decode().shape[2] == 3
    with pytest.raises(IndexError):
        stoker.open(tmp_path)[11]


def test_an_index_beside_the_shard_is_what_a_scan_finds(tmp_path: Path) -> None:
    shard = write_shards(tmp_path, 5, 1)[0]
    rows = stoker.open(shard).shards[0].extents
    assert main(["index", str(shard)]) == 0
    index = index_path(shard)
    assert index.read_text() == "".join(f"{offset} {size}\n" for offset, size in rows.tolist())
    assert (stoker.open(shard).shards[0].extents == rows).all()


def test_an_index_of_another_shard_is_refused(tmp_path: Path) -> None:
    shard = write_shards(tmp_path, 5, 1)[0]
    assert main(["index", str(shard)]) == 0
    index = index_path(shard)
    index.write_text("".join(index.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(IndexMismatchError, match="stoker index"):
        stoker.open(shard)


def test_an_index_with_a_wrong_boundary_is_found_when_read(tmp_path: Path) -> None:
    shard = write_shards(tmp_path, 5, 1)[0]
    rows = stoker.open(shard).shards[0].extents.astype(np.int64)
    rows[1, 1] += 4
    rows[2] += (4, -4)
    index_path(shard).parent.mkdir()
    index_path(shard).write_text("".join(f"{offset} {size}\n" for offset, size in rows.tolist()))
    train = stoker.open(shard)
    with (
        stoker.Loader(train, batch_size=5, transform=stoker.Resize(8)) as loader,
        pytest.raises(ShardError, match="index"),
    ):
        list(loader)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetNotFoundError, match="is not a dataset"):
        stoker.open(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError):
        stoker.open(tmp_path)
    write_shards(tmp_path, 6, 3)[1].unlink()
    with pytest.raises(DatasetNotFoundError, match="lacks shards"):
        stoker.open(tmp_path)


def test_a_split_must_be_given_when_there_are_several(tmp_path: Path) -> None:
    write_shards(tmp_path, 4, 1)[0].rename(tmp_path / "train.tfrecord")
    write_shards(tmp_path, 2, 1)[0].rename(tmp_path / "val.tfrecord")
    with pytest.raises(ConfigError, match="train, validation"):
        stoker.open(tmp_path)
    assert len(stoker.open(tmp_path, "validation")) == len(stoker.open(tmp_path, "val")) == 2
    with pytest.raises(ConfigError, match="no split 'test'"):
        stoker.open(tmp_path, split="test")


def test_a_shard_cut_in_the_middle_is_named(tmp_path: Path) -> None:
    shard = write_shards(tmp_path, 5, 1)[0]
    shard.write_bytes(shard.read_bytes()[:-9])
    with pytest.raises(ShardError) as caught:
        stoker.open(shard)
    assert caught.value.path == str(shard)
    assert caught.value.record == 4


def test_a_damaged_length_in_a_compressed_shard_is_named(tmp_path: Path) -> None:
    shard = write_shards(tmp_path, 9, 1)[0]
    data = bytearray(shard.read_bytes())
    data[8] ^= 1  # the checksum of the first length
    for path in tmp_path.iterdir():
        path.unlink()
    shard.write_bytes(gzip.compress(data))
    with pytest.raises(ShardError, match=r"^record 0 at byte 0 of [^ ]*/train-00000-of-00001: ") as caught:
        stoker.open(shard)
    assert (caught.value.path, caught.value.record, caught.value.offset) == (str(shard), 0, 0)


def test_a_dataset_says_what_it_is(tmp_path: Path) -> None:
    write_shards(tmp_path, 4, 2)
    assert repr(stoker.open(tmp_path)) == f"<stoker.Dataset {str(tmp_path)!r} split='train': 4 samples in 2 shards>"


def test_messages_call_it_as_people_do() -> None:
    with pytest.raises(TypeError, match=r"^stoker\.open has no setting 'splt': did you mean split=\?"):
        stoker.open("anywhere", splt="train")  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(stoker.open)) is stoker.open
    assert repr(stoker.open).startswith("<function open at ")


def test_options_of_a_listing_are_refused_for_records(tmp_path: Path) -> None:
    write_shards(tmp_path, 3, 1)
    with pytest.raises(ConfigError, match=r"labels has no effect on .*, which holds TFRecords"):
        stoker.open(tmp_path, labels="imagenet")


def test_a_list_of_labels_that_does_not_fit_is_named_as_such(tmp_path: Path) -> None:
    write_files(tmp_path, {"images/cat/1.jpg": image(1), "labels.txt": "dog\n"})
    with pytest.raises(SourceError, match=r"^the label map .* does not name 1 of the classes: cat"):
        stoker.open(tmp_path / "images", labels=str(tmp_path / "labels.txt"))


def test_every_command_says_the_same_of_what_lies_at_a_path(tmp_path: Path, cli: Cli) -> None:
    write_files(tmp_path, {"rejects.jsonl": b"", "labels.txt": b"cat\n", "empty.txt": b"", "list.txt.idx": b"0 9\n"})
    for folder in ("empty", "classes/cat", "records/1.0.0"):
        (tmp_path / folder).mkdir(parents=True)
    write_shards(tmp_path / "records/1.0.0", 4, 1)
    refused = {
        "empty": "is not a dataset: the directory is empty",
        "classes": "is not a dataset: it holds class folders but no image in them",
        "empty.txt": "is not a dataset: it names no image",
        "records": f"the TFRecords are in {tmp_path}/records/1.0.0, give that",
        "labels.txt": f"but the labels.txt of a dataset; give the directory, {tmp_path}",
        "rejects.jsonl": "but the rejects.jsonl of a dataset",
        "list.txt.idx": "but the index of one; give the TFRecord itself",
        "none": "there is no such file or directory",
    }
    for name, message in refused.items():
        for command in ("info", "audit", "doctor"):
            assert message in cli(command, tmp_path / name, code=2)


def test_an_unfinished_build_is_called_so(tmp_path: Path, cli: Cli) -> None:
    begun = write_files(tmp_path / "begun", {"build.journal": b""})
    for words in (["audit"], ["verify"], ["index"], ["build", tmp_path / "out"], ["repack", tmp_path / "out"]):
        command, *destination = words
        assert f"{begun} is an unfinished build, repack or merge" in cli(command, begun, *destination, code=2)
    assert "unfinished build" in cli("merge", begun, begun, tmp_path / "out", code=2)


def test_an_option_that_leads_nowhere_is_no_matter_of_the_records_beside_images(tmp_path: Path, cli: Cli) -> None:
    write_files(tmp_path / "photos", {"cat/0.jpg": b"x", "dog/0.jpg": b"x"})
    write_shards(tmp_path / "photos", 4, 1)
    labels = ["--labels", tmp_path / "none.txt"]
    assert "none.txt does not exist" in cli("build", tmp_path / "photos", tmp_path / "out", *labels, code=2)


def test_a_list_of_urls_is_described_without_a_request(tmp_path: Path) -> None:
    urls = write_files(tmp_path, {"urls.csv": b"url,label\nhttp://127.0.0.1:9/a.jpg,cat\n"}) / "urls.csv"
    assert dataset_info(urls).splits["train"].images == 1  # type: ignore[union-attr]
