"""Asking the person at the terminal."""

from __future__ import annotations

import sys


def typed(question: str) -> str | None:
    """Ask on standard error, and return the line that is typed without its blanks; None where input has ended.

    Not with ``input()``: standard output may be a JSON document.
    """
    sys.stderr.write(question)
    sys.stderr.flush()
    line = sys.stdin.readline()
    return line.strip() if line else None
