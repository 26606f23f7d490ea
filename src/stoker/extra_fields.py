"""The extra fields of a record: values of a source to features, images and masks through the geometry of the image.

A build stores these features; of a source that is opened they are made when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import ImageError, SourceError
from stoker.fields import EncodedImage, Image, Mask, ValueField, given_value
from stoker.recipe import Recipe, StoredImage, as_file, convert, dimensions, is_stored_mask, mask_ids, store_mask
from stoker.sources import CocoMask, read_image

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from stoker.types import Features, Field


_KEEP = Recipe()


def features_beside(data: bytes, fields: Mapping[str, Field], values: Mapping[str, Any]) -> Features:
    """Return the features of the extra fields of an image that stays as it is.

    They are those that a build with default settings stores, but for a mask that is a grey PNG already: it is not
    encoded anew.

    Args:
        data: The file of the image; used only where a field is an image or a mask, which must be as large.
        fields: What they are.
        values: As the source gives them.

    Raises:
        SourceError: As `extra_features`.
        ImageError: What a build would reject the image for.
        OSError: As `extra_features`.
    """
    has_images = any(not isinstance(one, ValueField) for one in fields.values())
    image = convert(data, _KEEP) if has_images else StoredImage(b"", 0, 0)
    found: Features = {}
    for name, one in fields.items():
        given = values
        if isinstance(one, Mask) and values.get(name) is not None and not isinstance(values[name], CocoMask):
            given = {name: read_image(name, values[name])[0]}
            if _is_stored_mask(given[name], one, image):
                found |= one.encode(name, EncodedImage(given[name], "png", image.height, image.width))
                continue
        found |= extra_features({name: one}, given, _KEEP, image)
    return found


def _is_stored_mask(given: object, one: Mask, image: StoredImage) -> bool:
    """Return whether this is a mask of an image in the form that records hold."""
    if not isinstance(given, bytes):
        return False
    try:
        return is_stored_mask(given, one.bits) and dimensions(given, "png") == image.source_size
    except ImageError:
        return False  # what reads it says what is wrong


def extra_features(
    fields: Mapping[str, Field], values: Mapping[str, Any], recipe: Recipe, image: StoredImage
) -> Features:
    """Return the features of the extra fields of one record.

    Args:
        fields: What they are.
        values: As the source gives them.
        recipe: What happens to images and masks.
        image: What it has made of the image of the record.

    Raises:
        SourceError: A value is missing, or is not one of its field; the message names the field.
        OSError: A file cannot be read, for another reason than that it is not there.
    """
    found: Features = {}
    for name, one in fields.items():
        value = given_value(name, values)
        if isinstance(one, ValueField):
            found |= one.encode(name, value)
            continue
        try:
            if isinstance(one, Mask):
                found |= one.encode(name, _mask(name, one, value, recipe, image))
            elif isinstance(one, Image):
                found |= one.encode(name, _image(name, value, recipe, image))
        except ImageError as error:
            raise SourceError(f"field {name!r}: {error}") from error
    return found


def _mask(name: str, one: Mask, value: Any, recipe: Recipe, image: StoredImage) -> EncodedImage:
    wanted = image.source_size
    if isinstance(value, CocoMask):
        given: Any = _drawn(name, value, wanted)
    else:
        given = read_image(name, value)[0]

    def check_size(width: int, height: int) -> None:
        if width * height != wanted[0] * wanted[1]:
            _check_size(name, "mask", (width, height), wanted)

    ids = one.pixels(name, given if isinstance(given, np.ndarray) else mask_ids(given, check_size))
    _check_size(name, "mask", (ids.shape[1], ids.shape[0]), wanted)
    return EncodedImage(store_mask(ids, recipe, image), "png", image.height, image.width)


def _drawn(name: str, value: CocoMask, wanted: tuple[int, int]) -> NDArray[Any]:
    try:
        return value.draw(wanted)
    except SourceError as error:
        raise SourceError(f"field {name!r}: {error}") from error


def _image(name: str, value: Any, recipe: Recipe, image: StoredImage) -> EncodedImage:
    given = read_image(name, value)[0]
    made = convert(given if isinstance(given, (bytes, np.ndarray)) else as_file(given), recipe)
    _check_size(name, "image", made.upright_size, image.upright_size)
    return EncodedImage(made.data, made.storing.format, made.height, made.width)


def _check_size(name: str, what: str, size: tuple[int, int], wanted: tuple[int, int]) -> None:
    if size != wanted:
        message = f"field {name!r}: the {what} has {size[0]}x{size[1]} pixels, but the image of the record"
        raise SourceError(f"{message} {wanted[0]}x{wanted[1]}; they must be equally large")
