"""Fields of text, bytes, JSON, numbers and arrays, each one feature; and of images and masks, as large as the image."""

from __future__ import annotations

import base64
import json
import math
import struct
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

import numpy as np

from stoker.config import check_range, format_size
from stoker.errors import ConfigError, ExampleError, SourceError
from stoker.fields.base import (
    MAX_SHOWN,
    BadValueError,
    ValueField,
    check_padding,
    describe,
    list_column,
    read_feature,
    refusal,
    value_column,
    varying,
)
from stoker.strict_json import parse_json
from stoker.types import BatchForm, EncodedImage, FeatureSpec, Field, StoredFormat

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

    from numpy.typing import NDArray

    from stoker.fields.base import Values
    from stoker.types import ArrowColumn, FeatureKind, Features, Pixels


@dataclass(frozen=True, slots=True)
class Text(ValueField):
    """Text of any length, stored in UTF-8. Batches have a list of ``str``."""

    kind: ClassVar[str] = "text"
    missing: ClassVar[str] = ""
    missing_shown: ClassVar[str] = "empty"
    spec: ClassVar[FeatureSpec] = FeatureSpec("bytes", 1)

    def _values(self, value: Any) -> list[bytes]:
        if not isinstance(value, str):
            raise BadValueError("must be text (str)")
        return [_utf8(value)]

    def _value(self, values: list[bytes]) -> str:
        return values[0].decode()


@dataclass(frozen=True, slots=True)
class Bytes(ValueField):
    """Bytes of any meaning. Batches have a list of ``bytes``."""

    kind: ClassVar[str] = "bytes"
    column: ClassVar[str] = "binary"
    spec: ClassVar[FeatureSpec] = FeatureSpec("bytes", 1)

    def show(self, value: bytes) -> str:
        return format_size(len(value))

    def to_arrow(self, value: bytes) -> bytes:
        return value

    def to_plain(self, value: bytes) -> str:
        return base64.b64encode(value).decode()

    def _values(self, value: Any) -> list[bytes]:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise BadValueError("must be bytes")
        return [bytes(value)]

    def _value(self, values: list[bytes]) -> bytes:
        return values[0]


