"""Builds that are interrupted, and builds in processes that are killed while they work."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
_KILLS = 4


def interrupt(build: Callable[..., object], out: Path, shards: int) -> int:
    """Build, with a function that hears of the progress, until so many shards are complete; return how many are."""

    def stop(**_: int) -> None:
        if len(list(out.glob("*.tfrecord"))) >= shards:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(stop)
    return len(list(out.glob("*.tfrecord")))


def kill_until_built(program: str, out: Path) -> int:
    """Run a program again and again, killed soon after it has finished a shard, then to its end; return the kills."""
    rng = random.Random(20)
    killed = 0
    while True:
        process = subprocess.Popen([sys.executable, "-c", program, str(out)], cwd=HERE, stderr=subprocess.PIPE)
        if killed < _KILLS:
            before = journal_lines(out)
            while journal_lines(out) <= before and process.poll() is None:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.01))
            process.kill()
        _, stderr = process.communicate(timeout=120)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, stderr.decode()
            return killed
        killed += 1


def journal_lines(out: Path) -> int:
    """How many lines the journal of a build has."""
    journal = out / "build.journal"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0
