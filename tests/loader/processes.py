"""Programs that run at the same time, and talk to each other, as the processes of one training run do."""

from __future__ import annotations

import json
import subprocess
import textwrap
from typing import Any

import preloaded


def run_together(program: str, arguments: list[list[str]], *frameworks: str, seconds: float = 120) -> list[Any]:
    """Run a program, which imports frameworks, once for each list of arguments; return what each printed last, as JSON.

    None outlives the call, and one that hangs fails it.
    """
    running = [
        subprocess.Popen(
            [preloaded.python(*frameworks), "-c", textwrap.dedent(program), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in arguments
    ]
    try:
        outputs = [process.communicate(timeout=seconds) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    for process, (_, trace) in zip(running, outputs, strict=True):
        assert process.returncode == 0, trace
    return [json.loads(out.splitlines()[-1]) for out, _ in outputs]
