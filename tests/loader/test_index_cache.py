"""Indexes of shards whose directory is not ours, or cannot be written: kept in the user's cache, and found there."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

import stoker
from loader.shards import write_shards
from stoker.cli.main import main
from stoker.config import user_cache_directory
from stoker.errors import ShardError
from stoker.format.index import INDEXES_FOLDER, cached_indexes, index_path
from stoker.storage import LocalLocation
from written_files import flip_bit


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, on a machine where nothing can be written beside the shards."""
    directory = tmp_path / "user-cache"
    monkeypatch.setenv("STOKER_CACHE_DIR", str(directory))

    def refuse(path: LocalLocation, data: bytes) -> None:
        if path.is_relative_to(directory):
            return written(path, data)
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    written = LocalLocation.write_atomically
    monkeypatch.setattr(LocalLocation, "write_atomically", refuse)
    return directory


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    (tmp_path / "shards").mkdir()
    return write_shards(tmp_path / "shards", 6, 1)[0]


def make_unscannable(shard: Path) -> None:
    """Spoil the length of the third record, which every scan reads, and leave no trace in size and time."""
    status = shard.stat()
    flip_bit(shard, int(stoker.open(shard).shards[0].extents[2, 0]))
    os.utime(shard, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_second_opening_does_not_scan(shard: Path, cache: Path) -> None:
    first = stoker.open(shard).shards[0].extents
    assert len(list(cached_indexes(cache))) == 1
    assert sorted(path.name for path in shard.parent.iterdir() if path.is_file()) == [shard.name]
    make_unscannable(shard)
    assert (stoker.open(shard).shards[0].extents == first).all()
    for kept in cached_indexes(cache):
        kept.unlink()
    with pytest.raises(ShardError, match="record 2"):  # without what was kept it has to scan
        stoker.open(shard)


def test_a_shard_that_has_changed_is_scanned_again(shard: Path, cache: Path) -> None:
    stoker.open(shard)
    make_unscannable(shard)
    os.utime(shard, ns=(0, 1))
    with pytest.raises(ShardError, match="record 2"):
        stoker.open(shard)


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"0 16\n", b"\xff" * 100_000])
def test_a_damaged_index_is_as_good_as_none(shard: Path, cache: Path, damage: bytes) -> None:
    first = stoker.open(shard).shards[0].extents
    (kept,) = cached_indexes(cache)
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    assert (stoker.open(shard).shards[0].extents == first).all()
    assert kept.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_done_without(shard: Path, cache: Path) -> None:
    cache.write_text("a file where the directory should be")
    for _ in range(2):
        assert len(stoker.open(shard)) == 6


def test_nothing_is_written_beside_other_shards(shard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "user-cache"))
    before = sorted(shard.parent.rglob("*"))
    for path in (shard, shard.parent, shard.parent / "train-*"):
        stoker.open(path)
    assert sorted(shard.parent.rglob("*")) == before
    assert len(list(cached_indexes(tmp_path / "user-cache"))) == 1
    assert main(["index", str(shard)]) == 0
    assert index_path(shard).is_file()


def test_the_index_is_written_beside_the_shard(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "user-cache"))
    own = tmp_path / "dataset"
    shutil.copytree(dataset, own)
    index = min(own.glob("train-*.idx"))
    text = index.read_bytes()
    index.unlink()
    stoker.open(own, "train")
    assert index.read_bytes() == text
    assert not (tmp_path / "user-cache").exists()


def test_where_the_users_cache_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("STOKER_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert user_cache_directory() == tmp_path / "home/.cache/stoker"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert user_cache_directory() == tmp_path / "xdg/stoker"
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "own"))
    assert user_cache_directory() == tmp_path / "own"


def test_only_own_files_are_named(tmp_path: Path) -> None:
    folder = tmp_path / INDEXES_FOLDER
    folder.mkdir()
    own = folder / f"{'0' * 32}.idx"
    for path in (own, folder / "mine.idx", folder / f"{'0' * 32}.txt", folder / f"{'g' * 32}.idx"):
        path.write_text("0 16\n")
    (folder / f"{'1' * 32}.idx").symlink_to(Path(folder) / "mine.idx")
    assert list(cached_indexes(tmp_path)) == [own]
    assert list(cached_indexes(tmp_path / "nowhere")) == []
