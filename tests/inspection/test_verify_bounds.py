"""`stoker verify` holds little of what it has checked, and blames no shard for what its own process lacks."""

from __future__ import annotations

import gzip
import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from feed.shards import write_shards
from reference import example, tfrecord
from stoker.inspection import index_shards, verify_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def room_for_files(more: int) -> Iterator[None]:
    """Let this process open so many files beside those that it has open now."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = set(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208 - names only
    limit = next(n for n in range(soft) if n - sum(one < n for one in taken) == more)  # of the numbers of files
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_compressed_shard_is_let_go_once_it_is_checked(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, 30, 30)
    for shard in shards:
        shard.write_bytes(gzip.compress(shard.read_bytes()))
    with room_for_files(20):
        report = verify_dataset(tmp_path, threads=2)
    assert report.problems == ()
    assert (report.shards, report.records) == (30, 30)
    assert report.size_bytes == sum(shard.stat().st_size for shard in shards)


def test_a_process_without_room_for_files_finds_no_damage(tmp_path: Path) -> None:
    (shard,) = write_shards(tmp_path, 3, 1)
    assert verify_dataset(shard).problems == ()
    with room_for_files(0), pytest.raises(OSError, match="Too many open files"):
        verify_dataset(shard)
    with room_for_files(0), pytest.raises(OSError, match="Too many open files"):
        index_shards([str(shard)])


def test_what_a_record_claims_is_cut_in_messages(dataset: Path, tmp_path: Path) -> None:
    record = {f"key {number:05d}": ("int64", [1]) for number in range(200)} | {
        "image/encoded": ("bytes", [b"x"]),
        "image/class/label": ("int64", [1]),
        "image/class/synset": ("bytes", [b"y" * 1_000_000]),
        "image/object/bbox/xmin": ("bytes", [b"1"]),
    }
    (tmp_path / "a.tfrecord").write_bytes(tfrecord.frame(example.write(record)))
    for name in ("manifest.json", "labels.txt", "rejects.jsonl"):
        (tmp_path / name).write_bytes((dataset / name).read_bytes())
    manifest = (tmp_path / "manifest.json").read_text()
    shard = next(iter(sorted(dataset.glob("train-*.tfrecord")))).name
    (tmp_path / "a.tfrecord").rename(tmp_path / shard)
    assert shard in manifest
    report = verify_dataset(tmp_path)
    whats = [problem.what for problem in report.problems]
    assert any("key 00019 and 180 more are not in the schema" in what for what in whats)
    assert any(what.startswith("image/class/synset says b'yyyy") for what in whats)
    assert sum(map(len, whats)) < 20_000
