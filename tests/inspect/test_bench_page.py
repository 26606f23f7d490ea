"""The page of a benchmark shows every figure, and why others are missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from page_checks import checked
from stoker.inspect.bench import BenchReport, BenchRow, BenchSpec, Machine
from stoker.inspect.page import bench_page

if TYPE_CHECKING:
    from stoker.inspect.bench import Group


def row(name: str, group: Group, rate: float) -> BenchRow:
    rates = (rate, rate * 1.25, rate * 0.75)
    return BenchRow(name, name, group, f"note of {name}", rates, rates, rate / 1500)


@pytest.fixture
def report() -> BenchReport:
    rows = (
        row("codec alone", "limit", 1500),
        row("one file at a time", "ladder", 400),
        row("Stoker, exact", "stoker", 1444),
        row("case <b>&$x^2$ 漢字", "stoker", 903),
    )
    return BenchReport(
        spec=BenchSpec("/data/photos <i>", "train", threads=16),
        machine=Machine("A processor", 16, 64 * 10**9, "Linux 6.8", "3.11.2", "avx2"),
        images=1_281_167,
        images_read=1000,
        encoded_bytes=110_000_000,
        decoded_bytes=520_000_000,
        formats={"png": 600, "jpeg": 400},
        own_formats={"jpeg": 400, "gif": 600},
        unreadable=("a.jpg: cut short",),
        rows=rows,
        left_out={"raw": "not installed"},
        failed={"stoker-raw": "ValueError: <x>"},
    )


def test_the_page_has_every_figure(report: BenchReport) -> None:
    page = " ".join(checked(bench_page(report)).text.split())
    for text in (
        "case <b>&$x^2$ 漢字",
        "not installed",
        "a.jpg: cut short",
        "1,000, 110.0 MB as files, 520.0 MB as pixels",
        "600 gif, 400 jpeg; all cases but stoker-own read them as 400 jpeg, 600 png",
        "ValueError: <x>",
    ):
        assert text in page
    for text in ("1,444", "1,083", "1,805", "96 %", "note of Stoker, exact", "A processor", "64.0 GB"):
        assert text in page
    assert page.index("Failed") < page.index("stoker-raw") < page.index("Left out") < page.index("not installed")
    assert "Images per second" in page


def test_what_is_not_known_is_omitted(report: BenchReport) -> None:
    rows = tuple(replace(row, of_limit=None) for row in report.rows if row.group != "limit")
    bare = replace(report, rows=rows, left_out={}, failed={}, unreadable=())
    page = " ".join(checked(bench_page(bare)).text.split())
    assert not any(heading in page for heading in ("Left out", "Failed", "Unreadable"))
    cold = replace(bare, spec=BenchSpec("d", "train", cold=True), still_cached=0.125)
    assert "at most 12.5% of them left in memory" in " ".join(checked(bench_page(cold)).text.split())


def test_bars_are_as_long_as_the_figures(report: BenchReport) -> None:
    bars = [
        (attributes["class"], float((attributes["style"] or "").removeprefix("width:").rstrip("%")))
        for tag, attributes in checked(bench_page(report)).tags
        if tag == "i"
    ]
    assert bars == [
        (name, pytest.approx(100 * rate / 1500, abs=0.1))
        for name, rate in (("limit", 1500), ("ladder", 400), ("stoker", 1444), ("stoker", 903))
    ]
