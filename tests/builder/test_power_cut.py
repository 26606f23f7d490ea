"""A build is killed, or the power goes, at any moment: what is left can be gone on with, what was finished is."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.trees import write_tree
from programs import run_python

PROGRAM = Path(__file__).parent / "power_cuts.py"


@pytest.mark.parametrize("naming", ["default", "per-class"])
@pytest.mark.slow
def test_a_kill_or_power_cut_at_any_step(tmp_path: Path, naming: str) -> None:
    source, work = write_tree(tmp_path / "src", {"a": 5, "b": 3}, "b/text.JPEG"), tmp_path / "work"
    work.mkdir()
    done = run_python(PROGRAM, source, work, naming, seconds=200)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 25
