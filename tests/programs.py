"""Python programs that tests run in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any


def run(program: str, *words: object, seconds: float = 120, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a program with arguments."""
    return run_python("-c", textwrap.dedent(program), *words, seconds=seconds, **settings)


def run_python(*words: object, seconds: float = 120, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments; what it prints is text."""
    command = [settings.pop("python", sys.executable), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, **settings)


def output_of(program: str, *words: object, **settings: Any) -> str:
    """What a program prints that ends well."""
    done = run(program, *words, **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout
