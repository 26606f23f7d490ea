"""Tables of images: CSV, TSV, texts, JSON lines and Parquet, row by row.

`stoker.sources.table_columns` tells what the columns are.

Columns without names are called ``column_1`` and so on. Those of a text are divided by blanks where no other separator
is in all its lines; where lines have different numbers of words, they are the first word and the rest. Before the rows
may stand comments (``#``) and, as CelebA has it, how many there are and then the names of the columns.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
import re
from codecs import BOM_UTF8
from itertools import islice
from typing import TYPE_CHECKING, Any

from stoker.config import format_count
from stoker.errors import ConfigError, SourceError
from stoker.sources.options import SEPARATORS, SourceOptions
from stoker.sources.parquet_files import PARQUET_SUFFIX, parquet_rows
from stoker.sources.reading import raw_lines, text_of
from stoker.sources.walking import is_image_name
from stoker.strict_json import parse_json

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from stoker.storage import Location

TEXTS = (".txt", ".lst")
"""How the names of texts end; the second one is that of MXNet's lists: a number, a label and a path."""

IMAGE_WORDS = "path|file|file_?name|file_path|image|image_(?:id|name|path)|img|url|key"
"""What columns with names of images are called."""

_IMAGE_WORD = re.compile(IMAGE_WORDS, re.IGNORECASE)
_SEPARATOR_LINE = re.compile('\ufeff?"?sep=(.)"?', re.IGNORECASE)
"""The first line of a CSV for Excel."""
_MAX_LINE_BYTES, _HEAD_BYTES = 2**24, 2**16
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_TOKEN, _NUMBERED = ["image", "caption"], re.compile(r"(.+\.[A-Za-z]{3,4})#[0-9]+")
"""The columns of Flickr's captions, which have no names, and what the first one has: ``1.jpg#0``."""
_WORD_AND_REST = 2
LOOKED_AT = 1000
"""The first rows, of which columns tell what they are."""


def is_json(path: Location) -> bool:
    """Return whether a table has values as JSON has them, not text in cells."""
    return path.suffix in (".jsonl", PARQUET_SUFFIX)


def is_text(path: Location) -> bool:
    """Return whether a table is a text by its name."""
    return path.suffix.lower() in TEXTS


def table_rows(
    path: Location, separator: str | None = None, errors: str = "strict"
) -> Generator[tuple[int, dict[str, Any]]]:
    """Yield the line at which each row of a table begins, of Parquet its number, and its values by column.

    Args:
        path: The table.
        separator: What stands between the columns of text. Default: what the first line has most of.
        errors: What happens to bytes that are no text, as `bytes.decode` has it.
    """
    if path.suffix == ".jsonl":
        yield from _json_rows(path)
    elif path.suffix == PARQUET_SUFFIX:
        yield from _parquet_rows(path)
    else:
        yield from _csv_rows(path, separator, errors)


