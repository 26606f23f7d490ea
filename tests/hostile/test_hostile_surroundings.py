"""Surroundings made to break a command: closed and full outputs, homes that are not there, odd variables and words."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from stoker.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


def run(words: str, dataset: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell of its own."""
    command = words.replace("stoker", f"'{sys.executable}' -m stoker.cli.main").replace("DATASET", f"'{dataset}'")
    environment = {**os.environ, **variables}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("stoker info DATASET >&-", 0),
        ("stoker verify DATASET 2>&-", 0),
        ("stoker verify DATASET <&- >&- 2>&-", 0),
        ("stoker info /nowhere 2>&-", 2),
        ("stoker info DATASET > /dev/full", 1),
        ("stoker info DATASET --json > /dev/full", 1),
    ],
)
@pytest.mark.slow
def test_outputs_that_are_closed_or_full(dataset: Path, words: str, code: int) -> None:
    """Without an output the commands ended in an ``AttributeError``."""
    done = run(words, dataset)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr


@pytest.mark.slow
def test_variables_that_make_no_sense(dataset: Path) -> None:
    odd = {"COLUMNS": "-5", "LINES": "x", "HOME": "/nowhere", "TMPDIR": "/nowhere", "LC_ALL": "C", "TERM": ""}
    done = run("stoker verify DATASET && stoker info DATASET", dataset, STOKER_CACHE_DIR="/dev/null", **odd)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


WORDS = [
    "info a\nb",
    "info \x1b[31m",
    f"info {'x' * 5000}",
    "build nowhere made --seed 99999999999999999999",
    "build nowhere made --shard-size 1e400GB",
    "build nowhere made --split-fraction validation=nan",
    "build nowhere made --shard-names ../{split}-{shard}.tfrecord",
    "build nowhere made --shard-names {shard:0999999999}",
    "show nowhere --out x.png --transforms __import__('os')",
]


@pytest.mark.parametrize("words", WORDS, ids=lambda words: ascii(words)[:40])
def test_words_that_make_no_sense(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    command, _, rest = words.partition(" ")
    assert main([command, *([rest] if command == "info" else rest.split())]) in (1, 2)
    shown = capsys.readouterr().err
    assert "stoker: error: " in shown
    assert all(char.isprintable() or char == "\n" for char in shown)
