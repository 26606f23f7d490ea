"""Attacks on the readers of records, each in a sentence. Every one must end as an error that says where."""

from __future__ import annotations

import os
import resource
import struct
from typing import TYPE_CHECKING

import pytest

from other_threads import meanwhile
from reference import example as example_twin
from reference import tfrecord as twin
from stoker import _native
from stoker.errors import CorruptRecordError, ExampleError, TruncatedShardError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def header(length: int) -> bytes:
    """A sound header with any length."""
    packed = struct.pack("<Q", length)
    return packed + twin.masked(packed)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], str]:
    def write_shard(data: bytes) -> str:
        path = tmp_path / "hostile.tfrecord"
        path.write_bytes(data)
        return str(path)

    return write_shard


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("length", [2**64 - 1, 2**64 - 16, 2**64 - 17, 2**63, 2**63 - 1, 2**40, 1000])
def test_a_length_made_to_overflow_an_addition(write: Callable[[bytes], str], length: int, check: bool) -> None:
    """``offset + length + 16`` wraps around to a small number, and a check for ``<= file size`` lets it pass."""
    path = write(twin.frame(b"sound") + header(length) + bytes(500))
    before = peak_bytes()
    with pytest.raises(TruncatedShardError) as caught:
        _native.scan_shard(path, check=check)
    assert (caught.value.record, caught.value.offset) == (1, 21)
    assert str(length) in str(caught.value)
    assert peak_bytes() - before < 64 << 20


@pytest.mark.parametrize(
    ("offset", "size"), [(0, 2**63), (2**63, 16), (2**64 - 1, 2**64 - 1), (5, 2**64 - 4), (0, 2**40)]
)
def test_an_index_that_asks_for_all_memory(write: Callable[[bytes], str], offset: int, size: int) -> None:
    """A row of the index claims exabytes, and a reader allocates the buffer before it looks at the file."""
    path = write(twin.frame(b"sound"))
    before = peak_bytes()
    with pytest.raises(TruncatedShardError, match="beyond the end"):
        _native.read_record(path, offset, size)
    assert peak_bytes() - before < 64 << 20


@pytest.mark.parametrize("size", [0, 1, 12, 15])
def test_an_index_with_frames_smaller_than_a_frame(write: Callable[[bytes], str], size: int) -> None:
    """``size - 16`` wraps around, and the payload has 2**64 bytes."""
    with pytest.raises(CorruptRecordError, match="smallest frame"):
        _native.read_record(write(twin.frame(b"sound")), 0, size)


def test_a_frame_inside_a_payload(write: Callable[[bytes], str]) -> None:
    """A payload holds the bytes of another frame, and a scanner that hunts for headers takes it for a record."""
    path = write(twin.frame(twin.frame(b"inner")) + twin.frame(b"next"))
    assert _native.scan_shard(path).tolist() == [[0, 37], [37, 20]]


def test_a_file_cut_between_opening_and_reading(write: Callable[[bytes], str]) -> None:
    """Another process cuts the shard while it is scanned: mapped memory would kill the reader with SIGBUS."""
    whole = _native.frame_record(bytes(1 << 20)) * 64
    path = write(whole)
    os.truncate(path, 1 << 20)  # the records behind are gone before the first scan, whenever the thread begins

    def cut_and_restore() -> None:
        os.truncate(path, len(whole))  # grows back as zeros
        os.truncate(path, 1 << 20)

    with meanwhile(cut_and_restore):
        for _ in range(50):
            with pytest.raises((TruncatedShardError, CorruptRecordError)):
                _native.scan_shard(path)


def test_a_named_pipe_in_place_of_a_shard(tmp_path: Path) -> None:
    """Opening a pipe waits until somebody writes to it, so the reader hangs for ever."""
    path = tmp_path / "pipe.tfrecord"
    os.mkfifo(path)
    with pytest.raises(OSError, match="seek") as caught:
        _native.scan_shard(str(path))
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("path", ["", "nowhere\0.tfrecord", "/dev/zero"])
def test_paths_that_are_not_shards(path: str) -> None:
    """The empty path, one that C cuts at its zero byte, and a device that never ends."""
    with pytest.raises((OSError, ValueError)):
        _native.scan_shard(path)


def test_a_million_empty_records(write: Callable[[bytes], str]) -> None:
    """Sixteen bytes each of file cost no more than sixteen bytes each of memory, and a vector's growth."""
    path = write(twin.frame(b"") * 1_000_000)
    before = peak_bytes()
    assert _native.scan_shard(path).shape == (1_000_000, 2)
    assert peak_bytes() - before < 80 << 20


def fails_at(payload: bytes) -> int | None:
    with pytest.raises(ExampleError) as caught:
        _native.parse_example(payload)
    return caught.value.offset


@pytest.mark.parametrize("claimed", [2**64 - 1, 2**63, 2**32, 2**31, 100])
def test_a_field_longer_than_the_record(claimed: int) -> None:
    """``at + length`` wraps around below the end of the buffer, and the reader runs through foreign memory."""
    assert fails_at(b"\x0a" + example_twin.varint(claimed) + b"\x0a\x00") == 1


def test_a_field_longer_than_the_message_around_it() -> None:
    """The inner length stays inside the record but leaves its own message, so its bytes are read twice."""
    assert fails_at(b"\x0a\x02\x0a\x05" + b"12345") == 3


def test_a_number_that_never_ends() -> None:
    """Every byte says that another follows; shifting by 64 and more is undefined in C."""
    assert fails_at(b"\x0a\x09\x0a\x07\x12\x05\x1a\x03\x0a\x01\xff") == 10
    assert fails_at(b"\x08" + b"\xff" * 1000) == 1
    assert fails_at(b"\x80" * 1000) == 0


def test_groups_opened_a_million_deep() -> None:
    """A reader that calls itself for each group runs out of stack, which no handler survives."""
    assert fails_at(b"\x7b" * 1_000_000) == 32


def test_a_million_features_without_a_name() -> None:
    """Four bytes each of payload: what is kept for them stays within a small multiple of the payload."""
    payload = example_twin.delimited(1, b"\x0a\x02\x12\x00" * 1_000_000)
    before = peak_bytes()
    assert _native.parse_example(payload) == {}
    assert peak_bytes() - before < 256 << 20


def test_a_name_that_is_not_text() -> None:
    """A key that is not UTF-8 would come out as an exception of Python's decoder, without an offset."""
    for key in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ab\xe2\x82"):
        entry = example_twin.delimited(1, example_twin.delimited(1, key))
        assert fails_at(example_twin.delimited(1, entry)) == 6


def test_floats_that_do_not_come_out_even() -> None:
    """Five bytes of four-byte numbers: the last one would be read over the end."""
    floats = example_twin.delimited(1, b"12345")
    entry = example_twin.delimited(2, example_twin.delimited(2, floats))
    assert fails_at(example_twin.delimited(1, example_twin.delimited(1, entry))) == 9
