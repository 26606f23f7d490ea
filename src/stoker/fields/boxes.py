"""Boxes of an image, with or without classes of their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stoker.config import format_count
from stoker.errors import ConfigError, SourceError
from stoker.fields.base import WrongError, box_column, describe, refusal
from stoker.fields.classes import ClassField, ClassIds
from stoker.types import BatchForm, Box

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from stoker.types import ArrowColumn, Features, FeatureSpec, Pixels

_SIDES = ("xmin", "ymin", "xmax", "ymax")


@dataclass(frozen=True, slots=True)
class Boxes(ClassField):
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
    _ids: ClassIds = field(init=False, repr=False, compare=False)

    def features(self, name: str) -> dict[str, FeatureSpec]:  # noqa: ARG002 - boxes are no extra field
        """Return nothing: boxes have the keys of the layout."""
        return {}

    def encode(self, name: str, value: Any, image: Pixels | None = None) -> Features:  # noqa: ARG002 - as `features`
        """Return nothing, as `features`."""
        return {}

    def decode(self, name: str, features: Features) -> None:
        """Return nothing, as `features`."""

    def show(self, value: Sequence[Box]) -> str:
        """Return how many there are."""
        return format_count(len(value), "box")

    def arrow(self, pa: ModuleType) -> ArrowColumn:
        """Return a column of lists of boxes."""
        return box_column(pa, self.names)

    def form(self) -> BatchForm:
        """Refuse: batches have boxes in a place of their own."""
        raise ConfigError("batches have boxes with boxes=stoker.BoxOutput(...), not with fields=")

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
            raise refusal(name, value, "must be a list of boxes")
        try:
            return [self._box(box) for box in value]
        except WrongError as error:
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
        if not numbers or not all(isinstance(number, (int, float, np.number)) for number in value):
            raise WrongError(f"{describe(value)} is not a box: xmin, ymin, xmax, ymax, or a dict of these and label")
        left, top, right, bottom = (float(number) for number in value)
        if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
            advice = "; divide pixels by the width and height of the image" if max(right, bottom) > 1 else ""
            shown = f"{left:g}, {top:g}, {right:g}, {bottom:g}"
            raise WrongError(f"the box {shown} is not xmin < xmax, ymin < ymax within 0 to 1{advice}")
        return Box(left, top, right, bottom, label)

    def _class(self, value: object) -> int:
        try:
            return self._ids.of(value)
        except WrongError as error:
            raise WrongError(f"the label of a box is {describe(value)}, but {error}") from None
