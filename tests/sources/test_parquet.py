"""Parquet files of several writers, read beside `datasets` and pyarrow; and files that are not as they should be."""

from __future__ import annotations

import errno
import gc
import json
import os
import pickle
import warnings
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import stoker
from reference import pictures
from sources.making import check_refused, fill, listing, picture, split_sizes
from stoker import fields
from stoker.errors import ConfigError, SourceError, SourceWarning, StokerError, TooManyRejectsError
from stoker.sources import parquet_files
from stoker.sources.parquet import split_of_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import datasets

    from commands import Cli


NAMES = ["cat", "dog", "eel"]
ROWS = 11


def mask(number: int) -> bytes:
    return pictures.png(np.full((6, 8), number % 5, np.uint8))


def image(data: bytes | None, path: str | None = None) -> dict[str, Any]:
    return {"bytes": data, "path": path}


def features() -> datasets.Features:
    import datasets  # noqa: PLC0415

    return datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=NAMES),
            "caption": datasets.Value("string"),
            "n": datasets.Value("int32"),
            "w": datasets.Value("float64"),
            "emb": datasets.List(datasets.Value("float32"), length=4),
            "ids": datasets.List(datasets.Value("int64")),
            "tags": datasets.List(datasets.ClassLabel(names=["a", "b", "c"])),
            "kind": datasets.ClassLabel(names=["x", "y"]),
            "matrix": datasets.Array2D((2, 3), "float32"),
            "info": {"a": datasets.Value("int64"), "b": datasets.List(datasets.Value("string"))},
            "mask": datasets.Image(),
            "second_image": datasets.Image(),
            "raw": datasets.Value("binary"),
            "ok": datasets.Value("bool"),
        }
    )


def row(number: int) -> dict[str, Any]:
    return {
        "image": image(picture(number, "PNG" if number % 2 else "JPEG"), f"at/{number}.img"),
        "label": number * 7 % 3,
        "caption": f"caption {number} ü日",
        "n": number,
        "w": number / 4,
        "emb": [number, 1.5, -2, 0],
        "ids": list(range(number % 4)),
        "tags": [number % 3, 1],
        "kind": number % 2,
        "matrix": np.full((2, 3), number, np.float32).tolist(),
        "info": {"a": number, "b": ["q"] * (number % 3)},
        "mask": image(mask(number)),
        "second_image": image(picture(100 + number)),
        "raw": bytes([number]),
        "ok": number % 2 == 0,
    }


def write_all(root: Path) -> Path:
    """Files of two splits, as `datasets` writes them for the Hub."""
    import datasets  # noqa: PLC0415

    table = datasets.Dataset.from_list([row(number) for number in range(2 * ROWS)], features=features())
    (root / "data").mkdir(parents=True)
    for name, some in (
        ("train-00000-of-00002", range(6)),
        ("train-00001-of-00002", range(6, ROWS)),
        ("validation-00000-of-00001", range(ROWS, 2 * ROWS)),
    ):
        table.select(some).to_parquet(root / f"data/{name}.parquet", batch_size=4)
    return root


