"""What the photographs say that the datasets were built from, read without Stoker: the truth for every client."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from pathlib import Path


NUMBERS = {
    "n01440764": 0, "n01530575": 10, "n01641577": 30, "n01773549": 73, "n01882714": 105,
    "n02007558": 130, "n02099601": 207, "n02281406": 325, "n02504458": 386, "n03028079": 497,
}  # fmt: skip
"""Where the classes of `stoker sample` are among ImageNet's 1,000, as torchvision's models number them."""


@dataclass(frozen=True)
class Photo:
    """One source file: its class folder, the number of that folder among all, sorted, and among ImageNet's classes."""

    path: Path
    folder: str
    index: int

    @property
    def imagenet(self) -> int:
        """The label that the presets of systems made for ImageNet count from, 0 or 1."""
        return NUMBERS[self.folder]


def photographs(tree: Path) -> dict[str, Photo]:
    """Return the files of a tree of class folders under their base names."""
    folders = sorted(path.name for path in tree.iterdir())
    return {
        path.name: Photo(path, folder, index)
        for index, folder in enumerate(folders)
        for path in (tree / folder).rglob("*.*")
        if path.suffix.lower() in (".jpeg", ".jpg")
    }


def flat_photographs(tree: Path) -> dict[str, Path]:
    """Return the files of a directory without class folders."""
    return {path.name: path for path in tree.iterdir()}


def must_be_converted(data: Path) -> set[str]:
    """Return the base names of the photographs that cannot be kept as they are: PNG, and CMYK JPEG."""
    return set(json.loads((data / "converted.json").read_text()))


def class_texts(data: Path) -> dict[str, str]:
    """Return the words of each class folder of the photographs."""
    lines = (data / "photos" / "imagenet_metadata.txt").read_text().splitlines()
    return dict(line.split("\t") for line in lines)


def annotated_boxes(data: Path, photo: Photo) -> list[tuple[float, float, float, float]]:
    """Return (xmin, ymin, xmax, ymax) of every object in the annotation of a photograph, in 0..1."""
    path = data / "photos" / "bounding_boxes" / photo.folder / f"{photo.path.stem}.xml"
    if not path.exists():
        return []
    document = ET.parse(path)
    width, height = (int(document.findtext(f"size/{side}", "0")) for side in ("width", "height"))
    corners = [
        [int(element.findtext(f"bndbox/{corner}", "-1")) for corner in ("xmin", "ymin", "xmax", "ymax")]
        for element in document.iter("object")
    ]
    return [(x0 / width, y0 / height, x1 / width, y1 / height) for x0, y0, x1, y1 in corners]


def report(client: str, version: str, records: int) -> None:
    """Print what the driver shows of a client that agreed with everything."""
    print(json.dumps({"client": client, "version": version, "records": records}))
