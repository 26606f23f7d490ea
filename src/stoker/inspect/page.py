"""Self-contained HTML pages about a dataset, an audit or a benchmark: what they show, and how it is drawn.

They are rendered by jinja2, which the extra ``report`` installs.

Raises:
    ConfigError: On import: jinja2 is not installed.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL.JpegImagePlugin import JpegImageFile

from stoker import _native
from stoker.config import available_cpus, check_range, format_count, format_seconds, format_size
from stoker.errors import ConfigError, ImageError, ImageTooLargeError, SourceError, StokerError, format_where
from stoker.format import REJECTS_NAME, read_rejects
from stoker.inspect.info import DEFAULT_RECORDS, Splits, counted_classes, label_counts
from stoker.loader import class_title, data_uri, displayable, fit, open_splits, texts_of, usable_boxes
from stoker.order import random_sample
from stoker.progress import Tally
from stoker.recipe import NATIVE_FORMATS, QuietPillow, Recipe, check, decode_with_pillow, dimensions, sniff
from stoker.storage import location, stoppable_pool
from stoker.types import Reject

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
except ModuleNotFoundError as error:
    message = f"no module {error.name!r}, which is needed to draw pages; run pip install 'stoker[report]'"
    raise ConfigError(message) from error

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray
    from PIL import Image

    from stoker.format import Manifest, RecordKeys
    from stoker.inspect.auditing import AuditedImage, AuditReport
    from stoker.inspect.bench import BenchReport
    from stoker.inspect.info import ClassCount
    from stoker.loader import Dataset, Sample
    from stoker.sources import SourceOptions
    from stoker.storage import Location
    from stoker.types import Progress, SchemaInfo

    Find = Callable[[str], Location]

Kind = Literal["dataset", "records", "files"]

_STRIP = 18  # pictures of samples
_GALLERY = 24  # pictures of rejects
_SEED = 17
_AT_ONCE_REMOTE = 16
_BATCH = 64
_SIDE = 280  # pixels; pages show pictures at half that size, so that they are sharp on dense screens
_END_OF_IMAGE = b"\xff\xd9"
_MAX_FILE_BYTES = 2**28
_MAX_PIXELS = 2**27
_QUOTED = re.compile(r"'[^']*'")
_NUMBER = re.compile(r"\b(?:\d[\d,.]*\d|\d)")
_NAMES = {"webp": "WebP", "jpeg2000": "JPEG 2000"}  # of other formats the word in capitals

_GROUPS, _SIDE_BY_SIDE = 60, 6
_OF_FINDING = 24
_CLASSES, _OF_CLASS = 60, 6
_MEANINGS = {
    "unreadable": "They cannot be decoded.",
    "dark": "Their mean is below 20 of 255.",
    "bright": "Their mean is above 235 of 255.",
    "flat": "The standard deviation of their pixels is below 4 of 255.",
    "turned": "An EXIF orientation turns or mirrors them; pictures and boxes are shown as they are stored.",
    "animated": "Only their first frame is read.",
    "alpha": "They have an alpha channel, which mode RGB drops.",
    "deep": "They have more than 8 bits a channel.",
    "box outside": "A box leaves the image.",
    "box empty": "A box has no area.",
}


# A portrait of a dataset.


@dataclass(frozen=True, slots=True)
class SplitPortrait:
    """What a page shows of one split."""

    samples: int  # how many it has
    size_bytes: int  # length of its shards or files
    shard_bytes: tuple[int, ...]  # length of each shard, in their order; empty where samples are files
    rejects: int | None  # source items that are not in it; None where that is not recorded


@dataclass(frozen=True, slots=True)
class SampleHeader:
    """What is known about a sample that was looked at."""

    split: str
    index: int  # its number in the split
    label: int = -1  # its class; -1 for none
    width: int = 0  # pixels a row; 0 where it is unreadable
    height: int = 0
    size_bytes: int = 0  # of its image
    kind: str = ""  # kind of the image, such as ``JPEG 4:2:0``
    source: str = ""  # name of its source image, or where an unreadable sample lies; empty if unknown
    problem: str = ""  # why it is unreadable; empty if it is not


@dataclass(frozen=True, slots=True)
class Measured:
    """What the headers of samples say."""

    seen: tuple[SampleHeader, ...]  # all samples that were looked at, in a random order
    whole: bool  # whether ``seen`` are all samples

    @property
    def readable(self) -> tuple[SampleHeader, ...]:
        """The samples without a problem."""
        return tuple(header for header in self.seen if not header.problem)

    def column(self, name: str) -> NDArray[np.float64]:
        """Return one number of each readable sample: ``width``, ``height`` or ``size_bytes``."""
        return np.array([getattr(header, name) for header in self.readable], np.float64)

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """Kinds of images with their counts, the most frequent first."""
        return Counter(header.kind for header in self.readable).most_common()


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A small picture."""

    title: str  # what it shows, in a few words
    details: tuple[str, ...]  # more about it, a line each
    uri: str = ""  # the picture, as a ``data:`` URI; empty where there is none
    problem: str = ""  # why there is no picture


