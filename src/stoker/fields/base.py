"""What the kinds of fields share: values as one feature, in batches and in columns, and errors about values."""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stoker.config import check_range
from stoker.errors import ExampleError, SourceError, printable
from stoker.types import BOX_SIDES, BatchForm, FeatureSpec, Field

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from stoker.types import ArrowColumn, Features, Pixels

    Values = list[bytes] | list[int] | list[float]


MAX_SHOWN = 60
"""Characters of a value that a message or a line shows."""

_BITS_SHOWN = 128
_MAX_PADDING = 1 << 16


class BadValueError(Exception):
    """A value does not fit its field; the message says what it must be."""


class ValueField(Field):
    """A field whose values are stored under its name, as one feature."""

    __slots__ = ()

    column: ClassVar[str] = "string"
    """Type of the column in an export to Parquet."""

    @property
    @abstractmethod
    def spec(self) -> FeatureSpec:
        """Kind and number of the values that every record has under the name of the field."""

    @abstractmethod
    def _values(self, value: Any) -> Values:
        """Return the values of the feature for a value of the field; `BadValueError` if the field cannot hold it."""

    @abstractmethod
    def _value(self, values: Any) -> Any:
        """Return the value of a feature of the right kind and length; ``ValueError`` if the field cannot have it."""

    def features(self, name: str) -> dict[str, FeatureSpec]:
        return {name: self.spec}

    def encode(self, name: str, value: Any, image: Pixels | None = None) -> Features:  # noqa: ARG002 - no pixels
        try:
            values = self._values(value)
        except BadValueError as error:
            raise refusal(name, value, str(error)) from None
        return {name: (self.spec.kind, values)}

    def decode(self, name: str, features: Features) -> Any:
        try:
            return self._value(read_feature(name, self.spec, features))
        except ValueError as error:
            raise ExampleError(f"feature {name}: {str(error)[: 4 * MAX_SHOWN]}") from error

    def show(self, value: Any) -> str:
        return shortened(json.dumps(value, ensure_ascii=False))

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        return value_column(pa, self.column)

    def to_plain(self, value: Any) -> Any:
        return value.tolist() if isinstance(value, np.ndarray) else value

    def form(self) -> BatchForm:
        if self.spec.kind == "bytes":
            return BatchForm(self.kind)
        return BatchForm("dense", "float32" if self.spec.kind == "float" else "int64", stored=self.spec.kind)


def shortened(text: str) -> str:
    """Return a text shortened to one line for people."""
    text = printable(text)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "..."


def refusal(name: str, value: object, must: str) -> SourceError:
    """Return the error that a value does not fit its field."""
    return SourceError(f"field {name!r} is {describe(value)}, but {must}")


def describe(value: object) -> str:
    """Return a value for a message: short, and without the address of an object."""
    if isinstance(value, int) and value.bit_length() > _BITS_SHOWN:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, np.number, np.bool_)):
        return f"{value!s}" if value is None else f"{value!s} ({type(value).__name__})"
    if isinstance(value, (str, bytes)):
        return repr(value[:MAX_SHOWN]) + ("..." if len(value) > MAX_SHOWN else "")
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    kind = type(value)
    is_builtin = kind.__module__ == "builtins"
    return f"a value of type {kind.__qualname__ if is_builtin else f'{kind.__module__}.{kind.__qualname__}'}"


def read_feature(key: str, spec: FeatureSpec, features: Features) -> Values:
    """Return the values of a feature; `ExampleError` if they are of another kind or number."""
    kind, values = features.get(key, ("none", []))
    if kind != spec.kind:
        raise ExampleError(f"feature {key} is of kind {kind}, not {spec.kind}")
    if spec.length is not None and len(values) != spec.length:
        raise ExampleError(f"feature {key} has {len(values)} values, not {spec.length}")
    return values


def is_whole(value: object) -> bool:
    """Return whether a value is a whole number, and not a bool."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


# Values whose number differs between samples.


@dataclass(frozen=True, slots=True)
class Ragged:
    """Values whose number differs between samples, end to end.

    Attributes:
        values: (T, ...), where T is the number of values of all samples together.
        offsets: int64 (B + 1,); the values of sample ``i`` are ``values[offsets[i] : offsets[i + 1]]``.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Padded:
    """Values whose number differs between samples, padded to one array.

    Attributes:
        values: (B, M, ...), padded with -1 for `Labels`, with 0 for an `Array`.
        counts: int64 (B,), the number of values of each sample; above M, the last ones are left out.
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]


def check_padding(pad_to: int | None) -> None:
    """Refuse a length to pad to that is out of range."""
    if pad_to is not None:
        check_range("pad_to", pad_to, 1, _MAX_PADDING)


def varying(form: BatchForm, pad_to: int | None) -> BatchForm:
    """Return a form for samples whose numbers of values differ."""
    return replace(form, kind="ragged") if pad_to is None else replace(form, kind="padded", pad_to=pad_to)


# Columns of an export to Parquet: their type for Arrow, and their description for the library ``datasets``.


def value_column(pa: ModuleType, dtype: str) -> ArrowColumn:
    """Return a column of plain values of a type that Arrow and ``datasets`` call the same."""
    return pa.type_for_alias(dtype), {"dtype": dtype, "_type": "Value"}


def class_column(pa: ModuleType, names: Sequence[str] | None) -> ArrowColumn:
    """Return a column of ids of classes, with their names if there are any."""
    kind, feature = value_column(pa, "int64")
    return kind, {"names": [printable(name) for name in names], "_type": "ClassLabel"} if names else feature


def list_column(pa: ModuleType, column: ArrowColumn, length: int | None = None) -> ArrowColumn:
    """Return a column of lists of the values of another column; ``length`` -1 says that their lengths differ."""
    kind, feature = column
    length_entry = {} if length is None else {"length": length}
    return pa.list_(kind, -1 if length is None else length), {"feature": feature, "_type": "List", **length_entry}


def box_column(pa: ModuleType, names: Sequence[str] | None) -> ArrowColumn:
    """Return a column of lists of boxes, whose classes have the names."""
    sides = {side: value_column(pa, "float32") for side in BOX_SIDES}
    columns = {**sides, "label": class_column(pa, names)}
    kind = pa.struct([(key, kind) for key, (kind, _) in columns.items()])
    return list_column(pa, (kind, {key: feature for key, (_, feature) in columns.items()}))
