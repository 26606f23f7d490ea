"""The list of mutations fits the code and the page of guarantees; `make mutations` makes them."""

from __future__ import annotations

from collections import Counter

from repository.checkout import ROOT
from repository.named_tests import guarantees, unknown_tests
from scripts.mutations import Mutation, read_mutations
from small_cases import each

MUTATIONS = read_mutations(ROOT)


@each("mutation", MUTATIONS)
def test_a_mutation_applies_to_one_line_of_code(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text(encoding="utf-8")
    assert mutation.apply(text) != text
    assert mutation.tests


def test_every_guarantee_has_several_mutations() -> None:
    counts = Counter(mutation.guarantee for mutation in MUTATIONS)
    assert {number: count for number, count in counts.items() if count < 2} == {}
    assert sorted(counts) == list(range(1, len(guarantees()) + 1))


def test_the_tests_that_fail_exist() -> None:
    assert unknown_tests(test for mutation in MUTATIONS for test in mutation.tests) == []
