"""The list of deliberate breaks fits the code and the page of guarantees; `make breaks` makes them."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from house.repository import ROOT
from house.test_guarantees import guarantees
from scripts.breaks import NATIVE_TEST, Break, read_breaks

BREAKS = read_breaks(ROOT)
LINE = re.compile(r"^- \*(?P<what>[^*]+)\*: (?P<tests>.+)$", re.MULTILINE)


def shown(test: str) -> str:
    """A test as the page names it."""
    native = NATIVE_TEST.fullmatch(test)
    return f'`{native[1]}`: "{native[2]}"' if native else f"`{test}`"


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.what.replace(" ", "-"))
def test_a_break_is_one_place_of_the_code(broken: Break) -> None:
    text = (ROOT / broken.file).read_text(encoding="utf-8")
    assert broken.apply(text) != text
    assert broken.tests


def test_every_guarantee_is_broken_in_several_ways() -> None:
    counts = Counter(broken.guarantee for broken in BREAKS)
    assert {number: count for number, count in counts.items() if count < 2} == {}
    assert sorted(counts) == list(range(1, len(guarantees()) + 1))


def test_the_page_lists_every_break_with_its_tests() -> None:
    for title, text in guarantees().items():
        number = int(title.split(".")[0])
        mine = {broken.what: ", ".join(map(shown, broken.tests)) for broken in BREAKS if broken.guarantee == number}
        assert {found["what"]: found["tests"] for found in LINE.finditer(text)} == mine, title


def test_what_fails_is_what_the_page_names_as_proof() -> None:
    for title, text in guarantees().items():
        proofs = LINE.sub("", text)
        for broken in BREAKS:
            if title.startswith(f"{broken.guarantee}."):
                assert [test for test in broken.tests if shown(test) not in proofs] == [], broken.what
