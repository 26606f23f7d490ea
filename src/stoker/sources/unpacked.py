"""Parquet files unpacked: every row where it can be read at once, in the user's cache.

Of a Parquet file only whole pages can be read, and its images are wanted one by one, in any order. So the columns that
are used are written once to an Arrow file without compression, which is mapped into memory: image ``i`` is a slice of
it. It lies in ``unpacked`` in the directory of `stoker.config.user_cache_directory` and takes as many bytes as the
images and the values together. Its name stands for the place, the length, the time of the last change (or what a store
calls the content) and the footer of the Parquet file, so one that has changed is unpacked again, in place of the older
one. A file has its name once it is whole. Whoever removes one loses the time to make it again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.config import user_cache_directory
from stoker.errors import ConfigError, SourceError
from stoker.sources.parquet_files import ParquetFile, import_pyarrow, plain_column, reported_damage
from stoker.storage import location, make_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from stoker.storage import Location, Staging


UNPACKED_FOLDER = "unpacked"
"""Folder of the user's cache in which unpacked files lie."""

_BATCH_BYTES = 2**24
_KEY_DIGITS = 16
_NAME = re.compile(rf"([0-9a-f]{{{_KEY_DIGITS}}}-[0-9a-f]{{{_KEY_DIGITS}}})-.*\.arrow.*", re.DOTALL)
_PLAIN = re.compile(r"[^A-Za-z0-9._-]")
_MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a Parquet file are used.

    Attributes:
        image: That of the images: structs of ``bytes`` and ``path``, or bytes.
        has_paths: Whether they are such structs.
        others: The others, in the order in which they are stored.
    """

    image: str
    has_paths: bool
    others: tuple[str, ...]


class Unpacked:
    """The rows of a Parquet file. Read-only; safe in any thread.

    Attributes:
        path: The Arrow file.
        rows: How many there are.

    Args:
        path: See above.
        columns: What it holds.

    Raises:
        SourceError: It is damaged.
        OSError: It cannot be read.
    """

    def __init__(self, path: Path, columns: Columns) -> None:
        pa, _ = import_pyarrow()
        self.path = path
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        weakref.finalize(self, os.close, descriptor)
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # so that nobody removes what is in use
        self._place = location(path)
        self._columns = columns
        with reported_damage(str(path), self._place):
            mapped = pa.memory_map(str(path)).read_buffer()
            reader = pa.ipc.open_file(pa.BufferReader(mapped), options=pa.ipc.IpcReadOptions(use_threads=False))
            self._mapped = mapped
            self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self._starts = np.cumsum([0, *(batch.num_rows for batch in self._batches)])
        self.rows = int(self._starts[-1])

    def slices(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the image of each row begins in the file, and its length: int64 (N,); -1 and 0 where it is null.

        Raises:
            SourceError: The file is damaged.
        """
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
        """Return the bytes of the image in a row, and its path; None for what is null."""
        batch, at = self._find(row)
        data = batch.column(0)[at]
        return data.as_buffer().to_pybytes() if data.is_valid else None, batch.column(1)[at].as_py()

    def value(self, row: int, name: str) -> Any:
        """Return what another column holds in a row, as Python has it.

        Raises:
            SourceError: It is damaged.
        """
        batch, at = self._find(row)
        with reported_damage(f"the column {name!r} of {self.path}", self._place):
            return batch.column(2 + self._columns.others.index(name))[at].as_py()

    def _find(self, row: int) -> tuple[Any, int]:
        if not 0 <= row < self.rows:
            message = f"there is no row {row:,} in {self.path}, which has {self.rows:,}"
            raise SourceError(f"{message}; list the source again", path=str(self.path))
        number = int(np.searchsorted(self._starts, row, "right")) - 1
        return self._batches[number], row - int(self._starts[number])


def unpacked_files(directory: Path) -> Iterator[Path]:
    """Yield the unpacked files in a cache directory, unfinished ones included; nothing else is ever named."""
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
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there are file systems without locks
        return False
    finally:
        os.close(descriptor)
    return False


