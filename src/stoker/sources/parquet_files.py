"""Parquet files: their footers, rows in batches, single rows of unpacked files. Only this module imports pyarrow.

What a file says of its sizes is not trusted: a footer must fit into the file, there are at most twenty rows and a
thousand bytes of values for each byte of the file, and values are read page by page, a few rows at a time.

Only whole pages of a Parquet file can be read, but images are needed one by one, in any order. So the columns that are
used are written once to an uncompressed Arrow file, which is mapped into memory: image ``i`` is a slice of it. It lies
in ``unpacked`` in the directory of `stoker.config.user_cache_directory`, and is as large as the images and values
together. Its name is made of digests of the path, length, time of the last change (or a store's version) and footer of
the Parquet file: a changed file is unpacked again and replaces the older one. A file gets its name when it is complete.
It is safe to remove: it is made again when it is needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import threading
import weakref
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from stoker.config import format_count, format_size, user_cache_directory
from stoker.errors import ConfigError, SourceError, StokerError
from stoker.progress import progress_of_call
from stoker.sources.files import MAX_FILE_BYTES, NO_SUCH_FILE, read_file
from stoker.sources.items import Item, ItemTable, ItemTableBuilder, new_column
from stoker.sources.reader import ArchiveReader, Extents, numbers_in
from stoker.storage import Location, SeekableBytes, from_uri, join, location, lock_alone, make_directory
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from numpy.typing import NDArray

    from stoker.types import Field


PARQUET_SUFFIX, ARROW_SUFFIX = ".parquet", ".arrow"
"""Suffixes of files that the library ``datasets`` saves."""

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_END_BYTES = 8  # the length of the footer, and the magic
_LEAST_BYTES = len(_MAGIC) + _END_BYTES
_LOCAL_BUFFER, _REMOTE_BUFFER = 2**20, 2**23
_BATCH_ROWS = 32
_ROWS_PER_BYTE = 20
_VALUES_PER_BYTE, _FEW_BYTES = 1000, 2**26
_SHOWN = 300

UNPACKED_FOLDER = "unpacked"
"""Folder of the user's cache in which unpacked files lie."""

_BATCH_BYTES = 2**24
_KEY_DIGITS = 16
_NAME = re.compile(rf"([0-9a-f]{{{_KEY_DIGITS}}}-[0-9a-f]{{{_KEY_DIGITS}}})-.*\.arrow.*", re.DOTALL)
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME = 120


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Return ``pyarrow`` and ``pyarrow.parquet``.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.compute  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise ConfigError(f"no module {error.name!r}; run pip install 'stoker[parquet]'") from error
    return pa, parquet


def is_parquet(path: Location) -> bool:
    """Return whether a file begins as Parquet does, or is called ``*.parquet``."""
    return path.suffix == PARQUET_SUFFIX or path.read_head(len(_MAGIC)) in (_MAGIC, _ENCRYPTED_MAGIC)


@contextmanager
def reported_damage(what: str, path: Location) -> Iterator[None]:
    """Turn errors of pyarrow in the ``with`` block into a `SourceError`, but not errors of the system and of stores."""
    try:
        yield
    except StokerError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(what, path, error) from error
    except (ArithmeticError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError) as error:
        raise _damaged(what, path, error) from error


def _damaged(what: str, path: Location, error: Exception) -> SourceError:
    reason = " ".join(str(error).split())[:_SHOWN]
    return SourceError(f"{what} is damaged, or pyarrow cannot read it: {reason}", path=str(path))


