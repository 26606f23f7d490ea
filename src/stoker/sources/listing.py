"""A listed source as one file, which other processes read in place of listing the source again.

First come the columns: numbers, little-endian, at multiples of 8 bytes; and bytes, at multiples of 64 KiB, each
followed by the column of their starts. Then comes a JSON object, which describes the columns and everything else about
the source; then the length of that object (8 bytes), and the CRC-32C of all bytes before it (4 bytes), both unsigned
and little-endian. A column with the same number in every row is not stored.
"""

from __future__ import annotations

import json
import math
import mmap
import struct
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from stoker import _native
from stoker.errors import ConfigError
from stoker.sources.boxes import Annotations, BoxFolder, MappedBoxes, TableBoxes
from stoker.sources.items import Blobs, Column, ItemTable, chunks, row_range
from stoker.sources.kinds import KINDS
from stoker.sources.reader import to_bytes, to_text
from stoker.sources.source import Source
from stoker.splits import SPLITS
from stoker.storage import Location, Staging, append_to_scratch, scratch_file
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


_FORMAT, _VERSION = "stoker-listing", 4
_ANNOTATIONS: dict[str, type[Annotations]] = {each.name: each for each in (BoxFolder, MappedBoxes, TableBoxes)}
_ANNOTATIONS |= {each.name: each for kind in KINDS for each in kind.annotations}
_READERS = {kind.reader.name: kind.reader for kind in KINDS}
_END = struct.Struct("<QI")
_ALIGNMENT = 8
_MAPPED_ALIGNMENT = 2**16
"""Multiples of this are offsets at which any system can map a file."""
_CHUNK_BYTES = 2**22
_WHY = "the listing of the source is copied there"
_TABLE = ("paths", "labels", "sizes", "numbers", "objects")
_OWN = "own "  # prefix of the names of columns that only the kind of source has
_STARTS = " starts"
_TYPES = frozenset({"<i4", "<i8", "<f8", "|u1"})
# Exceptions of reading a damaged file, or a file of another program.
_DAMAGED = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)

_NamedColumns = dict[str, Any]  # of `Column`s


def write_listing(path: Location, source: Source, about: Mapping[str, Any]) -> None:
    """Write a source to a file atomically, replacing an existing one.

    Args:
        path: The file; its folder must exist if it is on this machine.
        source: The source.
        about: Further JSON values for the file.

    Raises:
        OSError: The disk is full, the store cannot be reached, or the like.
    """
    staged = path.parent.stage(path.name)
    try:
        writer = _Writer(staged)
        described = _write_source(writer, source)
        text = json.dumps(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "about": about,
                "tree": described,
                "columns": writer.columns,
            }
        ).encode()
        writer.write(text)
        staged.write([_END.pack(len(text), writer.crc32c)])
        staged.publish()
    finally:
        staged.discard()


def read_listing(path: Location) -> tuple[dict[str, Any], Source] | None:
    """Return what `write_listing` has written; None if there is no such file, or a damaged one.

    The columns stay in a copy of the file in the folder for temporary files. The system reads it on demand, and it
    disappears with the process.

    Raises:
        OSError: The file cannot be read, or there is no space for the copy.
    """
    with scratch_file(_WHY) as scratch:
        try:
            size, crc32c = _copy(path, scratch)
            return _read(scratch, size, crc32c)
        except (FileNotFoundError, *_DAMAGED):
            return None


def _read(scratch: IO[bytes], size: int, crc32c: int) -> tuple[dict[str, Any], Source]:
    if size < _END.size:
        raise ValueError("a file without an end")
    content = mmap.mmap(scratch.fileno(), size, access=mmap.ACCESS_READ)
    length, wanted = _END.unpack_from(content, size - _END.size)
    if wanted != crc32c or length > size - _END.size:
        raise ValueError("a wrong checksum")
    end = size - _END.size - length
    footer = parse_json(content[end : end + length])
    if (footer["format"], footer["version"]) != (_FORMAT, _VERSION):
        raise ValueError("another format")
    return dict(footer["about"]), _read_source(footer["tree"], _columns(scratch, content, footer["columns"], end))


