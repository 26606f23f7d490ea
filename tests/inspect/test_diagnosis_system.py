"""What a diagnosis takes from the system: files that are read, CPUs, quotas."""

from __future__ import annotations

import os
import sys
import types
from typing import TYPE_CHECKING

import stoker
from stoker.cli.main import main
from stoker.format.frames import compression_of
from stoker.inspect import diagnosis as system
from stoker.inspect.diagnosis import look_at_files
from stoker.inspect.measuring import files_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_of_compressed_shards_the_inflated_ones(photos: Path, tmp_path: Path) -> None:
    assert main(["build", str(photos), str(tmp_path / "out"), "--shards", "2", "--compression", "gzip"]) == 0
    train = stoker.open(tmp_path / "out", split="train")
    files = files_of(train)
    assert len(files) == 2
    assert {compression_of(path) for path in files} == {"none"}
    assert sum(path.stat().st_size for path in files) == train.size_bytes == look_at_files(train).size_bytes


def test_of_shards_and_images_they_themselves(dataset: Path, photos: Path) -> None:
    built, loose = stoker.open(dataset, split="train"), stoker.open(photos, split="train")
    assert files_of(built) == [shard.path for shard in built.shards]
    assert len(files_of(loose)) == len(loose)
    assert all(path.is_relative_to(photos / "train") and path.is_file() for path in files_of(loose))
    assert len(files_of(loose, 5)) == 5
    assert (
        look_at_files(stoker.mix([built, loose], label_offsets=[0, 0])).size_bytes
        == built.size_bytes + loose.size_bytes
    )


def test_only_own_cpus_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu 9999 0 0 0 0 0 0 0\ncpu0 100 0 0 7 7 0 0 0\ncpu1 900 0 0 0 0 0 0 0\nintr 1 2\n")
    monkeypatch.setattr(system, "_STAT", stat)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert system.read_times().machine == 100 / os.sysconf("SC_CLK_TCK")


def test_a_quota_is_less_than_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "available_cpus", lambda: len(os.sched_getaffinity(0)) - 1)
    assert system.limited_by_quota()
    monkeypatch.setattr(system, "available_cpus", lambda: len(os.sched_getaffinity(0)))
    assert not system.limited_by_quota()


def test_a_gpu_in_use_is_seen_without_importing_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not system.uses_accelerator()
    for used in (False, True):
        cuda = types.SimpleNamespace(is_initialized=lambda used=used: used)
        monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
        assert system.uses_accelerator() is used


def test_where_the_system_does_not_say_nothing_is_invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_TASKS", "_STAT", "_MEMORY"):
        monkeypatch.setattr(system, name, tmp_path / "nothing")
    assert system.scheduled(os.getpid()) == system.ThreadTime()
    assert system.read_times().machine is None
    assert not system.read_times().threads
