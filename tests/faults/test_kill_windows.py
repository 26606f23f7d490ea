"""A process may be killed at any rename, unlink or fsync: readers see all or nothing, and the same command finishes.

``STOKER_FAULTS=1000`` kills before and after every such call; left out, at a few of each command.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from programs import run_python

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = Path(__file__).parent / "kill_windows.py"
MOST = os.environ.get("STOKER_FAULTS", "4")


@pytest.mark.parametrize(
    "group",
    [
        ["export folder", "export webdataset", "export parquet", "sample"],
        ["merge", "merge --link", "repack"],
        ["download", "build --overwrite"],
    ],
)
@pytest.mark.slow
def test_a_kill_leaves_all_or_nothing(tmp_path: Path, shim: Mapping[str, str], group: list[str]) -> None:
    environment = {**shim, "PYTHONPATH": str(PROGRAM.parent.parent), "STOKER_CACHE_DIR": str(tmp_path / "cache")}
    done = run_python("-W", "ignore", PROGRAM, tmp_path, MOST, *group, env=environment, seconds=280)
    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    assert list(outcomes) == group
    for calls in outcomes.values():
        assert "wrong" not in calls, calls["wrong"]
