"""Bounding boxes from the XML files that lie beside ImageNet-shaped trees (PASCAL VOC's format)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ParseError  # types only; defusedxml does the parsing

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from stoker.errors import SourceError
from stoker.sources.reading import read_file
from stoker.types import Box

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_MAX_XML_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class BoxFolder:
    """Where the annotations of one split lie.

    Attributes:
        path: Folder of the XML files.
        per_class: Whether they lie in a folder for each class below ``path``, or directly in it.
    """

    path: bytes
    per_class: bool

    def locate(self, class_name: bytes, image_path: bytes) -> bytes:
        """Return where the XML of an image must be, whether or not it is there."""
        stem = os.path.splitext(os.path.basename(image_path))[0]  # noqa: PTH119, PTH122 - pathlib has no bytes paths
        parts = (self.path, class_name, stem) if self.per_class else (self.path, stem)
        return b"/".join(parts) + b".xml"


def read_boxes(path: bytes, class_name: bytes, class_names: Collection[bytes]) -> list[Box]:
    """Return the boxes of one image, as fractions of its width and height.

    Coordinates are divided by the size that the XML states (annotators saw scaled pictures, so it may differ from the
    image's), put in order and clamped to 0..1; empty boxes are dropped. So are boxes that name another class of the
    label set; names outside it are kept, because ImageNet's files often carry a breed's name instead of its id.

    Args:
        path: The XML file. An image without one has no boxes.
        class_name: Class of the image.
        class_names: The whole label set.

    Raises:
        SourceError: The file is damaged, or a number in it is not finite.
    """
    try:
        text = read_file(path, 2**12)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SourceError(f"cannot read the annotation: {error.strerror}", path=os.fsdecode(path)) from error
    try:
        return list(_boxes(_parse(text), class_name, class_names))
    except (ValueError, ParseError, DefusedXmlException) as error:
        raise SourceError(f"damaged annotation: {error}", path=os.fsdecode(path)) from error


def _parse(text: bytes) -> Element:
    if len(text) > _MAX_XML_BYTES:
        raise ValueError(f"{len(text)} bytes of XML, more than {_MAX_XML_BYTES}")
    root: Element = fromstring(text)
    return root


def _boxes(root: Element, class_name: bytes, class_names: Collection[bytes]) -> Iterator[Box]:
    width, height = (_number(root, f"size/{side}") for side in ("width", "height"))
    if width <= 0 or height <= 0:
        raise ValueError(f"size is {width:g} x {height:g}")
    for item in root.iterfind("object"):
        name = (item.findtext("name") or "").strip().encode()
        if name != class_name and name in class_names:
            continue
        for corners in item.iterfind("bndbox"):
            x = sorted(_fraction(_number(corners, tag), width) for tag in ("xmin", "xmax"))
            y = sorted(_fraction(_number(corners, tag), height) for tag in ("ymin", "ymax"))
            if x[0] < x[1] and y[0] < y[1]:
                yield Box(x[0], y[0], x[1], y[1])


def _number(element: Element, path: str) -> float:
    text = element.findtext(path)
    if text is None:
        raise ValueError(f"no <{path}>")
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"<{path}> is {text.strip()}")
    return value


def _fraction(value: float, whole: float) -> float:
    return min(max(value / whole, 0.0), 1.0)
