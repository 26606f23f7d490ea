"""Tables of images: CSV, TSV, JSON lines and Parquet, row by row, and what their columns are.

===============================================================  =================================
column                                                           field
===============================================================  =================================
``NAME_file_name``: paths                                        ``NAME``: `Mask` if there is
                                                                 "mask" in the name, else `Image`
whole numbers of 64 bits, without leading zeros; true and false  `Int`: true is 1
decimal numbers                                                  `Float`
other text                                                       `Text`
lists, objects, text beside numbers (JSON lines and Parquet)     `Json`
===============================================================  =================================

All rows decide what a column is; cells that are empty, or null, do not count. An empty cell of text is text.

The classes are the column `LABEL`, or else the only one that `find_label` takes for them.

Where the images are URLs, rows may lack values, as those of LAION do: such a text is empty, such a number is not a
number. A column of whole numbers that lacks some is `Float` if float32 has all of them, otherwise `Text`.
"""

from __future__ import annotations

import csv
import dataclasses
import re
import shlex
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from stoker.config import format_count
from stoker.errors import ConfigError, SourceError
from stoker.fields import TRUTH_VALUES, Float, Image, Int, Json, Mask, Text, check_extra
from stoker.sources.cells import Cells, json_bytes
from stoker.sources.columns import GrowingBlobs
from stoker.sources.parquet_files import SUFFIX as PARQUET
from stoker.sources.parquet_files import parquet_rows
from stoker.sources.reading import raw_lines
from stoker.storage import parse_json
from stoker.types import MAX_CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    from stoker.sources.source_builder import SourceBuilder
    from stoker.storage import Location
    from stoker.types import Field

LABEL = "label"
"""The column of the classes."""

IMAGE_NAME = "_file_name"
"""How names of columns with paths of images end."""

_MAX_LINE_BYTES = 2**24
_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]{0,18})")
_DECIMAL = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
_CLASS_ID = re.compile(r"(-1|[0-9]{1,99})(\.0)?")
_NO_NAME = re.compile(r"[-+0-9., ]+|.*[|;].*", re.DOTALL)
"""Numbers, and lists of classes."""
LABEL_NAME = re.compile(
    r"(?!(num|n|no|has|is)[_ -])(.+[_ -])?(labels?|class(es)?|category|categories|targets?)"
    r"([_ -]?(id|idx|index|name|label)s?)?",
    re.IGNORECASE,
)
"""What names of columns may say that these have the classes: ``Class``, ``category_id``, ``fine_label``."""
_LOOKED_AT, _MOST_ALONE = 1000, 20
"""Rows whose labels are looked at, and of how many all classes may differ."""
_INT64 = range(-(2**63), 2**63)
_EXACT = 2**24
"""Up to which float32 has all whole numbers."""


def is_json(place: Location) -> bool:
    """Return whether a table has values as JSON has them, not text in cells."""
    return place.suffix in (".jsonl", PARQUET)


def table_rows(place: Location) -> Generator[tuple[int, dict[str, Any]]]:
    """Yield the line at which each row of a table begins, of Parquet its number, and its values by column.

    Raises:
        SourceError: A row is damaged.
        OSError: The file cannot be read.
    """
    if place.suffix == ".jsonl":
        yield from _json_rows(place)
    elif place.suffix == PARQUET:
        yield from _parquet_rows(place)
    else:
        yield from _csv_rows(place, "\t" if place.suffix == ".tsv" else ",")


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

    def __init__(self, place: Location) -> None:
        self.number = 0
        self.record_bytes = 0
        self._place = place

    def __iter__(self) -> Iterator[str]:
        for number, line in raw_lines(self._place, _MAX_LINE_BYTES):
            self.number = number
            self.record_bytes += len(line)
            if self.record_bytes > _MAX_LINE_BYTES:
                raise damaged(self._place, self.number, f"its row has more than {_MAX_LINE_BYTES} bytes")
            try:
                yield line.decode()
            except UnicodeDecodeError as error:
                raise damaged(self._place, self.number, f"it is not UTF-8 at byte {error.start}") from error


def _csv_rows(place: Location, delimiter: str) -> Iterator[tuple[int, dict[str, Any]]]:
    lines = _CsvLines(place)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
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


