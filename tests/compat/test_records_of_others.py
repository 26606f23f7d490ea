"""TFRecords that Stoker did not write: found by content, read without a loss, and refused with what to type.

All of them are written, and read again, by the slow twins of the tests alone.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import shutil
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import stoker
from loader.remote_datasets import copy
from reference import example, pictures, tfrecord
from stoker.errors import ConfigError, DatasetNotFoundError, ExampleError, SourceWarning
from stoker.format import holds_records
from stoker.inspect import ForeignInfo, dataset_info
from storage.store_folders import store_folder
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from stoker.storage import Location

Record = dict[str, tuple[str, list[Any]]]


def framed(records: list[Record]) -> bytes:
    return b"".join(tfrecord.frame(example.write(record)) for record in records)


def record(label: int, number: int = 0, **more: tuple[str, list[Any]]) -> Record:
    image = pictures.jpeg(24, 20, number)
    return {"image/encoded": ("bytes", [image]), "image/class/label": ("int64", [label]), **more}


def labels_in(directory: Path, pattern: str = "train-*") -> Counter[int]:
    """How often each label is stored in the shards of a directory."""
    shards = [path for path in directory.glob(pattern) if path.suffix != ".idx"]
    records = [record for path in shards for record in tfrecord.scan(path.read_bytes())]
    return Counter(example.parse(record.payload)["image/class/label"][1][0] for record in records)


@pytest.fixture
def fake_records(tmp_path: Path) -> Path:
    """As ``fake_tf_record_data`` of tf_cnn_benchmarks has them: Google's keys and names, labels from 0 to 9."""
    directory = tmp_path / "fake"
    directory.mkdir()
    for shard in range(4):
        records = [record(number % 10, number) for number in range(5 * shard, 5 * shard + 5)]
        (directory / f"train-{shard:05d}-of-00004").write_bytes(framed(records))
    return directory


STORED = Counter(dict.fromkeys(range(10), 2))


def test_labels_from_0_survive_everything(cli: Cli, fake_records: Path, tmp_path: Path) -> None:
    assert Counter(stoker.open(fake_records).labels.tolist()) == STORED
    for words in (["verify", fake_records], ["index", fake_records], ["repack", fake_records, tmp_path / "out"]):
        assert "warning" not in cli(*words)
    assert labels_in(tmp_path / "out") == STORED
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    assert manifest["splits"]["train"]["class_counts"] == [2] * 10
    assert "warning" not in cli("repack", fake_records, tmp_path / "tfds", "--preset", "tfds")
    assert Counter(stoker.open(tmp_path / "tfds").labels.tolist()) == STORED


def test_a_label_0_where_classes_count_from_1_has_a_remedy(fake_records: Path, tmp_path: Path, cli: Cli) -> None:
    words = ["repack", fake_records, tmp_path / "out", "--preset", "imagenet"]
    stderr = cli(*words, code=2)
    assert f"{fake_records}/train-00000-of-00004, record 0 at byte 0: label 0 is not a class" in stderr
    assert "--from-label-base 0" in stderr
    cli(*words, "--from-label-base", 0)
    assert labels_in(tmp_path / "out") == Counter(dict.fromkeys(range(1, 11), 2))
    cli("repack", fake_records, tmp_path / "other", "--from-label-base", 1, code=2)
    cli("verify", fake_records, "--label-base", 1, code=4)
    assert "label 0 is below 1, the number of the first class" in cli.out


def test_labels_from_1_stay_and_a_warning_names_the_empty_class(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "train-00000-of-00001").write_bytes(framed([record(label, label) for label in (1, 2, 3, 3)]))
    stored = Counter({1: 1, 2: 1, 3: 2})
    assert "has the label 0, so class 0 is empty" in cli("repack", tmp_path / "train-*", tmp_path / "kept")
    assert labels_in(tmp_path / "kept") == stored
    assert "warning" not in cli("repack", tmp_path / "train-*", tmp_path / "one", "--from-label-base", 1)
    assert json.loads((tmp_path / "one/manifest.json").read_text())["splits"]["train"]["unlabelled"] == 0


def test_a_label_below_minus_1_is_not_taken_for_no_class(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "train-00000-of-00001").write_bytes(framed([record(1), record(-7, 1)]))
    assert re.search(
        r"train-00000-of-00001, record 1 at byte \d+: label -7 is negative",
        cli("repack", tmp_path / "train-*", tmp_path / "out", code=2),
    )


