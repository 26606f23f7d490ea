"""What records hold beside the image, its class and its boxes: texts, numbers, arrays, masks, extra images.

========  =============================================  ==========================================
field     value in a record to build from                value in a sample
========  =============================================  ==========================================
Text      ``str``                                        ``str``
Bytes     ``bytes``                                      ``bytes``
Json      what JSON can say, but ``None``                the same, tuples as lists
Int       a whole number of 64 bits, or ``bool``         ``int``
Float     a number that float32 can hold                 ``float``, rounded to float32
Label     an id from 0, or the name of a class;          ``int``
          -1 for none
Labels    any number of ids or names                     int64 array (N,)
Array     numbers of the shape and kind                  array of the dtype and shape
Mask      ids of classes, as many as the image has       uint8 or uint16 array (H, W)
          pixels: an array, a PIL image, a file
Image     an image as large as the first: an array, a    array (H, W, C), as ``Sample.decode`` has it
          PIL image, a file
Boxes     a list of boxes; see below                     ``Sample.boxes``
========  =============================================  ==========================================

A file is its bytes, its path or its URL. The first `Image` of a record (or that called ``image``), its first `Label`
(or that called ``label``) and its boxes are what every record has; docs/reference/format.md says how they and the
others are stored. No value may be missing or ``None``.
"""

from __future__ import annotations

import json
import math
import os
import struct
import sys
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

import numpy as np

from stoker.config import check_range
from stoker.errors import ConfigError, ExampleError, SourceError
from stoker.storage import parse_json
from stoker.types import Box, FeatureSpec, Field, StoredFormat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.types import FeatureKind, Features

    Values = list[bytes] | list[int] | list[float]

__all__ = [
    "Array",
    "Boxes",
    "Bytes",
    "EncodedImage",
    "Float",
    "Image",
    "ImageField",
    "Int",
    "Json",
    "Label",
    "Labels",
    "Mask",
    "Padded",
    "Ragged",
    "Roles",
    "Text",
    "ValueField",
    "check_extra",
    "from_json",
    "given_value",
    "infer",
    "is_pil_image",
    "roles",
    "stored_values",
]

_MAX_NAME = 200
_MAX_PADDING = 1 << 16
_MAX_VALUES = 2**31 - 1  # of an array: a tf.train.Example holds less than 2 GiB
_SHOWN = 60
_BITS_SHOWN = 128
_INT64 = range(-(2**63), 2**63)
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
_INT_RANGES = {"bool": range(2)} | {
    name: range(max(np.iinfo(name).min, _INT64.start), min(int(np.iinfo(name).max) + 1, _INT64.stop))
    for name in _DTYPES[1:9]
}
_LISTS: Mapping[str, FeatureKind] = {"float32": "float", "int64": "int64"}
_OWN_PREFIX = "image/"
_SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True, slots=True)
class Ragged:
    """Values of which samples have different numbers, end to end.

    Attributes:
        values: (T, ...): T is the number of all samples together.
        offsets: int64 (B + 1,): those of sample ``i`` are ``values[offsets[i] : offsets[i + 1]]``.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Padded:
    """Values of which samples have different numbers, as one array.

    Attributes:
        values: (B, M, ...): filled up with -1 for `Labels`, with 0 for an `Array`.
        counts: int64 (B,): how many each sample has; above M, the last ones are left out.
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image or a mask as a record holds it.

    Attributes:
        encoded: The bytes of its file.
        format: What they are.
        height: Its rows of pixels.
        width: Its columns of pixels.
    """

    encoded: bytes
    format: StoredFormat
    height: int
    width: int


class _WrongError(Exception):
    """What a value must be, in words."""


class _Ids:
    """The ids of classes, by names if there are some."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self._named = None if names is None else {name: number for number, name in enumerate(names)}
        self._count = 2**31 if names is None else len(names)

    def of(self, value: Any) -> int:
        """Return the id of a class that is given by id or by name; `_WrongError` if there is none."""
        if isinstance(value, str) and self._named is None:
            raise _WrongError("must be the id of a class, as the field has no names")
        if isinstance(value, str) and value in (named := self._named or {}):
            return named[value]
        if isinstance(value, str) or not _is_whole(value) or not 0 <= value < self._count:
            name = "" if self._named is None else ", or the name of one"
            raise _WrongError(f"must be the id of a class, 0 to {self._count - 1}{name}")
        return int(value)

    def check(self, ids: NDArray[np.int64]) -> None:
        """Refuse stored numbers that are not ids, with a ``ValueError``."""
        wrong = ids[(ids < 0) | (ids >= self._count)]
        if wrong.size:
            raise ValueError(f"{wrong[0]} is not the id of a class, 0 to {self._count - 1}")


