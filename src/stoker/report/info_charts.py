"""Charts of a dataset: its classes, the sizes of its images, its shards."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from stoker.config import format_size
from stoker.report.drawing import COLORS, SPLIT_COLORS, grid, sheet, style, svg
from stoker.report.page import count

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from markupsafe import Markup
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from stoker.inspect import ClassCount
    from stoker.inspection.portrait import SplitPortrait
    from stoker.inspection.sampling import Measured

_WIDTH = 960
_MANY_BINS = 40
_UNEQUAL = 50  # above this quotient of most and fewest a logarithm shows both ends
_MOST_STEPS = 1000
_FEWEST_BARS, _MOST_BARS = 24, 120  # bars are no wider than if there were the first, and no more than the second
_ASPECTS = (1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1, 4 / 3, 3 / 2, 2, 3, 4)
_ASPECT_NAMES = ("1:4", "1:3", "1:2", "2:3", "3:4", "1:1", "4:3", "3:2", "2:1", "3:1", "4:1")


def class_curve(classes: Sequence[ClassCount], splits: Sequence[str]) -> Markup:
    """Return the classes from the most frequent to the rarest, one curve for each split."""
    with style():
        figure = sheet(_WIDTH, 250)
        axes = figure.add_subplot()
        most, least = 0, math.inf
        for number, split in enumerate(splits):
            counts = np.sort([known.counts[split] for known in classes])[::-1]
            if not counts.any():
                continue
            color = COLORS[SPLIT_COLORS[number % len(SPLIT_COLORS)]]
            heights, edges = _steps(counts)
            axes.stairs(heights, edges, fill=True, color=color, alpha=0.16)
            axes.stairs(heights, edges, color=color, linewidth=1.8, baseline=None)
            most, least = max(most, counts[0]), min(least, counts[counts > 0].min())
        if most > _UNEQUAL * least:
            axes.set_yscale("log")
            axes.yaxis.set_minor_locator(NullLocator())
        else:
            axes.set_ylim(0, max(1.0, most * 1.08))
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_xlim(0, len(classes))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,.0f}"))
        axes.set_xlabel("classes, from the most frequent to the rarest")
        axes.set_ylabel("samples")
        grid(axes, "y")
        return svg(figure, "classes", "samples of each class, sorted")


def _steps(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return heights and edges of a sorted curve, without the places where nothing changes, and not too many."""
    starts = np.flatnonzero(np.diff(counts, prepend=counts[0] + 1))
    if len(starts) > _MOST_STEPS:
        starts = np.unique(np.linspace(0, len(counts) - 1, _MOST_STEPS).astype(np.int64))
    return counts[starts], np.append(starts, len(counts))


def size_charts(measured: Measured) -> Markup:
    """Return four histograms: width, height, aspect ratio and bytes of the images."""
    width, height, size = (measured.column(name) for name in ("width", "height", "size_bytes"))
    with style():
        figure = sheet(_WIDTH, 400)
        panels = figure.subplots(2, 2)
        _histogram(panels[0, 0], width, "width, pixels")
        _histogram(panels[0, 1], height, "height, pixels")
        _aspects(panels[1, 0], width / height)
        _histogram(panels[1, 1], size, "bytes per image", named=format_size)
        figure.set_layout_engine("constrained", wspace=0.06, hspace=0.08)
        return svg(figure, "sizes", "distributions of width, height, aspect ratio and bytes of the images")


