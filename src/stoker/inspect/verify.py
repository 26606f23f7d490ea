"""Checking a dataset from the first byte to the last pixel.

The manifest against its own checksum. For each shard: its length and checksum against the manifest, both checksums of
every record, its index against a fresh scan. For each other file: its length and checksum against the manifest. For
each record: that it is an Example with the features of the schema, that its image decodes whole and has the size it
claims, that its label is one of the classes, that each of its fields holds a value that it can have, masks and extra
images as large as the image. Over all: counts of records, classes and rejects against the manifest.
Damage does not stop the check; where a shard's frames are broken, its index still leads to the other records.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.builder import is_machine_error
from stoker.config import available_cpus, format_some
from stoker.errors import (
    ExampleError,
    ImageError,
    IndexMismatchError,
    ManifestError,
    NewerManifestError,
    ShardError,
    StokerError,
    StorageError,
    format_where,
)
from stoker.fields import read_feature
from stoker.format import (
    BUILD_FOLDER,
    FRAME_BYTES,
    JOURNAL_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    REJECTS_NAME,
    ImagenetSchema,
    check_listed,
    compression_of,
    find_layout,
    find_shards,
    first_bytes,
    format_name,
    index_path,
    inflate,
    is_unfinished,
    no_records,
    parse_index,
    parse_shard_name,
    read_classes,
    read_index,
    read_manifest,
    read_rejects,
)
from stoker.inspect.info import leading_records, ranked
from stoker.loader import Sample, boxes_of, label_of, refuse_options
from stoker.recipe import decode, decode_mask, sniff
from stoker.storage import (
    TEMPORARY_MARK,
    attach_filename,
    check_stacks,
    is_scratch_full,
    location,
    message_about,
    open_regular,
    stoppable_pool,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.format import ClassLabel, InflatedShard, Manifest, RecordKeys, Shard
    from stoker.storage import Location, LocationLike
    from stoker.types import BatchForm, EncodedImage, Features, FeatureSpec, Progress, SchemaInfo


_CHUNK_RECORDS = 32
_READ_BYTES = 1 << 20
_MAX_INDEX_BYTES = 1 << 28
_NO_ROWS = np.empty((0, 2), np.uint64)

_SYNSET_KEY, _TEXT_KEY = "image/class/synset", "image/class/text"
_ONE_HOT_KEY = "label_one_hot"
_FORMAT_KEY = "image/format"
_SHOWN_KEYS = 20  # the layout with the most has 15
_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One piece of damage: something in a dataset that is not as it should be."""

    path: str
    record: int | None  # zero-based number of the record in it; None when the problem is not one record's
    offset: int | None  # byte where the record or the damage starts; None when there is no such byte
    source: str | None  # name of the source image; None when unknown
    what: str  # what is wrong, with the values

    def __str__(self) -> str:
        if self.path in self.what:  # an error of reading, which names the file and the byte itself
            named = self.record is None or f"record {self.record} " in self.what
            return self.what if named else f"record {self.record}: {self.what}"
        return f"{format_where(self.path, self.record, self.offset, self.source)}: {self.what}"


def problem_of(error: StokerError, path: Location, read_from: Path | None = None) -> Problem:
    """Return an error of reading as a problem of ``path``, even if its local copy ``read_from`` was read."""
    what = str(error) if read_from is None else message_about(error, read_from, str(path))
    return Problem(str(path), error.record, error.offset, error.source, what)


