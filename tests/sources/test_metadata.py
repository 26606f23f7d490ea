"""Metadata files beside images, written by pandas and read by ``datasets``, and what is wrong with them."""

from __future__ import annotations

import csv
import gc
import json
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import stoker
from sources.making import check_refused, fill, listed, listing, split_sizes, write_table
from stoker import fields
from stoker.errors import SourceWarning, TooManyRejectsError
from stoker.sources import list_source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from stoker.sources import Source

KINDS = {
    "caption": fields.Text(),
    "age": fields.Int(),
    "seen": fields.Int(),
    "weight": fields.Float(),
    "zip": fields.Text(),
}
ROWS: list[dict[str, Any]] = [
    dict(zip(("file_name", "label", *KINDS), cells, strict=True))
    for cells in (
        ("b/2.png", "dog", 'a "big" dog, asleep', 7, True, 1.5, "007"),
        ("b/1.png", "cat", "two\nlines, ü日", -3, False, 2, "10"),
        ("3.png", "dog", "", 0, True, 1e-3, "11"),
    )
]
NAN = fields.Float.missing


def write_columns(root: Path, columns: Mapping[str, Sequence[Any]], name: str = "metadata.csv") -> Path:
    """A source with a row for each of some images."""
    count = len(next(iter(columns.values())))
    names = columns.get("file_name") or [f"{number}.png" for number in range(count)]
    fill(root, *names)
    rows = [{"file_name": names[at], **{key: known[at] for key, known in columns.items()}} for at in range(count)]
    write_table(root / name, rows)
    return root


def values(tree: Source, split: str = "train") -> dict[str, Any]:
    """The extra fields of each item by its path, as they are loaded."""
    return {item.key: tree.load(item, split).fields for item in (tree.table[row] for row in tree.splits[split])}


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.tsv", "metadata.jsonl", "metadata.parquet"])
def test_columns_become_labels_and_fields(tmp_path: Path, name: str) -> None:
    fill(tmp_path, *(row["file_name"] for row in ROWS))
    write_table(tmp_path / name, ROWS)
    tree = listing(tmp_path)
    assert listed(tree) == [("1.png", "cat"), ("3.png", "dog"), ("2.png", "dog")]
    assert tree.fields == KINDS
    extra = [{column: row[column] for column in KINDS} for row in ROWS]
    assert values(tree) == dict(zip((row["file_name"] for row in ROWS), extra, strict=True))
    assert tree.warnings == ()


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl", "metadata.parquet"])
def test_a_build_stores_what_datasets_reads(tmp_path: Path, name: str) -> None:
    import datasets  # noqa: PLC0415

    fill(tmp_path / "src/train", *(row["file_name"] for row in ROWS))
    fill(tmp_path / "src/test", "9.png")
    filled = [{**row, "caption": row["caption"] or "none", "zip": f"D-{row['zip']}"} for row in ROWS]
    write_table(tmp_path / "src/train" / name, filled)
    write_table(tmp_path / "src/test" / name, [{**filled[0], "file_name": "9.png"}])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # it leaves the tables open
        theirs = datasets.load_dataset("imagefolder", data_dir=str(tmp_path / "src"), cache_dir=str(tmp_path / "cache"))
        gc.collect()
    assert stoker.build(tmp_path / "src", tmp_path / "out", progress=False).items == 4
    for split, rows in theirs.items():
        ours = stoker.open(tmp_path / "out", split)
        assert {sample.source: row_of(sample, ours) for sample in ours} == {
            row["image"].filename.rpartition("/")[2]: {
                **{name: row[name] for name in ("label", *KINDS)},
                "pixels": np.asarray(row["image"]).tolist(),
                "weight": pytest.approx(row["weight"]),
            }
            for row in rows
        }


def row_of(sample: stoker.Sample, dataset: stoker.Dataset) -> dict[str, Any]:
    name = dataset.classes[sample.label].name
    return {"label": name, "pixels": np.asarray(sample.decode()).tolist(), **sample.fields}


def test_long_tables_report_how_far_they_are_read(tmp_path: Path) -> None:
    (tmp_path / "metadata.csv").write_text("file_name,label\n" + "".join(f"{n}.png,c\n" for n in range(2500)))
    seen: list[int] = []
    list_source(str(tmp_path), progress=lambda **news: seen.append(news["done"]))
    assert seen[:2] == [1024, 2048]


