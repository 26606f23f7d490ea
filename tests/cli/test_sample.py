"""``stoker sample``: options, JSON, refusal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from stoker.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_sample_makes_a_tree_that_plan_understands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", str(tmp_path / "photos"), "--classes", "2", "--images", "2", "--validation", "1", "--json"]
    assert main(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["is_new"], document["images"], document["damaged"]) == (True, 6, {})
    assert main(["plan", str(tmp_path / "photos"), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert {name: split["items"] for name, split in plan["splits"].items()} == {"train": 4, "validation": 2}
    assert plan["warnings"] == []
    assert main(words[:-1]) == 0
    assert "there already: 6 images" in capsys.readouterr().out


def test_sample_refuses_numbers_that_make_no_sense(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sample", str(tmp_path / "photos"), "--classes", "0"]) == 2
    assert "--classes is 0" in capsys.readouterr().err
    assert not (tmp_path / "photos").exists()
