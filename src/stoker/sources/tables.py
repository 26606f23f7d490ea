"""Tables of images: CSV, TSV, JSON lines and Parquet, row by row. `stoker.sources.table_columns` tells the columns."""

from __future__ import annotations

import contextlib
import csv
import io
import shlex
from itertools import islice
from typing import TYPE_CHECKING, Any

from stoker.config import format_count
from stoker.errors import SourceError
from stoker.sources.options import SEPARATORS
from stoker.sources.parquet_files import SUFFIX as PARQUET
from stoker.sources.parquet_files import parquet_rows
from stoker.sources.reading import raw_lines
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from stoker.sources.options import SourceOptions
    from stoker.storage import Location

_MAX_LINE_BYTES, _HEAD_BYTES = 2**24, 2**16
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LOOKED_AT = 1000
"""The first rows, of which columns tell what they are."""


def is_json(place: Location) -> bool:
    """Return whether a table has values as JSON has them, not text in cells."""
    return place.suffix in (".jsonl", PARQUET)


def table_rows(
    place: Location, separator: str | None = None, errors: str = "strict"
) -> Generator[tuple[int, dict[str, Any]]]:
    """Yield the line at which each row of a table begins, of Parquet its number, and its values by column.

    Args:
        place: The table.
        separator: What stands between the columns of text. Default: what the first line has most of.
        errors: What happens to bytes that are no text, as `bytes.decode` has it.

    Raises:
        SourceError: A row is damaged.
        OSError: The file cannot be read.
    """
    if place.suffix == ".jsonl":
        yield from _json_rows(place)
    elif place.suffix == PARQUET:
        yield from _parquet_rows(place)
    else:
        yield from _csv_rows(place, separator, errors)


def _json_rows(place: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in raw_lines(place, _MAX_LINE_BYTES):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            raise damaged(place, number, f"it is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise damaged(place, number, 'it is no JSON object, such as {"file_name": "1.jpg"}')
        yield number, row


def _parquet_rows(place: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, row in enumerate(parquet_rows(place)):
        held = next((name for name, value in row.items() if _has_bytes(value)), None)
        if held is not None:
            message = f"its column {held!r} has bytes, which no table beside images has"
            raise damaged(place, number, f"{message}; leave it out, or call it 'image' if these are the images")
        yield number, row


def _has_bytes(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(map(_has_bytes, value.values() if isinstance(value, dict) else value))
    return isinstance(value, bytes)


class _CsvLines:
    """Gives the lines of a file to a reader of CSV.

    Attributes:
        number: Number of the last one.
        record_bytes: Bytes of those that the record read now has so far; whoever reads records sets it to 0.
    """

    def __init__(self, place: Location, errors: str) -> None:
        self.number = 0
        self._errors = errors
        self.record_bytes = 0
        self._place = place

    def __iter__(self) -> Iterator[str]:
        if self._place.read_head(2) in _UTF_16:
            yield from self._of_utf_16()
            return
        for number, line in raw_lines(self._place, _MAX_LINE_BYTES):
            self.number = number
            self.record_bytes += len(line)
            if self.record_bytes > _MAX_LINE_BYTES:
                raise damaged(self._place, self.number, f"its row has more than {_MAX_LINE_BYTES} bytes")
            try:
                yield line.decode("utf-8", self._errors)
            except UnicodeDecodeError as error:
                where = shlex.quote(str(self._place))
                typed = f"iconv -f WINDOWS-1252 -t UTF-8 {where} > {where}.utf8 && mv {where}.utf8 {where}"
                message = (
                    f"it is not UTF-8 at byte {error.start}; if it is Windows-1252, as Excel writes it, type: {typed}"
                )
                raise damaged(self._place, self.number, message) from error

    def _of_utf_16(self) -> Iterator[str]:
        try:
            text = io.StringIO(self._place.read_bytes().decode("utf-16", self._errors), newline="\n")
        except UnicodeDecodeError as error:
            raise damaged(self._place, 1, f"it begins as UTF-16 and is not at byte {error.start}") from error
        for self.number, line in enumerate(text, 1):
            yield line


def _dialect_of(place: Location, separator: str | None) -> tuple[str, bool]:
    """Return what stands between columns, by default what the header has most of, and whether a space follows each."""
    head = place.read_head(_HEAD_BYTES)
    header = head.decode("utf-16" if head[:2] in _UTF_16 else "utf-8", "replace").partition("\n")[0]
    separator = separator or max(("\t" if place.suffix.lower() == ".tsv" else ",", *SEPARATORS), key=header.count)
    return separator, 0 < header.count(separator) == header.count(separator + " ")


def _csv_rows(place: Location, separator: str | None, errors: str) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = _CsvLines(place, errors)
    delimiter, is_spaced = _dialect_of(place, separator)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=is_spaced, strict=True)
    header: list[str] | None = None
    while True:
        number, lines.record_bytes = lines.number + 1, 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise damaged(place, number, f"{error}; is a quote not closed, or not doubled?") from error
        if not cells:
            continue
        if header is None:
            header = cells
            twice = next((name for at, name in enumerate(header) if name in header[:at]), None)
            if twice is not None:
                raise damaged(place, number, f"it names the column {twice!r} twice")
            continue
        if len(cells) != len(header):
            raise damaged(
                place, number, f"it has {format_count(len(cells), 'cell')}, but there are {len(header)} columns"
            )
        yield number, dict(zip(header, cells, strict=True))


def damaged(place: Location, number: int, problem: str) -> SourceError:
    """Return the error of a row that begins at a line, or of Parquet has a number."""
    what = "row" if place.suffix == PARQUET else "line"
    return SourceError(f"{what} {number} of {place}: {problem}", path=str(place))


def first_rows(place: Location, options: SourceOptions) -> list[dict[str, Any]]:
    """Return the first rows of a table, up to one that is damaged."""
    rows = []
    with contextlib.suppress(SourceError):
        for _, row in islice(table_rows(place, options.separator, "replace"), _LOOKED_AT):
            rows.append(row)
    return rows
