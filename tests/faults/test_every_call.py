"""Every call that a command makes may fail: nothing wrong comes of it, and the same command finishes afterwards.

``STOKER_FAULTS=1000`` tries every call of every case; left out, a few of each.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builder.trees import build, settings_for, write_tree
from programs import run_python

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
MOST = os.environ.get("STOKER_FAULTS", "2")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """A folder for what is to come, a source of seven images, and the dataset that it makes."""
    root = tmp_path_factory.mktemp("stage")
    source = write_tree(root / "source", {"a": 4, "b": 3})
    build(settings_for(source, shards=2), root / "dataset")
    (root / "work").mkdir()
    return str(root / "work"), str(source), str(root / "dataset")


@pytest.mark.parametrize(
    "group", [["build", "repack"], ["export"], ["index", "verify", "feed", "node cache", "cached indexes", "threads"]]
)
@pytest.mark.slow
def test_every_call_may_fail(stage: tuple[str, str, str], shim: Mapping[str, str], group: list[str]) -> None:
    done = run_python(HERE / "every_call.py", *stage, MOST, *group, env=shim, seconds=280)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert outcomes
    for name, calls in outcomes.items():
        assert "wrong" not in calls, calls["wrong"]
        assert calls["calls"] > 1, name
