"""The targets of Python keep their properties on their own seeds, so that fuzzing starts from something sound."""

from __future__ import annotations

import importlib

import pytest

from repository.checkout import ROOT
from stoker.errors import StokerError

FOLDER = ROOT / "scripts" / "fuzz_python"
TARGETS = sorted(path.stem for path in FOLDER.glob("*.py") if "\ndef one_input(" in path.read_text(encoding="utf-8"))


NEEDS = {"spark_failure": pytest.mark.needs("pyspark")}


@pytest.mark.parametrize("name", [pytest.param(name, marks=NEEDS.get(name, ())) for name in TARGETS])
@pytest.mark.slow
def test_a_target_keeps_its_property_on_its_seeds(name: str) -> None:
    target = importlib.import_module(f"scripts.fuzz_python.{name}")
    sound = 0
    for data in [*target.seeds(), b"", b"\xff" * 40]:
        try:
            target.one_input(data)
            sound += 1
        except StokerError:
            continue
    assert sound > 0
