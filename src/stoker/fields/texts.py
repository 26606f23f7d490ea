"""Text, bytes and JSON: one bytes value each."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from stoker.config import format_size
from stoker.errors import ConfigError
from stoker.fields.base import MAX_SHOWN, ValueField, WrongError, describe, list_column, value_column
from stoker.strict_json import parse_json
from stoker.types import FeatureSpec

if TYPE_CHECKING:
    from types import ModuleType

    from stoker.types import ArrowColumn


@dataclass(frozen=True, slots=True)
class Text(ValueField):
    """Text of any length, stored in UTF-8. Batches have a list of ``str``."""

    kind: ClassVar[str] = "text"
    missing: ClassVar[str] = ""
    spec: ClassVar[FeatureSpec] = FeatureSpec("bytes", 1)

    def _values(self, value: Any) -> list[bytes]:
        if not isinstance(value, str):
            raise WrongError("must be text (str)")
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
        """Return how many there are."""
        return format_size(len(value))

    def to_arrow(self, value: bytes) -> bytes:
        """Return the bytes as they are."""
        return value

    def to_plain(self, value: bytes) -> str:
        """Return the bytes in Base64."""
        return base64.b64encode(value).decode()

    def _values(self, value: Any) -> list[bytes]:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise WrongError("must be bytes")
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
    spec: ClassVar[FeatureSpec] = FeatureSpec("bytes", 1)
    dtype: Literal["any", "list[str]"] = "any"

    def __post_init__(self) -> None:
        if self.dtype not in ("any", "list[str]"):
            raise ConfigError(f"dtype {describe(self.dtype)} of JSON is neither 'any' nor 'list[str]'")

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        """Return a column of JSON as text, or of lists of texts."""
        texts = value_column(pa, self.column)
        return texts if self.dtype == "any" else list_column(pa, texts)

    def to_arrow(self, value: Any) -> Any:
        """Return the text, or the list of texts."""
        return json.dumps(value, ensure_ascii=False, sort_keys=True) if self.dtype == "any" else value

    def _values(self, value: Any) -> list[bytes]:
        if value is None:
            raise WrongError("must be what JSON can say, but not null")
        if not self._is_of_type(value):
            raise WrongError("must be a list of texts")
        try:
            _check_keys(value)
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
            stored = _utf8(text)
            parse_json(stored)
        except (RecursionError, TypeError, ValueError) as error:
            why = "it is nested too deep" if isinstance(error, RecursionError) else str(error)[: 4 * MAX_SHOWN]
            raise WrongError(f"must be what JSON can say: {why}") from None
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
        raise WrongError(f"must be text that UTF-8 can hold; character {error.start} is half a character") from None


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
