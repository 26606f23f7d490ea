"""Plain tf.data reads the fields of records by the table of docs/reference/format.md."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as np_st

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of TensorFlow's own modules, while they are imported
    import tensorflow as tf

from stoker import _native, fields
from stoker.recipe.image_formats import encode_png
from stoker.types import EncodedImage

RAW = {"bool", "int8", "int16", "int32", "uint8", "uint16", "float16", "float64"}
SAME_BITS = {"uint32": tf.int32, "uint64": tf.int64}


texts = st.text(st.characters(exclude_categories=["Cs"]))


@st.composite
def records(draw: st.DrawFn) -> dict[str, tuple[Any, Any]]:
    """A field and a value of each kind, by name."""
    dtype = draw(st.sampled_from(sorted(RAW | set(SAME_BITS) | {"float32", "int64"})))
    shape = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    array = draw(np_st.arrays(dtype, shape))
    return {
        "text": (fields.Text(), draw(texts)),
        "raw": (fields.Bytes(), draw(st.binary())),
        "json": (
            fields.Json(),
            draw(st.dictionaries(texts, st.integers())),
        ),
        "int": (fields.Int(), draw(st.integers(-(2**63), 2**63 - 1))),
        "float": (fields.Float(), draw(st.floats(width=32, allow_nan=False))),
        "label": (fields.Label(["a", "b"]), draw(st.integers(-1, 1))),
        "labels": (fields.Labels(), draw(st.lists(st.integers(0, 9)))),
        "array": (fields.Array(dtype, shape), array),
        "ragged": (fields.Array(dtype, (None, *shape[1:])), array),
    }


@given(records())
@settings(max_examples=40, deadline=None)
def test_every_kind_by_its_documented_spec(record: dict[str, tuple[Any, Any]]) -> None:
    features = {}
    for name, (field, value) in record.items():
        features |= field.encode(name, value)
    payload = _native.write_example(features)
    _, array = record["array"]
    dtype = array.dtype.name
    one_bytes = tf.io.FixedLenFeature([], tf.string)
    is_list = dtype in ("float32", "int64")
    parsed = tf.io.parse_single_example(
        payload,
        {
            "text": one_bytes,
            "raw": one_bytes,
            "json": one_bytes,
            "int": tf.io.FixedLenFeature([], tf.int64),
            "float": tf.io.FixedLenFeature([], tf.float32),
            "label": tf.io.FixedLenFeature([], tf.int64),
            "labels": tf.io.RaggedFeature(tf.int64),
            "array": tf.io.FixedLenFeature(array.shape, dtype) if is_list else one_bytes,
            "ragged": tf.io.RaggedFeature(dtype) if is_list else one_bytes,
        },
    )
    assert parsed["text"].numpy().decode() == record["text"][1]
    assert parsed["raw"].numpy() == record["raw"][1]
    assert fields.Json().decode("x", {"x": ("bytes", [parsed["json"].numpy()])}) == record["json"][1]
    for name in ("int", "float", "label"):
        assert parsed[name].numpy() == record[name][1]
    assert parsed["labels"].numpy().tolist() == record["labels"][1]
    for name in ("array", "ragged"):
        tensor = parsed[name]
        if dtype in SAME_BITS:
            tensor = tf.bitcast(tf.io.decode_raw(tensor, SAME_BITS[dtype]), dtype)
        elif not is_list:
            tensor = tf.io.decode_raw(tensor, dtype)
        shape = array.shape if name == "array" else (-1, *array.shape[1:])
        assert np.array_equal(tf.reshape(tensor, shape).numpy(), array, equal_nan=array.dtype.kind == "f")
    example = tf.train.Example.FromString(payload)  # by protobuf, which shares nothing with either parser
    assert set(example.features.feature) == set(features)
    for key, (kind, stored) in features.items():
        feature = example.features.feature[key]
        assert feature.WhichOneof("kind") == f"{kind}_list"
        held = list(getattr(feature, f"{kind}_list").value)
        assert np.array_equal(np.asarray(held), np.asarray(stored), equal_nan=kind == "float")


class Files:
    """The image of a record, beside which a mask of any size is stored as a PNG of its ids."""

    def image(self, name: str, value: Any) -> EncodedImage:
        raise NotImplementedError(name, value)

    def mask(self, name: str, value: Any, bits: int) -> EncodedImage:
        del name, bits
        return EncodedImage(encode_png(value[:, :, None]), "png", *value.shape)


def test_masks_are_pngs_of_their_ids() -> None:
    for bits, dtype in ((8, tf.uint8), (16, tf.uint16)):
        ids = np.random.default_rng(bits).integers(0, 2**bits, (5, 7)).astype(dtype.as_numpy_dtype)
        payload = _native.write_example(fields.Mask(bits).encode("mask", ids, Files()))
        spec = {
            "mask/encoded": tf.io.FixedLenFeature([], tf.string),
            "mask/height": tf.io.FixedLenFeature([], tf.int64),
        }
        parsed = tf.io.parse_single_example(payload, spec)
        assert parsed["mask/height"].numpy() == 5
        assert np.array_equal(tf.io.decode_png(parsed["mask/encoded"], dtype=dtype).numpy()[:, :, 0], ids)
