"""Tests that the pages of the documentation name."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from repository.checkout import NATIVE, ROOT, parse

if TYPE_CHECKING:
    from pathlib import Path

GUARANTEES = ROOT / "docs" / "contributing" / "guarantees.md"
_PYTHON = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_NATIVE = re.compile(r"`src/native/tests/([\w/]+\.cpp)`: \"([^\"]+)\"")


def names_a_test(text: str) -> bool:
    """Whether a piece of a page names any test."""
    return bool(_PYTHON.search(text) or _NATIVE.search(text))


def unknown_tests(page: Path) -> list[str]:
    """The tests that a page names and that do not exist."""
    text = page.read_text(encoding="utf-8")
    missing = [f"{file}::{test}" for file, test in _PYTHON.findall(text) if test not in _tests_in(ROOT / file)]
    for file, test in _NATIVE.findall(text):
        if f'TEST_CASE("{test}"' not in (NATIVE / "tests" / file).read_text(encoding="utf-8"):
            missing.append(f"{file}: {test}")
    return missing


def _tests_in(file: Path) -> set[str]:
    if not file.is_file():
        return set()
    return {node.name for node in ast.walk(parse(file)) if isinstance(node, ast.FunctionDef)}


def guarantees() -> dict[str, str]:
    """The tests of each guarantee of the page, by its number and text."""
    text, _, tests = GUARANTEES.read_text(encoding="utf-8").partition("\n## Tests\n")
    titles = re.findall(r"^\d+\. .+$", text, re.MULTILINE)
    return dict(zip(titles, re.findall(r"^\| \d+ \| (.+) \|$", tests, re.MULTILINE), strict=True))