def unpack(place: Location, columns: Columns, advanced: Callable[[int], None] | None = None) -> Unpacked:
    """Return the rows of a Parquet file, unpacked now unless they have been before.

    Several processes that need the same file wait for the one that unpacks it.

    Args:
        place: The file.
        columns: What is used of it.
        advanced: Called with the number of rows after every few.

    Raises:
        SourceError: It is damaged.
        ConfigError: There is no cache, or no space in it.
        OSError: The file cannot be read.
    """
    folder = _folder(place)
    source = ParquetFile(place)
    key = _key(source, columns)
    path = folder / f"{key}-{_PLAIN.sub('_', place.name)[-_MAX_NAME:]}.arrow"
    if not path.is_file():
        with _locked(folder / f"{key}.lock", place):
            if not path.is_file():
                _write(path, source, columns, advanced)
                _remove_older(path)
    return Unpacked(path, columns)


def _folder(place: Location) -> Path:
    directory = user_cache_directory()
    if directory is None:
        message = f"{place} is read by way of a cache, and this user has no home directory"
        raise ConfigError(f"{message}; set STOKER_CACHE_DIR to a folder")
    folder = directory / UNPACKED_FOLDER
    try:
        make_directory(directory)
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _no_cache(folder, place, error) from error
    return folder


def _no_cache(folder: Path, place: Location, error: OSError) -> ConfigError:
    message = f"{place} cannot be unpacked in {folder}: {error.strerror or error}"
    return ConfigError(f"{message}; set STOKER_CACHE_DIR to a folder of a disk that has space for it")


def _key(source: ParquetFile, columns: Columns) -> str:
    """Return hex digits for the place, and for the content."""
    where = hashlib.sha256(source.place.to_uri()).hexdigest()[:_KEY_DIGITS]
    info = source.place.parent.snapshot()(source.place.name)
    stamp = info.stamp if info is not None else ""
    about = json.dumps([stamp, columns.image, columns.has_paths, *columns.others])
    return f"{where}-{hashlib.sha256(source.digest + about.encode()).hexdigest()[:_KEY_DIGITS]}"


@contextlib.contextmanager
def _locked(path: Path, place: Location) -> Iterator[None]:
    """Hold a lock in the ``with`` block; where the file system has none, several may write the same file."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _no_cache(path.parent, place, error) from error
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _remove_older(path: Path) -> None:
    """Remove what was unpacked of a file before it changed, and what killed processes have left; its lock is held."""
    where, key = path.name[:_KEY_DIGITS], path.name[: 2 * _KEY_DIGITS + 1]
    for other in unpacked_files(path.parents[1]):
        is_ours = other.name.startswith(key)
        if other != path and other.name.startswith(where) and (is_ours or not is_in_use(other)):
            other.unlink(missing_ok=True)


def _write(path: Path, source: ParquetFile, columns: Columns, advanced: Callable[[int], None] | None) -> None:
    pa, _ = import_pyarrow()
    try:
        staged = location(path.parent).stage(path.name)
    except OSError as error:
        raise _no_cache(path.parent, source.place, error) from error
    try:
        schema, writer, done = None, None, 0
        for table in _tables(source, columns):
            with reported_damage(str(source.place), source.place):
                schema = schema or table.schema
                options = pa.ipc.IpcWriteOptions(use_threads=False)
                writer = writer or pa.ipc.new_file(_Sink(staged, path, source.place), schema, options=options)
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


class _Sink:
    """A file in the cache, as pyarrow writes to it."""

    closed = False

    def __init__(self, staged: Staging, path: Path, source: Location) -> None:
        self._staged, self._path, self._source = staged, path, source

    def write(self, data: Any) -> int:
        try:
            self._staged.write([bytes(data)])
        except OSError as error:
            raise _no_cache(self._path.parent, self._source, error) from error
        return len(data)

    def flush(self) -> None:
        """Do nothing: publishing does it."""


def _tables(source: ParquetFile, columns: Columns) -> Iterator[Any]:
    """Yield the rows of a file as tables of a few megabytes, with the columns as they are stored."""
    pa, _ = import_pyarrow()
    held: list[Any] = []
    size = total = 0
    for batch in source.batches([columns.image, *columns.others]):
        with reported_damage(str(source.place), source.place):
            arrays = [
                *_images(batch.column(columns.image), columns),
                *map(plain_column, map(batch.column, columns.others)),
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
    if not columns.has_paths:
        return column.cast(pa.large_binary()), pa.nulls(len(column), pa.string())
    data, paths = (pa.compute.struct_field(column, name) for name in ("bytes", "path"))
    return data.cast(pa.large_binary()), paths.cast(pa.string())
