"""The audit of a dataset: statistics of its images, and which of them should not be in it.

Every image is read and decoded once, and possible exact duplicates once more. Records of reported images are read again
for their names. Each image is a row of 99 bytes in a table, and in a file from which a later run resumes.

All numbers are integers, the same on every machine and for every number of threads. ``hash`` is a perceptual hash: the
signs of the 64 lowest frequencies of the grey image, averaged to 32 x 32 cells (`stoker._native.measure_image`).
``strong`` marks those that are further from 0 than half of them. Copies that were encoded again, resized, or changed in
colour differ from the image in a few bits of ``hash``; cropped copies differ in more bits, of which few are strong.

The file belongs to one list of images, which its first line names. Then come blocks: the length and the CRC-32C of the
rest of the block, the number of its first row, and rows of `MEASURES`. From the first block that is damaged or cut
short, as a killed run leaves it, images are measured again; so are images that could not be read.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from operator import or_
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Never, TypeAlias

import numpy as np

from stoker import _native
from stoker.builder import is_machine_error
from stoker.config import available_cpus, check_range, option
from stoker.errors import DATA_ERRORS, ConfigError, ImageError, SourceError, StorageError, format_where
from stoker.habits import AUDITING, refuse_unknown
from stoker.inspect.info import ClassCount, Splits, counted_classes, label_counts
from stoker.loader import open_splits
from stoker.progress import Tally
from stoker.recipe import (
    FORMATS,
    MAX_PIXELS,
    NATIVE_FORMATS,
    Recipe,
    bits_of,
    decode,
    decode_with_pillow,
    is_animated,
    not_an_image,
    orientation,
    own_mode,
    sniff,
)
from stoker.sources import EMPTY, OUTSIDE, SourceOptions, flaws_of, image_digest, new_column
from stoker.storage import lock_alone, stoppable_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.format import RecordKeys
    from stoker.loader import Dataset, Sample
    from stoker.storage import LocationLike
    from stoker.types import Box, Progress


DEFAULT_DISTANCE = 11
"""None of 2 million pairs of different photographs is this near; 97 of 100 copies with 5 % cut off are."""

_AT_ONCE_REMOTE = 16
_DARK, _BRIGHT = 20.0, 235.0  # means of all channels
_EXTREMES = 10
_USUAL_BITS = 8
_NAMES_AT_ONCE = 2**10  # each waits in a future of over 1,000 bytes
_ROWS_AT_ONCE = 2**16  # so that the table of millions is not copied

FindingRows: TypeAlias = "tuple[NDArray[np.int64], NDArray[Any] | None]"
"""Rows of the images in a finding, and the measure that it is about, by row of the table; None without one."""


@dataclass(frozen=True, slots=True)
class AuditedImage:
    """One image that is part of a finding.

    Attributes:
        path: Its file, the shard of its record, or the archive that it is in.
        record: Zero-based number of the record in the shard; None where there is none.
        source: Name of the image in the record or the archive; empty if ``path`` is its file.
        split: Its split.
        index: Its number in the split.
        label: Its class; -1 for none.
        value: The measure that the finding is about, if it is a number: brightness or deviation (0 to 255), size in
            pixels, aspect ratio (width / height), or differing bits of near duplicates.
        problem: Why it cannot be read; empty if it can.
    """

    path: str
    record: int | None
    source: str
    split: str
    index: int
    label: int
    value: float | None = None
    problem: str = ""

    @property
    def where(self) -> str:
        """Where it lies, as ``stoker verify`` writes it: for a record with its number and its name."""
        return format_where(self.path, self.record, source=self.source)


@dataclass(frozen=True, slots=True)
class AuditedSplit:
    """The images of one split.

    Attributes:
        images: Number of images.
        size_bytes: Bytes of those that can be read.
        unreadable: Number of those that cannot be read.
        mean: Mean of red, green and blue, 0 to 1, as ``stoker.Output(mean=)`` takes it. Every image counts the same,
            whatever its size, as it does in training.
        std: The standard deviation around ``mean``, as ``stoker.Output(std=)`` takes it.
    """

    images: int
    size_bytes: int
    unreadable: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Images that are the same; all but the first could be removed.

    Attributes:
        how: ``bytes``: their files are equal. ``pixels``: their sizes and RGB pixels are equal. ``near``: they show
            nearly the same, perhaps mirrored; each is at most the requested distance from another of the group.
        images: The images, by split, then by number. Of images that are the same in a stricter sense, only the first.
        splits: Their splits; if there are several, images of one leak into another.
        labels: Their classes; if there are several, at least one is wrong.
    """

    how: str
    images: tuple[AuditedImage, ...]
    splits: tuple[str, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found.

    Attributes:
        path: What was audited.
        splits: The splits by name.
        classes: How often each class occurs.
        formats: Numbers of readable images by format, mode (``L``, ``LA``, ``RGB``, ``RGBA``, ``I;16``, ``CMYK``), bits
            of a channel and EXIF orientation: ``{"format": {"jpeg": 10}, "mode": ..., "bits": ..., ...}``.
        sizes: The smallest, the median and the largest ``width``, ``height`` and ``aspect`` (width / height).
        duplicates: Groups of images that are the same.
        findings: Images by what is odd about them: ``unreadable``, ``dark``, ``bright``, ``flat``, ``turned``
            (by an EXIF orientation), ``animated``, ``alpha``, ``deep`` (more than 8 bits), ``box outside`` and
            ``box empty``. Only findings that occur.
        extremes: The ten most extreme images of each kind, in order: ``darkest``, ``brightest``, ``flattest``,
            ``smallest``, ``largest``, ``narrowest`` and ``widest``.
        distance: Number of the 64 bits in which near duplicates may differ.
        resumed: Number of images that an earlier run had measured.
        seconds: How long it took.
    """

    path: str
    splits: Mapping[str, AuditedSplit]
    classes: tuple[ClassCount, ...]
    formats: Mapping[str, Mapping[str, int]]
    sizes: Mapping[str, tuple[float, float, float]]
    duplicates: tuple[DuplicateGroup, ...]
    findings: Mapping[str, tuple[AuditedImage, ...]]
    extremes: Mapping[str, tuple[AuditedImage, ...]]
    distance: int
    resumed: int
    seconds: float

    @property
    def images(self) -> int:
        """Number of images in all splits."""
        return sum(split.images for split in self.splits.values())

    @property
    def leaks(self) -> tuple[DuplicateGroup, ...]:
        """Groups of duplicates that lie in several splits."""
        return tuple(group for group in self.duplicates if len(group.splits) > 1)


def audit(  # noqa: PLR0913 - settings by name
    path: str | os.PathLike[str],
    *,
    distance: int = DEFAULT_DISTANCE,
    threads: int | None = None,
    resume: str | os.PathLike[str] | None = None,
    keys: RecordKeys | None = None,
    progress: Progress | None = None,
    # settings: sources.options.SourceOptions
    labels: LocationLike | None = None,
    validation_labels: LocationLike | None = None,
    imagenet_labels: bool | None = None,
    class_names: LocationLike | None = None,
    boxes: LocationLike | None = None,
    masks: bool = False,
    image_column: str | None = None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    split_column: str | None = None,
    columns: str | Sequence[str] | None = None,
    separator: str | None = None,
    image_root: LocationLike | None = None,
    # end of settings
    **unknown: Never,
) -> AuditReport:
    """Measure every image of a dataset before something is trained on it.

    Finds duplicates within and between splits, the statistics that normalisation needs, and images that are damaged,
    dark, flat, turned, or otherwise odd. Memory: the findings, and 99 bytes an image, which lie in a temporary file for
    more than a million images.

    Args:
        path: What `stoker.open` opens: images, a dataset, TFRecords; all of its splits.
        distance: Number of the 64 bits of a hash in which near duplicates may differ, 0 to 11; only few of them may be
            strong in both. A smaller number finds fewer cropped copies, and fewer pairs that are no duplicates.
        threads: Images measured at a time. Default: one per CPU.
        resume: A file to keep measures in, from which an interrupted run resumes. The images must be the same.
        keys: Keys of TFRecords of other origin, as far as they are not found from the first record.
        progress: Called after every few images.
        labels: List of the classes in the order of their labels, or ``"imagenet"``: its 1,000. Default: folders,
            sorted.
        validation_labels: Classes of flat validation images: a list, or ImageNet's devkit. Default: searched for.
        imagenet_labels: Whether classes that are all among ImageNet's 1,000 have its labels, also where some are
            missing. Default: as the preset has it, otherwise not, with a warning.
        class_names: List with a text for each class: class, tab and text on each line. Default: imagenet_metadata.txt.
        boxes: Annotations: folder or tar of XML files, or CSV. Default: searched for.
        masks: Whether records have the field ``mask``: objects of a COCO file or YOLO's polygons, drawn with
            ``stoker[coco]``, or VOC's masks.
        image_column: Column of a table that names the images, or has them. Default: found.
        label_column: Column of the classes or of numbers to predict; several, with commas, of 0 and 1; ``"none"``.
            Default: found.
        label_separator: What stands between several classes in a cell of ``label_column``; ``"none"``: each is one.
            Default: found.
        split_column: Column that says which rows are train, validation and test. Default: found.
        columns: Which other columns of a table become fields, with commas between them; ``"none"``. Default: all.
        separator: What stands between the columns of a table: comma, semicolon, tab or bar. Default: found.
        image_root: Folder that the names of images in a table, a list or a COCO file are relative to. Default: found.
        unknown: Nothing; arguments of other libraries are refused with what to use instead.

    Raises:
        ConfigError: A value is out of range, or ``resume`` is a file of other images.
        DatasetNotFoundError: There is no dataset at ``path``.
        StokerError: The dataset as a whole cannot be opened.
        OSError: The store cannot be reached, or a file cannot be written.
    """
    refuse_unknown("stoker.audit", unknown, locals(), AUDITING)
    splits = open_splits(path, keys, SourceOptions.among(locals()))
    return audit_splits(str(path), splits, distance, threads, None if resume is None else Path(resume), progress)


def audit_splits(
    path: str,
    splits: Mapping[str, Dataset],
    distance: int,
    threads: int | None,
    resume: Path | None,
    progress: Progress | None,
) -> AuditReport:
    """Audit splits that are open already; see `audit`."""
    started = time.monotonic()
    check_range(option("distance"), distance, 0, MAX_DISTANCE)
    threads = available_cpus() if threads is None else check_range(option("threads"), threads, 1, 4096)
    images = _Images(splits)
    at_once = max(threads, _AT_ONCE_REMOTE) if images.is_remote else threads
    identity = " ".join(dataset.identity for dataset in splits.values())
    measured = measure_all(len(images), images.load, at_once, progress, resume, identity)
    duplicates = exact_duplicates(measured, images.load)
    duplicates += near_duplicates(measured, duplicates, distance, threads)
    findings, extremes = _findings(measured), _extremes(measured)
    reported = [some for some, _ in (*findings.values(), *extremes.values())]
    reported += [np.array(group.rows) for group in duplicates]
    images.describe(np.unique(np.concatenate(reported)), measured.problems, at_once)
    return AuditReport(
        path=path,
        splits={name: _split(measured.rows[images.rows_of(name)]) for name in images.splits},
        classes=counted_classes(splits, {name: label_counts(dataset) for name, dataset in splits.items()}),
        formats=_formats(measured),
        sizes=_sizes(measured),
        duplicates=tuple(_group(images, measured.rows, group) for group in duplicates),
        findings={name: images.of_finding(some) for name, some in findings.items() if len(some[0])},
        extremes={name: images.of_finding(some) for name, some in extremes.items()},
        distance=distance,
        resumed=measured.resumed,
        seconds=time.monotonic() - started,
    )


class _Images(Splits):
    """The images of all splits, one after another: the rows of a table."""

    def __init__(self, splits: Mapping[str, Dataset]) -> None:
        super().__init__(splits)
        self._described: dict[int, AuditedImage] = {}

    def load(self, row: int) -> tuple[bytes | NDArray[Any], Sequence[Box], int]:
        """Return the file or the pixels of an image, its boxes, and the flaws of boxes that were dropped or clipped."""
        sample, (dataset, index) = self._sample(row), self.locate(row)
        data = sample.decode() if sample.schema.image_encoding == "raw" else sample.encoded
        return data, sample.boxes, dataset.reader.flaws_of_boxes(int(dataset.numbers[index]))

    def describe(self, rows: NDArray[np.int64], problems: Mapping[int, str], threads: int) -> None:
        """Read the names of these images from their records and archives, each once."""

        def described(row: int) -> AuditedImage:
            dataset, index = self.locate(row)
            path, record, offset = dataset.records.where(index)
            try:
                source = self._sample(row).source if record >= 0 or offset else ""
            except DATA_ERRORS:
                source = ""
            number, label = None if record < 0 else record, int(dataset.labels[index])
            return AuditedImage(path, number, source, dataset.split, index, label, problem=problems.get(row, ""))

        with stoppable_pool(threads, "stoker-names", only_reads=True) as pool:
            for first in range(0, len(rows), _NAMES_AT_ONCE):
                some = rows[first : first + _NAMES_AT_ONCE].tolist()
                self._described.update(zip(some, pool.map(described, some), strict=True))

    def _sample(self, row: int) -> Sample:
        dataset, index = self.locate(row)
        try:
            return dataset[index]
        except OSError as error:
            if isinstance(error, StorageError) or is_machine_error(error):
                raise
            raise SourceError(f"the file cannot be read: {error.strerror or error}") from error

    def image(self, row: int, value: float | None = None) -> AuditedImage:
        return replace(self._described[row], value=value)

    def of_finding(self, finding: FindingRows) -> tuple[AuditedImage, ...]:
        rows, values = finding
        numbers = [None] * len(rows) if values is None else [float(values[row]) for row in rows.tolist()]
        return tuple(map(self.image, rows.tolist(), numbers))


def _channels(rows: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]]:
    """Yield rows of readable images, the means of their channels, and the means of the squares of the channels."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[first : first + _ROWS_AT_ONCE]
        numbers = np.flatnonzero(part["format"] != UNREADABLE)
        some = part[numbers]
        areas = (some["width"].astype(np.float64) * some["height"])[:, None]
        yield first + numbers, some["sums"] / areas, some["squares"] / areas


def _split(rows: NDArray[Any]) -> AuditedSplit:
    count, mean, square = 0, np.zeros(3), np.zeros(3)
    for numbers, means, squares in _channels(rows):  # every image counts the same
        count, mean, square = count + len(numbers), mean + means.sum(0), square + squares.sum(0)
    mean, square = mean / max(1, count), square / max(1, count)
    std = np.sqrt(np.maximum(0.0, square - mean**2))
    size_bytes = int(rows["size"].sum(dtype=np.int64))
    return AuditedSplit(len(rows), size_bytes, len(rows) - count, _fractions(mean), _fractions(std))


def _fractions(values: NDArray[np.float64]) -> tuple[float, float, float]:
    red, green, blue = (round(value / 255, 6) for value in values.tolist())
    return red, green, blue


def _formats(measured: Measurements) -> dict[str, dict[str, int]]:
    names: dict[str, Sequence[object]] = {
        "format": FORMAT_NAMES,
        "mode": MODE_NAMES,
        "bits": range(2**8),
        "orientation": range(2**8),
    }
    columns = {column: measured.rows[column][measured.readable] for column in names}
    counts = {name: Counter(dict(enumerate(np.bincount(column).tolist()))) for name, column in columns.items()}
    return {
        column: {str(known[value]): count for value, count in (+counts[column]).most_common()}
        for column, known in names.items()
    }


def _sizes(measured: Measurements) -> dict[str, tuple[float, float, float]]:
    width, height = (measured.rows[column][measured.readable] for column in ("width", "height"))
    return {
        name: (float(column.min()), float(np.median(column)), float(column.max()))
        for name, column in (("width", width), ("height", height), ("aspect", width / height))
        if len(column)
    }


def _group(images: _Images, rows: NDArray[Any], group: Duplicates) -> DuplicateGroup:
    apart = distances(rows["hash"][list(group.rows)]) if group.how == "near" else [None] * len(group.rows)
    members = tuple(map(images.image, group.rows, apart))
    splits = dict.fromkeys(image.split for image in members)
    return DuplicateGroup(group.how, members, tuple(splits), tuple(sorted({image.label for image in members})))


def _findings(measured: Measurements) -> dict[str, FindingRows]:
    rows, bright = measured.rows, measured.brightness
    has_alpha = np.isin(rows["mode"], [MODE_NAMES.index(mode) for mode in ("LA", "RGBA")])
    marked: dict[str, tuple[NDArray[np.bool_], NDArray[Any] | None]] = {
        "unreadable": (rows["format"] == UNREADABLE, None),
        "dark": (bright < _DARK, bright),
        "bright": (bright > _BRIGHT, bright),
        "flat": (measured.contrast < FLAT, measured.contrast),
        "turned": (rows["orientation"] > 1, rows["orientation"]),
        "animated": (rows["animated"], None),
        "alpha": (has_alpha, None),
        "deep": (rows["bits"] > _USUAL_BITS, rows["bits"]),
        "box outside": (rows["outside"], None),
        "box empty": (rows["empty"], None),
    }
    return {name: (np.flatnonzero(mask), values) for name, (mask, values) in marked.items()}


def _extremes(measured: Measurements) -> dict[str, FindingRows]:
    readable, width, height = measured.readable, measured.rows["width"].astype(np.float64), measured.rows["height"]
    with np.errstate(invalid="ignore"):  # of unreadable images
        aspects = width / height
    columns = {
        "darkest": (measured.brightness, 1),
        "brightest": (measured.brightness, -1),
        "flattest": (measured.contrast, 1),
        "smallest": (width * height, 1),
        "largest": (width * height, -1),
        "narrowest": (aspects, 1),
        "widest": (aspects, -1),
    }
    return {
        name: (readable[np.argsort(sign * values[readable], kind="stable")[:_EXTREMES]], values)
        for name, (values, sign) in columns.items()
    }


# The table: what is measured of each image.

Load: TypeAlias = "Callable[[int], tuple[bytes | NDArray[Any], Sequence[Box], int]]"
"""Returns the file or the pixels of an image, its boxes, and flaws of boxes left out; called in any thread."""

FORMAT_NAMES = ("", "unreadable", "pixels", "jpeg", *sorted(FORMATS))
"""Names for the numbers in the column ``format``; 0 means not measured yet."""

MODE_NAMES = ("", "L", "LA", "RGB", "RGBA", "I;16", "CMYK")
"""Names for the numbers in the column ``mode``: the channels of the stored image."""

MEASURES = np.dtype(
    [
        ("digest", "V16"),  # of `stoker.sources.image_digest`
        ("hash", "<u8"),
        ("strong", "<u8"),
        ("sums", "<u8", 3),  # of its pixels in RGB
        ("squares", "<u8", 3),
        ("width", "<u4"),
        ("height", "<u4"),
        ("size", "<u4"),  # in bytes; at most 2**32 - 1
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
_RECIPE = Recipe()

_BLOCK_ROWS = 1024  # the most rows that are measured again after a kill
_PART_ROWS = 8
_MAGIC = "stoker measures 3"
_MAX_HEAD_BYTES = 4096
_BLOCK = struct.Struct("<II")  # length of the rest of the block, and its checksum
_FIRST = struct.Struct("<Q")


def measure(data: bytes | NDArray[Any], boxes: Sequence[Box] = (), flaws: int = 0) -> tuple[Any, ...]:
    """Decode all of an image, a file or pixels (H, W, 3), and return its row of `MEASURES`."""
    flaws = reduce(or_, map(_flaws, boxes), flaws)
    if not isinstance(data, bytes):
        pixels = np.ascontiguousarray(data)
        width, height, sums, squares, image_hash, strong = _native.measure_pixels(pixels)
        kind, mode, bits, turned, animated, size = "pixels", "RGB", 8, 1, False, pixels.nbytes
    else:
        kind, size = sniff(data), len(data)
        if kind not in FORMATS and kind != "jpeg":
            raise ImageError(not_an_image(kind, data))
        if kind in NATIVE_FORMATS:
            width, height, sums, squares, image_hash, strong = _native.measure_image(data, MAX_PIXELS)
            turned = orientation(data, kind)
        else:
            pixels, turned = decode_with_pillow(data, kind, _RECIPE.check_pixels)
            width, height, sums, squares, image_hash, strong = _native.measure_pixels(pixels)
        mode, bits, animated = own_mode(data, kind), bits_of(data, kind), is_animated(data, kind)
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
        bool(flaws & OUTSIDE),
        bool(flaws & EMPTY),
    )


def _flaws(box: Box) -> int:
    """Return as flags whether a box leaves the image, and whether it has no area."""
    is_empty = not (box.xmin < box.xmax and box.ymin < box.ymax)
    return flaws_of((box.xmin, box.xmax), (box.ymin, box.ymax)) | (EMPTY if is_empty else 0)


@dataclass(frozen=True, eq=False)
class Measurements:
    """The measures of many images."""

    rows: NDArray[Any]  # `MEASURES` (N,): in memory, or of more than a million images in a scratch file, 99 bytes each
    problems: dict[int, str] = field(default_factory=dict)  # why images cannot be read, by row
    resumed: int = 0  # rows that an earlier run had measured

    @cached_property
    def readable(self) -> NDArray[np.int64]:
        """The rows of images that were measured, ascending."""
        return np.flatnonzero(self.rows["format"] != UNREADABLE)

    @cached_property
    def brightness(self) -> NDArray[np.float32]:
        """Mean of each image, 0 to 255, float32 (N,); NaN where it is unreadable."""
        values = np.full(len(self.rows), np.nan, np.float32)
        for numbers, means, _ in _channels(self.rows):
            values[numbers] = means.mean(1)
        return values

    @cached_property
    def contrast(self) -> NDArray[np.float32]:
        """Standard deviation of each image, each channel around its own mean; the form is that of `brightness`."""
        values = np.full(len(self.rows), np.nan, np.float32)
        for numbers, means, squares in _channels(self.rows):
            values[numbers] = np.sqrt(np.maximum(0.0, squares - means**2).mean(1))
        return values


def measure_all(
    count: int,
    load: Load,
    threads: int,
    progress: Progress | None = None,
    file: Path | None = None,
    identity: str = "",
) -> Measurements:
    """Measure images; an image that cannot be read is a problem in the result, and does not end the run.

    Memory: the table, and a few images for each thread. ``load`` is called in any thread. Measures are kept in
    ``file``, from which a later run resumes if ``identity``, which identifies the images, is the same.
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
            parts = [block[first : first + _PART_ROWS] for first in range(0, len(block), _PART_ROWS)]
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
    """Yield runs of consecutive rows, of at most `_BLOCK_ROWS` each."""
    for run in np.split(rows, np.flatnonzero(np.diff(rows) != 1) + 1):
        for first in range(0, len(run), _BLOCK_ROWS):
            yield run[first : first + _BLOCK_ROWS].tolist()


def _measure(load: Load, row: int) -> tuple[Any, ...] | str:
    try:
        return measure(*load(row))
    except DATA_ERRORS as error:
        return str(error)


@contextlib.contextmanager
def _open_journal(path: Path, identity: str, count: int) -> Iterator[IO[bytes]]:
    """Open and lock the file of measures for one run; a new file gets its first line."""
    head = json.dumps({"format": _MAGIC, "images": count, "identity": identity}).encode() + b"\n"
    with path.open("a+b", buffering=0) as file:
        try:
            lock_alone(file.fileno(), path)
        except BlockingIOError:
            busy = f"another audit writes to {path}; wait for it, or name another file with {option('resume')}"
            raise ConfigError(busy) from None
        file.seek(0)
        existing = file.readline(_MAX_HEAD_BYTES)
        if existing and existing != head:
            other = "measures of other images, of these before they changed, or of another version of Stoker"
            what = other if _MAGIC.rstrip("0123456789").encode() in existing else "something else than measures"
            raise ConfigError(f"{path} holds {what}; name another file with {option('resume')}, or remove it")
        if not existing:
            file.write(head)
        yield file


def _resume(file: IO[bytes], rows: NDArray[Any]) -> None:
    """Read into ``rows`` what was measured, and cut off the file at the first damaged block."""
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
"""Images with a standard deviation below this, of 0 to 255, show too little for hashes to tell them apart."""


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Images that are the same, as in `stoker.DuplicateGroup`."""

    how: Sameness
    rows: tuple[int, ...]  # ascending; of images that are the same in a stricter sense only the first


def exact_duplicates(measured: Measurements, load: Load) -> list[Duplicates]:
    """Return groups of images with the same bytes or the same pixels, sorted by their first images.

    Images of the same size, sums and hash are decoded once more to compare their pixels.
    """
    rows, readable, digests = measured.rows, measured.readable, measured.rows["digest"]
    equal = _groups(readable, digests[readable].view("<u8")[::2], lambda row: digests[row].tobytes())
    firsts = _without_copies(readable, equal)
    alike = _groups(firsts, rows["hash"][firsts], partial(_pixel_measures, rows), partial(_pixel_digest, load))
    groups = [*(Duplicates("bytes", group) for group in equal), *(Duplicates("pixels", group) for group in alike)]
    return sorted(groups, key=lambda group: group.rows[0])


def near_duplicates(
    measured: Measurements, exact: Iterable[Duplicates], distance: int, threads: int
) -> list[Duplicates]:
    """Return groups of images with nearly the same content, also mirrored, sorted by their first images.

    The images of a group are linked by pairs whose hashes differ in at most ``distance`` bits. Flat images are left
    out, and so are ``exact`` duplicates except the first of each group.
    """
    firsts = _without_copies(np.flatnonzero(measured.contrast >= FLAT), [group.rows for group in exact])
    pairs = np.stack([measured.rows["hash"][firsts], measured.rows["strong"][firsts]], 1)
    pairs, inverse = np.unique(pairs, axis=0, return_inverse=True)
    hashes, strong = np.ascontiguousarray(pairs.T)
    clusters = _native.near_hashes(hashes, strong, distance, mirrored=True, threads=threads)
    return [Duplicates("near", group) for group in _groups(firsts, clusters[inverse.ravel()])]


def distances(hashes: NDArray[np.uint64]) -> list[int]:
    """Return the numbers of bits in which hashes differ from the first, or from its mirror image if that is nearer."""
    first, *others = hashes.tolist()
    return [0, *(min((first ^ other ^ bits).bit_count() for bits in (0, _native.MIRRORED_BITS)) for other in others)]


def _without_copies(rows: NDArray[np.int64], groups: Iterable[Sequence[int]]) -> NDArray[np.int64]:
    copies = [row for group in groups for row in group[1:]]
    return rows[~np.isin(rows, copies)] if copies else rows


def _groups(rows: NDArray[np.int64], keys: NDArray[Any], *further: Callable[[int], object]) -> list[tuple[int, ...]]:
    """Return groups of rows with equal keys and equal ``further`` keys, ascending, sorted by their first rows."""
    order = np.argsort(keys, kind="stable")
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(keys[order]) != 0) + 1, [len(rows)]])
    several = np.flatnonzero(np.diff(bounds) > 1).tolist()
    groups = [np.sort(rows[order[bounds[at] : bounds[at + 1]]]).tolist() for at in several]
    for key_of in further:
        same: dict[tuple[int, object], list[int]] = {}
        for number, group in enumerate(groups):
            for row in group:
                same.setdefault((number, key_of(row)), []).append(row)
        groups = [members for members in same.values() if len(members) > 1]
    return sorted(map(tuple, groups))


def _pixel_measures(rows: NDArray[Any], row: int) -> bytes:
    return b"".join(rows[column][row].tobytes() for column in ("width", "height", "sums", "squares"))


def _pixel_digest(load: Load, row: int) -> bytes:
    """Return a digest of the pixels of an image; a unique value if it can no longer be read."""
    try:
        data, *_ = load(row)
        return image_digest(decode(data, MAX_PIXELS) if isinstance(data, bytes) else data)
    except DATA_ERRORS:
        return b"row %d" % row
