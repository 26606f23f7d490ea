"""Have each rival make its data, once for the same sources and the same program."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from benchmarks.rivals.environments import BEFORE, HERE, OURS, ROOT, programs, requirements

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.rivals.environments import Environments
    from benchmarks.rivals.work import Work


def has_data(rival: str) -> bool:
    """Whether a rival reads anything but the sources."""
    return (HERE / programs(rival) / "prepare.py").exists()


def prepare(environments: Environments, rival: str, work: Work, say: Callable[[str], None]) -> str:
    """Make the data of a rival; return why that failed, or nothing.

    Stoker's are built anew each time: what is measured is the checkout, and what it writes may have changed.
    """
    if not has_data(rival):
        return ""
    own, data = rival in (OURS, BEFORE), environments.data(rival)
    stamp = data / "prepared.txt"
    program = (HERE / programs(rival) / "prepare.py").read_text(encoding="utf-8")
    made_of = (environments.sources / "made-of.json").read_text()
    wanted = "\n".join([made_of, program, "" if own else requirements(rival)])
    if not own and stamp.exists() and stamp.read_text() == wanted:
        return ""
    say(f"making the data of {rival}")
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    command = environments.command(rival, "prepare", work.to_json())
    done = subprocess.run(
        command, cwd=ROOT, env=environments.variables(rival), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return f"its data could not be made: {lines[-1] if lines else done.returncode}"
    stamp.write_text(wanted)
    return ""
