"""Every guarantee names the tests that prove it, and they are there."""

from __future__ import annotations

import ast
import re

from house.repository import NATIVE, ROOT, parse

PAGE = ROOT / "docs" / "guarantees.md"
PYTHON_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
NATIVE_TEST = re.compile(r"`src/native/tests/(\w+\.cpp)`: \"([^\"]+)\"")


def guarantees() -> dict[str, str]:
    """The text under each heading of the second level."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_lists_all_guarantees() -> None:
    assert [int(title.split(".")[0]) for title in guarantees()] == list(range(1, 12))


def test_a_guarantee_is_proved_or_says_what_is_missing() -> None:
    for title, text in guarantees().items():
        proved = PYTHON_TEST.search(text) or NATIVE_TEST.search(text)
        assert proved or "**Not yet" in text, f"{title}: neither a test nor what is missing"


def test_the_tests_that_are_named_exist() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for file, test in PYTHON_TEST.findall(text):
        found = {node.name for node in ast.walk(parse(ROOT / file)) if isinstance(node, ast.FunctionDef)}
        assert test in found, f"{file} has no {test}"
    for file, test in NATIVE_TEST.findall(text):
        assert f'TEST_CASE("{test}"' in (NATIVE / "tests" / file).read_text(encoding="utf-8"), f"{file}: {test}"
