"""Commands of Stoker, typed in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.cli.main import main


class Cli:
    """Types a command, checks its exit code, and returns what it printed: to stderr if it has failed, else to stdout.

    Attributes:
        code: The exit code of the last command, which may be any where ``code=None`` was given.
        out: What it printed to stdout.
        err: What it printed to stderr.
    """

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.code = 0
        self.out = self.err = ""

    def __call__(self, *words: object, code: int | None = 0) -> str:
        self._capsys.readouterr()
        self.code = main([str(word) for word in words])
        self.out, self.err = self._capsys.readouterr()
        assert "Traceback" not in self.err
        assert code in (None, self.code), self.err
        return self.err if self.code else self.out

    @property
    def json(self) -> Any:
        """The document that the last command printed."""
        return json.loads(self.out)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(capsys)
