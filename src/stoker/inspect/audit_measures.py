"""Measuring images: each is a row in 99 bytes of a table, and of a file from which a later run goes on.

All numbers are integers, and the same on every machine and for every number of threads. ``hash`` says what an image
shows: the signs of the 64 lowest frequencies of its grey, averaged to 32 x 32 cells (`stoker._native.measure_image`).
``strong`` says which of them are further from 0 than half of them. Copies that were encoded again, resized, or changed
in colour differ from the image in a few bits of ``hash``; where edges were cut off in more, of which few are strong.

The file is for one list of images, which its first line names. After that come blocks: the length and the CRC-32C of
what follows, the first row, and the rows of `MEASURES`. A block that is damaged or cut short, as a run leaves it that
was killed, and what follows it are measured again; so are images that could not be read.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
from dataclasses import dataclass, field
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from stoker import _native
from stoker.builder import Tally
from stoker.config import option
from stoker.errors import ConfigError, ImageError, StokerError, StorageError
from stoker.recipe import (
    FORMATS,
    MAX_PIXELS,
    NATIVE_FORMATS,
    Recipe,
    decode,
    decode_with_pillow,
    is_animated,
    not_an_image,
    orientation,
    own_mode,
    sniff,
)
from stoker.sources import image_digest, new_column
from stoker.storage import lock_alone, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.types import Box, Progress

Load: TypeAlias = "Callable[[int], tuple[bytes | NDArray[Any], Sequence[Box]]]"
"""Returns the file or the pixels of one of the images, and its boxes; called in any thread."""

FORMAT_NAMES = ("", "unreadable", "pixels", "jpeg", *sorted(FORMATS))
"""What the column ``format`` counts; 0 where nothing is measured yet."""

MODE_NAMES = ("", "L", "LA", "RGB", "RGBA", "I;16", "CMYK")
"""What the column ``mode`` counts: the channels that an image has itself."""

MEASURES = np.dtype(
    [
        ("digest", "V16"),  # as `stoker.sources.image_digest` has it
        ("hash", "<u8"),
        ("strong", "<u8"),
        ("sums", "<u8", 3),  # of its pixels in RGB
        ("squares", "<u8", 3),
        ("width", "<u4"),
        ("height", "<u4"),
        ("size", "<u4"),  # in bytes; of 4 GiB and more the largest number
        ("format", "u1"),
        ("mode", "u1"),
        ("bits", "u1"),  # of a channel, or of an index into a palette
        ("orientation", "u1"),  # EXIF tag 274; 1 where there is none
        ("animated", "?"),
        ("outside", "?"),  # whether a box leaves the image
        ("empty", "?"),  # whether a box has no area
    ]
)

UNREADABLE = FORMAT_NAMES.index("unreadable")
_ROUNDING = 1e-4  # of corners that records hold in single precision
_PNG_BITS = 24  # where a PNG says how many
_RECIPE = Recipe()
_JPEG_MODES = {"grey": "L", "cmyk": "CMYK", "ycck": "CMYK"}

_BLOCK_ROWS = 1024  # which a run that is killed measures again at most
_ROWS_AT_ONCE = 8
_MAGIC = "stoker measures 2"
_MAX_HEAD_BYTES = 4096
_BLOCK = struct.Struct("<II")  # bytes after these, and their checksum
_FIRST = struct.Struct("<Q")


def measure(data: bytes | NDArray[Any], boxes: Sequence[Box] = ()) -> tuple[Any, ...]:
    """Return what is known of one image, a file or pixels (H, W, 3), all of which is decoded: a row of `MEASURES`."""
    outside, empty = _flaws(boxes)
    if not isinstance(data, bytes):
        pixels = np.ascontiguousarray(data)
        width, height, sums, squares, image_hash, strong = _native.measure_pixels(pixels)
        kind, mode, bits, turned, animated, size = "pixels", "RGB", 8, 1, False, pixels.nbytes
    else:
        kind, size = sniff(data), len(data)
        if kind == "jpeg":
            info = _native.probe_jpeg(data)
            mode, bits, turned, animated = _JPEG_MODES.get(info.color, "RGB"), info.bits, info.orientation, False
        elif kind not in FORMATS:
            raise ImageError(not_an_image(kind, data))
        if kind in NATIVE_FORMATS:
            width, height, sums, squares, image_hash, strong = _native.measure_image(data, MAX_PIXELS)
        else:
            pixels, turned = decode_with_pillow(data, kind, _RECIPE.check_pixels)
            width, height, sums, squares, image_hash, strong = _native.measure_pixels(pixels)
        if kind != "jpeg":
            mode, animated = own_mode(data, kind), is_animated(data, kind)
            bits = data[_PNG_BITS] if kind == "png" else 16 if mode == "I;16" else 8
            turned = orientation(data, kind) if kind in NATIVE_FORMATS else turned
    return (
        image_digest(data),
        image_hash,
        strong,
        sums,
        squares,
        width,
        height,
        min(size, 2**32 - 1),
        FORMAT_NAMES.index(kind),
        MODE_NAMES.index(mode),
        bits,
        turned,
        animated,
        outside,
        empty,
    )


def _flaws(boxes: Sequence[Box]) -> tuple[bool, bool]:
    """Return whether a box leaves the image, and whether one has no area."""
    outside = empty = False
    for box in boxes:
        corners = (box.xmin, box.ymin, box.xmax, box.ymax)
        outside |= not all(-_ROUNDING <= corner <= 1 + _ROUNDING for corner in corners)
        empty |= not (box.xmin < box.xmax and box.ymin < box.ymax and all(map(math.isfinite, corners)))
    return outside, empty


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """What was measured of many images."""

    rows: NDArray[Any]  # `MEASURES` (N,): in memory, or of more than a million images in a scratch file, 99 bytes each
    problems: dict[int, str] = field(default_factory=dict)  # why images cannot be read, by row
    resumed: int = 0  # rows that an earlier run had measured

    @property
    def readable(self) -> NDArray[np.int64]:
        """The rows of images that were measured, ascending."""
        return np.flatnonzero(self.rows["format"] != UNREADABLE)


def measure_all(
    count: int,
    load: Load,
    threads: int,
    progress: Progress | None = None,
    file: Path | None = None,
    identity: str = "",
) -> Measurements:
    """Measure images; one that cannot be read has a problem, and does not end the run.

    Memory: the table, and a few images for each thread. ``load`` is called in any thread. What is measured is kept in
    ``file``, to go on from; ``identity`` stands for the images.

    Raises:
        ConfigError: ``file`` is of other images, or none of this kind, or another run writes to it.
    """
    rows = new_column(count, MEASURES)
    with contextlib.ExitStack() as stack:
        journal = None if file is None else stack.enter_context(_open_journal(file, identity, count))
        if journal is not None:
            _resume(journal, rows)
        left = np.flatnonzero((rows["format"] == 0) | (rows["format"] == UNREADABLE))
        measured = Measurements(rows, resumed=count - len(left))
        tally = Tally(count, progress)
        tally.advanced(measured.resumed, 0, 0)
        pool = stack.enter_context(stoppable_pool(threads, "stoker-audit", only_reads=True))
        for block in _blocks(left):
            parts = [block[first : first + _ROWS_AT_ONCE] for first in range(0, len(block), _ROWS_AT_ONCE)]
            measured_parts = pool.map(lambda part: [_measure(load, row) for row in part], parts)
            for part, results in zip(parts, measured_parts, strict=True):
                for row, result in zip(part, results, strict=True):
                    if isinstance(result, str):
                        measured.problems[row] = result
                        rows["format"][row] = UNREADABLE
                    else:
                        rows[row] = result
                size_bytes = int(rows["size"][part[0] : part[-1] + 1].sum())
                tally.advanced(len(part), size_bytes, sum(isinstance(result, str) for result in results))
            if journal is not None:
                _append(journal, block[0], rows[block[0] : block[-1] + 1])
    return measured


def _blocks(rows: NDArray[np.int64]) -> Iterator[list[int]]:
    """Yield runs of rows that follow one another, none of them long."""
    for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
        for first in range(0, len(run), _BLOCK_ROWS):
            yield run[first : first + _BLOCK_ROWS].tolist()


def _measure(load: Load, row: int) -> tuple[Any, ...] | str:
    """Return the measures of an image, or why it cannot be read."""
    try:
        return measure(*load(row))
    except StorageError:
        raise
    except StokerError as error:
        return str(error)


@contextlib.contextmanager
def _open_journal(path: Path, identity: str, count: int) -> Iterator[IO[bytes]]:
    """Open the file of a run, of which the first line is written if there is none; for one run at a time."""
    head = json.dumps({"format": _MAGIC, "images": count, "identity": identity}).encode() + b"\n"
    with path.open("a+b", buffering=0) as file:
        try:
            lock_alone(file.fileno(), path)
        except BlockingIOError:
            busy = f"another audit writes to {path}; wait for it, or name another file with {option('resume')}"
            raise ConfigError(busy) from None
        file.seek(0)
        there = file.readline(_MAX_HEAD_BYTES)
        if there and there != head:
            other = "measures of other images, of these before they changed, or of another version of Stoker"
            what = other if _MAGIC.rstrip("0123456789").encode() in there else "something else than measures"
            raise ConfigError(f"{path} holds {what}; name another file with {option('resume')}, or remove it")
        if not there:
            file.write(head)
        yield file


def _resume(file: IO[bytes], rows: NDArray[Any]) -> None:
    """Read what was measured, and cut off what is damaged."""
    end, size = file.tell(), os.fstat(file.fileno()).st_size
    while len(head := file.read(_BLOCK.size)) == _BLOCK.size:
        length, checksum = _BLOCK.unpack(head)
        if not _FIRST.size <= length <= size - file.tell() or (length - _FIRST.size) % MEASURES.itemsize:
            break
        body = file.read(length)
        (first,), some = _FIRST.unpack_from(body), np.frombuffer(body, MEASURES, offset=_FIRST.size)
        if _native.crc32c(body) != checksum or len(some) > len(rows) or first > len(rows) - len(some):
            break
        rows[first : first + len(some)] = some
        end = file.tell()
    os.truncate(file.fileno(), end)


def _append(file: IO[bytes], first: int, rows: NDArray[Any]) -> None:
    body = _FIRST.pack(first) + rows.tobytes()
    file.write(_BLOCK.pack(len(body), _native.crc32c(body)) + body)


# Which images are the same: of the same bytes, of the same pixels, or of nearly the same content.

Sameness = Literal["bytes", "pixels", "near"]

MAX_DISTANCE = 11
"""The largest distance of hashes that `near_duplicates` takes."""

FLAT = 4.0
"""Images whose standard deviation is below this, of 0 to 255, have no content that a hash could tell apart."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Images that are the same, as in `stoker.DuplicateGroup`."""

    how: Sameness
    rows: tuple[int, ...]  # ascending; of images that are the same in a stricter sense only the first