class ParquetFile:
    """A Parquet file to read. For one thread at a time; no file stays open."""

    def __init__(self, path: Location) -> None:
        _, parquet = import_pyarrow()
        self.path = path
        self.size_bytes = size = path.size()
        self.digest = _read_footer(path, size)  # 32 bytes: a digest of its length and its footer
        with reported_damage(f"the footer of {path}", path):
            self._reader = parquet.ParquetFile(
                _Bytes(path, size),
                buffer_size=_LOCAL_BUFFER if path.is_local else _REMOTE_BUFFER,
                pre_buffer=False,
                page_checksum_verification=True,
            )
            self.rows: int = self._reader.metadata.num_rows  # as its footer says; checked against its size
            values = sum(group.total_byte_size for group, _ in self._groups())
            self.schema = self._reader.schema_arrow  # a ``pyarrow.Schema``
            # the features that ``datasets`` has stored for the columns, as JSON; empty without these
            self.features = _features(self.schema.metadata or {})
        if not 0 <= self.rows <= _ROWS_PER_BYTE * size:
            raise SourceError(f"{path} says that it has {self.rows:,} rows, in {size:,} bytes", path=str(path))
        self.refuse_more(values)

    def refuse_more(self, values: int) -> None:
        """Refuse a file with more bytes of values, stated or read, than images in a file of its size can have."""
        if values > _FEW_BYTES + _VALUES_PER_BYTE * self.size_bytes:
            message = f"{self.path} has {format_size(values)} of values in {format_size(self.size_bytes)}, more than"
            message += f" {_VALUES_PER_BYTE} times as many, so it is not read; write it without compression"
            raise SourceError(message, path=str(self.path))

    def _groups(self) -> Iterator[tuple[Any, list[Any]]]:
        for number in range(self._reader.metadata.num_row_groups):
            group = self._reader.metadata.row_group(number)
            yield group, [group.column(at) for at in range(group.num_columns)]

    def groups(self, leaf: str) -> list[tuple[int, int]]:
        """Return the rows of each group, and the uncompressed bytes in it of a column such as ``image.bytes``."""
        with reported_damage(f"the footer of {self.path}", self.path):
            groups = [
                (group.num_rows, sum(each.total_uncompressed_size for each in columns if each.path_in_schema == leaf))
                for group, columns in self._groups()
            ]
        if sum(rows for rows, _ in groups) != self.rows or any(rows < 0 for rows, _ in groups):
            message = f"the footer of {self.path} is damaged: its row groups do not have its {self.rows:,} rows"
            raise SourceError(message, path=str(self.path))
        return groups

    def nulls(self, names: Collection[str]) -> Counter[str]:
        """Return how many rows have no value in each of some columns, if the footer says so."""
        counts: Counter[str] = Counter()
        with reported_damage(f"the footer of {self.path}", self.path):
            for column in chain.from_iterable(columns for _, columns in self._groups()):
                statistics = column.statistics if column.path_in_schema in names else None
                if statistics is not None and statistics.has_null_count:
                    counts[column.path_in_schema] += statistics.null_count
        return counts

    def batches(self, columns: Sequence[str], rows: int = _BATCH_ROWS) -> Generator[Any]:
        """Yield the rows in their order, ``rows`` at a time, as ``pyarrow.RecordBatch``.

        A name such as ``image.path`` selects one part of a column.
        """
        done = 0
        with reported_damage(f"{self.path}, at a row from {0:,} on,", self.path):
            batches = self._reader.iter_batches(rows, columns=list(columns), use_threads=False)
        while True:
            with reported_damage(f"{self.path}, at a row from {done:,} on,", self.path):
                batch = next(batches, None)
            if batch is None:
                break
            done += batch.num_rows
            yield batch
        if done != self.rows:
            message = f"{self.path} is damaged: it has {format_count(done, 'row')}, and its footer says {self.rows:,}"
            raise SourceError(message, path=str(self.path))


def plain_column(column: Any) -> Any:
    """Return a column of ``pyarrow`` with values of JSON, or bytes; times and decimal numbers become text."""
    pa, _ = import_pyarrow()
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    return column


def holds_bytes(path: Location) -> bool:
    """Return whether a Parquet file has columns of bytes, such as images, as its footer says."""
    return any("binary" in str(column.type) for column in ParquetFile(path).schema)


