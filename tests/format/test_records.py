"""Properties of framing, scanning and reading records, against a twin that shares no code with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from other_threads import ticks_during
from reference import tfrecord as twin
from stoker import _native
from stoker.errors import CorruptRecordError, ShardError, TruncatedShardError

if TYPE_CHECKING:
    from pathlib import Path

payload_lists = st.lists(st.binary(max_size=64), max_size=8)


@pytest.fixture(scope="module")
def shard_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file that every example of a property overwrites."""
    return tmp_path_factory.mktemp("records") / "a.tfrecord"


def shard_of(payloads: list[bytes]) -> bytes:
    return b"".join(map(twin.frame, payloads))


def starts_of(payloads: list[bytes]) -> list[int]:
    """Where each record starts, then the length of the shard."""
    return [len(shard_of(payloads[:count])) for count in range(len(payloads) + 1)]


@given(st.binary(max_size=300), st.integers(0, 2**32 - 1))
def test_crc_equals_its_twin(data: bytes, crc: int) -> None:
    assert _native.crc32c(data) == twin.crc32c(data)
    assert _native.crc32c(data, crc) == twin.crc32c(data, crc)


@pytest.mark.parametrize("size", [767, 768, 2047, 16383, 24575, 24576, 24577, 60000])
def test_crc_of_long_buffers_equals_its_twin(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert _native.crc32c(data) == twin.crc32c(data)


@given(st.binary(), st.binary())
def test_crc_goes_on_where_it_stopped(head: bytes, tail: bytes) -> None:
    assert _native.crc32c(tail, _native.crc32c(head)) == _native.crc32c(head + tail)


@pytest.mark.parametrize(
    "buffer", [bytearray(b"123456789"), memoryview(b"123456789"), np.frombuffer(b"123456789", "u1")]
)
def test_any_contiguous_buffer_of_bytes_is_taken(buffer: bytearray | memoryview | np.ndarray) -> None:
    assert _native.crc32c(buffer) == 0xE3069283
    assert _native.frame_record(buffer) == twin.frame(b"123456789")


@pytest.mark.parametrize("wrong", ["text", None, memoryview(bytes(8))[::2], np.zeros(4), np.zeros((2, 2), np.uint8)])
def test_other_objects_are_refused_rather_than_converted(wrong: object) -> None:
    for function in (_native.crc32c, _native.frame_record, _native.parse_example):
        with pytest.raises(TypeError):
            function(wrong)


@given(st.binary(max_size=300))
def test_a_frame_equals_its_twin(payload: bytes) -> None:
    assert _native.frame_record(payload) == twin.frame(payload)


@given(payload_lists)
def test_a_scan_finds_exactly_the_records_written(shard_path: Path, payloads: list[bytes]) -> None:
    shard = shard_of(payloads)
    shard_path.write_bytes(shard)
    rows = _native.scan_shard(str(shard_path))
    assert (rows.shape, rows.dtype) == ((len(payloads), 2), np.uint64)
    assert rows.tolist() == [[record.offset, record.size] for record in twin.scan(shard)]
    assert rows.tolist() == _native.scan_shard(str(shard_path), check=False).tolist()
    assert [_native.read_record(str(shard_path), offset, size) for offset, size in rows.tolist()] == payloads


@given(payload_lists.filter(bool), st.data())
def test_a_changed_byte_is_blamed_on_its_record(shard_path: Path, payloads: list[bytes], data: st.DataObject) -> None:
    shard, starts = bytearray(shard_of(payloads)), starts_of(payloads)
    at = data.draw(st.integers(0, len(shard) - 1), label="position")
    shard[at] ^= data.draw(st.integers(1, 255), label="flip")
    shard_path.write_bytes(shard)
    record = max(number for number, start in enumerate(starts) if start <= at)
    with pytest.raises(CorruptRecordError) as caught:
        _native.scan_shard(str(shard_path))
    assert caught.value.record == record
    assert caught.value.offset == starts[record]
    assert caught.value.path == str(shard_path)
    with pytest.raises(CorruptRecordError) as caught:  # and so does a reader that knows where the record is
        _native.read_record(str(shard_path), starts[record], starts[record + 1] - starts[record])
    assert caught.value.offset == starts[record]


@given(payload_lists.filter(bool), st.data())
def test_a_shard_cut_within_a_record_raises(shard_path: Path, payloads: list[bytes], data: st.DataObject) -> None:
    shard, starts = shard_of(payloads), starts_of(payloads)
    cut = data.draw(st.integers(0, len(shard)) | st.sampled_from(starts), label="cut")
    shard_path.write_bytes(shard[:cut])
    for check in (True, False):
        if cut in starts:
            assert len(_native.scan_shard(str(shard_path), check=check)) == starts.index(cut)
        else:
            with pytest.raises(TruncatedShardError) as caught:
                _native.scan_shard(str(shard_path), check=check)
            assert caught.value.record == max(number for number, start in enumerate(starts) if start <= cut)


def outcome_of_twin(shard: bytes, *, check: bool) -> object:
    try:
        return [[record.offset, record.size] for record in twin.scan(shard, check=check)]
    except twin.CutError as problem:
        return TruncatedShardError, problem.record, problem.offset
    except twin.DamagedError as problem:
        return CorruptRecordError, problem.record, problem.offset


def outcome_of_native(path: Path, *, check: bool) -> object:
    try:
        return _native.scan_shard(str(path), check=check).tolist()
    except ShardError as problem:
        return type(problem), problem.record, problem.offset


@given(st.lists(payload_lists.map(shard_of) | st.binary(max_size=30), max_size=3).map(b"".join), st.booleans())
@example(b"\0" * 100, True)  # a disk's idea of a file that was never written
def test_any_bytes_end_as_the_twin_says(shard_path: Path, shard: bytes, check: bool) -> None:
    shard_path.write_bytes(shard)
    assert outcome_of_native(shard_path, check=check) == outcome_of_twin(shard, check=check)


@given(payload_lists.filter(bool), st.integers(0, 700), st.integers(0, 700))
def test_a_wrong_extent_is_harmless(shard_path: Path, payloads: list[bytes], offset: int, size: int) -> None:
    shard_path.write_bytes(shard_of(payloads))
    right = {(record.offset, record.size): record.payload for record in twin.scan(shard_of(payloads))}
    if (offset, size) in right:
        assert _native.read_record(str(shard_path), offset, size) == right[offset, size]
    else:
        with pytest.raises(ShardError) as caught:
            _native.read_record(str(shard_path), offset, size)
        assert "index" in str(caught.value)
        assert caught.value.offset == offset


def test_payloads_are_not_looked_at_with_the_check_off(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    shard = bytearray(shard_of([bytes(50), bytes(200_000), b"end"]))
    shard[30] ^= 1
    shard[100_000] ^= 1
    path.write_bytes(shard)
    assert len(_native.scan_shard(str(path), check=False)) == 3
    with pytest.raises(CorruptRecordError, match="record 0 at byte 0 "):
        _native.scan_shard(str(path), check=True)


def test_a_path_need_not_be_utf8(tmp_path: Path) -> None:
    path = tmp_path / "caf\udce9.tfrecord"
    path.write_bytes(twin.frame(b"one")[:-1])
    with pytest.raises(TruncatedShardError) as caught:
        _native.scan_shard(str(path))
    assert caught.value.path == str(path)


def test_a_scan_lets_other_threads_run(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(_native.frame_record(bytes(1000)) * 100_000)
    assert ticks_during(lambda: _native.scan_shard(str(path))) > 0
