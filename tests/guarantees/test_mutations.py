"""The list of mutations fits the code and the page of guarantees; `make mutations` makes them."""

from __future__ import annotations

from collections import Counter

import pytest

from repository.checkout import ROOT
from repository.named_tests import guarantees
from scripts.mutations import NATIVE_TEST, Mutation, read_mutations

MUTATIONS = read_mutations(ROOT)


def shown(test: str) -> str:
    """A test as the page names it."""
    native = NATIVE_TEST.fullmatch(test)
    return f'`{native[1]}`: "{native[2]}"' if native else f"`{test}`"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.what.replace(" ", "-"))
def test_a_mutation_is_one_place_of_the_code(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutation.apply(text) != text
    assert mutation.tests


def test_every_guarantee_has_several_mutations() -> None:
    counts = Counter(mutation.guarantee for mutation in MUTATIONS)
    assert {number: count for number, count in counts.items() if count < 2} == {}
    assert sorted(counts) == list(range(1, len(guarantees()) + 1))


def test_what_fails_is_what_the_page_names_as_proof() -> None:
    for title, text in guarantees().items():
        for mutation in MUTATIONS:
            if title.startswith(f"{mutation.guarantee}."):
                assert [test for test in mutation.tests if shown(test) not in text] == [], mutation.what
