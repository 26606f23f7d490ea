"""`stoker.trace`: a file that Perfetto reads, with everything that the threads did."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from stoker.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TRANSFORM = stoker.RandomResizedCrop(32)


@pytest.fixture
def train(dataset: Path) -> stoker.Dataset:
    return stoker.open(dataset, split="train")


def events_of(document: dict[str, Any], kind: str = "X") -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if event["ph"] == kind]


def test_every_stage_of_every_sample_is_in_it(train: stoker.Dataset, tmp_path: Path) -> None:
    with stoker.Loader(train, batch_size=6, transform=TRANSFORM, threads=2) as loader:
        list(loader)
        begun = time.monotonic() * 1e6
        with stoker.trace(loader, tmp_path / "run.json") as tracing:
            keys = [int(index) for batch in loader for index in batch.indices]
        ended = time.monotonic() * 1e6
        list(loader)  # not traced any more
    document = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    events = events_of(document)
    assert len(events) == tracing.events
    assert document["otherData"] == {"lost": 0} == {"lost": tracing.lost}
    assert all(begun <= event["ts"] <= event["ts"] + event["dur"] <= ended for event in events)
    decoded = Counter(event["args"]["sample"] for event in events if event["name"] == "decode")
    assert decoded == Counter(keys)
    names = Counter(event["name"] for event in events)
    stages = ("read", "check", "parse", "decode", "resample")
    assert [names[stage] for stage in stages] == [len(keys)] * len(stages)
    assert names["wait"] == names["gil"] == len(loader)
    assert names["consume"] == len(loader) - 1
    threads = {
        event["tid"]: event["args"]["name"] for event in events_of(document, "M") if event["name"] != "process_name"
    }
    assert {threads[event["tid"]] for event in events if event["name"] == "decode"} <= {"decode 0", "decode 1"}
    assert {threads[event["tid"]] for event in events if event["name"] == "wait"} == {"consumer"}
    ready = [event["args"]["ready"] for event in events_of(document, "C")]
    assert len(ready) == len(loader)
    assert all(0 <= count <= 4 for count in ready)


def test_stages_of_a_thread_do_not_overlap(train: stoker.Dataset, tmp_path: Path) -> None:
    with (
        stoker.Loader(train, batch_size=6, transform=TRANSFORM, threads=2) as loader,
        stoker.trace(loader, tmp_path / "t.json"),
    ):
        list(loader)
    lanes: dict[int, list[tuple[float, float]]] = {}
    for event in events_of(json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))):
        lanes.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in lanes.values():
        spans.sort()
        assert all(after[0] >= before[1] - 0.001 for before, after in pairwise(spans))


def test_it_can_be_compressed_and_has_an_end(train: stoker.Dataset, tmp_path: Path) -> None:
    with (
        stoker.Loader(train, batch_size=6, transform=TRANSFORM, threads=2) as loader,
        stoker.trace(loader, tmp_path / "run.json.gz", most=100) as tracing,
    ):
        list(loader)
    with gzip.open(tmp_path / "run.json.gz", "rt", encoding="utf-8") as file:
        document = json.load(file)
    assert tracing.events == len(events_of(document)) == 100
    assert document["otherData"]["lost"] == tracing.lost > 100


def test_a_trace_of_a_failed_run_is_whole_too(train: stoker.Dataset, tmp_path: Path) -> None:
    with stoker.Loader(train, batch_size=6, transform=TRANSFORM) as loader:
        with pytest.raises(ZeroDivisionError), stoker.trace(loader, tmp_path / "run.json"):
            next(iter(loader)).labels.tolist()[0] // 0
        assert events_of(json.loads((tmp_path / "run.json").read_text(encoding="utf-8")))
        with pytest.raises(FileNotFoundError, match="nowhere"), stoker.trace(loader, tmp_path / "nowhere" / "run.json"):
            pass


def test_a_full_disk_is_an_error_of_the_block(train: stoker.Dataset) -> None:
    with stoker.Loader(train, batch_size=6, transform=TRANSFORM) as loader:
        with pytest.raises(OSError, match="No space left"), stoker.trace(loader, "/dev/full"):  # noqa: PT012 - enough to write
            for _ in range(40):
                list(loader)
        assert sum(len(batch) for batch in loader) == len(train)


def test_one_trace_at_a_time(train: stoker.Dataset, tmp_path: Path) -> None:
    with stoker.Loader(train, batch_size=6, transform=TRANSFORM) as loader:
        with stoker.trace(loader, tmp_path / "outer.json") as outer:
            with pytest.raises(ConfigError, match="traced already"), stoker.trace(loader, tmp_path / "inner.json"):
                pass
            list(loader)
        assert outer.events > 5 * len(train)
        with stoker.trace(loader, tmp_path / "next.json") as following:
            list(loader)
        assert following.events > 5 * len(train)
    ready = [event["args"]["ready"] for event in events_of(json.loads((tmp_path / "next.json").read_text()), "C")]
    assert all(count <= 4 for count in ready)
    with pytest.raises(ConfigError, match="str"):
        stoker.trace("photos", tmp_path / "x.json")