class ValueField(Field):
    """A field whose values stand under its name, as one feature."""

    __slots__ = ()

    @property
    @abstractmethod
    def spec(self) -> FeatureSpec:
        """What every record has under the name of the field."""

    @abstractmethod
    def _values(self, value: Any) -> Values:
        """Return a value as those of the feature; `_WrongError` if it is none of the field."""

    @abstractmethod
    def _value(self, values: Any) -> Any:
        """Return what the values of a feature of the right kind and length say; ``ValueError`` if nothing."""

    def features(self, name: str) -> dict[str, FeatureSpec]:
        """Return the one feature by its key."""
        return {name: self.spec}

    def encode(self, name: str, value: object) -> Features:
        """Return the feature that stores a value.

        Args:
            name: The field's name, which is the key.
            value: As a source gives it.

        Raises:
            SourceError: It is not a value of this field; the message names the field and the value.
        """
        try:
            values = self._values(value)
        except _WrongError as error:
            raise _refused(name, value, str(error)) from None
        return {name: (self.spec.kind, values)}

    def decode(self, name: str, features: Features) -> Any:
        """Return the value that a record holds.

        Args:
            name: The field's name.
            features: Everything that the record holds.

        Raises:
            ExampleError: It holds none, or one that this field cannot have.
        """
        try:
            return self._value(_held(name, self.spec, features))
        except ValueError as error:
            raise ExampleError(f"feature {name}: {_cut(error)}") from error


@dataclass(frozen=True, slots=True)
class Text(ValueField):
    """Text of any length, stored in UTF-8. Batches have a list of ``str``."""

    kind: ClassVar[str] = "text"

    @property
    def spec(self) -> FeatureSpec:
        """One bytes value."""
        return FeatureSpec("bytes", 1)

    def _values(self, value: Any) -> list[bytes]:
        if not isinstance(value, str):
            raise _WrongError("must be text (str)")
        return [_utf8(value)]

    def _value(self, values: list[bytes]) -> str:
        return values[0].decode()


@dataclass(frozen=True, slots=True)
class Bytes(ValueField):
    """Bytes of any meaning. Batches have a list of ``bytes``."""

    kind: ClassVar[str] = "bytes"

    @property
    def spec(self) -> FeatureSpec:
        """One bytes value."""
        return FeatureSpec("bytes", 1)

    def _values(self, value: Any) -> list[bytes]:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise _WrongError("must be bytes")
        return [bytes(value)]

    def _value(self, values: list[bytes]) -> bytes:
        return values[0]


