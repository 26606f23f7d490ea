"""Classes: one id, or any number of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stoker.errors import ConfigError
from stoker.fields.base import ValueField, WrongError, describe, is_whole
from stoker.fields.padding import check_padding, padding_json, varying
from stoker.types import BatchForm, FeatureSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


class ClassIds:
    """The ids of classes, by names if there are some."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self._named = None if names is None else {name: number for number, name in enumerate(names)}
        self._count = 2**31 if names is None else len(names)

    def of(self, value: Any) -> int:
        """Return the id of a class that is given by id or by name; `WrongError` if there is none."""
        if isinstance(value, str) and self._named is None:
            raise WrongError("must be the id of a class, as the field has no names")
        if isinstance(value, str) and value in (named := self._named or {}):
            return named[value]
        if isinstance(value, str) or not is_whole(value) or not 0 <= value < self._count:
            name = "" if self._named is None else ", or the name of one"
            raise WrongError(f"must be the id of a class, 0 to {self._count - 1}{name}")
        return int(value)

    def check(self, ids: NDArray[np.int64]) -> None:
        """Refuse stored numbers that are not ids, with a ``ValueError``."""
        wrong = ids[(ids < 0) | (ids >= self._count)]
        if wrong.size:
            raise ValueError(f"{wrong[0]} is not the id of a class, 0 to {self._count - 1}")


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
    _ids: ClassIds = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", checked_names(self.names))
        object.__setattr__(self, "_ids", ClassIds(self.names))

    @property
    def spec(self) -> FeatureSpec:
        """One int64."""
        return FeatureSpec("int64", 1)

    def to_json(self) -> dict[str, Any]:
        """Return the kind and the names."""
        return {"kind": self.kind, **names_json(self.names)}

    @property
    def class_names(self) -> Sequence[str] | None:
        """The names."""
        return self.names

    def form(self) -> BatchForm:
        """Return int64 (B,)."""
        return BatchForm("dense", "int64", stored="int64")

    def _values(self, value: Any) -> list[int]:
        return [-1 if is_whole(value) and value == -1 else self._ids.of(value)]

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
    _ids: ClassIds = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", checked_names(self.names))
        object.__setattr__(self, "_ids", ClassIds(self.names))
        check_padding(self.pad_to)

    @property
    def spec(self) -> FeatureSpec:
        """Any number of int64."""
        return FeatureSpec("int64", None)

    def to_json(self) -> dict[str, Any]:
        """Return the kind, the names and what batches are padded to."""
        return {"kind": self.kind, **names_json(self.names), **padding_json(self.pad_to)}

    @property
    def class_names(self) -> Sequence[str] | None:
        """The names."""
        return self.names

    def form(self) -> BatchForm:
        """Return ids of any number, or padded ones."""
        return varying(BatchForm("dense", "int64", fill=-1, stored="int64"), self.pad_to)

    def _values(self, value: Any) -> list[int]:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            raise WrongError("must be a list of classes")
        found = []
        for one in value:
            try:
                found.append(self._ids.of(one))
            except WrongError as error:
                raise WrongError(f"each of its classes {error}; {describe(one)} is not") from None
        return found

    def _value(self, values: list[int]) -> NDArray[np.int64]:
        found = np.asarray(values, np.int64)
        self._ids.check(found)
        return found


def checked_names(names: object) -> tuple[str, ...] | None:
    """Return the names of classes as a tuple; `ConfigError` if they are not names."""
    if names is None:
        return None
    if not isinstance(names, (list, tuple)) or not names:
        raise ConfigError(f"names are {describe(names)}; give a list of the names of classes")
    for name in names:
        if not isinstance(name, str) or not name or not name.isprintable():
            raise ConfigError(f"the name of a class is {describe(name)}; it must be printable text")
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ConfigError(f"the class {twice!r} is given twice among the names")
    return tuple(names)


def names_json(names: Sequence[str] | None) -> dict[str, Any]:
    """Return the names of classes as JSON of a field has them."""
    return {} if names is None else {"names": list(names)}
