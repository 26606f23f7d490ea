"""Every guarantee names the tests that prove it, every hostile case the test that tries it, and they are there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from repository.checkout import ROOT, pages
from repository.named_tests import names_a_test, unknown_tests

if TYPE_CHECKING:
    from pathlib import Path

GUARANTEES = ROOT / "docs" / "guarantees.md"
HOSTILE = ROOT / "docs" / "hostile-data.md"
NAMING = [page for page in pages() if names_a_test(page.read_text(encoding="utf-8"))]


def guarantees() -> dict[str, str]:
    """The text under each heading of the second level."""
    parts = re.split(r"^## (.+)$", GUARANTEES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_page_lists_all_guarantees() -> None:
    assert [int(title.split(".")[0]) for title in guarantees()] == list(range(1, 12))


def test_a_guarantee_is_proved_or_says_what_is_missing() -> None:
    for title, text in guarantees().items():
        assert names_a_test(text) or "**Not yet" in text, f"{title}: neither a test nor what is missing"


def test_a_hostile_case_names_its_test() -> None:
    rows = [line for line in HOSTILE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cases = [row for row in rows if not row.startswith(("| case", "|---"))]
    assert len(cases) > 40
    assert [row for row in cases if not names_a_test(row)] == []


@pytest.mark.parametrize("page", NAMING, ids=lambda page: page.name)
def test_the_tests_that_are_named_exist(page: Path) -> None:
    assert unknown_tests(page) == []