@dataclass(frozen=True, slots=True)
class Json(ValueField):
    """Any JSON value but ``null``, stored in UTF-8 with sorted keys, without blanks. Batches have a list of the values.

    It may have up to 64 levels of lists and of dicts with text as keys, with text, finite numbers, ``bool``, ``None``.

    Attributes:
        dtype: ``any``; or ``list[str]`` for lists of texts and nulls, which an export to Parquet writes as such lists.

    Raises:
        ConfigError: The dtype is none of these.
    """

    kind: ClassVar[str] = "json"
    spec: ClassVar[FeatureSpec] = FeatureSpec("bytes", 1)
    dtype: Literal["any", "list[str]"] = "any"

    def __post_init__(self) -> None:
        if self.dtype not in ("any", "list[str]"):
            raise ConfigError(f"dtype {describe(self.dtype)} of JSON is neither 'any' nor 'list[str]'")

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        texts = value_column(pa, self.column)
        return texts if self.dtype == "any" else list_column(pa, texts)

    def to_arrow(self, value: Any) -> Any:
        return json.dumps(value, ensure_ascii=False, sort_keys=True) if self.dtype == "any" else value

    def _values(self, value: Any) -> list[bytes]:
        if value is None:
            raise BadValueError("must be what JSON can say, but not null")
        if not self._is_of_type(value):
            raise BadValueError("must be a list of texts")
        try:
            _check_keys(value)
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
            stored = _utf8(text)
            parse_json(stored)
        except (RecursionError, TypeError, ValueError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[: 4 * MAX_SHOWN]
            raise BadValueError(f"must be what JSON can say: {why}") from None
        return [stored]

    def _value(self, values: list[bytes]) -> Any:
        value = parse_json(values[0])
        if not self._is_of_type(value):
            raise ValueError("it is not a list of texts")
        return value

    def _is_of_type(self, value: Any) -> bool:
        is_text = isinstance(value, list) and all(text is None or isinstance(text, str) for text in value)
        return is_text or self.dtype == "any"


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadValueError(f"must be text that UTF-8 can hold; character {error.start} is half a character") from None


def _check_keys(value: object) -> None:
    """Refuse a dict with other keys than text: JSON has no others, and ``json`` turns some into text unasked."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"the key {describe(key)} of a dict is not text")
            _check_keys(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check_keys(inner)


_MAX_VALUES = 2**31 - 1  # of an array: a tf.train.Example holds less than 2 GiB
_NUMBERS_SHOWN = 4
_INT64 = range(-(2**63), 2**63)
_DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
_INT_RANGES = {"bool": range(2)} | {
    name: range(max(np.iinfo(name).min, _INT64.start), min(int(np.iinfo(name).max) + 1, _INT64.stop))
    for name in _DTYPES[1:9]
}
TRUTH_VALUES = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
"""Texts of cells that the libraries ``pandas`` and ``datasets`` read as truth values."""

_LISTS: Mapping[str, FeatureKind] = {"float32": "float", "int64": "int64"}


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
    spec: ClassVar[FeatureSpec] = FeatureSpec("int64", 1)
    dtype: str = "int64"

    def __post_init__(self) -> None:
        if self.dtype not in _INT_RANGES:
            raise ConfigError(f"dtype {describe(self.dtype)} of a whole number is not one of {', '.join(_INT_RANGES)}")

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        return value_column(pa, self.dtype)

    def from_cell(self, text: str) -> int | None:
        return int(TRUTH_VALUES.get(text, text)) if text else None

    def _values(self, value: Any) -> list[int]:
        if not isinstance(value, (bool, int, np.integer, np.bool_)) or int(value) not in _INT_RANGES[self.dtype]:
            raise BadValueError(f"must be a whole number of type {self.dtype}")
        return [int(value)]

    def _value(self, values: list[int]) -> int:
        if values[0] not in _INT_RANGES[self.dtype]:
            raise ValueError(f"{values[0]} is no number of type {self.dtype}")
        return bool(values[0]) if self.dtype == "bool" else values[0]


@dataclass(frozen=True, slots=True)
class Float(ValueField):
    """A number, rounded to float32; it may be infinite or not a number. Batches have float32 (B,)."""

    kind: ClassVar[str] = "float"
    missing: ClassVar[float] = math.nan
    missing_shown: ClassVar[str] = "nan"
    column: ClassVar[str] = "float32"
    spec: ClassVar[FeatureSpec] = FeatureSpec("float", 1)

    def from_cell(self, text: str) -> float | None:
        return float(TRUTH_VALUES.get(text, text)) if text else None

    def _values(self, value: Any) -> list[float]:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise BadValueError("must be a number")
        try:
            (rounded,) = struct.unpack("<f", struct.pack("<f", value))
        except (OverflowError, struct.error):
            raise BadValueError("must be a number that float32 can hold") from None
        return [rounded]

    def _value(self, values: list[float]) -> float:
        return values[0]


@dataclass(frozen=True, slots=True)
class Array(ValueField):
    """An array of numbers. Batches have (B, ...), or `Ragged` or `Padded` if the first side differs between records.

    Values may be lists. Integer dtypes take whole numbers in their range; floats take any number, and round it. float32
    and int64 are stored as lists, other dtypes as bytes: little-endian, the last side running fastest.

    Attributes:
        dtype: ``bool``, ``int8`` to ``int64``, ``uint8`` to ``uint64``, ``float16``, ``float32`` or ``float64``; or a
            NumPy dtype.
        shape: Shape of every value. If the first side is None, it differs between records.
        pad_to: Length of the first side in batches if it differs, 1 to 65,536; None for any length.

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
            raise ConfigError(f"dtype {describe(self.dtype)} is not one of {', '.join(_DTYPES)}")
        object.__setattr__(self, "dtype", name)
        if not isinstance(self.shape, (list, tuple)):
            raise ConfigError(f"the shape of an array is {describe(self.shape)}; it must be a tuple, such as (768,)")
        object.__setattr__(self, "shape", tuple(self.shape))
        for axis, side in enumerate(self.shape):
            if side is None and axis:
                raise ConfigError(f"side {axis} of the shape {self.shape} is None; only the first may differ")
            if side is not None:
                check_range(f"side {axis} of the shape of an array", side, 1, _MAX_VALUES)
        check_range("the number of values of an array", self._size, 1, _MAX_VALUES)
        check_padding(self.pad_to)
        if self.pad_to is not None and not self.is_ragged:
            raise ConfigError(f"pad_to is {self.pad_to}, but every array of the shape {self.shape} is as long")

    @property
    def is_ragged(self) -> bool:
        """Whether the first side differs from record to record."""
        return bool(self.shape) and self.shape[0] is None

    @property
    def spec(self) -> FeatureSpec:
        kind = _LISTS.get(self.dtype)
        if kind is None:
            return FeatureSpec("bytes", 1)
        return FeatureSpec(kind, None if self.is_ragged else self._size)

    @property
    def summary(self) -> str:
        return f"array of {self.dtype} ({', '.join('any' if side is None else str(side) for side in self.shape)})"

    def show(self, value: NDArray[Any]) -> str:
        shown = ", ".join(f"{number:g}" for number in value.reshape(-1)[:_NUMBERS_SHOWN].tolist())
        return f"{value.shape}: {shown}" + (", ..." if value.size > _NUMBERS_SHOWN else "")

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        """Return a column of lists, as deep as there are sides; float16 becomes float32."""
        dtype = "float32" if self.dtype == "float16" else self.dtype  # exact, and readers know it
        column = value_column(pa, dtype)
        for side in reversed(self.shape):
            column = list_column(pa, column, -1 if side is None else side)
        return column

    def form(self) -> BatchForm:
        stored, sides = self.spec.kind, self.shape[1:] if self.is_ragged else self.shape
        group = self._size * (self._stored.itemsize if stored == "bytes" else 1)
        form = BatchForm("dense", self.dtype, cast("tuple[int, ...]", sides), stored=stored, group=group)
        return varying(form, self.pad_to) if self.is_ragged else form

    @property
    def _size(self) -> int:
        """Number of values; if the first side differs, number of values of one step along it."""
        return math.prod(side or 1 for side in self.shape)

    @property
    def _stored(self) -> np.dtype[Any]:
        return np.dtype(self.dtype).newbyteorder("<")

    def _values(self, value: Any) -> Values:
        shape = "(" + ", ".join("any" if side is None else str(side) for side in self.shape) + ")"
        must = f"must be an array of {self.dtype} of shape {shape}"
        array = value
        if not isinstance(value, (np.ndarray, np.generic)):
            if not isinstance(value, (bool, int, float, list, tuple)):
                raise BadValueError(must)
            try:
                array = np.asarray(value)
            except (OverflowError, ValueError):
                raise BadValueError(f"{must}, and these are not as many numbers in each row") from None
            if array.size == 0:
                array = array.astype(self.dtype)
        if array.dtype.kind not in "biuf":
            raise BadValueError(must)
        fits = len(array.shape) == len(self.shape)
        if not fits or any(want not in (None, has) for want, has in zip(self.shape, array.shape, strict=True)):
            raise BadValueError(must if isinstance(value, np.ndarray) else f"{must}, not {array.shape}")
        converted = _converted(array, np.dtype(self.dtype), must)
        if self.dtype in _LISTS:
            return cast("list[float] | list[int]", converted.reshape(-1).tolist())
        return [np.ascontiguousarray(converted).astype(self._stored).tobytes()]

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
        steps, rest = divmod(len(flat), self._size)
        if rest or (steps != 1 and not self.is_ragged):
            raise ValueError(f"{len(flat)} values do not fill the shape {self.shape}")
        return flat.reshape([steps if side is None else side for side in self.shape])


def _converted(array: NDArray[Any], dtype: np.dtype[Any], must: str) -> NDArray[Any]:
    if array.dtype == dtype:
        return array
    kinds = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}[dtype.kind]
    if array.dtype.kind not in kinds:
        raise BadValueError(f"{must}, not of {array.dtype}")
    if dtype.kind in "iu" and array.size:
        limits = np.iinfo(dtype)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise BadValueError(f"{must}; its numbers run from {array.min()} to {array.max()}")
    with np.errstate(over="ignore"):
        converted = array.astype(dtype)
    if dtype.kind == "f" and bool(np.any(np.isinf(converted) & np.isfinite(array))):
        raise BadValueError(f"{must}; a number is too large for that")
    return converted