@pytest.mark.parametrize(
    ("cells", "field", "read"),
    [
        (["1", "-20", "+3"], fields.Int(), [1, -20, 3]),
        (["9223372036854775807", "-9223372036854775808"], fields.Int(), [2**63 - 1, -(2**63)]),
        (["1", "9223372036854775808"], fields.Text(), ["1", "9223372036854775808"]),
        (["1", ".5", "2.", "1e3"], fields.Float(), [1.0, 0.5, 2.0, 1000.0]),
        (["1", ""], fields.Float(), [1.0, NAN]),
        (["0.5", ""], fields.Float(), [0.5, NAN]),
        (["true", "False", "TRUE", ""], fields.Float(), [1.0, 0.0, 1.0, NAN]),
        (["true", "1"], fields.Text(), ["true", "1"]),
        (["true", "yes"], fields.Text(), ["true", "yes"]),
        (["tRue", "false"], fields.Text(), ["tRue", "false"]),
        (["1", "01"], fields.Text(), ["1", "01"]),
        (["1", "nan"], fields.Text(), ["1", "nan"]),
        (["1", " 2"], fields.Text(), ["1", " 2"]),
        (["1", "1_000"], fields.Text(), ["1", "1_000"]),
        (["a", ""], fields.Text(), ["a", ""]),
    ],
)
def test_all_cells_of_a_column_decide_what_it_is(tmp_path: Path, cells: list[str], field: Any, read: list[Any]) -> None:
    tree = listing(write_columns(tmp_path, {"x": cells}))
    assert tree.fields == {"x": field}
    assert values(tree) == {f"{number}.png": {"x": value} for number, value in enumerate(read)}
    nan = f"{tmp_path / 'metadata.csv'}: 'x' has no value in 1 row: nan there"
    assert tree.warnings == ((nan,) if read[-1] is NAN else ())


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([1, 2], fields.Int()),
        ([True, False], fields.Int()),
        ([1, 2.5], fields.Float()),
        (["1", "2"], fields.Text()),
        (["1", 2], fields.Json()),
        ([1, 2**63], fields.Json()),
        ([True, 2], fields.Json()),
        ([[1, 2], {"bbox": [[0.5, 1]]}], fields.Json()),
        (["a", None], fields.Text()),
        ([None, 7], fields.Float()),
        ([[1], None], fields.Json()),
    ],
)
def test_all_values_of_json_lines_decide_what_a_column_is(tmp_path: Path, given: list[Any], field: Any) -> None:
    fill(tmp_path, "0.png", "1.png")
    lines = [json.dumps({"file_name": f"{number}.png", "x": value}) for number, value in enumerate(given)]
    (tmp_path / "metadata.jsonl").write_text("\n\n".join(lines))
    tree = listing(tmp_path)
    assert tree.fields == {"x": field}
    filled = [field.missing if value is None else value for value in given]
    assert values(tree) == {f"{number}.png": {"x": value} for number, value in enumerate(filled)}
    assert len(tree.warnings) == (None in given and field.missing is not None)


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl", "metadata.parquet"])
def test_long_numbers_that_are_rounded_are_named(tmp_path: Path, name: str) -> None:
    """Ids of LAION are such: whole numbers, as float64."""
    columns = {"id": [1581282014547.0, 2.5], "exact": [2.0**24, 0.5], "whole": [1581282014547, 3]}
    tree = listing(write_columns(tmp_path, columns, name))
    told = f"{tmp_path / name}: its column 'id' has whole numbers above 16777216, which float32 rounds"
    assert tree.warnings == (told,)
    assert tree.fields == {"id": fields.Float(), "exact": fields.Float(), "whole": fields.Int()}


