"""How many CPUs a process may use, as its control groups say."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import pytest

from stoker.config import available_cpus, cpu_limit
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path


def groups(folder: Path, own: str, files: dict[str, str]) -> float | None:
    """The limit in a made-up tree of control groups; ``own`` is what ``/proc/self/cgroup`` says."""
    (folder / "own").write_text(own)
    return cpu_limit(write_files(folder / "mount", files), folder / "own")


def version_1(folder: str, quota: str, period: str) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": period}


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000", "cpu.max": "800000 100000"}, 3.0),
        ("0::/a/b\n", {"a/b/cpu.max": "50000 100000", "a/cpu.max": "300000 100000"}, 0.5),
        ("0::/docker/0123\n", {"cpu.max": "200000 100000"}, 2.0),
        ("0::/../other\n", {"cpu.max": "200000 100000"}, 2.0),
        ("4:cpu,cpuacct:/a\n", version_1("cpu,cpuacct/a", "250000", "100000"), 2.5),
        ("4:cpu,cpuacct:/a\n", version_1("cpu", "100000", "50000"), 2.0),
        ("1:cpu:/\n", version_1("cpu", "-1", "100000"), None),
        ("3:cpuset:/\n", version_1("cpuset", "100000", "100000"), None),
        ("1:cpu:/\n0::/\n", version_1("cpu", "400000", "100000") | {"unified/cpu.max": "300000 100000"}, 3.0),
    ],
)
def test_the_least_limit_counts(tmp_path: Path, own: str, files: dict[str, str], expected: float | None) -> None:
    assert groups(tmp_path, own, files) == expected


@pytest.mark.parametrize(
    "text", ["", "max", "100000", "100000 0", "0 100000", "-5 100000", "a b", "1e5 1e5", "100000 100000 1", "\0"]
)
def test_what_says_nothing_sensible_limits_nothing(tmp_path: Path, text: str) -> None:
    assert groups(tmp_path, "0::/\n", {"cpu.max": text}) is None


def test_what_is_not_there_limits_nothing(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path, tmp_path / "own") is None
    assert groups(tmp_path, "nonsense\n\n::\n0\n", {}) is None


def test_no_more_cpus_than_the_mask_and_the_groups_allow() -> None:
    limit = cpu_limit()
    mask = len(os.sched_getaffinity(0))
    assert available_cpus() == (mask if limit is None else max(1, min(mask, math.ceil(limit))))
