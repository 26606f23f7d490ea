"""Which byte ranges to ask a store for, given what will be used and in which order.

A pure function of arrays, without any I/O. Uses are divided into *windows* of bounded bytes; while the samples of one
window are used, those of the next are fetched, so that two windows are held at a time. Within a window, pieces of a
file that lie next to each other, or nearly so, are one range, whatever the order of their use::

    uses, in order   c a d b e          file   a b . c d ........ e
    ranges           [a b . c d] [e]    asked for in the order of their first use
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RangeLimits:
    """How pieces become ranges."""

    window: int  # the most bytes of a window, at least 1, gaps included; a window of one use may have more
    gap: int  # up to so many bytes between two pieces are read rather than asking twice
    longest: int  # the most bytes of a range, at least 1; a piece that is longer is one by itself
    uses: int = 1 << 16  # the most uses of a window, at least 1


@dataclass(frozen=True, slots=True)
class RangePlan:
    """Ranges in the order in which they are asked for, each an entry in columns of int64.

    The pieces of range ``i`` are rows ``starts[i]`` to ``starts[i + 1]`` of the columns of pieces, in the order of
    their offsets, no two the same.
    """

    window: Column  # which window each belongs to, from 0
    file: Column
    offset: Column  # its first byte
    length: Column
    first_use: Column  # the first use of any of its pieces
    last_use: Column
    starts: Column  # where its pieces begin, and after the last range, where they end
    piece_offset: Column  # first byte of each piece
    piece_length: Column
    piece_uses: Column  # how often it is used in this window


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Different pieces, by window, file and offset."""

    window: Column
    file: Column
    offset: Column
    length: Column
    uses: Column
    first_use: Column
    last_use: Column


def cut_windows(length: Column, group: Column | None, limits: RangeLimits) -> Column:
    """Return where windows end, in uses: int64 (W,), growing, the last one ``len(length)``.

    A window is the longest run whose bytes fit. Where that run reaches into another group than it began in, it ends
    with the last group that is whole: a block shuffle uses all of some blocks before it goes to others, and cutting
    there leaves no blocks half read.

    Args:
        length: int64 (N,), bytes of each use.
        group: int64 (N,), which group each belongs to; equal ones lie side by side. None: all are one group.
        limits: See there.
    """
    sums = np.cumsum(length)
    changes = np.empty(0, np.int64) if group is None else np.flatnonzero(np.diff(group)) + 1
    ends = []
    start, before = 0, 0
    while start < len(length):
        fits = int(np.searchsorted(sums, before + limits.window, side="right"))
        end = max(start + 1, min(fits, start + limits.uses))
        if end < len(length):
            change = int(np.searchsorted(changes, end, side="right"))
            if change and changes[change - 1] > start:
                end = int(changes[change - 1])
        ends.append(end)
        start, before = end, int(sums[end - 1])
    return np.array(ends, np.int64)


def plan_ranges(
    file: Column, offset: Column, length: Column, limits: RangeLimits, group: Column | None = None
) -> RangePlan:
    """Return the ranges that hold all uses.

    Args:
        file: int64 (N,), the file of each use, in the order of the uses.
        offset: int64 (N,), its first byte, at least 0.
        length: int64 (N,), its bytes, at least 1; ``offset + length`` fits into int64.
        limits: See there.
        group: As for `cut_windows`.
    """
    ends = cut_windows(length, group, limits)
    window = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    pieces = _distinct(window, file, offset, length)
    if len(pieces.file) == 0:
        nothing = np.empty(0, np.int64)
        return RangePlan(*(nothing,) * 6, np.zeros(1, np.int64), *(nothing,) * 3)
    return _ranges(pieces, _heads(pieces, limits))


