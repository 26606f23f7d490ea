"""The fields of one record: which is the image, the class and the boxes, and which stand beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stoker.errors import ConfigError, SourceError
from stoker.fields.base import describe
from stoker.fields.boxes import Boxes
from stoker.fields.classes import Label
from stoker.fields.images import Image
from stoker.types import Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stoker.types import Features, Pixels

_MAX_NAME = 200
_OWN_PREFIX = "image/"


@dataclass(frozen=True, slots=True)
class Roles:
    """Which fields are the image, the class and the boxes that every record has, and which are extra ones."""

    image: str  # name of the image
    label: str | None  # name of the class; None without one
    boxes: str | None  # name of the boxes; None without any
    extra: dict[str, Field] = field(default_factory=dict)


def roles(fields: Mapping[str, Field]) -> Roles:
    """Tell the fields of records apart.

    The image is the field ``image``, else the first `Image`; the class ``label``, else the first `Label`; the boxes the
    one `Boxes`.

    Raises:
        ConfigError: There is no `Image` or more than one `Boxes`, something is not a field, or `check_extra` refuses
            the others.
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
        raise ConfigError(
            f"no field is an image: {', '.join(fields) or 'there are none'}; give one stoker.fields.Image()"
        )
    label = _first_of(fields, "label", Label)
    boxes = [name for name, kind in fields.items() if isinstance(kind, Boxes)]
    if len(boxes) > 1:
        raise ConfigError(f"the fields {' and '.join(boxes)} are boxes; a record can have one such field")
    own = {image, label, *boxes}
    extra = {name: kind for name, kind in fields.items() if name not in own}
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
    """Return the features of the extra fields of one record; its image may be None where no field is one or a mask.

    Raises:
        SourceError: A value is missing, or is not one of its field; the message names the field.
    """
    features: Features = {}
    for name, kind in fields.items():
        features |= kind.encode(name, given_value(name, values), image)
    return features


def stored_values(features: Features, fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return what a record holds in some fields, to build another record from; of images and masks the files.

    Raises:
        ExampleError: The record lacks a field, or holds something that it cannot have.
    """
    values = {name: field.decode(name, features) for name, field in fields.items()}
    return {name: value.encoded if fields[name].is_image else value for name, value in values.items()}
