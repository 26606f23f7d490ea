"""`Loader.stats`: what it counts is what was done, and where the time went."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

import stoker
from other_threads import meanwhile
from stoker.cli.main import main
from stoker.loader.stats import STAGES

if TYPE_CHECKING:
    from pathlib import Path

TRANSFORM = stoker.RandomResizedCrop(32, hflip=0.5)


@pytest.fixture
def train(dataset: Path) -> stoker.Dataset:
    return stoker.open(dataset, split="train")


def test_what_is_counted_is_what_was_done(train: stoker.Dataset, dataset: Path) -> None:
    with stoker.Loader(train, batch_size=7, transform=TRANSFORM, threads=2) as loader:
        assert loader.stats().batches == loader.stats().samples == 0
        started = time.monotonic()
        for _ in range(2):
            assert sum(len(batch) for batch in loader) == len(train)
        stats = loader.stats()
        elapsed = time.monotonic() - started
    assert (stats.batches, stats.samples, stats.threads) == (2 * len(loader), 2 * len(train), 2)
    assert tuple(stats.stages) == STAGES
    counts = {name: stage.count for name, stage in stats.stages.items() if stage.count}
    assert counts == dict.fromkeys(("read", "check", "parse", "decode", "resample"), 2 * len(train))
    frames = sum(path.stat().st_size for path in dataset.glob("train-*.tfrecord"))
    assert stats.bytes_read == 2 * frames
    assert 0 < stats.wait_seconds + stats.consumer_seconds <= elapsed
    assert 0 <= stats.gil_seconds <= stats.wait_seconds
    spent = sum(stage.seconds for stage in stats.stages.values())
    assert 0 < spent <= stats.busy_seconds
    assert stats.busy_seconds + stats.idle_seconds <= 2 * stats.seconds
    assert loader.stats().samples == stats.samples, "a closed loader still tells"


def test_a_slow_consumer_is_seen(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=4, transform=TRANSFORM, threads=1) as loader:
        started = time.monotonic()
        list(loader)
        pause = max(0.03, 5 * (time.monotonic() - started) / len(loader))  # slow beside a machine that is busy, too
        warm = loader.stats()
        for _ in loader:
            time.sleep(pause)
        stats = loader.stats()
        time.sleep(0.1)
        for _ in loader:
            break
    slow = stats - warm
    assert slow.consumer_seconds >= pause * (slow.batches - 1)
    assert slow.ready_batches >= slow.batches - 2, "they were ready before they were asked for"
    assert slow.idle_seconds > slow.busy_seconds
    between = loader.stats() - stats
    assert (between.batches, between.threads) == (1, 1)
    assert between.consumer_seconds == 0, "what is done between epochs does not count as consumption"


def test_a_thread_that_holds_the_gil_is_seen(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=2, transform=TRANSFORM, threads=1) as loader:
        list(loader)
        alone = loader.stats()
        with meanwhile(lambda: sum(range(1000))):
            for _ in range(3):
                list(loader)
        beside = loader.stats() - alone
    # The interpreter lets a thread run for 5 ms before another gets the GIL.
    assert beside.gil_seconds / beside.batches > 10 * alone.gil_seconds / alone.batches


def test_differences_are_of_what_was_done_in_between(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=5, transform=TRANSFORM) as loader:
        list(loader)
        first = loader.stats()
        list(loader)
        second = loader.stats()
    between = second - first
    assert between.samples == len(train)
    assert between.stages["decode"].count == len(train)
    assert between.bytes_read == first.bytes_read
    assert between.seconds == pytest.approx(second.seconds - first.seconds)


def test_raw_pixels_and_converted_values_are_written(train: stoker.Dataset, photos: Path, tmp_path: Path) -> None:
    with stoker.Loader(train, batch_size=5, transform=TRANSFORM, output=stoker.Output("float32")) as loader:
        list(loader)
        assert loader.stats().stages["write"].count == len(train)
    command = ["build", str(photos), str(tmp_path / "raw"), "--preset", "dlbs", "--resize", "exact:16x16"]
    assert main([*command, "--encode", "raw"]) == 0
    raw = stoker.open(tmp_path / "raw", split="train")
    with stoker.Loader(raw, batch_size=5, transform=stoker.RawTensor(16)) as loader:
        list(loader)
        stages = loader.stats().stages
    assert stages["write"].count > 0
    assert stages["decode"].count == stages["resample"].count == 0


def test_prometheus_reads_what_is_written_for_it(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=5, transform=TRANSFORM) as loader:
        list(loader)
        stats = loader.stats()
    odd = 'a "b"\\c\nd'
    families = {family.name: family for family in text_string_to_metric_families(stats.prometheus({"split": odd}))}
    (samples,) = families["stoker_samples"].samples
    assert (samples.name, samples.value, samples.labels) == ("stoker_samples_total", len(train), {"split": odd})
    decoded = {sample.labels["stage"]: sample.value for sample in families["stoker_stage_samples"].samples}
    assert decoded == {name: stage.count for name, stage in stats.stages.items()}
    assert families["stoker_threads"].type == "gauge"
    assert not [line for line in stats.prometheus().splitlines() if "{" in line and "stage=" not in line]


def test_scalars_are_rates_and_shares(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=5, transform=TRANSFORM) as loader:
        assert loader.stats().scalars()["input/images_per_second"] == 0
        list(loader)
        scalars = loader.stats().scalars()
    assert scalars["input/images_per_second"] > 0
    shares = {name: value for name, value in scalars.items() if name.endswith("_share")}
    assert all(0 <= value <= 1 for value in shares.values()), shares
    assert {f"input/{stage}_share" for stage in STAGES} < set(shares)
