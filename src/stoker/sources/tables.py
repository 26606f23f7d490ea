"""Rows of tables of images (CSV, TSV, texts, JSON lines and Parquet), and what their columns are.

Columns without names are called ``column_1`` and so on. Blanks separate the columns of a text if no other separator is
in all its lines; if lines have different numbers of words, the columns are the first word and the rest. Before the rows
there may be comments (``#``) and, as in CelebA, the number of rows and then the names of the columns.

docs/reference/images.md says which column has the classes, and which fields the others become: all rows decide; cells
that are empty or null do not count. The classes are the column `LABEL`, or else the only one that `find_label` chooses.
Rows may lack values, as LAION's do: a missing text is empty, a missing number is NaN. A column of whole numbers with
missing ones is `Float` if float32 can represent all of them, otherwise `Text`.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import os
import re
from codecs import BOM_UTF8
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from stoker.config import format_count, format_some, option, option_with
from stoker.errors import ConfigError, SourceError
from stoker.fields import TRUTH_VALUES, Float, Int, Json, Labels, Text, check_extra, field_of_image
from stoker.sources.files import raw_lines, text_of
from stoker.sources.items import GrowingBlobs
from stoker.sources.names import is_image_name
from stoker.sources.options import SEPARATORS, SourceOptions
from stoker.sources.parquet_files import PARQUET_SUFFIX, parquet_rows
from stoker.sources.reader import Cells, json_bytes
from stoker.splits import SPLIT_WORDS
from stoker.strict_json import parse_json
from stoker.types import MAX_CLASSES, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence

    from stoker.sources.source import SourceBuilder
    from stoker.storage import Location


TABLES = (".csv", ".tsv", ".jsonl", PARQUET_SUFFIX)
"""Suffixes of tables."""

TEXTS = (".txt", ".lst")
"""Suffixes of texts; the second one is that of MXNet's lists, with a number, a label and a path on each line."""

IMAGE_COLUMNS = "path|file|file_?name|file_path|image|image_(?:id|name|path)|img|url|key"
"""Names of columns with names of images."""

IMAGE_COLUMN = re.compile(IMAGE_COLUMNS, re.IGNORECASE)
_SEPARATOR_LINE = re.compile('\ufeff?"?sep=(.)"?', re.IGNORECASE)
"""The first line of a CSV for Excel."""
_MAX_LINE_BYTES, _HEAD_BYTES = 2**24, 2**16
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_TOKEN, _NUMBERED = ["image", "caption"], re.compile(r"(.+\.[A-Za-z]{3,4})#[0-9]+")
"""Names for the columns of Flickr's captions, which have none, and the form of cells in the first: ``1.jpg#0``."""
_WORD_AND_REST = 2
LOOKED_AT = 1000
"""How many of the first rows decide what the columns are."""

LABEL = "label"
"""The column of the classes."""

BOXES_AS_JSON = {
    name: f"{name!r} is a field of JSON; docs/how-to/detection.md shows how to read it as boxes"
    for name in ("objects", "boxes")
}
"""Warnings of columns with boxes, as the library ``datasets`` and `stoker.export` write them."""

SIDES_OF_BOXES = ("bbox", "xmin")
"""Keys of objects in JSON that show that they are boxes."""

IMAGE_NAME = "_file_name"
"""Ending of the names of columns with paths of images."""

_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,18})")
_DECIMAL = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+")
_LIST = re.compile(r"\s*[\[({].*[\])}]\s*", re.DOTALL)
_CLASS_ID = re.compile(r"\s*(-1|\+?[0-9]{1,99})(\.0+)?\s*")
_NO_NAME = re.compile(r"[-+0-9., ]+|.*[|;].*", re.DOTALL)
"""Cells that cannot be the name of a class: numbers, and lists of classes."""

LABEL_NAME = re.compile(
    r"(?!(num|n|no|has|is)[_ -])(.+[_ -])?(labels?|cls|class(es)?|category|categories|targets?)"
    r"([_ -]?(id|idx|index|name|label)s?)?",
    re.IGNORECASE,
)
"""Names of columns that may have the classes: ``Class``, ``category_id``, ``fine_label``."""

