"""The page of a benchmark shows every figure, and why others are missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from page_checks import checked
from stoker.inspect.bench import BenchReport, BenchRow, LeftOut, Machine, Prepared, Task
from stoker.inspect.page import bench_page

if TYPE_CHECKING:
    from stoker.inspect.bench import Group


def row(name: str, group: Group, rate: float) -> BenchRow:
    rates = (rate, rate * 1.25, rate * 0.75)
    return BenchRow(name, group, f"note of {name}", rates, rates, rate / 1500, name)


@pytest.fixture
def report() -> BenchReport:
    rows = (
        row("codec alone", "limit", 1500),
        row("one file at a time", "ladder", 400),
        row("Stoker, exact", "stoker", 1444),
        row("case <b>&$x^2$ 漢字", "stoker", 903),
    )
    return BenchReport(
        task=Task("/data/photos <i>", "train", "train", 64, 16),
        images=1_281_167,
        seconds=1.0,
        rounds=3,
        machine=Machine("A processor", 16, 64 * 10**9, "Linux 6.8", "3.11.2"),
        rows=rows,
        left_out=(
            LeftOut("raw", "raw tensors", "ladder", "not installed"),
            LeftOut("stoker-raw", "Stoker, raw", "stoker", "ValueError: <x>", failed=True),
        ),
        prepared=Prepared(1000, 1000, 110_000_000, 520_000_000, 0, 0.0, ("a.jpg: cut short",), {"png": 3}),
    )


def test_the_page_has_every_figure(report: BenchReport) -> None:
    page = checked(bench_page(report))
    said = " ".join(page.text.split())
    for text in (
        "The limit",
        "The ladder",
        "Stoker",
        "case <b>&$x^2$ 漢字",
        "raw tensors",
        "not installed",
        "ValueError: <x>",
    ):
        assert text in said
    for text in ("1,444", "1,083", "1,805", "96 %", "note of Stoker, exact", "A processor", "64.0 GB", "3 png"):
        assert text in said
    assert said.index("Failed") < said.index("Stoker, raw") < said.index("Left out") < said.index("raw tensors")
    assert "Images per second" in said


def test_what_is_not_known_has_no_place(report: BenchReport) -> None:
    rows = tuple(replace(one, of_limit=None) for one in report.rows if one.group != "limit")
    bare = replace(report, rows=rows, left_out=(), prepared=replace(report.prepared, unreadable=(), converted={}))
    said = " ".join(checked(bench_page(bare)).text.split())
    assert "Left out" not in said
    objects = replace(bare, task=Task("d", "train", "train", 1, 1, cold=True), still_cached=0.125)
    assert "at most 12.5% of them left in memory" in " ".join(checked(bench_page(objects)).text.split())


def test_bars_are_as_long_as_the_figures(report: BenchReport) -> None:
    bars = [
        (attributes["class"], float((attributes["style"] or "").removeprefix("width:").rstrip("%")))
        for tag, attributes in checked(bench_page(report)).tags
        if tag == "i"
    ]
    most = 1500 * 1.25  # the fastest round of all
    assert bars == [
        (name, pytest.approx(100 * rate / most, abs=0.1))
        for name, rate in (("limit", 1500), ("ladder", 400), ("stoker", 1444), ("stoker", 903))
    ]
