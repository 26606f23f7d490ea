"""The command line: each command parses, calls one function, prints what it returned and chooses the exit code."""

from __future__ import annotations

__all__ = ["main"]
