"""`stoker.doctor` around a real loop: what it says of planted loops, and that it leaves the loader as it was."""

from __future__ import annotations

import itertools
import json
import threading
import time
from signal import SIGINT, raise_signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

import stoker
from other_threads import meanwhile
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.inspect.diagnosis_decision import DoctorReport, Evidence

TRANSFORM = stoker.RandomResizedCrop(32)
BATCH = 4


def endless_loader(dataset: Path, **settings: Any) -> stoker.Loader:
    train = stoker.mix([stoker.open(dataset, split="train")], samples_per_epoch=100_000)
    return stoker.Loader(train, batch_size=BATCH, transform=TRANSFORM, shuffle=True, **settings)


TRIES = 10
"""A verdict is a matter of measured times: on a machine that is busy otherwise it may be wrong, but not always."""


def diagnosed(dataset: Path, step: Callable[[stoker.Batch], object], verdict: str, **settings: Any) -> DoctorReport:
    """The first report of some on a loop that has this verdict."""
    lines = []
    for _ in range(TRIES):
        report = diagnosed_once(dataset, step, **settings)
        if report.verdict == verdict:
            return report
        lines += report.lines()
    pytest.fail(f"never {verdict}:\n" + "\n".join(lines))


def diagnosed_once(dataset: Path, step: Callable[[stoker.Batch], object], **settings: Any) -> DoctorReport:
    """What is said of a loop of a second and a half, or of some batches if they take longer."""
    with endless_loader(dataset, **settings) as loader, stoker.doctor(loader, quiet=True) as doctor:
        ends = time.monotonic() + 1.5
        for number, batch in enumerate(loader):
            step(batch)
            if number > 10 and time.monotonic() > ends:
                break
    return doctor.report


def sleep(batch: stoker.Batch) -> None:
    time.sleep(0.12)


def blur(batch: stoker.Batch) -> None:
    for image in batch.images:
        Image.fromarray(image).resize((400, 400)).filter(ImageFilter.GaussianBlur(9))


def count(batch: stoker.Batch) -> int:
    total = 0
    for number in range(2_000_000):
        total += number & 3
    return total


def nothing(batch: stoker.Batch) -> None:
    pass


@pytest.mark.parametrize(
    ("step", "verdict"), [(sleep, "consumer-bound"), (blur, "transform-bound"), (count, "gil-bound")]
)
@pytest.mark.slow
def test_a_slow_loop_is_named(dataset: Path, step: Callable[[stoker.Batch], object], verdict: str) -> None:
    report = diagnosed(dataset, step, verdict)
    assert report.consumer_images_per_second is not None
    assert report.evidence.headroom > 1.2, report.lines()
    assert "py-spy" in report.remedy


@pytest.mark.slow
def test_a_loader_with_one_thread_is_thread_bound(dataset: Path) -> None:
    report = diagnosed(dataset, nothing, "thread-bound", threads=1)
    assert "threads=" in report.remedy


@pytest.mark.slow
def test_a_thread_that_spins_is_named(dataset: Path) -> None:
    def many_small(batch: stoker.Batch) -> None:
        for _ in range(15):
            np.sqrt(np.ones(200_000, np.float32))

    with meanwhile(lambda: None, "log-writer"):
        report = diagnosed(dataset, many_small, "gil-bound")
    assert "'log-writer'" in report.remedy


@pytest.mark.slow
def test_a_thread_that_sleeps_does_not_miss_the_lock(dataset: Path) -> None:
    with meanwhile(lambda: None, "log-writer"):
        report = diagnosed(dataset, lambda _: time.sleep(0.4), "consumer-bound")
    assert report.evidence.threads[0].name == "log-writer"
    assert report.evidence.consumer.blocked_share < 0.2


