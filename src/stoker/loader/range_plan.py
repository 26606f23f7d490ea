"""Which byte ranges to ask a store for, given what will be used and in which order.

Pure functions of arrays, without any I/O. Uses are divided into *windows* of bounded bytes; while the samples of one
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
    """Ranges of a window in the order in which they are asked for, each an entry in columns of int64.

    The pieces of range ``i`` are rows ``starts[i]`` to ``starts[i + 1]`` of the columns of pieces, in the order of
    their offsets, no two the same.
    """

    file: Column
    offset: Column  # its first byte
    length: Column
    first_use: Column  # the first use of any of its pieces, counted from the start of the window
    last_use: Column
    starts: Column  # where its pieces begin, and after the last range, where they end
    piece_offset: Column  # first byte of each piece
    piece_length: Column
    piece_uses: Column  # how often it is used


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Different pieces, by file and offset."""

    file: Column
    offset: Column
    length: Column
    uses: Column
    first_use: Column
    last_use: Column


def window_end(length: Column, group: Column, limits: RangeLimits) -> int:
    """Return how many of the uses to come are the next window; 0 where there are none.

    A window is the longest run whose bytes fit. Where that run reaches into another group than it began in, it ends
    with the last group that is whole: a block shuffle uses all of some blocks before it goes to others, and cutting
    there leaves no blocks half read.

    Args:
        length: int64 (N,), bytes of each use.
        group: int64 (N,), which group each belongs to; equal ones lie side by side.
        limits: How large it may be.
    """
    length = length[: limits.uses + 1]
    fits = int(np.searchsorted(np.cumsum(length), limits.window, side="right"))
    end = min(max(1, fits), limits.uses, len(length))
    changes = np.flatnonzero(np.diff(group[: end + 1])) + 1
    return int(changes[-1]) if end < len(length) and len(changes) else end


def plan_ranges(file: Column, offset: Column, length: Column, limits: RangeLimits) -> RangePlan:
    """Return the ranges that hold all uses of one window.

    Args:
        file: int64 (N,), the file of each use, in the order of the uses.
        offset: int64 (N,), its first byte, at least 0.
        length: int64 (N,), its bytes, at least 1; ``offset + length`` fits into int64.
        limits: How large ranges and gaps may be.
    """
    pieces = _distinct(file, offset, length)
    if len(pieces.file) == 0:
        nothing = np.empty(0, np.int64)
        return RangePlan(*(nothing,) * 5, np.zeros(1, np.int64), *(nothing,) * 3)
    return _ranges(pieces, _heads(pieces, limits))


def _distinct(file: Column, offset: Column, length: Column) -> _Pieces:
    order = _order(file, offset, length)
    columns = [column[order] for column in (file, offset, length)]
    fresh = np.ones(len(order), np.bool_)
    if len(order):
        fresh[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    heads = np.flatnonzero(fresh)
    file, offset, length = (column[heads] for column in columns)
    uses = np.diff(heads, append=len(order))
    # The sort is stable: equal pieces stand in the order of their uses.
    return _Pieces(file, offset, length, uses, order[heads], order[heads + uses - 1])


def _order(file: Column, offset: Column, length: Column) -> Column:
    """Return the order by file, offset and length; that of the uses among equal ones."""
    bits = [int(column.max(initial=0)).bit_length() for column in (file, offset)]
    if sum(bits) < 63:  # one sort of one key is three times as fast
        key = file << bits[1] | offset
        order = np.argsort(key, kind="stable")
        same = key[order[1:]] == key[order[:-1]]
        if (length[order[1:]][same] == length[order[:-1]][same]).all():
            return order
    return np.lexsort((length, offset, file))


def _heads(pieces: _Pieces, limits: RangeLimits) -> Column:
    """Return the pieces that ranges begin with, int64 (R,)."""
    end = _running_end(pieces)
    same = pieces.file[1:] == pieces.file[:-1]
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
    same = pieces.file[1:] == pieces.file[:-1]
    if not (same & (end[1:] < end[:-1])).any():
        return end
    order = np.lexsort((end, pieces.file))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    # By rank, all of a file come behind all of those before it, so that the maximum never reaches across.
    return end[order[np.maximum.accumulate(rank)]]


def _too_much(pieces: _Pieces, gaps: Column, limits: RangeLimits) -> NDArray[np.bool_]:
    """Return the gaps that would make the window larger than allowed when all smaller ones of it are read over."""
    spare = max(0, limits.window - int(pieces.length.sum()))
    order = np.argsort(gaps, kind="stable")
    over = np.empty(len(gaps), np.bool_)
    over[order] = np.cumsum(gaps[order]) > spare
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
    order = np.argsort(first)
    starts = np.concatenate(([0], np.cumsum(counts[order])))
    each = np.repeat(heads[order] - starts[:-1], counts[order]) + np.arange(starts[-1])
    return RangePlan(
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
