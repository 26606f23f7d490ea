"""``stoker bench --cold``: the files leave the page cache, for every contender, and everything says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stoker.cli.main import main
from stoker.errors import ConfigError
from stoker.measure import bench
from stoker.storage.page_cache import drop_from_page_cache, require_cold

if TYPE_CHECKING:
    from stoker.measure.task import Task

MEMORY = Path("/dev/shm")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the page cache of others cannot be emptied")
CONTENDERS = sorted(path.stem for path in Path(bench.__file__).with_name("contenders").glob("[!_]*.py"))


def bytes_from_disk(path: Path) -> int:
    """How many bytes the system fetched from its disk while we read a whole file, as it counts them itself."""

    def fetched() -> int:
        counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text(encoding="ascii").splitlines())
        return int(counts["read_bytes"])

    before = fetched()
    path.read_bytes()
    return fetched() - before


@on_linux
def test_a_dropped_file_is_not_in_memory_any_more(tmp_path: Path) -> None:
    path = tmp_path / "shard"
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


def test_without_shards_nothing_can_be_cold() -> None:
    with pytest.raises(ConfigError, match="no shards"):
        require_cold([])


def in_memory(source: Path, name: str) -> Path:
    """A copy on a file system that is nothing but page cache."""
    target = MEMORY / f"stoker-test-{os.getpid()}-{name}"
    shutil.copytree(source, target)
    return target


@on_linux
def test_files_that_cannot_leave_the_memory_are_refused(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = in_memory(dataset, "cold")
    try:
        assert main(["bench", str(copy), "--cold", "--seconds", "0.1"]) == 2
    finally:
        shutil.rmtree(copy)
    assert "100% of the shards stay in memory" in capsys.readouterr().err


def test_a_system_without_posix_fadvise_is_refused(
    dataset: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "posix_fadvise", raising=False)
    assert main(["bench", str(dataset), "--cold"]) == 2
    assert "no posix_fadvise" in capsys.readouterr().err


@on_linux
@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.parametrize("cold", [True, False])
def test_every_contender_drops_the_files_when_it_is_to(dataset: Path, contender: str, cold: bool) -> None:
    task = {"dataset": str(dataset), "split": "train", "view": "eval", "batch_size": 4, "threads": 1, "cold": cold}
    words = [sys.executable, "-m", "stoker.measure.runner", contender, json.dumps(task)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        words, input="0.1\n0.1\n", check=True, capture_output=True, text=True, timeout=120, env=environment
    )
    ready, *results = done.stdout.splitlines()
    assert ready == "ready"
    shares = [json.loads(result)["still_cached"] for result in results]
    # Readers that look ahead may be reading again by the time it is looked at.
    assert all(isinstance(share, float) and 0 <= share <= 1 for share in shares) if cold else shares == [None, None]


@pytest.fixture
def two_contenders(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Only those that start quickly; the tasks they get are noted."""
    tasks: list[Task] = []
    original = bench._Contender

    class Noting(original):  # type: ignore[misc, valid-type]
        def __init__(self, module: str, task: Task) -> None:
            tasks.append(task)
            super().__init__(module, task)

    monkeypatch.setattr(bench, "_Contender", Noting)
    few = {name: bench._CONTENDERS[name] for name in ("codec", "loader")}
    monkeypatch.setattr(bench, "_CONTENDERS", few)
    return tasks


@on_linux
def test_the_report_says_that_its_figures_are_cold(
    dataset: Path, two_contenders: list[Task], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", str(dataset), "--seconds", "0.2", "--rounds", "2", "--batch-size", "4"]
    assert main([*words, "--cold", "--json"]) == 0
    assert [task.cold for task in two_contenders] == [True, True]
    document = json.loads(capsys.readouterr().out)
    assert (document["page_cache"], document["task"]["cold"]) == ("cold", True)
    assert 0 <= document["still_cached"] <= 1
    assert main([*words, "--cold"]) == 0
    shown = capsys.readouterr().out
    assert "page cache cold (shards dropped before each turn" in shown
    assert "cold images/s" in shown
    assert "read more than once in a turn, and only the first time cold: stoker.Loader" in shown


def test_the_report_says_that_its_figures_are_warm(
    dataset: Path, two_contenders: list[Task], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", str(dataset), "--seconds", "0.2", "--rounds", "1", "--batch-size", "4"]
    assert main([*words, "--json"]) == 0
    assert [task.cold for task in two_contenders] == [False, False]
    document = json.loads(capsys.readouterr().out)
    assert (document["page_cache"], document["task"]["cold"], document["still_cached"]) == ("warm", False, None)
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "page cache warm, 1 rounds" in shown
    assert "cold" not in shown
