"""Files and disks that change, fill up or go away while Stoker works with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from builder.trees import build, contents, settings_for, write_tree
from programs import output_of
from stoker.errors import ShardError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A file system in memory of its own; only root may mount one."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def may_mount() -> bool:
    """Whether this process may: root without a namespace that forbids it."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0


def when_done(items: int, action: Callable[[], Any]) -> Callable[..., None]:
    """A progress that does something once, after so many images."""
    left = [action]

    def progress(*, done: int, total: int, size_bytes: int, rejects: int) -> None:
        if done >= items and left:
            left.pop()()

    return progress


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "source", {"a": 20, "b": 20})


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """More images than are looked at before the first shard is begun."""
    return write_tree(tmp_path / "source", {"a": 120, "b": 120})


def test_a_source_that_goes_away_stops_the_build_and_no_image_is_rejected(tmp_path: Path, many: Path) -> None:
    settings = settings_for(many, shards=8, threads=1)
    whole = build(settings, tmp_path / "whole").manifest
    away = tmp_path / "unmounted"
    with pytest.raises(FileNotFoundError, match="No such file") as caught:
        build(settings, tmp_path / "out", when_done(10, lambda: many.rename(away)))
    assert str(many) in os.fsdecode(caught.value.filename)
    away.rename(many)
    assert build(settings, tmp_path / "out").manifest == whole
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_an_empty_mount_point_is_a_source_that_has_gone(tmp_path: Path, many: Path) -> None:
    settings = settings_for(many, shards=8, threads=1)

    def unmount() -> None:
        many.rename(tmp_path / "unmounted")
        (many / "a").mkdir(parents=True)
        (many / "b").mkdir()

    with pytest.raises(FileNotFoundError):
        build(settings, tmp_path / "out", when_done(10, unmount))


def test_one_image_that_goes_away_is_a_reject(tmp_path: Path, source: Path) -> None:
    build(settings_for(source, shards=8, threads=1), tmp_path / "out", when_done(2, lambda: None))
    settings = settings_for(source, shards=1, threads=1, seed=3)
    gone = source / "b" / "b_19.JPEG"
    report = build(settings, tmp_path / "other", when_done(1, gone.unlink))
    assert report.outcome == ("built" if not report.rejects else "withheld")
    assert {reject.key for reject in report.rejects} <= {"b/b_19.JPEG"}


def test_a_destination_that_goes_away(tmp_path: Path, source: Path) -> None:
    settings = settings_for(source, shards=8, threads=1)
    out = tmp_path / "out"
    with pytest.raises(OSError, match="out"):
        build(settings, out, when_done(10, lambda: out.rename(tmp_path / "unmounted")))
    assert not out.exists()
    assert build(settings, out).outcome == "built"


@pytest.mark.skipif(not may_mount(), reason="only root may mount")
def test_a_small_disk_fills_up(tmp_path: Path, source: Path) -> None:
    settings = settings_for(source, shards=4, allow_huge=True)
    whole = build(settings, tmp_path / "whole").manifest
    with small_disk(tmp_path / "disk", "28k") as disk:
        with pytest.raises(OSError, match="No space left on device") as caught:
            build(settings, disk / "out")
        assert str(disk) in str(caught.value.filename)
        subprocess.run(["mount", "-o", "remount,size=1m", disk], check=True)
        assert build(settings, disk / "out").manifest == whole
        assert contents(disk / "out") == contents(tmp_path / "whole")


@pytest.mark.skipif(not may_mount(), reason="only root may mount")
def test_a_disk_that_is_read_only(tmp_path: Path, source: Path) -> None:
    settings = settings_for(source, shards=4)
    with small_disk(tmp_path / "disk", "1m") as disk:
        dataset = disk / "dataset"
        build(settings, dataset)
        for index in dataset.glob("*.idx"):
            index.unlink()
        (dataset / "manifest.json").unlink()
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(OSError, match="Read-only file system"):
            build(settings, disk / "out")
        with stoker.Loader(stoker.open(dataset), batch_size=8, transform=stoker.Resize(16)) as loader:
            assert sum(len(batch.indices) for batch in loader) == 40


def cut(shard: Path) -> None:
    os.truncate(shard, shard.stat().st_size // 3)


def overwrite(shard: Path) -> None:
    with shard.open("r+b") as file:
        file.write(b"\xff" * shard.stat().st_size)


def grow(shard: Path) -> None:
    with shard.open("ab") as file:
        file.write(b"more")


def replace(shard: Path) -> None:
    other = shard.with_name("other")
    other.write_bytes(b"\xff" * shard.stat().st_size)
    other.replace(shard)


@pytest.mark.parametrize("change", [cut, overwrite, grow, replace, Path.unlink])
def test_a_shard_that_changes_while_it_is_read(dataset: Path, tmp_path: Path, change: Callable[[Path], Any]) -> None:
    copy = Path(shutil.copytree(dataset, tmp_path / "copy"))
    train = stoker.open(copy, "train")
    transform = stoker.Resize(16)
    with stoker.Loader(stoker.open(dataset, "train"), batch_size=4, transform=transform, threads=1) as loader:
        expected = [(batch.indices.tolist(), batch.images.tobytes()) for batch in loader]
    seen, caught = [], None
    with stoker.Loader(train, batch_size=4, transform=transform, threads=1, prefetch=1) as loader:
        try:
            for batch in loader:
                seen.append((batch.indices.tolist(), batch.images.tobytes()))
                if len(seen) == 1:
                    for shard in train.shards:
                        change(shard.local_path)
        except (ShardError, FileNotFoundError) as error:
            caught = error
    assert seen == expected[: len(seen)]
    if caught is None:  # what was open stays as it was
        assert change in (grow, Path.unlink, replace)
        assert len(seen) == len(expected)
    else:
        assert change is not grow
        names = {str(shard.path) for shard in train.shards}
        assert (caught.path if isinstance(caught, ShardError) else caught.filename) in names


@pytest.mark.parametrize("name", ["manifest.json", "labels.txt"])
def test_texts_that_are_replaced_do_not_matter_to_open_datasets(dataset: Path, tmp_path: Path, name: str) -> None:
    copy = Path(shutil.copytree(dataset, tmp_path / "copy"))
    train = stoker.open(copy, "train")
    (copy / name).write_bytes(b"{}")
    with stoker.Loader(train, batch_size=4, transform=stoker.Resize(16)) as loader:
        assert sum(len(batch.indices) for batch in loader) == len(train)


@pytest.mark.slow
def test_a_clock_that_jumps(dataset: Path, tmp_path: Path, shim: dict[str, str], photos: Path) -> None:
    program = """
import ctypes, json, sys
from pathlib import Path
import stoker
library = ctypes.CDLL(None)
photos, dataset, work = sys.argv[1:]
for number, seconds in enumerate((86400, -86400, 1 << 33, -(1 << 30))):
    for after in (1, 40)[number % 2:][:1]:
        library.fault_move_clock(ctypes.c_long(seconds), ctypes.c_long(after))
        out = Path(work, f"{number}-{after}")
        report = stoker.build(photos, out, threads=2)
        assert report.outcome == "built" and report.seconds >= 0
        cache = stoker.NodeCache(Path(work, "cache"), "300kB")
        train = stoker.open(dataset, "train")
        with stoker.Loader(train, batch_size=8, transform=stoker.Resize(16), cache=cache) as loader:
            for _ in range(2):
                assert sum(len(batch.indices) for batch in loader) == len(train)
            stats = loader.stats()
            assert stats.seconds >= 0, stats
            str(stats), str(cache.stats())
"""
    output_of(program, photos, dataset, tmp_path, env=shim)
