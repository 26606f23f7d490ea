"""Which images are the same: of the same bytes, of the same pixels, or of nearly the same content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stoker import _native
from stoker.errors import StokerError, StorageError
from stoker.recipe import MAX_PIXELS, decode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from stoker.auditing.measuring import Load

Sameness = Literal["bytes", "pixels", "near"]

MAX_DISTANCE = 11
"""The largest distance of hashes that `near_duplicates` takes."""

FLAT = 4.0
"""Images whose standard deviation is below this, of 0 to 255, have no content that a hash could tell apart."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Images that are the same.

    Attributes:
        how: ``bytes``: their files are equal. ``pixels``: their sizes and pixels in RGB are. ``near``: their hashes
            differ in few bits, from one to the next.
        rows: Their rows, ascending; the first stands for them all. Images that are the same in a stricter sense are
            one here: the first of them.
    """

    how: Sameness
    rows: tuple[int, ...]


def exact_duplicates(rows: NDArray[Any], readable: NDArray[np.int64], load: Load) -> list[Duplicates]:
    """Return images of the same bytes, and those of the same pixels, in the order of the first of each group.

    Those of the same size, sums and hash are decoded once more to compare their pixels.

    Args:
        rows: `MEASURES` (N,).
        readable: Which of them were measured.
        load: Returns the file or the pixels of one of them.

    Raises:
        StorageError: The store cannot be reached.
    """
    digests = rows["digest"][readable]
    groups = [Duplicates("bytes", group) for group in _groups(readable, [digests[:, 0], digests[:, 1]])]
    others = {row for group in groups for row in group.rows[1:]}
    firsts = readable[~np.isin(readable, list(others))] if others else readable
    some = rows[firsts]
    keys = [some["hash"], some["width"], some["height"], *some["sums"].T, *some["squares"].T]
    for alike in _groups(firsts, keys):
        digests_of: dict[bytes, list[int]] = {}
        for row in alike:
            digests_of.setdefault(_pixel_digest(load, row), []).append(row)
        groups += [Duplicates("pixels", tuple(same)) for same in digests_of.values() if len(same) > 1]
    return sorted(groups, key=lambda group: group.rows[0])


def near_duplicates(
    rows: NDArray[Any], readable: NDArray[np.int64], exact: Iterable[Duplicates], distance: int, threads: int
) -> list[Duplicates]:
    """Return images of nearly the same content, also mirrored, in the order of the first of each group.

    Flat images are left out.

    Args:
        rows: `MEASURES` (N,).
        readable: Which of them were measured.
        exact: What `exact_duplicates` returns: all but the first of each are left out.
        distance: In how many bits hashes may differ from one to the next, 0 to `MAX_DISTANCE`.
        threads: How many compare.
    """
    others = [row for group in exact for row in group.rows[1:]]
    firsts = readable[deviations(rows[readable]) >= FLAT]
    firsts = firsts[~np.isin(firsts, others)] if others else firsts
    hashes, places = np.unique(rows["hash"][firsts], return_inverse=True)
    clusters = _native.near_hashes(np.ascontiguousarray(hashes), distance, mirrored=True, threads=threads)
    return [Duplicates("near", group) for group in _groups(firsts, [clusters[places]])]


def distances(hashes: NDArray[np.uint64]) -> list[int]:
    """Return in how many bits hashes differ from the first, or from that of its mirror image if that is nearer."""
    first, *others = hashes.tolist()
    return [0, *(min((first ^ other ^ bits).bit_count() for bits in (0, _native.MIRRORED_BITS)) for other in others)]


def means(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the means of red, green and blue of each image, 0 to 255: (N, 3)."""
    values: NDArray[np.float64] = rows["sums"] / _areas(rows)
    return values


def deviations(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the standard deviation of each image over all its channels, each around its own mean: (N,)."""
    variances: NDArray[np.float64] = rows["squares"] / _areas(rows) - means(rows) ** 2
    values: NDArray[np.float64] = np.sqrt(np.maximum(0.0, variances).mean(1))
    return values


def _areas(rows: NDArray[Any]) -> NDArray[np.float64]:
    areas: NDArray[np.float64] = rows["width"].astype(np.float64) * rows["height"]
    return areas[:, None]


def _groups(rows: NDArray[np.int64], keys: list[NDArray[Any]]) -> list[tuple[int, ...]]:
    """Return the rows that agree in all keys, two and more at a time, ascending, by the first of each."""
    if not len(rows):
        return []
    order = np.lexsort(keys)
    differs = np.zeros(len(rows) - 1, np.bool_)
    for key in keys:
        ordered = key[order]
        differs |= ordered[1:] != ordered[:-1]
    bounds = np.concatenate([[0], np.flatnonzero(differs) + 1, [len(rows)]])
    several = np.flatnonzero(np.diff(bounds) > 1)
    groups = (rows[order[bounds[at] : bounds[at + 1]]] for at in several.tolist())
    return sorted(tuple(np.sort(group).tolist()) for group in groups)


def _pixel_digest(load: Load, row: int) -> bytes:
    """Return what stands for the pixels of an image; nothing that another has where it can no longer be read."""
    try:
        data, _ = load(row)
        pixels = decode(data, MAX_PIXELS) if isinstance(data, bytes) else np.ascontiguousarray(data)
    except StorageError:
        raise
    except StokerError:
        return b"row %d" % row
    return hashlib.sha256(pixels.data).digest()
