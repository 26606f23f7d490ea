"""Programs that run at the same time, and talk to each other, as the processes of one training run do."""

from __future__ import annotations

import json
import socket
import subprocess
import textwrap
from typing import Any

import preloaded


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


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
        said = [one.communicate(timeout=seconds) for one in running]
    finally:
        for one in running:
            one.kill()
            one.wait()
    for one, (_, trace) in zip(running, said, strict=True):
        assert one.returncode == 0, trace
    return [json.loads(out.splitlines()[-1]) for out, _ in said]
