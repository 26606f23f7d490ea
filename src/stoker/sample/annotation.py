"""Bounding boxes as ImageNet has them: one PASCAL VOC file an image."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stoker.types import Box


NOISY = "an annotation with swapped corners, out-of-range coordinates and no file name"


def format_annotation(wnid: str, stem: str, size: tuple[int, int], boxes: Sequence[Box]) -> bytes:
    """Return the XML of one image of ``size`` (width, height)."""
    width, height = size
    objects = "".join(
        _object(wnid, [round(b.xmin * width), round(b.ymin * height), round(b.xmax * width), round(b.ymax * height)])
        for b in boxes
    )
    return _document(wnid, stem, size, objects)


def format_noisy_annotation(wnid: str, size: tuple[int, int]) -> bytes:
    """Return an annotation with the known noise: corners swapped, coordinates out of range, a name not filled in."""
    width, height = size
    return _document(wnid, "%s", size, _object(wnid, [width + 40, height // 2, width // 4, -7]))


def _document(wnid: str, stem: str, size: tuple[int, int], objects: str) -> bytes:
    return (
        f"<annotation>\n\t<folder>{escape(wnid)}</folder>\n\t<filename>{escape(stem)}</filename>\n"
        f"\t<size>\n\t\t<width>{size[0]}</width>\n\t\t<height>{size[1]}</height>\n\t\t<depth>3</depth>\n\t</size>\n"
        f"\t<segmented>0</segmented>\n{objects}</annotation>\n"
    ).encode()


def _object(name: str, corners: Sequence[int]) -> str:
    xmin, ymin, xmax, ymax = corners
    return (
        f"\t<object>\n\t\t<name>{escape(name)}</name>\n\t\t<difficult>0</difficult>\n\t\t<bndbox>\n"
        f"\t\t\t<xmin>{xmin}</xmin>\n\t\t\t<ymin>{ymin}</ymin>\n\t\t\t<xmax>{xmax}</xmax>\n\t\t\t<ymax>{ymax}</ymax>\n"
        "\t\t</bndbox>\n\t</object>\n"
    )
