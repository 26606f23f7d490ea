"""Fields of a batch: what records hold beside image, label and boxes, in the forms that `stoker.fields` describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from stoker import _native
from stoker.config import without_address
from stoker.errors import ConfigError, ExampleError
from stoker.fields import Padded, Ragged
from stoker.loader.batch import padded
from stoker.loader.mixes import Mix, parts_of
from stoker.strict_json import parse_json
from stoker.types import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stoker.loader.dataset import Dataset
    from stoker.types import BatchForm

ColumnForm = Literal["values", "bytes", "str"]

Where = tuple[str, int, int]
"""File, number of the record in it, and its first byte."""

NativeColumn = tuple["NDArray[Any]", "NDArray[np.int64]"] | list[str] | list[bytes]
"""Values (T,) and offsets (B + 1,) of one field, as the core gives them; of bytes and text a list of B."""

_OBJECTS: dict[str, ColumnForm] = {"text": "str", "bytes": "bytes", "json": "bytes"}
"""The kinds of which the core gives a list, and of what."""

_SHOWN = 120  # characters of what is wrong, which may name a key of any length


def _column_form(form: BatchForm) -> ColumnForm:
    """Return what the core gives of a batch."""
    return _OBJECTS.get(form.kind, "values")


def _batch_value(form: BatchForm, column: NativeColumn) -> Any:
    """Return what a batch has of a field, of what the core gives; `_BadValueError` where that is damaged."""
    if form.kind == "json":
        return [_loaded(row, cast("bytes", text)) for row, text in enumerate(column)]
    if isinstance(column, list):
        return column
    values, offsets = column
    if form.dtype == "bool" and (odd := np.flatnonzero(values > 1)).size:
        row = int(np.searchsorted(offsets, odd[0], "right")) - 1
        raise _BadValueError(row, f"holds the byte {values[odd[0]]}, and those of bool are 0 and 1")
    numbers = values.view(np.dtype(form.dtype).newbyteorder("<")).astype(form.dtype, copy=False)
    if form.kind == "dense":
        return numbers.reshape(len(offsets) - 1, *form.shape)
    numbers, offsets = numbers.reshape(-1, *form.shape), offsets // form.group
    if form.kind == "ragged":
        return Ragged(numbers, offsets)
    (numbers,) = padded(offsets, form.pad_to, [(numbers, form.fill)])
    return Padded(numbers, np.diff(offsets))


def value_of_sample(form: BatchForm, value: Any) -> Any:
    """Return one of `Sample.fields` as a batch has it for each of its samples; see `row_of`."""
    if form.is_plane or form.kind in ("text", "bytes", "json"):
        return value
    numbers = np.asarray(value, form.dtype)
    if form.kind != "padded":
        return numbers
    return padded(np.array([0, len(numbers)], np.int64), form.pad_to, [(numbers, form.fill)])[0][0]


def row_of(value: Any, row: int) -> Any:
    """Return what one sample of a batch has in a field, of what the batch has: without counts where it is padded."""
    if isinstance(value, tuple):
        return tuple(row_of(each, row) for each in value)
    if isinstance(value, Ragged):
        return value.values[value.offsets[row] : value.offsets[row + 1]]
    return value.values[row] if isinstance(value, Padded) else value[row]


class _BadValueError(ValueError):
    """A value of the sample in a row of its batch is damaged."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def _loaded(row: int, text: bytes) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise _BadValueError(row, f"is not JSON: {str(error)[:_SHOWN]}") from error


