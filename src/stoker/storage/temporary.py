"""How unfinished files are called, so that whoever comes next can tell and remove them."""

from __future__ import annotations

import os
import secrets

TEMPORARY_MARK = ".tmp-"
"""What the name of every unfinished file contains, followed by something unique."""


def temporary_name(name: str) -> str:
    """Return a name beside ``name`` that no other writer uses."""
    return f"{name}{TEMPORARY_MARK}{os.getpid()}-{secrets.token_hex(4)}"