class _Writer:
    def __init__(self, staged: Staging) -> None:
        self.columns: dict[str, dict[str, Any]] = {}
        self.crc32c = 0
        self._size_bytes = 0
        self._staged = staged

    def write(self, data: bytes) -> None:
        self._staged.write([data])
        self.crc32c = _native.crc32c(data, self.crc32c)
        self._size_bytes += len(data)

    def add(self, name: str, column: Column) -> None:
        """Append a column, or note its value if it is the same in every row.

        Starts of bytes are always written, so that no file has more rows than bytes.
        """
        if isinstance(column, Blobs):
            self.columns[name] = {"at": self._align(_MAPPED_ALIGNMENT), "bytes": len(column.data)}
            for first in range(0, len(column.data), _CHUNK_BYTES):
                self.write(column.data[first : first + _CHUNK_BYTES])
            self.add(f"{name}{_STARTS}", column.starts)
            return
        kind = column.dtype.newbyteorder("<").str
        described = {"type": kind, "shape": column.shape}
        is_fixed = column.size and kind[1] == "i" and not name.endswith(_STARTS)
        if is_fixed and bool((column == column.flat[0]).all()):
            self.columns[name] = {**described, "value": int(column.flat[0])}
            return
        self.columns[name] = {**described, "at": self._align(_ALIGNMENT)}
        for first, end in chunks(len(column)):
            self.write(column[first:end].astype(kind).tobytes())

    def _align(self, multiple: int) -> int:
        self.write(b"\0" * (-self._size_bytes % multiple))
        return self._size_bytes


def _write_source(writer: _Writer, source: Source) -> dict[str, Any]:
    table = source.table
    for name in _TABLE:
        writer.add(name, getattr(table, name))
    for name, column in table.columns.items():
        writer.add(f"{_OWN}{name}", column)
    return {
        "root": source.root,
        "classes": list(map(to_text, source.classes)),
        "texts": list(map(to_text, source.texts)),
        "ignored": source.ignored,
        "warnings": source.warnings,
        "label_warnings": source.label_warnings,
        "is_ordered": source.is_ordered,
        "reader": {"name": source.stored.name, **source.stored.to_json()},
        "splits": {name: [int(rows[0]), len(rows)] if len(rows) else [0, 0] for name, rows in source.splits.items()},
        "boxes": {split: {"name": boxes.name, **boxes.to_json()} for split, boxes in source.boxes.items()},
    }


def _read_source(described: dict[str, Any], columns: _NamedColumns) -> Source:
    own = {name.removeprefix(_OWN): column for name, column in columns.items() if name.startswith(_OWN)}
    table = ItemTable(**{name: columns[name] for name in _TABLE}, columns=own)
    classes = tuple(map(to_bytes, described["classes"]))
    _check_table(table, len(classes))
    try:
        reader = _READERS[described["reader"]["name"]].from_json(described["reader"], table)
    except ConfigError as error:
        raise ValueError(str(error)) from error
    source = Source(
        root=str(described["root"]),
        classes=classes,
        texts=tuple(map(to_bytes, described["texts"])),
        table=table,
        splits={_split(name): _rows(first, count, len(table)) for name, (first, count) in described["splits"].items()},
        ignored={str(kind): int(count) for kind, count in described["ignored"].items()},
        listing_warnings=tuple(map(str, described["warnings"])),
        boxes={
            _split(split): _ANNOTATIONS[annotation["name"]].from_json(annotation, table, len(classes))
            for split, annotation in described["boxes"].items()
        },
        reader=reader,
        label_warnings=tuple(map(str, described["label_warnings"])),
        is_ordered=bool(described["is_ordered"]),
    )
    if len(source.texts) != len(classes):
        raise ValueError(f"{len(source.texts)} texts of {len(classes)} classes")
    return source