CAPTION = re.compile("captions?|comments?|descriptions?|raw|sentences?|text", re.IGNORECASE)
"""Names of columns of captions."""

_MOST_ALONE = 20
"""Up to this many labels may all differ from each other."""

_FLAG = re.compile(r"(is|has|in)[_ ].*|occluded|truncated|difficult|crowd", re.IGNORECASE)
"""Names of columns of 0 and 1 that are not classes."""

_MISSING = frozenset({"nan", "none", "null", "n/a", "na", "<na>", "#n/a", "nil"})
"""Texts that programs write for a missing value."""

_FEWEST_MARKED, _SHOWN_NAMES, _SHOWN_GAPS = 2, 10, 4
_INT64 = range(-(2**63), 2**63)
_EXACT = 2**24
"""Up to this number float32 can represent all whole numbers."""


def is_json(path: Location) -> bool:
    """Return whether the cells of a table are JSON values, not text."""
    return path.suffix in (".jsonl", PARQUET_SUFFIX)


def is_text(path: Location) -> bool:
    """Return whether a table is a text by its name."""
    return path.suffix.lower() in TEXTS


def table_rows(
    path: Location, separator: str | None = None, errors: str = "strict"
) -> Generator[tuple[int, dict[str, Any]]]:
    """Yield the line at which each row of a table begins (in Parquet its number) and its values by column.

    Separators of columns are, by default, the character that the first line has most of.
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
    """Return the encoding of a text by its first bytes: in UTF-16 without a byte order mark, one of the two is 0."""
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
    row_size: int = 0  # of the lines of the row so far; the reader of rows sets it to 0


def _counted(lines: Iterable[str], path: Location, position: _Position) -> Iterator[str]:
    """Yield lines; refuse a row that is too long."""
    for line in lines:
        position.line += 1
        position.row_size += len(line)
        if position.row_size > _MAX_LINE_BYTES:
            raise damaged(path, position.line, f"its row has more than {_MAX_LINE_BYTES} bytes")
        yield line


@dataclasses.dataclass(frozen=True, slots=True)
class _Dialect:
    separator: str | None  # between columns; None: blanks
    is_spaced: bool = False  # whether a space follows each separator
    first: int = 0  # how many lines come before the rows
    names: tuple[str, ...] | None = None  # of the columns; None: in the first row, if that has names

    def read(self, lines: Iterator[str]) -> Iterator[list[str]]:
        if self.separator is not None:
            return csv.reader(lines, delimiter=self.separator, skipinitialspace=self.is_spaced, strict=True)
        count = len(self.names or ())
        return (line.strip().split(None, count - 1) if count <= _WORD_AND_REST else line.split() for line in lines)


def _dialect_of(path: Location, separator: str | None) -> _Dialect:
    """Return how columns are separated. Default: by what the header has most of; in a text all lines must have it."""
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
    has_names = _has_names(names) and (is_counted or any(map(IMAGE_COLUMN.fullmatch, names)))
    first += has_names
    counts = {len(words) for line in lines[first:] if (words := line.split())}
    count = counts.pop() if len(counts) == 1 else min((_WORD_AND_REST, *counts))
    if is_counted and len(names) == count - 1:
        names = [_default_names(1)[0], *names]
    return _Dialect(None, first=first, names=tuple(names if has_names else _default_names(count)))


def _check_header(path: Location, number: int, header: Sequence[str]) -> None:
    twice = next((name for at, name in enumerate(header) if name in header[:at]), None)
    if twice is not None:
        raise damaged(path, number, f"it names the column {twice!r} twice")


def _default_names(count: int) -> list[str]:
    return [f"column_{number}" for number in range(1, count + 1)]


def _has_names(cells: Sequence[str]) -> bool:
    """Return whether the first line of a table names its columns: it has no image, or the word for such a column."""
    is_row = any(is_image_name(os.fsencode(cell)) for cell in cells if cell.isprintable())
    return not is_row or any(map(IMAGE_COLUMN.fullmatch, cells))


def _header_of(cells: list[str]) -> tuple[list[str], bool]:
    """Return the names of the columns, given the first line of a table, and whether that line is a row."""
    if len(cells) == len(_TOKEN) and _NUMBERED.fullmatch(cells[0]):
        return _TOKEN, True
    return (cells, False) if _has_names(cells) else (_default_names(len(cells)), True)


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
    """Return the error of a row, given the line at which it begins, or its number in a Parquet file."""
    what = "row" if path.suffix == PARQUET_SUFFIX else "line"
    return SourceError(f"{what} {number} of {path}: {problem}", path=str(path))


def with_captions(
    rows: Iterable[tuple[int, dict[str, Any]]], image: str, caption: str
) -> Iterable[tuple[int, dict[str, Any]]]:
    """Return one row for each image, with all its captions and the line of its first row."""
    by_image: dict[str, tuple[int, dict[str, Any]]] = {}
    for line, row in rows:
        by_image.setdefault(row[image], (line, {image: row[image], caption: []}))[1][caption].append(row[caption])
    return by_image.values()


def first_rows(path: Location, options: SourceOptions) -> list[dict[str, Any]]:
    """Return the first rows of a table, up to a damaged one; none of Parquet if pyarrow is not installed."""
    rows = []
    with contextlib.suppress(SourceError, ConfigError):
        for _, row in islice(table_rows(path, options.separator, "replace"), LOOKED_AT):
            rows.append(row)
    return rows


def find_label(
    where: object, values: Mapping[str, Sequence[Any]], warnings: list[str], advice: Callable[[str], str]
) -> str | None:
    """Return the only column with the name and the values of classes, if none is called `LABEL`; None without one.

    A warning says which column is chosen, or that none is; ``advice`` returns the option that names a column.
    """
    names = [name for name, known in values.items() if known and LABEL_NAME.fullmatch(name)]
    usable = [name for name in names if are_classes(values[name])]
    shown, message = " or ".join(map(repr, usable or names)), f"{where}: nothing is called {LABEL!r}"
    if len(usable) > 1:
        raise SourceError(f"{message}, and the classes may be {shown}; give {advice(usable[0])}", path=str(where))
    if names:
        what = f"the classes are {shown}" if usable else f"{shown} has neither ids nor repeated names, so it is a field"
        warnings.append(f"{message}; {what}")
    return usable[0] if usable else None


def may_be_classes(where: object, values: Mapping[str, Sequence[Any]], advice: Callable[[str], str]) -> list[str]:
    """Return a warning if only one column has few texts that repeat, and no column has a name of classes."""
    texts = {name: known for name, known in values.items() if known and all(isinstance(each, str) for each in known)}
    names = [name for name, known in texts.items() if 1 < len({*known}) <= len(known) // 2 and are_classes(known)]
    names = [name for name in names if not (CAPTION.fullmatch(name) or SPLIT_WORDS.keys() >= {*texts[name]})]
    if len(names) != 1 or any(map(LABEL_NAME.fullmatch, values)):
        return []
    return [f"{where}: {names[0]!r} may have the classes, and is a field; to have these, give {advice(names[0])}"]


def are_classes(values: Sequence[Any]) -> bool:
    """Return whether values may be classes: ids, or names that are few or repeated."""
    if _MOST_ALONE < len(values) == len(set(map(str, values))):
        return False
    return all(
        float(value) < MAX_CLASSES
        if _CLASS_ID.fullmatch(str(value))
        else isinstance(value, str) and not _NO_NAME.fullmatch(value)
        for value in values
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Classes:
    """The columns of a table that have the classes of images, and their form."""

    columns: tuple[str, ...] = ()  # the columns; empty without classes
    # ``one``: cells are names or ids; ``one-hot``: the column of the class has a 1. These are fields: ``several``:
    # cells have several names, or several columns have a 1; ``number``: a number; ``captions``: all texts of an image,
    # and the first one
    form: Literal["one", "one-hot", "several", "number", "captions"] = "one"
    between: str = ""  # separator of several names in a cell
    is_told: bool = False  # whether the user says that there is no separator

    @property
    def field(self) -> str | None:
        """Name of the field of the classes; None if each image has one class, or none."""
        if self.form in ("one", "one-hot"):
            return None
        if self.form == "captions":
            return self.form
        return self.columns[0] if len(self.columns) == 1 else "labels"

    def take(self, row: dict[str, Any]) -> Any:
        """Remove the columns from a row, or replace them by the field; return the class, or None."""
        if self.form == "captions":
            row["caption"], row[self.form] = row[self.columns[0]][0], row.pop(self.columns[0])
            return None
        if self.form == "number":
            row.update((name, text.strip()) for name in self.columns if isinstance(text := row.get(name), str))
        if self.form == "number" or row.keys().isdisjoint(self.columns):
            return None
        cells = [row.pop(name, None) for name in self.columns]
        if self.form == "one":
            return cells[0]
        names = [name for name, cell in zip(self.columns, cells, strict=True) if _is_set(cell)]
        if self.form == "one-hot" and len(names) != 1:
            message = f"of the columns of the classes, {', '.join(names) or 'none'} has a 1, and in the first rows one"
            raise ValueError(f"{message} has; give {option_with('label_separator', ' ')} to read any number of classes")
        if self.form == "one-hot":
            return names[0]
        if len(self.columns) == 1:
            names = cells[0] if isinstance(cells[0], list) else (cells[0] or "").split(self.between or None)
        row[self.field or ""] = [text for text in map(str.strip, map(str, names)) if text]
        return None


def are_no_ids(texts: Collection[str]) -> bool:
    """Return whether all labels are numbers and some cannot be class ids, as in a regression."""
    return all(_DECIMAL.fullmatch(text.strip()) for text in texts) and not all(map(_CLASS_ID.fullmatch, texts))


def classes_of(
    where: object, labels: Collection[str], warnings: list[str], *, may_be_ids: bool = True
) -> tuple[dict[str, bytes | None], bool]:
    """Return the class of each label, and whether these are ids: if all are numbers, and not -1 and 1 alone."""
    others = [label for label in labels if not _CLASS_ID.fullmatch(label)]
    if are_no_ids(labels):
        message = f"{where}: the label {others[0]!r} is no class id, and all are numbers; give"
        message += f" {option_with('label_column', 'none')} to have them as a field of a table (.csv)"
        raise SourceError(message, path=str(where))
    if {*map(_without_zeros, labels)} == {"-1", "1"}:
        warnings.append(f"{where}: the labels are -1 and 1, so these are the names of the classes 0 and 1")
        return {label: _without_zeros(label).encode() for label in labels}, False
    ids = [label for label in labels if _CLASS_ID.fullmatch(label) and "-" not in label]
    missing = [label for label in others if label.strip().lower() in _MISSING]
    odd = others if 2 * len(others) <= len(ids) else missing
    if odd and len(labels) > len(odd):
        what = "is taken for the name of a class" if len(odd) == 1 else "are taken for names of classes"
        what += f", so numbers such as {max(ids, key=len)!r} are names, too, and no ids" if ids else ""
        warnings.append(
            f"{where}: {format_some(odd, _SHOWN_NAMES, repr)} {what}; a cell without a label is empty, or -1"
        )
    are_ids = may_be_ids and not others
    texts = {label: _without_zeros(label) if are_ids else label for label in labels}
    return {label: None if text == "-1" else text.encode() for label, text in texts.items()}, are_ids


def _is_set(cell: Any) -> bool:
    return TRUTH_VALUES.get(str(cell), str(cell) in ("1", "1.0"))


def _are_marks(cells: Sequence[Any]) -> bool:
    texts = {*map(str, cells)}
    return texts <= {"0", "1", "0.0", "1.0", *TRUTH_VALUES} or texts <= {"-1", "1"}


def _without_zeros(label: str) -> str:
    return match[1] if (match := _CLASS_ID.fullmatch(label)) else label


def find_classes_of(paths: Sequence[Location], image: str, options: SourceOptions, warnings: list[str]) -> Classes:
    """Return the columns of classes in similar tables, by their first rows; never the column ``image``."""
    rows = [{name: row[name] for name in row if name != image} for path in paths for row in first_rows(path, options)]
    return find_classes(paths[0], rows, options, warnings) or Classes()


def _uncertain(values: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """Return the columns of 0 and 1 if some of them have -1, too, as in CheXpert; nothing for other tables."""
    texts = {name: {str(value).removesuffix(".0") for value in known} for name, known in values.items() if known}
    marks = {name: known for name, known in texts.items() if known <= {"-1", "0", "1"} and not _FLAG.fullmatch(name)}
    return tuple(marks) if any({"-1", "0"} <= known for known in marks.values()) else ()


def find_classes(
    where: Location,
    rows: Sequence[Mapping[str, Any]],
    options: SourceOptions,
    warnings: list[str],
    *,
    alone: bool = False,
) -> Classes | None:
    """Return the columns of classes in a table, by its first rows; None if they are not obvious.

    They are the columns that the user names, the column `LABEL`, or the one that `find_label` finds. With ``alone`` the
    table has no other use than the classes: they may also be its only column, or several of 0 and 1, and another note
    names the column.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    values = {name: [row[name] for row in rows if row.get(name) not in (None, "")] for name in names}
    columns = options.label_column
    check_columns(where, (*(columns or ()), *(options.columns or ())), names)
    if columns is not None:
        pass
    elif LABEL in names:
        columns = (LABEL,)
    elif (name := find_label(where, values, warnings, partial(option_with, "label_column"))) is not None:
        columns = (name,)
        if alone:
            warnings.pop()  # another note on the table and its images says the same
    elif alone and len(names) <= 1:
        columns = tuple(names)
    elif alone:
        columns = tuple(name for name in names if values[name] and _are_marks(values[name]))
        columns = tuple(name for name in columns if not _FLAG.fullmatch(name))
        marks = {sum(_is_set(row.get(name)) for name in columns) for row in rows}
        if len(columns) < _FEWEST_MARKED or marks != {1}:
            if len(uncertain := _uncertain(values)) >= _FEWEST_MARKED:
                columns = uncertain
            elif len(columns) < _FEWEST_MARKED or columns != tuple(names):
                return None
    else:
        warnings += may_be_classes(where, values, partial(option_with, "label_column"))
        return Classes()
    return _with_form(where, columns, rows, values, options, warnings)


