"""What a watch books, and what it hands out again."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

import stoker
from stoker.diagnosis import session, system
from stoker.diagnosis.adapters import loader_of
from stoker.diagnosis.watching import Watch
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.diagnosis import Evidence

BETWEEN = 0.3


def opened(dataset: Path, **settings: int) -> stoker.Loader:
    return stoker.Loader(
        stoker.open(dataset, split="train"), batch_size=4, view=stoker.Resize(8), prefetch=1, **settings
    )


def epochs(loader: stoker.Loader, way: str) -> Evidence:
    with stoker.doctor(loader, quiet=True, replay=0) as doctor:
        for _ in range(3):
            for number, _ in enumerate(loader):
                time.sleep(0.01)
                if number == 4 and way != "whole":
                    break
            if way == "again":
                loader.load_state_dict(loader.state_dict())
            time.sleep(BETWEEN)
    return doctor.report.evidence


@pytest.mark.parametrize("way", ["whole", "left", "again"])
def test_what_lies_between_iterations_is_nobodys_wait(dataset: Path, way: str) -> None:
    with opened(dataset) as loader:
        began = time.perf_counter()
        found = epochs(loader, way)
        elapsed = time.perf_counter() - began
    assert found.batches > 5
    assert found.seconds < elapsed - 2 * BETWEEN  # which holds however slow the machine is
    assert found.gil_share < 0.5


def test_idle_time_between_iterations_is_left_out(dataset: Path) -> None:
    with opened(dataset, threads=1) as loader:
        watch = Watch(loader, 0, 1)
        loader.handing_out = watch.hand_out
        for _ in range(3):
            for _ in loader:
                pass
            time.sleep(BETWEEN)
    stats = watch.stretches[0].last - watch.stretches[0].first
    assert stats.idle_seconds < BETWEEN


def test_batches_that_come_again_have_the_loaders_position(dataset: Path) -> None:
    with opened(dataset) as loader, stoker.doctor(loader, quiet=True, replay=6):
        taken = [batch.position.consumed for batch in loader]
    assert len(taken) == len(loader) + 6
    assert taken == sorted(taken)


def test_ranks_make_the_same_number_of_steps(dataset: Path) -> None:
    with opened(dataset, rank=0, world_size=2) as loader, stoker.doctor(loader, quiet=True, replay=6):
        assert sum(1 for _ in loader) == len(loader)


def test_a_loader_is_found_in_what_holds_it(dataset: Path) -> None:
    with opened(dataset) as loader:
        assert loader_of(loader) is loader
    with pytest.raises(ConfigError, match="int is no stoker"):
        loader_of(3)


def test_only_own_cpus_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu 9999 0 0 0 0 0 0 0\ncpu0 100 0 0 7 7 0 0 0\ncpu1 900 0 0 0 0 0 0 0\nintr 1 2\n")
    monkeypatch.setattr(system, "_STAT", stat)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert system.read_times(0, 0).machine == 100 / os.sysconf("SC_CLK_TCK")


def test_nothing_is_said_of_others_below_a_quota(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "limited_by_quota", lambda: True)
    with opened(dataset) as loader:
        assert epochs(loader, "left").other_cpus is None
    monkeypatch.setattr(system, "available_cpus", lambda: len(os.sched_getaffinity(0)) - 1)
    assert system.limited_by_quota()
    monkeypatch.setattr(system, "available_cpus", lambda: len(os.sched_getaffinity(0)))
    assert not system.limited_by_quota()