def file_problem(path: Location | str, what: str) -> Problem:
    """Return a problem of a whole file."""
    return Problem(str(path), None, None, None, what)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a check found."""

    shards: int  # shards looked at
    records: int  # records looked at
    size_bytes: int  # bytes of those shards
    formats: dict[str, int]  # how many readable records have an image of which format
    seconds: float  # how long it took
    problems: tuple[Problem, ...]  # all damage, in the order of shards and records, then what concerns the whole
    warnings: tuple[str, ...]  # what is not damage but should not be there


def verify_dataset(
    path: LocationLike,
    threads: int | None = None,
    progress: Progress | None = None,
    keys: RecordKeys | None = None,
) -> VerifyReport:
    """Check a dataset, or TFRecord shards of other origin.

    Of a dataset in a store, each thread copies one shard at a time into the folder for temporary files (``$TMPDIR``).
    ``progress`` is called after every run of records, in any thread, never in two at once.
    """
    started = time.monotonic()
    root = location(path)
    manifest, classes, problems = _read_texts(root)
    if manifest is None:
        targets = _found_shards(root, problems)
        schema = _foreign_schema(root, targets, keys)
    else:
        refuse_options(root, "dataset", keys)
        splits, schema = manifest.splits.items(), manifest.schema
        targets = [_Target(name, root / shard.name, shard) for name, split in splits for shard in split.shards]
    records = None if manifest is None else manifest.records
    threads = available_cpus() if threads is None else threads
    check_stacks(2 * threads)  # of both pools at once: a pool starts its threads only when it has work
    with (
        stoppable_pool(threads, "stoker-records", only_reads=True) as pool,
        stoppable_pool(threads, "stoker-shards", only_reads=True) as shards,
    ):
        checks = _Checks(schema, classes, pool, progress, len(targets), records, len(problems))
        results = list(shards.map(checks.check_shard, targets))
    for damage in zip(*results, strict=True):  # of all shards, then of all records
        problems += itertools.chain(*damage)
    if manifest is not None:
        problems += _count_problems(root, manifest, checks.labels)
        problems += _companion_problems(root, manifest)
    return VerifyReport(
        shards=len(targets),
        records=checks.records,
        size_bytes=checks.size_bytes,
        formats=ranked(checks.formats),
        seconds=time.monotonic() - started,
        problems=tuple(problems),
        warnings=tuple(_warnings(root, manifest)),
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """A shard to check: its split, where it is, and what the manifest says about it."""

    split: str
    path: Location
    listed: Shard | None


def _found_shards(root: Location, problems: list[Problem]) -> list[_Target]:
    """Return the shards that exist, and add a problem for missing ones that the names of the others promise."""
    splits = find_shards(root)
    if not splits:
        raise no_records(root)
    for name, split in splits.items():
        if split.missing:
            numbers = format_some(split.missing, 5)
            what = f"split {name} lacks {len(split.missing)} shards that the names of the others promise: {numbers}"
            problems.append(file_problem(root, what))
    return [_Target(name, path, None) for name, split in splits.items() for path in split.paths]


def _foreign_schema(root: Location, targets: Sequence[_Target], keys: RecordKeys | None) -> SchemaInfo:
    for target in targets:
        with contextlib.suppress(ShardError, ExampleError):
            if (features := first_features(target.path)) is not None:
                return find_layout(features, keys, str(root))
    return dataclasses.replace(ImagenetSchema().info(0), features={})  # no record can be read that could contradict it


def first_features(path: Location) -> Features | None:
    """Return what the first record of a TFRecord holds; None if no record can be read."""
    try:
        return next(leading_records([path], 1), None)
    except OSError as error:
        if is_scratch_full(error):
            raise
        return None


def _warnings(root: Location, manifest: Manifest | None) -> Iterable[str]:
    if manifest is None or not root.is_dir():
        return
    listed = {shard.name for split in manifest.splits.values() for shard in split.shards}
    names = sorted(os.fsdecode(path) for path, _ in root.files_below())
    if JOURNAL_NAME in names or any(name.startswith(f"{BUILD_FOLDER}/") for name in names):
        yield f"{root} holds the journal of an unfinished build; run the same 'stoker build' again to remove it"
    for name in names:
        if TEMPORARY_MARK in name.rpartition("/")[2]:
            yield f"{root / name} is left over from a build that died; remove it"
        elif name not in listed and "/" not in name and parse_shard_name(name) is not None:
            yield f"{root / name} is a shard that the manifest does not list"


class _Checks:
    """The checks of all shards, and their counts. Safe in any thread.

    If the number of records is unknown, the progress estimates it from the shards checked so far.
    """

    def __init__(
        self,
        schema: SchemaInfo,
        classes: Sequence[ClassLabel],
        pool: ThreadPoolExecutor,
        progress: Progress | None,
        shards: int,
        records: int | None,
        problems: int,
    ) -> None:
        self._schema, self._classes, self._pool, self._progress = schema, classes, pool, progress
        self._shards, self._listed_records, self._problems = shards, records, problems
        self._lock = threading.Lock()
        self._seen_shards = self._seen_records = self._seen_bytes = 0
        self.records = self.size_bytes = 0  # records looked into; bytes of the shards
        self.labels: dict[str, Counter[int]] = {}  # how often each label was seen, by split
        self.formats: Counter[str] = Counter()  # how often each format of images was seen

    def check_shard(self, target: _Target) -> tuple[list[Problem], list[Problem]]:
        """Return the damage of a shard as a whole, and that of its records, in their order.

        Must not run in a thread of the pool, because it waits for that pool to check the records.
        """
        try:
            with target.path.local_copy() as copy:
                copy.fetch()
                frames = _check_frames(target.path, copy.path, target.listed)
                self._add_shard(frames)
                plain = copy.path if frames.inflated is None else frames.inflated.path
                check = partial(self._check_records, target, plain, frames.rows)
                damage = self._pool.map(check, range(0, len(frames.rows), _CHUNK_RECORDS))
                return frames.problems, list(itertools.chain(*damage))
        except OSError as error:
            if isinstance(error, StorageError):
                target.path.parent.is_dir()  # raises if the store cannot be reached, which is not damage
            if is_scratch_full(error) or is_machine_error(error):
                raise
            missing = isinstance(error, FileNotFoundError)
            what = "the shard is missing" if missing else f"cannot be read: {error.strerror or error}"
            frames = _Frames(_NO_ROWS, 0, [file_problem(target.path, what)])
            self._add_shard(frames)
            return frames.problems, []

    def _add_shard(self, frames: _Frames) -> None:
        with self._lock:
            self._seen_shards += 1
            self._seen_records += len(frames.rows)
            self._problems += len(frames.problems)
            self.size_bytes += frames.size_bytes

    def _check_records(self, target: _Target, plain: Path, rows: NDArray[np.uint64], first: int) -> list[Problem]:
        """Check a run of records of a shard, whose bytes are in ``plain``, without compression; report the progress."""
        schema, path, run = self._schema, target.path, rows[first : first + _CHUNK_RECORDS]
        problems: list[Problem] = []
        labels: Counter[int] = Counter()
        formats: Counter[str] = Counter()
        for number, (offset, size) in enumerate(run.tolist(), first):
            try:
                features = _native.parse_example(_native.read_record(str(plain), offset, size))
            except StokerError as error:
                problems.append(Problem(str(path), number, offset, None, problem_of(error, path, plain).what))
                continue
            encoded, name = (first_bytes(features, key or "") for key in (schema.image_key, schema.filename_key))
            sample = Sample(number, features, encoded, -1, name.decode("utf-8", "replace"), schema)
            if encoded:
                formats[sample.format] += 1
            damage = _damage(sample, self._classes, labels)
            problems += [Problem(str(path), number, offset, sample.source or None, what) for what in damage]
        with self._lock:
            self.records += len(run)
            self._seen_bytes += int(run[:, 1].sum())
            self._problems += len(problems)
            self.labels.setdefault(target.split, Counter()).update(labels)
            self.formats.update(formats)
            if self._progress is not None:
                total = self._listed_records
                if total is None or self._seen_shards == self._shards:
                    total = self._seen_records * self._shards // max(1, self._seen_shards)
                total = max(self.records, total)
                self._progress(done=self.records, total=total, size_bytes=self._seen_bytes, rejects=self._problems)
        return problems


@dataclass(frozen=True, slots=True)
class _Frames:
    rows: NDArray[np.uint64]  # uint64 (N, 2), the extents of the records to look into, before any compression
    size_bytes: int  # length of the shard; 0 when it is missing
    problems: list[Problem]  # damage of the shard as a whole
    inflated: InflatedShard | None = None  # the shard without its compression; None if it has none


def _check_frames(path: Location, copy: Path, listed: Shard | None) -> _Frames:
    """Check the frames of a shard whose bytes are in ``copy``, and compare it with what the manifest says about it."""
    problems: list[Problem] = []
    plain, size, inflated, scanned, checksum = copy, copy.stat().st_size, None, None, None
    damage: ShardError | None = None
    is_compressed = size > 0 and compression_of(copy) != "none"
    try:
        if is_compressed:
            inflated = inflate(copy)
            plain = inflated.path
        scanned, checksum = _native.scan_and_sum(str(plain))
    except ShardError as error:
        damage = error
    indexed = None if is_compressed else _indexed(path, size, scanned, problems)
    if scanned is not None:
        rows = scanned
    elif indexed is not None:
        rows, damage = indexed, None  # the check of the damaged record reports it
    else:
        rows, damage = (_NO_ROWS, damage) if is_compressed and inflated is None else _rows_by_headers(plain)
    if damage is not None:
        problems.insert(0, problem_of(damage, path, plain))
        if not is_compressed:
            problems.append(file_problem(path, "no index leads to the records behind the damage"))
    if listed is not None:
        if checksum is None or is_compressed:  # the manifest has the checksum of the compressed bytes
            checksum = _checksum(copy)
        problems += _against_manifest(path, listed, size, len(rows), checksum)
        if not is_compressed and not index_path(path).lexists():
            problems.append(file_problem(index_path(path), "the index is missing; write it with 'stoker index'"))
    return _Frames(rows, size, problems, inflated)


def _rows_by_headers(path: Path) -> tuple[NDArray[np.uint64], ShardError | None]:
    """Return the extents of the records up to the first header that is damaged, and that damage."""
    try:
        return _native.scan_shard(str(path), check=False), None
    except ShardError as error:
        return _rows_before(path, error.offset or 0), error


def _rows_before(path: Path, end: int) -> NDArray[np.uint64]:
    """Return the extents of the records before a byte up to which all headers are intact."""
    rows = []
    with open_regular(path) as file:
        offset = 0
        while offset < end:
            file.seek(offset)
            size = int.from_bytes(file.read(8), "little") + FRAME_BYTES
            rows.append((offset, size))
            offset += size
    return np.array(rows, np.uint64).reshape(-1, 2)


def _indexed(
    path: Location, size: int, scanned: NDArray[np.uint64] | None, problems: list[Problem]
) -> NDArray[np.uint64] | None:
    """Return the rows of the index where it can be used, and add to ``problems`` what is wrong with it."""
    index = index_path(path)
    try:
        rows = read_index(path, size)
    except FileNotFoundError:
        return None
    except IndexMismatchError as error:
        problems.append(problem_of(error, index))
        if scanned is None:  # the index does not fit the shard, which may have been cut
            with contextlib.suppress(IndexMismatchError, OSError):
                return parse_index(index.read_at_most(_MAX_INDEX_BYTES), index)
        return None
    except OSError as error:
        problems.append(file_problem(index, f"cannot be read: {error.strerror or error}"))
        return None
    if scanned is not None and not np.array_equal(rows, scanned):
        what = f"lists {len(rows)} records at other offsets than the {len(scanned)} that the shard has"
        problems.append(file_problem(index, f"{what}; write it again with 'stoker index'"))
    return rows


def _against_manifest(path: Location, listed: Shard, size: int, records: int, checksum: int) -> list[Problem]:
    facts = [
        (f"has {size} bytes", size, listed.size_bytes),
        (f"has {records} records", records, listed.records),
        (f"has the CRC-32C {checksum:08x}", f"{checksum:08x}", f"{listed.crc32c:08x}"),
    ]
    return list(_differing(path, facts))


def _differing(path: Location, facts: Iterable[tuple[str, object, object]]) -> Iterator[Problem]:
    """Yield a problem for each fact (text, actual value, listed value) that the manifest contradicts."""
    for fact, actual, listed in facts:
        if actual != listed:
            yield file_problem(path, f"{fact}; the manifest says {listed}")


def _checksum(path: Path) -> int:
    crc = 0
    with attach_filename(path), path.open("rb", buffering=0) as file:
        while piece := file.read(_READ_BYTES):
            crc = _native.crc32c(piece, crc)
    return crc


def _damage(sample: Sample, classes: Sequence[ClassLabel], labels: Counter[int]) -> Iterator[str]:
    """Yield what is wrong with a record, and count its label; ``classes`` are by id, and empty when unknown."""
    schema, features = sample.schema, sample.features
    for key, expected in schema.features.items():
        yield from _spec_wrong(key, features, expected)
    unknown = sorted(features.keys() - schema.features.keys()) if schema.features else []
    if unknown:
        subject = f"feature {_some(unknown)} is" if len(unknown) == 1 else f"features {_some(unknown)} are"
        yield f"{subject} not in the schema"
    yield from _image_wrong(sample)
    yield from _label_wrong(features, schema, classes, labels)
    yield from _boxes_wrong(features, schema)
    yield from _fields_wrong(features, schema)


def _spec_wrong(key: str, features: Features, expected: FeatureSpec) -> Iterator[str]:
    try:
        read_feature(key, expected, features)
    except ExampleError as error:
        yield str(error)


def _image_wrong(sample: Sample) -> Iterator[str]:
    schema = sample.schema
    if not sample.encoded:
        if schema.image_key not in schema.features:  # what the schema lists is reported already
            yield f"no image under {schema.image_key}; it has {_some(sorted(sample.features))}"
        return
    try:
        height, width, _ = sample.decode().shape
    except (ImageError, ExampleError) as error:
        yield str(error.__cause__ or error)
        return
    sizes = ((schema.height_key or "image/height", height), (schema.width_key or "image/width", width))
    for key, true in sizes:
        claimed = _first(sample.features, key, "int64")
        if claimed not in (None, true):
            yield f"{key} says {claimed}, but the image has {true}"
    named = _first(sample.features, _FORMAT_KEY, "bytes")
    if _FORMAT_KEY in schema.features and named not in (None, format_name(sample.format)):
        yield f"{_FORMAT_KEY} says {_cut(named)}, but the image is {sample.format}"


def _label_wrong(
    features: Features, schema: SchemaInfo, classes: Sequence[ClassLabel], labels: Counter[int]
) -> Iterator[str]:
    if schema.label_key not in features:
        return
    try:
        label = label_of(features, schema)
    except ExampleError as error:
        yield str(error)
        return
    labels[label] += 1
    one_hot = _first(features, _ONE_HOT_KEY, "bytes") if schema.label_encoding == "id" else None
    ones = None if one_hot is None else [position for position, digit in enumerate(one_hot) if digit]
    if ones not in (None, [label - schema.label_base] if label >= 0 else []):
        yield f"{_ONE_HOT_KEY} marks {_cut(ones)}, but the label is {label}"
    if 0 <= label < schema.label_base:
        yield f"label {label} is below {schema.label_base}, the number of the first class"
    elif classes and label != -1 and not schema.label_base <= label < len(classes):
        yield f"label {label} is not in {schema.label_base}..{len(classes) - 1}"
    elif classes and label != -1:
        named = classes[label]
        text = named.name if schema.preset == "imagenet-nvidia" else named.text
        for key, expected in ((_SYNSET_KEY, named.name), (_TEXT_KEY, text)):
            stored = _first(features, key, "bytes")
            if stored not in (None, os.fsencode(expected)):
                yield f"{key} says {_cut(stored)}, but {LABELS_NAME} names class {label} {expected!r}"


def _boxes_wrong(features: Features, schema: SchemaInfo) -> Iterator[str]:
    """Check that boxes can be loaded, that each edge is a finite number, and that each label is that of a class."""
    try:
        boxes = boxes_of(features, schema)
    except ExampleError as error:
        yield str(error)
        return
    edges = {edge for box in boxes for edge in (box.xmin, box.xmax, box.ymin, box.ymax)}
    odd = sorted(str(edge) for edge in edges if not math.isfinite(edge))
    if odd:
        yield f"boxes have edges that are not finite numbers: {', '.join(odd[:3])}"
    valid = range(schema.label_base, schema.label_base + len(schema.box_names))
    right = {None, -1, *valid}
    strange = [box.label for box in boxes if box.label not in right]
    if valid and strange:
        yield f"a box has the label {strange[0]}, which is not in {valid.start}..{valid.stop - 1}"


def _fields_wrong(features: Features, schema: SchemaInfo) -> Iterator[str]:
    """Check the value of every extra field, as far as its features are of the right kind and number."""
    for name, field_kind in schema.fields.items():
        if any(any(_spec_wrong(key, features, expected)) for key, expected in field_kind.features(name).items()):
            continue  # reported already
        try:
            stored, form = field_kind.decode(name, features), field_kind.form()
            if form.is_plane:
                yield from _image_field_wrong(name, stored, form, features)
        except (ExampleError, ImageError) as error:
            yield f"field {name}: {error}"


def _image_field_wrong(name: str, stored: EncodedImage, form: BatchForm, features: Features) -> Iterator[str]:
    """Yield where an image or a mask is not what its features say, or is not as large as the image of the record."""
    if sniff(stored.encoded) != stored.format:
        yield f"feature {name}/format says {stored.format}, but the file is {sniff(stored.encoded)}"
        return
    limit = _native.DEFAULT_MAX_PIXELS
    pixels = decode_mask(stored.encoded, form.bits, limit) if form.kind == "mask" else decode(stored.encoded, limit)
    sides = (("height", stored.height, pixels.shape[0]), ("width", stored.width, pixels.shape[1]))
    for side, claimed, true in sides:
        if claimed != true:
            yield f"{name}/{side} says {claimed}, but the file has {true}"
        of_image = _first(features, f"image/{side}", "int64")
        if of_image not in (None, true):
            yield f"field {name} has a {side} of {true}, but image/{side} says {of_image}"


def _first(features: Features, key: str, kind: str) -> Any:
    stored, values = features.get(key, ("none", []))
    return values[0] if stored == kind and values else None


def _some(keys: list[str]) -> str:
    """Return a few of the keys of a record, cut: hostile records have many and long ones."""
    return format_some(keys, _SHOWN_KEYS, lambda key: key[:_SHOWN_LENGTH])


def _cut(value: bytes | list[int]) -> str:
    return repr(value[:_SHOWN_LENGTH]) + ("..." if len(value) > _SHOWN_LENGTH else "")


def _read_texts(root: Location) -> tuple[Manifest | None, tuple[ClassLabel, ...], list[Problem]]:
    """Return the manifest, the classes, and what is wrong with either; None as manifest for shards of other origin."""
    if not (root / MANIFEST_NAME).lexists():
        if is_unfinished(root):
            raise no_records(root)
        what = f"is missing, and {REJECTS_NAME} is there; restore it, or build again"  # and rejects come with one
        return None, (), [file_problem(root / MANIFEST_NAME, what)] if (root / REJECTS_NAME).lexists() else []
    try:
        manifest = read_manifest(root)
    except NewerManifestError:
        raise
    except ManifestError as error:  # the shards are checked all the same, as if they came from elsewhere
        return None, (), [Problem(str(root / MANIFEST_NAME), None, error.offset, None, str(error))]
    try:
        return manifest, read_classes(root, manifest), []
    except ManifestError as error:
        return manifest, (), [file_problem(root / LABELS_NAME, str(error))]


def _count_problems(root: Location, manifest: Manifest, labels: Mapping[str, Counter[int]]) -> Iterator[Problem]:
    """Yield where the counts of the manifest differ from those of the records, by split, and of the rejects."""
    path = root / MANIFEST_NAME
    for name, split in manifest.splits.items():
        seen = labels.get(name, Counter())
        counts = [(f"of class {label}", seen[label], count) for label, count in enumerate(split.class_counts)]
        counts.append(("without a class", seen[-1], split.unlabelled))
        yield from _differing(path, ((f"split {name} has {n} records {what}", n, listed) for what, n, listed in counts))
    if manifest.source.items != manifest.records + manifest.rejects:
        what = f"{manifest.records} records and {manifest.rejects} rejects are not the {manifest.source.items} items"
        yield file_problem(path, f"{what} of the source")
    path = root / REJECTS_NAME
    if not path.lexists():
        yield file_problem(path, "is missing; restore it, or build again")
        return
    try:
        rejects = read_rejects(root, manifest.files.get(REJECTS_NAME))
    except ManifestError as error:
        yield file_problem(path, str(error))
        return
    rejected = Counter(reject.split for reject in rejects)
    for name, split in manifest.splits.items():
        yield from _differing(path, [(f"has {rejected[name]} rejects of split {name}", rejected[name], split.rejects)])


def _companion_problems(root: Location, manifest: Manifest) -> Iterator[Problem]:
    """Yield what is wrong with files that only other systems read, such as ``dataset_info.json``."""
    for name, listed in manifest.files.items():
        if name in (LABELS_NAME, REJECTS_NAME):
            continue
        try:
            check_listed(root, name, listed)
        except ManifestError as error:
            yield problem_of(error, location(error.path or root))
        except OSError as error:
            yield file_problem(root / name, f"cannot be read: {error.strerror or error}")
