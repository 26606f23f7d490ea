"""What ``stoker export`` writes, read by the libraries it is for, by Pillow, and by Stoker itself."""

from __future__ import annotations

import base64
import errno
import gc
import io
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from builder.trees import contents
from reference import example, pictures, tfrecord
from small_datasets import write_dataset
from stoker import exporting, fields
from stoker.errors import ConfigError, DestinationError, ExampleError, ShardError, SourceWarning
from stoker.exporting import FORMATS, export
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from commands import Cli

pytestmark = [
    pytest.mark.filterwarnings("ignore:the field 'tags' will have ids without names"),
    pytest.mark.filterwarnings("ignore:the texts of 3 classes are not written"),
]

NAMES = ["cat", "dog", "eel"]
FIELDS: dict[str, Any] = {
    "image": fields.Image(),
    "label": fields.Label(NAMES),
    "caption": fields.Text(),
    "score": fields.Float(),
    "count": fields.Int(),
    "vector": fields.Array("float32", (3,)),
    "grid": fields.Array("uint8", (None, 2)),
    "tags": fields.Labels(["x", "y"]),
    "extra": fields.Bytes(),
    "meta": fields.Json(),
    "mask": fields.Mask(),
    "second": fields.Image(),
}


def encoded(pixels: np.ndarray, kind: str) -> bytes:
    return pictures.encode(Image.fromarray(pixels), format=kind)


def record(number: int) -> dict[str, Any]:
    rng = np.random.default_rng(number)
    pixels = rng.integers(0, 255, (20 + number, 24, 3), np.uint8)
    return {
        "image": encoded(pixels, ["JPEG", "PNG", "WEBP"][number % 3]),
        "label": NAMES[number % 3],
        "caption": f"picture {number}, été",
        "score": number / 4 + 0.125,
        "count": number,
        "vector": np.arange(3, dtype=np.float32) + number,
        "grid": np.arange(2 * (number % 3), dtype=np.uint8).reshape(-1, 2),
        "tags": [1] * (number % 3),
        "extra": bytes([number, 255]),
        "meta": {"a": [number, None]},
        "mask": rng.integers(0, 9, pixels.shape[:2], np.uint8),
        "second": encoded(pixels[::-1], "PNG"),
    }


_IN_JSON = pytest.mark.filterwarnings("ignore:opened again, the fields .* in the field 'json'")


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset with a field of every kind."""
    folder = tmp_path_factory.mktemp("rich") / "dataset"
    stoker.build([record(number) for number in range(12)], folder, fields=FIELDS, shards=2, progress=False)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of classes alone, of two splits."""
    root = tmp_path_factory.mktemp("plain")
    build(root, {"ant": 5, "bee": 4})
    return root / "dataset"


def build(root: Path, classes: Mapping[str, int]) -> None:
    images = {}
    for split, name, number in ((s, n, i) for s in ("train", "val") for n, c in classes.items() for i in range(c)):
        seed = sum(name.encode()) + 2 * number + (split == "val")
        images[f"{split}/{name}/{name}{number}.jpg"] = pictures.jpeg(20 + number, 24, seed)
    stoker.build(write_files(root / "images", images), root / "dataset", progress=False)


def samples(dataset: stoker.Dataset) -> list[stoker.Sample]:
    return sorted((dataset[number] for number in range(len(dataset))), key=lambda sample: sample.encoded)


def test_a_folder_of_classes_is_the_dataset_again(plain: Path, tmp_path: Path) -> None:
    report = export(plain, tmp_path / "out", "folder")
    assert {name: (split.records, split.files) for name, split in report.splits.items()} == {
        "train": (9, 9),
        "validation": (9, 9),
    }
    stoker.build(tmp_path / "out", tmp_path / "again", progress=False)
    for split in ("train", "validation"):
        want = samples(stoker.open(plain, split))
        for folder in (tmp_path / "out", tmp_path / "again"):
            dataset = stoker.open(folder, split)
            assert [known.name for known in dataset.classes] == ["ant", "bee"]
            kept = [(sample.encoded, sample.label, Path(sample.source).name) for sample in samples(dataset)]
            assert kept == [(sample.encoded, sample.label, sample.source) for sample in want]
    assert sorted(path.name for path in (tmp_path / "out" / "train" / "bee").iterdir())[0] == "bee0.jpg"
    assert not list((tmp_path / "out").rglob("*.jsonl"))


