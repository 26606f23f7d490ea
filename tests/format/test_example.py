"""Properties of reading and writing ``tf.train.Example``, against a twin that shares no code with them."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference import example as twin
from reference import tfrecord
from reference.strategies import FEATURES
from small_cases import each
from stoker import _native
from stoker.errors import ConfigError, ExampleError


def comparable(features: dict[str, tuple[str, list]]) -> dict[str, tuple[str, list]]:
    """The same with floats as their bits, so that NaN equals itself and -0.0 does not equal 0.0."""
    bits = {key: [struct.pack("<d", v) for v in vs] for key, (kind, vs) in features.items() if kind == "float"}
    return {key: (kind, bits.get(key, vs)) for key, (kind, vs) in features.items()}


@given(FEATURES)
@example({})
@example({"": ("bytes", [])})
def test_written_bytes_equal_those_of_the_twin(features: dict) -> None:
    assert _native.write_example(features) == twin.write(features)


@given(FEATURES, st.sampled_from([0, 1, 40_000]))
@pytest.mark.slow
def test_a_framed_example_is_the_frame_of_the_example(features: dict, ballast: int) -> None:
    features = {**features, "ballast": ("bytes", [bytes(ballast)])}
    assert _native.frame_example(features) == tfrecord.frame(twin.write(features))


@given(FEATURES)
def test_what_is_written_is_read_back(features: dict) -> None:
    assert comparable(_native.parse_example(_native.write_example(features))) == comparable(features)


@given(FEATURES.flatmap(lambda d: st.tuples(st.just(d), st.permutations(list(d)))))
def test_the_order_of_a_dict_does_not_show(drawn: tuple[dict, list[str]]) -> None:
    features, order = drawn
    assert _native.write_example({key: features[key] for key in order}) == _native.write_example(features)


# Messages that no canonical writer makes, built from the grammar: fields in any order and any number of times.
unknown_fields = st.sampled_from(
    [
        b"\x78\x05", b"\x78\x80\x00", b"\x79" + bytes(8), b"\x7d1234", b"\x7a\x02yy", b"\x7b\x7c",
        b"\x7b\x08\x01\x13\x14\x7c",
    ]
)  # fmt: skip


def message(*fields: st.SearchStrategy[bytes], least: int = 1, most: int = 3) -> st.SearchStrategy[bytes]:
    """Some of these fields, each as often as it comes, and now and then one that is unknown."""
    known = st.lists(st.one_of(*fields), min_size=least, max_size=most)
    return st.tuples(known, st.lists(unknown_fields, max_size=1)).flatmap(
        lambda both: st.permutations(both[0] + both[1]).map(b"".join)
    )


def nested(number: int, body: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return body.map(lambda inner: twin.delimited(number, inner))


varints = st.integers(0, 2**64 - 1).map(twin.varint) | st.sampled_from([b"\x80\x00", b"\xff" * 9 + b"\x01"])
lists = message(
    nested(1, st.binary(max_size=9)),
    varints.map(lambda number: b"\x08" + number),
    st.binary(min_size=4, max_size=4).map(lambda bits: b"\x0d" + bits),
    nested(1, st.lists(varints, max_size=3).map(b"".join)),
    nested(1, st.just(bytes(8))),  # two floats, or eight integers
    least=0,
)
feature_messages = st.integers(1, 3).flatmap(
    lambda kind: message(nested(kind, lists), nested(kind, lists), nested(kind % 3 + 1, lists))
)
keys_of_entries = nested(1, st.sampled_from([b"a", b"b", b""]))
entries = message(keys_of_entries, nested(2, feature_messages))
maps = message(nested(1, entries))
grammatical = message(nested(1, maps), most=2)


def outcome_of_twin(payload: bytes) -> object:
    try:
        return comparable(twin.parse(payload))
    except twin.MalformedError as problem:
        return problem.offset


def outcome_of_native(payload: bytes) -> object:
    try:
        return comparable(_native.parse_example(payload))
    except ExampleError as problem:
        return problem.offset


@given(grammatical)
@settings(max_examples=200)
@pytest.mark.slow
def test_every_form_of_a_message_reads_as_the_twin_says(payload: bytes) -> None:
    assert outcome_of_native(payload) == outcome_of_twin(payload)


@given(st.one_of(grammatical, FEATURES.map(twin.write)), st.data())
@pytest.mark.slow
def test_damaged_bytes_end_as_the_twin_says(payload: bytes, data: st.DataObject) -> None:
    damaged = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 3), label="changes")):
        at = data.draw(st.integers(0, len(damaged)), label="at")
        damaged[at : at + data.draw(st.integers(0, 2), label="out")] = data.draw(st.binary(max_size=2), label="in")
    assert outcome_of_native(bytes(damaged)) == outcome_of_twin(bytes(damaged))


@given(st.binary(max_size=60))
def test_any_bytes_end_as_the_twin_says(payload: bytes) -> None:
    assert outcome_of_native(payload) == outcome_of_twin(payload)


@given(grammatical)
@pytest.mark.slow
def test_reading_and_writing_gives_canonical_bytes(payload: bytes) -> None:
    try:
        features = _native.parse_example(payload)
    except ExampleError:
        return
    canonical = _native.write_example(features)
    assert canonical == twin.write(features)
    assert _native.write_example(_native.parse_example(canonical)) == canonical


def test_numbers_of_numpy_are_numbers() -> None:
    written = _native.write_example({"i": ("int64", [np.int32(-5), True]), "f": ("float", [np.float64(0.1), 2])})
    assert _native.parse_example(written) == {"i": ("int64", [-5, 1]), "f": ("float", [float(np.float32(0.1)), 2.0])}


@each(
    ("features", "error"),
    [
        ({"k": ("int64", [2**63])}, ConfigError),
        ({"k": ("int64", [-(2**63) - 1])}, ConfigError),
        ({"k": ("float", [1e39])}, ConfigError),
        ({"k": ("double", [1.0])}, ConfigError),
        ({"k": ("int64", [1.0])}, TypeError),
        ({"k": ("int64", [b"1"])}, TypeError),
        ({"k": ("float", ["1"])}, TypeError),
        ({"k": ("bytes", ["text"])}, TypeError),
        ({"k": ("bytes", [None])}, TypeError),
        ({"k": ("bytes", b"text")}, TypeError),
        ({"k": ["bytes", [b""]]}, TypeError),
        ({"k": ("bytes",)}, TypeError),
        ({b"k": ("bytes", [])}, TypeError),
        ([("k", ("bytes", []))], TypeError),
        ({"k\udc80": ("bytes", [])}, UnicodeEncodeError),
    ],
)
def test_what_cannot_be_written_is_refused(features: dict, error: type[Exception]) -> None:
    with pytest.raises(error):
        _native.write_example(features)


def test_floats_that_round_to_the_largest_are_kept_and_infinity_too() -> None:
    largest = struct.unpack("<f", b"\xff\xff\x7f\x7f")[0]
    written = _native.write_example({"k": ("float", [largest * (1 + 2**-26), math.inf])})
    assert _native.parse_example(written) == {"k": ("float", [largest, math.inf])}


def test_a_conversion_that_empties_the_list_does_no_harm() -> None:
    class Thief:
        def __index__(self) -> int:
            features["k"][1].clear()
            features.clear()
            return 7

    features: dict = {"j": ("bytes", [bytes(1000)]), "k": ("int64", [Thief(), 8])}
    assert _native.parse_example(_native.write_example(features)) == {
        "j": ("bytes", [bytes(1000)]),
        "k": ("int64", [7, 8]),
    }
