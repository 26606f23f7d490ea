"""Tables beside images, as people have them: what is taken, what is reported, and what is refused."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

import stoker
from sources.making import fill, listing, refused, split_sizes, write_table
from stoker import fields
from stoker.sources import SourceOptions, list_source

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.sources import Source


def listed(tree: Source) -> dict[str, str | None]:
    """The class of each image by its path, in their order."""
    items = sorted(tree.table, key=lambda item: item.path)
    return {item.path.decode(): None if item.label < 0 else tree.classes[item.label].decode() for item in items}


def values(tree: Source, split: str = "train") -> list[dict[str, Any]]:
    return [tree.load(tree.table[row], split).fields for row in tree.rows_as_listed(split)]


@pytest.fixture
def six(tmp_path: Path) -> Path:
    fill(tmp_path, *(f"photos/00{number}.jpg" for number in range(6)))
    return tmp_path


IDS = [f"00{number}" for number in range(6)]
AT = {f"photos/{name}.jpg": label for name, label in zip(IDS, "abaabb", strict=True)}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize(
    "text", ["sep=;\r\nid;kind,s\r\n{}", '"sep=,"\nid,kind\n{}', "id,kind\r{}", 'id;"kind"\r{}', "SEP=\t\nid\tkind\n{}"]
)
def test_tables_that_excel_writes(six: Path, encoding: str, text: str) -> None:
    end, between = text.removesuffix("{}")[-1], text.partition("id")[2][:1]
    rows = end.join(f"{name}.jpg{between}{label}" for name, label in zip(IDS, "abaabb", strict=True))
    (six / "t.csv").write_bytes(text.format(rows).encode(encoding))
    tree = listing(six)
    assert (listed(tree), len(tree.table)) == (AT, 6)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_encodings_and_separators_are_found(six: Path, encoding: str, separator: str) -> None:
    columns = {"id": IDS, "kind": list("abaabb"), "größe": ["ü, 1"] * 6}
    table = pd.DataFrame(columns).to_csv(index=False, sep=separator)
    (six / "t.csv").write_bytes(("\ufeff" * (encoding == "utf-16-le") + table).encode(encoding))
    tree = listing(six, label_column="kind")
    assert listed(tree) == AT
    assert values(tree) == [{"größe": "ü, 1"}] * 6


def test_a_decimal_comma_is_not_taken_for_two_classes(six: Path) -> None:
    write_table(six / "t.csv", {"id": IDS, "score": [f"{at},5" for at in range(6)]}, sep=";")
    message = "'score' has cells such as '0,5', numbers with a decimal comma or two classes each; write a point in"
    assert message in refused(six)
    assert values(listing(six, label_separator=","))[1] == {"score": ["1", "5"]}


def test_a_table_is_not_among_the_files_that_no_row_names(six: Path) -> None:
    write_table(six / "t.tsv", {"id": IDS, "kind": list("abaabb")}, sep="\t")
    assert "these files" not in " ".join(listing(six).warnings)


def test_another_encoding_is_refused_with_the_line_that_changes_it(six: Path) -> None:
    path = write_table(six / "t.csv", {"id": IDS, "kind": ["é", *"baabb"]}, encoding="cp1252")
    message = refused(six, label_column="kind", image_column="id")
    assert "line 2 of" in message
    subprocess.run(message.partition("type: ")[2], shell=True, check=True)
    assert path.read_text(encoding="utf-8").startswith("id,kind\n000,é\n")
    assert listing(six).classes == (b"a", b"b", "é".encode())


@pytest.mark.parametrize(
    ("labels", "options", "field", "want"),
    [
        ([0.5, 1.0, 2, -3, 0, 7], {}, fields.Float(), 0.5),
        ([-5, 1, 2, 3, 4, 5], {}, fields.Float(), -5.0),
        ([63, 1, 2, 3, 4, 5], {"label_column": "none"}, fields.Int(), 63),
        (["a|b", "a", "", "c", "b", "a"], {}, fields.Labels(["a", "b", "c"]), [0, 1]),
        (["a b", "a", "b", "c", "b", "a"], {}, fields.Labels(["a", "b", "c"]), [0, 1]),
        (["3 1", "2", "0", "1", "1", "1"], {}, fields.Labels(["0", "1", "2", "3"]), [3, 1]),
        (["a b", "a", "a", "a", "c d", "a"], {"label_separator": " "}, fields.Labels([*"abcd"]), [0, 1]),
    ],
)
def test_labels_that_are_a_field(six: Path, labels: list[Any], options: dict[str, str], field: Any, want: Any) -> None:
    write_table(six / "t.csv", {"id": IDS, "target": labels})
    tree = listing(six, **options)
    assert (tree.classes, dict(tree.fields)) == ((), {"target": field})
    first = tree.load(tree.table[0], "train").fields["target"]
    got = field.encode("target", first)
    assert np.array_equal(got.numbers if hasattr(got, "numbers") else got, field.encode("target", want))


@pytest.mark.parametrize(
    ("labels", "options"), [(["x y", "x", "x", "x", "z w", "x"], {}), (["a b", *"abbaa"], {"label_separator": "none"})]
)
def test_names_with_blanks_are_names(six: Path, labels: list[str], options: dict[str, str]) -> None:
    write_table(six / "t.csv", {"id": IDS, "breed": labels})
    assert [*listed(listing(six, **options)).values()] == labels


def test_columns_of_0_and_1(six: Path) -> None:
    marks = {"x": [1, 0, 0, 1, 0, 0], "y": [0, 1, 1, 0, 1, 1]}
    write_table(six / "t.csv", {"id": IDS, **marks})
    assert [*listed(listing(six)).values()] == list("xyyxyy")
    tree = listing(six, label_separator="none")
    assert [value["labels"] for value in values(tree)] == [[name] for name in "xyyxyy"]
    write_table(six / "t.csv", {"id": IDS, "x": [1, 0, 1, 1, 0, 0], "y": [0, 0, 1, 0, 1, 1]})
    tree = listing(six)
    assert [value["labels"] for value in values(tree)] == [["x"], [], ["x", "y"], ["x"], ["y"], ["y"]]
    write_table(six / "t.csv", {"id": IDS, "age": [1, 2, 3, 4, 5, 6], **marks})
    assert listing(six).fields == {"age": fields.Int()}
    assert "several columns of classes each has 0 and 1, and 'age'" in refused(six, label_column="x,age")


def test_later_rows_that_mark_no_class_are_refused(tmp_path: Path) -> None:
    fill(tmp_path, *(f"photos/{number}.jpg" for number in range(1002)))
    write_table(tmp_path / "t.csv", {"id": range(1002), "x": [1] * 1001 + [0], "y": 0})
    message = refused(tmp_path)
    problem = r"line 1003 of .*t.csv: of the columns of the classes, none has a 1.*--label-separator ' '"
    assert re.search(problem, message)
    assert len(listing(tmp_path, label_separator=" ").table) == 1002


def test_splits_of_a_column_and_of_tables(six: Path) -> None:
    splits = ["train", "val", "train", "test", "Train", "valid"]
    write_table(six / "t.csv", {"id": IDS, "kind": list("abaabb"), "subset": splits})
    tree = listing(six)
    assert split_sizes(tree) == {"train": 3, "validation": 2, "test": 1}
    assert (listed(tree), tree.fields) == (AT, {})
    write_table(six / "t.csv", {"id": IDS, "kind": list("abaabb"), "mine": splits})
    assert len(listing(six, label_column="kind", split_column="mine").splits) == 3
    (six / "t.csv").unlink()
    write_table(six / "train.csv", {"id": IDS[:3], "kind": list("aba")})
    write_table(six / "val.csv", {"id": IDS[3:5], "kind": list("ab")})
    write_table(six / "test.csv", {"id": IDS[5:]})
    tree = listing(six)
    assert split_sizes(tree) == {"train": 3, "validation": 2, "test": 1}
    assert listed(tree) == AT | {"photos/005.jpg": None}


def test_what_is_not_obvious_is_counted_reported_or_refused(six: Path) -> None:
    fill(six, "photos/X.JPG", "photos/more.png")
    path = write_table(six / "t.csv", {"id": [*IDS, "x", "gone"], "kind": list("abaabbab")})
    warnings = listing(six).warnings
    assert warnings == (
        f"{path}: the images are 'id', in photos/, with .jpg added; the classes are 'kind'",
        "files whose names differ in case or Unicode form from the table's: 1, photos/X.JPG",
        f"no row of {path} names these files: photos/more.png",
        f"images that are missing or empty, or links that lead nowhere: 1 of 8, such as photos/gone.jpg in {six}",
    )
    fill(six, "other/a/gone.jpg", "other/b/gone.jpg")
    message = refused(six)
    assert "t.csv: 'gone' may be other/a/gone.jpg and other/b/gone.jpg; name one of them, or give --image" in message
    assert len(listing(six, image_root=six / "photos", image_column="id").table) == 8


def test_the_column_of_the_classes_is_told_once(six: Path) -> None:
    path = write_table(six / "t.csv", {"id": IDS, "class": list("abaabb")})
    note = f"{path}: the images are 'id', in photos/, with .jpg added; the classes are 'class'"
    assert listing(six).warnings == (note,)


def test_settings_that_fit_no_table_are_refused(six: Path) -> None:
    path = write_table(six / "t.csv", {"id": IDS, "kind": list("abaabb"), "n": range(6)})
    assert "several columns may have the classes (kind, n); for example, give --image-column id" in refused(path)
    assert f"{path} has no column 'kin', but 'kind', 'n'" in refused(six, label_column="kin")
    assert f"{path} has no column 'm', but 'kind', 'n'" in refused(six, label_column="kind", columns="m")
    assert refused(six, image_column="name") == f"{path} has no column 'name', but 'id', 'kind', 'n'"
    message = f"{path} has the columns id, kind, n; its first row is 000, a, 0; give --image-column"
    assert message in refused(six, image_column="kind")
    tree = listing(six, label_column="kind", columns="none")
    assert (listed(tree), tree.fields) == (AT, {})


def test_the_same_words_for_parquet_and_coco(tmp_path: Path) -> None:
    frame = pd.DataFrame({"picture": [b"1", b"2"], "a_class": ["x", "y"], "b_class": ["u", "v"], "n": [1, 2]})
    frame.to_parquet(tmp_path / "t.parquet")
    told = "the classes may be 'a_class' or 'b_class'; give --label-column a_class"
    assert told in refused(tmp_path / "t.parquet", image_column="picture")
    options = SourceOptions(image_column="picture", label_column="b_class", columns="n")
    tree = list_source(str(tmp_path / "t.parquet"), options)
    assert (tree.classes, tree.fields) == ((b"u", b"v"), {"n": fields.Int()})
    fill(tmp_path, "elsewhere/1.jpg")
    text = '{"images": [{"id": 1, "file_name": "1.jpg", "width": 8, "height": 6}], "annotations": [], "categories": []}'
    (tmp_path / "instances_train.json").write_text(text)
    assert "give the folder in which they lie as --image-root" in refused(tmp_path / "instances_train.json")
    options = SourceOptions(image_root=tmp_path / "elsewhere")
    assert listed(list_source(str(tmp_path / "instances_train.json"), options)) == {"1.jpg": None}


def test_a_dataset_that_was_opened_so_opens_in_other_processes(six: Path) -> None:
    write_table(six / "t.csv", {"id": IDS, "kind": list("abaabb"), "n": range(6)})
    opened = stoker.open(six, label_column=["kind"], image_column="id")
    assert opened.opener().labels.tolist() == opened.labels.tolist() == [0, 1, 0, 0, 1, 1]


def test_of_several_tables_the_one_with_the_column_label_has_the_classes(six: Path) -> None:
    write_table(six / "labels.csv", {"id": IDS, "label": [*"abaabb"]})
    write_table(six / "attributes.csv", {"id": IDS, "colour": [*"rgbrgb"], "size": range(6)})
    tree = listing(six)
    assert listed(tree) == AT
    assert "not read, though they name the images: attributes.csv" in tree.warnings


@pytest.mark.parametrize("names", [("fold0", "fold1"), ("a", "b"), ("", "a_b"), ("x_0", "x_1")])
def test_tables_of_splits_belong_together_by_the_other_words_of_their_names(names: tuple[str, str], six: Path) -> None:
    halves = [slice(0, 3), slice(3, 6)]
    for at, name in enumerate(names):
        for split, half in (("train", halves[at]), ("val", halves[1 - at])):
            columns = {"id": IDS[half], "label": [*"abaabb"][half]}
            write_table(six / f"{split}{'_' * bool(name)}{name}.csv", columns)
    tree = listing(six)
    assert split_sizes(tree) == {"train": 3, "validation": 3}
    assert listed(tree) == AT
    assert len([text for text in tree.warnings if "not read, though they name the images" in text]) == 1


@pytest.mark.parametrize(
    ("rows", "warning"),
    [
        ("000,a,train\n000,a,train\n001,b,val\n", "1; each row is an item of its own"),
        ("000,a,train\n000,a,val\n001,b,val\n", "1; each row is an item of its own; again in another split: 1"),
        ("000,a,train\n000,b,train\n001,b,val\n", "1; each row is an item of its own; again with another label: 1"),
    ],
)
def test_images_of_several_splits_or_labels_are_counted(rows: str, warning: str, six: Path) -> None:
    (six / "t.csv").write_text(f"id,label,split\n{rows}")
    assert f"images that a row names again: {warning}" in listing(six).warnings
