"""Bounding boxes from the XML files that lie beside ImageNet-shaped trees (PASCAL VOC's format)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError  # types only; defusedxml does the parsing

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from stoker.errors import SourceError, StorageError
from stoker.sources.reading import read_file
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

MAX_XML_BYTES = 2**22
"""Longest annotation that is read."""


def image_stem(path: bytes) -> bytes:
    """Return the name of a file without its folders and its ending, which is what its annotation is called."""
    return os.path.splitext(os.path.basename(path))[0]  # noqa: PTH119, PTH122 - pathlib has no bytes paths


@dataclass(frozen=True, slots=True)
class BoxFolder:
    """Where the annotations of one split lie.

    Attributes:
        path: Folder of the XML files: an absolute path or a URL.
        per_class: Whether they lie in a folder for each class below ``path``, or directly in it.
        class_names: The whole label set.
        suffix: How the name of each file ends; Stanford Dogs' have no ending.
    """

    path: bytes
    per_class: bool
    class_names: frozenset[bytes]
    suffix: bytes = b".xml"

    @property
    def where(self) -> str:
        """The folder."""
        return os.fsdecode(self.path)

    def read(self, item_path: bytes, class_name: bytes) -> list[Box]:
        """Return the boxes of an image; see `read_boxes`.

        Raises:
            SourceError: The annotation is damaged.
        """
        return read_boxes(self.locate(class_name, item_path), class_name, self.class_names)

    def locate(self, class_name: bytes, image_path: bytes) -> bytes:
        """Return where the XML of an image must be, whether or not it is there."""
        stem = image_stem(image_path)
        parts = (self.path, class_name, stem) if self.per_class and class_name else (self.path, stem)
        return b"/".join(parts) + self.suffix


@dataclass(frozen=True, slots=True)
class NamedBox:
    """A box and the name that its annotation gives to the object."""

    name: bytes
    box: Box

    def is_of(self, class_name: bytes, class_names: Collection[bytes]) -> bool:
        """Return whether it belongs to an image of a class, by the rule of `read_boxes`."""
        return self.name == class_name or self.name not in class_names


def read_boxes(path: bytes, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
    """Return the boxes of one image, as fractions of its width and height.

    Boxes that name another class of the label set are dropped; names outside it are kept, because ImageNet's files
    often carry a breed's name instead of its id.

    Args:
        path: The XML file, or its URL. An image without one has no boxes.
        class_name: Class of the image.
        class_names: The whole label set.

    Raises:
        SourceError: The file is damaged, or a number in it is not finite.
        StorageError: The store that it lies in is gone.
    """
    try:
        text = read_file(path, 2**12)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except StorageError:
        raise  # the store is gone; it is not this annotation
    except OSError as error:
        raise SourceError(f"cannot read the annotation: {error.strerror or error}", path=os.fsdecode(path)) from error
    try:
        return [named.box for named in parse_annotation(text) if named.is_of(class_name, class_names)]
    except ValueError as error:
        raise SourceError(f"damaged annotation: {error}", path=os.fsdecode(path)) from error


def parse_annotation(text: bytes) -> list[NamedBox]:
    """Return all boxes of an annotation.

    Coordinates are divided by the size that the XML states (annotators saw scaled pictures, so it may differ from the
    image's), put in order and clamped to 0..1; empty boxes are dropped.

    Raises:
        ValueError: It is not such an XML document, or a number in it is not finite.
    """
    if len(text) > MAX_XML_BYTES:
        raise ValueError(f"{len(text)} bytes of XML, more than {MAX_XML_BYTES}")
    try:
        root: Element = fromstring(text)
    except (ParseError, DefusedXmlException, LookupError) as error:  # the last: of an encoding that Python lacks
        raise ValueError(str(error)) from error
    return list(_boxes(root))


def place_box(x: Sequence[float], y: Sequence[float], width: float, height: float) -> Box | None:
    """Return the box between two corners, as fractions of a width and a height; None if nothing of it is inside.

    Args:
        x: The left and the right edge, in any order.
        y: The top and the bottom edge, in any order.
        width: What counts as 1 across.
        height: What counts as 1 downwards.
    """
    left, right = sorted(min(max(value / width, 0.0), 1.0) for value in x)
    top, bottom = sorted(min(max(value / height, 0.0), 1.0) for value in y)
    return Box(left, top, right, bottom) if left < right and top < bottom else None


def _boxes(root: Element) -> Iterator[NamedBox]:
    width, height = (_number(root, f"size/{side}") for side in ("width", "height"))
    if width <= 0 or height <= 0:
        raise ValueError(f"size is {width:g} x {height:g}")
    for item in root.iterfind("object"):
        name = (item.findtext("name") or "").strip().encode()
        for corners in item.iterfind("bndbox"):
            x = [_number(corners, tag) for tag in ("xmin", "xmax")]
            y = [_number(corners, tag) for tag in ("ymin", "ymax")]
            box = place_box(x, y, width, height)
            if box is not None:
                yield NamedBox(name, box)


def _number(element: Element, path: str) -> float:
    text = element.findtext(path)
    if text is None:
        raise ValueError(f"no <{path}>")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"<{path}> is {text.strip()[:40]!r}, which is no finite number")
    return value