@dataclass(frozen=True, slots=True)
class Json(ValueField):
    """What JSON can say, but ``null``: stored in UTF-8, keys sorted, without blanks. Batches have a list of the values.

    That is up to 64 levels of lists and of dicts with text as keys, with text, finite numbers, ``bool`` and ``None``.

    Attributes:
        dtype: ``any``, or ``list[str]``: lists of texts and nulls, as which an export to Parquet writes them.

    Raises:
        ConfigError: The dtype is none of these.
    """

    kind: ClassVar[str] = "json"
    dtype: Literal["any", "list[str]"] = "any"

    def __post_init__(self) -> None:
        if self.dtype not in ("any", "list[str]"):
            raise ConfigError(f"dtype {_given(self.dtype)} of JSON is neither 'any' nor 'list[str]'")

    @property
    def spec(self) -> FeatureSpec:
        """One bytes value."""
        return FeatureSpec("bytes", 1)

    def to_json(self) -> dict[str, Any]:
        """Return the kind, and the dtype where it is not ``any``."""
        return {"kind": self.kind, **({} if self.dtype == "any" else {"dtype": self.dtype})}

    def _values(self, value: Any) -> list[bytes]:
        if value is None:
            raise _WrongError("must be what JSON can say, but not null")
        if not self._is_of_type(value):
            raise _WrongError("must be a list of texts")
        try:
            _check_keys(value)
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
            stored = _utf8(text)
            parse_json(stored)
        except (RecursionError, TypeError, ValueError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[: 4 * _SHOWN]
            raise _WrongError(f"must be what JSON can say: {why}") from None
        return [stored]

    def _value(self, values: list[bytes]) -> Any:
        value = parse_json(values[0])
        if not self._is_of_type(value):
            raise ValueError("it is not a list of texts")
        return value

    def _is_of_type(self, value: Any) -> bool:
        is_text = isinstance(value, list) and all(text is None or isinstance(text, str) for text in value)
        return is_text or self.dtype == "any"


@dataclass(frozen=True, slots=True)
class Int(ValueField):
    """A whole number, -2^63 to 2^63 - 1. Batches have int64 (B,).

    Attributes:
        dtype: ``bool``, ``int8`` to ``int64`` or ``uint8`` to ``uint64``: the range of the values, and the type of the
            column in an export to Parquet.

    Raises:
        ConfigError: The dtype is none of these.
    """

    kind: ClassVar[str] = "int"
    dtype: str = "int64"

    def __post_init__(self) -> None:
        if self.dtype not in _INT_RANGES:
            raise ConfigError(f"dtype {_given(self.dtype)} of a whole number is not one of {', '.join(_INT_RANGES)}")

    @property
    def spec(self) -> FeatureSpec:
        """One int64."""
        return FeatureSpec("int64", 1)

    def to_json(self) -> dict[str, Any]:
        """Return the kind, and the dtype where it is not int64."""
        return {"kind": self.kind, **({} if self.dtype == "int64" else {"dtype": self.dtype})}

    def _values(self, value: Any) -> list[int]:
        if not isinstance(value, (bool, int, np.integer, np.bool_)) or int(value) not in _INT_RANGES[self.dtype]:
            raise _WrongError(f"must be a whole number of type {self.dtype}")
        return [int(value)]

    def _value(self, values: list[int]) -> int:
        if values[0] not in _INT_RANGES[self.dtype]:
            raise ValueError(f"{values[0]} is no number of type {self.dtype}")
        return bool(values[0]) if self.dtype == "bool" else values[0]


@dataclass(frozen=True, slots=True)
class Float(ValueField):
    """A number, stored as float32: rounded to that, not a number and infinite included. Batches have float32 (B,)."""

    kind: ClassVar[str] = "float"

    @property
    def spec(self) -> FeatureSpec:
        """One float."""
        return FeatureSpec("float", 1)

    def _values(self, value: Any) -> list[float]:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise _WrongError("must be a number")
        try:
            (rounded,) = struct.unpack("<f", struct.pack("<f", value))
        except (OverflowError, struct.error):
            raise _WrongError("must be a number that float32 can hold") from None
        return [rounded]

    def _value(self, values: list[float]) -> float:
        return values[0]


@dataclass(frozen=True, slots=True)
class Label(ValueField):
    """The id of a class, from 0, or -1 for none. Batches have int64 (B,).

    Attributes:
        names: Of the classes; the position is the id. None allows every id below 2^31, and no names.

    Raises:
        ConfigError: A name is not text, is empty or stands there twice.
    """

    kind: ClassVar[str] = "label"
    names: Sequence[str] | None = None
    _ids: _Ids = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "_ids", _Ids(self.names))

    @property
    def spec(self) -> FeatureSpec:
        """One int64."""
        return FeatureSpec("int64", 1)

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the names."""
        return {"kind": self.kind, **_names_json(self.names)}

    def _values(self, value: Any) -> list[int]:
        return [-1 if _is_whole(value) and value == -1 else self._ids.of(value)]

    def _value(self, values: list[int]) -> int:
        (number,) = values
        if number != -1:
            self._ids.check(np.asarray(values, np.int64))
        return number


@dataclass(frozen=True, slots=True)
class Labels(ValueField):
    """Ids of any number of classes, in any order. Batches have `Ragged`, or with ``pad_to`` `Padded`.

    Attributes:
        names: As those of `Label`.
        pad_to: How many ids every sample of a batch has, 1 to 65,536; None for any number.

    Raises:
        ConfigError: As of `Label`, or ``pad_to`` is out of range.
    """

    kind: ClassVar[str] = "labels"
    names: Sequence[str] | None = None
    pad_to: int | None = None
    _ids: _Ids = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "_ids", _Ids(self.names))
        _check_padding(self.pad_to)

    @property
    def spec(self) -> FeatureSpec:
        """Any number of int64."""
        return FeatureSpec("int64", None)

    def to_json(self) -> dict[str, Any]:
        """Return the kind, the names and what batches are padded to."""
        return {"kind": self.kind, **_names_json(self.names), **_padding_json(self.pad_to)}

    def _values(self, value: Any) -> list[int]:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            raise _WrongError("must be a list of classes")
        found = []
        for one in value:
            try:
                found.append(self._ids.of(one))
            except _WrongError as error:
                raise _WrongError(f"each of its classes {error}; {_given(one)} is not") from None
        return found

    def _value(self, values: list[int]) -> NDArray[np.int64]:
        found = np.asarray(values, np.int64)
        self._ids.check(found)
        return found


@dataclass(frozen=True, slots=True)
class Array(ValueField):
    """An array of numbers. Batches have (B, ...), or where the first side differs `Ragged` or `Padded`.

    Values may be lists. Numbers must fit: whole ones into integers in their range, any into floats, to which they are
    rounded. float32 and int64 are stored as lists, other dtypes as bytes: little-endian, the last side running fastest.

    Attributes:
        dtype: ``bool``, ``int8`` to ``int64``, ``uint8`` to ``uint64``, ``float16``, ``float32`` or ``float64``; or a
            NumPy dtype.
        shape: Of every value; the first side may be None: it differs from record to record.
        pad_to: How long the first side of every sample of a batch is, where it differs, 1 to 65,536; None for any
            length.

    Raises:
        ConfigError: The dtype is none of these, a side is not positive, or ``pad_to`` does not apply.
    """

    kind: ClassVar[str] = "array"
    dtype: str
    shape: tuple[int | None, ...]
    pad_to: int | None = None

    def __post_init__(self) -> None:
        try:
            name = np.dtype(self.dtype).name
        except TypeError:
            name = ""
        if name not in _DTYPES or self.dtype is None:
            raise ConfigError(f"dtype {_given(self.dtype)} is not one of {', '.join(_DTYPES)}")
        object.__setattr__(self, "dtype", name)
        if not isinstance(self.shape, (list, tuple)):
            raise ConfigError(f"the shape of an array is {_given(self.shape)}; it must be a tuple, such as (768,)")
        object.__setattr__(self, "shape", tuple(self.shape))
        for place, side in enumerate(self.shape):
            if side is None and place:
                raise ConfigError(f"side {place} of the shape {self.shape} is None; only the first may differ")
            if side is not None:
                check_range(f"side {place} of the shape of an array", side, 1, _MAX_VALUES)
        check_range("the number of values of an array", self._size, 1, _MAX_VALUES)
        _check_padding(self.pad_to)
        if self.pad_to is not None and not self.is_ragged:
            raise ConfigError(f"pad_to is {self.pad_to}, but every array of the shape {self.shape} is as long")

    @property
    def is_ragged(self) -> bool:
        """Whether the first side differs from record to record."""
        return bool(self.shape) and self.shape[0] is None

    @property
    def spec(self) -> FeatureSpec:
        """All values as a list of float or int64, or one bytes value."""
        kind = _LISTS.get(self.dtype)
        if kind is None:
            return FeatureSpec("bytes", 1)
        return FeatureSpec(kind, None if self.is_ragged else self._size)

    def to_json(self) -> dict[str, Any]:
        """Return the kind, dtype, shape and what batches are padded to."""
        return {"kind": self.kind, "dtype": self.dtype, "shape": list(self.shape), **_padding_json(self.pad_to)}

    @property
    def _row(self) -> int:
        """Values in one step of the first side."""
        return math.prod(cast("int", side) for side in self.shape[1:])

    @property
    def _size(self) -> int:
        """Values in all, or where the first side differs in one step of it."""
        return math.prod(side or 1 for side in self.shape)

    @property
    def _stored(self) -> np.dtype[Any]:
        return np.dtype(self.dtype).newbyteorder("<")

    def _values(self, value: Any) -> Values:
        shape = "(" + ", ".join("any" if side is None else str(side) for side in self.shape) + ")"
        must = f"must be an array of {self.dtype} of shape {shape}"
        found = value
        if not isinstance(value, (np.ndarray, np.generic)):
            if not isinstance(value, (bool, int, float, list, tuple)):
                raise _WrongError(must)
            try:
                found = np.asarray(value)
            except (OverflowError, ValueError):
                raise _WrongError(f"{must}, and these are not as many numbers in each row") from None
            if found.size == 0:
                found = found.astype(self.dtype)
        if found.dtype.kind not in "biuf":
            raise _WrongError(must)
        fits = len(found.shape) == len(self.shape)
        if not fits or any(want not in (None, has) for want, has in zip(self.shape, found.shape, strict=True)):
            raise _WrongError(must if isinstance(value, np.ndarray) else f"{must}, not {found.shape}")
        made = _converted(found, np.dtype(self.dtype), must)
        if self.dtype in _LISTS:
            return cast("list[float] | list[int]", made.reshape(-1).tolist())
        return [np.ascontiguousarray(made).astype(self._stored).tobytes()]

    def _value(self, values: Any) -> NDArray[Any]:
        if self.dtype in _LISTS:
            return self._shaped(np.asarray(values, self.dtype))
        return self._shaped(self._from_bytes(values[0]))

    def _from_bytes(self, data: bytes) -> NDArray[Any]:
        if len(data) % self._stored.itemsize:
            raise ValueError(f"{len(data)} bytes are not a whole number of {self.dtype}")
        if self.dtype == "bool" and data.translate(None, b"\0\1"):
            raise ValueError("its bytes are not all 0 or 1, as those of bool are")
        return np.frombuffer(data, self._stored).astype(self.dtype)

    def _shaped(self, flat: NDArray[Any]) -> NDArray[Any]:
        rest = cast("tuple[int, ...]", self.shape[1:])
        if self.is_ragged and len(flat) % self._row == 0:
            return flat.reshape(len(flat) // self._row, *rest)
        shape = cast("tuple[int, ...]", self.shape)
        if self.is_ragged or len(flat) != math.prod(shape):
            raise ValueError(f"{len(flat)} values do not fill the shape {self.shape}")
        return flat.reshape(shape)


class ImageField(Field):
    """A field whose values have as many pixels as the image of their record; four features, below its name."""

    __slots__ = ()

    def features(self, name: str) -> dict[str, FeatureSpec]:
        """Return the features by their keys: ``NAME/encoded``, ``format``, ``height`` and ``width``."""
        kinds: dict[str, FeatureKind] = {"encoded": "bytes", "format": "bytes", "height": "int64", "width": "int64"}
        return {f"{name}/{key}": FeatureSpec(kind, 1) for key, kind in kinds.items()}

    def encode(self, name: str, image: EncodedImage) -> Features:
        """Return the features that store an image or a mask.

        Args:
            name: The field's name.
            image: What the recipe has made of the value of a source.
        """
        return {
            f"{name}/encoded": ("bytes", [image.encoded]),
            f"{name}/format": ("bytes", [image.format.upper().encode()]),
            f"{name}/height": ("int64", [image.height]),
            f"{name}/width": ("int64", [image.width]),
        }

    def decode(self, name: str, features: Features) -> EncodedImage:
        """Return the image or the mask that a record holds; its pixels are not looked at.

        Raises:
            ExampleError: The record lacks one of the features, or has another kind or number of values there.
        """
        found = {key: _held(key, spec, features)[0] for key, spec in self.features(name).items()}
        said = cast("bytes", found[f"{name}/format"])
        names = {known.upper().encode(): known for known in get_args(StoredFormat) if known != "raw"}
        if said not in names:
            raise ExampleError(f"feature {name}/format is {_given(said)}, not one of JPEG, PNG and WEBP")
        height, width = (cast("int", found[f"{name}/{side}"]) for side in ("height", "width"))
        return EncodedImage(cast("bytes", found[f"{name}/encoded"]), names[said], height, width)


@dataclass(frozen=True, slots=True)
class Image(ImageField):
    """An image. An extra one must be as large as the first; the recipe does the same to both."""

    kind: ClassVar[str] = "image"


@dataclass(frozen=True, slots=True)
class Mask(ImageField):
    """A class for each pixel of the image, stored as a grey PNG whose values are the ids.

    The values of a file or PIL image with a palette are its indices, of one with 1 bit 0 and 1.

    Attributes:
        bits: 8 for ids up to 255, 16 for ids up to 65,535.

    Raises:
        ConfigError: ``bits`` is neither.
    """

    kind: ClassVar[str] = "mask"
    bits: int = 8

    def __post_init__(self) -> None:
        if self.bits not in (8, 16) or isinstance(self.bits, bool):
            raise ConfigError(f"a mask has 8 or 16 bits, not {_given(self.bits)}")

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the bits."""
        return {"kind": self.kind, "bits": self.bits}

    def pixels(self, name: str, ids: NDArray[Any]) -> NDArray[Any]:
        """Return ids as they are stored: uint8 or uint16 (H, W).

        Args:
            name: The field's name, for messages.
            ids: Array of any integers or bool, (H, W) or (H, W, 1).

        Raises:
            SourceError: It is something else, or an id is out of range.
        """
        must = f"must be class ids, whole numbers of shape (height, width), 0 to {2**self.bits - 1}"
        flat = ids[:, :, 0] if ids.ndim == 3 and ids.shape[2] == 1 else ids
        if flat.ndim != 2 or flat.size == 0 or flat.dtype.kind not in "biu":
            raise _refused(name, ids, must)
        low, high = int(flat.min()), int(flat.max())
        if low < 0 or high >= 2**self.bits:
            wider = "; give fields.Mask(bits=16)" if low >= 0 and high < 2**16 else ""
            raise SourceError(f"field {name!r} has the class id {low if low < 0 else high}, but {must}{wider}")
        return np.ascontiguousarray(flat, np.uint8 if self.bits == 8 else np.uint16)


