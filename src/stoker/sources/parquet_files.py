"""Parquet files: what their footers say, and their rows in batches. pyarrow, an extra, is imported here alone.

Nothing in a file is believed before it is there: a footer is as long as the file allows, rows are no more than twenty
for each byte of the file, its values no more than a thousand bytes for each, and these are read page by page, a few
rows at a time.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from stoker.config import format_count, format_size
from stoker.errors import ConfigError, SourceError, StokerError
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
    from types import ModuleType

    from stoker.storage import Location


SUFFIX = ".parquet"
ARROW = ".arrow"
"""How names of files end that the library ``datasets`` saves."""

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_END_BYTES = 8  # the length of the footer, and the magic
_LEAST_BYTES = len(_MAGIC) + _END_BYTES
_LOCAL_BUFFER, _REMOTE_BUFFER = 2**20, 2**23
_BATCH_ROWS = 32
_ROWS_PER_BYTE = 20
_VALUES_PER_BYTE, _FEW_BYTES = 1000, 2**26
_SHOWN = 300


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
    return path.suffix == SUFFIX or path.read_head(len(_MAGIC)) in (_MAGIC, _ENCRYPTED_MAGIC)


@contextmanager
def reported_damage(what: str, place: Location) -> Iterator[None]:
    """Turn what pyarrow raises in the ``with`` block into a `SourceError`; errors of the system and of stores stay."""
    try:
        yield
    except StokerError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(what, place, error) from error
    except (ArithmeticError, LookupError, MemoryError, NotImplementedError, TypeError, ValueError) as error:
        raise _damaged(what, place, error) from error


def _damaged(what: str, place: Location, error: Exception) -> SourceError:
    reason = " ".join(str(error).split())[:_SHOWN]
    return SourceError(f"{what} is damaged, or pyarrow cannot read it: {reason}", path=str(place))


class ParquetFile:
    """A Parquet file to read. For one thread at a time; no file stays open."""

    def __init__(self, place: Location) -> None:
        _, parquet = import_pyarrow()
        self.place = place
        self.size_bytes = size = place.size()
        self.digest = _read_footer(place, size)  # 32 bytes that stand for its length and its footer
        with reported_damage(f"the footer of {place}", place):
            self._reader = parquet.ParquetFile(
                _Bytes(place, size),
                buffer_size=_LOCAL_BUFFER if place.is_local else _REMOTE_BUFFER,
                pre_buffer=False,
                page_checksum_verification=True,
            )
            self.rows: int = self._reader.metadata.num_rows  # as its footer says: in proportion to its bytes
            values = sum(group.total_byte_size for group, _ in self._groups())
            self.schema = self._reader.schema_arrow  # a ``pyarrow.Schema``
            # what the library ``datasets`` has noted of each column, as JSON; empty where it has not
            self.features = _features(self.schema.metadata or {})
        if not 0 <= self.rows <= _ROWS_PER_BYTE * size:
            raise SourceError(f"{place} says that it has {self.rows:,} rows, in {size:,} bytes", path=str(place))
        self.refuse_more(values)

    def refuse_more(self, values: int) -> None:
        """Refuse a file that says to have, or has, more bytes of values than any images compress to."""
        if values > _FEW_BYTES + _VALUES_PER_BYTE * self.size_bytes:
            message = f"{self.place} has {format_size(values)} of values in {format_size(self.size_bytes)}, more than"
            message += f" {_VALUES_PER_BYTE} times as many, so it is not read; write it without compression"
            raise SourceError(message, path=str(self.place))

    def _groups(self) -> Iterator[tuple[Any, list[Any]]]:
        """Yield what the footer says of each row group, and of each of its columns."""
        for number in range(self._reader.metadata.num_row_groups):
            group = self._reader.metadata.row_group(number)
            yield group, [group.column(at) for at in range(group.num_columns)]

    def groups(self, leaf: str) -> list[tuple[int, int]]:
        """Return the rows of each group, and the bytes that a column, as ``image.bytes``, takes uncompressed in it."""
        with reported_damage(f"the footer of {self.place}", self.place):
            groups = [
                (group.num_rows, sum(each.total_uncompressed_size for each in columns if each.path_in_schema == leaf))
                for group, columns in self._groups()
            ]
        if sum(rows for rows, _ in groups) != self.rows or any(rows < 0 for rows, _ in groups):
            message = f"the footer of {self.place} is damaged: its row groups do not have its {self.rows:,} rows"
            raise SourceError(message, path=str(self.place))
        return groups

    def nulls(self, names: Collection[str]) -> Counter[str]:
        """Return how many rows have no value in each of some columns, as far as the footer says."""
        counts: Counter[str] = Counter()
        with reported_damage(f"the footer of {self.place}", self.place):
            for column in chain.from_iterable(columns for _, columns in self._groups()):
                statistics = column.statistics if column.path_in_schema in names else None
                if statistics is not None and statistics.has_null_count:
                    counts[column.path_in_schema] += statistics.null_count
        return counts

    def batches(self, columns: Sequence[str], rows: int = _BATCH_ROWS) -> Generator[Any]:
        """Yield the rows in their order, so many at a time, as ``pyarrow.RecordBatch``.

        A column called ``image.path`` is one part of a column alone.
        """
        done = 0
        with reported_damage(f"{self.place}, at a row from {0:,} on,", self.place):
            batches = self._reader.iter_batches(rows, columns=list(columns), use_threads=False)
        while True:
            with reported_damage(f"{self.place}, at a row from {done:,} on,", self.place):
                batch = next(batches, None)
            if batch is None:
                break
            done += batch.num_rows
            yield batch
        if done != self.rows:
            message = f"{self.place} is damaged: it has {format_count(done, 'row')}, and its footer says {self.rows:,}"
            raise SourceError(message, path=str(self.place))


def plain_column(column: Any) -> Any:
    """Return a column of ``pyarrow`` as values that JSON has, and bytes: times and decimal numbers as text."""
    pa, _ = import_pyarrow()
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type) or pa.types.is_decimal(column.type):
        column = column.cast(pa.string())
    return column


def parquet_rows(place: Location) -> Iterator[dict[str, Any]]:
    """Yield the rows of a small table, each as its values by column."""
    file = ParquetFile(place)
    names = file.schema.names
    for batch in file.batches(names):
        with reported_damage(str(place), place):
            columns = [plain_column(batch.column(name)).to_pylist() for name in names]
        yield from (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _read_footer(place: Location, size: int) -> bytes:
    """Return the digest of a file's length and footer."""
    end = place.read_range(max(0, size - _END_BYTES), _END_BYTES, known_size=size)
    if end.endswith(_ENCRYPTED_MAGIC):
        raise SourceError(f"{place} is encrypted; decrypt it first", path=str(place))
    if size < _LEAST_BYTES or not end.endswith(_MAGIC):
        message = f"{place} does not end as Parquet does: it is cut short at byte {size:,}, or is something else"
        raise SourceError(message, path=str(place))
    length = int.from_bytes(end[:4], "little")
    if length > size - _LEAST_BYTES:
        message = f"{place} is damaged: its footer is said to have {length:,} bytes, and the file has {size:,}"
        raise SourceError(message, path=str(place))
    footer = place.read_range(size - _END_BYTES - length, length, known_size=size)
    return hashlib.sha256(b"%d\0" % size + footer).digest()


def _features(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return what ``datasets`` has noted of each column; nothing where that is not as it writes it."""
    try:
        features = parse_json(metadata[b"huggingface"])["info"]["features"]
    except (LookupError, RecursionError, TypeError, ValueError):
        return {}
    return features if isinstance(features, dict) else {}


class _Bytes(io.RawIOBase):
    """The bytes of a file, of which what is asked for is read, and nothing else. For one thread at a time."""

    def __init__(self, place: Location, size: int) -> None:
        super().__init__()
        self._place, self._size, self._at = place, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        length = left if size is None or size < 0 else min(size, left)
        content = self._place.read_range(self._at, length, self._at + length) if length else b""
        self._at += len(content)
        return content
