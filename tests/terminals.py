"""Programs that a person runs at a terminal."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def at_terminal(
    *words: object, answers: Mapping[bytes, bytes] | None = None, folder: Path | None = None, **environment: str
) -> tuple[int, bytes]:
    """Run Python with these arguments; return its exit status, and what it showed until its end.

    An answer is typed when its question has appeared.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update({"TERM": "xterm", "COLUMNS": "100", "PYTHONPATH": os.pathsep.join(sys.path), **environment})
        os.chdir(folder or ".")
        os.execv(sys.executable, [sys.executable, *map(str, words)])
    shown, left = b"", dict(answers or {})
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            data = os.read(terminal, 4096)
        except OSError:  # how Linux says that the other side has gone
            break
        if not data:
            break
        shown += data
        for question in [question for question in left if question in shown]:
            time.sleep(0.2)  # the echo is switched off after the question is shown, and switching throws away input
            os.write(terminal, left.pop(question))
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown
