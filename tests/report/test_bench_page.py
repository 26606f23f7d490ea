"""The page and the picture of a benchmark show every figure, and why others are missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from page_checks import checked
from stoker.measure import BenchReport, BenchRow, Group, LeftOut, Machine, Prepared
from stoker.measure.task import Task
from stoker.report import bench_page, bench_picture

if TYPE_CHECKING:
    from pathlib import Path


def row(name: str, group: Group, rate: float, *, cpu: bool = True) -> BenchRow:
    rates = (rate, rate * 1.25, rate * 0.75)
    return BenchRow(name, group, f"note of {name}", rates, rates if cpu else (), rate / 1500, name)


@pytest.fixture
def report() -> BenchReport:
    rows = (
        row("codec alone", "limit", 1500),
        row("one file at a time", "ladder", 400),
        row("Stoker, exact", "stoker", 1444),
        row("rival <b>&$x^2$ 漢字", "rival", 903, cpu=False),
    )
    return BenchReport(
        task=Task("/data/photos <i>", "train", "train", 64, 16),
        images=1_281_167,
        seconds=1.0,
        rounds=3,
        machine=Machine("A processor", 16, 64 * 10**9, "Linux 6.8", "3.11.2"),
        rows=rows,
        left_out=(
            LeftOut("dali", "NVIDIA DALI", "rival", "needs a GPU"),
            LeftOut("grain", "Grain", "rival", "ValueError: <x>", failed=True),
        ),
        prepared=Prepared(1000, 1000, 110_000_000, 520_000_000, 0, 0.0, ("a.jpg: cut short",), {"png": 3}),
    )


def test_the_page_has_every_figure(report: BenchReport) -> None:
    page = checked(bench_page(report))
    said = " ".join(page.text.split())
    for text in ("The limit", "The ladder", "Stoker", "Rivals", "NVIDIA DALI", "needs a GPU", "ValueError: <x>"):
        assert text in said
    for text in ("1,444", "1,083", "1,805", "96 %", "note of Stoker, exact", "A processor", "64.0 GB", "3 png"):
        assert text in said
    assert said.index("Failed") < said.index("Grain") < said.index("Left out") < said.index("NVIDIA DALI")
    assert "images per second" in said
    assert "not known" in said  # CPU seconds of the rival


def test_what_is_not_known_has_no_place(report: BenchReport) -> None:
    rows = tuple(replace(one, of_limit=None, images_per_cpu_second=()) for one in report.rows if one.group != "limit")
    bare = replace(report, rows=rows, left_out=(), prepared=replace(report.prepared, unreadable=(), converted={}))
    said = " ".join(checked(bench_page(bare)).text.split())
    assert "Left out" not in said
    assert "images per CPU second" not in said
    objects = replace(bare, task=Task("d", "train", "train", 1, 1, cold=True), still_cached=0.125)
    assert "at most 12.5% of them left in memory" in " ".join(checked(bench_page(objects)).text.split())


def test_the_picture_shows_bars_as_long_as_the_figures(report: BenchReport, tmp_path: Path) -> None:
    bench_picture(report, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        image.load()
        assert image.format == "PNG"
        rgb = image.convert("RGB")
    pixels = np.asarray(rgb).astype(int)[:, : rgb.width * 6 // 10]  # the left panel

    def longest(near: tuple[int, int, int]) -> int:
        """Pixels of a colour in the row that has most of them."""
        return int((np.abs(pixels - near).max(-1) < 30).sum(1).max())

    limit, ladder, stoker = (longest(color) for color in ((156, 164, 178), (92, 136, 187), (217, 112, 64)))
    assert limit > 300
    assert ladder / limit == pytest.approx(400 / 1500, abs=0.04)
    assert stoker / limit == pytest.approx(1444 / 1500, abs=0.06)