def _distinct(window: Column, file: Column, offset: Column, length: Column) -> _Pieces:
    order = _order(window, file, offset, length)
    columns = [column[order] for column in (window, file, offset, length)]
    fresh = np.ones(len(order), np.bool_)
    if len(order):
        fresh[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    heads = np.flatnonzero(fresh)
    window, file, offset, length = (column[heads] for column in columns)
    uses = np.diff(heads, append=len(order))
    # The sort is stable: equal pieces stand in the order of their uses.
    return _Pieces(window, file, offset, length, uses, order[heads], order[heads + uses - 1])


def _order(window: Column, file: Column, offset: Column, length: Column) -> Column:
    """Return the order by window, file, offset and length; that of the uses among equal ones."""
    bits = [int(column.max(initial=0)).bit_length() for column in (window, file, offset)]
    if sum(bits) < 63:  # one sort of one key is three times as fast
        key = (window << bits[1] | file) << bits[2] | offset
        order = np.argsort(key, kind="stable")
        same = key[order[1:]] == key[order[:-1]]
        if (length[order[1:]][same] == length[order[:-1]][same]).all():
            return order
    return np.lexsort((length, offset, file, window))


def _heads(pieces: _Pieces, limits: RangeLimits) -> Column:
    """Return the pieces that ranges begin with, int64 (R,)."""
    end = _running_end(pieces)
    same = (pieces.window[1:] == pieces.window[:-1]) & (pieces.file[1:] == pieces.file[:-1])
    gaps = np.maximum(pieces.offset[1:] - end[:-1], 0)
    joined = same & (gaps <= limits.gap)
    joined &= ~_too_much(pieces, np.where(joined, gaps, 0), limits)
    runs = np.concatenate(([0], np.flatnonzero(~joined) + 1))
    run_ends = np.append(runs[1:], len(end))
    long = np.flatnonzero(end[run_ends - 1] - pieces.offset[runs] > limits.longest)
    more = [_cuts(pieces.offset, end, int(runs[i]), int(run_ends[i]), limits.longest) for i in long]
    return np.sort(np.concatenate([runs, *more])) if more else runs


def _running_end(pieces: _Pieces) -> Column:
    """Return where the bytes of each piece and of those before it in its file end: they may overlap."""
    end = pieces.offset + pieces.length
    same = (pieces.window[1:] == pieces.window[:-1]) & (pieces.file[1:] == pieces.file[:-1])
    if not (same & (end[1:] < end[:-1])).any():
        return end
    order = np.lexsort((end, pieces.file, pieces.window))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    # By rank, all of a file come behind all of those before it, so that the maximum never reaches across.
    return end[order[np.maximum.accumulate(rank)]]


def _too_much(pieces: _Pieces, gaps: Column, limits: RangeLimits) -> NDArray[np.bool_]:
    """Return the gaps that would make a window larger than allowed when all smaller ones of it are read over."""
    used = np.bincount(pieces.window, pieces.length * pieces.uses.clip(max=1), minlength=int(pieces.window[-1]) + 1)
    spare = np.maximum(limits.window - used.astype(np.int64), 0)
    window = pieces.window[1:]
    if not (np.bincount(window, gaps, minlength=len(spare)) > spare).any():
        return np.zeros(len(gaps), np.bool_)
    order = np.lexsort((gaps, window))
    sums = np.cumsum(gaps[order])
    first = np.searchsorted(window[order], window[order])
    sums -= sums[first] - gaps[order][first]
    over = np.empty(len(gaps), np.bool_)
    over[order] = sums > spare[window[order]]
    return over & (gaps > 0)


def _cuts(offset: Column, end: Column, first: int, last: int, longest: int) -> Column:
    """Return where a run of pieces that is too long is cut, each range as long as may be."""
    cuts: list[int] = []
    while True:
        # `end` grows within a file, so the first piece that does not fit any more is found by bisection.
        first += max(1, int(np.searchsorted(end[first:last], offset[first] + longest, side="right")))
        if first >= last:
            return np.array(cuts, np.int64)
        cuts.append(first)


def _ranges(pieces: _Pieces, heads: Column) -> RangePlan:
    counts = np.diff(heads, append=len(pieces.file))
    offset = pieces.offset[heads]
    end = np.maximum.reduceat(pieces.offset + pieces.length, heads)
    first, last = np.minimum.reduceat(pieces.first_use, heads), np.maximum.reduceat(pieces.last_use, heads)
    order = np.lexsort((first, pieces.window[heads]))
    starts = np.concatenate(([0], np.cumsum(counts[order])))
    each = np.repeat(heads[order] - starts[:-1], counts[order]) + np.arange(starts[-1])
    return RangePlan(
        window=pieces.window[heads][order],
        file=pieces.file[heads][order],
        offset=offset[order],
        length=(end - offset)[order],
        first_use=first[order],
        last_use=last[order],
        starts=starts,
        piece_offset=pieces.offset[each],
        piece_length=pieces.length[each],
        piece_uses=pieces.uses[each],
    )
