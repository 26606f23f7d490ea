"""Every figure of docs/sizing.md is what the formula beside it gives with the numbers of the page."""

from __future__ import annotations

import math
import re

import pytest

from repository.checkout import ROOT

PAGE = (ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")
NAMES = re.compile(r"^\| `(\w+)` \| ([\d.]+) \|", re.MULTILINE)
FIGURES = re.compile(r"^\|.*\| `([^`|]+)` \| ([\d.]+) \|$", re.MULTILINE)


def numbers() -> dict[str, float]:
    return {name: float(figure) if "." in figure else int(figure) for name, figure in NAMES.findall(PAGE)}


def test_the_tables_were_found() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("|---")]
    headers = PAGE.count("\n|---")
    assert len(FIGURES.findall(PAGE)) + len(numbers()) == len(rows) - headers >= 30


@pytest.mark.parametrize(("formula", "figure"), FIGURES.findall(PAGE))
def test_a_figure_is_what_its_formula_gives(formula: str, figure: str) -> None:
    digits = len(figure.partition(".")[2])
    value = eval(formula, {"__builtins__": {}, "ceil": math.ceil}, numbers())
    assert f"{value:.{digits}f}" == figure


def test_the_figures_of_the_example_are_those_of_the_performance_page() -> None:
    measured = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    reading = measured[measured.index("## Reading photographs") : measured.index("**Evaluation transform**")]
    per_cpu = dict(re.findall(r"^\| \*\*(Stoker[^*]*)\*\* \| [^|]*\| (\d+) \|", reading, re.MULTILINE))
    stored = {
        "as they are": "Stoker",
        "`--recipe restart`": "Stoker, restart markers",
        "`--recipe restart --resize max:500 --encode jpeg:90:420`": "Stoker, max 500, JPEG 90 + restart",
        'the same, and `decode="fast"`': "Stoker, fast decode, max 500, JPEG 90 + restart",
    }
    for text, row in stored.items():
        assert f"| {text} | {per_cpu[row]} | `ceil(gpu / {per_cpu[row]} * 1.2)` |" in PAGE
    assert numbers()["cpu"] == int(per_cpu["Stoker"])