class ImageField(Field):
    """A field whose values are as large as the image of their record, stored as four features below its name."""

    __slots__ = ()

    is_image: ClassVar[bool] = True

    def features(self, name: str) -> dict[str, FeatureSpec]:
        kinds: dict[str, FeatureKind] = {"encoded": "bytes", "format": "bytes", "height": "int64", "width": "int64"}
        return {f"{name}/{key}": FeatureSpec(kind, 1) for key, kind in kinds.items()}

    @abstractmethod
    def _stored(self, name: str, value: Any, image: Pixels) -> EncodedImage:
        """Return a value as it is stored beside the image of its record."""

    def encode(self, name: str, value: Any, image: Pixels | None = None) -> Features:
        assert image is not None, "an image or a mask stands beside one"
        stored = self._stored(name, value, image)
        return {
            f"{name}/encoded": ("bytes", [stored.encoded]),
            f"{name}/format": ("bytes", [stored.format.upper().encode()]),
            f"{name}/height": ("int64", [stored.height]),
            f"{name}/width": ("int64", [stored.width]),
        }

    def decode(self, name: str, features: Features) -> EncodedImage:
        """Return the file that the features hold; it is not decoded. See `Field.decode`."""
        values = {key: read_feature(key, spec, features)[0] for key, spec in self.features(name).items()}
        stored_format = cast("bytes", values[f"{name}/format"])
        names = {known.upper().encode(): known for known in get_args(StoredFormat) if known != "raw"}
        if stored_format not in names:
            raise ExampleError(f"feature {name}/format is {describe(stored_format)}, not one of JPEG, PNG and WEBP")
        height, width = (cast("int", values[f"{name}/{side}"]) for side in ("height", "width"))
        return EncodedImage(cast("bytes", values[f"{name}/encoded"]), names[stored_format], height, width)

    def show(self, value: EncodedImage) -> str:
        return f"{value.format}, {value.width} x {value.height}, {format_size(len(value.encoded))}"

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        return pa.struct([("bytes", pa.binary()), ("path", pa.string())]), {"_type": "Image"}

    def to_arrow(self, value: bytes) -> dict[str, bytes | None]:
        return {"bytes": value, "path": None}


