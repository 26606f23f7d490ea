"""Pages that stand alone, and charts: HTML by jinja2, drawings by matplotlib. Needs the extra ``report``.

Raises:
    ConfigError: On import: matplotlib or jinja2 is not installed.
"""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import format_seconds, format_size
from stoker.errors import ConfigError
from stoker.loader import displayable

try:
    import matplotlib as mpl
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
except ModuleNotFoundError as error:
    message = f"no module {error.name!r}, which is needed to draw pages and pictures; run pip install 'stoker[report]'"
    raise ConfigError(message) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from stoker.inspect.auditing import AuditReport
    from stoker.inspect.bench import BenchReport
    from stoker.inspect.info import ClassCount
    from stoker.inspect.page_contents import Album, Measured, Portrait, SplitPortrait

# Name of the page's colour -> its value in light mode, in which charts are drawn; pages/layout.html has dark mode too.
COLORS = {
    "paper": "#fdfdfc",
    "ink": "#1d2430",
    "dim": "#687182",
    "line": "#e3e5ea",
    "blue": "#3f72af",
    "teal": "#2f9183",
    "sand": "#b98a2f",
    "ember": "#d2571e",
    "slate": "#8b95a5",
}

_PIXELS_PER_INCH = 72  # an SVG unit is then a pixel of the page
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 12,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "stoker",  # the same chart, the same bytes
    "axes.facecolor": "none",
    "axes.edgecolor": COLORS["line"],
    "axes.labelcolor": COLORS["dim"],
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "grid.color": COLORS["line"],
    "grid.linewidth": 1,
    "xtick.color": COLORS["dim"],
    "ytick.color": COLORS["dim"],
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "text.color": COLORS["ink"],
}
_WIDTH = 960
_MANY_BINS = 40
_UNEQUAL = 50  # above this quotient of most and fewest a logarithm shows both ends
_MOST_STEPS = 1000
_FEWEST_BARS, _MOST_BARS = 24, 120  # bars are no wider than if there were the first, and no more than the second
_ASPECTS = (1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1, 4 / 3, 3 / 2, 2, 3, 4)
_ASPECT_NAMES = ("1:4", "1:3", "1:2", "2:3", "3:4", "1:1", "4:3", "3:2", "2:1", "3:1", "4:1")
_ALL_NAMED = 40  # classes; of more, the ends are named and a curve shows the rest
_ENDS = 10
_KINDS = {"dataset": "Stoker dataset", "records": "TFRecords", "files": "image files"}


# Any page or chart.


def _render(template: str, **values: Any) -> str:
    """Return a page made of a file in ``pages``; text is escaped, except where it is ``Markup``."""
    return _ENVIRONMENT.get_template(template).render(**values)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _shown(value: Any) -> Any:
    return displayable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(numbers.items()))


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_shown,
)
_ENVIRONMENT.filters |= {"count": _count, "counts": _counts, "size": format_size, "seconds": format_seconds}


def _figure(height: float) -> Figure:
    return Figure((_WIDTH / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH), dpi=_PIXELS_PER_INCH, layout="constrained")


def _svg(figure: Figure, name: str, title: str) -> Markup:
    """Return a chart, which was drawn in ``_STYLE``, as an element of a page; ``title`` is for screen readers.

    ``name``, letters that no other chart of the page has, precedes the names of its parts.
    """
    data = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(data, format="svg", transparent=True, metadata=metadata)
    text = data.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for part in ('id="', "url(#", 'href="#'):
        text = text.replace(part, part + name + "-")
    for color, value in COLORS.items():
        text = re.sub(rf"{value}\b", f"var(--{color})", text)
    width, height = (size * _PIXELS_PER_INCH for size in figure.get_size_inches())
    head = f'<svg class="chart" role="img" viewBox="0 0 {width:g} {height:g}" style="max-width:{width:g}px"'
    text = re.sub(r"<svg[^>]*>", f"{head}><title>{Markup.escape(title)}</title>", text, count=1)
    return Markup(text)  # noqa: S704 - our own drawing, without text of others


# The page about a dataset.


def info_page(portrait: Portrait) -> str:
    """Return a self-contained page about a dataset: one file, readable without network or JavaScript."""
    splits = list(portrait.splits)
    classes = sorted(portrait.classes, key=lambda known: (-known.total, known.label))
    measured = portrait.measured
    many_shards = any(len(split.shard_bytes) > 1 for split in portrait.splits.values())
    return _render(
        "info.html",
        portrait=portrait,
        name=_last_part(portrait.path),
        kind=_KINDS[portrait.kind],
        extent=[int(np.median(measured.column(name))) for name in ("width", "height")] if measured.readable else None,
        split_colors={name: _split_color(number) for number, name in enumerate(splits)},
        class_groups=_class_groups(classes),
        most=max((known.total for known in classes), default=0),
        empty_classes=sum(known.total == 0 for known in classes),
        class_chart=class_curve(classes, splits) if len(classes) > _ALL_NAMED else None,
        size_chart=size_charts(measured) if measured.readable else None,
        shard_chart=shard_chart(portrait.splits) if many_shards else None,
    )