def _json_rows(path: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in raw_lines(path, _MAX_LINE_BYTES):
        if not line.strip():
            continue
        text_of(path, number, line)
        try:
            row = parse_json(line)
        except ValueError as error:
            raise damaged(path, number, f"it is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise damaged(path, number, 'it is no JSON object, such as {"file_name": "1.jpg"}')
        yield number, row


def _parquet_rows(path: Location) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, row in enumerate(parquet_rows(path)):
        held = next((name for name, value in row.items() if _has_bytes(value)), None)
        if held is not None:
            message = f"its column {held!r} has bytes, which no table beside images has"
            raise damaged(path, number, f"{message}; leave it out, or call it 'image' if these are the images")
        yield number, row


def _has_bytes(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(map(_has_bytes, value.values() if isinstance(value, dict) else value))
    return isinstance(value, bytes)


def _encoding_of(head: bytes) -> str:
    """Return the encoding of a text that begins so: of UTF-16 without a byte order mark, one of two bytes is 0."""
    if head[:2] in _UTF_16:
        return "utf-16"
    return "utf-16-le" if head[1:2] == b"\0" else "utf-16-be" if head[:1] == b"\0" else "utf-8"


def _text_lines(path: Location, errors: str) -> Iterator[str]:
    """Yield the lines of a file of UTF-8, or UTF-16."""
    head = path.read_head(_HEAD_BYTES)
    encoding = _encoding_of(head)
    if encoding != "utf-8":
        try:
            text = path.read_bytes().decode(encoding, errors)
        except UnicodeDecodeError as error:
            raise damaged(path, 1, f"it begins as UTF-16 and is not at byte {error.start}") from error
        yield from io.StringIO(text, newline="\n")
        return
    lines: Iterable[tuple[int, bytes]] = raw_lines(path, _MAX_LINE_BYTES)
    if b"\r" in head and b"\n" not in head:  # as Excel writes "CSV (Macintosh)"
        lines = enumerate(path.read_bytes().removeprefix(BOM_UTF8).replace(b"\r", b"\n").splitlines(keepends=True), 1)
    for number, line in lines:
        yield text_of(path, number, line, errors=errors)


@dataclasses.dataclass(slots=True)
class _Position:
    line: int  # number of the last line
    row_size: int = 0  # of the lines that the row has so far; whoever reads rows sets it to 0


def _counted(lines: Iterable[str], path: Location, position: _Position) -> Iterator[str]:
    """Yield lines, of which no row has too many."""
    for line in lines:
        position.line += 1
        position.row_size += len(line)
        if position.row_size > _MAX_LINE_BYTES:
            raise damaged(path, position.line, f"its row has more than {_MAX_LINE_BYTES} bytes")
        yield line


@dataclasses.dataclass(frozen=True, slots=True)
class _Dialect:
    separator: str | None  # what stands between these; None: blanks
    is_spaced: bool = False  # whether a space follows each separator
    first: int = 0  # how many lines stand before the rows
    names: tuple[str, ...] | None = None  # of the columns; None: the first row has them, if they are names

    def read(self, lines: Iterator[str]) -> Iterator[list[str]]:
        if self.separator is not None:
            return csv.reader(lines, delimiter=self.separator, skipinitialspace=self.is_spaced, strict=True)
        count = len(self.names or ())
        return (line.strip().split(None, count - 1) if count <= _WORD_AND_REST else line.split() for line in lines)


def _dialect_of(path: Location, separator: str | None) -> _Dialect:
    """Return how a file is divided: where nothing is given, by what its header has most of, or a text all its lines."""
    head = path.read_head(_HEAD_BYTES)
    text = head.decode(_encoding_of(head), "replace")
    header = re.split("[\r\n]", text, maxsplit=1)[0]
    if separator is None and (match := _SEPARATOR_LINE.fullmatch(header)):
        return _Dialect(match[1], first=1)
    known: tuple[str, ...] = (separator,) if separator else SEPARATORS
    if separator is None and is_text(path):
        lines = text.removeprefix("\ufeff").split("\n")
        lines = lines[:-1] if len(head) == _HEAD_BYTES else lines
        known = tuple(each for each in SEPARATORS if all(each in line for line in lines if line.strip()))
        if not known:
            return _dialect_of_words(lines)
    elif separator is None and path.suffix.lower() == ".tsv":
        known = ("\t", *known)
    most = max(known, key=header.count)
    return _Dialect(most, 0 < header.count(most) == header.count(most + " "))


def _dialect_of_words(lines: Sequence[str]) -> _Dialect:
    first = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    is_counted = lines[first].strip().isdecimal() and any(len(line.split()) > 1 for line in lines[first + 1 :][:1])
    first += is_counted
    names = lines[first].split()
    has_names = is_counted or (_has_names(names) and any(map(_IMAGE_WORD.fullmatch, names)))
    first += has_names
    counts = {len(words) for line in lines[first:] if (words := line.split())}
    count = counts.pop() if len(counts) == 1 else min((_WORD_AND_REST, *counts))
    if is_counted and len(names) == count - 1:
        names = [_nameless(1)[0], *names]
    return _Dialect(None, first=first, names=tuple(names if has_names else _nameless(count)))


def _check_header(path: Location, number: int, header: Sequence[str]) -> None:
    twice = next((name for at, name in enumerate(header) if name in header[:at]), None)
    if twice is not None:
        raise damaged(path, number, f"it names the column {twice!r} twice")


def _nameless(count: int) -> list[str]:
    return [f"column_{number}" for number in range(1, count + 1)]


def _has_names(cells: Sequence[str]) -> bool:
    """Return whether the first line of a table names its columns: no image, unless beside a column of images."""
    is_row = any(is_image_name(os.fsencode(cell)) for cell in cells if cell.isprintable())
    return not is_row or any(map(_IMAGE_WORD.fullmatch, cells))


def _header_of(cells: list[str]) -> tuple[list[str], bool]:
    """Return the names of the columns of a table, given its first line, and whether that is a row."""
    if len(cells) == len(_TOKEN) and _NUMBERED.fullmatch(cells[0]):
        return _TOKEN, True
    return (cells, False) if _has_names(cells) else (_nameless(len(cells)), True)


def _csv_rows(path: Location, separator: str | None, errors: str) -> Iterator[tuple[int, dict[str, Any]]]:
    dialect = _dialect_of(path, separator)
    position = _Position(dialect.first)
    reader = dialect.read(_counted(islice(_text_lines(path, errors), dialect.first, None), path, position))
    header = None if dialect.names is None else list(dialect.names)
    _check_header(path, dialect.first, header or ())
    while True:
        number, position.row_size = position.line + 1, 0
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise damaged(path, number, f"{error}; is a quote not closed, or not doubled?") from error
        if not cells:
            continue
        if header is None:
            header, is_row = _header_of(cells)
            _check_header(path, number, header)
            if not is_row:
                continue
        if len(cells) != len(header):
            held = format_count(len(cells), "cell")
            raise damaged(path, number, f"it has {held}, but there are {len(header)} columns")
        if header is _TOKEN and (match := _NUMBERED.fullmatch(cells[0])):
            cells[0] = match[1]
        yield number, dict(zip(header, cells, strict=True))


def damaged(path: Location, number: int, problem: str) -> SourceError:
    """Return the error of a row that begins at a line, or of Parquet has a number."""
    what = "row" if path.suffix == PARQUET_SUFFIX else "line"
    return SourceError(f"{what} {number} of {path}: {problem}", path=str(path))


def with_captions(
    rows: Iterable[tuple[int, dict[str, Any]]], image: str, caption: str
) -> Iterable[tuple[int, dict[str, Any]]]:
    """Return a row of each image, at the line of its first one, with all its captions."""
    by_image: dict[str, tuple[int, dict[str, Any]]] = {}
    for line, row in rows:
        by_image.setdefault(row[image], (line, {image: row[image], caption: []}))[1][caption].append(row[caption])
    return by_image.values()


def first_rows(path: Location, options: SourceOptions) -> list[dict[str, Any]]:
    """Return the first rows of a table, up to one that is damaged; none of Parquet where pyarrow is missing."""
    rows = []
    with contextlib.suppress(SourceError, ConfigError):
        for _, row in islice(table_rows(path, options.separator, "replace"), LOOKED_AT):
            rows.append(row)
    return rows
