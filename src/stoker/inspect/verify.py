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
import math
import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, cast

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
    record_place,
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
    no_records,
    parse_index,
    parse_shard_name,
    read_classes,
    read_index,
    read_manifest,
    read_rejects,
)
from stoker.inspect.info import leading_records, ranked
from stoker.loader import Sample, label_of, refuse_keys, refuse_unfinished
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.format import ClassLabel, InflatedShard, Manifest, RecordKeys, Shard
    from stoker.storage import Location, LocationLike
    from stoker.types import BatchForm, EncodedImage, Features, FeatureSpec, Progress, SchemaInfo

    CheckRecord = Callable[[Features, "_Result"], tuple[str, list[str]]]

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
    offset: int | None  # byte where the record or the damage starts; None when there is no such place
    source: str | None  # name of the source image; None when unknown
    what: str  # what is wrong, with the values

    def __str__(self) -> str:
        if self.path in self.what:  # an error of reading, which names the file and the byte itself
            named = self.record is None or f"record {self.record} " in self.what
            return self.what if named else f"record {self.record}: {self.what}"
        return f"{record_place(self.path, self.record, self.offset, self.source)}: {self.what}"


def problem_of(error: StokerError, path: Location, read_from: Path | None = None) -> Problem:
    """Return an error of reading as a problem of ``path``, also where its local copy ``read_from`` was read."""
    what = str(error) if read_from is None else message_about(error, read_from, str(path))
    return Problem(str(path), error.record, error.offset, error.source, what)


