"""The chart of a benchmark: a bar for each contender, and how far its rounds lie apart."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from stoker.inspect.page import COLORS, drawable, grid, sheet
from stoker.measure import GROUPS, Group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from stoker.measure import BenchReport, BenchRow

GROUP_NAMES: dict[Group, str] = {"limit": "The limit", "ladder": "The ladder", "stoker": "Stoker", "rival": "Rivals"}
_GROUP_COLORS: dict[Group, str] = {"limit": "slate", "ladder": "blue", "stoker": "ember", "rival": "teal"}
_WIDTH = 960
_ROW, _HEAD = 27.0, 32.0  # pixels
_LETTER = 6.9  # pixels, about
_NAME_MOST = 330.0
_VALUE = 58.0  # pixels for a number beside a bar
_BETWEEN = 40.0  # pixels from one panel to the next
_AXIS = 34.0  # pixels for the numbers below


@dataclass(frozen=True, slots=True)
class _Layout:
    """Where each row is: pixels from the top, and the names of the groups above them."""

    rows: tuple[float, ...]
    heads: tuple[tuple[float, str], ...]
    height: float


def counted(report: BenchReport) -> str:
    """Return what the figures count: files, or crops of them."""
    return "crops" if report.task.view == "objects" else "images"


@dataclass(frozen=True, slots=True)
class _Room:
    """Where the bars of one panel are: its rows, and how wide it is in pixels."""

    layout: _Layout
    width: float


def bench_chart(report: BenchReport, above: float = 0.0, below: float = 0.0, aside: float = 0.0) -> Figure:
    """Return the chart, drawn inside `stoker.inspect.page.style`.

    Args:
        report: What was measured.
        above: Pixels to leave free at the top.
        below: The same at the bottom.
        aside: The same on both sides.
    """
    layout = _layout(report.rows)
    height = above + layout.height + _AXIS + below
    figure = sheet(_WIDTH + 2 * aside, height)
    figure.set_layout_engine("none")
    names = min(_NAME_MOST, 16 + _LETTER * max((len(row.name) for row in report.rows), default=0))
    free = _WIDTH - names
    has_cpu = any(row.images_per_cpu_second for row in report.rows)
    panels = [(names, free * 0.6 if has_cpu else free, f"{counted(report)} per second")]
    if has_cpu:
        panels.append((names + free * 0.6 + _BETWEEN, free * 0.4 - _BETWEEN, f"{counted(report)} per CPU second"))
    for number, (left, width, title) in enumerate(panels):
        place = ((aside + left) / (_WIDTH + 2 * aside), (below + _AXIS) / height)
        axes = figure.add_axes((*place, width / (_WIDTH + 2 * aside), layout.height / height))
        axes.set_title(title, loc="left", fontsize=12, color=COLORS["dim"], pad=4)
        rates = [row.images_per_cpu_second if number else row.images_per_second for row in report.rows]
        _bars(axes, report.rows, rates, _Room(layout, width))
        if number == 0:
            _names(axes, report.rows, layout, names / width)
            _limit(axes, report.rows)
    return figure


def _layout(rows: Sequence[BenchRow]) -> _Layout:
    top, places, heads = 0.0, [], []
    for number, row in enumerate(rows):
        if number == 0 or row.group != rows[number - 1].group:
            heads.append((top + _HEAD * 0.62, GROUP_NAMES[row.group]))
            top += _HEAD
        places.append(top + _ROW / 2)
        top += _ROW
    return _Layout(tuple(places), tuple(heads), top + 6)


def _bars(axes: Axes, rows: Sequence[BenchRow], rates: Sequence[Sequence[float]], room: _Room) -> None:
    most = max((max(one) for one in rates if one), default=1.0)
    for row, one, place in zip(rows, rates, room.layout.rows, strict=True):
        if not one:
            axes.text(0.01 * most, place, "not known", va="center", fontsize=11, color=COLORS["dim"])
            continue
        middle, low, high = statistics.median(one), min(one), max(one)
        axes.barh(place, middle, 15, color=COLORS[_GROUP_COLORS[row.group]], alpha=0.85)
        if len(one) > 1:
            axes.plot([low, high], [place, place], color=COLORS["ink"], linewidth=1.3, solid_capstyle="butt")
            axes.plot(one, [place] * len(one), "o", color=COLORS["ink"], markersize=2.6, linestyle="none")
        _value(axes, high, place, f"{middle:,.0f}")
    axes.set_xlim(0, most * room.width / (room.width - _VALUE))
    axes.set_ylim(room.layout.height, 0)
    axes.yaxis.set_major_locator(NullLocator())
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.spines["bottom"].set_visible(False)
    grid(axes, "x")


def _value(axes: Axes, x: float, y: float, text: str) -> None:
    paper = {"facecolor": COLORS["paper"], "edgecolor": "none", "pad": 1.0}  # hides the lines behind it
    axes.annotate(text, (x, y), (7, 0), textcoords="offset points", va="center", fontsize=12, bbox=paper)


def _names(axes: Axes, rows: Sequence[BenchRow], layout: _Layout, width: float) -> None:
    """Write the names to the left of the bars, ``width`` times as wide as these."""
    where = axes.get_yaxis_transform()
    for place, text in layout.heads:
        axes.text(-width, place, text, transform=where, va="center", fontsize=12, weight="bold")
    letters = int(_NAME_MOST / _LETTER) - 2
    for row, place in zip(rows, layout.rows, strict=True):
        text = row.name if len(row.name) <= letters else row.name[: letters - 1] + "…"
        axes.text(-width, place, drawable(text), transform=where, va="center", fontsize=12)


def _limit(axes: Axes, rows: Sequence[BenchRow]) -> None:
    for row in rows:
        if row.group == GROUPS[0]:
            axes.axvline(row.median, color=COLORS["slate"], linewidth=1, linestyle=(0, (4, 4)), zorder=0.5)
