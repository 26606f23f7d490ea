"""What every kind of field says of itself: a kind without a row here fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from small_cases import each
from stoker import fields
from stoker.errors import ConfigError
from stoker.types import BatchForm, EncodedImage, FeatureSpec

if TYPE_CHECKING:
    from stoker.types import Field

pa = pytest.importorskip("pyarrow")
FILE = EncodedImage(b"file", "png", 3, 4)


class Beside:
    """The image of a record, which makes the same file of every value."""

    def image(self, name: str, value: Any) -> EncodedImage:
        del name, value
        return FILE

    def mask(self, name: str, value: Any, bits: int) -> EncodedImage:
        del name, value, bits
        return FILE


@dataclass(frozen=True)
class Row:
    """A field, a value as a source gives it, and what each path makes of it."""

    field: Field
    given: Any
    read: Any
    stored: Any  # its only feature, or all
    form: BatchForm
    summary: str
    shown: str
    plain: Any
    column: str
    inferred: str | None = None
    cell: tuple[str, Any] | None = None


FILES = {
    "x/encoded": ("bytes", [b"file"]),
    "x/format": ("bytes", [b"PNG"]),
    "x/height": ("int64", [3]),
    "x/width": ("int64", [4]),
}
INT = BatchForm("dense", "int64", stored="int64")
LABELS = BatchForm("ragged", "int64", fill=-1, stored="int64")
PLANE = "struct<bytes: binary, path: string>"
PADDED = BatchForm("padded", "int64", pad_to=2, fill=-1, stored="int64")
HALVES = BatchForm("dense", "float16", (2,), group=4)
FLOATS = BatchForm("dense", "float32", (2, 1), stored="float", group=2)
INTS = BatchForm("ragged", "int64", stored="int64")
ROWS = [
    Row(fields.Text(), "é", "é", ("bytes", ["é".encode()]),
        BatchForm("text"), "text", '"é"', "é", "string", "x", ("7", "7")),
    Row(fields.Bytes(), b"ab", b"ab", ("bytes", [b"ab"]), BatchForm("bytes"), "bytes", "2 B", "YWI=", "binary", "x"),
    Row(fields.Json(), {"b": (1, None), "a": "é"}, {"a": "é", "b": [1, None]},
        ("bytes", ['{"a":"é","b":[1,null]}'.encode()]), BatchForm("json"), "json",
        '{"a": "é", "b": [1, null]}', {"a": "é", "b": [1, None]}, "string", "x"),
    Row(fields.Json("list[str]"), ["a", None], ["a", None], ("bytes", [b'["a",null]']),
        BatchForm("json"), "json", '["a", null]', ["a", None], "list<item: string>"),
    Row(fields.Int(), True, 1, ("int64", [1]), INT, "int", "1", 1, "int64", "x", ("true", 1)),
    Row(fields.Int("uint8"), 255, 255, ("int64", [255]), INT, "int", "255", 255, "uint8", None, ("255", 255)),
    Row(fields.Float(), 1, 1.0, ("float", [1.0]), BatchForm("dense", "float32", stored="float"),
        "float", "1.0", 1.0, "float", None, ("1e3", 1000.0)),
    Row(fields.Label(["cat", "dog"]), "dog", 1, ("int64", [1]), INT, "label of 2 classes", "1 (dog)", 1, "int64"),
    Row(fields.Label(), 7, 7, ("int64", [7]), INT, "label", "7", 7, "int64", "label"),
    Row(fields.Labels(["cat"]), [0, "cat"], np.array([0, 0]), ("int64", [0, 0]),
        LABELS, "labels of 1 class", "0 (cat), 0 (cat)", [0, 0], "list<item: int64>"),
    Row(fields.Labels(pad_to=2), [3], np.array([3]), ("int64", [3]), PADDED, "labels", "3", [3], "list<item: int64>"),
    Row(fields.Array("float16", (2,)), [1, 2], np.array([1, 2], "float16"), ("bytes", [b"\0<\0@"]),
        HALVES, "array of float16 (2)", "(2,): 1, 2", [1.0, 2.0], "fixed_size_list<item: float>[2]"),
    Row(fields.Array("float32", (2, 1)), [[1], [2.5]], np.array([[1], [2.5]], "float32"), ("float", [1.0, 2.5]),
        FLOATS, "array of float32 (2, 1)", "(2, 1): 1, 2.5", [[1.0], [2.5]],
        "fixed_size_list<item: fixed_size_list<item: float>[1]>[2]"),
    Row(fields.Array("uint16", (2,)), np.array([1, 258], ">u2"), np.array([1, 258], "uint16"),
        ("bytes", [b"\1\0\2\1"]),
        BatchForm("dense", "uint16", (2,), group=4), "array of uint16 (2)", "(2,): 1, 258", [1, 258],
        "fixed_size_list<item: uint16>[2]"),
    Row(fields.Array("bool", ()), True, np.array(True), ("bytes", [b"\1"]),
        BatchForm("dense", "bool", ()), "array of bool ()", "(): 1", True, "bool"),
    Row(fields.Array(np.dtype(">i8"), (None,)), [1, 2], np.array([1, 2]), ("int64", [1, 2]),
        INTS, "array of int64 (any)", "(2,): 1, 2", [1, 2], "list<item: int64>", "x"),
    Row(fields.Image(), object(), FILE, FILES, BatchForm("image"), "image", "png, 4 x 3, 4 B", None, PLANE),
    Row(fields.Mask(16), object(), FILE, FILES,
        BatchForm("mask", "uint16"), "mask of 16 bits", "png, 4 x 3, 4 B", None, PLANE),
]  # fmt: skip
NAMES = [repr(row.field) for row in ROWS]


def test_every_kind_has_a_row() -> None:
    assert {row.field.kind for row in ROWS} | {"boxes"} == set(fields.KINDS)


@each("row", ROWS)
def test_a_manifest_says_it(row: Row) -> None:
    assert fields.from_json(json.loads(json.dumps(row.field.to_json()))) == row.field


@each("row", ROWS)
def test_a_record_holds_it(row: Row) -> None:
    features = row.field.encode("x", row.given, Beside())
    assert features == (row.stored if isinstance(row.stored, dict) else {"x": row.stored})
    specs = row.field.features("x")
    assert features.keys() == specs.keys()
    for key, (kind, held) in features.items():
        assert specs[key] == FeatureSpec(kind, specs[key].length and len(held))
    read = row.field.decode("x", features)
    assert np.array_equal(read, row.read) if isinstance(row.read, np.ndarray) else read == row.read
    assert row.field.show(read) == row.shown
    if row.field.is_image:
        assert fields.stored_values(features, {"x": row.field}) == {"x": b"file"}


@each("row", ROWS)
def test_batches_and_people_are_told_of_it(row: Row) -> None:
    assert row.field.form() == row.form
    assert row.field.summary == row.summary
    assert row.field.is_image == row.form.is_plane
    assert row.form.bits == getattr(row.field, "bits", 0)
    assert row.field.class_names == getattr(row.field, "names", None)


@each("row", ROWS)
def test_an_export_has_it(row: Row) -> None:
    kind, feature = row.field.arrow(pa)
    assert str(kind).replace("element", "item") == row.column
    json.dumps(feature)
    value = FILE.encoded if row.field.is_image else row.read
    assert len(pa.array([row.field.to_arrow(value)], kind)) == 1
    if not row.field.is_image:
        assert json.loads(json.dumps(row.field.to_plain(value))) == row.plain


@pytest.mark.parametrize("row", [row for row in ROWS if row.inferred], ids=repr)
def test_a_first_record_tells_it(row: Row) -> None:
    assert fields.infer({row.inferred: row.given}) == {row.inferred: row.field}


@pytest.mark.parametrize("row", [row for row in ROWS if row.cell], ids=repr)
def test_a_cell_stands_for_it(row: Row) -> None:
    assert row.cell is not None
    text, value = row.cell
    assert row.field.from_cell(text) == value
    assert row.field.from_cell("") in ("", None)


def test_boxes_stand_elsewhere_in_records_and_batches() -> None:
    boxes = fields.Boxes(["cat"])
    assert fields.from_json(boxes.to_json()) == boxes
    assert (boxes.features("x"), boxes.encode("x", []), boxes.decode("x", {})) == ({}, {}, None)
    assert (boxes.summary, boxes.show([]), boxes.class_names) == ("boxes of 1 class", "0 boxes", ("cat",))
    assert str(boxes.arrow(pa)[0]).count("float") == 4
    with pytest.raises(ConfigError, match="BoxOutput"):
        boxes.form()
