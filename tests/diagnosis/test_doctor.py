"""`stoker.doctor` around a real loop: what it says of planted loops, and that it leaves the loader as it was."""

from __future__ import annotations

import json
import threading
import time
from signal import SIGINT, raise_signal
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

import stoker
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.diagnosis import DoctorReport

VIEW = stoker.RandomResizedCrop(32)
BATCH = 4


def endless_loader(dataset: Path, **settings: Any) -> stoker.Loader:
    train = stoker.mix([stoker.open(dataset, split="train")], samples_per_epoch=100_000)
    return stoker.Loader(train, batch_size=BATCH, view=VIEW, shuffle=True, **settings)


TRIES = 3
"""A verdict is a matter of measured times: on a machine that is busy otherwise it may be wrong once, but not always."""


def diagnosed(dataset: Path, step: Callable[[stoker.Batch], object], verdict: str, **settings: Any) -> DoctorReport:
    """The first report of some on a loop that has this verdict."""
    said = []
    while len(said) < TRIES:
        report = diagnosed_once(dataset, step, **settings)
        if report.verdict == verdict:
            return report
        said += report.lines()
    pytest.fail(f"never {verdict}:\n" + "\n".join(said))


def diagnosed_once(dataset: Path, step: Callable[[stoker.Batch], object], **settings: Any) -> DoctorReport:
    """What is said of a loop that goes on until batches were handed out again, and a little longer."""
    with endless_loader(dataset, **settings) as loader, stoker.doctor(loader, quiet=True) as doctor:
        again = 0
        for batch in loader:
            step(batch)
            again += doctor._watch.top_speed is not None
            if again > 10:
                break
    return doctor.report


def sleep(batch: stoker.Batch) -> None:
    time.sleep(0.12)


def blur(batch: stoker.Batch) -> None:
    for image in batch.images:
        picture = Image.fromarray(image).resize((400, 400))
        for _ in range(3):
            picture = picture.filter(ImageFilter.GaussianBlur(9))


def count(batch: stoker.Batch) -> int:
    total = 0
    for number in range(1_000_000):
        total += number & 3
    return total


def nothing(batch: stoker.Batch) -> None:
    pass


@pytest.mark.parametrize(
    ("step", "verdict", "work"),
    [
        (sleep, "consumer-bound", "waiting"),
        (blur, "transform-bound", "transform"),
        (count, "gil-bound", "python"),
    ],
)
def test_a_slow_loop_is_named(dataset: Path, step: Callable[[stoker.Batch], object], verdict: str, work: str) -> None:
    report = diagnosed(dataset, step, verdict)
    spot = report.evidence.consumer.spots[0]
    assert (spot.function, spot.file, spot.work) == (step.__name__, __file__, work)
    assert step.__name__ in report.sentence
    assert report.evidence.consumer.top_speed is not None
    assert report.evidence.head_room > 1.2, report.lines()


def test_a_loader_with_one_thread_is_thread_bound(dataset: Path) -> None:
    report = diagnosed(dataset, nothing, "thread-bound", threads=1)
    assert "threads=" in report.remedy


def test_a_thread_that_spins_is_named(dataset: Path) -> None:
    over = threading.Event()

    def write_logs() -> None:
        while not over.is_set():
            pass

    def many_small(batch: stoker.Batch) -> None:
        for _ in range(15):
            np.sqrt(np.ones(200_000, np.float32))

    thread = threading.Thread(target=write_logs, name="log-writer")
    thread.start()
    try:
        report = diagnosed(dataset, many_small, "gil-bound")
    finally:
        over.set()
        thread.join()
    assert "'log-writer'" in report.remedy


@pytest.mark.parametrize("replay", [0, 5])
def test_the_loader_gives_what_it_gives_anyway(dataset: Path, replay: int) -> None:
    train = stoker.open(dataset, split="train")
    with stoker.Loader(train, batch_size=2, view=VIEW, shuffle=True, seed=3) as loader:
        plain = [batch.images.copy() for batch in loader]
        goes_on = [batch.images.copy() for batch in loader][:4]
    seen: list[np.ndarray[Any, Any]] = []
    with stoker.Loader(train, batch_size=2, view=VIEW, shuffle=True, seed=3) as loader:
        with stoker.doctor(loader, replay=replay, quiet=True):
            for batch in loader:
                seen.append(batch.images.copy())
                batch.images[:] = 0  # it is the consumer's
                time.sleep(0.002)
            state = loader.state_dict()
        later = [batch.images.copy() for _, batch in zip(range(4), loader, strict=False)]
    assert state["epoch"] == 1
    assert len(seen) == len(plain) + replay
    again = [images for images in seen if sum(np.array_equal(images, one) for one in seen) > 1]
    assert len(again) == (replay + 2 if replay else 0)  # two different ones, and each as the loader gave it
    unique = list({images.tobytes(): images for images in seen}.values())
    assert all(np.array_equal(a, b) for a, b in zip(unique, plain, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(later, goes_on, strict=True))


def divide(batch: stoker.Batch, by: int) -> int:
    return len(batch) // by


def test_it_ends_with_its_block_whatever_happens(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with endless_loader(dataset) as loader:
        usual = loader.handing_out
        doctor = stoker.doctor(loader)
        with pytest.raises(ZeroDivisionError), doctor:
            divide(next(iter(loader)), 0)
        assert loader.handing_out is usual
        assert doctor.report.verdict == "unknown"
        assert capsys.readouterr().err == ""
        with pytest.raises(KeyboardInterrupt), stoker.doctor(loader):
            raise_signal(SIGINT)
        assert "stoker doctor: unknown: only 0 batches" in capsys.readouterr().err
    assert "stoker-doctor" not in [thread.name for thread in threading.enumerate()]


def test_what_holds_a_loader_will_do(dataset: Path) -> None:
    train = stoker.open(dataset, split="train")
    with (
        stoker.torch.DataLoader(train, batch_size=2, view=VIEW) as loader,
        stoker.doctor(loader, quiet=True) as doctor,
    ):
        taken = sum(1 for _ in loader)
    assert taken == len(loader) + 8
    assert doctor.report.evidence.batches > 2


def test_misuse_is_refused(dataset: Path) -> None:
    with pytest.raises(ConfigError, match="list is no stoker"):
        stoker.doctor([])
    with endless_loader(dataset) as loader:
        with pytest.raises(ConfigError, match="replay"):
            stoker.doctor(loader, replay=-1)
        with stoker.doctor(loader, quiet=True) as doctor:
            with pytest.raises(ConfigError, match="no report before the end"):
                _ = doctor.report
            with pytest.raises(ConfigError, match="watched already"):
                stoker.doctor(loader).__enter__()
        with pytest.raises(ConfigError, match="each used once"):
            doctor.__enter__()


def test_a_report_is_lines_and_json(dataset: Path) -> None:
    report = diagnosed(dataset, sleep, "consumer-bound")
    assert report.lines()[0].startswith(f"{report.verdict}: ")
    document = json.loads(json.dumps(report.document()))
    assert document["verdict"] == report.verdict
    assert document["evidence"]["consumer"]["spots"][0]["function"] == "sleep"
