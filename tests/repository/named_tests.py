"""The guarantees of their page, and the tests that the list of mutations names."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from repository.checkout import ROOT, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

GUARANTEES = ROOT / "docs" / "contributing" / "guarantees.md"


def unknown_tests(tests: Iterable[str]) -> list[str]:
    """Which of these tests do not exist: ``FILE::NAME``, or ``FILE: NAME`` of the core."""
    return [test for test in tests if not _exists(test)]


def _exists(test: str) -> bool:
    if "::" in test:
        file, _, name = test.partition("::")
        return (ROOT / file).is_file() and any(
            isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(parse(ROOT / file))
        )
    file, _, name = test.partition(": ")
    return f'TEST_CASE("{name}"' in (ROOT / file).read_text(encoding="utf-8")


def guarantees() -> list[str]:
    """The guarantees of the page, each with its number."""
    return re.findall(r"^\d+\. .+$", GUARANTEES.read_text(encoding="utf-8"), re.MULTILINE)