def write_rows(path: Path, columns: Mapping[str, Any], **settings: Any) -> Path:
    """A file as pyarrow writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(dict(columns)), path, **settings)
    return path


def simple(path: Path, count: int = 5, **settings: Any) -> Path:
    """A file with images and class ids."""
    images = [image(picture(number), f"{number}.jpg") for number in range(count)]
    return write_rows(path, {"image": images, "label": [number % 2 for number in range(count)]}, **settings)


def stored_rows(dataset: stoker.Dataset) -> dict[int, dict[str, Any]]:
    """What a built dataset holds, by the field ``n``."""
    return {sample.fields["n"]: {"label": sample.label, "image": sample.encoded, **sample.fields} for sample in dataset}


def theirs(root: Path, split: str) -> dict[int, dict[str, Any]]:
    """What `datasets` reads of a split, by the column ``n``."""
    import datasets  # noqa: PLC0415

    dataset = datasets.load_dataset(str(root), split=split, cache_dir=str(root.parent / "hf"))
    for name in ("image", "mask", "second_image"):
        dataset = dataset.cast_column(name, datasets.Image(decode=False))
    return {entry["n"]: entry for entry in dataset}


def test_a_build_stores_what_datasets_reads(tmp_path: Path) -> None:
    source = write_all(tmp_path / "src")
    assert stoker.build(source, tmp_path / "out", progress=False).items == 2 * ROWS
    for split in ("train", "validation"):
        dataset = stoker.open(tmp_path / "out", split)
        assert [known.name for known in dataset.classes] == NAMES
        ours, read = stored_rows(dataset), theirs(source, split)
        assert ours.keys() == read.keys()
        for number, stored in ours.items():
            other = read[number]
            assert stored["image"] == other["image"]["bytes"]
            for name in ("label", "caption", "w", "kind", "info", "raw", "ok"):
                assert stored[name] == other[name], name
            for name in ("emb", "ids", "tags", "matrix"):
                assert np.asarray(stored[name]).tolist() == np.asarray(other[name]).tolist(), name
            for name in ("mask", "second_image"):
                assert stored[name].tolist() == np.asarray(pictures.opened(other[name]["bytes"])).tolist()


def test_fields_follow_types_and_features(tmp_path: Path) -> None:
    tree = listing(write_all(tmp_path / "src"))
    assert dict(tree.fields) == {
        "caption": fields.Text(),
        "n": fields.Int("int32"),
        "w": fields.Float(),
        "emb": fields.Array("float32", (4,)),
        "ids": fields.Array("int64", (None,)),
        "tags": fields.Labels(["a", "b", "c"]),
        "kind": fields.Label(["x", "y"]),
        "matrix": fields.Array("float32", (2, 3)),
        "info": fields.Json(),
        "mask": fields.Mask(),
        "second_image": fields.Image(),
        "raw": fields.Bytes(),
        "ok": fields.Int("bool"),
    }


def test_a_loader_reads_images_without_a_build(tmp_path: Path, cache: Path) -> None:
    dataset = stoker.open(write_all(tmp_path / "src"), "train")
    encoded = [sample.encoded for sample in dataset]
    assert dataset.size_bytes == sum(map(len, encoded))
    expected = [np.asarray(pictures.rgb(data))[:6, :6] for data in encoded]
    with stoker.Loader(dataset, 4, transform=stoker.TopLeft(6), threads=2) as loader:
        pixels = np.concatenate([batch.images[batch.valid] for batch in loader])
    assert (pixels == np.stack(expected)).all()
    assert len(list(cache.iterdir())) == 2
    assert pickle.loads(pickle.dumps(dataset))[3].encoded == dataset[3].encoded


def test_an_export_comes_back(tmp_path: Path) -> None:
    first = stoker.build(write_all(tmp_path / "src"), tmp_path / "one", progress=False)
    stoker.export(tmp_path / "one", tmp_path / "exported", "parquet")
    assert stoker.build(tmp_path / "exported", tmp_path / "two", progress=False).items == first.items
    for split in ("train", "validation"):
        ours, again = (stored_rows(stoker.open(tmp_path / name, split)) for name in ("one", "two"))
        for number, stored in again.items():
            ours[number]["info"] = json.dumps(ours[number]["info"], sort_keys=True)  # what JSON is in Parquet
            assert repr(stored) == repr(ours[number])
        assert again.keys() == ours.keys()


@pytest.mark.parametrize(
    "write",
    [
        lambda path, columns: pd.DataFrame(columns).to_parquet(path, index=False),
        lambda path, columns: write_rows(path, columns, compression="zstd", row_group_size=2),
        lambda path, columns: write_rows(path, columns, use_dictionary=True, compression="gzip", data_page_size=64),
        lambda path, columns: write_rows(path, columns, use_dictionary=False, compression="none", version="1.0"),
        lambda path, columns: write_rows(path, columns, compression="brotli", write_page_checksum=True),
    ],
    ids=["pandas", "zstd", "dictionary", "plain", "brotli"],
)
def test_every_writer_is_read(tmp_path: Path, write: Callable[[Path, dict[str, Any]], object]) -> None:
    columns = {
        "image": [image(picture(number % 3)) for number in range(7)],
        "label": [NAMES[number % 3] for number in range(7)],
        "caption": [f"c {number}" for number in range(7)],
    }
    write(tmp_path / "photos.parquet", columns)
    tree = listing(tmp_path / "photos.parquet")
    assert tree.classes == tuple(name.encode() for name in NAMES)
    loaded = sorted((item.number, item.label, tree.load(item, "train")) for item in tree.table)
    read = parquet.read_table(tmp_path / "photos.parquet").to_pylist()
    assert [image.data for _, _, image in loaded] == [entry["image"]["bytes"] for entry in read]
    assert [NAMES[label] for _, label, _ in loaded] == [entry["label"] for entry in read]
    assert [image.fields["caption"] for _, _, image in loaded] == [entry["caption"] for entry in read]


def test_categories_of_pandas_are_classes_and_values(tmp_path: Path) -> None:
    columns = {
        "image": [picture(number) for number in range(4)],
        "label": pd.Categorical(["b", None, "a", "b"]),
        "place": pd.Categorical(["x", "y", "x", "x"]),
        "when": pd.to_datetime(["2020-01-02"] * 4),
        "cost": [Decimal("1.50")] * 4,
        "many": [[[1.5, 2.5], [3.5]]] * 4,
    }
    pd.DataFrame(columns).to_parquet(tmp_path / "p.parquet", index=False)
    tree = listing(tmp_path / "p.parquet")
    assert tree.classes == (b"a", b"b")
    assert [tree.table[at].label for at in np.argsort(tree.table.numbers)] == [1, -1, 0, 1]
    assert {name: type(field).__name__ for name, field in tree.fields.items()} == {
        "place": "Text",
        "when": "Text",
        "cost": "Text",
        "many": "Json",
    }
    loaded = tree.load(tree.table[0], "train")
    assert dict(loaded.fields) == {
        "place": "y",
        "when": "2020-01-02 00:00:00.000000",
        "cost": "1.50",
        "many": [[1.5, 2.5], [3.5]],
    }
    assert loaded.filename == b"000000001"
    assert tree.warnings == (f"{tmp_path}/p.parquet: 1 row without a label",)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 2, None], {0: 0, 1: 2, 2: -1}),
        ([0.0, float("nan"), 1.0], {0: 0, 1: -1, 2: 1}),
        (["b", "", "a"], {0: 1, 1: -1, 2: 0}),
        ([-1, 1, 0], {0: -1, 1: 1, 2: 0}),
    ],
)
def test_labels_are_ids_or_names(tmp_path: Path, labels: list[Any], expected: dict[int, int]) -> None:
    images = [image(picture(number)) for number in range(3)]
    path = write_rows(tmp_path / "p.parquet", {"image": images, "label": labels})
    assert {item.columns["row"]: item.label for item in listing(path).table} == expected


@pytest.mark.parametrize("labels", [[0, 2, None], ["b", None, "a"]])
def test_the_only_column_of_classes_is_taken(tmp_path: Path, labels: list[Any]) -> None:
    images = [image(picture(number)) for number in range(3)]
    known = {"image": images, "fine_label": labels, "target": [0.5, 1.5, 2.5], "is_class": [True, False, True]}
    path = write_rows(tmp_path / "train.parquet", known)
    write_rows(tmp_path / "test.parquet", {name: known[name] for name in ("image", "target", "is_class")})
    tree, want = listing(tmp_path), [2, 0, -1] if labels[0] == 0 else [1, -1, 0]
    assert [tree.table[row].label for row in tree.splits["train"]] == sorted(want)
    assert [*tree.fields] == ["target", "is_class"]
    assert tree.warnings[0] == f"{path}: nothing is called 'label'; the classes are 'fine_label'"


def test_several_columns_of_classes_are_refused_with_a_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    images = [image(picture(number)) for number in range(3)]
    write_rows(tmp_path / "{p}/train.parquet", {"image": images, "fine_label": [2, 0, 1], "coarse_label": [0, 0, 1]})
    for given in ("{p}/train.parquet", "{p}"):
        message = check_refused(given)
        assert "nothing is called 'label', and the classes may be 'fine_label' or 'coarse_label'; give" in message
    typed = message.partition("; give ")[2]
    dataset = eval(f"stoker.open('{{p}}', {typed})", {"stoker": stoker})
    assert [dataset[row].label for row in range(3)] == [2, 0, 1]
    assert [*dataset.fields] == ["coarse_label"]


def test_the_first_of_several_columns_whose_classes_have_names_is_reported(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    kinds = {name: datasets.ClassLabel(names=NAMES) for name in ("fine_label", "coarse_label")}
    rows = {"image": [image(picture(0))], "fine_label": [1], "coarse_label": [2]}
    table = datasets.Dataset.from_dict(rows, features=datasets.Features({"image": datasets.Image(), **kinds}))
    table.to_parquet(tmp_path / "p.parquet")
    tree = listing(tmp_path / "p.parquet")
    assert (tree.table[0].label, [*tree.fields]) == (1, ["coarse_label"])
    assert tree.warnings[0] == f"{tmp_path}/p.parquet: nothing is called 'label'; the classes are 'fine_label'"


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, -2], r"row 1 of .*p\.parquet: label is '-2', not the id of a class or its name"),
        ([0.0, 0.5], r"row 1 of .*: label is '0\.5', not the id"),
        ([True, False], r"row 0 of .*: label is 'True', not the id"),
        ([0, 2**40], r"has the class id 1099511627776; the largest is"),
        (["a", "b\n"], r"the class 'b\\\\n' has a control character|has a control character"),
    ],
)
def test_labels_that_are_none_are_refused(tmp_path: Path, labels: list[Any], message: str) -> None:
    images = [image(picture(number)) for number in range(2)]
    check_refused(write_rows(tmp_path / "p.parquet", {"image": images, "label": labels}), match=message)


def test_class_names_keep_their_order_and_must_be_those_of_all_files(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    def write(name: str, names: list[str], labels: list[int]) -> None:
        features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=names)})
        rows = {"image": [image(picture(0))] * len(labels), "label": labels}
        datasets.Dataset.from_dict(rows, features=features).to_parquet(tmp_path / name)

    write("train-00000-of-00001.parquet", ["z", "a", "m"], [2, 0, -1])
    tree = listing(tmp_path)
    assert tree.classes == (b"z", b"a", b"m")
    assert sorted(tree.table.labels.tolist()) == [-1, 0, 2]
    write("test-00000-of-00001.parquet", ["a", "z", "m"], [2])
    check_refused(tmp_path, match="has other names of classes than")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train-00000-of-00004.parquet", "train"),
        ("validation-00000-of-00001-0123456789abcdef.parquet", "validation"),
        ("photos-val.parquet", "validation"),
        ("dev_set.parquet", "validation"),
        ("test.parquet", "test"),
        ("retested.parquet", "train"),
        ("0000.parquet", "train"),
        ("unsupervised-00000-of-00001.parquet", None),
    ],
)
def test_names_say_the_split(name: str, split: str | None) -> None:
    assert split_of_file(name) == split


def test_folders_of_files_have_splits_and_name_what_is_not_used(tmp_path: Path) -> None:
    for name in ("train/0000.parquet", "train/0001.parquet", "val/0000.parquet"):
        simple(tmp_path / "folders" / name, 2)
    tree = listing(tmp_path / "folders")
    assert split_sizes(tree) == {"train": 4, "validation": 2}
    assert tree.table[0].key == "train/0000.parquet/000000000/0.jpg"
    for name in ("train-00000-of-00003", "train-00002-of-00003", "extra-00000-of-00001"):
        simple(tmp_path / f"numbered/{name}.parquet", 2)
    tree = listing(tmp_path / "numbered")
    assert len(tree.table) == 4
    assert tree.ignored == {"of another split": 1}
    assert tree.warnings == (
        "not of train, validation or test, so not used: extra-00000-of-00001.parquet",
        "their names say that there are more files, and these are not there: train-00001-of-00003.parquet",
    )


@pytest.mark.parametrize(
    ("file", "folder"),
    [("cats/train-00000-of-00001.parquet", "cats"), ("cats/train/0000.parquet", "cats"), ("a/b/1.parquet", "a/b")],
)
def test_folders_of_configurations_are_no_classes(tmp_path: Path, file: str, folder: str) -> None:
    """As repositories of the Hub have them."""
    simple(tmp_path / "hub" / file)
    simple(tmp_path / "hub" / file.replace("cats", "dogs"))
    message = f"holds Parquet files in folders that are no splits, such as {tmp_path}/hub/{folder}; give one of these"
    check_refused(tmp_path / "hub", match=message)
    assert len(listing(tmp_path / "hub" / folder).table) == 5


def test_what_datasets_saves_on_a_disk_is_refused_with_what_to_do(tmp_path: Path) -> None:
    import datasets  # noqa: PLC0415

    table = datasets.Dataset.from_list([row(1)], features=features())
    datasets.DatasetDict({"train": table, "test": table}).save_to_disk(tmp_path / "saved")
    for folder in (tmp_path / "saved", tmp_path / "saved/train"):
        check_refused(folder, match=f"{folder} holds Arrow files, .* what datasets.load_from_disk returns")
    report = stoker.build(datasets.load_from_disk(tmp_path / "saved"), tmp_path / "out", progress=False)
    assert report.manifest.records == 2


def test_null_is_an_empty_text_or_not_a_number(tmp_path: Path) -> None:
    """As img2dataset writes the errors of what it has downloaded, and pandas and `datasets` what is missing."""
    columns = {
        "jpg": [picture(number) for number in range(3)],
        "error_message": pa.array([None] * 3, pa.string()),
        "caption": ["a", None, "b"],
        "score": [0.5, None, 0.25],
    }
    for number in range(2):
        write_rows(tmp_path / f"src/0000{number}.parquet", columns, row_group_size=2)
    with pytest.warns(SourceWarning, match=r"column '.*' has no value in . rows: (empty|nan) there") as warned:
        report = stoker.build(tmp_path / "src", tmp_path / "out", progress=False)
    told = [str(warning.message).partition(": column ")[2].partition(":")[0] for warning in warned]
    gaps = {"error_message": 6, "caption": 2, "score": 2}
    assert told == [f"'{name}' has no value in {n} rows" for name, n in gaps.items()]
    assert (report.manifest.records, report.manifest.rejects) == (6, 0)
    for folder in (tmp_path / "out", tmp_path / "src"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SourceWarning)
            dataset = stoker.open(folder)
        values = [dataset[index].fields for index in range(6)]
        assert {row["error_message"] for row in values} == {""}
        assert sorted((row["caption"], str(row["score"])) for row in values) == [
            *[("", "nan")] * 2,
            *[("a", "0.5")] * 2,
            *[("b", "0.25")] * 2,
        ]
    write_rows(tmp_path / "n.parquet", {"image": columns["jpg"], "n": [1, None, 2]})
    with pytest.raises(TooManyRejectsError, match="field 'n' is None; every record needs it"):
        stoker.build(tmp_path / "n.parquet", tmp_path / "n", progress=False)


@pytest.mark.parametrize("name", ["image", "JPG", "Image_Bytes"])
def test_bytes_in_a_column_of_a_known_name_are_images(tmp_path: Path, name: str) -> None:
    pictures = [picture(number) for number in range(3)]
    tree = listing(write_rows(tmp_path / "a.parquet", {"n": [0, 1, 2], name: pictures}))
    assert [tree.load(item, "train").data for item in tree.table] == pictures
    others = {"jpg": pictures, "JPG": [b"x"] * 3}
    for number, names in enumerate((["jpg", "JPG"], ["JPG", "jpg"])):
        path = write_rows(tmp_path / f"{number}/a.parquet", {column: others[column] for column in names})
        tree = listing(path)
        assert [tree.load(item, "train").data for item in tree.table] == pictures


def test_class_folders_beside_files_mean_what_they_meant(tmp_path: Path) -> None:
    simple(tmp_path / "notes.parquet")
    fill(tmp_path, "cat/1.jpg")
    assert listing(tmp_path).classes == (b"cat",)


def test_files_beside_have_the_images_without_bytes(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(picture(number, "PNG"))
    images = [image(None, "0.png"), image(None, str(tmp_path / "1.png")), image(picture(2)), image(None, "gone.png")]
    masks = [image(mask(0)), image(None, "2.png"), image(mask(2)), image(mask(3))]
    path = write_rows(tmp_path / "p.parquet", {"image": images, "label": [0] * 4, "second_image": masks})
    report = stoker.build(path, tmp_path / "out", max_rejects=1, progress=False)
    reason = f"row 3 of {path}: column 'image' has no bytes, and the file of its path 'gone.png' cannot be read"
    rejects = [(reject.key, reject.reason.rpartition(": ")[0]) for reject in report.rejects]
    assert rejects == [("p.parquet/000000003/gone.png", reason)]
    dataset = stoker.open(path)
    assert [dataset[index].encoded for index in range(3)] == [picture(0, "PNG"), picture(1, "PNG"), picture(2)]
    with pytest.raises(OSError, match="gone"):
        dataset[3].decode()


@pytest.mark.parametrize(
    ("images", "reason"),
    [
        ([image(None)], r"row 0 of .*p\.parquet: column 'image' is null"),
        ([None], r"row 0 of .*p\.parquet: column 'image' is null"),
        ([image(b"text")], r"p\.parquet/000000000: "),
        ([image(b"")], r"p\.parquet/000000000: "),
        ([image(picture(0)[:40])], r"p\.parquet/000000000: "),
    ],
)
def test_rows_without_an_image_are_rejects_that_name_them(tmp_path: Path, images: list[Any], reason: str) -> None:
    images = [*images, image(picture(1))]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    path = write_rows(tmp_path / "p.parquet", {"image": pa.array(images, kind), "label": [0, 0]})
    with pytest.raises(TooManyRejectsError, match=reason) as caught:
        stoker.build(path, tmp_path / "out", progress=False)
    assert [reject.key for reject in caught.value.report.rejects] == ["p.parquet/000000000"]


@pytest.mark.parametrize(("name", "inside"), [("objects", "bbox"), ("objects", "mask"), ("boxes", "xmin")])
def test_columns_of_boxes_are_told(name: str, inside: str, tmp_path: Path) -> None:
    columns = {"image": [image(picture(0))], name: pa.array([{inside: [["1", "2"]]}])}
    tree = listing(write_rows(tmp_path / "p.parquet", columns))
    assert [*tree.fields] == [name]
    told = [warning.partition(";")[0] for warning in tree.warnings]
    assert told == [f"{name!r} is a field of JSON"] * (inside != "mask")


def test_columns_that_no_field_holds_are_named(tmp_path: Path) -> None:
    images = [image(picture(0))]
    columns = {"image": images, "odd": pa.array([{"x": b"1"}]), "none": pa.array([None], pa.null())}
    tree = listing(write_rows(tmp_path / "p.parquet", columns))
    assert dict(tree.fields) == {}
    assert [warning.partition(": ")[2] for warning in tree.warnings] == [
        "column 'odd' is not used: no field can hold its type",
        "column 'none' is not used: no field can hold its type",
    ]


def test_files_with_other_columns_are_refused(tmp_path: Path) -> None:
    simple(tmp_path / "train-00000-of-00002.parquet")
    write_rows(tmp_path / "train-00001-of-00002.parquet", {"image": [image(picture(0))], "caption": ["x"]})
    check_refused(tmp_path, match=r"train-00001.* has other columns than .*train-00000.*: 'caption'")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["x"], "label": [1]}, r"no column of images.*; it has text \(string\), label \(int64\)"),
        ({"content": [b"x"]}, r"its column 'content' has bytes, .*; leave it out, or call it 'image' if"),
    ],
)
def test_a_file_without_images_is_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    check_refused(write_rows(tmp_path / "p.parquet", columns), match=message)


def test_images_come_before_urls(tmp_path: Path) -> None:
    columns = {"image": [image(picture(0))], "url": ["https://photos.example/1.jpg"]}
    tree = listing(write_rows(tmp_path / "p.parquet", columns))
    assert dict(tree.fields) == {"url": fields.Text()}
    assert tree.load(tree.table[0], "train").data == picture(0)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data[:-1], "does not end as Parquet does: it is cut short at byte"),
        (lambda data: data[: len(data) // 2], "does not end as Parquet does"),
        (lambda data: data[:3], "does not end as Parquet does: it is cut short at byte 3"),
        (lambda _: b"", "does not end as Parquet does: it is cut short at byte 0"),
        (lambda data: data[:-4] + b"PARE", "is encrypted"),
        (lambda data: data[:-8] + b"\xff\xff\xff\x7f" + data[-4:], "its footer is said to have 2,147,483,647 bytes"),
        (lambda data: data[:-8] + b"\0\0\0\0" + data[-4:], "the footer of .* is damaged"),
        (lambda data: data[:-100] + bytes(92) + data[-8:], "the footer of .* is damaged"),
        (lambda data: b"PAR1" + data[-8:], "its footer is said to have"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, change: Callable[[bytes], bytes], message: str) -> None:
    path = simple(tmp_path / "p.parquet")
    path.write_bytes(change(path.read_bytes()))
    check_refused(path, match=message)


def test_changed_pages_are_found(tmp_path: Path) -> None:
    path = simple(tmp_path / "p.parquet", compression="none", use_dictionary=False, write_page_checksum=True)
    data = path.read_bytes()
    path.write_bytes(flipped(data, data.index(picture(2)) + 60))
    with pytest.raises(SourceError, match=r"p\.parquet, at a row from 0 on, is damaged.*"):
        stoker.open(path)
    with pytest.raises(TooManyRejectsError, match=r"p\.parquet, at a row from 0 on, is damaged"):
        stoker.build(path, tmp_path / "out", progress=False)


def test_every_changed_byte_gives_a_dataset_or_an_error(tmp_path: Path) -> None:
    path = simple(tmp_path / "p.parquet", 3, compression="none", write_page_checksum=True)
    data, expected = path.read_bytes(), [picture(number) for number in range(3)]
    kept = 0
    for at in [*range(0, len(data) - 8, 97), *range(len(data) - 60, len(data))]:
        path.write_bytes(flipped(data, at))
        try:
            images = [sample.encoded for sample in stoker.open(path)]
        except StokerError:
            continue
        kept += images == expected
    assert kept > 0  # statistics and names of writers do not matter


def test_values_that_take_a_thousand_times_the_bytes_of_the_file_are_refused(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "_FEW_BYTES", 2**22)  # a sixteenth
    message = r"has .* of values in .* K?B, more than 1000 times as many, so it is not read; write it without"
    path = write_rows(
        tmp_path / "page.parquet", {"image": [bytes(7 * 10**6)]}, compression="zstd", use_dictionary=False
    )
    check_refused(path, match=message)  # its footer says so
    rows = pa.array([bytes(10**5)] * 80)
    path = write_rows(tmp_path / "dictionary.parquet", {"image": rows}, compression="zstd", row_group_size=20)
    with pytest.raises(SourceError, match=message):  # unpacking it finds out
        stoker.open(path)
    assert not sum(file.stat().st_size for file in cache.rglob("*.arrow*"))
    rows = pa.array([bytes(10**4)] * 400)
    path = write_rows(tmp_path / "few.parquet", {"image": rows}, compression="zstd")
    assert len(stoker.open(path)) == 400


@pytest.mark.parametrize(("rows", "message"), [(10**6, "1,000,000 rows, in"), (4000, "4,000 rows of images, in")])
def test_a_footer_that_says_too_many_rows_is_refused(tmp_path: Path, rows: int, message: str) -> None:
    images = pa.array([None] * rows, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    path = write_rows(tmp_path / "p.parquet", {"image": images})
    assert path.stat().st_size < rows
    check_refused(path, match=f"says that it has {message} [0-9,]+ bytes")


def test_fingerprints_change_with_the_footer_and_not_with_the_path(tmp_path: Path) -> None:
    columns = {"image": [image(picture(1))], "label": [0]}
    paths = [
        write_rows(tmp_path / name / "p.parquet", {**columns, "n": [number]})
        for number, name in ((1, "a"), (1, "b"), (2, "c"))
    ]
    first, same, other = (listing(path).fingerprint() for path in paths)
    assert first == same != other


def test_unpacked_files_are_made_once_and_again_after_a_change(tmp_path: Path, cache: Path) -> None:
    path = simple(tmp_path / "p.parquet")
    stoker.open(path)
    (first,) = cache.iterdir()
    modified = first.stat().st_mtime_ns
    stoker.open(path)
    assert first.stat().st_mtime_ns == modified
    assert first.name.endswith("-p.parquet.arrow")
    simple(path, 3)
    assert len(stoker.open(path)) == 3
    (second,) = cache.iterdir()
    assert second != first


def test_a_change_that_the_footer_does_not_show_is_seen(tmp_path: Path) -> None:
    path = simple(tmp_path / "p.parquet", compression="none", use_dictionary=False, write_statistics=False)
    before = stoker.open(path)[0].encoded
    data = path.read_bytes()
    path.write_bytes(flipped(data, data.index(before) + len(before) - 1))
    os.utime(path, ns=(1, 1))
    assert stoker.open(path)[0].encoded == flipped(before, len(before) - 1)


@pytest.mark.parametrize("has_locks", [True, False])
def test_what_a_killed_process_has_left_is_removed_where_it_cannot_be_anothers(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, has_locks: bool
) -> None:
    path = simple(tmp_path / "p.parquet")
    stoker.open(path)
    (unpacked,) = cache.iterdir()
    left = unpacked.rename(f"{unpacked}.tmp-1-0123abcd")
    if not has_locks:
        monkeypatch.setattr("fcntl.flock", Mock(side_effect=OSError(errno.ENOLCK, "No locks available")))
    assert stoker.open(path)[0].encoded == picture(0)
    assert sorted(cache.iterdir()) == [unpacked] + [left] * (not has_locks)


def test_unpacked_files_are_listed_and_removed_unless_in_use(tmp_path: Path, cache: Path, cli: Cli) -> None:
    for name in ("one", "two"):
        simple(tmp_path / f"{name}.parquet")
    dataset = stoker.open(tmp_path / "one.parquet")
    stoker.open(tmp_path / "two.parquet")
    gc.collect()
    (cache / "notes.txt").write_text("not of this cache")
    sizes = [path.stat().st_size for path in sorted(cache.glob("*.arrow"))]
    assert json.loads(cli("cache", "--json"))["unpacked"] == {"files": 2, "bytes": sum(sizes)}
    assert "1 unpacked files" in cli("cache", "--clear")
    assert sorted(path.name.rpartition("-")[2] for path in cache.iterdir()) == ["notes.txt", "one.parquet.arrow"]
    assert dataset[0].encoded == picture(0)


def test_nothing_is_left_of_a_file_that_is_not_whole(tmp_path: Path, cache: Path) -> None:
    path = simple(tmp_path / "p.parquet", 40, compression="none", use_dictionary=False, write_page_checksum=True)
    data = path.read_bytes()
    path.write_bytes(flipped(data, data.index(picture(39), data.index(picture(38))) + 60))
    for _ in range(2):
        with pytest.raises(SourceError, match="is damaged"):
            stoker.open(path)
    assert list(cache.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = simple(tmp_path / "p.parquet")
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "file"))
    problem = r"cannot be unpacked in .*/file/unpacked: .*; set STOKER_CACHE_DIR to a folder"
    with pytest.raises(ConfigError, match=problem):
        stoker.open(path)


def test_without_pyarrow_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = simple(tmp_path / "p.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"no module 'pyarrow'; run pip install 'stoker\[parquet\]'"):
        listing(path)


def test_what_was_not_used_is_a_warning(tmp_path: Path) -> None:
    simple(tmp_path / "train-00000-of-00002.parquet")
    with pytest.warns(SourceWarning, match=r"these are not there: train-00001-of-00002\.parquet"):
        stoker.open(tmp_path)


def test_no_image_is_read_to_look_for_labels_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "rows"
    root.mkdir()
    for number in range(2):
        columns = {"image": [b"\xff\xd8\xff"] * 4, "breed": ["a", "b"] * 2, "text": [*"wxyz"]}
        parquet.write_table(pa.table(columns), root / f"train-0000{number}-of-00002.parquet")
    read: list[str] = []
    batches = parquet_files.ParquetFile.batches

    def noted(self: Any, columns: Any, *rest: Any) -> Any:
        read.extend(f"{self.path.name[6:11]} {name}" for name in columns)
        return batches(self, columns, *rest)

    monkeypatch.setattr(parquet_files.ParquetFile, "batches", noted)
    listing(root)
    assert read == ["00000 breed", "00000 text"]
    read.clear()
    listing(root, label_column=("breed",))
    assert not [name for name in read if name.endswith("image")]
