"""The picture: bars of images per second, a panel for each line, Stoker in colour; readable at the width of a phone."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING

from benchmarks.rivals.catalogue import LINES
from benchmarks.rivals.environments import OURS
from benchmarks.rivals.figures import by_speed, rates, spread

if TYPE_CHECKING:
    from benchmarks.rivals.contest import Row

WIDTH, NUMBERS, LABEL, BAR, GAP, HEADING = 640, 90, 22, 14, 10, 44
BARS, OF_OURS = 10, 4
OURS_COLOR, LIMIT_COLOR, RIVAL_COLOR, INK, PAPER = "#c2410c", "#fdba74", "#94a3b8", "#1e293b", "#ffffff"


def picture(lines: dict[str, list[Row]]) -> str:
    """Return an SVG of every line, of at most ten bars each; whiskers go from the lowest to the highest round."""
    parts, top = [], 0
    for line, rows in lines.items():
        shown = _shown(rows)
        if shown:
            parts += _panel(LINES[line], shown, top)
            top += HEADING + len(shown) * (LABEL + BAR + GAP) + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {max(top, 1)}" font-family="sans-serif" '
        f'font-size="18" fill="{INK}">'
    )
    return "\n".join([head, f'<rect width="100%" height="100%" fill="{PAPER}"/>', *parts, "</svg>"]) + "\n"


def _shown(rows: list[Row]) -> list[Row]:
    """Return the fastest: of each rival one, of Stoker and the codec alone a few."""
    taken: list[Row] = []
    of_each: Counter[str] = Counter()
    for row in by_speed([row for row in rows if row.turns]):
        of_each[row.entry.rival] += 1
        if of_each[row.entry.rival] <= (OF_OURS if row.entry.rival == OURS else 1):
            taken.append(row)
    return taken[:BARS]


def _panel(title: str, rows: list[Row], top: int) -> list[str]:
    unit = (WIDTH - NUMBERS) / max(max(rates(row)) for row in rows)
    parts = [f'<text x="4" y="{top + 28}" font-weight="bold">{escape(title)}</text>']
    for number, row in enumerate(rows):
        parts += _bar(row, unit, top + HEADING + number * (LABEL + BAR + GAP))
    return parts


def _bar(row: Row, unit: float, top: int) -> list[str]:
    """Return a bar below its label, which has the whole width, so that none is cut off."""
    speed = spread(rates(row))
    is_limit = "(the limit)" in row.entry.title
    color = RIVAL_COLOR if row.entry.rival != OURS else LIMIT_COLOR if is_limit else OURS_COLOR
    weight = ' font-weight="bold"' if color == OURS_COLOR else ""
    bar, end = top + LABEL, 4 + speed.high * unit
    return [
        f'<text x="4" y="{top + LABEL - 6}"{weight}>{escape(row.entry.title)}</text>',
        f'<rect x="4" y="{bar}" width="{speed.median * unit:.1f}" height="{BAR}" fill="{color}"/>',
        f'<path d="M{4 + speed.low * unit:.1f} {bar + BAR / 2}H{end:.1f}" stroke="{INK}"/>',
        f'<text x="{end + 6:.1f}" y="{bar + BAR - 1}"{weight}>{speed.median:,.0f}</text>',
    ]
