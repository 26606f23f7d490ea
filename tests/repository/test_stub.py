"""The checked-in stub is what the extension says of itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from repository.checkout import PACKAGE, ROOT


@pytest.mark.needs("nanobind")
def test_the_stub_is_current() -> None:
    program = [sys.executable, str(ROOT / "scripts" / "stub.py")]
    made = subprocess.run(program, check=True, capture_output=True, text=True, timeout=60).stdout
    checked_in = (PACKAGE / "_native.pyi").read_text(encoding="utf-8")
    assert made == checked_in, "the extension's signatures have changed: run `make stub` and look at the difference"