def shard_chart(splits: Mapping[str, SplitPortrait]) -> Markup:
    """Return the bytes of each shard in their order; of very many shards, the means of neighbours."""
    shown = {name: split.shard_bytes for name, split in splits.items() if split.shard_bytes}
    with style():
        figure = sheet(_WIDTH, 190)
        axes = figure.add_subplot()
        left, most = 0.0, 1.0
        for number, sizes in enumerate(shown.values()):
            color = COLORS[SPLIT_COLORS[number % len(SPLIT_COLORS)]]
            if len(sizes) <= _MOST_BARS:
                axes.bar(left + np.arange(len(sizes)) + 0.5, sizes, 0.82, color=color)
            else:
                groups = np.array_split(np.array(sizes, np.float64), _MOST_BARS)
                edges = left + np.cumsum([0, *map(len, groups)])
                axes.stairs([float(group.mean()) for group in groups], edges, fill=True, color=color)
            left += len(sizes) + max(1.0, 0.02 * sum(map(len, shown.values())))
            most = max(most, *sizes)
        axes.set_xlim(-0.5, max(left, _FEWEST_BARS))
        axes.set_ylim(0, most * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: format_size(y)))
        axes.xaxis.set_major_locator(NullLocator())
        grid(axes, "y")
        return svg(figure, "shards", "bytes of each shard")


def _histogram(axes: Axes, values: NDArray[np.float64], title: str, named: Callable[[float], str] = count) -> None:
    low, high = float(values.min()), float(np.percentile(values, 99.5))
    most = float(values.max())
    # A few giants would press all others into one bar: the last bar holds what is above.
    end = most if most <= 1.6 * high else high
    bins = np.linspace(low, end, _MANY_BINS + 1) if end > low else np.array([low - 0.5, low + 0.5])
    counts, edges = np.histogram(np.minimum(values, edges_end := bins[-1]), bins)
    axes.stairs(counts, edges, fill=True, color=COLORS["blue"], alpha=0.75)
    median = float(np.median(values))
    cut = f"; the last bar holds all up to {named(most)}" if most > edges_end else ""
    _finish(axes, title, f"all {named(low)}" if low == most else f"median {named(median)}{cut}", median)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: named(x)))
    if end == low:
        axes.set_xlim(low - 5, low + 5)
        axes.xaxis.set_major_locator(FixedLocator([low]))


def _aspects(axes: Axes, ratios: NDArray[np.float64]) -> None:
    logs = np.log(np.clip(ratios, 1 / 4.2, 4.2))
    low, high = min(float(logs.min()), math.log(2 / 3.3)), max(float(logs.max()), math.log(3.3 / 2))
    counts, edges = np.histogram(logs, np.linspace(low, high, _MANY_BINS + 1))
    axes.stairs(counts, edges, fill=True, color=COLORS["blue"], alpha=0.75)
    named = [(math.log(value), name) for value, name in zip(_ASPECTS, _ASPECT_NAMES, strict=True)]
    shown: list[tuple[float, str]] = []
    for place, text in sorted(named, key=lambda one: (one[1] != "1:1", one[1] not in ("3:4", "4:3", "1:2", "2:1"))):
        if low <= place <= high and all(abs(place - other) > (high - low) / 9 for other, _ in shown):
            shown.append((place, text))
    axes.xaxis.set_major_locator(FixedLocator([place for place, _ in shown]))
    axes.set_xticklabels([text for _, text in shown])
    median = float(np.median(ratios))
    shares = ((ratios > 1.005).mean(), (ratios < 0.995).mean(), (abs(ratios - 1) <= 0.005).mean())
    kinds = zip(shares, ("landscape", "portrait", "square"), strict=True)
    note = ", ".join(f"{share:.0%} {kind}" for share, kind in kinds if share > 0)
    _finish(axes, "width : height", note, math.log(min(4.2, max(1 / 4.2, median))))


def _finish(axes: Axes, title: str, note: str, median: float) -> None:
    axes.axvline(median, color=COLORS["ember"], linewidth=1.4)
    axes.set_title(title, loc="left", fontsize=12, color=COLORS["ink"], pad=22)
    axes.text(0, 1.035, note, transform=axes.transAxes, fontsize=11, color=COLORS["dim"])
    axes.yaxis.set_major_locator(NullLocator())
    axes.set_ylim(bottom=0)
