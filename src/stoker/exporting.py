"""`stoker.export`: the records of a dataset in formats of other libraries; images keep their bytes.

- ``folder``: ``SPLIT/CLASS/NAME``, and ``SPLIT/metadata.jsonl`` if records have fields or boxes
- ``webdataset``: ``SPLIT-000000.tar``, and ``labels.txt``, the names of the classes, if they have some
- ``parquet``: ``SPLIT-00000-of-00001.parquet``, as Hugging Face stores datasets of images

All files are written into a hidden folder beside the destination. When they are complete, one rename puts the folder in
its place: Stoker and other libraries find the whole export there or nothing. Other libraries would not check a mark
that says that files are missing.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
import warnings
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from stoker.builder import Report, reject_facts
from stoker.config import (
    IMAGE_SUFFIXES,
    check_choice,
    check_range,
    check_size,
    format_count,
    format_seconds,
    format_size,
    format_some,
)
from stoker.errors import (
    DATA_ERRORS,
    ConfigError,
    DestinationError,
    ExampleError,
    SourceWarning,
    printable,
    record_error,
)
from stoker.fields import Image, box_column, class_column, field_of_image, stored_values
from stoker.format import LABELS_NAME, write_labels
from stoker.loader import box_classes, choose_split, open_splits
from stoker.progress import Tally, progress_of_call
from stoker.recipe import sniff
from stoker.sources import import_pyarrow
from stoker.storage import attach_filename, folder_at_once, location
from stoker.types import BOX_SIDES, Reject

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from stoker.format import Manifest, RecordKeys
    from stoker.loader import Dataset
    from stoker.storage import LocationLike
    from stoker.types import Box, Field, Progress

__all__ = ["FORMATS", "ExportFormat", "ExportReport", "ExportedSplit", "export"]


ExportFormat = Literal["webdataset", "parquet", "folder"]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
_METADATA = "metadata.jsonl"
_SUFFIXES = {image_format: suffix for suffix, image_format in reversed(IMAGE_SUFFIXES.items())}
_SAME_SUFFIXES = {"jpeg": "jpg", "tiff": "tif", "heif": "heic"}
_RESERVED = ("image", "label", "class", "boxes", "file_name")
"""Names that the export itself uses for values of each record."""
_CAPTIONS = ("txt", "caption")
_MAX_STEM_BYTES = 180  # a number, the name of a field and a suffix follow, and names have up to 255
_TAR_BLOCK = 512
_SHOWN = 8  # names in a warning
_GROUP_RECORDS, _GROUP_BYTES = 100, 64 << 20  # of a row group: readers of Parquet hold a whole one in memory


@dataclass(frozen=True, slots=True)
class ExportedSplit:
    """What was written of a split.

    Attributes:
        records: Number of records.
        files: Number of files.
        size_bytes: Size of these files in bytes.
    """

    records: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class ExportReport(Report):
    """What an export did.

    Attributes:
        splits: What was written of each split, by name.
        rejects: Damaged records, which were omitted.
        seconds: Duration in seconds.
    """

    splits: dict[str, ExportedSplit]
    rejects: tuple[Reject, ...]
    seconds: float

    def _facts(self) -> list[str]:
        facts = [
            f"{name}: {format_count(split.records, 'record')} in {format_count(split.files, 'file')}, "
            f"{format_size(split.size_bytes)}"
            for name, split in self.splits.items()
        ]
        return [*facts, *reject_facts(self.rejects), format_seconds(self.seconds)]


def export(  # noqa: PLR0913 - settings by name
    dataset: LocationLike,
    destination: LocationLike,
    to: ExportFormat,
    *,
    split: str | None = None,
    shard_size: str | int = "1GB",
    max_rejects: int = 0,
    keys: RecordKeys | None = None,
    progress: Progress | Literal[False] | None = None,
) -> ExportReport:
    """Write the records of a dataset as a folder of images, as WebDataset or as Parquet.

    It is what ``stoker export`` does; see docs/how-to/export.md.

    Args:
        dataset: A dataset that ``stoker build`` made, or TFRecords of other origin; here or in a store.
        destination: A new or empty folder on this machine, which the export replaces when it is complete; an export
            that was interrupted starts anew. It cannot be the current folder or a mount point.
        to: The format: ``"folder"``, ``"webdataset"`` or ``"parquet"``.
        split: The split to export. Default: all.
        shard_size: Bytes of images after which a tar or a Parquet file ends, also as ``"500MB"``.
        max_rejects: How many damaged records may be omitted; the next one stops the export.
        keys: Names of the features in TFRecords of other origin; see `stoker.open`.
        progress: Default: a bar on a terminal or in a notebook, once the call has taken a second. False: nothing. A
            function: called with ``done``, ``total``, ``size_bytes`` and ``rejects`` after every record, from the
            calling thread.

    Returns:
        What the export did.

    Warns:
        SourceWarning: The format cannot hold everything: texts of classes, classes without images, ids of classes if
            folders have only their names, or names of the classes of a field. Nothing is written before the warning.

    Raises:
        ConfigError: There is no such split or format, the images are raw pixels or are still files, a class or a field
            has a name that cannot be written, or pyarrow is not installed.
        DatasetNotFoundError: There is nothing to read.
        DestinationError: The destination is not empty or cannot be replaced, or another process writes it.
        ShardError: More records than ``max_rejects`` are damaged.
        ExampleError: The same, for the contents of records.
        OSError: Something cannot be read or written. Call again to begin anew.

    Example:
        >>> report = stoker.export("dataset", "rows", "parquet", split="train")  # doctest: +SKIP
        >>> report.splits["train"].files                                         # doctest: +SKIP
    """
    started = time.monotonic()
    check_choice("to", to, FORMATS)
    limit = check_size("shard_size", shard_size, 1)
    check_range("max_rejects", max_rejects, 0, 2**63 - 1)
    out = location(destination)
    if not out.is_local:
        raise ConfigError(f"{destination} is in a store; export to a folder of this machine, then copy it there")
    datasets = open_splits(dataset, keys)
    if split is not None:
        name = choose_split(split, datasets, location(dataset))
        datasets = {name: datasets[name]}
    for split_dataset in datasets.values():
        _check(split_dataset, to)
    for message in _losses(datasets, to):
        warnings.warn(message, SourceWarning, stacklevel=2)
    splits: dict[str, ExportedSplit] = {}
    rejects: list[Reject] = []
    with progress_of_call("exporting", progress, "records") as shown, folder_at_once(Path(out.local_path())) as folder:
        tally = Tally(sum(map(len, datasets.values())), shown)
        for name, split_dataset in datasets.items():
            ahead = split_dataset.reader.reading_in_order(split_dataset.numbers)
            with ahead, _WRITERS[to](folder, name, split_dataset, limit) as writer:
                _write_split(name, split_dataset, writer, rejects, max_rejects, tally)
            splits[name] = ExportedSplit(writer.records, writer.files, writer.size_bytes)
        classes = next(iter(datasets.values())).classes
        if to == "webdataset" and classes:
            names = [os.fsencode(class_label.name) for class_label in classes]
            texts = [class_label.text.encode("utf-8", "surrogateescape") for class_label in classes]
            write_labels(folder, names, texts, 0)
    return ExportReport(splits, tuple(rejects), time.monotonic() - started)


# Its public name is `stoker.export`.
export.__module__ = "stoker"


def _write_split(
    name: str, dataset: Dataset, writer: _Writer, rejects: list[Reject], max_rejects: int, tally: Tally
) -> None:
    """Write the records of a split; damaged ones become rejects, up to ``max_rejects`` of all splits."""
    for number in range(len(dataset)):
        try:
            record = _read(dataset, number, has_boxes=writer.has_boxes)
            writer.check(record)
        except DATA_ERRORS as error:
            if len(rejects) == max_rejects:
                error.add_note(
                    "nothing was exported; max_rejects=N (--max-rejects N) leaves out up to N damaged records"
                )
                raise
            rejects.append(Reject(f"{name}#{number}", name, str(error)))
            tally.advanced(1, 0, 1)
        else:
            writer.write(record)
            writer.records += 1
            tally.advanced(1, len(record.image), 0)


def _check(dataset: Dataset, to: ExportFormat) -> None:
    """Refuse a dataset that cannot be written in a format."""
    if not dataset.shards:
        raise ConfigError(
            f"{dataset.path} holds image files; 'stoker build' makes a dataset of them, which can be exported"
        )
    if dataset.schema.image_encoding == "raw":
        message = f"{dataset.path} holds raw pixels, not image files"
        raise ConfigError(f"{message}; 'stoker repack --encode png' makes a dataset of images, which can be exported")
    for name, field in dataset.fields.items():
        if name in _RESERVED:
            raise ConfigError(f"field {name!r} of {dataset.path} has a name that the export itself uses; rename it")
        if to == "parquet" or not field.is_image:
            continue
        is_suffix = to == "folder" and name.lower() in IMAGE_SUFFIXES
        if is_suffix or not name.replace("-", "_").isidentifier():
            message = f"field {name!r} of {dataset.path} cannot be a part of the names of files"
            raise ConfigError(f"{message}; export to parquet, or rename it")
    names = [class_label.name for class_label in dataset.classes]
    if to != "webdataset" and len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ConfigError(f"{dataset.path} has two classes named {twice!r}; export to webdataset, which has their ids")
    for name in names if to == "folder" else ():
        if not name or name.startswith(".") or "/" in name or not name.isprintable() or len(os.fsencode(name)) > 255:
            message = f"class {name!r} of {dataset.path} cannot be the name of a folder"
            raise ConfigError(f"{message}; export to webdataset or parquet")


def _losses(datasets: Mapping[str, Dataset], to: ExportFormat) -> Iterator[str]:
    """Yield warnings of what the files cannot hold of a dataset."""
    dataset = next(iter(datasets.values()))
    known = dataset.classes[dataset.schema.label_base :]
    if to != "webdataset" and any(class_label.text for class_label in known):
        yield f"the texts of {format_count(len(known), 'class')} are not written: a {to} has only their names"
    if to == "folder" and known:
        names = [class_label.name for class_label in known]
        seen: set[str] = set()
        for part in datasets.values() if all(part.manifest for part in datasets.values()) else ():
            counts = cast("Manifest", part.manifest).splits[part.split].class_counts
            seen |= {label.name for label, count in zip(part.classes, counts, strict=False) if count}
        empty = [name for name in names if seen and name not in seen]
        if empty:
            yield f"no image has {_listed('the class', 'the classes', empty)}, so no folder tells of them"
        if dataset.schema.label_base or names != sorted(names, key=os.fsencode):
            message = (
                f"readers number the classes of a folder from 0 in the order of their names, unlike {dataset.path}"
            )
            yield f"{message}; to keep the ids, build again with its {LABELS_NAME} as the list of labels"
    named = [name for name, field in dataset.fields.items() if field.class_names is not None]
    if to != "parquet" and named:
        yield f"{_listed('the field', 'the fields', named)} will have ids without names of classes; parquet has both"
    plain = [name for name, field in dataset.fields.items() if not field.is_image and name != _caption(dataset.fields)]
    if to == "webdataset" and plain:
        yield f"opened again, {_listed('the field', 'the fields', plain)} will be in the field 'json'"
    other = [name for name, field in dataset.fields.items() if field.is_image and field_of_image(name) != field]
    if other:
        message = f"opened again, {_listed('the field', 'the fields', other)} will be of another kind: images called"
        yield f"{message} mask, seg or trimap are masks of 8 bits there, and all others are images"


def _listed(singular: str, plural: str, names: Sequence[str]) -> str:
    return f"{singular if len(names) == 1 else plural} {format_some(names, _SHOWN, repr)}"


@dataclass(frozen=True, slots=True)
class _Record:
    index: int  # its number in the split
    name: str  # base name of its file, with the suffix of its content
    image: bytes
    label: int  # as the record has it; -1 for none
    class_name: str  # of the label; empty for none
    boxes: list[Box] | None  # of the objects; None if no record has boxes
    values: dict[str, Any]  # of its extra fields; images and masks are bytes


def _read(dataset: Dataset, number: int, *, has_boxes: bool) -> _Record:
    try:
        sample = dataset[number]
        if sample.format not in _SUFFIXES:
            raise ExampleError(f"the image is {sample.format}, no file that has a suffix")
        if sample.label >= len(dataset.classes) > 0:
            raise ExampleError(f"label {sample.label} is not one of the {len(dataset.classes)} classes")
        boxes = sample.boxes if has_boxes else None
        if sample.problems:
            raise ExampleError(next(iter(sample.problems.values())))
        values = stored_values(sample.features, dataset.fields)
    except DATA_ERRORS as error:
        if error.path is not None:
            raise
        raise record_error(type(error), dataset.records.where(number), error) from error
    label = max(sample.label, -1)
    # Without names, numbers of one width, which sort in the order of the labels.
    class_name = "" if label < 0 else dataset.classes[label].name if dataset.classes else f"{label:05d}"
    name = _file_name(sample.source, number, _SUFFIXES[sample.format])
    return _Record(number, name, sample.encoded, label, class_name, boxes, values)


def _file_name(source: str, number: int, suffix: str) -> str:
    """Return a base name that any file system accepts, with the suffix of the content."""
    name = printable(source[source.rfind("/") + 1 :]).replace("\\", "_").lstrip(".")
    stem, dot, given = name.rpartition(".")
    if _SAME_SUFFIXES.get(given.lower(), given.lower()) == suffix:
        suffix = given
    stem = (stem if dot else name).encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
    return f"{stem or f'{number:08d}'}.{suffix}"


def _has_boxes(dataset: Dataset) -> bool:
    """Return whether any record has boxes, or may have some as a record is damaged."""
    try:
        return dataset.schema.box_prefix is not None and bool(dataset.object_counts.any())
    except DATA_ERRORS:  # a record is damaged
        return True


def _caption(fields: Mapping[str, Field]) -> str | None:
    return next((name for name in _CAPTIONS if name in fields and fields[name].form().kind == "text"), None)


def _box(box: Box, names: Sequence[str] = ()) -> dict[str, float | int | str | None]:
    values = {**{side: getattr(box, side) for side in BOX_SIDES}, "label": box.label}
    named = box.label is not None and 0 <= box.label < len(names)
    return values | ({"class": names[box.label or 0]} if named else {})


class _Writer(AbstractContextManager["_Writer"], ABC):
    """Writes the records of a split, in the ``with`` block; a file that holds several ends after ``shard_bytes``."""

    def __init__(self, folder: Path, split: str, dataset: Dataset, shard_bytes: int) -> None:
        self._folder, self._split = folder, split
        self._dataset, self._fields = dataset, dataset.fields
        self._forms = {name: field.form() for name, field in dataset.fields.items()}
        self._box_names = [known.name for known in box_classes(dataset.schema, dataset.classes)]
        self._shard_bytes = shard_bytes
        self.has_boxes = _has_boxes(dataset)
        self.records = self.files = self.size_bytes = 0

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(is_complete=kind is None)

    def check(self, record: _Record) -> None:
        """Refuse a record with values that the format cannot hold."""
        for name, form in self._forms.items():
            if form.dtype.startswith("float") and not np.isfinite(record.values[name]).all():
                problem = f"field {name!r} is not finite, as JSON numbers are; export to parquet"
                raise record_error(ExampleError, self._dataset.records.where(record.index), problem)

    @abstractmethod
    def write(self, record: _Record) -> None:
        """Write one record."""

    @abstractmethod
    def close(self, *, is_complete: bool) -> None:
        """Close the files; finish them if all records have been written."""

    def _count_file(self, size_bytes: int) -> None:
        self.files += 1
        self.size_bytes += size_bytes

    def _json_values(self, record: _Record, *, without: str | None = None) -> dict[str, Any]:
        """Return the extra values of a record as JSON values, without images and masks."""
        plain = {name: field for name, field in self._fields.items() if not field.is_image and name != without}
        values: dict[str, Any] = {name: field.to_plain(record.values[name]) for name, field in plain.items()}
        if record.boxes is not None:
            values["boxes"] = [_box(box, self._box_names) for box in record.boxes]
        return values

    def _images(self, record: _Record) -> list[tuple[str, bytes]]:
        return [(name, record.values[name]) for name, field in self._fields.items() if field.is_image]


class _Folder(_Writer):
    """Image files in folders of their classes, and a line of JSON for each where these do not tell all."""

    def __init__(self, folder: Path, split: str, dataset: Dataset, shard_bytes: int) -> None:
        super().__init__(folder, split, dataset, shard_bytes)
        self._root = folder / split
        self._root.mkdir()
        self._class_folders: set[str] = set()
        self._unlabelled = 0
        self._rows = (self._root / _METADATA).open("wb")

    def write(self, record: _Record) -> None:
        if record.class_name and record.class_name not in self._class_folders:
            (self._root / record.class_name).mkdir()
            self._class_folders.add(record.class_name)
        prefix = f"{record.class_name}/" * bool(record.class_name)
        stem, _, suffix = record.name.rpartition(".")
        row: dict[str, Any] = {"file_name": self._create(prefix, stem, record.index, suffix, record.image)}
        row["label"] = record.class_name or None
        self._unlabelled += not record.class_name
        for name, data in self._images(record):
            # Without the suffix of an image, so that readers of folders do not take it for another sample.
            row[f"{name}_file_name"] = self._create(prefix, stem, record.index, name, data)
        row |= self._json_values(record)
        with attach_filename(self._root / _METADATA):
            self._rows.write(json.dumps(row, ensure_ascii=True).encode() + b"\n")

    def _create(self, prefix: str, stem: str, index: int, suffix: str, data: bytes) -> str:
        """Write a file, and return its name, which gets the number of the record if the name exists."""
        for name in (f"{stem}.{suffix}", f"{stem}-{index}.{suffix}", f"{stem}-{index}-{self.files}.{suffix}"):
            path = self._root / prefix / name
            try:
                file = path.open("xb")
            except FileExistsError:
                continue
            with attach_filename(path), file:
                file.write(data)
            self._count_file(len(data))
            return prefix + name
        raise DestinationError(f"there is a file of the name {path} already", path=str(path))

    def close(self, *, is_complete: bool) -> None:
        metadata = self._root / _METADATA
        with attach_filename(metadata):
            self._rows.close()
        if self._fields or self.has_boxes or (self._unlabelled and self._class_folders):
            if is_complete:
                self._count_file(metadata.stat().st_size)
        else:
            metadata.unlink()


class _Tars(_Writer):
    """Tars in which members with the same base name are a sample."""

    _file: io.BufferedWriter | None = None
    _tar: tarfile.TarFile | None = None

    def write(self, record: _Record) -> None:
        key = f"{record.index:09d}"
        caption = _caption(self._fields)
        more: dict[str, Any] = {"file_name": record.name}
        if record.label >= 0:
            more["class"] = record.class_name
        more |= self._json_values(record, without=caption)
        suffix = record.name.rpartition(".")[2].lower()
        members = [(_SAME_SUFFIXES.get(suffix, suffix), record.image)]  # "jpg" for .jpeg, too: pipelines ask for that
        if record.label >= 0:
            members.append(("cls", b"%d" % record.label))
        if caption is not None:
            members.append(("txt", record.values[caption].encode()))
        members.append(("json", json.dumps(more).encode()))
        members += [(f"{name}.{_SUFFIXES.get(sniff(data), 'jpg')}", data) for name, data in self._images(record)]
        size = sum(_TAR_BLOCK + -(-len(data) // _TAR_BLOCK) * _TAR_BLOCK for _, data in members)
        if self._tar is not None and self._tar.offset + size > self._shard_bytes:
            self.close(is_complete=True)
        if self._tar is None:
            self._file = self._path.open("xb")
            self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - see close
        for suffix, data in members:
            info = tarfile.TarInfo(f"{key}.{suffix}")  # with date 0 and owner 0: the same bytes each time
            info.size = len(data)
            with attach_filename(self._path):
                self._tar.addfile(info, io.BytesIO(data))

    @property
    def _path(self) -> Path:
        return self._folder / f"{self._split}-{self.files:06d}.tar"

    def close(self, *, is_complete: bool) -> None:
        if self._file is None or self._tar is None:
            return
        opened, tar = self._file, self._tar
        self._file = self._tar = None
        with attach_filename(self._path), opened as file:
            if is_complete:
                tar.close()
                file.flush()
                os.fsync(file.fileno())
                size = file.tell()
        if is_complete:
            self._count_file(size)


class _Parquet(_Writer):
    """Parquet files that the library ``datasets`` reads as images, classes and values."""

    def __init__(self, folder: Path, split: str, dataset: Dataset, shard_bytes: int) -> None:
        super().__init__(folder, split, dataset, shard_bytes)
        self._arrow, self._parquet = import_pyarrow()
        self._schema = _schema(self._arrow, dataset, self._box_names if self.has_boxes else None)
        self._rows: list[dict[str, Any]] = []
        self._group_bytes = self._written_bytes = 0
        self._paths: list[Path] = []
        self._file: Any = None

    def check(self, record: _Record) -> None:
        """Accept all values."""

    def write(self, record: _Record) -> None:
        """Collect the row, and write rows when they fill a row group."""
        row: dict[str, Any] = {"image": {"bytes": record.image, "path": record.name}, "label": record.label}
        size = len(record.image)
        for name, field in self._fields.items():
            value = record.values[name]
            row[name] = field.to_arrow(value)
            if isinstance(value, np.ndarray):
                size += value.nbytes
            elif isinstance(value, (str, bytes)) and self._forms[name].kind != "json":
                size += len(value)
        if record.boxes is not None:
            row["boxes"] = [_box(box) for box in record.boxes]
        if self._written_bytes + self._group_bytes + size > self._shard_bytes:
            self._end_file()
        if len(self._rows) == _GROUP_RECORDS or self._group_bytes + size > _GROUP_BYTES:
            self._write_group()
        self._rows.append(row)
        self._group_bytes += size

    def _write_group(self) -> None:
        if self._file is None:
            self._paths.append(self._folder / f"{self._split}-{len(self._paths):05d}")
            with attach_filename(self._paths[-1]):
                self._file = self._parquet.ParquetWriter(self._paths[-1], self._schema)
        columns = [self._arrow.array([row[column.name] for row in self._rows], column.type) for column in self._schema]
        with attach_filename(self._paths[-1]):
            self._file.write_batch(self._arrow.RecordBatch.from_arrays(columns, schema=self._schema))
        self._written_bytes += self._group_bytes
        self._rows, self._group_bytes = [], 0

    def _end_file(self) -> None:
        if self._rows:
            self._write_group()
        if self._file is not None:
            with attach_filename(self._paths[-1]):
                self._file.close()
                with self._paths[-1].open("rb") as file:
                    os.fsync(file.fileno())
            self._count_file(self._paths[-1].stat().st_size)
        self._file, self._written_bytes = None, 0

    def close(self, *, is_complete: bool) -> None:
        """Finish the last file, and rename all files, as their names have the number of files."""
        if not is_complete:
            if self._file is not None:
                self._file.close()
            return
        if not self.records:
            self._write_group()  # a file without rows, which has the columns
        self._end_file()
        for number, path in enumerate(self._paths):
            path.rename(self._folder / f"{self._split}-{number:05d}-of-{len(self._paths):05d}.parquet")


_WRITERS: dict[ExportFormat, type[_Writer]] = {"webdataset": _Tars, "parquet": _Parquet, "folder": _Folder}


def _schema(arrow: ModuleType, dataset: Dataset, box_names: Sequence[str] | None) -> Any:
    """Return the columns, with features for ``datasets``: which are images, and the names of classes."""
    columns = {
        "image": Image().arrow(arrow),
        "label": class_column(arrow, [class_label.name for class_label in dataset.classes]),
    }
    columns |= {name: field.arrow(arrow) for name, field in dataset.fields.items()}
    if box_names is not None:
        columns["boxes"] = box_column(arrow, box_names)
    features = {name: feature for name, (_, feature) in columns.items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return arrow.schema([(name, kind) for name, (kind, _) in columns.items()], metadata=metadata)