@dataclass(frozen=True, slots=True)
class Rejects:
    """What is not in a dataset, or cannot be read."""

    total: int = 0
    of: int = 0  # items that were looked at: those of the source, or the samples that were drawn
    reasons: tuple[tuple[str, int], ...] = ()  # reasons, with ``N`` for numbers, and their counts
    gallery: tuple[Thumbnail, ...] = ()


@dataclass(frozen=True, slots=True)
class Portrait:
    """What a page about a dataset shows."""

    path: str  # as the user named it
    kind: Kind  # what ``stoker build`` made, other TFRecords, or image files
    splits: Mapping[str, SplitPortrait]
    manifest: Manifest | None  # what the build recorded; None for what Stoker did not build
    schema: SchemaInfo  # which features hold what
    classes: tuple[ClassCount, ...]  # how often each class occurs
    counted: int  # samples that ``classes`` counts: all of them, or those that were looked at
    unlabelled: int  # of these, how many have no class
    measured: Measured  # what the headers of random samples say
    strip: tuple[Thumbnail, ...]  # some of the samples
    rejects: Rejects  # what is not in the dataset, or cannot be read

    @property
    def samples(self) -> int:
        """Samples of all splits."""
        return sum(split.samples for split in self.splits.values())

    @property
    def size_bytes(self) -> int:
        """Bytes of all splits."""
        return sum(split.size_bytes for split in self.splits.values())


def dataset_portrait(
    path: str | os.PathLike[str],
    samples: int = DEFAULT_RECORDS,
    source: str | None = None,
    progress: Progress | None = None,
    *,
    keys: RecordKeys | None = None,
    options: SourceOptions | None = None,
) -> Portrait:
    """Describe a dataset by its manifest, and by the headers of random samples, or of all samples if it is small.

    Memory: a few images at a time, and the thumbnails. A sample that cannot be read is counted and named. Rejects are
    shown as far as they are still in ``source``, which the dataset was built from.
    """
    check_range("samples", samples, 1, 2**24)
    splits = open_splits(path, keys, options)
    some = next(iter(splits.values()))
    measured = _measure(Splits(splits), samples, progress)
    counts: Mapping[str, Mapping[int, int]]
    if any(dataset.manifest is None and dataset.shards for dataset in splits.values()):  # counting all would read all
        counts = {name: Counter(header.label for header in measured.seen if header.split == name) for name in splits}
    else:
        counts = {name: label_counts(dataset) for name, dataset in splits.items()}
    manifest = some.manifest
    if manifest is None:
        root, unreadable = location(path), [header for header in measured.seen if header.problem]
        named = [Reject(header.source.removeprefix(f"{root}/"), header.split, header.problem) for header in unreadable]
        rejects = _rejects(named, len(measured.seen), None if some.shards else lambda key: root / key)
    else:
        find = None if source is None else partial(_below, location(source))
        rejected = read_rejects(path, manifest.files.get(REJECTS_NAME))
        rejects = _rejects(rejected, manifest.source.items, find)
    return Portrait(
        path=str(path),
        kind="dataset" if manifest else "records" if some.shards else "files",
        splits={name: _split(dataset) for name, dataset in splits.items()},
        manifest=manifest,
        schema=some.schema,
        classes=counted_classes(splits, counts),
        counted=sum(sum(by_label.values()) for by_label in counts.values()),
        unlabelled=sum(by_label.get(-1, 0) for by_label in counts.values()),
        measured=measured,
        strip=tuple(thumbnail(splits[header.split], header) for header in measured.readable[:_STRIP]),
        rejects=rejects,
    )


