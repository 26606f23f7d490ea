"""Slow twin of the planner of byte ranges: loops over uses, and over pieces one by one."""

from __future__ import annotations

from typing import NamedTuple


class Piece(NamedTuple):
    file: int
    offset: int
    length: int


class Range(NamedTuple):
    file: int
    offset: int
    length: int
    first_use: int
    last_use: int
    pieces: tuple[tuple[int, int, int], ...]  # offset, length, how many uses


def windows(lengths: list[int], groups: list[int], most_bytes: int, most_uses: int) -> list[range]:
    """Runs of uses; see `stoker.loader.read_ahead.window_end`."""
    runs = []
    start = 0
    while start < len(lengths):
        end = start + 1
        while end < len(lengths) and end - start < most_uses and sum(lengths[start : end + 1]) <= most_bytes:
            end += 1
        if end < len(lengths):
            whole = [at for at in range(start + 1, end + 1) if groups[at] != groups[at - 1]]
            end = whole[-1] if whole else end
        runs.append(range(start, end))
        start = end
    return runs


def plan(
    uses: list[Piece], groups: list[int], window: int, gap: int, longest: int, most_uses: int
) -> list[list[Range]]:
    """The ranges of each window, in the order in which they are asked for."""
    return [
        _plan_window([(number, uses[number]) for number in numbers], window, gap, longest)
        for numbers in windows([use.length for use in uses], groups, window, most_uses)
    ]


def _plan_window(uses: list[tuple[int, Piece]], window: int, gap: int, longest: int) -> list[Range]:
    pieces = sorted({piece for _, piece in uses})
    runs: list[list[Piece]] = []
    holes = _holes(pieces, gap, window - sum(piece.length for piece in pieces))
    for number, piece in enumerate(pieces):
        if number and number in holes:
            runs[-1].append(piece)
        else:
            runs.append([piece])
    ranges = [_range(part, uses) for run in runs for part in _cut(run, longest)]
    return sorted(ranges, key=lambda range_: range_.first_use)


def _holes(pieces: list[Piece], gap: int, spare: int) -> set[int]:
    """Numbers of the pieces that go on where others of their file ended: the smallest gaps first, while they fit."""
    wide = []
    for number in range(1, len(pieces)):
        before = [piece.offset + piece.length for piece in pieces[:number] if piece.file == pieces[number].file]
        if before and pieces[number].offset - max(before) <= gap:
            wide.append((max(0, pieces[number].offset - max(before)), number))
    if sum(width for width, _ in wide) <= max(spare, 0):
        return {number for _, number in wide}
    taken, read = set(), 0
    for width, number in sorted(wide):
        read += width
        if width == 0 or read <= spare:
            taken.add(number)
    return taken


def _cut(run: list[Piece], longest: int) -> list[list[Piece]]:
    parts: list[list[Piece]] = []
    for piece in run:
        if (
            parts
            and max(each.offset + each.length for each in [*_before(run, piece), piece]) - parts[-1][0].offset
            <= longest
        ):
            parts[-1].append(piece)
        else:
            parts.append([piece])
    return parts


def _before(run: list[Piece], piece: Piece) -> list[Piece]:
    return run[: run.index(piece)]


def _range(part: list[Piece], uses: list[tuple[int, Piece]]) -> Range:
    mine = [(number, piece) for number, piece in uses if piece in part]
    numbers = [number for number, _ in mine]
    start, end = part[0].offset, max(piece.offset + piece.length for piece in part)
    counts = tuple((piece.offset, piece.length, sum(used == piece for _, used in mine)) for piece in part)
    return Range(part[0].file, start, end - start, min(numbers), max(numbers), counts)