def test_columns_of_paths_are_masks_and_images(tmp_path: Path) -> None:
    fill(tmp_path / "train", "images/1.png")
    Image.new("L", (8, 8), 3).save(tmp_path / "train/1_mask.png")
    Image.new("L", (8, 8), 200).save(tmp_path / "train/depth 1.png")
    row = {"file_name": "images/1.png", "mask_file_name": "1_mask.png", "depth_file_name": "./depth 1.png"}
    write_table(tmp_path / "train/metadata.csv", [row])
    tree = listing(tmp_path)
    assert tree.fields == {"mask": fields.Mask(), "depth": fields.Image()}
    assert tree.warnings == ()
    stoker.build(tmp_path, tmp_path / "out", progress=False)
    extra = stoker.open(tmp_path / "out")[0].fields
    assert np.array_equal(extra["mask"], np.full((8, 8), 3))
    assert extra["depth"].shape[:2] == (8, 8)


def test_labels_that_are_all_numbers_are_class_ids(tmp_path: Path) -> None:
    tree = listing(write_columns(tmp_path, {"label": [2, 0, None]}))  # pandas writes 2.0, because of the third
    assert tree.classes == (b"0", b"1", b"2")
    assert listed(tree) == [("2.png", None), ("1.png", "0"), ("0.png", "2")]
    assert "1 row without a label" in tree.warnings[0]
    (tmp_path / "names.txt").write_text("ape\nbee\ncat\n")
    assert listing(tmp_path, labels=str(tmp_path / "names.txt")).classes == (b"ape", b"bee", b"cat")


def test_text_in_json_lines_is_the_name_of_a_class(tmp_path: Path) -> None:
    assert listing(write_columns(tmp_path, {"label": ["7", "5"]}, "metadata.jsonl")).classes == (b"5", b"7")


def test_one_table_may_name_the_images_of_all_splits(tmp_path: Path) -> None:
    names = ["train/b/1.png", "train/2.png", "val/3.png", "test/4.png"]
    write_columns(tmp_path / "one", {"file_name": names, "n": range(4)})
    for split, numbers in {"train": (0, 1), "val": (2,), "test": (3,)}.items():
        own = [names[at].partition("/")[2] for at in numbers]
        write_columns(tmp_path / "each" / split, {"file_name": own, "n": numbers})
    whole, each = listing(tmp_path / "one"), listing(tmp_path / "each")
    assert split_sizes(whole) == {"train": 2, "validation": 1, "test": 1}
    assert whole.fingerprint() == each.fingerprint()
    assert values(whole, "validation") == values(each, "validation") == {"val/3.png": {"n": 2}}


def test_without_labels_the_classes_are_the_folders_if_there_are_several(tmp_path: Path) -> None:
    names, path = ["dog/2.png", "cat/1.png"], tmp_path / "metadata.csv"
    before = listing(fill(tmp_path, *names))
    tree = listing(write_columns(tmp_path, {"file_name": names, "n": [1, 1]}))
    assert listed(tree) == listed(before)
    told = f"{path} has no column 'label': the classes are the folders of the images, as without it: cat, dog"
    assert tree.warnings == (told,)
    tree = listing(write_columns(tmp_path, {"file_name": names, "label": ["animal"] * 2}))
    assert tree.classes == (b"animal",)
    told = f"the classes are the labels in {path}, not the folders in which the images lie: cat, dog"
    assert tree.warnings == (told,)


def test_images_in_one_folder_have_no_class_without_labels(tmp_path: Path) -> None:
    root = write_columns(tmp_path, {"file_name": ["images/1.png", "images/2.png"], "n": [1, 1]})
    assert listed(listing(root)) == [("1.png", None), ("2.png", None)]


def test_a_table_of_something_else_changes_nothing_beside_class_folders(tmp_path: Path) -> None:
    fill(tmp_path, "cat/1.png", "dog/2.png")
    before = listing(tmp_path)
    path = write_table(tmp_path / "metadata.csv", [{"name": "cat", "url": "x"}])
    after = listing(tmp_path)
    assert after.fingerprint() == before.fingerprint()
    assert after.warnings == (*before.warnings, f"{path} is not used: its first row has no file_name")


def test_what_no_row_names_is_reported(tmp_path: Path) -> None:
    fill(tmp_path, "1.png", "2.png", "b/3.png", "notes.txt")
    path = write_table(tmp_path / "metadata.jsonl", [{"file_name": "1.png", "label": "a"}] * 2)
    tree = listing(tmp_path)
    assert len(tree.table) == 2
    assert tree.ignored == {".txt": 1, "not in the metadata": 2}
    assert tree.warnings == (
        f"no row of {path} names these files: 2.png, b/3.png",
        "images that a row names again: 1; each row is an item of its own",
    )