def _with_form(
    where: Location,
    columns: tuple[str, ...],
    rows: Sequence[Mapping[str, Any]],
    values: Mapping[str, Sequence[Any]],
    options: SourceOptions,
    warnings: list[str],
) -> Classes:
    if len(columns) > 1:
        wrong = next((name for name in columns if not _are_marks(values[name])), None)
        if wrong is not None:
            others = format_some(sorted({*map(str, values[wrong])} - {"0", "1", "0.0", "1.0"}), _FEWEST_MARKED, repr)
            message = f"{where}: of several columns of classes each has 0 and 1, and {wrong!r} has {others}; write 0"
            message += f" or 1 in its place, or give {option_with('label_column', 'none')} to have all columns as"
            raise SourceError(f"{message} numbers, or one {option('label_column')}", path=str(where))
        are_single = all(sum(_is_set(row.get(name)) for name in columns) == 1 for row in rows)
        classes = Classes(columns, "one-hot" if are_single and options.label_separator is None else "several")
        empty = sum(row.get(name) in (None, "") for row in rows for name in columns)
        what = "the class of each row" if are_single else "any number of classes of each row, as the field 'labels'"
        what += f"; empty cells, such as {empty:,} in the first rows, count as 0" if empty else ""
        warnings.append(f"{where}: {len(columns)} columns, {columns[0]!r} to {columns[-1]!r}, mark {what}")
        return classes
    if not columns or not (known := values[columns[0]]):
        return Classes(columns)
    (name,) = columns
    texts = [str(value) for value in known]
    given = options.label_separator
    if given is None and all(map(_DECIMAL_COMMA.fullmatch, texts)):
        message = f"{where}: {name!r} has cells such as {texts[0]!r}, numbers with a decimal comma or two classes each;"
        message += f" write a point in place of the comma, or give {option_with('label_separator', ',')}"
        raise SourceError(message, path=str(where))
    if given is None and all(isinstance(value, str) and _LIST.fullmatch(value) for value in known):
        message = f"{where}: {name!r} has lists written as text, such as {texts[0][:40]}; write what is in them with"
        message += f" semicolons between, or give {option_with('label_column', 'none')} to have them as text"
        raise SourceError(message, path=str(where))
    between = separator_of(texts) if given is None else given.replace("none", "")
    if between or any(isinstance(value, list) for value in known):
        warnings.append(f"{where}: {name!r} has several classes in a cell ({texts[0][:40]!r}, ...), as a field")
        return Classes(columns, "several", between)
    if are_no_ids(texts):
        message = f"{where}: {name!r} has numbers that are no class ids, so it is a field"
        warnings.append(f"{message}, and there are no classes")
        return Classes(columns, "number")
    is_repeated = is_text(where) and 2 * len({*texts}) <= len(texts)
    if options.label_column is None and name != LABEL and not are_classes(known) and not is_repeated:
        warnings.append(f"{where}: {name!r} has neither ids nor repeated names, so it is a field")
        return Classes()
    if given is None and (likely := [each for each in ", /+" if _may_separate(texts, each)]):
        first = next(text for text in texts if likely[0] in text.strip())
        message = f"{where}: {name!r} has cells such as {first[:40]!r}, each of one class; if they are several, give"
        message += f" {option_with('label_separator', likely[0])}"
        warnings.append(message)
    return Classes(columns, is_told=given is not None)


