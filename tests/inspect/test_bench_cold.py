"""``stoker bench --cold``: the files leave the page cache, in every case, and everything says so."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench_prepared import case_of, prepared_images
from stoker.errors import ConfigError
from stoker.inspect.measuring import drop_from_page_cache, require_cold

if TYPE_CHECKING:
    from commands import Cli

MEMORY = Path("/dev/shm")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the page cache of others cannot be emptied")


def bytes_from_disk(path: Path) -> int:
    """How many bytes the system fetched from its disk while we read a whole file, as it counts them itself."""

    def fetched() -> int:
        counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
        return int(counts["read_bytes"])

    before = fetched()
    path.read_bytes()
    return fetched() - before


@on_linux
def test_a_dropped_file_is_not_in_memory_any_more(disk_path: Path) -> None:
    path = disk_path / "shard"
    path.write_bytes(os.urandom(3_000_001))
    assert bytes_from_disk(path) < 100_000
    assert drop_from_page_cache([path]) == 0
    assert bytes_from_disk(path) > 2_900_000
    assert bytes_from_disk(path) < 100_000


@on_linux
def test_files_without_bytes_are_no_problem(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert drop_from_page_cache([tmp_path / "empty"]) == 0
    assert drop_from_page_cache([]) == 0


def test_without_files_nothing_can_be_cold() -> None:
    with pytest.raises(ConfigError, match="reads files of this machine"):
        require_cold([])


def in_memory(source: Path, name: str) -> Path:
    """A copy on a file system that is nothing but page cache."""
    target = MEMORY / f"stoker-test-{os.getpid()}-{name}"
    shutil.copytree(source, target)
    return target


@on_linux
def test_files_that_cannot_leave_the_memory_are_refused(dataset: Path, cli: Cli) -> None:
    copy = in_memory(dataset, "cold")
    try:
        cli("bench", copy, "--only", "stoker-own", "--cold", "--seconds", "0.1", code=2)
    finally:
        shutil.rmtree(copy)
    assert "100% of the files stay in memory" in cli.err


def test_a_system_without_posix_fadvise_is_refused(dataset: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    assert "no posix_fadvise" in cli("bench", dataset, "--only", "stoker", "--cold", code=2)


@on_linux
@pytest.mark.slow
def test_the_report_says_that_its_figures_are_cold(dataset: Path, cli: Cli) -> None:
    words = ["bench", str(dataset), "--seconds", "0.2", "--rounds", "1", "--batch-size", "4"]
    words += ["--only", "stoker-own,stoker-cache", "--cold"]
    document = json.loads(cli(*words, "--json"))
    assert document["spec"]["cold"]
    assert 0 <= document["still_cached"] <= 0.1
    assert [row["key"] for row in document["rows"]] == ["stoker-own"]
    assert "in memory" in document["left_out"]["stoker-cache"]


@on_linux
@pytest.mark.parametrize("key", ["python-serial", "stoker-raw", "stoker-own", "stoker-files"])
def test_a_case_drops_the_files_that_it_reads(photos: Path, tmp_path: Path, key: str) -> None:
    images = prepared_images(photos, tmp_path / "data", most=4, forms=frozenset({"raw"}))
    read = images.files_read_by(case_of(key))
    folder = {"stoker-raw": tmp_path / "data" / "raw", "stoker-own": photos}.get(key, tmp_path / "data" / "files")
    assert len([path for path in read if path.suffix in (".JPEG", ".jpg", ".tfrecord")]) == 4  # of raw, a shard each
    assert all(path.is_relative_to(folder) for path in read)
