"""Parquet: tables with a column of images, as Hugging Face's ``datasets`` stores them.

docs/reference/images.md says which columns have the images and the classes, and which fields the others become. A text
that is null becomes empty, a number that is null becomes NaN: img2dataset, pandas and ``datasets`` write such rows.

A split is one file or several; names such as ``train-00000-of-00004.parquet``, or their folder, say which split.
Listing reads the footers, the classes and the paths. `stoker.sources.parquet_files` reads images and values.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections import Counter
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import format_count, format_some, option, option_with
from stoker.errors import ConfigError, SourceError
from stoker.fields import Array, Bytes, Float, Int, Json, Label, Labels, Mask, Text, check_extra, field_of_image
from stoker.sources.files import MAX_FILE_BYTES
from stoker.sources.items import GrowingColumn, chunks
from stoker.sources.labels import LabelMap, has_control_character
from stoker.sources.names import path_below
from stoker.sources.parquet_files import (
    PARQUET_SUFFIX,
    Columns,
    ParquetFile,
    ParquetReader,
    import_pyarrow,
    is_parquet,
    reported_damage,
)
from stoker.sources.source import COLUMN_OPTIONS, LABEL_OPTIONS, Kind, Source, SourceBuilder
from stoker.sources.tables import (
    BOXES_AS_JSON,
    LABEL,
    LABEL_NAME,
    SIDES_OF_BOXES,
    check_columns,
    find_label,
    may_be_classes,
)
from stoker.sources.tar_format import may_be_tar
from stoker.splits import SPLIT_WORDS, are_splits, splits_among

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from stoker.sources.look import Layout, Look
    from stoker.sources.options import SourceOptions
    from stoker.storage import Child, Location
    from stoker.types import Field


_DATA_FOLDER = b"data"
_IMAGE = "image"
_IMAGE_NAMES = ("image", "img", "jpg", "jpeg", "png", "webp", "image_bytes", "bytes")
_SPLITS = SPLIT_WORDS | {"eval": "test"}  # as `datasets` of Hugging Face has it, which writes most such files
_NUMBERED = re.compile(r"(?P<split>.+)-(?P<number>[0-9]{5,})-of-(?P<count>[0-9]{5,})(-[0-9a-z]+)?")
_WORDS = re.compile(r"[^A-Za-z0-9]+")
_LABEL_ROWS = 2**10
_ARRAYS = ("Array2D", "Array3D", "Array4D", "Array5D")
_LISTS_OF = ("List", "LargeList", "Sequence")
_PLAIN = ("Value", "ClassLabel", "Image", *_ARRAYS)
_MAX_SIDES = 8
_LISTS, _NUMBERS = ("list", "large_list", "fixed_size_list"), ("boolean", "integer", "floating")


def _find(look: Look, layout: Layout) -> dict[Location, str | None]:
    """Return the Parquet files of a folder, in the order of their names, and the split of each, or None without one.

    They lie in the folder itself, if there are no class folders, or in its folder ``data``, or in folders of splits.
    """
    children = look.beside_images(layout.base)
    paths = _parquet_in(layout.base, children)
    if paths:
        return {} if look.holds_folders else {path: split_of_file(path.name) for path in paths}
    folders = {child.name for child in children if child.is_folder}
    if _DATA_FOLDER in folders:
        data = layout.base / os.fsdecode(_DATA_FOLDER)
        paths = _parquet_in(data, look.beside_images(data))
        if paths:
            return {path: split_of_file(path.name) for path in paths}
    inner = {layout.base / os.fsdecode(name): split for name, split in splits_among(folders).items()}
    inside = {folder: _parquet_in(folder, look.beside_images(folder)) for folder in inner}
    are_splits({os.fsencode(folder.name) for folder, files in inside.items() if files}, str(layout.base))
    return {path: inner[folder] for folder, files in inside.items() for path in files}


def _parquet_in(folder: Location, children: Sequence[Child]) -> list[Location]:
    suffix = PARQUET_SUFFIX.encode()
    names = (child.name for child in children if child.is_file and child.name.endswith(suffix))
    return [folder / os.fsdecode(name) for name in names if not name.startswith((b".", b"_"))]


def split_of_file(name: str) -> str | None:
    """Return the split in the name of a Parquet file, or train; None if it is a numbered part of some other split."""
    stem = name.removesuffix(PARQUET_SUFFIX)
    numbered = _NUMBERED.fullmatch(stem)
    words = _WORDS.split((numbered["split"] if numbered else stem).lower())
    split = next((_SPLITS[word] for word in words if word in _SPLITS), None)
    return split if numbered or split else "train"


def has_images(path: Location) -> bool:
    """Return whether a Parquet file has a column of images."""
    return _image_column({column.name: column.type for column in ParquetFile(path).schema}) is not None


def _claim(look: Look) -> dict[Location, str | None]:
    if look.layout is not None:
        return _find(look, look.layout)
    is_one = look.is_file and not may_be_tar(look.path) and is_parquet(look.path)
    return {look.path: split_of_file(look.path.name) or "train"} if is_one else {}


def _list(look: Look, files: Mapping[Location, str | None]) -> Source:
    folder = look.layout.base if look.layout is not None else look.path.parent
    builder = SourceBuilder(look, folder, (folder,))
    rows = _Rows(builder, folder)
    for path, split in files.items():
        if split is not None:
            rows.add(path, split)
    other = sorted(path.name for path, split in files.items() if split is None)
    builder.skipped.warn(other, "not of train, validation or test, so not used: {names}", "of another split")
    message = "their names say that there are more files, and these are not there: {names}"
    builder.skipped.warn(_missing(files), message)
    if not len(builder.collector):
        raise SourceError(f"{look.root} holds no rows of train, validation or test", path=look.root)
    return builder.finish_in(rows.finish())


def _missing(files: Mapping[Location, str | None]) -> list[str]:
    """Return the names of missing files, by the count in the names of others; only some if very many are missing."""
    groups: dict[tuple[Location, str, int], set[int]] = {}
    for path in files:
        named = _NUMBERED.fullmatch(path.name.removesuffix(PARQUET_SUFFIX))
        if named:
            group = path.parent, named["split"], int(named["count"])
            groups.setdefault(group, set()).add(int(named["number"]))
    missing: list[str] = []
    for (_, split, count), numbers in groups.items():
        absent = (number for number in range(min(count, 2 * len(numbers) + 10)) if number not in numbers)
        missing += [f"{split}-{number:05d}-of-{count:05d}{PARQUET_SUFFIX}" for number in absent]
    return missing


@dataclasses.dataclass(frozen=True, slots=True)
class _Head:
    """The columns of a file."""

    columns: Columns  # the columns that are stored when it is unpacked
    label: str | None  # the column of the class; None without one
    names: tuple[str, ...] | None  # of the classes; None if labels are numbers or text
    warnings: tuple[str, ...]  # about columns that are not read, or not as the user may expect

    @property
    def description(self) -> tuple[Any, ...]:
        kinds = [(name, field.to_json()) for name, field in self.columns.fields.items()]
        return self.columns.image, self.columns.has_paths, sorted(kinds, key=str)


def _read_head(
    file: ParquetFile, options: SourceOptions, find: Callable[[ParquetFile, Mapping[str, Field | None]], str | None]
) -> _Head:
    """Find out what the columns of a file are; ``find`` returns the column of the classes, by names and values."""
    types = {column.name: column.type for column in file.schema}
    if len(types) < len(file.schema):
        raise SourceError(f"{file.path} has two columns of the same name; rename one", path=str(file.path))
    given = options.label_column or ()
    image = options.image_column or _image_column(types)
    check_columns(file.path, filter(None, (image, *given, *(options.columns or ()))), list(types))
    if image is not None and not _is_image(types[image]) and not _is_bytes(types[image]):
        message = f"{file.path}: the column {image!r} is {types[image]}, neither bytes nor structs of bytes and path"
        raise SourceError(message, path=str(file.path))
    if image is None:
        kinds = format_some([f"{name} ({kind})" for name, kind in types.items()], 10)
        message = f"{file.path} has no column of images: structs of bytes and path, or bytes called 'image'"
        raise SourceError(f"{message}; it has {kinds or 'none'}", path=str(file.path))
    by_column = {name: _field(name, kind, file.features.get(name)) for name, kind in types.items() if name != image}
    if len(given) > 1:
        message = f"{file.path}: {option('label_column')} names several columns; of Parquet give one"
        raise SourceError(message, path=str(file.path))
    named = [name for name, field in by_column.items() if isinstance(field, Label)]
    label = LABEL if isinstance(by_column.get(LABEL), (Label, Int, Float, Text)) else next(iter(named), None)
    if options.label_column is not None:
        label = next(iter(given), None)
    elif label is None and LABEL not in by_column:
        label = find(file, by_column)
    field = None if label is None else by_column.pop(label)
    names = None if not isinstance(field, Label) or field.names is None else tuple(field.names)
    if options.columns is not None:
        by_column = {name: field for name, field in by_column.items() if name in options.columns}
    fields = {name: field for name, field in by_column.items() if field is not None}
    try:
        check_extra(fields)
    except ConfigError as error:
        raise SourceError(f"{file.path}: {error}", path=str(file.path)) from error
    columns = Columns(image, _is_image(types[image]), fields)
    unused = [name for name, field in by_column.items() if field is None]
    warnings = [f"{file.path}: column {name!r} is not used: no field can hold its type" for name in unused]
    warnings += [message for name, message in BOXES_AS_JSON.items() if _has_boxes(fields.get(name), types.get(name))]
    return _Head(columns, label, names, tuple(warnings))


def _has_boxes(field: Field | None, kind: Any) -> bool:
    return isinstance(field, Json) and any(side in str(kind) for side in SIDES_OF_BOXES)


def _image_column(types: Mapping[str, Any]) -> str | None:
    """Return the column of the images: by its name, or else by its type."""
    images = [name for name, kind in types.items() if _is_image(kind) and field_of_image(name) != Mask()]
    if images:
        return _IMAGE if _IMAGE in images else images[0]
    names = {name.lower(): name for name in sorted(types, key=str.islower) if _is_bytes(types[name])}
    return next((names[name] for name in _IMAGE_NAMES if name in names), None)


def _is(kind: Any, *names: str) -> bool:
    """Return whether an Arrow type is one of some types, given by their names in ``pyarrow.types``."""
    types = import_pyarrow()[0].types
    return any(getattr(types, f"is_{name}")(kind) for name in names)


def _is_image(kind: Any) -> bool:
    if not _is(kind, "struct") or sorted(kind.field(at).name for at in range(kind.num_fields)) != ["bytes", "path"]:
        return False
    path = kind.field("path").type
    return _is_bytes(kind.field("bytes").type) and (_is_text(path) or _is(path, "null"))


def _is_bytes(kind: Any) -> bool:
    return _is(kind, "binary", "large_binary", "binary_view")


def _is_text(kind: Any) -> bool:
    return _is(kind.value_type if _is(kind, "dictionary") else kind, "string", "large_string", "string_view")


def _field(name: str, kind: Any, feature: Any) -> Field | None:
    """Return the field of a column, by its Arrow type and its feature in ``datasets``; None if no field can hold it."""
    pa, _ = import_pyarrow()
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    spec = feature if isinstance(feature, dict) else {}
    try:
        if spec.get("_type") == "ClassLabel":
            return Label(spec.get("names"))
        inner = feature[0] if isinstance(feature, list) and feature else spec.get("feature")
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel":
            return Labels(inner.get("names"))
        if spec.get("_type") in _ARRAYS:
            return Array(str(spec.get("dtype")), tuple(spec.get("shape") or ()))
        if _is_image(kind):
            return field_of_image(name)
        return _plain_field(kind)
    except ConfigError:  # names that are not valid, or a shape that no array has
        return _plain_field(kind)


def field_of_feature(name: str, kind: Any, spec: Any) -> Field | None:
    """Return the field of a feature of ``datasets``, given its Arrow type; None if the first record has to tell it."""
    if not _is_held_as_stored(spec):
        return None
    field = _field(name, kind, spec)
    is_nested = isinstance(field, Array) and len(field.shape) > 1 and spec["_type"] not in _ARRAYS
    return None if field == Json() or is_nested else field


def _is_held_as_stored(spec: Any) -> bool:
    """Return whether records hold the same values as Arrow; for audio and JSON they hold other objects."""
    form = spec.get("_type") if isinstance(spec, dict) else None
    return _is_held_as_stored(spec["feature"]) if form in _LISTS_OF else form in _PLAIN


def _plain_field(kind: Any) -> Field | None:
    if _is(kind, "dictionary"):
        kind = kind.value_type
    if _is(kind, "boolean", "integer"):
        return Int(str(kind))
    if _is(kind, "floating"):
        return Float()
    if _is_bytes(kind):
        return Bytes()
    if _is_text(kind) or _is(kind, "temporal", "decimal"):
        return Text()
    if _is(kind, "list", "large_list") and _is_text(kind.value_type):
        return Json("list[str]")
    return _array(kind) or (Json() if _is_json(kind) else None)


def _array(kind: Any) -> Field | None:
    sides: list[int | None] = []
    while _is(kind, *_LISTS):
        is_fixed = _is(kind, "fixed_size_list")
        if (sides and not is_fixed) or len(sides) == _MAX_SIDES:
            return None
        sides.append(kind.list_size if is_fixed else None)
        kind = kind.value_type
    return Array(str(np.dtype(kind.to_pandas_dtype())), tuple(sides)) if sides and _is(kind, *_NUMBERS) else None


def _is_json(kind: Any, depth: int = 0) -> bool:
    """Return whether JSON can hold the values of a type."""
    if depth > _MAX_SIDES:
        return False
    if _is(kind, *_LISTS):
        return _is_json(kind.value_type, depth + 1)
    if _is(kind, "struct"):
        return all(_is_json(kind.field(at).type, depth + 1) for at in range(kind.num_fields))
    return _is_text(kind) or (depth > 0 and _is(kind, *_NUMBERS))


class _Rows:
    """Collects the rows of files; the paths of items are relative to ``folder``."""

    def __init__(self, builder: SourceBuilder, folder: Location) -> None:
        self._builder = builder
        self._folder = folder
        self._first: tuple[Location, _Head] | None = None
        self._label: str | None = None
        self._files = GrowingColumn("i")
        self._row_of = GrowingColumn("q")
        self._digests: list[bytes] = []
        self._is_numbered: bool | None = None
        self._names: tuple[Location, tuple[str, ...]] | None = None
        self._unlabelled = 0
        self._nulls: Counter[str] = Counter()

    def add(self, path: Location, split: str) -> None:
        file = ParquetFile(path)
        if file.rows > file.size_bytes:
            message = f"{path} says that it has {file.rows:,} rows of images, in {file.size_bytes:,} bytes"
            raise SourceError(message, path=str(path))
        head = _read_head(file, self._builder.options, self._find_label)
        self._compare(path, head)
        number = len(self._builder.archives)
        self._builder.archives.append(path.to_uri())
        self._digests.append(file.digest)
        self._nulls += file.nulls([name for name, field in head.columns.fields.items() if field.missing is not None])
        name = path_below(path, self._folder)
        sizes = _sizes(file, head.columns)
        collector, before = self._builder.collector, len(self._builder.collector)
        for row, (label, image_path) in enumerate(self._labels_and_paths(file, head)):
            own = b"/".join((name, b"%09d" % row, *_base_name(image_path)))
            group = collector.group(split, self._class_name(path, row, label, head))
            collector.add(group, own, next(sizes))
            if self._builder.progress is not None and row % _LABEL_ROWS == 0:
                self._builder.progress(done=before + row, total=before + file.rows, size_bytes=0, rejects=0)
        for first, end in chunks(file.rows):
            self._files.extend(np.full(end - first, number, np.int32))
            self._row_of.extend(np.arange(first, end, dtype=np.int64))

    def _find_label(self, file: ParquetFile, fields: Mapping[str, Field | None]) -> str | None:
        """Return the column that `find_label` finds in the first file that has one; the same column in other files."""
        if self._label is not None:
            return self._label if self._label in fields else None
        is_first = not self._digests
        usable = {name: field for name, field in fields.items() if isinstance(field, Int | Text)}
        names = [
            name
            for name, field in usable.items()
            if LABEL_NAME.fullmatch(name) or (is_first and isinstance(field, Text))
        ]
        rows = next(file.batches(names, _LABEL_ROWS)).to_pylist() if names and file.rows else []
        values = {name: [row[name] for row in rows if row[name] not in (None, "")] for name in names}
        advice = partial(option_with, "label_column")
        warnings = self._builder.warnings
        self._label = find_label(file.path, values, warnings, advice)
        if self._label is None and is_first:
            warnings += may_be_classes(file.path, values, advice)
        return self._label

    def _compare(self, path: Location, head: _Head) -> None:
        """Refuse a file whose columns or names of classes differ from those of the first file."""
        if head.label is not None and head.names is not None:
            if self._names is None:
                if self._is_numbered is not None:
                    message = f"{path} has names of classes, and the files before it have not"
                    raise SourceError(f"{message}; write all alike", path=str(path))
                self._names = path, head.names
                self._use_names(path, head.names)
            elif self._names[1] != head.names:
                message = f"{path} has other names of classes than {self._names[0]}"
                raise SourceError(f"{message}; build them as two datasets, or give both the same", path=str(path))
        if self._first is None:
            self._first = path, head
            if head.names is not None and head.label != LABEL:
                self._builder.warnings.append(f"{path}: nothing is called {LABEL!r}; the classes are {head.label!r}")
            self._builder.warnings += head.warnings
        elif self._first[1].description != head.description:
            ours, theirs = ({**each.columns.fields, each.columns.image: None} for each in (head, self._first[1]))
            names = sorted(name for name in {*ours, *theirs} if ours.get(name, 0) != theirs.get(name, 0))
            message = f"{path} has other columns than {self._first[0]}: {', '.join(map(repr, names))}"
            raise SourceError(f"{message}; give all files the same", path=str(path))

    def _use_names(self, path: Location, names: tuple[str, ...]) -> None:
        for name in names:
            if has_control_character(name.encode()):
                raise SourceError(f"{path}: the class {name!r} has a control character in its name", path=str(path))
        if self._builder.labels is None:
            encoded = tuple(name.encode() for name in names)
            self._builder.labels = LabelMap(str(path), encoded, (b"",) * len(names))

    def _labels_and_paths(self, file: ParquetFile, head: _Head) -> Iterator[tuple[Any, str | None]]:
        """Yield the label of each row and the path of its image; None if missing."""
        pa, _ = import_pyarrow()
        image = f"{head.columns.image}.path"
        columns = [head.label] if head.label is not None else []
        columns += [image] if head.columns.has_paths else []
        if not columns:
            yield from repeat((None, None), file.rows)
        for batch in file.batches(columns, _LABEL_ROWS) if columns else ():
            with reported_damage(str(file.path), file.path):
                labels = paths = [None] * batch.num_rows
                if head.label is not None:
                    labels = batch.column(head.label).to_pylist()
                if head.columns.has_paths:
                    paths = pa.compute.struct_field(batch.column(head.columns.image), "path").to_pylist()
            yield from zip(labels, paths, strict=True)

    def _class_name(self, path: Location, row: int, label: Any, head: _Head) -> bytes | None:
        """Return the class of a row: its name, or its number if classes have no names; None without a label."""
        if isinstance(label, float) and label.is_integer():
            label = int(label)  # pandas writes whole numbers as floats if some are missing
        if label is None or label in (-1, "") or (isinstance(label, float) and math.isnan(label)):
            self._unlabelled += 1
            return None
        is_number = isinstance(label, int) and not isinstance(label, bool)
        if not isinstance(label, str) and (not is_number or label < 0):
            message = f"row {row:,} of {path}: {head.label} is {str(label)[:60]!r}, not the id of a class or its name"
            message += f"; give {option_with('label_column', 'none')} to keep it as a field"
            raise SourceError(message, path=str(path))
        names = self._names[1] if self._names is not None else None
        if names is not None and is_number:
            if label >= len(names):
                message = f"row {row:,} of {path}: {head.label} is {label}, and {len(names)} classes have names"
                raise SourceError(message, path=str(path))
            return str(names[label]).encode()
        if self._is_numbered not in (None, is_number):
            message = f"row {row:,} of {path}: {head.label} is {'a number' if is_number else 'text'}"
            raise SourceError(f"{message}, and that of earlier rows is not; write all alike", path=str(path))
        self._is_numbered = is_number
        return str(label).encode()

    def finish(self) -> ParquetReader:
        """Set the columns of the rows in the builder, warn of missing values, and return the reader of the rows."""
        self._builder.collector.columns = {"archive": self._files.finish(), "row": self._row_of.finish()}
        self._builder.numbered = bool(self._is_numbered)
        if self._unlabelled and self._builder.collector.class_names():
            message = f"{self._builder.root}: {format_count(self._unlabelled, 'row')} without a label"
            self._builder.warnings.append(message)
        assert self._first is not None, "no file was added"
        head, archives = self._first[1], tuple(self._builder.archives)
        for name, count in self._nulls.items():
            message = f"{self._builder.root}: column {name!r} has no value in {format_count(count, 'row')}"
            self._builder.warnings.append(f"{message}: {head.columns.fields[name].missing_shown} there")
        return ParquetReader(self._builder.base, archives, tuple(self._digests), head.columns)


def _sizes(file: ParquetFile, columns: Columns) -> Iterator[int]:
    """Yield the approximate size of each image: the mean in its row group, from the footer."""
    leaf = f"{columns.image}.bytes" if columns.has_paths else columns.image
    for rows, size in file.groups(leaf):
        yield from (max(1, min(size // max(1, rows), MAX_FILE_BYTES)) for _ in range(rows))


def _base_name(path: str | None) -> tuple[bytes, ...]:
    name = path.rpartition("/")[2] if path else ""
    return (name.encode(errors="replace"),) if name not in ("", ".", "..") and "\0" not in name else ()


PARQUET = Kind(
    name="Parquet",
    claim=_claim,
    list=_list,
    options=LABEL_OPTIONS | COLUMN_OPTIONS | {"boxes"},
    reader=ParquetReader,
)