@pytest.mark.filterwarnings("ignore:images that are missing:stoker.errors.SourceWarning")
def test_rows_without_an_image_or_a_value_are_rejects(tmp_path: Path) -> None:
    fill(tmp_path / "src", "1.png", "2.png", "more/.3.png")
    fill(tmp_path, "other/4.png")
    names = [
        "1.png", "2.png", "gone.png", "metadata.jsonl", "more/.3.png", "../other/4.png",
        str(tmp_path / "other/4.png"),
    ]  # fmt: skip
    rows = [{"file_name": name, "n": None if name == "2.png" else [5]} for name in names]
    write_table(tmp_path / "src/metadata.jsonl", rows)
    with pytest.raises(TooManyRejectsError) as caught:
        stoker.build(tmp_path / "src", tmp_path / "out", progress=False)
    reasons = {reject.key: reject.reason for reject in caught.value.report.rejects}
    assert reasons.keys() == {"2.png", "gone.png", "metadata.jsonl"}
    assert reasons["2.png"] == "field 'n' is None; every record needs it"
    assert "the file is not there: what names it is wrong" in reasons["gone.png"]
    assert caught.value.report.items == 7


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("csv", "name,label\n1.png,a\n", "line 2 of {}: there is no column 'file_name', but 'name', 'label'"),
        ("csv", "file_name,a\n", "{} has no rows"),
        ("csv", "", "{} has no rows"),
        ("csv", "file_name,a,a\n1.png,1,1\n", "line 1 of {}: it names the column 'a' twice"),
        ("csv", "file_name,a\n1.png,1\n2.png\n", "line 3 of {}: it has 1 cell, but there are 2 columns"),
        ("csv", 'file_name,a\n1.png,"x\n2.png,y\n', "line 2 of {}: unexpected end of data; is a quote not closed"),
        ("csv", 'file_name,a\n1.png,"x"y\n', "line 2 of {}: .*; is a quote not closed"),
        ("csv", "file_name,a\n,1\n", "line 2 of {}: file_name is empty"),
        ("csv", "file_name,a\n1.png,\xff\n", "line 2 of {}: it is not UTF-8 at byte 6"),
        ("csv", "file_name,image/x\n1.png,1\n", "{}: field 'image/x' would be stored under 'image/x'"),
        ("csv", "file_name,mask,mask_file_name\n1.png,1,1.png\n", "{}: the columns 'mask' and 'mask_file_name'"),
        ("csv", "file_name,label\n1.png,5000000\n", "class id 5000000; the largest"),
        ("jsonl", '{"file_name": "1.png"}\n[1]\n', "line 2 of {}: it is no JSON object"),
        ("jsonl", '\n{"file_name": "1.png"\n', "line 2 of {}: it is not JSON"),
        ("jsonl", '{"file_name": 5}\n', "line 1 of {}: file_name is empty"),
        ("jsonl", '{"file_name": "1\\u0000.png"}\n', "line 1 of {}: .* has a NUL byte"),
        ("jsonl", '{"file_name": "\\ud800.png"}\n', "line 1 of {}: .* cannot be the name of a file"),
        ("jsonl", '{"file_name": "1.png", "label": {}}\n', "line 1 of {}: the label is neither text nor a whole"),
        ("jsonl", '{"file_name": "1.png", "label": "\\ud800"}\n', "{}: the label .* is no text that UTF-8 can hold"),
        ("jsonl", '{"file_name": "1.png", "a": 1, "a": 2}\n', "line 1 of {}: it is not JSON"),
    ],
)
def test_damaged_tables_are_refused_with_their_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    fill(tmp_path, "1.png", "2.png")
    path = tmp_path / f"metadata.{name}"
    path.write_bytes(text.encode("latin-1") if "\xff" in text else text.encode())
    check_refused(tmp_path, match=message.format(re.escape(str(path))))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl"])
def test_a_line_without_an_end_takes_no_more_memory_than_the_longest_may(tmp_path: Path, suffix: str) -> None:
    fill(tmp_path, "1.png")
    with (tmp_path / f"metadata.{suffix}").open("wb") as file:
        file.write(b"file_name,a\n1.png,")
        file.truncate(2**30)
    check_refused(tmp_path, match=r"line [12] (is longer than|of)")