@dataclass(frozen=True, slots=True)
class Image(ImageField):
    """An image. An extra image must be as large as the first; the recipe does the same to both."""

    kind: ClassVar[str] = "image"

    def _stored(self, name: str, value: Any, image: Pixels) -> EncodedImage:
        return image.image(name, value)

    def form(self) -> BatchForm:
        return BatchForm("image")


@dataclass(frozen=True, slots=True)
class Mask(ImageField):
    """A class for each pixel of the image, stored as a grey PNG whose values are the ids.

    The values of a file or PIL image are the indices of its palette if it has one; with 1 bit, they are 0 and 1.

    Attributes:
        bits: 8 for ids up to 255, 16 for ids up to 65,535.

    Raises:
        ConfigError: ``bits`` is neither 8 nor 16.
    """

    kind: ClassVar[str] = "mask"
    bits: int = 8

    def __post_init__(self) -> None:
        if self.bits not in (8, 16) or isinstance(self.bits, bool):
            raise ConfigError(f"a mask has 8 or 16 bits, not {describe(self.bits)}")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "bits": self.bits}

    @property
    def summary(self) -> str:
        return f"mask of {self.bits} bits"

    def form(self) -> BatchForm:
        return BatchForm("mask", f"uint{self.bits}")

    def _stored(self, name: str, value: Any, image: Pixels) -> EncodedImage:
        return image.mask(name, value, self.bits)


def mask_pixels(name: str, ids: NDArray[Any], bits: int) -> NDArray[Any]:
    """Return ids, integers or bool (H, W) or (H, W, 1), as stored masks have them: uint8 or uint16 (H, W).

    Raises:
        SourceError: They are something else, or one is out of range.
    """
    must = f"must be class ids, whole numbers of shape (height, width), 0 to {2**bits - 1}"
    flat = ids[:, :, 0] if ids.ndim == 3 and ids.shape[2] == 1 else ids
    if flat.ndim != 2 or flat.size == 0 or flat.dtype.kind not in "biu":
        raise refusal(name, ids, must)
    low, high = int(flat.min()), int(flat.max())
    if low < 0 or high >= 2**bits:
        wider = "; records with fields.Mask(bits=16) and images/ beside masks/ may have it" if high < 2**16 else ""
        raise SourceError(f"field {name!r} has the class id {low if low < 0 else high}, but {must}{wider * (low >= 0)}")
    return np.ascontiguousarray(flat, np.uint8 if bits == 8 else np.uint16)
