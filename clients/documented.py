"""Run the programs of pages in docs/how-to as they stand there, each in its client's environment."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from source_trees import photographs

if TYPE_CHECKING:
    from collections.abc import Callable

    from source_trees import Photo

PAGES = Path(__file__).resolve().parents[1] / "docs" / "how-to"


def check_program(heading: str, data: Path, wanted: Callable[[Photo], Any]) -> None:
    """Run a program of other-readers.md; its ``labels`` must be those of the photographs, in any order."""
    truth = photographs(data / "photos" / "train").values()
    before = Path.cwd()
    os.chdir(data)
    try:
        labels = run_program("other-readers.md", f"## {heading}")["labels"]
    finally:
        os.chdir(before)
    assert sorted(labels) == sorted(wanted(photo) for photo in truth), heading


def run_program(page: str, heading: str) -> dict[str, Any]:
    """Run the program under a heading of a page in this directory; return its variables."""
    path = PAGES / page
    text = path.read_text(encoding="utf-8")
    block = rf"^{re.escape(heading)}\n(?:(?!## ).*\n)*?```text\n(?P<program>(?:(?!```).*\n)*)"
    match = re.search(block, text, re.MULTILINE)
    assert match, f"{path} has no program under the heading {heading!r}"
    above = "\n" * text.count("\n", 0, match.start("program"))  # an error then names its line on the page
    namespace: dict[str, Any] = {"__name__": "documented"}
    exec(compile(above + match["program"], str(path), "exec"), namespace)
    return namespace
