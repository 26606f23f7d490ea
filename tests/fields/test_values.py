"""stoker.fields: what each kind takes and refuses, what it stores, and what comes back; names and JSON of fields."""

from __future__ import annotations

import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as np_st
from PIL import Image as PillowImage

import stoker
from reference import example
from small_cases import each
from stoker import _native, fields
from stoker.errors import ConfigError, ExampleError, SourceError
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path

DTYPES = ["bool", "float16", "float32", "float64"]
DTYPES += [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
json_values = st.recursive(
    st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner | st.none(), max_size=4) | st.dictionaries(st.text(), inner | st.none(), max_size=4),
    max_leaves=10,
)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[fields.Array, np.ndarray[Any, Any]]:
    """A field of arrays, and one of its values."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(1, 4), max_size=3))
    data = draw(st.binary(min_size=8 * 64, max_size=8 * 64))
    first: list[int | None] = [None] if shape and draw(st.booleans()) else []
    if first:
        shape[0] = draw(st.integers(0, 4))
    count = int(np.prod(shape, dtype=int))
    flat = np.frombuffer(data, np.uint8)[:count] % 2 == 1 if dtype == "bool" else np.frombuffer(data, dtype)[:count]
    return fields.Array(dtype, (*first, *shape[len(first) :])), flat.reshape(shape)


values = (
    st.tuples(st.just(fields.Text()), st.text(st.characters(exclude_categories=["Cs"])))
    | st.tuples(st.just(fields.Bytes()), st.binary())
    | st.tuples(st.just(fields.Int()), st.integers(-(2**63), 2**63 - 1))
    | st.tuples(st.just(fields.Float()), st.floats(width=32))
    | st.tuples(st.just(fields.Label()), st.integers(-1, 2**31 - 1))
    | st.tuples(st.just(fields.Label(["a", "b"])), st.integers(-1, 1))
    | st.tuples(st.just(fields.Labels()), st.lists(st.integers(0, 2**31 - 1), max_size=5))
    | st.tuples(st.just(fields.Json()), json_values)
    | arrays()
)


@pytest.mark.slow
@given(values)
def test_what_is_stored_comes_back_from_canonical_bytes(drawn: tuple[fields.ValueField, Any]) -> None:
    field, value = drawn
    features = field.encode("x", value)
    payload = _native.write_example(features)
    assert payload == example.write(features)
    back = field.decode("x", _native.parse_example(payload))
    if isinstance(back, np.ndarray):
        assert np.array_equal(back, value, equal_nan=back.dtype.kind == "f")
        assert field.kind == "labels" or (back.dtype == np.asarray(value).dtype and back.flags.writeable)
    else:
        assert back == value or (back != back and value != value)  # noqa: PLR0124 - NaN
    ((kind, stored),) = features.values()
    assert kind == field.spec.kind
    assert field.spec.length in (None, len(stored))
    assert fields.from_json(json.loads(json.dumps(field.to_json()))) == field == pickle.loads(pickle.dumps(field))


@each(
    ("field", "value", "message"),
    [
        (fields.Text(), None, "field 'x' is None, but must be text (str)"),
        (fields.Text(), b"ab", "field 'x' is b'ab', but must be text (str)"),
        (fields.Text(), "a\ud800", "half a character"),
        (fields.Bytes(), "ab", "field 'x' is 'ab', but must be bytes"),
        (fields.Int(), 2**63, "field 'x' is 9223372036854775808 (int), but must be a whole number of type int64"),
        (fields.Int(), 2**4000, "field 'x' is a number of 4001 bits"),
        (fields.Int("uint8"), 256, "field 'x' is 256 (int), but must be a whole number of type uint8"),
        (fields.Json("list[str]"), ["a", 1], "field 'x' is a list of 2, but must be a list of texts"),
        (fields.Int(), 1.0, "field 'x' is 1.0 (float), but must be a whole number of type int64"),
        (fields.Float(), "1", "field 'x' is '1', but must be a number"),
        (fields.Float(), 1e39, "field 'x' is 1e+39 (float), but must be a number that float32 can hold"),
        (fields.Float(), True, "field 'x' is True (bool), but must be a number"),
        (fields.Label(["a", "b"]), "c", "field 'x' is 'c', but must be the id of a class, 0 to 1, or the name of one"),
        (fields.Label(["a", "b"]), 2, "field 'x' is 2 (int), but must be the id of a class, 0 to 1"),
        (fields.Label(), "c", "field 'x' is 'c', but must be the id of a class, as the field has no names"),
        (fields.Label(), 0.5, "field 'x' is 0.5 (float), but must be the id"),
        (fields.Label(), float("inf"), "field 'x' is inf (float), but must be the id"),
        (fields.Label(), "c", "as the field has no names; to name the classes give stoker.fields.Label([...])"),
        (fields.Label(), -2, "field 'x' is -2 (int), but must be the id"),
        (fields.Labels(["a"]), [0, 1], "its classes must be the id of a class, 0 to 0, or the name of one; 1 (int)"),
        (fields.Labels(), 3, "field 'x' is 3 (int), but must be a list of classes"),
        (fields.Json(), {1: 2}, "the key 1 (int) of a dict is not text"),
        (fields.Json(), float("nan"), "must be what JSON can say"),
        (fields.Json(), {"a": object()}, "Object of type object is not JSON serializable"),
        (fields.Json(), None, "field 'x' is None, but must be what JSON can say, but not null"),
        (fields.Array("float32", (3,)), np.zeros(4), "array of float64 of shape (4,), but must be an array of float32"),
        (fields.Array("float32", (3,)), ["a"] * 3, "must be an array of float32 of shape (3)"),
        (fields.Array("float32", (2,)), [1e39, 0], "a number is too large for that"),
        (fields.Array("int8", (None, 2)), [[1, 300]], "its numbers run from 1 to 300"),
        (fields.Array("int8", (1,)), [0.5], "not of float64"),
        (fields.Array("bool", (1,)), [2], "not of int64"),
        (fields.Array("int64", (2,)), [[1], [2, 3]], "these are not as many numbers in each row"),
        (fields.Array("int64", (2,)), object(), "field 'x' is a value of type object, but must be an array"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(field: fields.ValueField, value: object, message: str) -> None:
    with pytest.raises(SourceError) as error:
        field.encode("x", value)
    assert message in str(error.value)
    assert "'x'" in str(error.value)
    assert " at 0x" not in str(error.value)


def test_json_may_be_64_levels_deep() -> None:
    nested: Any = 1
    for _ in range(63):
        nested = [nested]
    assert fields.Json().decode("x", fields.Json().encode("x", nested)) == nested
    for levels in (1, 10_000):
        deeper = nested
        for _ in range(levels):
            deeper = [deeper]
        with pytest.raises(SourceError, match="nested"):
            fields.Json().encode("x", deeper)


@each(
    ("field", "features", "message"),
    [
        (fields.Text(), {}, "feature x is of kind none, not bytes"),
        (fields.Text(), {"x": ("int64", [1])}, "feature x is of kind int64, not bytes"),
        (fields.Text(), {"x": ("bytes", [b"a", b"b"])}, "feature x has 2 values, not 1"),
        (fields.Text(), {"x": ("bytes", [b"\xff"])}, "feature x: 'utf-8' codec can't decode"),
        (fields.Json(), {"x": ("bytes", [b"[" * 100_000])}, "nested"),
        (fields.Json(), {"x": ("bytes", [b"NaN"])}, "NaN is not a number of JSON"),
        (fields.Label(["a"]), {"x": ("int64", [1])}, "1 is not the id of a class, 0 to 0"),
        (fields.Labels(["a"]), {"x": ("int64", [0, -1])}, "-1 is not the id of a class, 0 to 0"),
        (fields.Array("float32", (2,)), {"x": ("float", [1.0])}, "feature x has 1 values, not 2"),
        (fields.Array("int64", (None, 2)), {"x": ("int64", [1, 2, 3])}, "3 values do not fill the shape (None, 2)"),
        (fields.Array("int16", (1,)), {"x": ("bytes", [b"abc"])}, "3 bytes are not a whole number of int16"),
        (fields.Array("int16", (2**30,)), {"x": ("bytes", [b"ab"])}, "1 values do not fill the shape (1073741824,)"),
        (fields.Array("bool", (1,)), {"x": ("bytes", [b"\2"])}, "not all 0 or 1"),
        (fields.Mask(), {"x/encoded": ("bytes", [b""])}, "feature x/format is of kind none, not bytes"),
    ],
)
def test_a_record_that_holds_something_else_is_refused(field: Any, features: Any, message: str) -> None:
    with pytest.raises(ExampleError) as error:
        field.decode("x", features)
    assert message in str(error.value)


def test_ids_of_masks() -> None:
    for ids in (np.eye(3, dtype=bool), np.eye(3, dtype=np.int64), np.full((2, 3, 1), 255, np.uint16)):
        assert np.array_equal(fields.mask_pixels("m", ids, 8), ids.reshape(ids.shape[:2]))
        assert fields.mask_pixels("m", ids, 8).dtype == np.uint8
        assert fields.mask_pixels("m", ids, 16).dtype == np.uint16
    for ids, message in (
        (np.full((2, 2), 256), "has the class id 256, but .* 0 to 255; records with fields.Mask"),
        (np.full((2, 2), -1), "has the class id -1, but .* 0 to 255$"),
        (np.zeros((2, 2)), "an array of float64 of shape"),
        (np.zeros((2, 2, 3), int), "must be class ids"),
        (np.zeros((0, 2), int), "must be class ids"),
    ):
        with pytest.raises(SourceError, match=message):
            fields.mask_pixels("m", ids, 8)


def test_boxes() -> None:
    field = fields.Boxes(["cat", "dog"])
    assert field.boxes("b", np.array([[0, 0.25, 0.5, 1]])) == [Box(0, 0.25, 0.5, 1)]
    sides = {"xmin": 0, "ymin": 0.25, "xmax": 0.5, "ymax": 1}
    assert field.boxes("b", [sides, sides | {"label": "dog"}, Box(0, 0, 1, 1, 0)])[1] == Box(0, 0.25, 0.5, 1, 1)
    assert field.boxes("b", [Box(0, 0, 1, 1), Box(0, 0, 1, 1, -1)]) == [Box(0, 0, 1, 1), Box(0, 0, 1, 1, -1)]
    for value, message in (
        (None, "field 'b' is None, but must be a list of boxes"),
        ([[0, 0, 1]], "a list of 3 is not a box"),
        ([[0, 0, 10, 10]], "the box 0, 0, 10, 10 is not xmin < xmax"),
        ([[0, 0, 1, float("nan")]], "is not xmin < xmax"),
        ([sides | {"label": "cow"}], "the label of a box is 'cow', but must be the id of a class, 0 to 1"),
        ([Box(5, 0, -3, 0.5)], "the box 5, 0, -3, 0.5 is not xmin < xmax"),
        ([Box("0", 0, 1, 1)], "a tuple of 4 is not a box"),
        ([Box(0, 0, 1, 1, 2)], r"the label of a box is 2 \(int\), but must be the id of a class, 0 to 1"),
    ):
        with pytest.raises(SourceError, match=message):
            field.boxes("b", value)
    with pytest.raises(SourceError, match=r"to name the classes give stoker\.fields\.Boxes\(\[\.\.\.\]\)"):
        fields.Boxes().boxes("b", [sides | {"label": "cat"}])


@pytest.mark.parametrize(
    ("name", "by_name", "of_an_image"),
    [
        ("image", fields.Image(), fields.Image()),
        ("left_image", fields.Image(), fields.Image()),
        ("mask", fields.Mask(), fields.Mask()),
        ("tumour_mask", fields.Mask(), fields.Mask()),
        ("mask_image", fields.Mask(), fields.Mask()),
        ("masked_image", fields.Image(), fields.Image()),
        ("trimap", fields.Text(), fields.Mask()),
        ("segmentation", fields.Text(), fields.Mask()),
        ("depth", fields.Text(), fields.Image()),
    ],
)
def test_names_of_masks_are_the_same_however_held(name: str, by_name: Any, of_an_image: Any, tmp_path: Path) -> None:
    path = tmp_path / "1.png"
    picture = PillowImage.new("L", (8, 6), 1)
    picture.save(path)
    record = {"image": str(path), name: str(path)}
    assert fields.infer(record)[name] == by_name
    assert fields.infer(record | {name: picture})[name] == of_an_image
    if name == "image":
        return
    (tmp_path / "metadata.jsonl").write_text(json.dumps({"file_name": "1.png", f"{name}_file_name": "1.png"}))
    assert stoker.open(tmp_path).fields == {name: of_an_image}


def test_inferring() -> None:
    record = {
        "image": "a.jpg", "left": PillowImage.new("L", (2, 2)), "right_image": b"...", "label": "cat", "boxes": [],
        "mask": "a.png", "depth_mask": np.zeros((2, 2), np.uint16), "caption": "a cat", "raw": b"..", "id": 3,
        "good": True, "score": 0.5, "vector": np.zeros((3, 2), np.float16), "ids": [1, 2], "weights": (0.5,),
        "meta": {"a": [1]}, "none": [],
    }  # fmt: skip
    inferred = fields.infer(record)
    assert inferred == {
        "image": fields.Image(), "left": fields.Image(), "right_image": fields.Image(), "label": fields.Label(),
        "boxes": fields.Boxes(), "mask": fields.Mask(), "depth_mask": fields.Mask(16), "caption": fields.Text(),
        "raw": fields.Bytes(), "id": fields.Int(), "good": fields.Int(), "score": fields.Float(),
        "vector": fields.Array("float16", (3, 2)), "ids": fields.Array("int64", (None,)),
        "weights": fields.Array("float32", (None,)), "meta": fields.Json(), "none": fields.Json(),
    }  # fmt: skip
    parts = fields.roles(inferred)
    assert (parts.image, parts.label, parts.boxes) == ("image", "label", "boxes")
    assert list(parts.extra) == [name for name in inferred if name not in ("image", "label", "boxes")]
    for value in (None, object(), np.array(["a"]), np.zeros((0, 2))):
        with pytest.raises(ConfigError, match="field 'a' of the first record is"):
            fields.infer({"a": value})
    for images in ([b"..."], [np.zeros((2, 2, 3), np.uint8)], [PillowImage.new("L", (2, 2))] * 2):
        with pytest.raises(ConfigError, match="give each of them a name, such as a_0, or leave it out"):
            fields.infer({"a": images})
    with pytest.raises(ConfigError, match=r"give fields=\{'label': stoker.fields.Label\(\), ...\}"):
        fields.infer({"label": None})


def test_roles() -> None:
    parts = fields.roles({"a": fields.Image(), "b": fields.Image(), "c": fields.Label(), "image": fields.Text()})
    assert (parts.image, parts.label, parts.boxes, list(parts.extra)) == ("a", "c", None, ["b", "image"])
    for wrong, message in (
        ({"a": fields.Text()}, "no field is an image: a; give one stoker.fields.Image"),
        ({"a": fields.Image}, "field 'a' must be a field, .* write Image\\(\\)"),
        ({"a": fields.Image(), "b": fields.Boxes(), "c": fields.Boxes()}, "the fields b and c are boxes"),
        ({"a": fields.Image(), "image": fields.Mask()}, "'image' would be stored under 'image/encoded'"),
        ({"a": fields.Image(), "image/class/label": fields.Int()}, "among the keys of the image"),
        ({"a": fields.Image(), "m": fields.Mask(), "m/width": fields.Int()}, "would both be stored under 'm/width'"),
        ({"a": fields.Image(), "": fields.Int()}, "the name of a field is ''"),
        ({"a": fields.Image(), "x\n": fields.Int()}, "printable"),
    ):
        with pytest.raises(ConfigError, match=message):
            fields.roles(wrong)  # type: ignore[arg-type]


@each(
    ("make", "message"),
    [
        (lambda: fields.Label(["a", "a"]), "the class 'a' is given twice"),
        (lambda: fields.Label([]), "names are a list of 0"),
        (lambda: fields.Label("ab"), "names are 'ab'"),
        (lambda: fields.Labels(["a", 1]), "the name of a class is 1"),
        (lambda: fields.Labels(pad_to=0), "pad_to is 0"),
        (lambda: fields.Array("complex64", (1,)), "dtype 'complex64' is not one of bool, int8"),
        (lambda: fields.Array(None, (1,)), "dtype None"),  # type: ignore[arg-type]
        (lambda: fields.Array("int8", 3), "the shape of an array is 3"),  # type: ignore[arg-type]
        (lambda: fields.Array("int8", (0,)), "side 0 of the shape of an array is 0"),
        (lambda: fields.Array("int8", (2, None)), "only the first may differ"),
        (lambda: fields.Array("int8", (2**20, 2**20)), "the number of values of an array is"),
        (lambda: fields.Array("int8", (2,), pad_to=3), "pad_to is 3, but every array"),
        (lambda: fields.Mask(12), "a mask has 8 or 16 bits, not 12"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@given(
    st.dictionaries(
        st.sampled_from(["kind", "names", "pad_to", "dtype", "shape", "bits", "more"]),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(list(fields.KINDS))
        | st.lists(st.none() | st.booleans() | st.integers(-1, 2**40) | st.text(max_size=2), max_size=3),
    )
    | st.integers()
)  # fmt: skip
def test_any_json_is_a_field_or_refused(content: Any) -> None:
    try:
        field = fields.from_json(content)
    except ConfigError:
        return
    assert fields.from_json(json.loads(json.dumps(field.to_json()))) == field


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


every_field = st.sampled_from(
    [
        fields.Text(), fields.Bytes(), fields.Json(), fields.Int(), fields.Float(), fields.Label(),
        fields.Label(["a", "b"]), fields.Labels(), fields.Labels(["a", "b"]),
        *(fields.Array(dtype, (2,)) for dtype in DTYPES),
        *(fields.Array(dtype, (None, 2)) for dtype in DTYPES), fields.Array("float32", ()),
    ]
)  # fmt: skip
any_scalar = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.complex_numbers()
    | st.sampled_from([2**12_000, object(), "\udc80", np.float64(1e300), np.int8(1), np.bool_(1), np.str_("a"), ...])
)  # fmt: skip
any_value = st.recursive(
    any_scalar,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_scalar.filter(_hashable), inner, max_size=3),
    max_leaves=6,
) | np_st.arrays(np_st.scalar_dtypes() | st.just(np.dtype(object)), np_st.array_shapes(min_dims=0, max_side=3))


@given(every_field, any_value)
@settings(max_examples=150)
@pytest.mark.slow
def test_any_value_is_stored_or_refused_and_what_is_stored_is_read(field: fields.ValueField, value: Any) -> None:
    try:
        features = field.encode("x", value)
    except SourceError as error:
        assert len(str(error)) < 700  # noqa: PT017 - of the values that are refused
        return
    field.decode("x", _native.parse_example(_native.write_example(features)))


any_feature = (
    st.tuples(
        st.just("bytes"), st.lists(st.binary() | st.sampled_from([b"[" * 1000, b'{"a":1,"a":2}', b"1e999"]), max_size=3)
    )
    | st.tuples(st.just("int64"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5))
    | st.tuples(st.just("float"), st.lists(st.floats(width=32), max_size=5))
)


@given(every_field | st.sampled_from([fields.Mask(), fields.Image()]), st.data())
@settings(max_examples=150)
def test_any_record_is_read_or_refused(field: Any, data: st.DataObject) -> None:
    keys = list(field.features("x"))
    features = {key: data.draw(any_feature) for key in keys if data.draw(st.booleans() | st.just(value=True))}
    try:
        field.decode("x", features)
    except ExampleError as error:
        assert len(str(error)) < 700  # noqa: PT017 - of the records that are refused