def exact_duplicates(rows: NDArray[Any], readable: NDArray[np.int64], load: Load) -> list[Duplicates]:
    """Return images of the same bytes, and those of the same pixels, in the order of the first of each group.

    Those of the same size, sums and hash are decoded once more to compare their pixels.
    """
    digests = rows["digest"]
    equal = _groups(readable, digests[readable].view("<u8")[::2], lambda row: digests[row].tobytes())
    firsts = _without_copies(readable, equal)
    alike = _groups(firsts, rows["hash"][firsts], partial(_pixel_measures, rows), partial(_pixel_digest, load))
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


def _groups(rows: NDArray[np.int64], keys: NDArray[Any], *further: Callable[[int], object]) -> list[tuple[int, ...]]:
    """Return the rows that agree in the key and in what is told of them further; ascending, by the first of each."""
    order = np.argsort(keys, kind="stable")
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(keys[order]) != 0) + 1, [len(rows)]])
    several = np.flatnonzero(np.diff(bounds) > 1).tolist()
    groups = [np.sort(rows[order[bounds[at] : bounds[at + 1]]]).tolist() for at in several]
    for tell in further:
        same: dict[tuple[int, object], list[int]] = {}
        for number, group in enumerate(groups):
            for row in group:
                same.setdefault((number, tell(row)), []).append(row)
        groups = [members for members in same.values() if len(members) > 1]
    return sorted(map(tuple, groups))


def _pixel_measures(rows: NDArray[Any], row: int) -> bytes:
    """Return what else follows from the pixels of an image."""
    return b"".join(rows[column][row].tobytes() for column in ("width", "height", "sums", "squares"))


def _pixel_digest(load: Load, row: int) -> bytes:
    """Return what stands for the pixels of an image; nothing that another has where it can no longer be read."""
    try:
        data, _ = load(row)
        return image_digest(decode(data, MAX_PIXELS) if isinstance(data, bytes) else data)
    except StorageError:
        raise
    except StokerError:
        return b"row %d" % row