class FieldReader:
    """What the core reads of the records' fields, and what a batch has of that.

    Attributes:
        forms: How batches have each.
        columns: Values that the core collects.
        planes: Images that it crops and resizes as the first of the record.
    """

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self.forms = {name: field.form() for name, field in fields.items()}
        self._columns = {name: form for name, form in self.forms.items() if not form.is_plane}
        self._planes = {name: form for name, form in self.forms.items() if form.is_plane}
        self.columns = [
            _native.FieldColumn(
                name,
                form.stored,
                form=_column_form(form),
                text=form.kind in ("text", "json"),
                fixed=form.fixed,
                group=form.group,
            )
            for name, form in self._columns.items()
        ]
        self.planes = [_native.FieldPlane(f"{name}/encoded", form.bits) for name, form in self._planes.items()]

    def values(
        self, columns: Sequence[NativeColumn], planes: Sequence[Any], place: Callable[[int], Where]
    ) -> dict[str, Any]:
        """Return the fields of a batch; the core gives the values of each of `columns`, and of each of `planes`.

        Raises:
            ExampleError: A record holds what the field cannot have.
        """
        fields = dict(zip(self._planes, planes, strict=True))
        for (name, form), column in zip(self._columns.items(), columns, strict=True):
            try:
                fields[name] = _batch_value(form, column)
            except _BadValueError as error:
                path, record, offset = place(error.row)
                message = f"{PurePath(path).name}, record {record} at byte {offset}: feature {name!r} {error}"
                raise ExampleError(message, path=path, record=record, offset=offset) from error
        return {name: fields[name] for name in self.forms}

    def empty_columns(self) -> list[NativeColumn]:
        """Return the columns of a batch without samples."""
        types = {"bytes": np.uint8, "float": np.float32, "int64": np.int64}
        return [
            (np.empty(0, types[form.stored]), np.zeros(1, np.int64)) if _column_form(form) == "values" else []
            for form in self._columns.values()
        ]


def chosen_fields(dataset: Dataset | Mix, wanted: Sequence[str] | Mapping[str, Field]) -> dict[str, Field]:
    """Return the fields that batches of a dataset are to have.

    Args:
        dataset: Which must have them; of a mix, all of its parts.
        wanted: Their names; or with a name the field itself, for another form of the same stored values. Records that
            Stoker did not write say nothing of fields: of them those are taken that are given.

    Raises:
        ConfigError: A field is not there, or is stored in another way; or parts of a mix have one of different kinds,
            shapes or names of ids, and it is not given which holds.
    """
    if isinstance(wanted, str) or not isinstance(wanted, Mapping | Sequence):
        raise ConfigError(f"fields is {wanted!r}; it must be a list of names, such as fields=['caption'], or a mapping")
    given = wanted if isinstance(wanted, Mapping) else {}
    chosen: dict[str, Field] = {}
    for part in parts_of(dataset):
        known = _known_fields(part, given)
        for name in wanted:
            if name not in known:
                raise ConfigError(_missing(part, name))
            field = given.get(name, chosen.get(name, known[name]))
            if not isinstance(field, Field):
                raise ConfigError(f"{without_address(field)} is not a field, such as stoker.fields.Text()")
            if name not in given and _meaning(field) != _meaning(known[name]):
                message = (
                    f"field {name!r} is {field!r} in {parts_of(dataset)[0].path}, and {known[name]!r} in {part.path}"
                )
                raise ConfigError(f"{message}; a mix can have it where all of its datasets have the same")
            if name not in given and field.class_names != known[name].class_names:
                message = f"field {name!r} has other names in {part.path} than in {parts_of(dataset)[0].path}"
                decided = f"fields={{{name!r}: stoker.fields.{type(field).__name__}([...])}}"
                raise ConfigError(f"{message}; build both with the same, or say which hold for all: {decided}")
            if _stored(field) != _stored(known[name]):
                message = f"field {name!r} of {part.path} is {known[name]!r}"
                raise ConfigError(f"{message}, which is not stored as {field!r} is")
            chosen[name] = field
    return chosen


def _known_fields(part: Dataset, given: Mapping[str, Field]) -> Mapping[str, Field]:
    return part.schema.fields if _says_fields(part) else {**given, **part.schema.fields}


def _says_fields(part: Dataset) -> bool:
    """Return whether it is known which fields samples have, and which they have not."""
    return part.manifest is not None or part.reader.lists_fields


def _missing(part: Dataset, name: str) -> str:
    if not _says_fields(part):
        message = f"the records of {part.path} do not say which fields they have"
        return f"{message}; say what {name!r} is: fields={{{name!r}: stoker.fields.Text()}}"
    return f"{part.path} has no field {name!r}; it has {', '.join(map(repr, part.schema.fields)) or 'none'}"


def _meaning(field: Field) -> tuple[object, ...]:
    """Return what the values of a field are, whatever batches are padded to."""
    form = field.form()
    return type(field), form.dtype, form.shape


def _stored(field: Field) -> tuple[object, ...]:
    """Return what decides how records hold a field."""
    form = field.form()
    return (form.kind, form.dtype) if form.is_plane else (form.stored, form.fixed, form.group)
