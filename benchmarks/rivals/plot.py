"""The picture: bars of images per second, a panel for each line, Stoker in colour."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from benchmarks.rivals.catalogue import LINES, OURS
from benchmarks.rivals.figures import by_speed, rates, spread

if TYPE_CHECKING:
    from benchmarks.rivals.contest import Row

WIDTH, LABELS, NUMBERS, BAR, GAP, HEADING = 900, 330, 70, 14, 6, 44
OURS_COLOR, LIMIT_COLOR, RIVAL_COLOR, INK, PAPER = "#c2410c", "#fdba74", "#94a3b8", "#1e293b", "#ffffff"


def picture(lines: dict[str, list[Row]]) -> str:
    """Return an SVG of every line; whiskers go from the lowest to the highest round."""
    parts, top = [], 0
    for line, rows in lines.items():
        shown = [row for row in by_speed(rows) if row.turns]
        if shown:
            parts += _panel(LINES[line], shown, top)
            top += HEADING + len(shown) * (BAR + GAP) + GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {max(top, 1)}" width="{WIDTH}" '
        f'height="{max(top, 1)}" font-family="sans-serif" font-size="12" fill="{INK}">'
    )
    return "\n".join([head, f'<rect width="100%" height="100%" fill="{PAPER}"/>', *parts, "</svg>"]) + "\n"


def _panel(title: str, rows: list[Row], top: int) -> list[str]:
    most = max(max(rates(row)) for row in rows)
    unit = (WIDTH - LABELS - NUMBERS) / most
    parts = [f'<text x="10" y="{top + 26}" font-size="14" font-weight="bold">{escape(title)}</text>']
    for number, row in enumerate(rows):
        parts += _bar(row, unit, top + HEADING + number * (BAR + GAP))
    return parts


def _bar(row: Row, unit: float, top: int) -> list[str]:
    speed = spread(rates(row))
    is_limit = "(the limit)" in row.entry.title
    color = RIVAL_COLOR if row.entry.rival != OURS else LIMIT_COLOR if is_limit else OURS_COLOR
    weight = ' font-weight="bold"' if color == OURS_COLOR else ""
    middle, end = top + BAR / 2, LABELS + speed.high * unit
    return [
        f'<text x="{LABELS - 8}" y="{top + BAR - 3}" text-anchor="end"{weight}>{escape(row.entry.title)}</text>',
        f'<rect x="{LABELS}" y="{top}" width="{speed.median * unit:.1f}" height="{BAR}" fill="{color}"/>',
        f'<path d="M{LABELS + speed.low * unit:.1f} {middle}H{end:.1f}" stroke="{INK}"/>',
        f'<text x="{end + 6:.1f}" y="{top + BAR - 3}"{weight}>{speed.median:,.0f}</text>',
    ]