def _split_color(number: int) -> str:
    return ("blue", "teal", "sand", "slate")[number % 4]


def _class_groups(classes: Sequence[ClassCount]) -> list[tuple[str, Sequence[ClassCount]]]:
    """Return the classes that are named, in columns side by side, with the titles of these."""
    if len(classes) > _ALL_NAMED:
        return [("The most frequent", classes[:_ENDS]), ("The rarest", classes[-_ENDS:])]
    half = len(classes) if len(classes) <= _ENDS else -(-len(classes) // 2)
    return [("", known) for known in (classes[:half], classes[half:]) if known]


def class_curve(classes: Sequence[ClassCount], splits: Sequence[str]) -> Markup:
    """Return the classes from the most frequent to the rarest, one curve for each split."""
    with mpl.rc_context(_STYLE):
        figure = _figure(250)
        axes = figure.add_subplot()
        most, least = 0, math.inf
        for number, split in enumerate(splits):
            counts = np.sort([known.counts[split] for known in classes])[::-1]
            if not counts.any():
                continue
            color = COLORS[_split_color(number)]
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
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _count(x)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: _count(y)))
        axes.set_xlabel("classes, from the most frequent to the rarest")
        axes.set_ylabel("samples")
        axes.grid(visible=True, axis="y", which="major")
        return _svg(figure, "classes", "samples of each class, sorted")


def _steps(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return heights and edges of a sorted curve: its steps, and not too many."""
    starts = np.flatnonzero(np.diff(counts, prepend=counts[0] + 1))
    if len(starts) > _MOST_STEPS:
        starts = np.unique(np.linspace(0, len(counts) - 1, _MOST_STEPS).astype(np.int64))
    return counts[starts], np.append(starts, len(counts))


def size_charts(measured: Measured) -> Markup:
    """Return four histograms: width, height, aspect ratio and bytes of the images."""
    width, height, size = (measured.column(name) for name in ("width", "height", "size_bytes"))
    with mpl.rc_context(_STYLE):
        figure = _figure(400)
        panels = figure.subplots(2, 2)
        _histogram(panels[0, 0], width, "width, pixels")
        _histogram(panels[0, 1], height, "height, pixels")
        _aspects(panels[1, 0], width / height)
        _histogram(panels[1, 1], size, "bytes per image", named=format_size)
        figure.set_layout_engine("constrained", wspace=0.06, hspace=0.08)
        return _svg(figure, "sizes", "distributions of width, height, aspect ratio and bytes of the images")


def shard_chart(splits: Mapping[str, SplitPortrait]) -> Markup:
    """Return the bytes of each shard in their order; of very many shards, the means of neighbours."""
    shown = {name: split.shard_bytes for name, split in splits.items() if split.shard_bytes}
    with mpl.rc_context(_STYLE):
        figure = _figure(190)
        axes = figure.add_subplot()
        left, most = 0.0, 1.0
        for number, sizes in enumerate(shown.values()):
            color = COLORS[_split_color(number)]
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
        axes.grid(visible=True, axis="y", which="major")
        return _svg(figure, "shards", "bytes of each shard")


def _histogram(axes: Axes, values: NDArray[np.float64], title: str, named: Callable[[float], str] = _count) -> None:
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
    for position, text in sorted(
        named, key=lambda tick: (tick[1] != "1:1", tick[1] not in ("3:4", "4:3", "1:2", "2:1"))
    ):
        if low <= position <= high and all(abs(position - other) > (high - low) / 9 for other, _ in shown):
            shown.append((position, text))
    axes.xaxis.set_major_locator(FixedLocator([position for position, _ in shown]))
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


def bench_page(report: BenchReport) -> str:
    """Return a self-contained page about a benchmark: one file, readable without network or JavaScript."""
    return _render("bench.html", report=report, name=_last_part(report.spec.dataset))


def audit_page(report: AuditReport, contents: Mapping[str, Sequence[Album]]) -> str:
    """Return a self-contained page about an audit: one file, readable without network or JavaScript."""
    return _render(
        "audit.html",
        report=report,
        contents=contents,
        name=_last_part(report.path),
        extra=sum(len(group.images) - 1 for group in report.duplicates),
        counts={name: len(images) for name, images in report.findings.items()},
    )
