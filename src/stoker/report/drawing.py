"""Charts: drawn by matplotlib, put into a page as SVG that takes its colours from the page, or into a PNG."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes

# Name of the page's colour -> its value by day, with which pictures are drawn. pages/layout.html says those by night.
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
SPLIT_COLORS = ("blue", "teal", "sand", "slate")
"""Of the splits of a dataset, in their order."""

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


def style() -> AbstractContextManager[None]:
    """Return a context in which charts are drawn and written in the style of the pages."""
    return mpl.rc_context(_STYLE)


def drawable(text: str) -> str:
    """Return text without what the font of the charts cannot draw."""
    font = get_font(findfont("DejaVu Sans"))
    return "".join(char if font.get_char_index(ord(char)) else "\N{REPLACEMENT CHARACTER}" for char in text)


def sheet(width: float, height: float) -> Figure:
    """Return an empty chart.

    Args:
        width: In pixels of a page.
        height: The same.
    """
    return Figure((width / _PIXELS_PER_INCH, height / _PIXELS_PER_INCH), dpi=_PIXELS_PER_INCH, layout="constrained")


def grid(axes: Axes, axis: Literal["x", "y"]) -> None:
    """Draw grid lines across one axis only."""
    axes.grid(visible=True, axis=axis, which="major")


def svg(figure: Figure, name: str, title: str) -> Markup:
    """Return a chart as an element of a page.

    Args:
        figure: The chart, drawn inside `style`.
        name: Letters that no other chart of the page has; precedes the names of its parts.
        title: What it shows, for those who cannot see it.
    """
    data = io.StringIO()
    nobody = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(data, format="svg", transparent=True, metadata=nobody)
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
    return Markup(text)  # noqa: S704 - our own drawing; it holds no text of anybody else


def png(figure: Figure, scale: float = 2.0) -> bytes:
    """Return a chart as the bytes of a PNG on paper.

    Args:
        figure: The chart, drawn inside `style`.
        scale: Pixels for one of a page.
    """
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=_PIXELS_PER_INCH * scale, facecolor=COLORS["paper"], metadata={})
    return data.getvalue()
