"""The tables, as Markdown: one for each line, and one of the aims."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.rivals.aims import MOST_MEMORY_MB, most_memory, reached
from benchmarks.rivals.catalogue import BUILD_LINES, LINES
from benchmarks.rivals.environments import OURS
from benchmarks.rivals.figures import QUIET, Spread, by_speed, find, noise, rates, ratio, spread, steadied
from benchmarks.rivals.work import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.rivals.contest import Row

REFERENCES = {
    "train": "original",
    "eval": "original",
    "raw": "raw64",
    "keep": "exact",
    "small": "exact",
    "scan": "scan",
    **dict.fromkeys(("multi-crop", *FORMATS), "files"),
}
"""Stoker's form that the rows of a line are compared with."""


_NO_PIXELS = "1x1x1"  # what the codec alone hands over


def tables(lines: dict[str, list[Row]], notes: Sequence[str]) -> str:
    """Everything that is to be read; the notes say what was not measured."""
    parts = [line_table(line, rows) for line, rows in lines.items()]
    return "\n".join([*parts, *(f"{note}\n" for note in notes), aims_table(lines)])


def line_table(line: str, rows: Sequence[Row]) -> str:
    """The table of one line."""
    reference = find(rows, f"{OURS}:{REFERENCES[line]}")
    what = "written MB" if line in BUILD_LINES else "stored MB"
    heads = ["", "per second (lowest to highest)", "drift divided out", "per CPU second", "peak MB", what]
    heads += ["of the limit", "Stoker is faster by", "per CPU second"]
    table = [f"| {' | '.join(heads)} |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for row in by_speed(rows):
        failed = f"| {row.entry.title} | FAILED: {row.failed} " + "|" * (len(heads) - 1)
        table.append(_row(row, rows, reference) if row.turns else failed)
    return "\n".join([f"### {LINES[line]}", "", *_state(rows), *table, "", *_checks(rows)]) + "\n"


def _state(rows: Sequence[Row]) -> list[str]:
    state = noise(rows)
    if state is None:
        return []
    speed, disturbed, turns = state
    drift = f"{speed.low:.0f} to {speed.high:.0f} full decodes per CPU second (median {speed.median:.0f})"
    others = f"in {disturbed} of {turns} turns other processes kept more than {QUIET} cores busy"
    return [f"The machine during this line: {drift}; {others}.", ""]


def _row(row: Row, rows: Sequence[Row], reference: Row | None) -> str:
    speed, cpu = spread(rates(row)), spread(rates(row, "cpu_seconds"))
    limit = find(rows, row.entry.limit)
    other = None if row is reference else reference
    cells = [
        f"**{row.entry.title}**" if row.entry.rival == OURS else row.entry.title,
        f"{_number(speed.median)} ({_number(speed.low)} to {_number(speed.high)})",
        _number(steadied(row, rows)),
        _number(cpu.median),
        f"{row.peak_mb:.0f}",
        "" if row.stored_mb is None else f"{row.stored_mb:.1f}",
        "" if limit is None else _times(ratio(row, limit)),
        "" if other is None else _times(ratio(other, row)),
        "" if other is None else _times(ratio(other, row, "cpu_seconds"), wide=False),
    ]
    return f"| {' | '.join(cells)} |"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _times(spread: Spread | None, *, wide: bool = True) -> str:
    if spread is None:
        return ""
    return f"{spread.median:.2f} x" + (f" ({spread.low:.2f} to {spread.high:.2f})" if wide else "")


def _checks(rows: Sequence[Row]) -> list[str]:
    """What the batches were: one line for each kind, so that what differs is seen."""
    kinds: dict[str, list[str]] = {}
    for row in rows:
        if row.check.get("shape", _NO_PIXELS) != _NO_PIXELS:
            kinds.setdefault(f"{row.check['dtype']} {row.check['shape']}", []).append(
                f"{row.entry.title}: {row.check['mean']:.1f}, {row.check['distinct']}"
            )
    texts = [
        f"Batches of {kind}; mean pixel and distinct samples of a first pass: {'; '.join(who)}."
        for kind, who in kinds.items()
    ]
    return [*texts, ""] if texts else []


def aims_table(lines: dict[str, list[Row]]) -> str:
    """Stoker against whom it is to be ahead of."""
    aims = reached(lines)
    if not aims:
        return ""
    table = ["### Aims", "", "| line | Stoker | against | aim | reached (lowest to highest round) | per CPU second | |"]
    table.append("|---|---|---|---:|---:|---:|---|")
    for aim in aims:
        of_cpu = aim.per == "cpu_seconds"
        wanted = f"{aim.aim:.2f} x" + (" per CPU second" if of_cpu else "")
        cells = [aim.line, aim.ours, aim.against, wanted, _times(aim.wall), _times(aim.cpu, wide=of_cpu)]
        table.append(f"| {' | '.join(cells)} | {'met' if aim.is_met else 'MISSED'} |")
    memory = most_memory(lines)
    if memory is not None:
        who, peak = memory
        met = "met" if peak <= MOST_MEMORY_MB else "MISSED"
        table.append(f"| memory | {who} | | at most {MOST_MEMORY_MB:.0f} MB | {peak:.0f} MB | | {met} |")
    return "\n".join(table) + "\n"
