"""The soak in short, and with leaks planted: that it finds them is what makes an hour of it worth anything."""

from __future__ import annotations

import os
import threading
from argparse import Namespace
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from benchmarks import long_run, soak
from tests.servers.faults import Answer, Fault

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "LEAST_ROUNDS", 5)
    monkeypatch.setattr(soak, "THREADS", 2)
    monkeypatch.setattr(soak, "USES_A_ROUND", 4)


def test_nothing_stays_behind(dataset: Path) -> None:
    result = soak.run(str(dataset), 0)
    assert [leak for leak in result["leaks"] if leak.split(":")[0] in soak.COUNTED] == []
    assert result["samples"] > 100
    assert result["uses"] == 8 * result["rounds"] >= 40


def test_planted_leaks_are_found(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    over = threading.Event()

    def leaking(workload: soak.Workload, _: Any) -> None:
        kept.append(os.open(os.devnull, os.O_RDONLY))
        (workload.scratch / f"left{len(kept)}").touch()
        threading.Thread(target=over.wait).start()

    monkeypatch.setattr(soak, "USES", [leaking])
    monkeypatch.setattr(soak, "_SETTLING_SECONDS", 0.05)
    result = soak.run(str(dataset), 0)
    over.set()
    for file in kept:
        os.close(file)
    assert {leak.split(":")[0] for leak in result["leaks"]} >= {"descriptors", "threads", "files"}


@pytest.mark.parametrize(("an_hour", "leaks"), [(0, False), (2 << 20, False), (6 << 20, True)])
def test_memory_that_grows_by_a_line_differs_from_memory_that_varies(an_hour: int, leaks: bool) -> None:
    looks = [
        soak.Look(
            60.0 * minute, 9, 9, 9, (100 << 20) + an_hour * minute // 60 + (minute * 7919 % 11) * 100_000, 0, 0, 0
        )
        for minute in range(60)
    ]
    assert soak.trend(looks, "resident_bytes").leaks is leaks


@pytest.mark.servers
def test_ranks_read_a_faulty_store_and_resume(dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    often = Fault(Answer(503), method="GET", path=".tfrecord", probability=0.3)
    monkeypatch.setattr(long_run, "faults", lambda: [often])
    with patch.dict(os.environ):
        result = long_run.run(Namespace(dataset=str(dataset), minutes=0, ranks=2, step=0), tmp_path)
    assert [leak for leak in result["leaks"] if "half" not in leak] == []
    assert result["states_in_common"] == long_run.LEAST_LOADERS
    assert result["faults"]["Answer"] > 0
    assert all(rank["samples"] > 100 for rank in result["ranks"])


@pytest.mark.parametrize(("left_open", "leaks"), [(0, False), (1, False), (2, True)])
def test_counts_that_are_higher_in_the_second_half_are_a_leak(left_open: int, leaks: bool) -> None:
    looks = [asdict(soak.Look(10.0 * at, 20 + at % 3 + left_open * (at >= 50), 4, 9, 0, 0, 0, 0)) for at in range(100)]
    judged = long_run.judge({"rank": 0, "samples": 1, "states": [], "looks": looks})
    assert bool(judged["leaks"]) is leaks