def _split(dataset: Dataset) -> SplitPortrait:
    recorded = None if dataset.manifest is None else dataset.manifest.splits[dataset.split]
    shards = dataset.shards if recorded is None else recorded.shards
    return SplitPortrait(
        samples=len(dataset),
        size_bytes=dataset.size_bytes if recorded is None else recorded.size_bytes,
        shard_bytes=tuple(shard.size_bytes for shard in shards),
        rejects=None if recorded is None else recorded.rejects,
    )


# Random samples.


def _measure(splits: Splits, most: int, progress: Progress | None) -> Measured:
    """Read the headers of random samples in parallel, or of all if they are few; unreadable samples have a problem."""
    numbers = random_sample(most, len(splits), _SEED).tolist()
    threads = _AT_ONCE_REMOTE if splits.is_remote else available_cpus()
    seen: list[SampleHeader] = []
    tally = Tally(len(numbers), progress)
    with stoppable_pool(threads, "stoker-look", only_reads=True) as pool:
        for first in range(0, len(numbers), _BATCH):
            seen += pool.map(lambda number: _look(*splits.locate(number)), numbers[first : first + _BATCH])
            some = seen[first:]
            read, bad = sum(header.size_bytes for header in some), sum(bool(header.problem) for header in some)
            tally.advanced(len(some), read, bad)
    return Measured(tuple(seen), whole=len(numbers) == len(splits))


def _look(dataset: Dataset, index: int) -> SampleHeader:
    split = dataset.split
    try:
        sample = dataset[index]
        width, height, kind = _header(sample)
    except (StokerError, OSError) as error:
        where = format_where(*dataset.records.where(index))
        return SampleHeader(split, index, source=where, problem=str(error))
    return SampleHeader(split, index, sample.label, width, height, len(sample.encoded), kind, sample.source)


def _header(sample: Sample) -> tuple[int, int, str]:
    if sample.schema.image_encoding == "raw":
        height, width = sample.decode().shape[:2]
        return width, height, "raw pixels"
    kind = sniff(sample.encoded)
    if kind != "jpeg":
        if kind in NATIVE_FORMATS:
            check(sample.encoded, Recipe())
        return *dimensions(sample.encoded, kind), _NAMES.get(kind, kind.upper())
    info = _native.check_jpeg(sample.encoded)
    words = ["progressive"] * info.progressive + ["with restart markers"] * bool(info.restart_interval)
    color = {"grey": "grey", "ycbcr": info.subsampling}.get(info.color, info.color.upper())
    return info.width, info.height, ", ".join([f"JPEG {color}", *words])


def thumbnail(dataset: Dataset, header: SampleHeader) -> Thumbnail:
    """Return a small picture of a sample; one that cannot be decoded says why."""
    title = class_title(dataset.classes, header.label)
    name, extent = f"{header.split} #{header.index}", f"{header.width} \N{MULTIPLICATION SIGN} {header.height}"
    try:
        sample = dataset[header.index]
        picture = sample.thumbnail(_SIDE, classes=dataset.classes)
        boxes = len(usable_boxes(sample.boxes))
        texts = texts_of(sample)
    except (StokerError, OSError) as error:
        return Thumbnail(title, (name, extent), problem=str(error))
    extent += f" · {format_count(boxes, 'box')}" * bool(boxes)
    return Thumbnail(title, (name, extent, *texts), data_uri(picture))


# Rejects.


def _below(root: Location, key: str) -> Location:
    """Return the path of a name from ``rejects.jsonl``, which is not trusted to lie in the source."""
    name, path = PurePosixPath(key), root / key
    if name.is_absolute() or ".." in name.parts or not path.lies_in(root):
        raise SourceError("lies outside of the source")
    return path


