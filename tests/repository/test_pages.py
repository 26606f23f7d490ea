"""What pages list is what there is: guarantees, figures of sizing and of the runbook."""

from __future__ import annotations

import math
import re

from repository.checkout import ROOT
from repository.named_tests import guarantees
from scripts.pictures import PICTURES, speed_chart
from small_cases import each

SIZING = (ROOT / "docs" / "how-to" / "sizing.md").read_text(encoding="utf-8")
RUNBOOK = (ROOT / "docs" / "how-to" / "runbook.md").read_text(encoding="utf-8")
PERFORMANCE = ROOT / "docs" / "explanation" / "performance.md"
_NAMES = re.compile(r"^\| `(\w+)` \| ([\d.]+) \|", re.MULTILINE)
_FIGURES = re.compile(r"^\|.*\| `([^`|]+)` \| ([\d.]+) \|$", re.MULTILINE)


def test_the_page_lists_all_guarantees() -> None:
    assert [int(title.split(".")[0]) for title in guarantees()] == list(range(1, 12))


def numbers(page: str) -> dict[str, float]:
    return {name: float(figure) if "." in figure else int(figure) for name, figure in _NAMES.findall(page)}


def test_the_tables_were_found() -> None:
    rows = [line for line in SIZING.splitlines() if line.startswith("|") and not line.startswith("|---")]
    headers = SIZING.count("\n|---")
    assert len(_FIGURES.findall(SIZING)) + len(numbers(SIZING)) == len(rows) - headers >= 15
    assert len(_FIGURES.findall(RUNBOOK)) + len(numbers(RUNBOOK)) >= 15


@each(
    ("page", "formula", "figure"), [(page, *groups) for page in (SIZING, RUNBOOK) for groups in _FIGURES.findall(page)]
)
def test_a_figure_is_what_its_formula_gives(page: str, formula: str, figure: str) -> None:
    digits = len(figure.partition(".")[2])
    value = eval(formula, {"__builtins__": {}, "ceil": math.ceil, "max": max}, numbers(page))
    assert f"{value:.{digits}f}" == figure


def test_the_runbook_starts_from_figures_of_the_performance_page() -> None:
    measured = PERFORMANCE.read_text(encoding="utf-8")
    reading = measured[measured.index("## Reading photographs") : measured.index("**Evaluation transform**")]
    small, *_ = re.findall(r"^\| \*\*Stoker\*\* \| (\d+) \|", measured[measured.index("## Building") :], re.M)
    row = re.search(
        r"^\| \*\*Stoker, max 500, JPEG 90 \+ restart\*\* \| (\d+) \| \d+ \| \d+ \| ([\d.]+) \|", reading, re.M
    )
    assert row is not None
    given = numbers(RUNBOOK)
    assert (given["convert"], given["decode"]) == (int(small), int(row[1]))
    assert given["record"] == float(row[2]) * 1e6 / 1200


def test_the_figures_of_the_example_are_those_of_the_performance_page() -> None:
    measured = PERFORMANCE.read_text(encoding="utf-8")
    reading = measured[measured.index("## Reading photographs") : measured.index("**Evaluation transform**")]
    per_cpu = dict(re.findall(r"^\| \*\*(Stoker[^*]*)\*\* \| (\d+) \|", reading, re.MULTILINE))
    stored = {
        "as they are": "Stoker",
        "`--recipe restart`": "Stoker, restart markers",
        "`--recipe restart --resize max:500 --encode jpeg:90:420`": "Stoker, max 500, JPEG 90 + restart",
        'the same, and `decode="fast"`': "Stoker, fast decode, max 500, JPEG 90 + restart",
    }
    for text, row in stored.items():
        assert f"| {text} | {per_cpu[row]} | `ceil(gpu / {per_cpu[row]} * 1.2)` |" in SIZING
    assert numbers(SIZING)["cpu"] == int(per_cpu["Stoker"])


def test_the_chart_shows_the_figures_of_the_performance_page() -> None:
    assert speed_chart() == (PICTURES / "speed.svg").read_text(encoding="utf-8")
