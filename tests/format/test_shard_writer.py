"""A shard appears under its final name complete, or not at all."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.tfrecord import frame
from stoker import _native
from stoker.format.frames import FramedRecords, ShardWriter
from stoker.format.index import read_index
from stoker.format.manifest import Shard
from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "train-00000-of-00001.tfrecord"


@settings(deadline=None, max_examples=25)
@given(st.lists(st.binary(max_size=64), max_size=8))
def test_a_shard_is_its_frames_and_an_index(tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes]) -> None:
    directory = tmp_path_factory.mktemp("shard")
    expected = b"".join(map(frame, payloads))
    with ShardWriter(directory, NAME) as writer:
        for payload in payloads:
            writer.append(payload)
        assert not (directory / NAME).exists()
        written = writer.commit()
    assert (directory / NAME).read_bytes() == expected
    assert written == Shard(NAME, len(payloads), len(expected), _native.crc32c(expected))
    rows = read_index(directory / NAME, len(expected))
    assert np.array_equal(rows, _native.scan_shard(str(directory / NAME)))
    assert sorted(path.name for path in directory.iterdir()) == [NAME, NAME + ".idx"]


@given(st.binary(max_size=40_000), st.binary(max_size=40_000))
def test_the_crc_of_two_parts_is_that_of_both(first: bytes, second: bytes) -> None:
    parts = _native.crc32c(first), _native.crc32c(second), len(second)
    assert _native.crc32c_join(*parts) == _native.crc32c(first + second)


def test_many_frames_at_once(tmp_path: Path) -> None:
    frames = [_native.frame_record(b"%d" % number) for number in range(1500)]
    with ShardWriter(tmp_path, NAME) as writer:
        writer.append_framed([FramedRecords.of(frame) for frame in frames])
        assert writer.commit().records == 1500
    assert (tmp_path / NAME).read_bytes() == b"".join(frames)


def test_leaving_without_commit_removes_everything(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"from an earlier run")
    with ShardWriter(tmp_path, NAME) as writer:
        writer.append(b"x")
        assert len(list(tmp_path.iterdir())) == 2
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"from an earlier run"]


def test_two_writers_of_one_shard_do_not_meet(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, NAME) as first, ShardWriter(tmp_path, NAME) as second:
        first.append(b"one")
        second.append(b"two")
        assert first.commit() != second.commit()
    assert (tmp_path / NAME).read_bytes() == frame(b"two")


@contextmanager
def small_files_only() -> Iterator[None]:
    """Files end at 1000 bytes: what a full disk does, without a disk. No longer than needed: it holds for all files."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, NAME) as writer:
        writer.append(b"a" * 700)
        writer.append(b"b" * 700)  # the first 284 bytes fit: a write that is cut short
        with small_files_only(), pytest.raises(OSError, match="File too large"):
            writer.commit()
    assert list(tmp_path.iterdir()) == []


def test_an_atomic_file_keeps_its_old_content_on_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    location(path).write_atomically(b"old")
    with small_files_only(), pytest.raises(OSError, match="File too large"):
        location(path).write_atomically(b"n" * 2000)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("labels.txt", b"old")]