@dataclasses.dataclass(slots=True)
class _Column:
    """What the values of a column have been so far.

    Attributes:
        kinds: Any of ``bool``, ``whole``, ``decimal``, ``text``, ``json``.
        count: How many there were.
        is_long: Whether one is a whole number that float32 may not have.
    """

    kinds: set[str] = dataclasses.field(default_factory=set)
    count: int = 0
    is_long: bool = False

    def add(self, value: Any, *, is_json: bool) -> None:
        """Note a value: of JSON, or the text of a cell."""
        kind = _kind(value) if is_json else _kind_of_cell(value)
        if kind is not None:
            self.kinds.add(kind)
            self.count += 1
            self.is_long |= kind in ("whole", "decimal") and float(value).is_integer() and abs(float(value)) > _EXACT

    def field(self, name: str, *, is_json: bool, has_files: bool, fills: bool) -> Field | None:
        """Return what a column is; None if it has no value.

        Args:
            name: Its name.
            is_json: As the function of this name has it.
            has_files: Whether it can have the paths of images.
            fills: Whether some rows lack a value, and that is no error.
        """
        if not self.kinds or not name:
            return None
        are_paths = self.kinds <= ({"text"} if is_json else {"text", "whole", "decimal", "bool"})
        if has_files and name.endswith(IMAGE_NAME) and are_paths:
            return Mask() if "mask" in name.lower() else Image()
        if self.kinds in ({"whole"}, {"bool"}):
            return Int() if not fills else Text() if self.is_long else Float()
        if self.kinds <= {"whole", "decimal"}:
            return Float()
        return Json() if is_json and self.kinds != {"text"} else Text()


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


class TableValues:
    """The values of the rows of tables that become fields.

    Args:
        is_json: As the function of this name has it.
        without: Columns that are none.
        has_files: Whether columns can have the paths of images.

    Attributes:
        columns: Names of the columns so far.
    """

    def __init__(self, *, is_json: bool, without: Collection[str], has_files: bool) -> None:
        self.columns: dict[str, _Column] = {}
        self._is_json = is_json
        self._without = without
        self._has_files = has_files
        self._rows = 0
        self._cells = GrowingBlobs()

    def add(self, row: dict[str, Any]) -> None:
        """Append a row: its values by column."""
        self._rows += 1
        for name, value in row.items():
            if name not in self._without:
                self.columns.setdefault(name, _Column()).add(value, is_json=self._is_json)
        self._cells.append(json_bytes([row.get(name) for name in self.columns]))

    def finish(self, builder: SourceBuilder, place: Location) -> Cells | None:
        """Return what reads the values, which become a column of a source; None if there is no column with values.

        Args:
            builder: Has an image for each row, and receives what is not used.
            place: The table, for messages.

        Raises:
            SourceError: The names of the columns cannot be those of fields.
        """
        warnings = builder.skipped.warnings
        columns: list[tuple[str, Field] | None] = []
        is_filled = False
        for name, column in self.columns.items():
            fills = not self._has_files and column.count < self._rows
            field = column.field(name, is_json=self._is_json, has_files=self._has_files, fills=fills)
            is_image = field is not None and field.is_image
            columns.append(None if field is None else (name.removesuffix(IMAGE_NAME) if is_image else name, field))
            if field is None:
                what = f"its column {name!r} has no value" if name else "one of its columns has no name"
                warnings.append(f"{place}: {what}: not used")
            elif fills and (isinstance(field, Float) or (self._is_json and isinstance(field, Text))):
                lacking = format_count(self._rows - column.count, "row")
                filled = "empty" if isinstance(field, Text) else "nan"
                warnings.append(f"{place}: its column {name!r} has no value in {lacking}: {filled} there")
                is_filled = True
            if isinstance(field, Float) and column.is_long:
                warnings.append(f"{place}: its column {name!r} has whole numbers above {_EXACT}, which float32 rounds")
        used = [column for column in columns if column is not None]
        names = [name for name, _ in used]
        try:
            check_extra(dict(used))
        except ConfigError as error:
            raise SourceError(f"{place}: {error}", path=str(place)) from error
        twice = next((name for at, name in enumerate(names) if name in names[:at]), None)
        if twice is not None:
            message = f"{place}: the columns {twice!r} and {twice + IMAGE_NAME!r} would both be the field {twice!r}"
            raise SourceError(f"{message}; rename one", path=str(place))
        if not used:
            return None
        builder.collector.columns["cells"] = self._cells.finish()
        return Cells(tuple(columns), fills=is_filled)


