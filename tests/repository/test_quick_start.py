"""The quick start works as it stands: its commands and its Python, in their order, from a folder of photographs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from repository import markdown
from repository.checkout import ROOT
from stoker.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PAGE = ROOT / "docs" / "quick-start.md"
OF_THE_MACHINE = {"pip install .", "make demo"}  # CI installs in this way; the demo is these commands once more


def test_the_quick_start_works(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(photos, tmp_path / "photos")  # what its first command makes: that finds it there
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "documentation"}
    run: list[str] = []
    for block in markdown.blocks(PAGE):
        if block.language == "python":
            exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), namespace)
            continue
        for line in block.text.splitlines():
            command = line.partition("#")[0].strip()
            if command not in OF_THE_MACHINE:
                stoker, *words = command.split()
                assert stoker == "stoker", command
                assert main(words) == 0, command
                run.append(words[0])
    assert run == ["sample", "plan", "build", "verify", "info", "show", "build"]
    assert (tmp_path / "sheet.png").stat().st_size > 10_000
