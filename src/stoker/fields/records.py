"""Fields read from the JSON of a manifest, or inferred from a first record; and the fields of a record together."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import ConfigError, SourceError
from stoker.fields.base import describe, is_whole
from stoker.fields.classes import Boxes, Label, Labels
from stoker.fields.values import Array, Bytes, Float, Image, Int, Json, Mask, Text
from stoker.types import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.types import Features, Pixels


_MAX_NAME = 200
_OWN_PREFIX = "image/"
_MASK_NAME = re.compile(r"mask(?!ed)|(^|[^a-z])(seg(mentation)?s?|trimaps?)([^a-z]|$)", re.IGNORECASE)
_LIKE_IMAGES = re.compile("path|file|im(age|g)", re.IGNORECASE)

KINDS: dict[str, type[Field]] = {
    cls.kind: cls for cls in (Array, Boxes, Bytes, Float, Image, Int, Json, Label, Labels, Mask, Text)
}
"""Every kind of field by its name in manifests."""


def from_json(content: object) -> Field:
    """Return the field that `Field.to_json` has written; ``content`` may be any value of JSON, from an untrusted file.

    Raises:
        ConfigError: It does not describe a field.
    """
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"the field {describe(content)} is of no known kind; there are {', '.join(sorted(KINDS))}")
    cls = KINDS[kind]
    settings = {key: content[key] for key in ("names", "pad_to", "dtype", "shape", "bits") if key in content}
    known = {key: value for key, value in settings.items() if key in getattr(cls, "__dataclass_fields__", {})}
    # Each field checks its settings, but NumPy takes many other things for a dtype.
    if not isinstance(known.get("dtype", ""), str):
        raise ConfigError(f"dtype of a field of kind {kind} is {describe(known['dtype'])}")
    if cls is Array and not {"dtype", "shape"} <= known.keys():
        raise ConfigError("a field of kind array lacks its dtype or its shape")
    return cls(**known)


def is_pil_image(value: object) -> bool:
    """Return whether a value is an image of Pillow; none is if Pillow was not imported."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(value, pillow.Image)


