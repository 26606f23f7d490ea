"""The page on fuzzing lists every target, and no other."""

from __future__ import annotations

import re

from repository.checkout import NATIVE, ROOT

PAGE = ROOT / "docs" / "fuzzing.md"


def listed(heading: str) -> set[str]:
    """The targets in the first column of the table under a heading."""
    text = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `([\w.]+)` \|", text, flags=re.MULTILINE))


def test_every_target_of_the_core_is_on_the_page() -> None:
    assert listed("The core, in C++") == {path.name for path in (NATIVE / "fuzz").rglob("*.cpp")}


def test_every_target_of_python_is_on_the_page() -> None:
    paths = (ROOT / "scripts" / "fuzz_python").glob("*.py")
    targets = {path.name for path in paths if "\ndef one_input(" in path.read_text(encoding="utf-8")}
    assert listed("The parsers in Python") == targets
