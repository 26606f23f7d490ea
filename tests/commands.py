"""Commands of Stoker, typed in this process."""

from __future__ import annotations

import pytest

from stoker.cli.main import main


class Cli:
    """Types a command, checks its exit code, and returns what it printed: to stderr if it has failed, else to stdout.

    Attributes:
        out: What the last command printed to stdout.
        err: What it printed to stderr.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *words: object, code: int = 0) -> str:
        self._capsys.readouterr()
        assert main([str(word) for word in words]) == code
        self.out, self.err = self._capsys.readouterr()
        assert "Traceback" not in self.err
        return self.err if code else self.out


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)