def _check_table(table: ItemTable, classes: int) -> None:
    """Check that all columns are of one length and their values in range."""
    own = {name: column for name, column in table.columns.items() if not isinstance(column, Blobs)}
    numbers = {**{name: getattr(table, name) for name in _TABLE[1:]}, **own}
    if any(len(column) != len(table.paths) for column in (*numbers.values(), *table.columns.values())):
        raise ValueError("columns of different lengths")
    if table.paths.data.find(b"\0") >= 0:
        raise ValueError("a name with a NUL byte")
    limits = {"labels": (-1, classes), "objects": (-1, 2**31)}
    for name, column in numbers.items():
        least, end = limits.get(name, (-1 if column.ndim > 1 else 0, 2**63))
        for first, last in chunks(len(column)):
            some = column[first:last]
            if some.dtype.kind != "i" or (some.size and not least <= int(some.min()) <= int(some.max()) < end):
                raise ValueError(f"{name} out of range")


def _copy(path: Location, scratch: IO[bytes]) -> tuple[int, int]:
    """Copy a file; return its length, and the checksum of all bytes before `_END`, which holds the expected one."""
    size, crc32c, last = 0, 0, b""
    with path.reader() as file:
        while chunk := file.read(_CHUNK_BYTES):
            append_to_scratch(scratch, chunk, _WHY)
            size += len(chunk)
            held = last + chunk
            crc32c = _native.crc32c(held[: -_END.size], crc32c) if len(held) > _END.size else crc32c
            last = held[-_END.size :]
    return size, crc32c


def _columns(scratch: IO[bytes], content: mmap.mmap, described: dict[str, dict[str, Any]], end: int) -> _NamedColumns:
    """Return the columns, all of which end before the description begins."""
    columns: _NamedColumns = {}
    for name, column in described.items():
        if "bytes" in column:
            at, size = _extent(column["at"], column["bytes"], end)
            if at % _MAPPED_ALIGNMENT:
                raise ValueError("bytes that cannot be mapped")
            columns[name] = mmap.mmap(scratch.fileno(), size, access=mmap.ACCESS_READ, offset=at) if size else b""
            continue
        shape = tuple(map(int, column["shape"]))
        if column["type"] not in _TYPES or min(shape) < 0:
            raise ValueError("a column that is not understood")
        kind = np.dtype(column["type"])
        if "value" in column and not name.endswith(_STARTS):
            columns[name] = np.broadcast_to(np.asarray(column["value"], kind), shape)
            continue
        at, size = _extent(column["at"], math.prod(shape) * kind.itemsize, end)
        columns[name] = np.frombuffer(content, kind, size // kind.itemsize, at).reshape(shape)
    for name in [name for name, column in described.items() if "bytes" in column]:
        columns[name] = _blobs(columns[name], columns.pop(f"{name}{_STARTS}"))
    return columns


def _extent(at: Any, size: Any, end: int) -> tuple[int, int]:
    if type(at) is not int or type(size) is not int or not 0 <= at <= end or not 0 <= size <= end - at:
        raise ValueError("a column that is longer than the file")
    return at, size


def _blobs(data: bytes | mmap.mmap, starts: NDArray[Any]) -> Blobs:
    if starts.dtype != np.int64 or not len(starts) or starts[0] != 0 or starts[-1] != len(data):
        raise ValueError("bytes that do not fill their column")
    for first, end in chunks(len(starts)):
        if bool((np.diff(starts[first : end + 1]) < 0).any()):
            raise ValueError("bytes that overlap")
    return Blobs(data, starts)


def _rows(first: int, count: int, total: int) -> NDArray[np.int64]:
    if not 0 <= first <= total or not 0 <= count <= total - first:
        raise ValueError("a split that is not there")
    return row_range(first, count)


def _split(name: str) -> str:
    if name not in SPLITS:
        raise ValueError(f"no split {name!r}")
    return name
