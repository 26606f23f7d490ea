"""What is at a path: a finished dataset, an unfinished build, TFRecords of other origin, or images."""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stoker import _native
from stoker.config import check_range
from stoker.errors import ExampleError, IndexMismatchError, ShardError, StokerError, record_error
from stoker.format import (
    FRAME_BYTES,
    LABELS_NAME,
    ClassLabel,
    compression_of,
    contents_of,
    find_shards,
    inflate,
    is_companion,
    is_unfinished,
    no_records,
    read_index,
    read_journal,
    read_labels,
    read_manifest,
    recognise,
)
from stoker.loader import ImageFiles, box_classes, layout_of, list_images, refuse_options
from stoker.recipe import is_turned, sniff
from stoker.sources import SourceOptions, counts_of
from stoker.storage import LocalCopy, attach_filename, error_about, location, stoppable_pool

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stoker.format import Manifest, RecordKeys, SplitShards
    from stoker.loader import Dataset
    from stoker.sources import Source
    from stoker.storage import Location
    from stoker.types import Compression, Feature, Features, Field, SchemaInfo

DEFAULT_RECORDS = 1000
"""Number of records of other TFRecords that are looked at: about 100 MB of photographs, a fraction of a second."""
_AT_ONCE = 32
_FIRST_BYTES = 2**18
_ORIENTATIONS_CHECKED = 32


@dataclass(frozen=True, slots=True)
class ClassCount:
    """How often one class occurs."""

    label: int  # its id
    name: str  # its name; empty if ``labels.txt`` has none
    text: str  # the class in words; empty when unknown
    counts: dict[str, int]  # records by split

    @property
    def total(self) -> int:
        """Number of records in all splits."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A finished dataset."""

    path: str
    manifest: Manifest  # everything the build recorded
    histogram: tuple[ClassCount, ...]  # the classes by id, from the label base on
    box_histogram: tuple[ClassCount, ...]  # the same for the classes of boxes; empty if there are none
    examples: Mapping[str, str]  # the first value of each extra field, as text; empty if unreadable
    turned: tuple[int, int]  # how many images an EXIF orientation turns, and how many were checked
    being_built: bool  # whether another build has begun in the directory and not ended: it may have removed shards


def dataset_info(
    path: str | os.PathLike[str],
    records: int = DEFAULT_RECORDS,
    keys: RecordKeys | None = None,
    options: SourceOptions | None = None,
) -> DatasetInfo | UnfinishedInfo | ForeignInfo | ImagesInfo:
    """Return what is known about a dataset, an unfinished build, other TFRecords, or images in any source.

    Of a dataset only a few records are read. Of other TFRecords (a directory, a pattern or a file), the first
    ``records`` are read to find their keys.
    """
    root = location(path)
    contents = contents_of(root)
    refuse_options(root, contents.kind, keys, options)
    if contents.kind == "dataset":
        manifest = read_manifest(root)
        labels: tuple[ClassLabel, ...] = ()
        with contextlib.suppress(FileNotFoundError):  # `verify` reports what is missing
            labels = read_labels(root, manifest.files.get(LABELS_NAME))
        boxes = {name: split.box_counts for name, split in manifest.splits.items()}
        schema, first = manifest.schema, _first_records(root, manifest)
        turned = _turned(image for features in first if root.is_local for image in features[schema.image_key][1])
        counts = {name: dict(enumerate(split.class_counts)) for name, split in manifest.splits.items()}
        of_boxes = box_classes(schema, labels)
        known = range(schema.label_base, len(of_boxes))
        more = sorted(set().union(*boxes.values()) - set(known))
        return DatasetInfo(
            path=str(path),
            manifest=manifest,
            histogram=_class_counts(labels, range(schema.label_base, schema.label_base + manifest.classes), counts),
            box_histogram=_class_counts(of_boxes, (*known, *more), boxes) if any(boxes.values()) else (),
            examples=_examples(schema.fields, first[0] if first else {}),
            turned=turned,
            being_built=is_unfinished(root),
        )
    if contents.kind == "unfinished":
        return _unfinished_info(root)
    check_range("--records", records, 1, 2**31)
    if contents.kind == "TFRecords":
        return _foreign_info(root, contents.splits, records, keys)
    return _images_info(root, options)


def _turned(images: Iterable[object]) -> tuple[int, int]:
    """Return how many images an EXIF orientation turns or mirrors, and how many were looked at."""
    counts: Counter[bool] = Counter()
    with contextlib.suppress(StokerError, OSError, KeyError):  # `verify` reports what is damaged or missing
        counts.update(is_turned(image) for image in images if isinstance(image, bytes))
    return counts[True], counts.total()


