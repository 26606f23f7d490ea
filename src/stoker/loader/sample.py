"""One record or one file, as `stoker.Dataset` gives it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Never, cast

import numpy as np
from PIL import Image

from stoker import _native
from stoker.config import format_size
from stoker.errors import ConfigError, ExampleError, ImageError, StokerError
from stoker.format import first_bytes
from stoker.habits import DATASETS, no_attribute
from stoker.loader.pictures import (
    NOTEBOOK_PIXELS,
    NOTEBOOK_SIDE,
    box_classes,
    class_title,
    cut,
    draw_boxes,
    draw_mask,
    escaped,
    first_mask,
    fit,
    notebook_block,
    notebook_figure,
    usable_boxes,
    visible,
)
from stoker.recipe import decode, decode_mask, dimensions, orientation, pixels_of, sniff, turn, turn_box
from stoker.types import BOX_SIDES, Box

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from stoker.format import ClassLabel
    from stoker.types import Exif, Features, Mode, SchemaInfo


@dataclass(frozen=True, slots=True)
class Sample:
    """One record, or one file.

    Attributes:
        index: Its number in the split.
        features: All of its features, as stored.
        encoded: The bytes of its image, as stored: a file, or pixels.
        label: Its class, as the loader gives it; -1 if there is none.
        source: The image file it was made from. For a file, its path below the folder. For a built dataset, the name
            alone, as in ImageNet's records, so only ``index`` tells apart images with one name in two folders. Empty if
            the record does not say.
        schema: What each feature means.
        mode: Channels and depth of its pixels.
        exif: ``apply`` if image, masks and boxes are turned upright, ``keep`` if not; None, as ``keep``, if
            `stoker.open` was not told. `features` and `encoded` are as stored.
        problems: What is wrong with extra fields of a source that is not built, by name; other fields have features.
    """

    index: int
    features: Features
    encoded: bytes
    label: int
    source: str
    schema: SchemaInfo
    mode: Mode = "RGB"
    exif: Exif | None = None
    problems: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        size = f"{format_size(len(self.encoded))} of {self.format}"
        source = f" from {self.source!r}" if self.source else ""
        label = f"label {self.label}" if self.label >= 0 else "no label"
        return f"<stoker.Sample #{self.index}{source}: {label}, {size}, {len(self.features)} features>"

    def __getitem__(self, key: object) -> Never:
        raise TypeError(f"stoker.Sample is no pair and no dict: {DATASETS['sample[]']}")

    __getattr__ = no_attribute("stoker.Sample", DATASETS)

    def _repr_html_(self) -> str:
        facts = []
        try:
            picture: Image.Image | str = self.thumbnail(NOTEBOOK_SIDE, NOTEBOOK_PIXELS)
            boxes = len(usable_boxes(self.boxes))
            facts = [f"{boxes} box{'es' * (boxes != 1)}"] if boxes else []
            facts += texts_of(self)
        except StokerError as error:
            picture = f"damaged: {error}"
        figure = notebook_figure(picture, [class_title((), self.label)])
        return notebook_block(f"<b>{escaped(repr(self)[1:-1])}</b>", facts, [figure])

    @property
    def format(self) -> str:
        """Format of its image by its first bytes: ``jpeg``, ``png``, ``webp``, ...; ``raw`` for stored pixels.

        Of no format that Stoker knows: ``empty``, ``text`` or ``unknown``.
        """
        return "raw" if self.schema.image_encoding == "raw" else sniff(self.encoded)

    @property
    def _orientation(self) -> int:
        applies = self.exif == "apply" and self.schema.image_encoding != "raw"
        return orientation(self.encoded, sniff(self.encoded)) if applies else 1

    @property
    def boxes(self) -> list[Box]:
        """Its annotated objects, in fractions of the image, with their labels as the record has them.

        Raises:
            ImageError: They must be turned with the image, whose header is damaged.
            ExampleError: Their corners are not of type float, or the numbers of corners or labels differ.
        """
        try:
            boxes = boxes_of(self.features, self.schema)
        except ExampleError as error:
            raise self._error(error) from None
        turned = self._orientation if boxes else 1
        return [turn_box(box, turned) for box in boxes]

    @property
    def fields(self) -> dict[str, Any]:
        """The values of its extra fields, by name; see `stoker.fields`.

        Masks are uint8 or uint16 (H, W), images as `decode` gives them.

        Raises:
            ExampleError: The record lacks a field, or holds a value that the field cannot have.
            ImageError: An image or a mask cannot be decoded.
        """
        return {name: self.field(name) for name in self.schema.fields}

    def field(self, name: str) -> Any:
        """Return the value of one of its extra fields, as `fields` has it.

        Raises:
            ConfigError: There is no such field.
            ExampleError: As `fields`.
            ImageError: As `fields`.
        """
        if name not in self.schema.fields:
            raise ConfigError(f"there is no field {name!r}; there are {', '.join(self.schema.fields) or 'none'}")
        extra = self.schema.fields[name]
        if name in self.problems:
            raise self._error(self.problems[name])
        try:
            stored = extra.decode(name, self.features)
            if not extra.is_image:
                return stored
            if (form := extra.form()).kind == "mask":
                ids = decode_mask(stored.encoded, form.bits, _native.DEFAULT_MAX_PIXELS)
                return turn(ids[:, :, None], self._orientation)[:, :, 0]
            return decode(stored.encoded, _native.DEFAULT_MAX_PIXELS, self.mode, self.exif or "keep")
        except (ExampleError, ImageError) as error:
            raise self._error(error, type(error), f", field {name!r}") from error

    def _error(self, what: object, kind: type[StokerError] = ExampleError, where: str = "") -> StokerError:
        source = f" ({self.source})" if self.source else ""
        return kind(f"sample {self.index}{source}{where}: {what}", source=self.source)

    def decode(self) -> NDArray[Any]:
        """Return the whole image in the dataset's mode, turned upright if the dataset was opened so.

        Returns:
            uint8 (H, W, C), where C is 3 in mode RGB, 1 in L and 4 in RGBA; in I;16 uint16 (H, W, 1).

        Raises:
            ImageError: It cannot be decoded without losing pixels, or has no form in this mode.
            ExampleError: It is raw, and its length does not fit its shape.
        """
        if self.schema.image_encoding == "raw":
            pixels = self._raw_pixels()
            return pixels if self.mode == "RGB" else pixels_of(Image.fromarray(pixels), self.mode)
        try:
            return decode(self.encoded, _native.DEFAULT_MAX_PIXELS, self.mode, self.exif or "keep")
        except ImageError as error:
            raise self._error(error, type(error)) from error

    def thumbnail(self, side: int, max_pixels: int | None = None, classes: Sequence[ClassLabel] = ()) -> Image.Image:
        """Return the image with its first mask and its annotated boxes drawn over it, as large as fits into a square.

        Args:
            side: Side of the square, in pixels.
            max_pixels: Largest image to decode, in pixels; None: any that `decode` accepts.
            classes: Classes of the dataset, which name the boxes unless boxes have classes of their own.

        Raises:
            ImageError: It cannot be decoded, or is larger than ``max_pixels``.
            ExampleError: It is raw, and its length does not fit its shape; corners of boxes are not of type float; or
                the mask is damaged or of another size.
        """
        if max_pixels is not None and self.schema.image_encoding == "file":
            width, height = dimensions(self.encoded, sniff(self.encoded))
            if width * height > max_pixels:
                raise ImageError(f"{width} x {height} pixels are too many for a small picture")
        pixels = self.decode()
        picture = fit(visible(pixels), side, side)
        if (name := first_mask(self.schema.fields)) is not None:
            draw_mask(picture, mask_of(self, name, pixels))
        draw_boxes(picture, usable_boxes(self.boxes), box_classes(self.schema, classes))
        return picture

    def _raw_pixels(self) -> NDArray[np.uint8]:
        height, width = self._raw_extent()
        if min(height, width) < 1 or height * width * 3 != len(self.encoded):
            raise self._error(f"{len(self.encoded)} bytes of pixels are not {height} x {width} x 3")
        pixels = np.frombuffer(self.encoded, np.uint8)
        if first_bytes(self.features, self.schema.order_key or "") == b"CHW":
            return np.ascontiguousarray(pixels.reshape(3, height, width).transpose(1, 2, 0))
        return pixels.reshape(height, width, 3).copy()

    def _raw_extent(self) -> tuple[int, int]:
        if self.schema.height_key is None or self.schema.width_key is None:
            side = round((len(self.encoded) / 3) ** 0.5)
            return side, side
        try:
            height, width = (int(self.features[key][1][0]) for key in (self.schema.height_key, self.schema.width_key))
        except (KeyError, IndexError, ValueError):
            raise ImageError(f"sample {self.index} ({self.source}) has no height or width") from None
        return height, width


def texts_of(sample: Sample) -> list[str]:
    """Return the beginnings of the texts of a sample, such as its caption."""
    return [cut(sample.field(name)) for name, extra in sample.schema.fields.items() if extra.form().kind == "text"]


def mask_of(sample: Sample, name: str, pixels: NDArray[Any]) -> NDArray[Any]:
    """Return a mask of a sample, which must be as large as the pixels of its image: uint8 or uint16 (H, W)."""
    ids: NDArray[Any] = sample.field(name)
    if ids.shape != pixels.shape[:2]:
        where = f"sample {sample.index} ({sample.source}), field {name!r}"
        message = f"{where}: the mask has {ids.shape[1]} x {ids.shape[0]} pixels, unlike the image"
        raise ExampleError(message, source=sample.source)
    return ids


def boxes_of(features: Features, schema: SchemaInfo) -> list[Box]:
    """Return the annotated objects that features hold, as they are stored; `Sample.boxes` says what is refused."""
    prefix = schema.box_prefix
    if prefix is None:
        return []
    above = prefix[: prefix.rfind("bbox")] if "bbox" in prefix else prefix
    if prefix.endswith("/"):
        keys = [prefix + side for side in BOX_SIDES]
        sides = [_floats(features, key) for key in keys]
        for key, side in zip(keys, sides, strict=True):
            _check_as_many(key, len(side), len(sides[0]))
        label_key = prefix + "label" if _labels(features, prefix + "label") else above + "class/label"
    else:
        packed = _floats(features, prefix)
        if len(packed) % 4:
            raise ExampleError(f"{prefix!r} has {len(packed)} values, which are not four for each box")
        sides = [packed[first::4] for first in (1, 0, 3, 2)]
        label_key = above + "label"
    boxes = [Box(*corners) for corners in zip(*sides, strict=True)]
    labels = _labels(features, label_key)
    if not labels:
        return boxes
    _check_as_many(label_key, len(labels), len(boxes))
    return [replace(box, label=label) for box, label in zip(boxes, labels, strict=True)]


def _check_as_many(key: str, values: int, boxes: int) -> None:
    if values != boxes:
        raise ExampleError(f"{key!r} has {values} values for {boxes} boxes")


def _labels(features: Features, key: str) -> list[int]:
    kind, values = features.get(key, ("", []))
    return [int(value) for value in values] if kind == "int64" else []


def _floats(features: Features, key: str) -> list[float]:
    kind, values = features.get(key, ("float", []))
    if values and kind != "float":
        raise ExampleError(f"{key!r} holds {kind} values; corners of boxes are float")
    return [float(value) for value in cast("list[float]", values)]


def label_of(features: Features, schema: SchemaInfo) -> int:
    """Return the class that features hold, as the loader gives it; -1 when there is none."""
    if schema.label_key not in features:
        return -1
    kind, values = features[schema.label_key]
    if schema.label_encoding == "id":
        if kind != "int64" or not values:
            raise ExampleError(f"{schema.label_key!r} has {len(values)} values of kind {kind}, not an int64")
        return int(values[0])
    digits = list(cast("bytes", values[0])) if kind == "bytes" and values else values
    ones = [position for position, digit in enumerate(digits) if digit == 1]
    if len(ones) > 1 or any(digit not in (0, 1) for digit in digits):
        raise ExampleError(f"{schema.label_key!r} is not one-hot: {len(ones)} of its {len(digits)} values are 1")
    return ones[0] + schema.label_base if ones else -1