def _rejects(rejects: Sequence[Reject], of: int, find: Find | None) -> Rejects:
    reasons = Counter(_reason(reject) for reject in rejects)
    with stoppable_pool(available_cpus(), "stoker-rejects", only_reads=True) as pool:
        gallery = tuple(pool.map(partial(_reject_thumbnail, find=find), _varied(rejects)))
    return Rejects(len(rejects), of, tuple(reasons.most_common()), gallery)


def _reason(reject: Reject) -> str:
    """Return the reason without what differs from file to file: its name, numbers, and what is quoted from it."""
    return _NUMBER.sub("N", _QUOTED.sub("'...'", reject.reason.replace(reject.key, "the file")))


def _varied(rejects: Sequence[Reject]) -> list[Reject]:
    """Return some of the rejects, about as many for every reason, in the order in which they are listed."""
    groups: dict[str, list[int]] = {}
    for position, reject in enumerate(rejects):
        groups.setdefault(_reason(reject), []).append(position)
    turns = sorted((turn, position) for positions in groups.values() for turn, position in enumerate(positions))
    return [rejects[position] for position in sorted(position for _, position in turns[:_GALLERY])]


def _reject_thumbnail(reject: Reject, find: Find | None) -> Thumbnail:
    uri = problem = ""
    if find is not None:
        try:
            file = find(reject.key)
            if not file.is_file():
                problem = "no longer there"
            elif file.size() > _MAX_FILE_BYTES:
                problem = "too large to show"
            else:
                uri = data_uri(partial_picture(file.read_bytes()))
        except (StokerError, OSError, ValueError) as error:
            problem = str(error)
    return Thumbnail(reject.key, (reject.reason,), uri, problem)


def partial_picture(data: bytes) -> Image.Image:
    """Return what can be seen of a file that was rejected; of a JPEG that is cut short, the part that is there."""
    kind = sniff(data)
    if kind in ("empty", "text", "unknown", "pdf"):
        raise ImageError({"empty": "an empty file", "text": "a text file"}.get(kind, f"not a picture: {kind}"))
    if kind != "jpeg":
        pixels, _ = decode_with_pillow(data, kind, _check_pixels)
        return fit(pixels, _SIDE, _SIDE)
    try:
        with QuietPillow(), JpegImageFile(io.BytesIO(data + _END_OF_IMAGE)) as image:
            _check_pixels(*image.size)
            image.draft("RGB", (2 * _SIDE, 2 * _SIDE))
            picture = image.convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise ImageError(f"cannot be decoded: {error}") from error
    picture.thumbnail((_SIDE, _SIDE))
    return picture


def _check_pixels(width: int, height: int) -> None:
    if width * height > _MAX_PIXELS:
        raise ImageTooLargeError(f"{width} x {height} pixels are too many to show")


# An audit: images of its findings, duplicates side by side, some of each class.


@dataclass(frozen=True, slots=True)
class Album:
    """Pictures of one part of the page."""

    title: str  # what they have in common
    note: str  # what that means; empty where the title says it
    total: int
    pictures: tuple[Thumbnail, ...]  # the first of them