def _may_separate(texts: Sequence[str], between: str) -> bool:
    """Return whether splitting cells gives fewer distinct parts than cells, as in combinations of few tags."""
    cells = {*map(str.strip, texts)}
    return len({part.strip() for cell in cells for part in cell.split(between)} - {""}) < len(cells)


def separator_of(texts: Sequence[str]) -> str:
    """Return the separator of several names in cells; empty unless it is obvious."""
    for between in ("|", ";", ",", " "):
        several = [text.split(between) for text in texts if between in text.strip()]
        parts = {part.strip() for text in several for part in text} - {""}
        are_known = parts <= {text for text in texts if between not in text} or all(map(str.isdigit, parts))
        if several and (between in "|;" or are_known):
            return between
    return ""


def check_columns(where: Location, wanted: Iterable[str], names: Sequence[str]) -> None:
    """Refuse columns that a table does not have."""
    missing = next((name for name in wanted if name not in names), None)
    if missing is not None:
        known = format_some(names, _SHOWN_NAMES, repr) or "none"
        raise SourceError(f"{where} has no column {missing!r}, but {known}", path=str(where))


@dataclasses.dataclass(slots=True)
class _Column:
    """The kinds of values in a column, in the rows read so far."""

    # any of ``bool``, ``whole``, ``decimal``, ``text``, ``json``
    kinds: set[str] = dataclasses.field(default_factory=set)
    count: int = 0  # how many values there were
    is_long: bool = False  # whether any is a whole number that float32 may round
    has_boxes: bool = False  # whether any has boxes of objects

    def add(self, value: Any, *, is_json: bool) -> None:
        """Note a value: of JSON, or the text of a cell."""
        kind = _kind(value) if is_json else _kind_of_cell(value)
        if kind is not None:
            self.kinds.add(kind)
            self.count += 1
            self.has_boxes |= kind == "json" and has_boxes(value)
            self.is_long |= kind in ("whole", "decimal") and float(value).is_integer() and abs(float(value)) > _EXACT

    def field(self, name: str, *, is_json: bool, has_files: bool, fills: bool) -> Field | None:
        """Return the field of a column; None if it has no value. With ``fills`` some rows have no value."""
        if not self.kinds or not name:
            return None
        are_paths = self.kinds <= ({"text"} if is_json else {"text", "whole", "decimal", "bool"})
        if has_files and name.endswith(IMAGE_NAME) and are_paths:
            return field_of_image(name)
        if self.kinds in ({"whole"}, {"bool"}):
            return Int() if not fills else Text() if self.is_long else Float()
        if self.kinds <= {"whole", "decimal"}:
            return Float()
        return Json() if is_json and self.kinds != {"text"} else Text()


