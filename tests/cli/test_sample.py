"""``stoker sample``: options, JSON, refusal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli


@pytest.mark.slow
def test_sample_makes_a_tree_that_plan_understands(tmp_path: Path, cli: Cli) -> None:
    words = ["sample", str(tmp_path / "photos"), "--classes", "2", "--images", "2", "--validation", "1", "--json"]
    document = json.loads(cli(*words))
    assert (document["is_new"], document["images"], document["damaged"]) == (True, 6, {})
    plan = json.loads(cli("plan", tmp_path / "photos", "--json"))
    assert {name: split["items"] for name, split in plan["splits"].items()} == {"train": 4, "validation": 2}
    assert plan["warnings"] == []
    assert "there already: 6 images" in cli(*words[:-1])


def test_sample_refuses_numbers_that_make_no_sense(tmp_path: Path, cli: Cli) -> None:
    assert "--classes is 0" in cli("sample", tmp_path / "photos", "--classes", "0", code=2)
    assert not (tmp_path / "photos").exists()
