"""What the photographs say that the datasets were built from, read without Stoker: the truth for every client."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Photo:
    """One source file: its class folder, and the place of that folder among all, sorted."""

    path: Path
    folder: str
    index: int


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
        [int(found.findtext(f"bndbox/{corner}", "-1")) for corner in ("xmin", "ymin", "xmax", "ymax")]
        for found in document.iter("object")
    ]
    return [(x0 / width, y0 / height, x1 / width, y1 / height) for x0, y0, x1, y1 in corners]


def report(client: str, version: str, records: int) -> None:
    """Print what the driver shows of a client that agreed with everything."""
    print(json.dumps({"client": client, "version": version, "records": records}))
