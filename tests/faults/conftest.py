"""The library that makes the system fail, compiled once."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose processes have ``shim.c`` between them and the C library."""
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    command = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, HERE / "shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}
