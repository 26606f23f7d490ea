"""Which images are the same: of the same bytes, of the same pixels, or of nearly the same content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stoker import _native
from stoker.errors import StokerError, StorageError
from stoker.recipe import MAX_PIXELS, decode
from stoker.sources import image_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from stoker.inspect.auditing.measuring import Load

Sameness = Literal["bytes", "pixels", "near"]

MAX_DISTANCE = 11
"""The largest distance of hashes that `near_duplicates` takes."""

FLAT = 4.0
"""Images whose standard deviation is below this, of 0 to 255, have no content that a hash could tell apart."""


_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Images that are the same.

    Attributes:
        how: ``bytes``: their files are equal. ``pixels``: their sizes and pixels in RGB are. ``near``: their hashes
            differ in few bits, and few that are strong, from one to the next.
        rows: Their rows, ascending; the first stands for them all. Images that are the same in a stricter sense are
            one here: the first of them.
    """

    how: Sameness
    rows: tuple[int, ...]


def exact_duplicates(rows: NDArray[Any], readable: NDArray[np.int64], load: Load) -> list[Duplicates]:
    """Return images of the same bytes, and those of the same pixels, in the order of the first of each group.

    Those of the same size, sums and hash are decoded once more to compare their pixels.
    """
    digests = rows["digest"]
    equal = _groups(readable, digests[readable].view("<u8")[::2], lambda row: digests[row].tobytes())
    firsts = _without_copies(readable, equal)
    alike = _groups(firsts, _mixed(rows, firsts), lambda row: _pixel_digest(load, row))
    groups = [*(Duplicates("bytes", group) for group in equal), *(Duplicates("pixels", group) for group in alike)]
    return sorted(groups, key=lambda group: group.rows[0])


def near_duplicates(
    rows: NDArray[Any], contrasts: NDArray[np.float32], exact: Iterable[Duplicates], distance: int, threads: int
) -> list[Duplicates]:
    """Return images of nearly the same content, also mirrored, in the order of the first of each group.

    Hashes of two that follow each other differ in ``distance`` bits at most. Left out are those that are flat by
    ``contrasts``, and of what `exact_duplicates` returns all but the first of each.
    """
    firsts = _without_copies(np.flatnonzero(contrasts >= FLAT), [group.rows for group in exact])
    hashes, strong = rows["hash"][firsts], rows["strong"][firsts]
    order = np.lexsort((strong, hashes))
    is_new = np.ones(len(order), bool)
    hashes, strong = hashes[order], strong[order]
    is_new[1:] = (np.diff(hashes) != 0) | (np.diff(strong) != 0)
    places = np.empty_like(order)
    places[order] = np.cumsum(is_new) - 1
    hashes, strong = hashes[is_new], strong[is_new]
    clusters = _native.near_hashes(hashes, strong, distance, mirrored=True, threads=threads)
    return [Duplicates("near", group) for group in _groups(firsts, clusters[places])]


def distances(hashes: NDArray[np.uint64]) -> list[int]:
    """Return in how many bits hashes differ from the first, or from that of its mirror image if that is nearer."""
    first, *others = hashes.tolist()
    return [0, *(min((first ^ other ^ bits).bit_count() for bits in (0, _native.MIRRORED_BITS)) for other in others)]


def _without_copies(rows: NDArray[np.int64], groups: Iterable[Sequence[int]]) -> NDArray[np.int64]:
    copies = [row for group in groups for row in group[1:]]
    return rows[~np.isin(rows, copies)] if copies else rows


def _mixed(rows: NDArray[Any], some: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return a number for each of some rows that is the same where all is that follows from the pixels."""
    mixed = rows["hash"][some]
    columns = [rows["width"], rows["height"], *rows["sums"].T, *rows["squares"].T]
    for column in columns:
        mixed = (mixed ^ column[some].astype(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(32)
    return mixed


def _groups(
    rows: NDArray[np.int64], keys: NDArray[Any], further: Callable[[int], object] = lambda _: None
) -> list[tuple[int, ...]]:
    """Return the rows that agree in the key and in what is told of them further; ascending, by the first of each."""
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order]) != 0) + 1
    bounds = np.concatenate([[0], starts, [len(rows)]])
    groups = []
    for at in np.flatnonzero(np.diff(bounds) > 1).tolist():
        same: dict[object, list[int]] = {}
        for row in np.sort(rows[order[bounds[at] : bounds[at + 1]]]).tolist():
            same.setdefault(further(row), []).append(row)
        groups += [tuple(members) for members in same.values() if len(members) > 1]
    return sorted(groups)


def _pixel_digest(load: Load, row: int) -> bytes:
    """Return what stands for the pixels of an image; nothing that another has where it can no longer be read."""
    try:
        data, _ = load(row)
        return image_digest(decode(data, MAX_PIXELS) if isinstance(data, bytes) else data)
    except StorageError:
        raise
    except StokerError:
        return b"row %d" % row