def _first_records(directory: Location, manifest: Manifest) -> list[Features]:
    """Return the first records; from a store at most one record, and only if there are fields: each takes a request."""
    shards = [directory / shard.name for split in manifest.splits.values() for shard in split.shards]
    first: list[Features] = []
    if directory.is_local or manifest.schema.fields:
        with contextlib.suppress(StokerError, OSError):  # `verify` reports what is damaged or missing
            first.extend(leading_records(shards, _ORIENTATIONS_CHECKED if directory.is_local else 1))
    return first


def _first_image(source: Source) -> Features:
    split = next((name for name, rows in source.splits.items() if len(rows) and source.fields), None)
    if split is not None and source.latency != "web":
        with contextlib.suppress(StokerError, OSError):  # a build reports what is wrong as a reject
            return ImageFiles(replace(source, splits={split: source.splits[split][:1]}), split).features(0)[0]
    return {}


def _examples(fields: Mapping[str, Field], features: Features) -> dict[str, str]:
    examples = dict.fromkeys(fields, "")
    for name, field in fields.items():
        with contextlib.suppress(StokerError, OSError):
            examples[name] = field.show(field.decode(name, features))
    return examples


def _class_counts(
    classes: Sequence[ClassLabel], labels: Iterable[int], splits: Mapping[str, Mapping[int, int]]
) -> tuple[ClassCount, ...]:
    """Return how often each of ``labels`` occurs by split; those among ``classes`` have a name, others have none."""
    named = {label: (entry.name, entry.text) for label, entry in enumerate(classes)}
    return tuple(
        ClassCount(label, *named.get(label, ("", "")), {name: counts.get(label, 0) for name, counts in splits.items()})
        for label in labels
    )


def counted_classes(splits: Mapping[str, Dataset], counts: Mapping[str, Mapping[int, int]]) -> tuple[ClassCount, ...]:
    """Return how often each class occurs by split, including classes with a name that do not occur."""
    some = next(iter(splits.values()))
    labels = set(range(some.schema.label_base, len(some.classes))).union(*counts.values())
    return _class_counts(some.classes, sorted(labels - {-1}), counts)


class Splits:
    """The samples of all splits of a dataset, one after another."""

    def __init__(self, splits: Mapping[str, Dataset]) -> None:
        self.splits = splits
        self.is_remote = any(dataset.remote is not None for dataset in splits.values())
        self._names = list(splits)
        self._starts = [0, *accumulate(map(len, splits.values()))]

    def __len__(self) -> int:
        return self._starts[-1]

    def rows_of(self, split: str) -> slice:
        """Return the numbers of the samples of a split."""
        return slice(*self._starts[self._names.index(split) :][:2])

    def locate(self, row: int) -> tuple[Dataset, int]:
        """Return the split of a sample, and its number there."""
        part = bisect_right(self._starts, row) - 1
        return self.splits[self._names[part]], row - self._starts[part]