def has_boxes(value: Any) -> bool:
    """Return whether a JSON value has boxes of objects."""
    objects = value if isinstance(value, list) else [value]
    return any(side in each for each in objects if isinstance(each, dict) for side in SIDES_OF_BOXES)


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "whole" if value in _INT64 else "json"
    return {float: "decimal", str: "text"}.get(type(value), "json")


def _kind_of_cell(text: str) -> str | None:
    if not text:
        return None
    if _WHOLE.fullmatch(text) and int(text) in _INT64:
        return "whole"
    if text in TRUTH_VALUES:
        return "bool"
    return "decimal" if _DECIMAL.fullmatch(text) and not _WHOLE.fullmatch(text) else "text"


class TableRows:
    """Collects the rows of similar tables: their labels, and the values of fields.

    Labels are ids of classes if all are numbers, otherwise names. Fields are all other columns except those in
    ``without``; if ``only`` is given, only those in it. ``has_files`` says whether columns can have paths of images.
    """

    def __init__(
        self,
        path: Location,
        classes: Classes,
        *,
        without: Collection[str],
        only: Collection[str] | None = None,
        has_files: bool,
    ) -> None:
        self.have_labels = False  # whether any row so far has a column of labels
        self.columns: dict[str, _Column] = {}  # the columns so far, by name
        self._path, self._classes, self._without = path, classes, without
        self._is_json, self._has_files = is_json(path), has_files
        self._only = None if only is None else {*only, classes.field}
        self._are_numbers = True
        self._labels: dict[str, int] = {}
        self._names: dict[str, None] = {}
        self._rows = 0
        self._cells = GrowingBlobs()

    @property
    def are_ids(self) -> bool:
        """Whether there are labels, and all labels so far are numbers."""
        return self.have_labels and self._are_numbers

    def take_label(self, path: Location, line: int, row: dict[str, Any]) -> int:
        """Remove the label from a row, and return its number among all labels; -1 for no label."""
        self.have_labels |= self._classes.field is None and not row.keys().isdisjoint(self._classes.columns)
        try:
            value = self._classes.take(row)
        except ValueError as error:
            raise damaged(path, line, str(error)) from error
        if value is None or value == "":
            return -1
        if isinstance(value, bool):
            value = str(value)  # as in CSV
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # pandas writes whole numbers as floats if some are missing
        is_number = type(value) is int if self._is_json else _CLASS_ID.fullmatch(value) is not None
        if self._is_json and is_number and value < -1:
            raise damaged(path, line, f"the label is {value}; class ids count from 0, and -1 is no class")
        if not is_number and not isinstance(value, str):
            raise damaged(path, line, "the label is neither text nor a whole number")
        self._are_numbers &= is_number
        return self._labels.setdefault(str(value), len(self._labels))

    def class_names(self, warnings: list[str]) -> list[bytes | None]:
        """Return the class of each label, by the label's number; refuse labels unlike those of the first rows."""
        is_one = self._classes.form == "one" and not self._classes.is_told
        if is_one and (between := separator_of([*self._labels])):
            first = next(label for label in self._labels if between in label.strip())
            message = f"{self._path}: after the first {LOOKED_AT:,} rows, {''.join(self._classes.columns)!r} has"
            message += f" {first[:40]!r}, which may be several classes; give {option_with('label_separator', between)}"
            message += f", or {option_with('label_separator', 'none')} where each cell is one class"
            raise SourceError(message, path=str(self._path))
        try:
            class_of, self._are_numbers = classes_of(self._path, self._labels, warnings, may_be_ids=self._are_numbers)
        except UnicodeEncodeError as error:
            message = f"{self._path}: the label {error.object!r} is no text that UTF-8 can hold"
            raise SourceError(message, path=str(self._path)) from error
        return [*class_of.values()]

    def add(self, row: dict[str, Any]) -> None:
        """Append a row, given its values by column."""
        self._rows += 1
        for name, value in row.items():
            if name in self._without or (self._only is not None and name not in self._only):
                continue
            column = self.columns.setdefault(name, _Column())
            if self._are_several(name):
                self._names.update(dict.fromkeys(value if self._classes.form == "several" else ()))
                column.count += 1
            else:
                column.add(value, is_json=self._is_json)
        self._cells.append(json_bytes([row.get(name) for name in self.columns]))

    def add_missing(self) -> None:
        """Append an image without a row: it has no values and no classes."""
        self._rows += 1
        self._cells.append(json_bytes([[] if self._are_several(name) else None for name in self.columns]))

    def _are_several(self, name: str) -> bool:
        return self._classes.form in ("several", "captions") and name == self._classes.field

    def _field(self, name: str, column: _Column, *, fills: bool) -> Field | None:
        if self._classes.form == "captions" and name == self._classes.field:
            return Json("list[str]")
        if self._are_several(name):
            numbers = {int(text) for text in self._names if text.isdigit()}
            if len(numbers) == len(self._names) and max(numbers, default=MAX_CLASSES) < MAX_CLASSES:
                return Labels([str(number) for number in range(max(numbers) + 1)])
            return Labels(list(self._classes.columns[1:] and self._classes.columns) or sorted(self._names))
        if name == self._classes.field and not column.kinds <= {"whole", "decimal"}:
            message = f"{self._path}: after the first {LOOKED_AT:,} rows, {name!r} has other values than numbers; mend"
            message += f" them, or give {option_with('label_column', 'none')} to have all as text"
            raise SourceError(message, path=str(self._path))
        if name == self._classes.field:
            return Float()
        return column.field(name, is_json=self._is_json, has_files=self._has_files, fills=fills)

    def finish(self, builder: SourceBuilder) -> Cells | None:
        """Make the values a column of the source and return its `Cells`; None if no column has values."""
        warnings = builder.warnings
        columns: list[tuple[str, Field] | None] = []
        lacking: dict[str, list[tuple[str, str]]] = {}
        for name, column in self.columns.items():
            fills = column.count < self._rows
            field = self._field(name, column, fills=fills)
            is_image = field is not None and field.is_image
            columns.append(None if field is None else (name.removesuffix(IMAGE_NAME) if is_image else name, field))
            if name in BOXES_AS_JSON and column.has_boxes:
                warnings.append(BOXES_AS_JSON[name])
            if field is None:
                what = f"its column {name!r} has no value" if name else "one of its columns has no name"
                warnings.append(f"{self._path}: {what}: not used")
            elif fills and (isinstance(field, Float) or (self._is_json and isinstance(field, Text))):
                rows = format_count(self._rows - column.count, "row")
                lacking.setdefault(field.missing_shown, []).append((name, rows))
            if isinstance(field, Float) and column.is_long:
                message = f"{self._path}: its column {name!r} has whole numbers above {_EXACT}"
                warnings.append(f"{message}, which float32 rounds")
        for filled, known in lacking.items():
            counts = format_some(known, _SHOWN_GAPS, lambda each: f"{each[0]!r} has no value in {each[1]}")
            warnings.append(f"{self._path}: {counts}: {filled} there")
        used = [column for column in columns if column is not None]
        names = [name for name, _ in used]
        try:
            check_extra(dict(used))
        except ConfigError as error:
            raise SourceError(f"{self._path}: {error}", path=str(self._path)) from error
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            message = f"{self._path}: the columns {twice!r} and {twice + IMAGE_NAME!r} would both be the field"
            raise SourceError(f"{message} {twice!r}; rename one", path=str(self._path))
        if not used:
            return None
        builder.collector.columns["cells"] = self._cells.finish()
        return Cells(tuple(columns), fills=bool(lacking))
