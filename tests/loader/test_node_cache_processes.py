"""Several processes on one node cache: at once, killed, and where the system refuses to write."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import stoker
from loader.shards import behind
from stoker.loader.caches import NodeCache

READER = Path(__file__).with_name("cache_reader.py")
RECORDS = 24


def start(shards: Path, directory: Path, budget: int, *what: object) -> subprocess.Popen[str]:
    words = [sys.executable, str(READER), str(shards), str(directory), str(budget), *map(str, what)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[dict[str, Any], str]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    stats: dict[str, Any] = json.loads(out.splitlines()[-1])
    return stats, err


def check_all(shards: Path, directory: Path) -> int:
    """Read everything through the cache; returns the hits."""
    dataset = stoker.open(shards)
    cache = NodeCache(directory, "10MB")
    source = behind(cache, dataset)
    assert [source.read(i) for i in range(RECORDS)] == [dataset.records.read(i) for i in range(RECORDS)]
    return cache.stats().hits


@pytest.mark.slow
def test_two_processes_fill_one_cache(shards: Path, tmp_path: Path) -> None:
    both = [start(shards, tmp_path / "cache", 10_000_000, "rounds", 40) for _ in range(2)]
    for stats, err in map(finish, both):
        assert stats["hits"] + stats["misses"] == 40 * RECORDS
        assert stats["hits"] >= 39 * RECORDS
        assert (stats["errors"], stats["full"], err) == (0, False, "")
    assert check_all(shards, tmp_path / "cache") == RECORDS


@pytest.mark.slow
def test_two_processes_keep_one_budget(shards: Path, tmp_path: Path) -> None:
    budget = 81920
    both = [start(shards, tmp_path / "cache", budget, "rounds", 300) for _ in range(2)]
    while any(process.poll() is None for process in both):
        present = [path for path in (tmp_path / "cache").glob("*") if ".tmp-" not in path.name]
        assert sum(path.stat().st_blocks * 512 for path in present) <= budget
    for stats, _ in map(finish, both):
        assert stats["bytes"] <= budget
        assert stats["full"]
        assert stats["hits"] > 0


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_leaves_no_wrong_byte(shards: Path, tmp_path: Path) -> None:
    chosen = random.Random(7)
    hits = []
    for _ in range(8):
        writer = start(shards, tmp_path / "cache", 10_000_000, "forever")
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(chosen.random() / 10)
        writer.kill()
        writer.communicate()
        hits.append(check_all(shards, tmp_path / "cache"))
    assert all(0 <= hit <= RECORDS for hit in hits)


def test_a_file_system_that_takes_no_more_is_a_warning(shards: Path, tmp_path: Path) -> None:
    stats, err = finish(start(shards, tmp_path / "cache", 10_000_000, "limit", 30000))
    assert err.count("UserWarning") == 1
    assert "File too large" in err or "No space left" in err  # whichever thread comes to the limit first
    assert stats["errors"] >= 1
    assert 0 < stats["hits"] + stats["misses"] == 2 * RECORDS
