"""Fields of classes: one id, any number of ids, or the boxes of an image with their classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stoker.config import format_count
from stoker.errors import ConfigError, SourceError
from stoker.fields.base import (
    MAX_SHOWN,
    BadValueError,
    ValueField,
    box_column,
    check_padding,
    class_column,
    describe,
    is_whole,
    list_column,
    refusal,
    shortened,
    varying,
)
from stoker.types import BOX_SIDES, BatchForm, Box, FeatureSpec, Field

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from numpy.typing import NDArray

    from stoker.types import ArrowColumn, Features, Pixels


class ClassField(Field):
    """A field with ids of classes, which may have names."""

    __slots__ = ()

    names: Sequence[str] | None
    _ids: dict[str, int]  # by name

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", _checked_names(self.names))
        object.__setattr__(self, "_ids", {name: number for number, name in enumerate(self.names or ())})

    @property
    def _count(self) -> int:
        return 2**31 if self.names is None else len(self.names)

    def _id_of(self, value: Any) -> int:
        """Return the id of a class that is given by id or by name; `BadValueError` if there is none."""
        if isinstance(value, str) and self.names is None:
            problem = "must be the id of a class, as the field has no names"
            raise BadValueError(f"{problem}; to name the classes give stoker.fields.{type(self).__name__}([...])")
        if isinstance(value, (float, np.floating)) and float(value).is_integer():  # as from pandas
            value = int(value)
        if isinstance(value, str) and value in self._ids:
            return self._ids[value]
        if isinstance(value, str) or not is_whole(value) or not 0 <= value < self._count:
            name = "" if self.names is None else ", or the name of one"
            raise BadValueError(f"must be the id of a class, 0 to {self._count - 1}{name}")
        return int(value)

    def _check_ids(self, ids: NDArray[np.int64]) -> None:
        wrong = ids[(ids < 0) | (ids >= self._count)]
        if wrong.size:
            raise ValueError(f"{wrong[0]} is not the id of a class, 0 to {self._count - 1}")

    @property
    def class_names(self) -> Sequence[str] | None:
        return self.names

    @property
    def summary(self) -> str:
        return self.kind if self.names is None else f"{self.kind} of {format_count(len(self.names), 'class')}"


@dataclass(frozen=True, slots=True)
class Label(ClassField, ValueField):
    """The id of a class, from 0, or -1 or NaN for none. Batches have int64 (B,).

    Attributes:
        names: Names of the classes; the position is the id. None allows every id below 2^31, and no names.

    Raises:
        ConfigError: A name is not text, is empty or is given twice.
    """

    kind: ClassVar[str] = "label"
    missing: ClassVar[int] = -1
    missing_shown: ClassVar[str] = "no class"
    spec: ClassVar[FeatureSpec] = FeatureSpec("int64", 1)
    names: Sequence[str] | None = None
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def show(self, value: int) -> str:
        return _shown([value], self.names)

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        return class_column(pa, self.names)

    def _values(self, value: Any) -> list[int]:
        is_number = is_whole(value) or isinstance(value, (float, np.floating))
        return [-1 if is_number and (value == -1 or np.isnan(value)) else self._id_of(value)]

    def _value(self, values: list[int]) -> int:
        (number,) = values
        if number != -1:
            self._check_ids(np.asarray(values, np.int64))
        return number


@dataclass(frozen=True, slots=True)
class Labels(ClassField, ValueField):
    """Ids of any number of classes, in any order. Batches have `Ragged`, or with ``pad_to`` `Padded`.

    Attributes:
        names: As for `Label`.
        pad_to: Number of ids of every sample of a batch, 1 to 65,536; None for any number.

    Raises:
        ConfigError: As for `Label`, or ``pad_to`` is out of range.
    """

    kind: ClassVar[str] = "labels"
    spec: ClassVar[FeatureSpec] = FeatureSpec("int64", None)
    names: Sequence[str] | None = None
    pad_to: int | None = None
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ClassField.__post_init__(self)
        check_padding(self.pad_to)

    def show(self, value: NDArray[np.int64]) -> str:
        return _shown(value.tolist(), self.names)

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        return list_column(pa, class_column(pa, self.names))

    def form(self) -> BatchForm:
        return varying(BatchForm("dense", "int64", fill=-1, stored="int64"), self.pad_to)

    def _values(self, value: Any) -> list[int]:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            raise BadValueError("must be a list of classes")
        ids = []
        for label in value:
            try:
                ids.append(self._id_of(label))
            except BadValueError as error:
                raise BadValueError(f"each of its classes {error}; {describe(label)} is not") from None
        return ids

    def _value(self, values: list[int]) -> NDArray[np.int64]:
        ids = np.asarray(values, np.int64)
        self._check_ids(ids)
        return ids


def _shown(ids: list[int], names: Sequence[str] | None) -> str:
    named = [f"{number} ({names[number]})" if names and number >= 0 else f"{number}" for number in ids[:MAX_SHOWN]]
    return shortened(", ".join(named))


def _checked_names(names: object) -> tuple[str, ...] | None:
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


@dataclass(frozen=True, slots=True)
class Boxes(ClassField):
    """The boxes of the image; a record can have one such field. `stoker.Batch` has them as ``boxes``.

    A value is a list. Each box is four numbers ``xmin, ymin, xmax, ymax`` in fractions of the width and height, 0 to 1,
    or a dict of these names, which may have ``label``: an id or a name; or a `stoker.types.Box`.

    Attributes:
        names: Names of the classes of boxes, as for `Label`; the built dataset has them as
            ``dataset.schema.box_names``. If they are the names of the classes of images, ``box_names`` is empty, and a
            box without a label has the class of its image; otherwise such a box has no class.

    Raises:
        ConfigError: As for `Label`.
    """

    kind: ClassVar[str] = "boxes"
    names: Sequence[str] | None = None
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def features(self, name: str) -> dict[str, FeatureSpec]:  # noqa: ARG002 - boxes are no extra field
        """Return nothing: boxes have the keys of the layout."""
        return {}

    def encode(self, name: str, value: Any, image: Pixels | None = None) -> Features:  # noqa: ARG002 - as `features`
        return {}

    def decode(self, name: str, features: Features) -> None:
        """Return nothing, as `features`."""

    def show(self, value: Sequence[Box]) -> str:
        return format_count(len(value), "box")

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        return box_column(pa, self.names)

    def form(self) -> BatchForm:
        """Refuse: batches have boxes in an attribute of their own."""
        raise ConfigError("batches have boxes with boxes=stoker.BoxOutput(...), not with fields=")

    def boxes(self, name: str, value: object) -> list[Box]:
        """Return the boxes in a value of the field; `SourceError` if one is not a box, or not within the image."""
        if isinstance(value, np.ndarray) and value.ndim == 2:
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            raise refusal(name, value, "must be a list of boxes")
        try:
            return [self._box(box) for box in value]
        except BadValueError as error:
            raise SourceError(f"field {name!r}: {error}") from None

    def _box(self, value: Any) -> Box:
        label = None
        if isinstance(value, Box):
            label = value.label if value.label in (None, -1) else self._class(value.label)
            value = value.corners
        if isinstance(value, dict) and value.keys() - {"label"} == set(BOX_SIDES):
            label = None if value.get("label") is None else self._class(value["label"])
            value = [value[side] for side in BOX_SIDES]
        if isinstance(value, np.ndarray):
            value = value.tolist()
        numbers = isinstance(value, (list, tuple)) and len(value) == len(BOX_SIDES)
        if not numbers or not all(isinstance(number, (int, float, np.number)) for number in value):
            raise BadValueError(f"{describe(value)} is not a box: xmin, ymin, xmax, ymax, or a dict of these and label")
        left, top, right, bottom = (float(number) for number in value)
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            advice = "; divide pixels by the width and height of the image" if max(right, bottom) > 1 else ""
            shown = f"{left:g}, {top:g}, {right:g}, {bottom:g}"
            raise BadValueError(f"the box {shown} is not xmin < xmax, ymin < ymax within 0 to 1{advice}")
        return Box(left, top, right, bottom, label)

    def _class(self, value: object) -> int:
        try:
            return self._id_of(value)
        except BadValueError as error:
            raise BadValueError(f"the label of a box is {describe(value)}, but {error}") from None
