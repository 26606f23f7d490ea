"""Every kind of field: of the JSON of a manifest, and of the values of a first record."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import ConfigError
from stoker.fields.base import describe, is_whole
from stoker.fields.boxes import Boxes
from stoker.fields.classes import Label, Labels
from stoker.fields.images import Image, Mask
from stoker.fields.numbers import Array, Float, Int
from stoker.fields.texts import Bytes, Json, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.types import Field


KINDS: dict[str, type[Field]] = {
    cls.kind: cls for cls in (Array, Boxes, Bytes, Float, Image, Int, Json, Label, Labels, Mask, Text)
}
"""Every kind of field by its name in manifests."""


def from_json(content: object) -> Field:
    """Return the field that `Field.to_json` has written; any value of JSON may be given, from a file of any origin.

    Raises:
        ConfigError: It is not that of a field.
    """
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"the field {describe(content)} is of no known kind; there are {', '.join(sorted(KINDS))}")
    cls = KINDS[kind]
    settings = {key: content[key] for key in ("names", "pad_to", "dtype", "shape", "bits") if key in content}
    known = {key: value for key, value in settings.items() if key in getattr(cls, "__dataclass_fields__", {})}
    for key, types in (("pad_to", (int, type(None))), ("bits", (int,)), ("dtype", (str,)), ("shape", (list,))):
        if key in known and (not isinstance(known[key], types) or isinstance(known[key], bool)):
            raise ConfigError(f"{key} of a field of kind {kind} is {describe(known[key])}")
    if any(isinstance(side, bool) for side in known.get("shape", ())):
        raise ConfigError(f"the shape of a field of kind {kind} is not one of whole numbers")
    if cls is Array and not {"dtype", "shape"} <= known.keys():
        raise ConfigError("a field of kind array lacks its dtype or its shape")
    return cls(**known)


def is_pil_image(value: object) -> bool:
    """Return whether a value is an image of Pillow, which is imported where there is one."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


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
    field = _by_name(name, value) or _by_type(value)
    if field is not None:
        return field
    if isinstance(value, np.ndarray):
        try:
            return Array(value.dtype.name, value.shape)
        except ConfigError as error:
            raise ConfigError(f"field {name!r} of the first record is {describe(value)}: {error}") from None
    message = f"field {name!r} of the first record is {describe(value)}, which does not tell what it is"
    if value is not None:
        raise ConfigError(
            f"{message}; give text, a number, an array or another value of stoker.fields, or leave it out"
        )
    fitting = {"label": "Label", "image": "Image", "mask": "Mask", "boxes": "Boxes"}.get(name, "Text")
    raise ConfigError(f"{message}; give fields={{{name!r}: stoker.fields.{fitting}(), ...}}")


def named_image(name: str) -> Field | None:
    """Return what ``image``, ``NAME_image``, ``mask`` and ``NAME_mask`` are by their names; None of another name."""
    return {"image": Image(), "mask": Mask()}.get(name.rpartition("_")[2])


def _by_name(name: str, value: Any) -> Field | None:
    is_array, is_pil = isinstance(value, np.ndarray), is_pil_image(value)
    if is_array or is_pil or isinstance(value, (str, bytes, bytearray, memoryview, os.PathLike)):
        image = named_image(name) or (Image() if is_pil else None)
        if image is not None:
            return Mask(16) if image == Mask() and is_array and value.dtype == np.uint16 else image
    if name == "boxes" and isinstance(value, (list, tuple, np.ndarray)):
        return Boxes()
    return Label() if name == "label" and (is_whole(value) or isinstance(value, str)) else None


def _by_type(value: Any) -> Field | None:
    if isinstance(value, (list, tuple)) and value and all(is_whole(number) for number in value):
        return Array("int64", (None,))
    if isinstance(value, (list, tuple)) and value and all(isinstance(number, (float, np.floating)) for number in value):
        return Array("float32", (None,))
    return next((field for types, field in _TYPES if isinstance(value, types)), None)


_TYPES: tuple[tuple[tuple[type, ...], Field], ...] = (
    ((str,), Text()),
    ((bytes, bytearray, memoryview), Bytes()),
    ((bool, int, np.integer, np.bool_), Int()),
    ((float, np.floating), Float()),
    ((dict, list, tuple), Json()),
)