def test_records_of_googles_writer_become_the_dataset_of_the_images(cli: Cli, photos: Path, tmp_path: Path) -> None:
    """The preset writes Google's bytes; without manifest and list of classes they could be anybody's."""
    preset = ["--preset", "imagenet", "--shards", 2, "--seed", 3]
    cli("build", photos, tmp_path / "built", *preset)
    (tmp_path / "old").mkdir()
    for path in (tmp_path / "built").glob("*-of-*"):
        shutil.copy(path, tmp_path / "old" / path.name)
    cli("repack", tmp_path / "old", tmp_path / "new", *preset)
    built, repacked = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("built", "new"))
    assert built["dataset_id"] == repacked["dataset_id"]


def test_a_list_of_classes_with_a_background_says_that_they_count_from_1(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00001").write_bytes(framed([record(label, label) for label in (1, 2)]))
    (tmp_path / "labels.txt").write_text("background\ncat\ndog\n")
    opened = stoker.open(tmp_path)
    assert opened.schema.label_base == 1
    assert [known.name for known in opened.classes] == ["background", "cat", "dog"]
    described = dataset_info(tmp_path)
    assert isinstance(described, ForeignInfo)
    assert described.layout is not None
    assert described.layout.label_base == 1
    assert opened.labels.tolist() == [1, 2]
    cli("repack", tmp_path / "train-*", tmp_path / "out", "--preset", "tfds")
    assert sorted(stoker.open(tmp_path / "out").labels.tolist()) == [0, 1]
    assert [known.name for known in stoker.open(tmp_path / "out").classes] == ["cat", "dog"]


def test_a_list_of_one_split_does_not_move_the_labels_of_another(tmp_path: Path, cli: Cli) -> None:
    shards = dict.fromkeys(("train/a.tfrecord", "val/a.tfrecord"), framed([record(1), record(2)]))
    write_files(tmp_path / "old", {**shards, "train/labels.txt": "background\ncat\ndog\n"})
    words = ["repack", tmp_path / "old", tmp_path / "new"]
    assert "count from different numbers: train from 1, validation from 0" in cli(*words, code=2)
    cli(*words, "--from-label-base", 1)
    labels = [sorted(stoker.open(tmp_path / "new", split).labels.tolist()) for split in ("train", "val")]
    assert labels[0] == labels[1]


COMPRESS = {"plain": bytes, "gzip": gzip.compress, "zlib": zlib.compress}
NAMES = ["flowers-00.tfrec", "a.tfr", "b.record", "c.records", "noextension", "d.gz", "e.Z", "train-00000-of-00001.rec"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.slow
def test_shards_are_found_by_content(tmp_path: Path, name: str, compression: str, cli: Cli) -> None:
    shard = COMPRESS[compression](framed([record(label, label) for label in range(3)]))
    texts = {"README": "Three pictures.\n", "notes.txt": "and words\n"}
    directory = write_files(tmp_path / "other", {name: shard, **texts})
    for path in (directory / name, directory, directory / "*"):
        assert stoker.open(path).labels.tolist() == [0, 1, 2]
        cli("info", path)
        assert "verified 1 shard, 3 records" in cli("verify", path)
    cli("repack", directory, tmp_path / "out")
    assert labels_in(tmp_path / "out") == Counter(range(3))


@pytest.mark.servers
@pytest.mark.parametrize("compression", COMPRESS)
def test_shards_in_a_bucket_are_found_by_content(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    files = {"a.tfrec": COMPRESS[compression](framed([record(4)])), "README": "One picture.\n"}
    bucket = store_folder("s3", request, monkeypatch)
    copy(write_files(tmp_path / "other", files), bucket / "other")
    for path in ("other", "other/a.tfrec", "other/*"):
        assert stoker.open(f"{bucket}/{path}").labels.tolist() == [4]


def test_names_of_any_extension_say_split_and_number(tmp_path: Path) -> None:
    for number in (1, 0):
        name = f"flowers-train-{number:05d}-of-00002.rec"
        (tmp_path / name).write_bytes(framed([record(number, number)]))
    (tmp_path / "val.tfrec").write_bytes(framed([record(2)]))
    assert stoker.open(tmp_path, "train").labels.tolist() == [0, 1]
    assert stoker.open(tmp_path, "validation").labels.tolist() == [2]
    (tmp_path / "flowers-train-00000-of-00002.rec").unlink()
    with pytest.raises(DatasetNotFoundError, match=r"lacks shards \[0\]"):
        stoker.open(tmp_path, "train")


def test_a_directory_is_listed_and_little_of_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train-00000-of-00001.tfrecord").write_bytes(framed([record(0)]))
    for number in range(300):
        (tmp_path / f"{number}.JPEG").write_bytes(b"\xff\xd8")
        (tmp_path / f"{number}.txt").write_bytes(b"text")
    for number in range(250):
        (tmp_path / f"{number}.odd").write_bytes(b"odd")
        (tmp_path / f"picture.{number}").write_bytes(b"odd")
    (tmp_path / "zz.tfrec").write_bytes(framed([record(1)]))
    read: list[str] = []
    held = stoker.format.shard_names.holds_records
    monkeypatch.setattr(
        "stoker.format.shard_names.holds_records", lambda path: held(path) if not read.append(path.name) else False
    )
    assert len(stoker.open(tmp_path)) == 2
    assert Counter(name.partition(".")[2].strip("0123456789") for name in read) == {"odd": 100, "": 100, "tfrec": 1}


@pytest.mark.parametrize("command", ["verify", "index"])
def test_what_is_not_a_shard_is_a_usage_error(dataset: Path, tmp_path: Path, cli: Cli, command: str) -> None:
    (tmp_path / "empty").mkdir()
    write_files(tmp_path, {"words": "words\n", "photo": pictures.jpeg(24, 20, 1), "nothing": b""})
    os.mkfifo(tmp_path / "pipe")
    index = next(dataset.glob("*.idx"))
    messages = {
        dataset / "labels.txt": f"but the labels.txt of a dataset; give the directory, {dataset}",
        dataset / "manifest.json": "but the manifest.json of a dataset",
        dataset / "rejects.jsonl": "but the rejects.jsonl of a dataset",
        index: "but the index of one; give the TFRecord itself",
        tmp_path / "words": "it is a text file; give a TFRecord, a directory of them, or a dataset",
        tmp_path / "photo": "it begins with the bytes ff d8 ff",
        tmp_path / "nothing": "it is empty",
        tmp_path / "empty": "the directory is empty",
        tmp_path / "w*": "1 file matches it, but none begins as a TFRecord does",
        tmp_path / "none": "there is no such file or directory",
        tmp_path / "pipe": "it is a pipe or a device; give a TFRecord",
    }
    for path, message in messages.items():
        error = cli(command, path, code=2)
        assert str(path) in error
        assert message in error


def test_a_folder_of_tfds_is_not_taken_for_class_folders(fake_records: Path, tmp_path: Path, cli: Cli) -> None:
    inner = tmp_path / "tfds/my/1.0.0"
    inner.parent.mkdir(parents=True)
    fake_records.rename(inner)
    for path in (tmp_path / "tfds", tmp_path / "tfds/my"):
        with pytest.raises(DatasetNotFoundError, match=f"the TFRecords are in {inner}, give that"):
            stoker.open(path)
        for words in (["build", path, tmp_path / "out"], ["plan", path], ["repack", path, tmp_path / "out"]):
            assert str(inner) in cli(*words, code=2)
    assert len(stoker.open(inner)) == 20
    for records in (inner, inner / "train-00000-of-00004"):
        assert f"'stoker repack {records} DESTINATION'" in cli("build", records, tmp_path / "out", code=2)


def test_a_manifest_of_another_program_hides_no_folder_of_records(fake_records: Path, tmp_path: Path) -> None:
    inner = tmp_path / "tfds/1.0.0"
    inner.parent.mkdir()
    fake_records.rename(inner)
    (inner / "manifest.json").write_text('{"format": "other"}')
    with pytest.raises(DatasetNotFoundError, match=f"the TFRecords are in {inner}, give that"):
        stoker.open(tmp_path / "tfds")


@pytest.mark.parametrize("name", ["zz.odd", "zz.tfrecord"])
def test_a_tree_of_images_with_a_stray_shard_is_a_tree_of_images(photos: Path, tmp_path: Path, name: str) -> None:
    tree = shutil.copytree(photos, tmp_path / "photos")
    folder = next(path for path in (tree / "train").iterdir() if path.is_dir())
    (folder / name).write_bytes(framed([record(0)]))
    assert len(stoker.open(tree, "train")) == len(stoker.open(photos, "train")) + 1


def test_a_background_in_a_list_does_not_move_one_hot_labels(cli: Cli, tmp_path: Path) -> None:
    pair: Record = {"image": ("bytes", [pictures.jpeg(24, 20, 1)]), "label": ("int64", [1, 0, 0])}
    (tmp_path / "a.tfrecord").write_bytes(framed([pair]))
    (tmp_path / "labels.txt").write_text("background\ncat\ndog\n")
    assert stoker.open(tmp_path).labels.tolist() == [0]
    cli("repack", tmp_path / "a.tfrecord", tmp_path / "out", "--preset", "tfds")
    assert stoker.open(tmp_path / "out").labels.tolist() == [0]


@pytest.mark.parametrize("command", ["info", "repack", "show"])
def test_a_record_that_is_not_an_example_is_named(tmp_path: Path, cli: Cli, command: str) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed([record(0)]) + tfrecord.frame(b"hello world"))
    (tmp_path / "b.tfrecord").write_bytes(tfrecord.frame(b"hello world"))
    more = {"info": (), "repack": (tmp_path / "out",), "show": ("--out", tmp_path / "x.png")}[command]
    error = cli(command, tmp_path / "b.tfrecord", *more, code=1)
    assert "b.tfrecord, record 0 at byte 0: this is not a tf.train.Example" in error
    with pytest.raises(ExampleError, match=f"a.tfrecord, record 1 at byte {len(framed([record(0)]))}: this is not"):
        _ = stoker.open(tmp_path / "a.tfrecord")[1]


def test_an_unreadable_file_matters_among_shards(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(path: Location) -> bool:
        if path.name.startswith("secret"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return holds_records(path)

    monkeypatch.setattr("stoker.format.shard_names.holds_records", refusing)
    tree = shutil.copytree(photos, tmp_path / "photos")
    (tree / "secret.bin").write_bytes(b"x")
    with pytest.warns(SourceWarning, match=r"not used: secret\.bin"):
        assert len(stoker.open(tree, "train")) == len(stoker.open(photos, "train"))
    with pytest.raises(PermissionError, match=r"secret\.bin"):
        stoker.open(tree / "secret.bin")
    (tree / "a.bin").write_bytes(framed([record(0)]))
    with pytest.raises(PermissionError, match=r"secret\.bin"):
        stoker.open(tree)


def test_a_pipe_is_not_waited_for(cli: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / "p*", tmp_path):
        cli("info", path, code=2)


@pytest.mark.parametrize(
    ("name", "text", "classes"),
    [
        ("labels.txt", "cat\ndog\tCanis\n", [("cat", ""), ("dog", "Canis")]),
        ("label.labels.txt", "cat\ndog\n", [("cat", ""), ("dog", "")]),
        ("other.labels.txt", "cat\ndog\n", []),
    ],
)
def test_a_list_beside_shards_is_used(tmp_path: Path, name: str, text: str, classes: list[tuple[str, str]]) -> None:
    pair = {"image": ("bytes", [pictures.jpeg(24, 20, 1)]), "label": ("int64", [1])}
    (tmp_path / "my-train.tfrecord-00000-of-00001").write_bytes(framed([pair]))
    (tmp_path / name).write_text(text)
    opened = stoker.open(tmp_path)
    assert [(known.name, known.text) for known in opened.classes] == classes
    assert opened.labels.tolist() == [1]


def test_a_list_that_names_a_class_twice_is_not_one_of_classes(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed([record(1)]))
    (tmp_path / "labels.txt").write_text("cat\ndog\ncat\n")
    with pytest.warns(UserWarning, match="names 'cat' twice, so it is not a list of classes"):
        assert stoker.open(tmp_path).classes == ()


@pytest.fixture
def odd_keys(tmp_path: Path) -> Path:
    records = [{"jpeg": ("bytes", [pictures.jpeg(40, 30, n)]), "cls": ("int64", [n % 3])} for n in range(12)]
    return write_files(tmp_path / "odd", {"part.tfrec": framed(records)})


def test_an_index_is_not_written_for_other_keys(odd_keys: Path, cli: Cli) -> None:
    assert "jpeg (bytes x 1)" in cli("index", odd_keys, "--image-key", "image", "--label-key", "cls", code=2)
    assert not list(odd_keys.rglob("*.idx"))
    cli("index", odd_keys, "--image-key", "jpeg", "--label-key", "cls", "--label-base", "0")


def commands(path: object, out: Path) -> dict[str, list[object]]:
    return {
        "info": ["info", path],
        "verify": ["verify", path],
        "show": ["show", path, "--out", out / "sheet.png"],
        "page": ["info", path, "--html", out / "page.html"],
        "bench": ["bench", path, "--only", "stoker", "--seconds", "0.1", "--rounds", "1", "--batch-size", "4"],
        "doctor": ["doctor", path, "--seconds", "0.1", "--batch-size", "4"],
        "repack": ["repack", path, out / "new"],
    }


@pytest.mark.parametrize(
    "command",
    ["info", pytest.param("page", marks=pytest.mark.needs("jinja2")), "verify", "show", "bench", "doctor", "repack"],
)
def test_every_command_takes_keys_and_says_so(odd_keys: Path, tmp_path: Path, cli: Cli, command: str) -> None:
    words = commands(odd_keys, tmp_path)[command]
    if command == "info":
        assert "layout: unknown; give --image-key KEY and --label-key KEY" in cli(*words)
    else:
        cli(*words, code=2)
        assert (
            "holds cls (int64 x 1), jpeg (bytes x 1); name the keys of the image and the class with --image-key KEY"
            in cli.err
        )
        assert "damage" not in cli.out + cli.err
    cli(*words, "--image-key", "jpeg", "--label-key", "cls")
    assert "no 'class'" in cli(*words, "--image-key", "jpeg", "--label-key", "class", code=2)


def test_keys_without_an_effect_are_refused(dataset: Path, photos: Path, tmp_path: Path, cli: Cli) -> None:
    for path, why in ((dataset, "its manifest.json says"), (photos, "it holds no TFRecords")):
        with pytest.raises(ConfigError, match=why):
            stoker.open(path, "train", keys=stoker.RecordKeys(label_base=1))
        words = ["show", path, "--out", tmp_path / "a.png", "--image-key", "x"]
        assert f"--image-key has no effect on {path}: {why}" in cli(*words, code=2)
    for words in (["info"], ["verify"]):
        cli(*words, dataset, "--label-key", "x", code=2)


@pytest.mark.parametrize("more", ["image/breed", None], ids=["something else", "no boxes"])
def test_what_may_be_a_class_beside_objects_is_refused_with_what_to_give(tmp_path: Path, more: str | None) -> None:
    record = detection(3, 5) | ({} if more is None else {more: ("int64", [1])})
    if more is None:
        record = {key: feature for key, feature in record.items() if "bbox" not in key}
    (tmp_path / "a.tfrecord").write_bytes(framed([record]))
    with pytest.raises(ConfigError, match="only those of its objects under image/object/class/label") as caught:
        stoker.open(tmp_path)
    assert "--image-key alone for images without a class" in str(caught.value)
    with pytest.raises(ConfigError, match="neither one number nor one-hot"):
        stoker.open(tmp_path, keys=stoker.RecordKeys(label="image/object/class/label"))


BOXES = [(0.0, 0.25, 0.5, 1.0), (0.5, 0.0, 1.0, 0.5)]  # xmin, ymin, xmax, ymax


def detection(*labels: int) -> Record:
    """As TensorFlow's object detection has it: classes of objects, and none of the image."""
    sides = zip(("xmin", "ymin", "xmax", "ymax"), zip(*BOXES, strict=True), strict=True)
    return {
        "image/encoded": ("bytes", [pictures.jpeg(40, 30, 1)]),
        "image/object/class/label": ("int64", list(labels)),
        "image/object/class/text": ("bytes", [b"class %d" % label for label in labels]),
        **{f"image/object/bbox/{side}": ("float", list(values)) for side, values in sides},
    }


def tfds_objects(*labels: int) -> Record:
    """As TFDS has it: all edges in one list, ymin first."""
    edges = [edge for xmin, ymin, xmax, ymax in BOXES for edge in (ymin, xmin, ymax, xmax)]
    return {
        "image": ("bytes", [pictures.jpeg(40, 30, 1)]),
        "label": ("int64", [1]),
        "objects/bbox": ("float", edges),
        "objects/label": ("int64", list(labels)),
    }


@pytest.mark.parametrize(
    ("record_of", "keys"),
    [(detection, None), (detection, stoker.RecordKeys("image/encoded")), (tfds_objects, None)],
    ids=["tf", "tf with a key", "tfds"],
)
def test_boxes_and_classes_of_objects_are_read_and_kept(cli: Cli, tmp_path: Path, record_of: Any, keys: Any) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed([record_of(3, 5)]))
    opened = stoker.open(tmp_path, keys=keys)
    image_label = -1 if record_of is detection else 1
    assert opened.labels.tolist() == [image_label]
    assert opened.object_counts.tolist() == [2]
    assert [(box.xmin, box.ymin, box.xmax, box.ymax) for box in opened[0].boxes] == BOXES
    with stoker.Loader(opened, batch_size=1, transform=stoker.Resize((30, 40)), boxes=stoker.BoxOutput()) as loader:
        (batch,) = loader
    assert batch.boxes.labels.tolist() == [3, 5]
    assert (batch.boxes.corners / np.array([40, 30, 40, 30])).round(5).tolist() == [list(box) for box in BOXES]
    with stoker.Loader(opened, batch_size=2, transform=stoker.ObjectCrops(8)) as loader:
        assert [len(batch.images) for batch in loader] == [2]
    words = ["--image-key", "image/encoded"] if keys else []
    cli("verify", tmp_path / "a.tfrecord", *words)
    cli("repack", tmp_path / "a.tfrecord", tmp_path / "out", *words)
    path = next(path for path in (tmp_path / "out").glob("train-*") if path.suffix != ".idx")
    kept = example.parse(tfrecord.scan(path.read_bytes())[0].payload)
    assert kept["image/object/bbox/label"][1] == [3, 5]
    assert kept["image/object/bbox/xmin"][1] == [box[0] for box in BOXES]
    assert kept["image/class/label"][1] == [image_label]
    cli("verify", tmp_path / "out")
    if record_of is detection:
        assert [known.name for known in stoker.open(tmp_path / "out").classes][3::2] == ["class 3", "class 5"]


def test_crops_of_objects_have_the_classes_of_the_objects(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed([detection(5, 3), detection(3, 3)]))
    words = ["repack", tmp_path / "a.tfrecord", tmp_path / "out", "--image-key", "image/encoded"]
    cli(*words, "--crop-objects", "--preset", "tfds")
    assert sorted(stoker.open(tmp_path / "out").labels.tolist()) == [3, 3, 3, 5]
    assert "left out" not in cli.out
    words[2] = tmp_path / "whole"
    assert "has no place for boxes, so the 4 of" in cli(*words, "--preset", "tfds")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (detection(3), "'image/object/class/label' has 1 values for 2 boxes"),
        (tfds_objects(3, 4, 5), "'objects/label' has 3 values for 2 boxes"),
        (tfds_objects(3, 4) | {"objects/bbox": ("float", [0.5] * 7)}, "7 values, which are not four for each box"),
        (
            detection(3, 4) | {"image/object/bbox/xmax": ("float", [0.5])},
            "'image/object/bbox/xmax' has 1 values for 2 boxes",
        ),
    ],
)
def test_objects_that_do_not_fit_are_errors(cli: Cli, tmp_path: Path, record: Record, message: str) -> None:
    (tmp_path / "a.tfrecord").write_bytes(framed([record]))
    key = next(key for key in record if "image" in key)
    opened = stoker.open(tmp_path, keys=stoker.RecordKeys(key))
    loader = stoker.Loader(opened, batch_size=1, transform=stoker.Resize(8), boxes=stoker.BoxOutput())
    with loader, pytest.raises(ExampleError, match=message):
        list(loader)
    with pytest.raises(ExampleError, match=message):
        _ = opened[0].boxes
    cli("repack", tmp_path / "a.tfrecord", tmp_path / "out", "--image-key", key, code=3)


def test_images_beside_which_nothing_could_be_a_class_have_none(tmp_path: Path) -> None:
    bare: Record = {"image/encoded": ("bytes", [pictures.jpeg(40, 30, 1)]), "image/filename": ("bytes", [b"a.jpg"])}
    (tmp_path / "test.tfrec").write_bytes(framed([bare]))
    opened = stoker.open(tmp_path)
    assert opened.labels.tolist() == [-1]
    with stoker.Loader(opened, batch_size=1, transform=stoker.Resize(8)) as loader:
        assert [batch.labels.tolist() for batch in loader] == [[-1]]
    (tmp_path / "test.tfrec").write_bytes(framed([bare | {"breed": ("int64", [3])}]))
    with pytest.raises(ConfigError, match="there is no class under image/class/label"):
        stoker.open(tmp_path)


def test_info_of_compressed_shards_does_not_send_to_index(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(framed([record(1)])))
    output = cli("info", tmp_path)
    assert "stoker index" not in output
    assert "nothing can index them; 'stoker verify' counts them" in output