@dataclass(frozen=True, slots=True)
class Boxes(Field):
    """The boxes of the image: at most one field of a record. `stoker.Batch` has them as ``boxes``.

    A value is a list. Each box is four numbers ``xmin, ymin, xmax, ymax`` in fractions of the width and height, 0 to 1,
    or a dict of these names, which may have ``label``: an id or a name; or a `stoker.types.Box`.

    Attributes:
        names: Of the classes of boxes, as those of `Label`; the dataset that is built has them as
            ``dataset.schema.box_names``. Where they are those of the images, a box without a label has the class of its
            image, and ``box_names`` is empty; otherwise it has none.

    Raises:
        ConfigError: As of `Label`.
    """

    kind: ClassVar[str] = "boxes"
    names: Sequence[str] | None = None
    _ids: _Ids = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "_ids", _Ids(self.names))

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the names."""
        return {"kind": self.kind, **_names_json(self.names)}

    def features(self, name: str) -> dict[str, FeatureSpec]:  # noqa: ARG002 - boxes are no extra field
        """Return nothing: boxes have the keys of the layout."""
        return {}

    def boxes(self, name: str, value: object) -> list[Box]:
        """Return the boxes that a value says.

        Args:
            name: The field's name, for messages.
            value: As a source gives it.

        Raises:
            SourceError: It is not a list of boxes, or a box is not within the image.
        """
        if isinstance(value, np.ndarray) and value.ndim == 2:
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            raise _refused(name, value, "must be a list of boxes")
        try:
            return [self._box(one) for one in value]
        except _WrongError as error:
            raise SourceError(f"field {name!r}: {error}") from None

    def _box(self, value: Any) -> Box:
        label = None
        if isinstance(value, Box):
            label = value.label if value.label in (None, -1) else self._class(value.label)
            value = (value.xmin, value.ymin, value.xmax, value.ymax)
        if isinstance(value, dict) and value.keys() - {"label"} == set(_SIDES):
            label = None if value.get("label") is None else self._class(value["label"])
            value = [value[side] for side in _SIDES]
        if isinstance(value, np.ndarray):
            value = value.tolist()
        numbers = isinstance(value, (list, tuple)) and len(value) == len(_SIDES)
        if not numbers or not all(isinstance(one, (int, float, np.number)) for one in value):
            raise _WrongError(f"{_given(value)} is not a box: xmin, ymin, xmax, ymax, or a dict of these and label")
        left, top, right, bottom = (float(one) for one in value)
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            raise _WrongError(
                f"the box {left:g}, {top:g}, {right:g}, {bottom:g} is not xmin < xmax, ymin < ymax within 0 to 1"
            )
        return Box(left, top, right, bottom, label)

    def _class(self, value: object) -> int:
        try:
            return self._ids.of(value)
        except _WrongError as error:
            raise _WrongError(f"the label of a box is {_given(value)}, but {error}") from None


_KINDS: dict[str, type[Field]] = {
    one.kind: one for one in (Array, Boxes, Bytes, Float, Image, Int, Json, Label, Labels, Mask, Text)
}


def from_json(content: object) -> Field:
    """Return the field that `Field.to_json` has written.

    Args:
        content: Any value of JSON; it may come from a file of any origin.

    Raises:
        ConfigError: It is not that of a field.
    """
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(kind, str) or kind not in _KINDS:
        raise ConfigError(f"the field {_given(content)} is of no known kind; there are {', '.join(sorted(_KINDS))}")
    cls = _KINDS[kind]
    settings = {key: content[key] for key in ("names", "pad_to", "dtype", "shape", "bits") if key in content}
    known = {key: value for key, value in settings.items() if key in getattr(cls, "__dataclass_fields__", {})}
    for key, types in (("pad_to", (int, type(None))), ("bits", (int,)), ("dtype", (str,)), ("shape", (list,))):
        if key in known and (not isinstance(known[key], types) or isinstance(known[key], bool)):
            raise ConfigError(f"{key} of a field of kind {kind} is {_given(known[key])}")
    if any(isinstance(side, bool) for side in known.get("shape", ())):
        raise ConfigError(f"the shape of a field of kind {kind} is not one of whole numbers")
    if cls is Array and not {"dtype", "shape"} <= known.keys():
        raise ConfigError("a field of kind array lacks its dtype or its shape")
    return cls(**known)


@dataclass(frozen=True, slots=True)
class Roles:
    """Which fields are the image, the class and the boxes that every record has, and which are extra ones.

    Attributes:
        image: Name of the image.
        label: Name of the class; None without one.
        boxes: Name of the boxes; None without any.
        extra: All other fields.
    """

    image: str
    label: str | None
    boxes: str | None
    extra: dict[str, Field] = field(default_factory=dict)


def roles(fields: Mapping[str, Field]) -> Roles:
    """Tell the fields of records apart.

    The image is the field ``image``, else the first `Image`; the class ``label``, else the first `Label`; the boxes the
    one `Boxes`.

    Raises:
        ConfigError: There is no `Image` or more than one `Boxes`, something is not a field, or `check_extra` refuses
            the others.
    """
    for name, one in fields.items():
        if not isinstance(one, Field):
            what = (
                f"the class stoker.fields.{one.__name__}; write {one.__name__}()"
                if isinstance(one, type)
                else "not one"
            )
            raise ConfigError(f"field {name!r} must be a field, such as stoker.fields.Text(), and is {what}")
    image = _first_of(fields, "image", Image)
    if image is None:
        raise ConfigError(
            f"no field is an image: {', '.join(fields) or 'there are none'}; give one stoker.fields.Image()"
        )
    label = _first_of(fields, "label", Label)
    boxes = [name for name, one in fields.items() if isinstance(one, Boxes)]
    if len(boxes) > 1:
        raise ConfigError(f"the fields {' and '.join(boxes)} are boxes; a record can have one such field")
    own = {image, label, *boxes}
    extra = {name: one for name, one in fields.items() if name not in own}
    check_extra(extra)
    return Roles(image, label, boxes[0] if boxes else None, extra)


def _first_of(fields: Mapping[str, Field], name: str, cls: type[Field]) -> str | None:
    names = [name, *fields] if name in fields else list(fields)
    return next((name for name in names if isinstance(fields[name], cls)), None)


def check_extra(fields: Mapping[str, Field]) -> None:
    """Refuse extra fields that cannot stand beside each other and the image in a record.

    Raises:
        ConfigError: A name is empty, too long, or holds what is not printable, or a key of one is that of another, or
            of the image.
    """
    keys: dict[str, str] = {}
    for name, one in fields.items():
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
            raise ConfigError(
                f"the name of a field is {_given(name)}; it must be 1 to {_MAX_NAME} printable characters"
            )
        if isinstance(one, Boxes):
            raise ConfigError(f"field {name!r} is boxes, which are stored beside the image and are no extra field")
        for key in one.features(name):
            if key.startswith(_OWN_PREFIX):
                raise ConfigError(
                    f"field {name!r} would be stored under {key!r}, among the keys of the image; rename it"
                )
            if key in keys:
                raise ConfigError(
                    f"the fields {keys[key]!r} and {name!r} would both be stored under {key!r}; rename one"
                )
            keys[key] = name


def given_value(name: str, values: Mapping[str, Any]) -> Any:
    """Return the value of a field among those that a source gives for one record.

    Raises:
        SourceError: It is missing, or None.
    """
    value = values.get(name)
    if value is None:
        raise SourceError(f"field {name!r} {'is None' if name in values else 'is missing'}; every record needs it")
    return value


def is_pil_image(value: object) -> bool:
    """Return whether a value is an image of Pillow, which is imported where there is one."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def stored_values(features: Features, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return what a record holds in some fields, to build another record from; of images and masks the files.

    Raises:
        ExampleError: The record lacks a field, or holds something that it cannot have.
    """
    found = {}
    for name, one in fields.items():
        if isinstance(one, ValueField):
            found[name] = one.decode(name, features)
        elif isinstance(one, ImageField):
            found[name] = one.decode(name, features).encoded
    return found


def infer(record: Mapping[str, Any]) -> dict[str, Field]:
    """Return what the fields of records like one are, by the names and types of its values.

    ``image`` and ``NAME_image`` that are a path, bytes, an array or a PIL image, and any PIL image: `Image`. ``mask``
    and ``NAME_mask`` that are such: `Mask`. ``label`` that is a number or text: `Label`. ``boxes``: boxes. Then
    text: `Text`; bytes: `Bytes`; ``bool`` and ``int``: `Int`; ``float``: `Float`; an array: `Array` of its dtype and
    shape; a list of ``int`` or of ``float``: `Array` of int64 or float32 of any length; other dicts and lists: `Json`.

    Args:
        record: The first one.

    Raises:
        ConfigError: A value tells nothing.
    """
    return {name: _inferred(name, value) for name, value in record.items()}


def _inferred(name: str, value: Any) -> Field:
    found = _by_name(name, value) or _by_type(value)
    if found is not None:
        return found
    if isinstance(value, np.ndarray):
        try:
            return Array(value.dtype.name, value.shape)
        except ConfigError as error:
            raise ConfigError(f"field {name!r} of the first record is {_given(value)}: {error}") from None
    message = f"field {name!r} of the first record is {_given(value)}, which does not tell what it is"
    if value is not None:
        raise ConfigError(
            f"{message}; give text, a number, an array or another value of stoker.fields, or leave it out"
        )
    fitting = {"label": "Label", "image": "Image", "mask": "Mask", "boxes": "Boxes"}.get(name, "Text")
    raise ConfigError(f"{message}; give fields={{{name!r}: stoker.fields.{fitting}(), ...}}")


def _by_name(name: str, value: Any) -> Field | None:
    is_array, is_pil = isinstance(value, np.ndarray), is_pil_image(value)
    if is_array or is_pil or isinstance(value, (str, bytes, bytearray, memoryview, os.PathLike)):
        if name == "mask" or name.endswith("_mask"):
            return Mask(16 if is_array and value.dtype == np.uint16 else 8)
        if is_pil or name == "image" or name.endswith("_image"):
            return Image()
    if name == "boxes" and isinstance(value, (list, tuple, np.ndarray)):
        return Boxes()
    return Label() if name == "label" and (_is_whole(value) or isinstance(value, str)) else None


def _by_type(value: Any) -> Field | None:
    if isinstance(value, (list, tuple)) and value and all(_is_whole(one) for one in value):
        return Array("int64", (None,))
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, (float, np.floating)) for one in value):
        return Array("float32", (None,))
    return next((found for types, found in _TYPES if isinstance(value, types)), None)


_TYPES: tuple[tuple[tuple[type, ...], Field], ...] = (
    ((str,), Text()),
    ((bytes, bytearray, memoryview), Bytes()),
    ((bool, int, np.integer, np.bool_), Int()),
    ((float, np.floating), Float()),
    ((dict, list, tuple), Json()),
)


def _refused(name: str, value: object, must: str) -> SourceError:
    return SourceError(f"field {name!r} is {_given(value)}, but {must}")


def _cut(error: ValueError) -> str:
    """Return what an error says of a value of a record, which may be of any length."""
    return str(error)[: 4 * _SHOWN]


def _given(value: object) -> str:
    """Return a value for a message: short, and without the address of an object."""
    if isinstance(value, int) and value.bit_length() > _BITS_SHOWN:
        return f"a number of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float, np.number, np.bool_)):
        return f"{value!s}" if value is None else f"{value!s} ({type(value).__name__})"
    if isinstance(value, (str, bytes)):
        return repr(value[:_SHOWN]) + ("..." if len(value) > _SHOWN else "")
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)}"
    kind = type(value)
    own = kind.__module__ == "builtins"
    return f"a value of type {kind.__qualname__ if own else f'{kind.__module__}.{kind.__qualname__}'}"


def _held(key: str, spec: FeatureSpec, features: Features) -> Values:
    kind, values = features.get(key, ("none", []))
    if kind != spec.kind:
        raise ExampleError(f"feature {key} is of kind {kind}, not {spec.kind}")
    if spec.length is not None and len(values) != spec.length:
        raise ExampleError(f"feature {key} has {len(values)} values, not {spec.length}")
    return values


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _WrongError(f"must be text that UTF-8 can hold; character {error.start} is half a character") from None


def _check_keys(value: object) -> None:
    """Refuse a dict with other keys than text: JSON has no others, and ``json`` turns some into text unasked."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {_given(key)} of a dict is not text")
            _check_keys(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check_keys(inner)


def _converted(found: NDArray[Any], dtype: np.dtype[Any], must: str) -> NDArray[Any]:
    """Return numbers in a dtype that holds them; `_WrongError` where it does not."""
    if found.dtype == dtype:
        return found
    kinds = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}[dtype.kind]
    if found.dtype.kind not in kinds:
        raise _WrongError(f"{must}, not of {found.dtype}")
    if dtype.kind in "iu" and found.size:
        limits = np.iinfo(dtype)
        if int(found.min()) < limits.min or int(found.max()) > limits.max:
            raise _WrongError(f"{must}; its numbers run from {found.min()} to {found.max()}")
    with np.errstate(over="ignore"):
        made = found.astype(dtype)
    if dtype.kind == "f" and bool(np.any(np.isinf(made) & np.isfinite(found))):
        raise _WrongError(f"{must}; a number is too large for that")
    return made


def _checked_names(names: object) -> tuple[str, ...] | None:
    if names is None:
        return None
    if not isinstance(names, (list, tuple)) or not names:
        raise ConfigError(f"names are {_given(names)}; give a list of the names of classes")
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ConfigError(f"the name of a class is {_given(name)}; it must be printable text")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ConfigError(f"the class {twice!r} is given twice among the names")
    return tuple(names)


def _names_json(names: Sequence[str] | None) -> dict[str, Any]:
    return {} if names is None else {"names": list(names)}


def _check_padding(pad_to: int | None) -> None:
    if pad_to is not None:
        check_range("pad_to", pad_to, 1, _MAX_PADDING)


def _padding_json(pad_to: int | None) -> dict[str, Any]:
    return {} if pad_to is None else {"pad_to": pad_to}


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