def _problem(path: Location | str, what: str) -> Problem:
    return Problem(str(path), None, None, None, what)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a check found."""

    shards: int  # shards looked at
    records: int  # records looked at
    size_bytes: int  # bytes of those shards
    # how many records have an image of which format, as `stoker.Sample.format` says; those that can be read
    formats: dict[str, int]
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
    place = location(path)
    manifest, classes, problems = _read_texts(place)
    if manifest is None:
        targets = _found_shards(place, problems)
        schema = _foreign_schema(place, targets, keys)
    else:
        refuse_keys(place, keys, f"its {MANIFEST_NAME} says where its records hold what")
        splits, schema = manifest.splits.items(), manifest.schema
        targets = [_Target(name, place / shard.name, shard) for name, split in splits for shard in split.shards]
    records = None if manifest is None else manifest.records
    counter = _ProgressCounter(progress, len(targets), records, len(problems))
    threads = available_cpus() if threads is None else threads
    check_stacks(2 * threads)  # of both at once: threads are started when there is work, after both pools were made
    with (
        stoppable_pool(threads, "stoker-records", only_reads=True) as pool,
        stoppable_pool(threads, "stoker-shards", only_reads=True) as shards,
    ):
        check = partial(_check_shard, check_record=partial(_record_wrong, schema, classes), pool=pool, counter=counter)
        results = list(shards.map(check, targets))
    labels: dict[str, Counter[int]] = {}
    for target, result in zip(targets, results, strict=True):
        labels.setdefault(target.split, Counter()).update(result.labels)
    problems += [problem for result in results for problem in result.shard_problems]
    problems += [problem for result in results for problem in result.record_problems]
    if manifest is not None:
        problems += _count_problems(place, manifest, labels)
        problems += _companion_problems(place, manifest)
    return VerifyReport(
        shards=len(targets),
        records=sum(result.records for result in results),
        size_bytes=sum(result.size_bytes for result in results),
        formats=ranked(sum((result.formats for result in results), Counter())),
        seconds=time.monotonic() - started,
        problems=tuple(problems),
        warnings=tuple(_warnings(place, manifest)),
    )


@dataclass(frozen=True, slots=True)
class _Target:
    """A shard to check: its split, where it is, and what the manifest says about it."""

    split: str
    path: Location
    listed: Shard | None


def _found_shards(place: Location, problems: list[Problem]) -> list[_Target]:
    """Return the shards that are there, and add a problem for those that the names of the others promise."""
    splits = find_shards(place)
    if not splits:
        raise no_records(place)
    for name, split in splits.items():
        if split.missing:
            numbers = format_some(split.missing, 5)
            what = f"split {name} lacks {len(split.missing)} shards that the names of the others promise: {numbers}"
            problems.append(_problem(place, what))
    return [_Target(name, path, None) for name, split in splits.items() for path in split.paths]


def _foreign_schema(place: Location, targets: Sequence[_Target], keys: RecordKeys | None) -> SchemaInfo:
    for target in targets:
        with contextlib.suppress(ShardError, ExampleError):
            if (features := first_features(target.path)) is not None:
                return find_layout(features, keys, str(place))
    return dataclasses.replace(ImagenetSchema().info(0), features={})  # not a record to which it could be wrong


def first_features(path: Location) -> Features | None:
    """Return what the first record of a TFRecord holds; None where it has none that can be read."""
    try:
        return next(leading_records([path], 1), None)
    except OSError as error:
        if is_scratch_full(error):
            raise
        return None


def _warnings(place: Location, manifest: Manifest | None) -> Iterable[str]:
    if manifest is None or not place.is_dir():
        return
    listed = {shard.name for split in manifest.splits.values() for shard in split.shards}
    names = sorted(os.fsdecode(path) for path, _ in place.files_below())
    if JOURNAL_NAME in names or any(name.startswith(f"{BUILD_FOLDER}/") for name in names):
        yield f"{place} holds the journal of an unfinished build; run the same 'stoker build' again to remove it"
    for name in names:
        if TEMPORARY_MARK in name.rpartition("/")[2]:
            yield f"{place / name} is left over from a build that died; remove it"
        elif name not in listed and "/" not in name and parse_shard_name(name) is not None:
            yield f"{place / name} is a shard that the manifest does not list"


class _ProgressCounter:
    """Adds up what threads have done, and reports it. Safe in any thread.

    Where the number of records is unknown, it is estimated from the shards whose frames were checked.
    """

    def __init__(self, progress: Progress | None, shards: int, records: int | None, problems: int) -> None:
        self._progress = progress
        self._shards = shards
        self._records = records
        self._lock = threading.Lock()
        self._seen_shards = self._seen_records = 0
        self._done = self._size_bytes = 0
        self._problems = problems

    def add_shard(self, records: int, problems: int) -> None:
        """Count a shard whose frames were checked."""
        with self._lock:
            self._seen_shards += 1
            self._seen_records += records
            self._problems += problems

    def add_records(self, result: _Result) -> None:
        """Count a run of records, and report."""
        with self._lock:
            self._done += result.records
            self._size_bytes += result.size_bytes
            self._problems += len(result.record_problems)
            if self._progress is not None:
                total = max(self._done, self._total())
                self._progress(done=self._done, total=total, size_bytes=self._size_bytes, rejects=self._problems)

    def _total(self) -> int:
        if self._seen_shards == self._shards or self._records is None:
            return self._seen_records * self._shards // max(1, self._seen_shards)
        return self._records


@dataclass(slots=True)
class _Result:
    """What the check of a run of records or of a whole shard found: no more than numbers, as there may be very many."""

    records: int = 0  # records looked into
    size_bytes: int = 0  # length of the records or of the shard; 0 when it is missing
    shard_problems: list[Problem] = field(default_factory=list)  # damage of the shard as a whole
    record_problems: list[Problem] = field(default_factory=list)  # damage of its records, in their order
    labels: Counter[int] = field(default_factory=Counter)  # how often each label was seen
    formats: Counter[str] = field(default_factory=Counter)  # the same of formats of images


def _check_shard(
    target: _Target, check_record: CheckRecord, pool: ThreadPoolExecutor, counter: _ProgressCounter
) -> _Result:
    """Check a shard; of one in a store, a copy.

    Runs in any thread but those of ``pool``, which check runs of its records.
    """
    try:
        with target.path.local_copy() as copy:
            copy.fetch()
            is_plain = copy.path.stat().st_size == 0 or compression_of(copy.path) == "none"
            check_frames = _check_plain if is_plain else _check_compressed
            frames = check_frames(target.path, copy.path, target.listed)
            counter.add_shard(len(frames.rows), len(frames.problems))
            plain = copy.path if frames.inflated is None else frames.inflated.path

            def run(first: int) -> _Result:
                rows = frames.rows[first : first + _CHUNK_RECORDS]
                result = _check_records(target.path, plain, first, rows, check_record)
                counter.add_records(result)
                return result

            results = list(pool.map(run, range(0, len(frames.rows), _CHUNK_RECORDS)))
    except OSError as error:
        if isinstance(error, StorageError):
            target.path.parent.is_dir()  # raises if the store cannot be reached, which is not damage
        if is_scratch_full(error) or is_machine_error(error):
            raise
        missing = isinstance(error, FileNotFoundError)
        what = "the shard is missing" if missing else f"cannot be read: {error.strerror or error}"
        frames, results = _Frames(_NO_ROWS, 0, [_problem(target.path, what)]), []
        counter.add_shard(0, 1)
    shard = _Result(len(frames.rows), frames.size_bytes, frames.problems)
    for result in results:
        shard.record_problems += result.record_problems
        shard.labels.update(result.labels)
        shard.formats.update(result.formats)
    return shard


@dataclass(frozen=True, slots=True)
class _Frames:
    """What is known about the frames of a shard."""

    rows: NDArray[np.uint64]  # uint64 (N, 2), the extents of the records to look into, before any compression
    size_bytes: int  # length of the shard; 0 when it is missing
    problems: list[Problem]  # damage of the shard as a whole
    inflated: InflatedShard | None = None  # the shard without its compression; None if it has none


def _check_plain(path: Location, copy: Path, listed: Shard | None) -> _Frames:
    """Check the frames of a shard whose bytes are in ``copy``, and compare it with what the manifest says about it."""
    problems: list[Problem] = []
    size = copy.stat().st_size
    scanned, checksum = _scan(copy, path, problems)
    indexed = _indexed(path, size, scanned, problems)
    rows = indexed if scanned is None else scanned
    if rows is None:  # the index would lead to all of them
        assert problems[0].offset is not None
        rows = _rows_before(copy, problems[0].offset)
        problems.append(_problem(path, "no index leads to the records behind the damage"))
    elif scanned is None:
        del problems[0]  # the check of the record itself reports it
    if listed is not None:
        problems += _against_manifest(path, listed, size, len(rows), _checksum(copy) if checksum is None else checksum)
        if not index_path(path).lexists():
            problems.append(_problem(index_path(path), "the index is missing; write it with 'stoker index'"))
    return _Frames(rows, size, problems)


def _check_compressed(path: Location, copy: Path, listed: Shard | None) -> _Frames:
    problems: list[Problem] = []
    rows, inflated = _NO_ROWS, None
    try:
        inflated = inflate(copy)
    except ShardError as error:
        problems.append(problem_of(error, path, copy))
    if inflated is not None:
        plain = inflated.path
        scanned, _ = _scan(plain, path, problems)  # the manifest has the checksum of the compressed bytes
        rows = scanned if scanned is not None else _rows_before(plain, problems[0].offset or 0)
    if listed is not None:
        problems += _against_manifest(path, listed, copy.stat().st_size, len(rows), _checksum(copy))
    return _Frames(rows, copy.stat().st_size, problems, inflated)


def _scan(plain: Path, path: Location, problems: list[Problem]) -> tuple[NDArray[np.uint64] | None, int | None]:
    """Return the extents of all records and the checksum of the file ``plain``.

    None for both, and a problem of ``path`` that says where, if a frame is damaged.
    """
    try:
        return _native.scan_and_sum(str(plain))
    except ShardError as error:
        problems.append(problem_of(error, path, plain))
        return None, None


def _rows_before(path: Path, end: int) -> NDArray[np.uint64]:
    """Return the extents of the records before the byte up to which a scan found no damage."""
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
        problems.append(_problem(index, f"cannot be read: {error.strerror or error}"))
        return None
    if scanned is not None and not np.array_equal(rows, scanned):
        what = f"lists {len(rows)} records at other places than the {len(scanned)} that the shard has"
        problems.append(_problem(index, f"{what}; write it again with 'stoker index'"))
    return rows


def _against_manifest(path: Location, listed: Shard, size: int, records: int, checksum: int) -> list[Problem]:
    wrong = []
    if size != listed.size_bytes:
        wrong.append(f"has {size} bytes; the manifest says {listed.size_bytes}")
    if records != listed.records:
        wrong.append(f"has {records} records; the manifest says {listed.records}")
    if checksum != listed.crc32c:
        wrong.append(f"has the CRC-32C {checksum:08x}; the manifest says {listed.crc32c:08x}")
    return [_problem(path, what) for what in wrong]


def _checksum(path: Path) -> int:
    crc = 0
    with attach_filename(path), path.open("rb", buffering=0) as file:
        while piece := file.read(_READ_BYTES):
            crc = _native.crc32c(piece, crc)
    return crc


def _check_records(
    path: Location, plain: Path, first: int, rows: NDArray[np.uint64], check_record: CheckRecord
) -> _Result:
    """Check a run of records of one shard, whose bytes are in ``plain``, without compression."""
    result = _Result()
    for number, (offset, size) in enumerate(rows.tolist(), first):
        result.records += 1
        result.size_bytes += size
        try:
            payload = _native.read_record(str(plain), offset, size)
            features = _native.parse_example(payload)
        except StokerError as error:
            what = problem_of(error, path, plain).what
            result.record_problems.append(Problem(str(path), number, offset, None, what))
            continue
        source, damage = check_record(features, result)
        result.record_problems += [Problem(str(path), number, offset, source or None, what) for what in damage]
    return result


def _record_wrong(
    schema: SchemaInfo, classes: Sequence[ClassLabel], features: Features, result: _Result
) -> tuple[str, list[str]]:
    """Return the name of a record's source image and what is wrong with it, and count its label and its format.

    Of shards of other origin the schema has no list of features; ``classes`` are by id, and empty when unknown.
    """
    encoded, source = (first_bytes(features, key or "") for key in (schema.image_key, schema.filename_key))
    sample = Sample(-1, features, encoded, -1, source.decode("utf-8", "replace"), schema)
    if encoded:
        result.formats[sample.format] += 1
    wrong = []
    for key, expected in schema.features.items():
        wrong += _spec_wrong(key, features, expected)
    unknown = sorted(features.keys() - schema.features.keys()) if schema.features else []
    if unknown:
        subject = f"feature {_some(unknown)} is" if len(unknown) == 1 else f"features {_some(unknown)} are"
        wrong.append(f"{subject} not in the schema")
    wrong += _image_wrong(sample, schema)
    wrong += _label_wrong(features, schema, classes, result.labels)
    wrong += _boxes_wrong(features, schema)
    wrong += _fields_wrong(features, schema)
    return sample.source, wrong


def _spec_wrong(key: str, features: Features, expected: FeatureSpec) -> list[str]:
    try:
        read_feature(key, expected, features)
    except ExampleError as error:
        return [str(error)]
    return []


def _image_wrong(sample: Sample, schema: SchemaInfo) -> list[str]:
    if not sample.encoded:
        missing = f"no image under {schema.image_key}; it has {_some(sorted(sample.features))}"
        return [] if schema.image_key in schema.features else [missing]  # what the schema lists is reported already
    try:
        height, width, _ = sample.decode().shape
    except (ImageError, ExampleError) as error:
        return [str(error)]
    wrong = []
    sizes = ((schema.height_key or "image/height", height), (schema.width_key or "image/width", width))
    for key, true in sizes:
        kind, claimed = sample.features.get(key, ("none", []))
        if kind == "int64" and claimed and claimed[0] != true:
            wrong.append(f"{key} says {int(claimed[0])}, but the image has {true}")
    kind, named = sample.features.get(_FORMAT_KEY, ("none", []))
    if _FORMAT_KEY in schema.features and kind == "bytes" and named and named[0] != format_name(sample.format):
        wrong.append(f"{_FORMAT_KEY} says {_cut(cast('bytes', named[0]))}, but the image is {sample.format}")
    return wrong


def _label_wrong(
    features: Features, schema: SchemaInfo, classes: Sequence[ClassLabel], labels: Counter[int]
) -> list[str]:
    if schema.label_key not in features:
        return []
    try:
        label = label_of(features, schema)
    except ExampleError as error:
        return [str(error)]
    labels[label] += 1
    wrong = _one_hot_wrong(features, schema, label)
    if 0 <= label < schema.label_base:
        return [*wrong, f"label {label} is below {schema.label_base}, the number of the first class"]
    if not classes or label == -1:
        return wrong
    if not schema.label_base <= label < len(classes):
        return [*wrong, f"label {label} is not in {schema.label_base}..{len(classes) - 1}"]
    named = classes[label]
    text = named.name if schema.preset == "imagenet-nvidia" else named.text
    for key, expected in ((_SYNSET_KEY, named.name), (_TEXT_KEY, text)):
        kind, stored = features.get(key, ("none", []))
        if kind == "bytes" and stored and stored[0] != os.fsencode(expected):
            shown = _cut(cast("bytes", stored[0]))
            wrong.append(f"{key} says {shown}, but {LABELS_NAME} names class {label} {expected!r}")
    return wrong


def _boxes_wrong(features: Features, schema: SchemaInfo) -> list[str]:
    """Check that there are as many left as right, upper and lower edges, and that each is a finite number."""
    if schema.box_prefix is None:
        return []
    packed = not schema.box_prefix.endswith("/")
    keys = [schema.box_prefix] if packed else [schema.box_prefix + side for side in ("xmin", "xmax", "ymin", "ymax")]
    counts = [len(features.get(key, ("float", []))[1]) for key in keys]
    if packed and counts[0] % 4:
        return [f"{schema.box_prefix} has {counts[0]} values, which are not four for each box"]
    if len(set(counts)) == 1:
        edges = (edge for key in keys for edge in features.get(key, ("float", []))[1])
        odd = sorted({str(edge) for edge in edges if not (isinstance(edge, float) and math.isfinite(edge))})
        wrong = [f"boxes have edges that are not finite numbers: {', '.join(odd[:3])}"] if odd else []
        first, end = schema.label_base, schema.label_base + len(schema.box_names)
        _, labels = features.get(f"{schema.box_prefix}label", ("int64", []))
        strange = [label for label in labels if label != -1 and label not in range(first, end)]
        if schema.box_names and strange:
            wrong.append(f"a box has the label {strange[0]!r}, which is not in {first}..{end - 1}")
        return wrong
    return ["boxes have " + ", ".join(f"{count} {key}" for key, count in zip(keys, counts, strict=True))]


def _fields_wrong(features: Features, schema: SchemaInfo) -> list[str]:
    """Check the value of every extra field, as far as its features are of the right kind and number."""
    wrong: list[str] = []
    for name, field_kind in schema.fields.items():
        if any(_spec_wrong(key, features, expected) for key, expected in field_kind.features(name).items()):
            continue  # reported already
        try:
            stored, form = field_kind.decode(name, features), field_kind.form()
            if form.is_plane:
                wrong += _image_field_wrong(name, stored, form, features)
        except (ExampleError, ImageError) as error:
            wrong.append(f"field {name}: {error}")
    return wrong


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
        kind, image = features.get(f"image/{side}", ("none", []))
        if kind == "int64" and image and image[0] != true:
            yield f"field {name} has a {side} of {true}, but image/{side} says {int(image[0])}"


def _one_hot_wrong(features: Features, schema: SchemaInfo, label: int) -> list[str]:
    """Compare the one-hot copy of a label, which some layouts have, with the label itself."""
    kind, values = features.get(_ONE_HOT_KEY, ("none", []))
    if schema.label_encoding != "id" or kind != "bytes" or not values:
        return []
    ones = [place for place, digit in enumerate(cast("bytes", values[0])) if digit]
    expected = [label - schema.label_base] if label >= 0 else []
    if ones == expected:
        return []
    return [f"{_ONE_HOT_KEY} marks {_cut(ones)}, but the label is {label}"]


def _some(keys: list[str]) -> str:
    """Return a few of the keys of a record, cut: hostile records have many and long ones."""
    return format_some(keys, _SHOWN_KEYS, lambda key: key[:_SHOWN_LENGTH])


def _cut(value: bytes | list[int]) -> str:
    """Return a value of a record, cut: it may be of any length."""
    return repr(value[:_SHOWN_LENGTH]) + ("..." if len(value) > _SHOWN_LENGTH else "")


def _read_texts(place: Location) -> tuple[Manifest | None, tuple[ClassLabel, ...], list[Problem]]:
    """Return the manifest, the classes, and what is wrong with either; None as manifest for shards of other origin."""
    if not (place / MANIFEST_NAME).lexists():
        refuse_unfinished(place)
        what = f"is missing, and {REJECTS_NAME} is there; restore it, or build again"  # which only comes with one
        return None, (), [_problem(place / MANIFEST_NAME, what)] if (place / REJECTS_NAME).lexists() else []
    try:
        manifest = read_manifest(place)
    except NewerManifestError:
        raise
    except ManifestError as error:  # the shards are checked all the same, as if they came from elsewhere
        return None, (), [Problem(str(place / MANIFEST_NAME), None, error.offset, None, str(error))]
    try:
        return manifest, read_classes(place, manifest), []
    except ManifestError as error:
        return manifest, (), [_problem(place / LABELS_NAME, str(error))]


def _count_problems(place: Location, manifest: Manifest, labels: Mapping[str, Counter[int]]) -> Iterator[Problem]:
    """Yield where the counts of the manifest differ from those of the records, by split, and of the rejects."""
    path = place / MANIFEST_NAME
    for name, split in manifest.splits.items():
        seen = labels.get(name, Counter())
        for label, count in enumerate(split.class_counts):
            if seen[label] != count:
                what = f"split {name} has {seen[label]} records of class {label}; the manifest says {count}"
                yield _problem(path, what)
        if seen[-1] != split.unlabelled:
            what = f"split {name} has {seen[-1]} records without a class; the manifest says {split.unlabelled}"
            yield _problem(path, what)
    if manifest.source.items != manifest.records + manifest.rejects:
        what = f"{manifest.records} records and {manifest.rejects} rejects are not the {manifest.source.items} items"
        yield _problem(path, f"{what} of the source")
    yield from _reject_problems(place, manifest)


def _reject_problems(place: Location, manifest: Manifest) -> Iterator[Problem]:
    path = place / REJECTS_NAME
    if not path.lexists():
        yield _problem(path, "is missing; restore it, or build again")
        return
    try:
        rejects = read_rejects(place, manifest.files.get(REJECTS_NAME))
    except ManifestError as error:
        yield _problem(path, str(error))
        return
    rejected = Counter(reject.split for reject in rejects)
    for name, split in manifest.splits.items():
        if rejected[name] != split.rejects:
            what = f"has {rejected[name]} rejects of split {name}; the manifest says {split.rejects}"
            yield _problem(path, what)


def _companion_problems(place: Location, manifest: Manifest) -> Iterator[Problem]:
    """Yield what is wrong with files that only other systems read, such as ``dataset_info.json``."""
    for name, listed in manifest.files.items():
        if name in (LABELS_NAME, REJECTS_NAME):
            continue
        try:
            check_listed(place, name, listed)
        except ManifestError as error:
            yield problem_of(error, location(error.path or place))
        except OSError as error:
            yield _problem(place / name, f"cannot be read: {error.strerror or error}")