def test_the_loader_gives_what_it_gives_anyway(dataset: Path) -> None:
    train = stoker.open(dataset, split="train")
    with stoker.Loader(train, batch_size=2, transform=TRANSFORM, shuffle=True, seed=3) as loader:
        plain = [batch.images.copy() for batch in itertools.chain(loader, loader)]
    with stoker.Loader(train, batch_size=2, transform=TRANSFORM, shuffle=True, seed=3) as loader:
        with stoker.doctor(loader, quiet=True):
            seen = [batch.images.copy() for batch in loader]
            state = loader.state_dict()
        seen += [batch.images.copy() for batch in loader]
    assert state["epoch"] == 1
    assert all(np.array_equal(a, b) for a, b in zip(seen, plain, strict=True))


def divide(batch: stoker.Batch, by: int) -> int:
    return len(batch) // by


def test_it_ends_with_its_block_whatever_happens(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with endless_loader(dataset) as loader:
        doctor = stoker.doctor(loader)
        with pytest.raises(ZeroDivisionError), doctor:
            divide(next(iter(loader)), 0)
        assert doctor.report.verdict == "unknown"
        assert capsys.readouterr().err == ""
        with pytest.raises(KeyboardInterrupt), stoker.doctor(loader):
            raise_signal(SIGINT)
        assert "stoker doctor: unknown: only 0 batches" in capsys.readouterr().err
    assert "stoker-doctor" not in [thread.name for thread in threading.enumerate()]


def test_an_adapter_will_do(dataset: Path) -> None:
    train = stoker.open(dataset, split="train")
    with (
        stoker.torch.DataLoader(train, batch_size=2, transform=TRANSFORM) as loader,
        stoker.doctor(loader, quiet=True) as doctor,
    ):
        taken = sum(time.sleep(0.01) is None for _ in loader)
    assert taken == len(loader)
    assert doctor.report.evidence.batches > 2


def test_misuse_is_refused(dataset: Path) -> None:
    with pytest.raises(ConfigError, match=r"list is not a stoker\.Loader"):
        stoker.doctor([])
    with endless_loader(dataset) as loader:
        with stoker.doctor(loader, quiet=True) as doctor, pytest.raises(ConfigError, match="no report before the end"):
            _ = doctor.report
        with pytest.raises(ConfigError, match="used already"):
            doctor.__enter__()


BETWEEN = 0.3


def epochs(dataset: Path, way: str) -> tuple[Evidence, float]:
    """Three epochs, or their beginnings, with something else between them."""
    train = stoker.open(dataset, split="train")
    with (
        stoker.Loader(train, batch_size=4, transform=stoker.Resize(8), prefetch=1, threads=1) as loader,
        stoker.doctor(loader, quiet=True) as doctor,
    ):
        began = time.perf_counter()
        for _ in range(3):
            for number, _ in enumerate(loader):
                time.sleep(0.02)
                if number == 6 and way != "whole":
                    break
            if way == "again":
                loader.load_state_dict(loader.state_dict())
            time.sleep(BETWEEN)
        elapsed = time.perf_counter() - began
    return doctor.report.evidence, elapsed


@pytest.mark.parametrize("way", ["whole", "left", "again"])
@pytest.mark.slow
def test_what_lies_between_iterations_is_left_out(dataset: Path, way: str) -> None:
    evidence, elapsed = epochs(dataset, way)
    assert evidence.batches > 5
    assert evidence.seconds < elapsed - 2 * BETWEEN  # which holds however slow the machine is
    assert evidence.gil_share < 0.5


@pytest.mark.slow
def test_nothing_is_said_of_others_below_a_quota(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.inspect.diagnosis.limited_by_quota", lambda: True)
    evidence, _ = epochs(dataset, "left")
    assert evidence.other_cpus is None


@pytest.mark.slow
def test_a_report_is_lines_and_json(dataset: Path) -> None:
    report = diagnosed(dataset, sleep, "consumer-bound")
    assert report.lines()[0].startswith(f"{report.verdict}: ")
    document = json.loads(json.dumps(report.document()))
    assert document["verdict"] == report.verdict
    assert document["evidence"]["consumer"]["cpu_share"] < 0.5