def test_a_folder_with_metadata_is_the_dataset_again(rich: Path, tmp_path: Path) -> None:
    export(rich, tmp_path / "out", "folder")
    stoker.build(tmp_path / "out", tmp_path / "again", progress=False)
    again = stoker.open(tmp_path / "again")
    assert [known.name for known in again.classes] == NAMES
    kinds = {name: field.kind for name, field in again.fields.items()}
    assert kinds == {
        "caption": "text", "score": "float", "count": "int", "vector": "json", "grid": "json", "tags": "json",
        "extra": "text", "meta": "json", "mask": "mask", "second": "image",
    }  # fmt: skip
    for sample, want in zip(samples(again), samples(stoker.open(rich)), strict=True):
        assert (sample.encoded, sample.label) == (want.encoded, want.label)
        expected = want.fields | {"extra": base64.b64encode(want.fields["extra"]).decode()}
        for name, value in expected.items():
            np.testing.assert_array_equal(sample.fields[name], value.tolist() if name == "grid" else value)


def test_pillow_and_datasets_read_a_folder(rich: Path, tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    export(rich, tmp_path / "out", "folder")
    root = tmp_path / "out" / "train"
    rows = [json.loads(line) for line in (root / "metadata.jsonl").read_bytes().splitlines()]
    assert len(rows) == 12
    for row in rows:
        with Image.open(root / row["file_name"]) as image, Image.open(root / row["mask_file_name"]) as mask:
            assert (image.size, mask.mode) == (mask.size, "L")
            assert row["file_name"].endswith({"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}[image.format])
        assert row["file_name"].startswith(f"{row['label']}/")
    loaded = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert len(loaded["train"]) == 12
    by_count = {entry["count"]: entry for entry in loaded["train"]}
    for sample in samples(stoker.open(rich)):
        entry = by_count[sample.fields["count"]]
        np.testing.assert_array_equal(np.asarray(entry["image"].convert("RGB")), sample.decode())
        np.testing.assert_array_equal(np.asarray(entry["mask"]), sample.fields["mask"])
        assert (entry["label"], entry["caption"]) == (NAMES[sample.label], sample.fields["caption"])


@pytest.mark.usefixtures("torchvision")
def test_masks_of_a_folder_are_no_samples_of_an_image_folder(rich: Path, tmp_path: Path) -> None:
    from torchvision.datasets import ImageFolder  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    export(rich, tmp_path / "out", "folder")
    folder = ImageFolder(tmp_path / "out/train")
    assert (len(folder), folder.classes) == (12, sorted(NAMES))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # webdataset leaves files open
@_IN_JSON
def test_webdataset_reads_the_tars(rich: Path, tmp_path: Path) -> None:
    import webdataset  # noqa: PLC0415

    report = export(rich, tmp_path / "out", "webdataset", shard_size=40_000)
    tars = sorted((tmp_path / "out").glob("*.tar"))
    assert [path.name for path in tars] == [f"train-{number:06d}.tar" for number in range(len(tars))]
    assert len(tars) == report.splits["train"].files > 2
    assert all(path.stat().st_size <= 40_000 + 20 * 512 for path in tars)
    entries = list(webdataset.WebDataset([str(path) for path in tars], shardshuffle=False))
    dataset = stoker.open(rich)
    assert len(entries) == len(dataset) == 12
    for number, entry in enumerate(entries):
        sample = dataset[number]
        suffix = {"jpeg": "jpg"}.get(sample.format, sample.format)
        assert entry[suffix] == sample.encoded
        assert int(entry["cls"]) == sample.label
        assert entry["txt"].decode() == sample.fields["caption"]
        content = json.loads(entry["json"])
        assert content.pop("class") == NAMES[sample.label]
        assert content.pop("file_name") == f"{sample.source}.{suffix}"
        assert base64.b64decode(content.pop("extra")) == sample.fields["extra"]
        assert content.keys() == {"score", "count", "vector", "grid", "tags", "meta"}
        for name, value in content.items():
            np.testing.assert_array_equal(value, np.asarray(sample.fields[name]).tolist())
        with Image.open(io.BytesIO(entry["mask.png"])) as mask:
            np.testing.assert_array_equal(np.asarray(mask), sample.fields["mask"])
    decoded = list(webdataset.WebDataset([str(path) for path in tars], shardshuffle=False).decode("rgb8"))
    assert [entry["cls"] for entry in decoded] == [int(label) for label in dataset.labels]
    gc.collect()


def test_members_of_jpegs_are_called_jpg(tmp_path: Path) -> None:
    write_files(tmp_path / "images", {"ant/a.jpeg": pictures.jpeg(20, 24, 1), "ant/b.JPG": pictures.jpeg(20, 24, 2)})
    stoker.build(tmp_path / "images", tmp_path / "dataset", progress=False)
    export(tmp_path / "dataset", tmp_path / "out", "webdataset")
    with tarfile.open(tmp_path / "out/train-000000.tar") as tar:
        assert {name.partition(".")[2] for name in tar.getnames()} == {"jpg", "cls", "json"}


def test_tars_keep_names_ids_and_texts_of_classes(tmp_path: Path) -> None:
    images = {f"{number}/1.jpg": pictures.jpeg(20, 24, number) for number in range(12)}
    write_files(tmp_path / "images", images)  # classes that are called by numbers, in another order
    listed = "".join(f"{number}\ttext of {number}\n" for number in range(13, -1, -1))
    (tmp_path / "listed.txt").write_text(listed)
    with pytest.warns(SourceWarning, match="2 classes without images"):
        stoker.build(tmp_path / "images", tmp_path / "dataset", labels=tmp_path / "listed.txt", progress=False)
    export(tmp_path / "dataset", tmp_path / "out", to="webdataset", shard_size=6000)
    assert (tmp_path / "out/labels.txt").read_text() == listed
    with pytest.warns(SourceWarning, match="no images in class 13, 12"):
        stoker.build(tmp_path / "out", tmp_path / "again", progress=False)
    with pytest.warns(SourceWarning, match="no images in class 13, 12"):
        tars = stoker.open(tmp_path / "out")
    want = stoker.open(tmp_path / "dataset")
    for dataset in (tars, stoker.open(tmp_path / "again")):
        assert dataset.classes == want.classes
        assert [(a.encoded, a.label) for a in samples(dataset)] == [(b.encoded, b.label) for b in samples(want)]


@_IN_JSON
def test_tars_keep_masks_and_other_images(rich: Path, tmp_path: Path) -> None:
    export(rich, tmp_path / "out", to="webdataset", shard_size=40_000)
    stoker.build(tmp_path / "out", tmp_path / "again", progress=False)
    again = stoker.open(tmp_path / "again")
    assert [known.name for known in again.classes] == NAMES
    kinds = {name: field.kind for name, field in again.fields.items()}
    assert kinds == {"txt": "text", "json": "json", "mask": "mask", "second": "image"}
    for sample, want in zip(samples(again), samples(stoker.open(rich)), strict=True):
        assert (sample.encoded, sample.label) == (want.encoded, want.label)
        assert sample.fields["txt"] == want.fields["caption"]
        for name in ("mask", "second"):
            np.testing.assert_array_equal(sample.fields[name], want.fields[name])


def test_datasets_read_parquet(rich: Path, tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    export(rich, tmp_path / "out", "parquet", shard_size=4_000)
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert len(names) > 2
    assert names == [f"train-{number:05d}-of-{len(names):05d}.parquet" for number in range(len(names))]
    files = {"train": [str(tmp_path / "out" / name) for name in names]}
    loaded = datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))["train"]
    assert isinstance(loaded.features["image"], datasets.Image)
    assert loaded.features["label"].names == NAMES
    stored = loaded.cast_column("image", datasets.Image(decode=False))
    dataset = stoker.open(rich)
    assert len(loaded) == len(dataset) == 12
    for number, row in enumerate(loaded):
        sample = dataset[number]
        assert stored[number]["image"]["bytes"] == sample.encoded
        np.testing.assert_array_equal(np.asarray(row["image"].convert("RGB")), sample.decode())
        assert row["label"] == sample.label
        for name, value in sample.fields.items():
            got = json.loads(row[name]) if name == "meta" else row[name]
            np.testing.assert_array_equal(np.asarray(got).reshape(np.shape(value)), value)


def test_columns_keep_their_types_from_parquet_to_parquet(tmp_path: Path) -> None:
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    images = [{"bytes": encoded(np.full((8, 8, 3), number, np.uint8), "PNG"), "path": None} for number in range(4)]
    columns: dict[str, Any] = {
        "tags": pa.array([["a", None], [], ["b"], ["c", "d"]], pa.list_(pa.string())),
        "ids": pa.array([[1, 2], [], [3], [4]], pa.list_(pa.int32())),
        **{name: pa.array([0, 1, 0, 1], pa.type_for_alias(name)) for name in ("int8", "int32", "uint16", "int64")},
        "is_good": pa.array([True, False, True, False]),
    }
    table = pa.table({"image": images, "label": pa.array([0, 1, 0, 1]), **columns})
    (tmp_path / "rows").mkdir()
    parquet.write_table(table, tmp_path / "rows/train.parquet")
    stoker.build(tmp_path / "rows", tmp_path / "dataset", progress=False)
    export(tmp_path / "dataset", tmp_path / "out", "parquet")
    again = parquet.read_table(tmp_path / "out/train-00000-of-00001.parquet")
    types = {name: column.type for name, column in columns.items()}
    assert {name: again.schema.field(name).type for name in columns} == types
    stored, given = (sorted(map(repr, rows.select(list(columns)).to_pylist())) for rows in (again, table))
    assert stored == given


@pytest.mark.filterwarnings("ignore:no image has the class", "ignore:readers number", "ignore:the list of labels has")
@pytest.mark.parametrize("to", FORMATS)
def test_boxes_and_labels_from_1(to: Any, tmp_path: Path) -> None:
    from pyarrow import parquet  # noqa: PLC0415

    write_dataset(tmp_path / "boxed", {"train": [4, 3], "validation": [2]})
    export(tmp_path / "boxed", tmp_path / "out", to, split="val")
    want = [stoker.open(tmp_path / "boxed", "validation")[number] for number in range(2)]
    if to == "parquet":
        rows = parquet.read_table(tmp_path / "out" / "validation-00000-of-00001.parquet").to_pylist()
        labels = [row["label"] for row in rows]
    elif to == "webdataset":
        with tarfile.open(tmp_path / "out" / "validation-000000.tar") as tar:
            held = {member.name: tar.extractfile(member).read() for member in tar}
        rows = [json.loads(held[f"00000000{number}.json"]) for number in range(2)]
        labels = [int(held[f"00000000{number}.cls"]) for number in range(2)]
        with pytest.warns(SourceWarning, match=r"^'boxes' is a field of JSON; docs/how-to/detection.md shows how"):
            assert [sample.boxes for sample in samples(stoker.open(tmp_path / "out"))] == [[], []]
    else:
        rows = [json.loads(line) for line in (tmp_path / "out/validation/metadata.jsonl").read_bytes().splitlines()]
        classes = [known.name for known in stoker.open(tmp_path / "boxed", "validation").classes]
        labels = [classes.index(row["label"]) for row in rows]
    assert labels == [sample.label for sample in want]
    assert sum(len(row["boxes"]) for row in rows) > 0
    for row, sample in zip(rows, want, strict=True):
        assert [(box["xmin"], box["ymax"]) for box in row["boxes"]] == [(box.xmin, box.ymax) for box in sample.boxes]


_DEPTH = "opened again, the field 'depth' will be of another kind: images called mask, seg or trimap are masks of 8"
LOST = {
    "folder": [
        r"no image has the class 'emu', so no folder tells of them",
        r"readers number the classes of a folder from 0 in the order of their names, unlike .*kept; .* labels.txt",
        r"the fields 'sex', 'tags' will have ids without names of classes; parquet has both",
        _DEPTH,
    ],
    "webdataset": [
        r"the fields 'sex', 'tags' will have ids without names of classes; parquet has both",
        r"opened again, the fields 'sex', 'tags' will be in the field 'json'",
        _DEPTH,
    ],
    "parquet": [_DEPTH],
}


@pytest.mark.parametrize("to", FORMATS)
def test_what_a_format_cannot_say_is_named_before(to: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets  # noqa: PLC0415

    kinds = {
        "image": fields.Image(),
        "label": fields.Label(["dog", "cat", "emu"]),
        "sex": fields.Label(["male", "female"]),
        "tags": fields.Labels(["x", "y"]),
        "mask": fields.Mask(),
        "depth": fields.Mask(bits=16),
        "boxes": fields.Boxes(["leg", "wing"]),
    }
    records = [{**record(number), "label": number % 2, "sex": 1, "tags": [0]} for number in range(4)]
    records = [{**each, "depth": np.asarray(each["mask"]).astype(np.uint16)} for each in records]
    for number, entry in enumerate(records):
        entry["boxes"] = [{"xmin": 0, "ymin": 0.25, "xmax": 0.5, "ymax": 1, "label": "wing"}] * (number % 3)
    stoker.build(records, tmp_path / "kept", fields=kinds, progress=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SourceWarning)
        monkeypatch.setattr(exporting, "_write_split", lambda *_: pytest.fail("written before"))
        with pytest.raises(pytest.fail.Exception):
            export(tmp_path / "kept", tmp_path / "out", to, progress=False)
    messages = [str(warning.message) for warning in caught if warning.category is SourceWarning]
    assert len(messages) == len(LOST[to])
    assert all(re.search(pattern, text) for pattern, text in zip(LOST[to], messages, strict=True))
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceWarning)
        export(tmp_path / "kept", tmp_path / "out", to, progress=False)
    if to == "parquet":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            files, cache = str(tmp_path / "out/*"), str(tmp_path / "cache")
            rows = datasets.load_dataset("parquet", data_files=files, cache_dir=cache)
        assert rows["train"].features["boxes"].feature["label"].names == ["leg", "wing"]
        boxes = [row["boxes"] for row in rows["train"]]
        expected = {"xmin": 0.0, "ymin": 0.25, "xmax": 0.5, "ymax": 1.0, "label": 1}
    else:
        if to == "folder":
            lines = (tmp_path / "out/train/metadata.jsonl").read_text().splitlines()
        else:
            with tarfile.open(tmp_path / "out/train-000000.tar") as tar:
                lines = [tar.extractfile(member).read() for member in tar if member.name.endswith(".json")]
        boxes = [json.loads(line)["boxes"] for line in lines]
        expected = {"xmin": 0.0, "ymin": 0.25, "xmax": 0.5, "ymax": 1.0, "label": 1, "class": "wing"}
    assert sorted(map(len, boxes)) == [0, 0, 1, 2]
    assert all(box == expected for some in boxes for box in some)


def test_images_without_a_class_among_others_are_in_the_metadata(tmp_path: Path) -> None:
    labels = ["a", None, "b", None]
    records = [{"image": pictures.jpeg(4, 4, seed), "label": label} for seed, label in enumerate(labels)]
    with pytest.warns(SourceWarning, match="no class there"):
        stoker.build(records, tmp_path / "dataset")
    report = export(tmp_path / "dataset", tmp_path / "out", "folder", progress=False)
    assert report.splits["train"].files == 5
    with pytest.warns(SourceWarning, match="2 rows without a label"):
        again = stoker.open(tmp_path / "out", "train")
    assert sorted(again.labels.tolist()) == [-1, -1, 0, 1]


@pytest.mark.filterwarnings("ignore:readers number the classes of a folder")
def test_classes_of_boxes_are_those_of_images_where_they_have_no_names_of_their_own(tmp_path: Path) -> None:
    write_dataset(tmp_path / "boxed", {"train": [4]})
    export(tmp_path / "boxed", tmp_path / "out", "folder", progress=False)
    rows = [json.loads(line) for line in (tmp_path / "out/train/metadata.jsonl").read_bytes().splitlines()]
    classes = {(row["label"], box["class"]) for row in rows for box in row["boxes"]}
    assert classes == {("n02", "n02"), ("n03", "n03")}


@_IN_JSON
@pytest.mark.parametrize("to", FORMATS)
def test_the_same_bytes_each_time(to: Any, rich: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        export(rich, tmp_path / name, to)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_names_are_made_safe_and_unique(tmp_path: Path) -> None:
    names = [
        "../../x.jpg", "a/x.jpg", ".hidden.jpeg", "no suffix", "png.jpg", "x.JPG", "é" * 150 + ".jpg", "ü" * 127,
        "tab\t.jpg",
    ]  # fmt: skip
    images = [pictures.jpeg(20, 20, number) for number in range(len(names))]
    images[4] = encoded(np.zeros((9, 9), np.uint8), "PNG")
    payloads = [
        example.write(
            {
                "image/encoded": ("bytes", [image]),
                "image/class/label": ("int64", [0]),
                "image/filename": ("bytes", [name.encode()]),
            }
        )
        for name, image in zip(names, images, strict=True)
    ]
    (tmp_path / "train-00000-of-00001").write_bytes(b"".join(map(tfrecord.frame, payloads)))
    export(tmp_path / "train-*", tmp_path / "out", "folder")
    files = {path.name: path.read_bytes() for path in (tmp_path / "out" / "train" / "00000").iterdir()}
    assert sorted(files.values()) == sorted(images)
    assert files.keys() >= {
        "x.jpg", "x-1.jpg", "hidden.jpeg", "no suffix.jpg", "png.png", "x.JPG", "tab\\t.jpg".replace("\\", "_"),
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"train-00000-of-00001", "out"}


def damage(plain: Path, folder: Path) -> Path:
    shutil.copytree(plain, folder)
    shard = sorted(folder.glob("train*"))[0]
    flip_bit(shard, 60)
    return shard


def test_a_damaged_record_stops_it_or_is_left_out(plain: Path, tmp_path: Path) -> None:
    shard = damage(plain, tmp_path / "damaged")
    with pytest.raises(ShardError, match="record 0") as caught:
        export(tmp_path / "damaged", tmp_path / "out", "webdataset")
    assert (caught.value.path, caught.value.record, caught.value.offset) == (str(shard), 0, 0)
    assert "--max-rejects" in caught.value.__notes__[0]
    assert list((tmp_path / "out").iterdir()) == []
    for to in FORMATS:
        report = export(tmp_path / "damaged", tmp_path / to, to, max_rejects=1)
        assert [reject.key for reject in report.rejects] == ["train#0"]
        assert report.splits["train"].records == 8


@pytest.mark.parametrize("to", FORMATS)
def test_a_destination_with_something_else_is_refused(to: Any, plain: Path, tmp_path: Path) -> None:
    export(plain, tmp_path / "out", to)
    before = contents(tmp_path / "out")
    with pytest.raises(DestinationError, match="name a new or empty folder"):
        export(plain, tmp_path / "out", to)
    assert contents(tmp_path / "out") == before
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DestinationError, match=r"file is a file; give a directory$"):
        export(plain, tmp_path / "file", to)
    with pytest.raises(DestinationError, match=r"file/sub cannot be made: .*file is not a directory$"):
        export(plain, tmp_path / "file/sub", to)


KILLED = """
import os, signal, sys
from stoker.exporting import export
def progress(*, done, **_):
    if done == 5:
        os.kill(os.getpid(), int(sys.argv[4]))
export(sys.argv[1], sys.argv[2], sys.argv[3], progress=progress)
"""


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.slow
def test_a_killed_export_starts_anew(to: Any, plain: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = [sys.executable, "-c", KILLED, str(plain), str(out), to]
    assert subprocess.run([*words, str(int(signal.SIGKILL))], check=False).returncode == -signal.SIGKILL
    assert [path.name for path in tmp_path.iterdir()] == [".out.stoker-unfinished"]
    subprocess.run([*words, str(int(signal.SIGINT))], check=False, stderr=subprocess.DEVNULL)
    assert list(out.iterdir()) == []
    export(plain, out, to)
    export(plain, tmp_path / "whole", to)
    assert contents(out) == contents(tmp_path / "whole")


def test_an_empty_destination_is_replaced_and_keeps_its_mode(plain: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o710)
    (tmp_path / "link").symlink_to(target)
    export(plain, tmp_path / "link", "webdataset")
    assert (tmp_path / "link").is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o710
    assert (target / "labels.txt").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "target"]


def test_a_destination_that_cannot_be_replaced_is_refused_before_anything_is_written(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(DestinationError, match="is the current folder") as caught:
        export(plain, ".", "folder")
    export(plain, str(caught.value).rpartition("such as ")[2], "folder")  # as it says
    (tmp_path / "mounted").mkdir()

    def busy(path: Path) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))

    monkeypatch.setattr(Path, "rmdir", busy)  # a test cannot mount anything
    with pytest.raises(DestinationError, match=r"mounted cannot be replaced \(Device or resource busy\)"):
        export(plain, tmp_path / "mounted", "folder")
    assert list((tmp_path / "mounted").iterdir()) == []

    (tmp_path / "here/own").mkdir()

    def denied(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "mkdir", denied)  # a folder of the user's in one of somebody else's
    with pytest.raises(DestinationError, match=r"here/own cannot be replaced \(Permission denied\); name a new folder"):
        export(plain, "own", "folder")
    with pytest.raises(PermissionError):  # nothing is there to be replaced
        export(plain, tmp_path / "another", "folder")


def test_two_exports_do_not_share_a_destination(plain: Path, tmp_path: Path) -> None:
    def second(*, done: int, **_: int) -> None:
        if done == 1:
            with pytest.raises(DestinationError, match="another process writes"):
                export(plain, tmp_path / "out", "folder")

    assert export(plain, tmp_path / "out", "folder", progress=second).splits["train"].records == 9


def test_what_cannot_be_written_is_refused_by_name(rich: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(dataset: Path, to: Any, message: str, *, out: Any = tmp_path / "out", **settings: Any) -> None:
        with pytest.raises(ExampleError if "record" in message else ConfigError, match=message):
            export(dataset, out, to, **settings)

    def built(name: str, what: dict[str, Any], value: Any = "a", **settings: Any) -> Path:
        records = [{"image": pictures.jpeg(20, 20, 1), "label": 0, **dict.fromkeys(what, value)}]
        label = {"label": fields.Label(settings.pop("names", ["a"]))}
        folder = tmp_path / name
        stoker.build(records, folder, fields={"image": fields.Image(), **label, **what}, progress=False, **settings)
        return folder

    raw = built("raw", {}, preset="dlbs", encode="raw", resize="square:16")
    refused(raw, "folder", "raw pixels, not image files; 'stoker repack --encode png'")
    refused(built("slash", {}, names=["a/b"]), "folder", r"class 'a/b' of .* cannot be the name of a folder")
    uses = r"field 'boxes' of .* has a name that the export itself uses"
    refused(built("boxes", {"boxes": fields.Text()}), "parquet", uses)
    for name, to in (("a/../b", "webdataset"), ("PNG", "folder")):
        masked = built(to, {name: fields.Mask()}, np.zeros((20, 20), np.uint8))
        refused(masked, to, f"field '{name}' of .* cannot be a part of the names of files")
    nan = built("nan", {"score": fields.Float()}, float("nan"))
    refused(nan, "folder", "record 0 at byte 0: field 'score' is not finite", out=tmp_path / "nan-out")
    images = write_files(tmp_path / "images", {"a/1.jpg": pictures.jpeg(20, 20, 1)})
    refused(images, "parquet", "holds image files")
    refused(rich, "folder", "has no split 'test'; it has train", split="test")
    refused(rich, "folder", "is in a store", out="s3://bucket/out")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(rich, "parquet", r"pip install 'stoker\[parquet\]'", out=tmp_path / "arrow")
    assert not (tmp_path / "out").exists()


def test_the_function_reports_and_takes_a_function_for_progress(plain: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def progress(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
        seen.append((done, total))

    report = stoker.export(plain, tmp_path / "out", "webdataset", progress=progress)
    assert seen == [(number, 18) for number in range(1, 19)]
    assert repr(report).startswith("<stoker.ExportReport train: 9 records in 1 file, ")
    with pytest.raises(ConfigError, match=r"^progress is True; give a function or False"):
        stoker.export(plain, tmp_path / "other", "webdataset", progress=True)  # type: ignore[arg-type]
    assert not (tmp_path / "other").exists()


def test_the_command(plain: Path, tmp_path: Path, cli: Cli) -> None:
    cli("export", plain, tmp_path / "out", "--to", "webdataset", "--split", "train", "--json", "-q")
    report = cli.json
    size = (tmp_path / "out" / "train-000000.tar").stat().st_size
    assert report["splits"] == {"train": {"records": 9, "files": 1, "bytes": size}}
    assert report["rejects"] == []
    assert "holds 'labels.txt'" in cli("export", plain, tmp_path / "out", "--to", "folder", code=2)
    shard = damage(plain, tmp_path / "damaged")
    assert f"{shard}" in cli("export", tmp_path / "damaged", tmp_path / "no", "--to", "folder", code=1)
    words = ["export", str(tmp_path / "damaged"), str(tmp_path / "yes"), "--to", "folder", "--max-rejects", "1"]
    out = cli(*words)
    assert "rejected: train#0: " in out
    assert "17 records to" in out
