"""Programs begin in an interpreter that has things loaded as they begin with ``python``."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import preloaded
from programs import run_python

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs begin with `python` itself elsewhere")
PROGRAM = "import os, sys; print(sys.argv[1:], os.getcwd(), os.environ['ASKED'], input()); sys.exit(len(sys.argv))"


@pytest.mark.parametrize("by", ["-c", "file", "started"])
def test_a_program_has_its_surroundings_and_its_exit_code(tmp_path: Path, by: str) -> None:
    words = ["-c", PROGRAM]
    if by != "-c":
        (tmp_path / "program.py").write_text(PROGRAM)
        words = [str(tmp_path / "program.py")]
    if by == "started":
        starting = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, *sys.argv[1:]]).returncode)"
        words = ["-c", starting, *words]
    settings = {"python": preloaded.python("json"), "cwd": tmp_path, "env": {**os.environ, "ASKED": "yes"}}
    done = run_python(*words, "a", "b c", input="in\n", **settings)
    assert (done.returncode, done.stdout) == (3, f"['a', 'b c'] {tmp_path} yes in\n"), done.stderr


def test_a_failure_is_seen() -> None:
    done = run_python("-c", "1 / 0", python=preloaded.python("json"))
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_a_program_ends_with_its_caller() -> None:
    command = [preloaded.python("json"), "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as caller:
        assert caller.stdout is not None
        program = os.pidfd_open(int(caller.stdout.readline()))
        caller.kill()
    with os.fdopen(program) as descriptor:
        assert select.select([descriptor], [], [], 30)[0]