def find_label(
    where: object, values: Mapping[str, Sequence[Any]], warnings: list[str], advice: Callable[[str], str]
) -> str | None:
    """Return the only column with the name and the values of classes, where none is called `LABEL`; None without one.

    Args:
        where: What has the columns, for messages.
        values: The first values of each column, without those that are missing.
        warnings: Receives which column is taken, or that none is.
        advice: Returns how to say that it is a column.

    Raises:
        SourceError: There are several.
    """
    names = [name for name, known in values.items() if known and LABEL_NAME.fullmatch(name)]
    usable = [name for name in names if _are_classes(values[name])]
    shown, message = " or ".join(map(repr, usable or names)), f"{where}: nothing is called {LABEL!r}"
    if len(usable) > 1:
        raise SourceError(f"{message}, and the classes may be {shown}; {advice(usable[0])}", path=str(where))
    if names:
        what = f"the classes are {shown}" if usable else f"{shown} has neither ids nor repeated names, so it is a field"
        warnings.append(f"{message}; {what}")
    return usable[0] if usable else None


def _are_classes(values: Sequence[Any]) -> bool:
    if _MOST_ALONE < len(values) == len(set(map(str, values))):
        return False
    return all(
        float(value) < MAX_CLASSES
        if _CLASS_ID.fullmatch(str(value))
        else isinstance(value, str) and not _NO_NAME.fullmatch(value)
        for value in values
    )


def label_name(places: Sequence[Location], warnings: list[str]) -> str:
    """Return the column of the classes in tables: `LABEL`, or what `find_label` finds by the first rows instead.

    Raises:
        SourceError: A table is damaged, or several columns may be it.
        OSError: It cannot be read.
    """
    values: dict[str, list[Any]] = {}
    for _, row in chain.from_iterable(islice(table_rows(place), _LOOKED_AT) for place in places):
        for name, value in row.items():
            known = values.setdefault(name, [])
            if value not in (None, "") and LABEL_NAME.fullmatch(name):
                known.append(value)
    label = None if LABEL in values else find_label(places[0], values, warnings, partial(_advice, places[0], [*values]))
    return label or LABEL


def _advice(place: Location, columns: Sequence[str], column: str) -> str:
    advice = f"rename the right one to {LABEL!r}, or add an empty column {LABEL!r} to read no classes"
    if not place.is_local or place.suffix == PARQUET:
        return advice
    count = ",".join(columns[: columns.index(column)]).count(column) + 1
    edit = f's/"{column}" *:/"{LABEL}":/' if is_json(place) else f"1s/{column}/{LABEL}/{count}"
    return f"{advice}; for {column!r}: {shlex.join(['sed', '-i.bak', edit, str(place)])}"


class TableLabels:
    """The labels of the rows of tables: ids of classes if all are numbers, otherwise names.

    Args:
        is_json: As the function of this name has it.

    Attributes:
        are_numbers: Whether all so far are.
    """

    def __init__(self, *, is_json: bool) -> None:
        self.are_numbers = True
        self._is_json = is_json
        self._labels: dict[str, int] = {}

    def add(self, place: Location, line: int, value: Any) -> int:
        """Return the number of a label among all; -1 for none.

        Raises:
            SourceError: It is no label.
        """
        if value is None or value == "":
            return -1
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # as pandas writes whole numbers beside missing ones
        is_number = (
            isinstance(value, int) and not isinstance(value, bool) if self._is_json else _CLASS_ID.fullmatch(value)
        )
        if self._is_json and is_number and value < -1:
            raise damaged(place, line, f"the label is {value}; class ids count from 0, and -1 is no class")
        if not is_number and not isinstance(value, str):
            raise damaged(place, line, "the label is neither text nor a whole number")
        self.are_numbers &= bool(is_number)
        return self._labels.setdefault(str(value), len(self._labels))

    def class_names(self, place: Location) -> list[bytes | None]:
        """Return the class that each label stands for, by its number.

        Raises:
            SourceError: A label cannot be the name of one.
        """
        names: list[bytes | None] = []
        for label in self._labels:
            text = label.removesuffix(".0") if self.are_numbers else label
            try:
                names.append(None if text == "-1" else text.encode())
            except UnicodeEncodeError as error:
                raise SourceError(
                    f"{place}: the label {label!r} is no text that UTF-8 can hold", path=str(place)
                ) from error
        return names
