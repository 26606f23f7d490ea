"""Cases within one test are all run, and a failure names its own."""

from __future__ import annotations

import inspect

import pytest

from small_cases import each


def test_all_are_run_up_to_one_that_fails_and_is_named() -> None:
    seen: list[tuple[int, str, str]] = []

    @each(("number", "word"), [(1, "a"), (2, "b"), (3, "c")])
    @each("letter", "xy")
    def check(fixture: int, number: int, word: str, letter: str) -> None:
        assert fixture == 7
        seen.append((number, word, letter))
        with pytest.raises(ZeroDivisionError):
            _ = 1 / ((number, letter) == (2, "y"))

    assert list(inspect.signature(check).parameters) == ["fixture"]
    with pytest.raises(pytest.fail.Exception) as caught:
        check(fixture=7)
    assert seen == [(1, "a", "x"), (1, "a", "y"), (2, "b", "x"), (2, "b", "y")]
    assert caught.value.__notes__ == ["check: letter=y", "check: number=2, word=b"]


def test_a_test_without_cases_fails() -> None:
    @each("number", [])
    def check(number: int) -> None:
        raise NotImplementedError(number)

    with pytest.raises(AssertionError, match="check has no cases"):
        check()
