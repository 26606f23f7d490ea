"""The soak in short, and with leaks planted: that it finds them is what makes an hour of it worth anything."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import soak

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "LEAST_ROUNDS", 5)
    monkeypatch.setattr(soak, "THREADS", 2)
    monkeypatch.setattr(soak, "USES_A_ROUND", 4)


def test_nothing_stays_behind(dataset: Path) -> None:
    result = soak.run(str(dataset), 1)
    assert [leak for leak in result["leaks"] if leak.split(":")[0] in soak.COUNTED] == []
    assert result["samples"] > 100
    assert result["uses"] == 8 * result["rounds"] >= 40


def test_planted_leaks_are_found(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[int] = []
    over = threading.Event()

    def leaking(place: soak.Place, _: Any) -> None:
        kept.append(os.open(os.devnull, os.O_RDONLY))
        (place.scratch / f"left{len(kept)}").touch()
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