def audit_albums(report: AuditReport, splits: Mapping[str, Dataset]) -> dict[str, tuple[Album, ...]]:
    """Return the images of an audit by the parts of its page: duplicates, findings, extremes, classes.

    Each group of duplicates has an album, those across splits and of several classes first. Of many classes, the most
    and the least frequent are shown.
    """

    def pictures(images: Iterable[AuditedImage], unit: str = "") -> tuple[Thumbnail, ...]:
        return tuple(_picture(splits[image.split], image, unit) for image in images)

    ordered = sorted(report.duplicates, key=lambda group: (-len(group.splits), -len(group.labels)))
    groups = []
    for group in ordered[:_GROUPS]:
        flaws = ["in several splits"] * (len(group.splits) > 1) + ["of several classes"] * (len(group.labels) > 1)
        title = {"bytes": "Equal files", "pixels": "Equal pixels", "near": "Near duplicates"}[group.how]
        unit = "bits from the first" if group.how == "near" else ""
        shown = pictures(group.images[:_SIDE_BY_SIDE], unit)
        groups.append(Album(", ".join([title, *flaws]), "", len(group.images), shown))
    classes = sorted(report.classes, key=lambda entry: (-entry.total, entry.label))
    if len(classes) > _CLASSES:
        classes = [*classes[: _CLASSES // 2], *classes[-(_CLASSES // 2) :]]
    findings = (
        Album(name, _MEANINGS[name], len(images), pictures(images[:_OF_FINDING]))
        for name, images in report.findings.items()
    )
    return {
        "duplicates": tuple(groups),
        "findings": tuple(findings),
        "extremes": tuple(Album(name, "", len(some), pictures(some)) for name, some in report.extremes.items() if some),
        "classes": tuple(_class_album(splits, entry) for entry in classes),
    }


def _picture(dataset: Dataset, image: AuditedImage, unit: str) -> Thumbnail:
    shown = thumbnail(dataset, SampleHeader(image.split, image.index, image.label))
    name = (image.source or image.path).rpartition("/")[2]
    value = [f"{image.value:,.5g} {unit}".rstrip()] if image.value is not None else []
    problem = shown.problem and (image.problem or shown.problem)
    shard = [] if image.record is None else [format_where(image.path.rpartition("/")[2], image.record)]
    details = (f"{image.split} #{image.index}", *shard, *value)
    return replace(shown, title=f"{shown.title} · {name}", details=details, problem=problem)


def _class_album(splits: Mapping[str, Dataset], entry: ClassCount) -> Album:
    title = class_title(next(iter(splits.values())).classes, entry.label)
    pictures: list[Thumbnail] = []
    for split, dataset in splits.items():
        numbers = np.flatnonzero(dataset.labels == entry.label)
        for index in numbers[:: max(1, len(numbers) // _OF_CLASS)].tolist():
            if len(pictures) < _OF_CLASS:
                pictures.append(thumbnail(dataset, SampleHeader(split, index, entry.label)))
    return Album(
        title, "", entry.total, tuple(replace(picture, title=picture.details[0], details=()) for picture in pictures)
    )


# How pages are drawn.

_BINS = 40  # of a histogram
_MOST_BARS = 120  # of other charts; with more values, neighbours are averaged
_UNEQUAL = 50  # ratio of largest and smallest value above which heights are logarithms
_COLORS = ("blue", "teal", "sand", "slate")  # of splits, as pages/layout.html has them
_ALL_NAMED = 40  # classes; of more, only the ends are named, and a chart shows all
_ENDS = 10
_KINDS = {"dataset": "Stoker dataset", "records": "TFRecords", "files": "image files"}


def _render(template: str, **values: Any) -> str:
    """Return a page made of a file in ``pages``; text is escaped, except where it is ``Markup``."""
    return _ENVIRONMENT.get_template(template).render(**values)


def _last_part(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path


def _shown(value: Any) -> Any:
    return displayable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in sorted(numbers.items()))


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_shown,
)
_ENVIRONMENT.filters |= {"count": _count, "counts": _counts, "size": format_size, "seconds": format_seconds}


# The page about a dataset.


def info_page(portrait: Portrait) -> str:
    """Return a self-contained page about a dataset: one file, readable without network or JavaScript."""
    classes = sorted(portrait.classes, key=lambda entry: (-entry.total, entry.label))
    measured = portrait.measured
    colors = {name: _COLORS[number % len(_COLORS)] for number, name in enumerate(portrait.splits)}
    counts = {name: sorted((entry.counts[name] for entry in classes), reverse=True) for name in colors}
    return _render(
        "info.html",
        portrait=portrait,
        name=_last_part(portrait.path),
        kind=_KINDS[portrait.kind],
        extent=[int(np.median(measured.column(name))) for name in ("width", "height")] if measured.readable else None,
        split_colors=colors,
        class_groups=_class_groups(classes),
        most=max((entry.total for entry in classes), default=0),
        empty_classes=sum(entry.total == 0 for entry in classes),
        class_charts=[
            profile(counts[name], name, ", from the most frequent to the rarest", color)
            for name, color in colors.items()
            if len(classes) > _ALL_NAMED and any(counts[name])
        ],
        size_charts=_size_charts(measured) if measured.readable else [],
        shard_charts=[
            profile(split.shard_bytes, name, "", colors[name], format_size)
            for name, split in portrait.splits.items()
            if len(split.shard_bytes) > 1
        ],
    )


def _class_groups(classes: Sequence[ClassCount]) -> list[tuple[str, Sequence[ClassCount]]]:
    """Return the classes that a page names, in columns side by side, with the titles of the columns."""
    if len(classes) > _ALL_NAMED:
        return [("The most frequent", classes[:_ENDS]), ("The rarest", classes[-_ENDS:])]
    half = len(classes) if len(classes) <= _ENDS else -(-len(classes) // 2)
    return [("", column) for column in (classes[:half], classes[half:]) if column]


@dataclass(frozen=True, slots=True)
class Chart:
    """A bar chart."""

    title: str
    note: str
    color: str
    heights: Sequence[float]  # per cent of the height of the chart
    ends: tuple[str, str]  # labels below the first bar and below the last
    median: float | None = None  # where the median lies, in per cent of the width


def profile(values: Sequence[int], title: str, note: str, color: str, shown: Callable[[float], str] = _count) -> Chart:
    """Return a chart of values in their order."""
    means = [float(part.mean()) for part in np.array_split(np.array(values), min(len(values), _MOST_BARS))]
    most, least = max(means), min(filter(None, means), default=1.0)
    note = f"up to {shown(max(values))}{note}"
    heights = np.array(means) / most
    if most > _UNEQUAL * least:
        note += ", in logarithms"
        heights = np.log1p(means) / np.log1p(most)
    return Chart(title, note, color, (100 * heights).tolist(), ("1", _count(len(values))))


def _size_charts(measured: Measured) -> list[Chart]:
    """Return histograms of the images: of width, height, aspect ratio and bytes."""
    width, height, size = (measured.column(name) for name in ("width", "height", "size_bytes"))
    ratios = width / height
    shares = {"landscape": ratios > 1.005, "portrait": ratios < 0.995, "square": abs(ratios - 1) <= 0.005}
    note = ", ".join(f"{mask.mean():.0%} {kind}" for kind, mask in shares.items() if mask.any())
    return [
        histogram(width, "width, pixels"),
        histogram(height, "height, pixels"),
        histogram(np.log2(ratios), "width : height, in logarithms", _aspect, f"; {note}"),
        histogram(size, "bytes per image", format_size),
    ]


def _aspect(log_ratio: float) -> str:
    return f"{2**log_ratio:.2f} : 1" if log_ratio >= 0 else f"1 : {2**-log_ratio:.2f}"


def histogram(values: NDArray[np.float64], title: str, shown: Callable[[float], str] = _count, note: str = "") -> Chart:
    """Return a chart of how often values occur, and where their median is."""
    low, median, high = (float(value) for value in np.percentile(values, (0, 50, 99.5)))
    most = float(values.max())
    # A few outliers would press all others into one bar, so the last bar holds all values above its start.
    end = most if most - low <= 1.6 * (high - low) else high
    counts, _ = np.histogram(np.minimum(values, end), _BINS if end > low else 1, (low, end))
    heights = (100 * counts / counts.max()).tolist()
    note = f"all {shown(low)}{note}" if low == most else f"median {shown(median)}{note}"
    note += f"; the last bar holds all up to {shown(most)}" if most > end else ""
    place = 100 * (median - low) / (end - low) if end > low else None
    return Chart(title, note, "blue", heights, (shown(low), shown(end)), place)


def bench_page(report: BenchReport) -> str:
    """Return a self-contained page about a benchmark: one file, readable without network or JavaScript."""
    return _render("bench.html", report=report, name=_last_part(report.spec.dataset))


def audit_page(report: AuditReport, splits: Mapping[str, Dataset]) -> str:
    """Return a self-contained page about an audit: one file, readable without network or JavaScript."""
    return _render(
        "audit.html",
        report=report,
        contents=audit_albums(report, splits),
        name=_last_part(report.path),
        extra=sum(len(group.images) - 1 for group in report.duplicates),
        counts={name: len(images) for name, images in report.findings.items()},
    )