def parquet_rows(path: Location) -> Iterator[dict[str, Any]]:
    """Yield the rows of a small table, each as its values by column."""
    file = ParquetFile(path)
    names = file.schema.names
    for batch in file.batches(names):
        with reported_damage(str(path), path):
            columns = [plain_column(batch.column(name)).to_pylist() for name in names]
        yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _read_footer(path: Location, size: int) -> bytes:
    end = path.read_range(max(0, size - _END_BYTES), _END_BYTES, known_size=size)
    if end.endswith(_ENCRYPTED_MAGIC):
        raise SourceError(f"{path} is encrypted; decrypt it first", path=str(path))
    if size < _LEAST_BYTES or not end.endswith(_MAGIC):
        message = f"{path} does not end as Parquet does: it is cut short at byte {size:,}, or is something else"
        raise SourceError(message, path=str(path))
    length = int.from_bytes(end[:4], "little")
    if length > size - _LEAST_BYTES:
        message = f"{path} is damaged: its footer is said to have {length:,} bytes, and the file has {size:,}"
        raise SourceError(message, path=str(path))
    footer = path.read_range(size - _END_BYTES - length, length, known_size=size)
    return hashlib.sha256(b"%d\0" % size + footer).digest()


def _features(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    try:
        features = parse_json(metadata[b"huggingface"])["info"]["features"]
    except (LookupError, RecursionError, TypeError, ValueError):
        return {}
    return features if isinstance(features, dict) else {}


class _Bytes(SeekableBytes):
    """The bytes of a file, read without reading ahead."""

    def __init__(self, file: Location, size: int) -> None:
        super().__init__(size)
        self._file = file

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        content = self._file.read_range(self._at, length, self._at + length) if length else b""
        self._at += len(content)
        return content


@dataclasses.dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a Parquet file that are used."""

    image: str  # the column of the images: structs of ``bytes`` and ``path``, or bytes
    has_paths: bool  # whether it has such structs
    fields: dict[str, Field]  # the other columns, by name, in the order in which they are stored


class _Unpacked:
    """The rows of a Parquet file in the Arrow file ``path``. Read-only; safe in any thread."""

    def __init__(self, path: Path, columns: Columns) -> None:
        pa, _ = import_pyarrow()
        self.path = path
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        weakref.finalize(self, os.close, descriptor)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # so that no process removes a file in use
        self._file = location(path)
        self._column_of = {name: at for at, name in enumerate(columns.fields, 2)}
        with reported_damage(str(path), self._file):
            mapped = pa.memory_map(str(path)).read_buffer()
            reader = pa.ipc.open_file(pa.BufferReader(mapped), options=pa.ipc.IpcReadOptions(use_threads=False))
            self._mapped = mapped
            self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        self.rows = int(self._starts[-1])

    def slices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the image of each row begins in the file, and its length: int64 (N,); -1 and 0 if null."""
        offsets, sizes = np.full(self.rows, -1, np.int64), np.zeros(self.rows, np.int64)
        for first, batch in zip(self._starts.tolist(), self._batches, strict=False):
            images = batch.column(0)
            _, ends_at, data = images.buffers()
            ends = np.frombuffer(ends_at, np.int64)[images.offset :][: len(images) + 1]
            base = data.address - self._mapped.address if data is not None else 0
            limit = data.size if data is not None else 0
            if len(ends) <= len(images) or ends[0] < 0 or ends[-1] > limit or bool((np.diff(ends) < 0).any()):
                raise SourceError(f"{self.path} is damaged; remove it", path=str(self.path))
            there = images.is_valid().to_numpy(zero_copy_only=False)
            some = slice(first, first + len(images))
            offsets[some][there] = (ends[:-1] + base)[there]
            sizes[some][there] = np.diff(ends)[there]
        return offsets, sizes

    def image(self, row: int) -> tuple[bytes | None, str | None]:
        batch, at = self._find(row)
        data = batch.column(0)[at]
        return data.as_buffer().to_pybytes() if data.is_valid else None, batch.column(1)[at].as_py()

    def value(self, row: int, name: str) -> Any:
        batch, at = self._find(row)
        with reported_damage(f"the column {name!r} of {self.path}", self._file):
            return batch.column(self._column_of[name])[at].as_py()

    def _find(self, row: int) -> tuple[Any, int]:
        if not 0 <= row < self.rows:
            message = f"there is no row {row:,} in {self.path}, which has {self.rows:,}"
            raise SourceError(f"{message}; list the source again", path=str(self.path))
        number = int(np.searchsorted(self._starts, row, "right")) - 1
        return self._batches[number], row - int(self._starts[number])


def unpacked_files(directory: Path) -> Iterator[Path]:
    """Yield the unpacked files in a cache directory, including unfinished ones, and never any other file."""
    folder = directory / UNPACKED_FOLDER
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if _NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink():
                yield path


def is_in_use(path: Path) -> bool:
    """Return whether a process has an unpacked file open, or is writing it."""
    named = _NAME.fullmatch(path.name)
    return any(map(_is_locked, (path, path.with_name(f"{named[1]}.lock")) if named else (path,)))


def _is_locked(path: Path) -> bool:
    with contextlib.suppress(OSError):  # it was removed, or lies on a file system without locks
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            lock_alone(descriptor, path)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
    return False


def _unpack(file: Location, columns: Columns, advanced: Callable[[int], None] | None = None) -> _Unpacked:
    """Return the rows of a Parquet file, which is unpacked unless it has been before.

    Processes that need the same file wait for the one that unpacks it. ``advanced`` is called with the number of rows
    that are done.
    """
    folder = _folder(file)
    source = ParquetFile(file)
    key = _key(source, columns)
    path = folder / f"{key}-{_PLAIN.sub('_', file.name)[-_MAX_NAME:]}.arrow"
    if not path.is_file():
        with _locked(folder / f"{key}.lock", file) as is_alone:
            if not path.is_file():
                _write(path, source, columns, advanced)
                if is_alone:
                    _remove_older(path)
    return _Unpacked(path, columns)


def _folder(file: Location) -> Path:
    directory = user_cache_directory()
    if directory is None:
        message = f"{file} is read by way of a cache, and this user has no home directory"
        raise ConfigError(f"{message}; set STOKER_CACHE_DIR to a folder")
    folder = directory / UNPACKED_FOLDER
    with _writing_to(folder, file):
        make_directory(directory)
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


@contextmanager
def _writing_to(folder: Path, file: Location) -> Iterator[None]:
    """Raise a `ConfigError` that says what to do if the cache cannot be written in the ``with`` block."""
    try:
        yield
    except OSError as error:
        message = f"{file} cannot be unpacked in {folder}: {error.strerror or error}"
        advice = "set STOKER_CACHE_DIR to a folder of a disk that has space for it"
        raise ConfigError(f"{message}; {advice}") from error


def _key(source: ParquetFile, columns: Columns) -> str:
    """Return hex digits: a digest of the path, and one of the content."""
    where = hashlib.sha256(source.path.to_uri()).hexdigest()[:_KEY_DIGITS]
    info = source.path.info()
    stamp = info.stamp if info is not None else ""
    about = json.dumps([stamp, columns.image, columns.has_paths, *columns.fields])
    return f"{where}-{hashlib.sha256(source.digest + about.encode()).hexdigest()[:_KEY_DIGITS]}"


@contextmanager
def _locked(path: Path, file: Location) -> Iterator[bool]:
    """Hold a lock in the ``with`` block, and say so; without locks of files, several processes may write one file."""
    with _writing_to(path.parent, file):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    is_alone = False
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_alone = True
        yield is_alone
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_older(path: Path) -> None:
    """Remove files unpacked before a file changed, and leftovers of killed processes; the caller holds its lock."""
    where, key = path.name[:_KEY_DIGITS], path.name[: 2 * _KEY_DIGITS + 1]
    for other in unpacked_files(path.parents[1]):
        is_ours = other.name.startswith(key)
        if other != path and other.name.startswith(where) and (is_ours or not is_in_use(other)):
            other.unlink(missing_ok=True)


def _write(path: Path, source: ParquetFile, columns: Columns, advanced: Callable[[int], None] | None) -> None:
    pa, _ = import_pyarrow()
    with _writing_to(path.parent, source.path):
        staged = location(path.parent).stage(path.name)

    def write(data: Any) -> int:
        with _writing_to(path.parent, source.path):
            staged.write([bytes(data)])
        return len(data)

    sink = SimpleNamespace(write=write, flush=lambda: None, closed=False)  # `publish` flushes
    try:
        schema, writer, done = None, None, 0
        for table in _tables(source, columns):
            with reported_damage(str(source.path), source.path):
                schema = schema or table.schema
                options = pa.ipc.IpcWriteOptions(use_threads=False)
                writer = writer or pa.ipc.new_file(sink, schema, options=options)
                for batch in table.to_batches():
                    writer.write_batch(batch)
            done += table.num_rows
            if advanced is not None:
                advanced(done)
        if writer is not None:
            writer.close()
        staged.publish()
    finally:
        staged.discard()


def _tables(source: ParquetFile, columns: Columns) -> Iterator[Any]:
    """Yield the rows of a file as tables of a few megabytes, with the columns as they are stored."""
    pa, _ = import_pyarrow()
    held: list[Any] = []
    size = total = 0
    for batch in source.batches([columns.image, *columns.fields]):
        with reported_damage(str(source.path), source.path):
            arrays = [
                *_images(batch.column(columns.image), columns),
                *map(plain_column, map(batch.column, columns.fields)),
            ]
            held.append(pa.RecordBatch.from_arrays(arrays, names=[str(number) for number in range(len(arrays))]))
        size, total = size + held[-1].nbytes, total + held[-1].nbytes
        source.refuse_more(total)
        if size > _BATCH_BYTES:
            yield pa.Table.from_batches(held).combine_chunks()
            held, size = [], 0
    if held:
        yield pa.Table.from_batches(held).combine_chunks()


def _images(column: Any, columns: Columns) -> tuple[Any, Any]:
    pa, _ = import_pyarrow()
    data, paths = column, pa.nulls(len(column), pa.string())
    if columns.has_paths:
        data, paths = (pa.compute.struct_field(column, name) for name in ("bytes", "path"))
    return data.cast(pa.large_binary()), paths.cast(pa.string())


class ParquetReader(ArchiveReader):
    """Reads rows of Parquet files: the column ``archive`` of an item is its file, ``row`` its row.

    ``digests`` has one of the length and the footer of each file; ``columns`` are the columns that are used.
    """

    name = "parquet"

    def __init__(self, base: bytes, archives: tuple[bytes, ...], digests: tuple[bytes, ...], columns: Columns) -> None:
        super().__init__(base, archives, columns.fields)
        self._digests, self._columns = digests, columns
        self._locks = [threading.Lock() for _ in archives]
        self._files: dict[int, _Unpacked | SourceError] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return ParquetReader, (self.base, self.archives, self._digests, self._columns)

    def image(self, item: Item) -> bytes:
        data, path = self._file(item.columns["archive"]).image(item.columns["row"])
        if data is not None:
            if len(data) > MAX_FILE_BYTES:
                message = f"the image has {len(data):,} bytes, more than the {MAX_FILE_BYTES:,} that a record holds"
                raise SourceError(message)
            return data
        where = f"row {item.columns['row']:,} of {os.fsdecode(self.locate(item))}: column {self._columns.image!r}"
        if not path:
            raise SourceError(f"{where} is null")
        try:
            return read_file(self._beside(item, path))
        except (*NO_SUCH_FILE, ValueError) as error:
            problem = getattr(error, "strerror", None) or error
            message = f"{where} has no bytes, and the file of its path {path!r} cannot be read: {problem}"
            raise SourceError(message) from error

    def values(self, item: Item, names: Collection[str] | None = None) -> dict[str, Any]:
        """Return the values of a row: `Field.missing` for those that are missing. See `IndexedReader.values`."""
        wanted = [name for name in self.fields if names is None or name in names]
        return {name: self._value(item, name) for name in wanted}

    def _value(self, item: Item, name: str) -> Any:
        value = self._file(item.columns["archive"]).value(item.columns["row"], name)
        if value is None:
            return self.fields[name].missing
        if not self.fields[name].is_image or not isinstance(value, dict):
            return value
        if value["bytes"] is not None or not value["path"]:
            return value["bytes"]
        return os.fsdecode(self._beside(item, value["path"]))

    def _beside(self, item: Item, path: str) -> bytes:
        return join(self.locate(item).rpartition(b"/")[0], os.fsencode(path))

    def to_json(self) -> dict[str, Any]:
        columns, digests = self._columns, [digest.hex() for digest in self._digests]
        return {**super().to_json(), "image": columns.image, "has_paths": columns.has_paths, "digests": digests}

    @classmethod
    def from_json(cls, described: Mapping[str, Any], table: ItemTable) -> Self:
        base, archives, fields = cls.parts_of(described, table)
        digests = tuple(bytes.fromhex(digest) for digest in described["digests"])
        if len(digests) != len(archives):
            raise ValueError("files that are not there")
        numbers_in(table, "row")
        columns = Columns(str(described["image"]), bool(described["has_paths"]), fields)
        return cls(base, archives, digests, columns)

    def digest(self, table: ItemTable) -> bytes:  # noqa: ARG002 - digests of footers cover all rows
        digest = hashlib.sha256(repr([(name, field.to_json()) for name, field in self.fields.items()]).encode())
        for file_digest in self._digests:
            digest.update(file_digest)
        return digest.digest()

    def extents(self, table: ItemTable) -> Extents:
        """Unpack the files of some items, and return where their images are in these. See `IndexedReader.extents`.

        An image whose row has no bytes is the file that its path names.
        """
        archives, row_of = (cast("NDArray[np.int64]", table.columns[name]) for name in ("archive", "row"))
        offsets, sizes = new_column(len(table), np.int64), new_column(len(table), np.int64)
        unpacked = [b""] * len(self.archives)
        done = 0
        with progress_of_call("unpacking", None) as progress:
            for number in np.unique(archives).tolist():

                def advanced(rows: int, before: int = done) -> None:
                    if progress is not None:
                        progress(done=before + rows, total=len(table), size_bytes=0, rejects=0)

                file = self._file(number, advanced)
                unpacked[number] = os.fsencode(file.path)
                rows = np.flatnonzero(archives == number)
                starts, lengths = file.slices()
                offsets[rows], sizes[rows] = starts[row_of[rows]], lengths[row_of[rows]]
                done += len(rows)
        slices = dataclasses.replace(table, sizes=sizes, columns={"archive": archives, "offset": offsets})
        has_all = int(offsets.min()) >= 0
        return Extents(self.base, slices if has_all else self._with_files(table, slices), tuple(unpacked))

    def _with_files(self, table: ItemTable, slices: ItemTable) -> ItemTable:
        """Return the slices of images, and for images without bytes the files that their paths name."""
        builder = ItemTableBuilder()
        for item, slice_ in zip(table, slices, strict=True):
            offset = slice_.columns["offset"]
            own = dataclasses.replace(slice_, columns={"archive": item.columns["archive"], "offset": max(0, offset)})
            path = self._file(item.columns["archive"]).image(item.columns["row"])[1] if offset < 0 else None
            if path:
                image_file = from_uri(self._beside(item, path))
                if not image_file.is_local:
                    message = f"the images of {os.fsdecode(self.locate(item))} are files beside it in a store"
                    raise SourceError(f"{message}, which only a build reads; run stoker build", path=str(image_file))
                size = image_file.size() if image_file.is_file() else 0
                columns = {"archive": -1, "offset": 0}
                own = dataclasses.replace(own, path=image_file.to_uri(), size_bytes=size, columns=columns)
            builder.add(own)
        return builder.finish()

    def _file(self, number: int, advanced: Callable[[int], None] | None = None) -> _Unpacked:
        """Return an unpacked file; each file is unpacked once."""
        unpacked = self._files.get(number)
        if unpacked is None:
            with self._locks[number]:
                unpacked = self._files.get(number)
                if unpacked is None:
                    try:
                        unpacked = _unpack(from_uri(self.archives[number]), self._columns, advanced)
                    except SourceError as error:
                        unpacked = error
                    self._files[number] = unpacked
        if isinstance(unpacked, SourceError):
            raise type(unpacked)(str(unpacked), path=unpacked.path)
        return unpacked
