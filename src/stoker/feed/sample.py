"""One record, as a person looks at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from stoker import _native
from stoker.config import format_size
from stoker.errors import ExampleError, ImageError, StokerError
from stoker.feed.odd_images import to_jpeg
from stoker.recipe import dimensions, sniff
from stoker.types import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL import Image

    from stoker.types import Features, SchemaInfo

_JPEG = b"\xff\xd8"


@dataclass(frozen=True, slots=True)
class Sample:
    """One record, or one file.

    Attributes:
        key: Its number in the split.
        features: Everything it holds.
        encoded: The bytes of its image, as stored: a file, or pixels.
        label: Its class, as the loader gives it; -1 when there is none.
        source: Name of the image it was made from; empty when the record does not say.
        schema: Which feature means what.
    """

    key: int
    features: Features
    encoded: bytes
    label: int
    source: str
    schema: SchemaInfo

    def __repr__(self) -> str:
        size = f"{format_size(len(self.encoded))} of {self.schema.image_encoding}"
        source = f" from {self.source!r}" if self.source else ""
        label = f"label {self.label}" if self.label >= 0 else "no label"
        return f"<stoker.Sample #{self.key}{source}: {label}, {size}, {len(self.features)} features>"

    def _repr_html_(self) -> str:
        from stoker.feed import notebook, pictures  # noqa: PLC0415 - only notebooks need them

        facts = []
        try:
            picture: Image.Image | str = self.thumbnail(notebook.SIDE_PIXELS, notebook.MAX_PIXELS)
            boxes = len(pictures.usable_boxes(self.boxes))
            facts = [f"{boxes} box{'es' * (boxes != 1)}"] if boxes else []
        except StokerError as error:
            picture = f"damaged: {error}"
        shown = notebook.figure(picture, [pictures.class_title((), self.label)])
        return notebook.block(f"<b>{notebook.escaped(repr(self)[1:-1])}</b>", facts, [shown])

    @property
    def boxes(self) -> list[Box]:
        """Its annotated objects, in fractions of the image.

        Raises:
            ExampleError: Their corners are not of type float.
        """
        prefix = self.schema.box_prefix
        if prefix is None:
            return []
        sides = (self._floats(prefix + side) for side in ("xmin", "ymin", "xmax", "ymax"))
        return [Box(*corners) for corners in zip(*sides, strict=False)]

    def _floats(self, key: str) -> list[float]:
        kind, values = self.features.get(key, ("float", []))
        if values and kind != "float":
            message = f"{key!r} holds {kind} values; corners of boxes are float"
            raise ExampleError(f"sample {self.key} ({self.source}): {message}", source=self.source)
        return [float(value) for value in cast("list[float]", values)]

    def decode(self) -> NDArray[np.uint8]:
        """Return the whole image, uint8 (H, W, 3), RGB.

        Raises:
            ImageError: It cannot be decoded without losing pixels.
            ExampleError: It is raw, and its length is not that of its shape.
        """
        if self.schema.image_encoding == "raw":
            return self._raw_pixels()
        return _native.decode_jpeg(self.encoded if self.encoded.startswith(_JPEG) else to_jpeg(self.encoded))

    def thumbnail(self, side: int, max_pixels: int | None = None) -> Image.Image:
        """Return the image with its annotated boxes drawn, as large as fits into a square, its aspect kept.

        Args:
            side: Of the square, in pixels.
            max_pixels: Largest image that is decoded for it, in pixels; None: any that `decode` does.

        Raises:
            ImageError: It cannot be decoded, or is larger than ``max_pixels``.
            ExampleError: It is raw, and its length is not that of its shape; or corners of boxes are not of type float.
        """
        from stoker.feed.pictures import draw_boxes, fit, usable_boxes  # noqa: PLC0415 - the read path needs none

        if max_pixels is not None and self.schema.image_encoding == "jpeg":
            kind = sniff(self.encoded)
            info = _native.probe_jpeg(self.encoded) if kind == "jpeg" else None
            width, height = (info.width, info.height) if info else dimensions(self.encoded, kind)
            if width * height > max_pixels:
                raise ImageError(f"{width} x {height} pixels are too many for a small picture")
        picture = fit(self.decode(), side, side)
        draw_boxes(picture, usable_boxes(self.boxes))
        return picture

    def _raw_pixels(self) -> NDArray[np.uint8]:
        height, width = self._raw_extent()
        if min(height, width) < 1 or height * width * 3 != len(self.encoded):
            message = f"{len(self.encoded)} bytes of pixels are not {height} x {width} x 3"
            raise ExampleError(f"sample {self.key} ({self.source}): {message}", source=self.source)
        pixels = np.frombuffer(self.encoded, np.uint8)
        if self._text(self.schema.order_key) == b"CHW":
            return np.ascontiguousarray(pixels.reshape(3, height, width).transpose(1, 2, 0))
        return pixels.reshape(height, width, 3).copy()

    def _raw_extent(self) -> tuple[int, int]:
        if self.schema.height_key is None or self.schema.width_key is None:
            side = round((len(self.encoded) / 3) ** 0.5)
            return side, side
        try:
            height, width = (int(self.features[key][1][0]) for key in (self.schema.height_key, self.schema.width_key))
        except (KeyError, IndexError, ValueError):
            raise ImageError(f"sample {self.key} ({self.source}) has no height or width") from None
        return height, width

    def _text(self, key: str | None) -> bytes:
        kind, values = self.features.get(key or "", ("", []))
        return cast("bytes", values[0]) if kind == "bytes" and values else b""


def label_of(features: Features, schema: SchemaInfo) -> int:
    """Return the class that features hold, as the loader gives it; -1 when there is none.

    Raises:
        ExampleError: It is no number; or it is said to be one-hot, and holds something else than zeros and at most a
            single 1.
    """
    if schema.label_key not in features:
        return -1
    kind, values = features[schema.label_key]
    if schema.label_encoding == "id":
        if kind != "int64" or not values:
            raise ExampleError(f"{schema.label_key!r} has {len(values)} values of kind {kind}, not an int64")
        return int(values[0])
    digits = list(cast("bytes", values[0])) if kind == "bytes" and values else values
    ones = [place for place, digit in enumerate(digits) if digit == 1]
    if len(ones) > 1 or any(digit not in (0, 1) for digit in digits):
        raise ExampleError(f"{schema.label_key!r} is not one-hot: {len(ones)} of its {len(digits)} values are 1")
    return ones[0] + schema.label_base if ones else -1