def label_counts(dataset: Dataset) -> dict[int, int]:
    """Return how often each label occurs, -1 for none; for a dataset that was built, by its manifest."""
    if dataset.manifest is not None:
        split = dataset.manifest.splits[dataset.split]
        return {label: count for label, count in [*enumerate(split.class_counts), (-1, split.unlabelled)] if count}
    labels, counts = np.unique(dataset.labels, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def ranked(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts with the largest first, then by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True, slots=True)
class ImageSplit:
    """One split of images that are not built."""

    images: int
    size_bytes: int  # sum of the lengths of their files
    unlabelled: int  # how many of them have no class


@dataclass(frozen=True, slots=True)
class ImagesInfo:
    """Images that are not built: a folder, a tar, a list, or a configuration that names lists."""

    path: str
    splits: Mapping[str, ImageSplit]
    histogram: tuple[ClassCount, ...]  # the classes by id, from 0
    box_histogram: tuple[ClassCount, ...]  # the same for the classes of boxes; empty if boxes have none
    suffixes: Mapping[str, int]  # number of names by suffix, in lower case, without the dot
    fields: Mapping[str, Field]  # extra fields of every image, beside its class and its boxes, by name
    examples: Mapping[str, str]  # the first value of each extra field, as text; empty if unreadable
    boxes: Mapping[str, str]  # where annotations lie, by split; without splits that have none
    ignored: Mapping[str, int]  # numbers of files that are not images, by suffix or by kind
    warnings: tuple[str, ...]  # warnings that a build would give
    turned: tuple[int, int]  # how many images an EXIF orientation turns, and how many were checked


def _images_info(root: Location, options: SourceOptions | None) -> ImagesInfo:
    source = list_images(root, SourceOptions() if options is None else options)
    if root.is_file() and source.latency != "web" and not source.table.sizes.any():  # a text, but not a list of images
        raise no_records(root)
    named = source.class_labels
    counts = {
        name: dict(enumerate(counts_of(source.table.labels, [rows], len(named)).tolist(), -1))
        for name, rows in source.splits.items()
    }
    boxes = {name: dict(enumerate(of)) for name, of in source.box_counts().items()}
    return ImagesInfo(
        path=str(root),
        splits={
            name: ImageSplit(len(rows), int(source.table.sizes[rows].sum()), counts[name][-1])
            for name, rows in source.splits.items()
        },
        histogram=_class_counts(named, range(len(named)), counts),
        box_histogram=_class_counts(named, range(len(named)), boxes) if boxes else (),
        suffixes=ranked(Counter(_suffix(source.table.paths[row]) for row in range(len(source.table)))),
        fields=source.fields,
        examples=_examples(source.fields, _first_image(source)),
        boxes={name: boxes.where for name, boxes in source.boxes.items()},
        ignored=source.ignored,
        warnings=source.warnings,
        turned=_turned(_some_images(source)),
    )


def _some_images(source: Source) -> Iterator[object]:
    """Yield a few of the images, evenly spread; none of a store, where each would be a request."""
    for name, rows in source.splits.items() if source.latency == "disk" else ():
        for row in rows[:: -(-len(source.table) // _ORIENTATIONS_CHECKED)].tolist():
            with contextlib.suppress(StokerError, OSError):  # a build reports what is wrong as a reject
                yield source.load(source.table[row], name).data


def _suffix(path: bytes) -> str:
    stem, dot, suffix = path.rpartition(b"/")[2].rpartition(b".")
    return suffix.lower().decode("utf-8", "replace") if stem and dot else ""


@dataclass(frozen=True, slots=True)
class UnfinishedInfo:
    """An unfinished build."""

    path: str
    settings: Mapping[str, Any]  # settings that decide its bytes, from the journal; empty if it does not say
    planned_shards: int | None  # shards it will have; None when the journal does not say
    shards: int  # shards that are complete
    records: int
    size_bytes: int
    rejects: int  # source items rejected so far

    @property
    def remedy(self) -> str:
        """What to do to finish it."""
        again = "run the same 'stoker build' again"
        if self.rejects and self.shards == self.planned_shards:
            return f"{again} with --max-rejects {self.rejects} to accept the rejects and publish the manifest"
        return f"{again} to finish it"


def _unfinished_info(directory: Location) -> UnfinishedInfo:
    """Return how far the build in a directory has come; damaged entries of its journal are not counted."""
    settings, results = read_journal(directory)
    shards, planned = {result.file.name: result for result in results}.values(), settings.get("shards")
    counts: list[Any] = list(planned.values()) if isinstance(planned, dict) else [None]
    return UnfinishedInfo(
        path=str(directory),
        settings=settings,
        planned_shards=sum(counts) if all(type(count) is int for count in counts) else None,
        shards=len(shards),
        records=sum(shard.file.records for shard in shards),
        size_bytes=sum(shard.file.size_bytes for shard in shards),
        rejects=sum(len(shard.rejects) for shard in shards),
    )


@dataclass(frozen=True, slots=True)
class ForeignSplit:
    """The TFRecords of one split."""

    shards: int
    size_bytes: int  # sum of their lengths
    records: int | None  # records in them; None unless each has a right index
    missing: tuple[int, ...]  # numbers of shards that the names of the others promise
    compression: Compression  # of the first file; compressed files have no index


@dataclass(slots=True)
class KeySummary:
    """The values seen under one key."""

    kinds: tuple[str, ...] = ()  # kinds of its values, in the order they were met
    records: int = 0  # records that have the key
    shortest: int = 0  # fewest values in one record
    longest: int = 0  # most values in one record
    size_bytes: int = 0  # bytes of its values over all records looked at; 0 for numbers

    def add(self, feature: Feature) -> None:
        """Add one record's feature."""
        kind, values = feature
        self.kinds = tuple(dict.fromkeys((*self.kinds, kind)))
        self.shortest = min(self.shortest, len(values)) if self.records else len(values)
        self.longest = max(self.longest, len(values))
        self.size_bytes += sum(map(len, cast("list[bytes]", values))) if kind == "bytes" else 0
        self.records += 1


@dataclass(frozen=True, slots=True)
class ForeignInfo:
    """TFRecords of other origin."""

    path: str  # directory, pattern or file
    splits: Mapping[str, ForeignSplit]  # by the split in the names of the files
    looked_at: int  # number of records that ``keys`` sums up, the first of the first files
    keys: Mapping[str, KeySummary]
    formats: Mapping[str, int]  # number of these records by the format of their image; empty if unknown
    turned: tuple[int, int]  # how many of these an EXIF orientation turns or mirrors, and how many they are
    layout: SchemaInfo | None  # the layout by which `stoker.open` reads them; None if unknown


def _foreign_info(
    root: Location, split_shards: Mapping[str, SplitShards], records: int, keys: RecordKeys | None
) -> ForeignInfo:
    seen: dict[str, KeySummary] = {}
    looked_at, turned, layout = 0, 0, None
    formats: Counter[str] = Counter()
    paths = [path for split in split_shards.values() for path in split.paths]
    for features in leading_records(paths, records):
        looked_at += 1
        if looked_at == 1:
            is_known = keys is not None or recognise(features) is not None
            layout = layout_of(root, paths[0].parent, features, keys)[0] if is_known else None
        if layout is not None and layout.image_encoding != "raw":
            images = features.get(layout.image_key, ("", []))[1][:1]
            formats.update(sniff(image) for image in images if isinstance(image, bytes))
            turned += _turned(images)[0]
        for key, feature in features.items():
            seen.setdefault(key, KeySummary()).add(feature)
    splits = {name: _split(split.paths, split.missing) for name, split in split_shards.items()}
    known = dict(sorted(seen.items()))
    return ForeignInfo(str(root), splits, looked_at, known, ranked(formats), (turned, formats.total()), layout)


def _split(paths: Sequence[Location], missing: tuple[int, ...]) -> ForeignSplit:
    with stoppable_pool(_AT_ONCE, "stoker-info") as pool:
        sizes = list(pool.map(_size_and_records, paths))
    counts = [records for _, records in sizes if records is not None]
    return ForeignSplit(
        shards=len(paths),
        size_bytes=sum(size for size, _ in sizes),
        records=sum(counts) if len(counts) == len(paths) else None,
        missing=missing,
        compression=compression_of(paths[0]),
    )


def _size_and_records(path: Location) -> tuple[int, int | None]:
    size = path.size()
    try:
        return size, len(read_index(path, size))
    except (FileNotFoundError, IndexMismatchError):
        return size, None


def leading_records(paths: Sequence[Location], limit: int) -> Iterator[Features]:
    """Yield the first records, after verifying their checksums; no more is read from a store than needed."""
    left = limit
    for path in paths:
        with contextlib.ExitStack() as stack:
            plain = copy = stack.enter_context(path.local_copy())
            try:
                copy.fetch(_FIRST_BYTES)
                if compression_of(copy.path) != "none":
                    copy.fetch()
                    plain = LocalCopy(stack.enter_context(inflate(copy.path)).path)
                for features in _leading_plain(plain, left):
                    left -= 1
                    yield features
            except StokerError as error:
                raise error_about(error, plain.path, str(path)) from error
        if not left:
            return


def _leading_plain(copy: LocalCopy, limit: int) -> Iterator[Features]:
    size, offset = copy.path.stat().st_size, 0
    for number in range(limit):
        if offset == size:
            return
        try:
            payload = _payload(copy, offset, size)
        except ShardError:
            copy.fetch()
            _native.scan_shard(str(copy.path), check=False)  # gives a better message if the header is damaged
            raise
        try:
            yield _native.parse_example(payload)
        except ExampleError as error:
            raise record_error(ExampleError, (str(copy.path), number, offset), error) from error
        offset += FRAME_BYTES + len(payload)


def _payload(copy: LocalCopy, offset: int, size: int) -> bytes:
    copy.fetch(offset + FRAME_BYTES)
    with attach_filename(copy.path), copy.path.open("rb", buffering=0) as file:
        file.seek(offset)
        length = int.from_bytes(file.read(8), "little")
    frame = FRAME_BYTES + min(length, size)  # a hostile length must fit into the 64 bits of the call
    copy.fetch(offset + frame)
    return _native.read_record(str(copy.path), offset, frame)


def find_files(targets: Sequence[str]) -> list[Location]:
    """Return the TFRecords that files, directories and patterns name, each once, sorted.

    Files that Stoker and TFDS write beside shards are left out: a shell names them, too, if it expands ``dataset/*``.
    """
    paths: set[Location] = set()
    for target in map(location, targets):
        named = [path for split in find_shards(target).values() for path in split.paths]
        if not named and not (is_companion(target) and target.exists()):
            raise no_records(target)
        paths.update(named)
    if not paths:
        raise no_records(location(targets[0]))
    return sorted(paths, key=lambda path: path.parts)