def infer(record: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields of records, inferred from the names and types of the values of one record.

    ``image``, ``NAME_image``, ``mask`` and ``NAME_mask`` that are a path, bytes or an array, and any PIL image: `Mask`
    if ``mask`` or the word ``seg`` or ``trimap`` is in the name, otherwise `Image`. ``label`` that is a number or text:
    `Label`. ``boxes``: boxes. Then text: `Text`; bytes: `Bytes`; ``bool`` and ``int``: `Int`; ``float``: `Float`; an
    array: `Array` of its dtype and shape; a list of ``int`` or of ``float``: `Array` of int64 or float32 of any length;
    other dicts and lists: `Json`.

    Args:
        record: The first record.

    Raises:
        ConfigError: A value does not tell its field.
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
        others = "text, a number, an array or another value of stoker.fields"
        others = "what it holds, .read()" if hasattr(value, "read") else others
        others = f"each of them a name, such as {name}_0" if isinstance(value, (list, tuple)) else others
        raise ConfigError(f"{message}; give {others}, or leave it out")
    fitting = {"label": "Label", "image": "Image", "mask": "Mask", "boxes": "Boxes"}.get(name, "Text")
    raise ConfigError(f"{message}; give fields={{{name!r}: stoker.fields.{fitting}(), ...}}")


def field_of_image(name: str) -> Mask | Image:
    """Return the field of an extra image, by its name: a mask, or another image."""
    return Mask() if _MASK_NAME.search(name) else Image()


def named_image(name: str) -> Mask | Image | None:
    """Return the field of paths and bytes called ``image``, ``NAME_image``, ``mask`` or ``NAME_mask``; else None."""
    return field_of_image(name) if name.rpartition("_")[2] in ("image", "mask") else None


def _by_name(name: str, value: Any) -> Field | None:
    is_array, is_pil = isinstance(value, np.ndarray), is_pil_image(value)
    if is_array or is_pil or isinstance(value, (str, bytes, bytearray, memoryview, os.PathLike)):
        image = field_of_image(name) if is_pil else named_image(name)
        if image is not None:
            return Mask(16) if image == Mask() and is_array and value.dtype == np.uint16 else image
    if name == "boxes" and isinstance(value, (list, tuple, np.ndarray)):
        return Boxes()
    return Label() if name == "label" and (is_whole(value) or isinstance(value, str)) else None


def _by_type(value: Any) -> Field | None:
    if isinstance(value, (list, tuple)) and any(is_pil_image(each) or isinstance(each, _NOT_JSON) for each in value):
        return None
    if isinstance(value, (list, tuple)) and value and all(is_whole(number) for number in value):
        return Array("int64", (None,))
    if isinstance(value, (list, tuple)) and value and all(isinstance(number, (float, np.floating)) for number in value):
        return Array("float32", (None,))
    return next((field for types, field in _TYPES if isinstance(value, types)), None)


_NOT_JSON = (bytes, bytearray, memoryview, np.ndarray, os.PathLike)
_TYPES: tuple[tuple[tuple[type, ...], Field], ...] = (
    ((str,), Text()),
    ((bytes, bytearray, memoryview), Bytes()),
    ((bool, int, np.integer, np.bool_), Int()),
    ((float, np.floating), Float()),
    ((dict, list, tuple), Json()),
)


@dataclass(frozen=True, slots=True)
class Roles:
    """Which fields are the image, the class and the boxes of a record, and which are extra fields."""

    image: str  # name of the image
    label: str | None  # name of the class; None without one
    boxes: str | None  # name of the boxes; None without any
    extra: dict[str, Field] = field(default_factory=dict)


def roles(fields: Mapping[str, Field]) -> Roles:
    """Return the roles of the fields of records.

    The image is the field ``image``, else the first `Image`; the class ``label``, else the first `Label`; the boxes the
    one `Boxes`.
    """
    for name, kind in fields.items():
        if not isinstance(kind, Field):
            what = (
                f"the class stoker.fields.{kind.__name__}; write {kind.__name__}()"
                if isinstance(kind, type)
                else "not one"
            )
            raise ConfigError(f"field {name!r} must be a field, such as stoker.fields.Text(), and is {what}")
    image = _first_of(fields, "image", Image)
    if image is None:
        message = f"no field is an image: {', '.join(fields) or 'there are none'}; give one stoker.fields.Image()"
        likely = [name for name, kind in fields.items() if _may_be_image(name, kind)]
        likely.sort(key=lambda name: (_LIKE_IMAGES.search(name) is None, not isinstance(fields[name], Array)))
        raise ConfigError(f"{message}: {as_typed({**fields, likely[0]: Image()})}" if likely else message)
    label = _first_of(fields, "label", Label)
    boxes = [name for name, kind in fields.items() if isinstance(kind, Boxes)]
    if len(boxes) > 1:
        raise ConfigError(f"the fields {' and '.join(boxes)} are boxes; a record can have one such field")
    role_names = {image, label, *boxes}
    extra = {name: kind for name, kind in fields.items() if name not in role_names}
    check_extra(extra)
    return Roles(image, label, boxes[0] if boxes else None, extra)


def _may_be_image(name: str, field: Field) -> bool:
    if isinstance(field, Array):
        return field.dtype == "uint8" and len(field.shape) in (2, 3)
    return isinstance(field, (Bytes, Text)) or (isinstance(field, Json) and _LIKE_IMAGES.search(name) is not None)


def as_typed(fields: Mapping[str, Field]) -> str:
    """Return fields as a program gives them, for messages that say what to type."""
    return f"fields={{{', '.join(f'{name!r}: stoker.fields.{kind!r}' for name, kind in fields.items())}}}"


def _first_of(fields: Mapping[str, Field], name: str, cls: type[Field]) -> str | None:
    names = [name, *fields] if name in fields else list(fields)
    return next((name for name in names if isinstance(fields[name], cls)), None)


def check_extra(fields: Mapping[str, Field]) -> None:
    """Refuse extra fields that cannot be stored beside each other and the image in a record.

    Raises:
        ConfigError: A name is empty, too long or not printable; or two fields, or a field and the image, have the same
            key.
    """
    keys: dict[str, str] = {}
    for name, kind in fields.items():
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME or not name.isprintable():
            raise ConfigError(
                f"the name of a field is {describe(name)}; it must be 1 to {_MAX_NAME} printable characters"
            )
        if isinstance(kind, Boxes):
            raise ConfigError(f"field {name!r} is boxes, which are stored beside the image and are no extra field")
        for key in kind.features(name):
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
    """Return the value of a field among those that a source gives for one record."""
    value = values.get(name)
    if value is None:
        raise SourceError(f"field {name!r} {'is None' if name in values else 'is missing'}; every record needs it")
    return value


def encode_fields(fields: Mapping[str, Field], values: Mapping[str, Any], image: Pixels | None) -> Features:
    """Return the features of the extra fields of one record; ``image`` may be None if no field is an image or a mask.

    Raises:
        SourceError: A value is missing, or does not fit its field; the message names the field.
    """
    features: Features = {}
    for name, kind in fields.items():
        features |= kind.encode(name, given_value(name, values), image)
    return features


def stored_values(features: Features, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the values of some fields of a record, to build another record from; of images and masks, the files.

    Raises:
        ExampleError: The record lacks a field, or holds a value that the field cannot have.
    """
    values = {name: field.decode(name, features) for name, field in fields.items()}
    return {name: value.encoded if fields[name].is_image else value for name, value in values.items()}
