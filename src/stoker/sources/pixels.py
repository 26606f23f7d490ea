"""Extra images and masks of a record, which are cropped and resized like the image of the record as it is stored.

A build stores the features of fields; for an open source they are made on demand.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from stoker.errors import ImageError, SourceError
from stoker.fields import encode_fields, mask_pixels
from stoker.recipe import Recipe, StoredImage, as_file, convert, dimensions, is_stored_mask, mask_ids, store_mask
from stoker.sources.drawn_masks import DrawnMask
from stoker.sources.records import read_image
from stoker.types import EncodedImage, Features, Field

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_KEEP = Recipe()


class RecordPixels:
    """The image of a record, and the other images and masks that a recipe converts; see `stoker.types.Pixels`.

    Args:
        recipe: How all of them are converted.
        stored: The converted image.
    """

    def __init__(self, recipe: Recipe, stored: StoredImage) -> None:
        self._recipe, self._stored = recipe, stored

    def image(self, name: str, value: Any) -> EncodedImage:
        """Return another image as it is stored.

        Raises:
            SourceError: It is not an image, or not as large as the record's image.
            OSError: Its file cannot be read, for a reason other than that it does not exist.
        """
        with _of_field(name):
            given = read_image(name, value)[0]
            converted = convert(given if isinstance(given, (bytes, np.ndarray)) else as_file(given), self._recipe)
        _check_size(name, "image", converted.upright_size, self._stored.upright_size)
        return EncodedImage(converted.data, converted.storing.format, converted.height, converted.width)

    def mask(self, name: str, value: Any, bits: int) -> EncodedImage:
        """Return a mask of the image as it is stored.

        Raises:
            SourceError: It is not a mask, or not as large as the record's image.
            OSError: Its file cannot be read, for a reason other than that it does not exist.
        """
        wanted = self._stored.source_size

        def check_size(width: int, height: int) -> None:
            if width * height != wanted[0] * wanted[1]:
                _check_size(name, "mask", (width, height), wanted)

        if isinstance(value, DrawnMask):
            with _of_field(name, (ImageError, SourceError)):
                given = value.draw(wanted)
        else:
            given = read_image(name, value)[0]
        with _of_field(name):
            ids = given if isinstance(given, np.ndarray) else mask_ids(given, check_size)
        pixels = mask_pixels(name, ids, bits)
        _check_size(name, "mask", (pixels.shape[1], pixels.shape[0]), wanted)
        return EncodedImage(
            store_mask(pixels, self._recipe, self._stored), "png", self._stored.height, self._stored.width
        )


class _KeptPixels(RecordPixels):
    """An image that is not converted, and masks beside it, which are not encoded anew if they are grey PNGs."""

    def mask(self, name: str, value: Any, bits: int) -> EncodedImage:
        given = value if isinstance(value, DrawnMask) else read_image(name, value)[0]
        if isinstance(given, bytes) and self._is_stored(given, bits):
            return EncodedImage(given, "png", self._stored.height, self._stored.width)
        return super().mask(name, given, bits)

    def _is_stored(self, data: bytes, bits: int) -> bool:
        try:
            return is_stored_mask(data, bits) and dimensions(data, "png") == self._stored.source_size
        except ImageError:
            return False  # reading it reports the error


def features_beside(data: bytes, fields: Mapping[str, Field], values: Mapping[str, Any]) -> Features:
    """Return the features of the extra fields of an image that is not converted.

    They are the features that a build with default settings stores, except that a mask that is a grey PNG is not
    encoded anew.

    Args:
        data: The file of the image; used only where a field is an image or a mask, which must be as large.
        fields: The fields, by name.
        values: Their values, as the source gives them.

    Raises:
        SourceError: A value does not fit its field; see `stoker.fields.encode_fields`.
        ImageError: A build would reject the image.
        OSError: A file cannot be read, for a reason other than that it does not exist.
    """
    has_images = any(field.is_image for field in fields.values())
    return encode_fields(fields, values, _KeptPixels(_KEEP, convert(data, _KEEP)) if has_images else None)


@contextmanager
def _of_field(name: str, caught: tuple[type[Exception], ...] = (ImageError,)) -> Iterator[None]:
    try:
        yield
    except caught as error:
        raise SourceError(f"field {name!r}: {error}") from error


def _check_size(name: str, what: str, size: tuple[int, int], wanted: tuple[int, int]) -> None:
    if size != wanted:
        message = f"field {name!r}: the {what} has {size[0]}x{size[1]} pixels, but the image of the record"
        raise SourceError(f"{message} {wanted[0]}x{wanted[1]}; they must be equally large")
