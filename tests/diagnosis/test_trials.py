"""What is tried against which verdict, and how much of a dataset that may take."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from diagnosis.figures import evidence
from stoker.diagnosis import Setup, stage_speeds
from stoker.diagnosis.trials import ways_for

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.diagnosis import Verdict


def names(dataset: Path, verdict: Verdict, **changed: Any) -> list[str]:
    train = stoker.open(dataset, split="train")
    with ways_for(verdict, train, {"batch_size": 2, "threads": 1}, evidence(**changed)) as ways:
        return [way.name for way in ways]


@pytest.mark.parametrize(
    ("verdict", "changed", "tried"),
    [
        ("thread-bound", {"setup": Setup(threads=1, cpus=4)}, ["threads=4"]),
        ("thread-bound", {"setup": Setup(threads=1, cpus=4), "busy_share": 0.3}, ["prefetch=8"]),
        ("thread-bound", {"setup": Setup(threads=4, cpus=4), "busy_share": 0.3}, ["prefetch=8"]),
        ("storage-bound", {"setup": Setup(threads=2, cpus=2)}, ["threads=8"]),
        ("storage-bound", {"setup": Setup(threads=8, cpus=2)}, []),
        ("storage-bound", {"setup": Setup(threads=32, cpus=2)}, []),
        ("cold-cache", {}, []),
    ],
)
def test_what_is_tried(dataset: Path, verdict: Verdict, changed: dict[str, Any], tried: list[str]) -> None:
    assert names(dataset, verdict, **changed) == (["as it is", *tried] if tried else [])


def test_the_command_of_a_rebuild_can_be_typed(dataset: Path, tmp_path: Path) -> None:
    spaced = shutil.copytree(dataset, tmp_path / "my data")
    train = stoker.open(spaced, split="train")
    with ways_for("decode-bound", train, {"batch_size": 2}, evidence()) as ways:
        assert f"stoker repack '{spaced}' NEW" in ways[2].remedy


def test_decoding_alone_keeps_to_its_time_and_memory(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = stoker.open(dataset, split="train")
    whole = stage_speeds._images(train, 60)
    assert len(whole) == len(train)
    assert len(stage_speeds._images(train, 0)) == 1
    monkeypatch.setattr(stage_speeds, "SAMPLE_BYTES", len(whole[0]) + 1)
    assert 1 <= len(stage_speeds._images(train, 60)) <= 2
    assert (stage_speeds.decoding_speed(train, stoker.CenterCrop(8, 8), 2, 0.05) or 0) > 0