def test_a_quote_that_is_never_closed_takes_no_more_memory_than_the_longest_row(tmp_path: Path) -> None:
    fill(tmp_path, "1.png")
    (tmp_path / "metadata.csv").write_text('file_name,a\n1.png,"' + 'x""\n' * 2**18)
    check_refused(tmp_path, match=r"line 2 of .*field larger than field limit")


def test_a_row_is_bounded_though_a_program_lets_cells_be_longer(tmp_path: Path) -> None:
    fill(tmp_path, "1.png")
    line = b"x" * 2**16 + b"\n"
    (tmp_path / "metadata.csv").write_bytes(b'file_name,a\n1.png,"' + line * 260)
    usual = csv.field_size_limit(2**30)
    try:
        check_refused(tmp_path, match=r"metadata.csv: its row has more than 16777216 bytes")
    finally:
        csv.field_size_limit(usual)


def test_tables_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    rows = [{"file_name": "1.png", "n": 1}]
    fill(tmp_path / "a", "1.png")
    write_table(tmp_path / "a/metadata.csv", rows)
    write_table(tmp_path / "a/metadata.jsonl", rows)
    assert "metadata files that do not go together" in check_refused(tmp_path / "a")
    fill(tmp_path / "b", "train/1.png", "test/1.png")
    write_table(tmp_path / "b/train/metadata.csv", rows)
    check_refused(tmp_path / "b", match=r"b/train/metadata.csv .* but .*b/test holds none")
    write_table(tmp_path / "b/test/metadata.csv", [{"file_name": "1.png", "m": 1}])
    check_refused(tmp_path / "b", match=r"b/test/metadata.csv has no column|b/train/metadata.csv has no column 'm'")


def test_columns_without_a_name_or_a_value_are_reported(tmp_path: Path) -> None:
    fill(tmp_path, "1.png")
    path = tmp_path / "metadata.csv"
    pd.DataFrame([{"file_name": "1.png", "n": 1, "m": None}]).to_csv(path)  # with the numbers of the rows
    tree = listing(tmp_path)
    assert tree.fields == {"n": fields.Int()}
    assert values(tree) == {"1.png": {"n": 1}}
    assert tree.warnings == (
        f"{path}: one of its columns has no name: not used",
        f"{path}: its column 'm' has no value: not used",
    )


def test_the_fingerprint_changes_with_every_value(tmp_path: Path) -> None:
    captions = (("a", "b"), ("a", "c"), ("b", "a"))
    fingerprints = {listing(write_columns(tmp_path, {"t": texts})).fingerprint() for texts in captions}
    write_columns(tmp_path, {"file_name": ["1.png", "0.png"], "t": ["a", "b"]})
    assert len(fingerprints) == 3
    assert listing(tmp_path).fingerprint() in fingerprints  # the order of the rows does not matter


