"""`dataset_info` tells finished, unfinished and foreign apart, and what each holds."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import example, tfrecord
from small_datasets import list_again, write_dataset
from sources.making import fill
from stoker.errors import (
    ConfigError,
    CorruptRecordError,
    DatasetNotFoundError,
    ExampleError,
    ManifestError,
    ShardError,
    SourceError,
)
from stoker.format import RecordKeys
from stoker.format.index import write_index
from stoker.format.journal import JOURNAL_VERSION, with_checksum
from stoker.inspect.info import (
    ClassCount,
    DatasetInfo,
    ForeignInfo,
    ForeignSplit,
    ImagesInfo,
    ImageSplit,
    KeySummary,
    UnfinishedInfo,
    dataset_info,
)
from stoker.sources import SourceOptions
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

Info = TypeVar("Info", DatasetInfo, ForeignInfo, ImagesInfo, UnfinishedInfo)


def info_of(kind: type[Info], path: Path, **settings: Any) -> Info:
    """What is said of a path, which is of this kind."""
    info = dataset_info(path, **settings)
    assert isinstance(info, kind)
    return info


def test_a_finished_dataset_is_its_manifest_and_its_classes(tmp_path: Path) -> None:
    manifest = write_dataset(tmp_path, {"train": [4, 3], "validation": [2]})
    info = info_of(DatasetInfo, tmp_path)
    assert (info.path, info.manifest) == (str(tmp_path), manifest)
    assert info.histogram == (
        ClassCount(1, "n01", "red kite, Milvus milvus", {"train": 3, "validation": 0}),
        ClassCount(2, "n02", "", {"train": 2, "validation": 1}),
        ClassCount(3, "n03", "café", {"train": 2, "validation": 1}),
    )
    assert [known.total for known in info.histogram] == [3, 3, 3]


def test_classes_keep_their_ids_where_labels_are_missing(tmp_path: Path) -> None:
    write_dataset(tmp_path, {"train": [3]})
    (tmp_path / "labels.txt").write_text("background\nn01\n")
    list_again(tmp_path, "labels.txt")
    histogram = info_of(DatasetInfo, tmp_path).histogram
    assert [(known.label, known.name) for known in histogram] == [(1, "n01"), (2, ""), (3, "")]
    (tmp_path / "labels.txt").unlink()
    histogram = info_of(DatasetInfo, tmp_path).histogram
    assert [(known.label, known.name) for known in histogram] == [(1, ""), (2, ""), (3, "")]


def test_a_damaged_manifest_is_an_error_and_not_foreign(tmp_path: Path) -> None:
    write_dataset(tmp_path, {"train": [1]})
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ManifestError, match=r"manifest\.json is damaged"):
        dataset_info(tmp_path)


SETTINGS = {"shards": {"train": 2, "validation": 1}, "seed": 3}
HEADER = {"format": "stoker-journal", "version": JOURNAL_VERSION, "settings": SETTINGS}


def entry(name: str, rejects: int = 0) -> dict[str, object]:
    reject = ["a/b.JPEG", 0, "the file is empty"]
    line = {
        "shard": name,
        "split": "train",
        "records": 5,
        "bytes": 700,
        "crc32c": "00ff00ff",
        "rejects": [reject] * rejects,
    }
    return line | {"converted": {}, "annotation_errors": [], "formats": {}}


def journal_lines(*lines: object) -> list[bytes]:
    """The settings and the entries of a journal, each with its checksum."""
    settings = lines[0].get("settings") if lines and isinstance(lines[0], dict) else None
    texts = [json.dumps(line).encode() for line in lines]
    return [with_checksum(text, settings if number else None) for number, text in enumerate(texts)]


def journal(directory: Path, *lines: object, tail: bytes = b"") -> UnfinishedInfo:
    (directory / "build.journal").write_bytes(b"".join(journal_lines(*lines)) + tail)
    return info_of(UnfinishedInfo, directory)


def test_an_unfinished_build_says_how_far_it_is_and_what_to_do(tmp_path: Path) -> None:
    info = journal(tmp_path, HEADER, entry("a", 1), entry("b"))
    assert (info.shards, info.planned_shards, info.records, info.size_bytes, info.rejects) == (2, 3, 10, 1400, 1)
    assert info.settings["seed"] == 3
    assert info.remedy == "run the same 'stoker build' again to finish it"


def test_a_withheld_manifest_asks_for_the_rejects_to_be_accepted(tmp_path: Path) -> None:
    assert "--max-rejects 3" in journal(tmp_path, HEADER, entry("a", 1), entry("b", 2), entry("c")).remedy
    assert "--max-rejects" not in journal(tmp_path, HEADER, entry("a"), entry("b"), entry("c")).remedy


@given(st.data())
def test_a_cut_journal_counts_its_whole_lines(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    lines = journal_lines(HEADER, entry("a"), entry("b"))
    whole = b"".join(lines)
    cut = data.draw(st.integers(0, len(whole)) | st.sampled_from([len(lines[0]), len(lines[0] + lines[1])]))
    info = journal(tmp_path_factory.mktemp("build"), tail=whole[:cut])
    ends = whole[:cut].count(b"\n")
    assert info.shards == max(0, ends - 1)
    assert info.planned_shards == (3 if ends else None)


@pytest.mark.parametrize(
    "line", [[1], 5, None, {"shard": "b"}, entry("b") | {"records": None}, entry("b") | {"rejects": 1}]
)
def test_a_journal_ends_at_its_first_odd_line(tmp_path: Path, line: object) -> None:
    assert journal(tmp_path, HEADER, entry("a"), line, entry("c")).shards == 1


@pytest.mark.parametrize(
    "header", [[], HEADER | {"version": 1}, {"settings": 7}, {"settings": {"shards": {"train": "x"}}}, {"settings": {}}]
)
def test_a_header_that_says_nothing_leaves_the_plan_unknown(tmp_path: Path, header: object) -> None:
    assert journal(tmp_path, header, entry("a")).planned_shards is None


def foreign(path: Path, *records: example.Features) -> Path:
    path.write_bytes(b"".join(tfrecord.frame(example.write(features)) for features in records))
    return path


def test_foreign_keys_are_summed_up_over_the_first_records(tmp_path: Path) -> None:
    a = foreign(
        tmp_path / "train-00000-of-00003.tfrecord",
        {"x": ("bytes", [b"12345"]), "y": ("int64", [1])},
        {"x": ("bytes", [b"1", b"22"])},
    )
    foreign(tmp_path / "train-00001-of-00003.tfrecord", {"y": ("float", [])}, {"z": ("int64", [7])})
    info = info_of(ForeignInfo, tmp_path, records=3)
    assert info.looked_at == 3
    assert info.keys == {"x": KeySummary(("bytes",), 2, 1, 2, 8), "y": KeySummary(("int64", "float"), 2, 0, 1, 0)}
    sizes = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert info.splits == {"train": ForeignSplit(2, sizes, None, (2,), "none")}
    for target in (a, tmp_path / "train-00000*"):
        alone = info_of(ForeignInfo, target)
        assert (alone.looked_at, alone.splits["train"].shards) == (2, 1)


def test_foreign_records_are_counted_where_every_index_is_right(tmp_path: Path) -> None:
    path = foreign(tmp_path / "val.tfrecord", {}, {}, {})
    write_index(path, rows_of(path))
    assert info_of(ForeignInfo, tmp_path).splits["validation"].records == 3
    foreign(path, {}, {})
    assert info_of(ForeignInfo, tmp_path).splits["validation"].records is None


def test_one_file_without_an_index_leaves_the_count_of_its_split_open(tmp_path: Path) -> None:
    for number in range(3):
        path = foreign(tmp_path / f"train-0000{number}-of-00003", {}, {})
        if number != 1:  # also behind it, where counting could begin anew
            write_index(path, rows_of(path))
    assert info_of(ForeignInfo, tmp_path).splits["train"].records is None


def rows_of(path: Path) -> NDArray[np.uint64]:
    return np.asarray([(record.offset, record.size) for record in tfrecord.scan(path.read_bytes())], np.uint64)


def test_damage_of_a_foreign_record_is_named(tmp_path: Path) -> None:
    path = foreign(tmp_path / "a.tfrecord", {}, {"x": ("bytes", [b"12345"])})
    good = path.read_bytes()
    path.write_bytes(good[:-6] + b"!" + good[-5:])
    with pytest.raises(CorruptRecordError) as caught:
        dataset_info(path)
    assert (caught.value.path, caught.value.offset) == (str(path), len(tfrecord.frame(example.write({}))))
    info_of(ForeignInfo, path, records=1)
    path.write_bytes(good + tfrecord.frame(b"\xff"))
    with pytest.raises(ExampleError):
        dataset_info(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff" * 40, "not a TFRecord file"),
        (b"\x1f\x8b" + b"\0" * 40, "GZIP-compressed"),
        (b"abc", "the file ends after 3"),
        (tfrecord.frame(b"abc")[:-1], "ends"),
    ],
)
def test_a_file_that_is_not_a_tfrecord_is_an_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    with pytest.raises(ShardError, match=message):
        dataset_info(path)


def test_nothing_there_is_an_error(tmp_path: Path) -> None:
    for target in (tmp_path, tmp_path / "none", tmp_path / "*.tfrecord"):
        with pytest.raises(DatasetNotFoundError, match="is not a dataset"):
            dataset_info(target)
    with pytest.raises(ConfigError, match="--records is 0"):
        dataset_info(tmp_path, records=0)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    counts = {"train/cat": 3, "train/dog": 1, "val/dog": 2, "val/eel": 1}
    files = {f"{name}/{number}.jpg": b"x" * 10 for name, count in counts.items() for number in range(count)}
    return write_files(tmp_path / "photos", files | {"words.txt": b"cat\thouse cat\n", "train/cat/readme.md": b""})


def test_images_that_are_not_built(photos: Path) -> None:
    info = info_of(ImagesInfo, photos)
    assert info.splits == {"train": ImageSplit(4, 40, 0), "validation": ImageSplit(3, 30, 0)}
    assert [(known.name, known.text, known.counts) for known in info.histogram] == [
        ("cat", "house cat", {"train": 3, "validation": 0}),
        ("dog", "", {"train": 1, "validation": 2}),
        ("eel", "", {"train": 0, "validation": 1}),
    ]
    assert info.ignored == {".md": 1}
    assert info.warnings == ("classes that are not in train get labels all the same: eel",)


def test_images_of_a_list_a_configuration_and_a_tar(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("photos/train/cat/0.jpg\nphotos/train/dog/0.jpg\nphotos/train/dog/none.jpg\n")
    (tmp_path / "ilsvrc.json").write_text('{"data": {"train_filelist": "list.txt", "batch_size": 7}}')
    with tarfile.open(tmp_path / "photos.tar", "w") as tar:
        tar.add(photos / "train", arcname=".")
    for name, split in (
        ("list.txt", ImageSplit(3, 20, 0)),
        ("ilsvrc.json", ImageSplit(3, 20, 0)),
        ("photos.tar", ImageSplit(4, 40, 0)),
    ):
        assert info_of(ImagesInfo, tmp_path / name).splits == {"train": split}


def test_what_holds_no_images_is_not_taken_for_some(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not/a list\nof/files\n")
    for path, message in (
        (tmp_path / "notes.txt", "it is a text file"),
        (fill(tmp_path / "texts", "1.txt"), "cannot be read as images: .* holds no class folder; put the images"),
    ):
        with pytest.raises(DatasetNotFoundError, match=message):
            dataset_info(path)
    with pytest.raises(SourceError, match=r"^the label map .*none\.txt does not exist"):
        dataset_info(photos, options=SourceOptions(labels=str(tmp_path / "none.txt")))
    with pytest.raises(ConfigError, match="it holds no TFRecords"):
        dataset_info(photos, keys=RecordKeys("image"))
