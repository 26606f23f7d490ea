"""Every example runs, as it stands, on the sample, and says that it is done."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from house.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES} >= {"train_view", "torch_training", "tensorflow_fit"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, dataset: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(example), str(dataset)]
    result = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.strip()