def test_parquet_has_values_of_types(tmp_path: Path) -> None:
    fill(tmp_path, "1.jpg", "2.jpg")
    columns = {
        "file_name": ["1.jpg", "2.jpg"],
        "label": [1.0, None],
        "place": pd.Categorical(["x", "y"]),
        "when": pd.to_datetime(["2020-01-02", "2021-02-03"]),
        "many": [[1, 2], [3]],
    }
    pd.DataFrame(columns).to_parquet(tmp_path / "metadata.parquet", index=False)
    tree = listing(tmp_path)
    assert tree.fields == {"place": fields.Text(), "when": fields.Text(), "many": fields.Json()}
    stored = {item.key: (item.label, tree.load(item, "train").fields) for item in tree.table}
    assert stored == {
        "1.jpg": (1, {"place": "x", "when": "2020-01-02 00:00:00.000000", "many": [1, 2]}),
        "2.jpg": (-1, {"place": "y", "when": "2021-02-03 00:00:00.000000", "many": [3]}),
    }


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"file_name": [None]}, r"row 0 of .*metadata\.parquet: file_name is empty"),
        ({"file_name": ["1.jpg"], "label": [{"a": 1}]}, r"row 0 of .*: the label is neither text nor a whole number"),
        ({"file_name": ["1.jpg"], "x": [b"1"]}, r"row 0 of .*: its column 'x' has bytes"),
    ],
)
def test_parquet_that_is_no_table_of_images_is_refused(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    fill(tmp_path, "1.jpg")
    pd.DataFrame({"file_name": ["1.jpg"], **columns}).to_parquet(tmp_path / "metadata.parquet", index=False)
    check_refused(tmp_path, match=message)
    (tmp_path / "metadata.parquet").write_bytes(b"PAR1" + bytes(8) + b"PAR1")
    check_refused(tmp_path, match=r"the footer of .*metadata\.parquet is damaged")


# Classes in a column of another name


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.tsv", "metadata.jsonl", "metadata.parquet"])
@pytest.mark.parametrize(
    ("column", "labels"), [("class", ["dog", "cat", "dog"]), ("Category-ID", [1, 0, 1]), ("fine_label", [1.0, None, 0])]
)
def test_the_only_column_of_classes_is_taken(tmp_path: Path, name: str, column: str, labels: list[Any]) -> None:
    others = {"caption": ["a", "b", "a"], "num_classes": [1, 2, 3], "target": [0.5, 0.25, 0.75], "status": ["ok"] * 3}
    root = write_columns(tmp_path / "other", {column: labels, **others}, name)
    want = listing(write_columns(tmp_path / "label", {"label": labels, **others}, name))
    tree = listing(root)
    assert (listed(tree), tree.classes, tree.fields) == (listed(want), want.classes, want.fields)
    warning = f"{root / name}: nothing is called 'label'; the classes are {column!r}"
    assert tree.warnings == (warning, *(text.replace("label/", "other/") for text in want.warnings))
    with pytest.warns(SourceWarning) as seen:
        stoker.open(root)
    assert str(seen[0].message) == warning


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.tsv", "metadata.jsonl"])
def test_several_columns_of_classes_are_refused_with_a_choice(tmp_path: Path, name: str) -> None:
    columns = {"classy": [7, 8], "class": ["dog", "cat"], "class_id": [0, 1], "x": [1.5, 2]}
    root = write_columns(tmp_path / "with blank", columns, name)
    message = check_refused(root)
    told = "nothing is called 'label', and the classes may be 'class' or 'class_id'; give label_column='class'"
    assert message.endswith(told)
    tree = listing(root, label_column="class")
    assert listed(tree) == [("1.png", "cat"), ("0.png", "dog")]
    assert [*tree.fields] == ["classy", "class_id", "x"]


def test_an_empty_column_of_labels_is_a_source_without_classes(tmp_path: Path) -> None:
    columns = {"class": ["dog", "cat"], "class_id": [0, 1], "label": ["", ""]}
    tree = listing(write_columns(tmp_path, columns))
    assert (tree.classes, [*tree.fields]) == ((), ["class", "class_id"])


@pytest.mark.parametrize(
    "values",
    [[0.5, 0.25], [5_000_000, 1], [-7, 0], ["a|b", "a"], ["3 4", "3"], [f"text {number}" for number in range(21)]],
    ids=str,
)
def test_columns_without_values_of_classes_stay_fields_and_are_named(tmp_path: Path, values: list[Any]) -> None:
    tree = listing(write_columns(tmp_path, {"target": values}))
    assert (tree.classes, [*tree.fields]) == ((), ["target"])
    (warning,) = tree.warnings
    assert warning.endswith("nothing is called 'label'; 'target' has neither ids nor repeated names, so it is a field")


def test_columns_that_differ_from_the_folders_are_refused(tmp_path: Path) -> None:
    columns = {"file_name": ["a/1.png", "b/2.png"], "class": ["cat", "dog"], "n": [1, 2]}
    root = write_columns(tmp_path, columns)
    message = check_refused(root)
    assert message.endswith(
        "the classes may be column 'class' or the folders, such as that of a/1.png; give label_column='class', or "
        "label_column='none' for the folders"
    )
    table = (root / "metadata.csv").read_text()
    for name, classes in (("class", (b"cat", b"dog")), ("none", (b"a", b"b"))):
        assert listing(root, label_column=name).classes == classes
    (root / "metadata.csv").write_text(table.replace("cat", "a").replace("dog", "b"))
    assert listing(root).classes == (b"a", b"b")
