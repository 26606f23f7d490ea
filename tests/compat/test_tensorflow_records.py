"""TensorFlow reads what Stoker writes, and Stoker reads what TensorFlow writes."""

from __future__ import annotations

import re
import struct
import warnings
from typing import TYPE_CHECKING

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of TensorFlow's own modules, while they are imported
    import tensorflow as tf

from reference.strategies import FEATURES
from stoker import _native
from stoker.errors import ExampleError

if TYPE_CHECKING:
    from pathlib import Path

STRICTER = re.compile("more than 64 bits|an impossible number|nested too deeply")
"""Where some protobuf drops what does not fit: docs/contributing/fuzzing.md, the section on allowed differences."""


def to_tensorflow(features: dict) -> tf.train.Example:
    lists = {"bytes": tf.train.BytesList, "int64": tf.train.Int64List, "float": tf.train.FloatList}
    feature = {
        key: tf.train.Feature(**{f"{kind}_list": lists[kind](value=given)}) for key, (kind, given) in features.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=feature))


def from_tensorflow(example: tf.train.Example) -> dict:
    out = {}
    for key, feature in example.features.feature.items():
        which = feature.WhichOneof("kind")
        if which is not None:
            out[key] = (which.removesuffix("_list"), list(getattr(feature, which).value))
    return comparable(out)


def comparable(features: dict) -> dict:
    """The same with floats as their bits, so that NaN equals itself."""
    bits = {key: [struct.pack("<d", v) for v in vs] for key, (kind, vs) in features.items() if kind == "float"}
    return {key: (kind, bits.get(key, vs)) for key, (kind, vs) in features.items()}


def no_key_begins_another(features: dict) -> bool:
    return not any(a != b and b.startswith(a) for a in features for b in features)


# Stoker sorts keys as C++ protobuf does, by their bytes: "image" before "image/format". Protobuf for Python (upb)
# sorts the same but for one thing: it writes a key behind those that begin with it.
@given(FEATURES.filter(no_key_begins_another))
def test_bytes_equal_those_of_protobuf(features: dict) -> None:
    assert _native.write_example(features) == to_tensorflow(features).SerializeToString(deterministic=True)


def test_a_key_that_begins_another_comes_first() -> None:
    shorter = {"image": ("int64", [1])}
    longer = {"image/format": ("int64", [2])}
    both = _native.write_example(longer | shorter)
    entries = [to_tensorflow(part).features.SerializeToString() for part in (shorter, longer)]
    assert both == bytes([0x0A, len(b"".join(entries))]) + b"".join(entries)


@given(FEATURES)
def test_protobuf_bytes_are_read(features: dict) -> None:
    payload = to_tensorflow(features).SerializeToString()
    assert comparable(_native.parse_example(payload)) == comparable(features)


@given(FEATURES, st.data())
def test_damaged_bytes_are_read_as_protobuf_reads_them(features: dict, data: st.DataObject) -> None:
    payload = bytearray(to_tensorflow(features).SerializeToString())
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        at = data.draw(st.integers(0, len(payload)), label="at")
        payload[at : at + data.draw(st.integers(0, 2), label="out")] = data.draw(st.binary(max_size=2), label="in")
    try:
        expected = from_tensorflow(tf.train.Example.FromString(bytes(payload)))
    except DecodeError:
        expected = None
    refused = False
    try:
        parsed = comparable(_native.parse_example(bytes(payload)))
    except ExampleError as error:
        parsed, refused = None, STRICTER.search(str(error)) is not None
    assert refused or parsed == expected


def test_a_feature_without_a_kind_is_not_a_feature() -> None:
    example = tf.train.Example(features=tf.train.Features(feature={"nothing": tf.train.Feature()}))
    assert _native.parse_example(example.SerializeToString()) == {}


def test_a_shard_of_tensorflow_is_scanned(tmp_path: Path) -> None:
    payloads = [b"", b"x", bytes(range(256)) * 2000, b"end"]
    path = str(tmp_path / "theirs.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)
    rows = _native.scan_shard(path)
    assert [_native.read_record(path, offset, size) for offset, size in rows.tolist()] == payloads


def test_a_shard_of_ours_is_read_by_tensorflow(tmp_path: Path) -> None:
    payloads = [b"", b"x", bytes(range(256)) * 2000, b"end"]
    path = tmp_path / "ours.tfrecord"
    path.write_bytes(b"".join(map(_native.frame_record, payloads)))
    assert [record.numpy() for record in tf.data.TFRecordDataset(str(path))] == payloads


@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_example_of_ours_is_parsed_by_tensorflow(count: int) -> None:
    payload = _native.write_example(
        {
            "image/encoded": ("bytes", [b"\xff\xd8\xff"]),
            "image/class/label": ("int64", [281]),
            "image/object/bbox/xmin": ("float", [0.25] * count),
        }
    )
    parsed = tf.io.parse_single_example(
        payload,
        {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
            "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32),
        },
    )
    assert parsed["image/encoded"].numpy() == b"\xff\xd8\xff"
    assert parsed["image/class/label"].numpy() == 281
    assert tf.sparse.to_dense(parsed["image/object/bbox/xmin"]).numpy().tolist() == [0.25] * count
