"""Run the programs of docs/how-to/other-readers.md as they stand there, each in its client's environment."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from source_trees import photographs

if TYPE_CHECKING:
    from collections.abc import Callable

    from source_trees import Photo

PAGE = Path(__file__).resolve().parents[1] / "docs" / "how-to" / "other-readers.md"


def check_program(heading: str, data: Path, wanted: Callable[[Photo], Any]) -> None:
    """Run the program under a heading; its ``labels`` must be those of the photographs, in any order."""
    truth = photographs(data / "photos" / "train").values()
    assert sorted(_labels(heading, data)) == sorted(wanted(photo) for photo in truth), heading


def _labels(heading: str, data: Path) -> list[Any]:
    text = PAGE.read_text(encoding="utf-8")
    block = rf"^## {re.escape(heading)}\n(?:(?!## ).*\n)*?```text\n(?P<program>(?:(?!```).*\n)*)"
    found = re.search(block, text, re.MULTILINE)
    assert found, f"{PAGE} has no program under the heading {heading!r}"
    above = "\n" * text.count("\n", 0, found.start("program"))  # an error then names its line on the page
    before = Path.cwd()
    os.chdir(data)
    try:
        namespace: dict[str, Any] = {"__name__": "documented"}
        exec(compile(above + found["program"], str(PAGE), "exec"), namespace)
    finally:
        os.chdir(before)
    return list(namespace["labels"])
