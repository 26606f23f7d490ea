"""Settings are declared once: signatures, docstrings and checks are what their declarations say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pytest

from scripts import settings as generated
from stoker.declare import Instance, Range, Settings
from stoker.errors import ConfigError


def test_signatures_and_docstrings_are_what_is_declared() -> None:
    assert not generated.differing(), "run `make settings`"


def test_a_declaration_that_has_changed_is_written() -> None:
    path = generated.PACKAGE / "jax.py"
    source = path.read_text(encoding="utf-8")
    changed = source.replace("    max_bad: int = 100,\n", "").replace("        decode: ``", "        gone: ``")
    assert changed.count("\n") == source.count("\n") - 1
    assert generated.written(changed) == source


@dataclass(frozen=True)
class Example(Settings):
    name: Annotated[str, "Not checked."]
    kind: Annotated[Literal["a", "b"] | None, "A word."] = None
    count: Annotated[int | None, Range(1, 9), "A number."] = None
    range: Annotated[Range | bool, Instance(), "An object."] = False
    other: Annotated[Range | None, Instance("a range of numbers"), "An object."] = None
    flag: Annotated[bool, "Yes or no."] = False


def test_values_are_checked_as_declared() -> None:
    settings = Example("x", kind="b", count=np.int64(3), other=Range(0, 1))
    assert (settings.kind, settings.count, type(settings.count)) == ("b", 3, int)
    assert (
        Example.among(
            {"name": "y", "kind": None, "count": 1, "range": True, "other": None, "flag": True, "more": 0}
        ).count
        == 1
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "c"}, "kind is 'c'; it must be 'a' or 'b'"),
        ({"count": 10}, "count is 10; it must be between 1 and 9"),
        ({"range": "x"}, "range is 'x'; it must be a stoker.Range, True or False"),
        ({"flag": "no"}, "flag is 'no'; it must be True or False"),
        ({"flag": 1}, "flag is 1; it must be True or False"),
        ({"other": Settings}, "other is the class Settings; it must be a range of numbers"),
    ],
)
def test_wrong_values_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Example("x", **settings)
    assert str(caught.value) == message
