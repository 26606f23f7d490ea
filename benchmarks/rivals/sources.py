"""What every reader makes its data of: photographs, more of them for builds, small tensors, folders of other formats.

Photographs are repeated where there are too few, as symbolic links. Data are made once in a directory.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from benchmarks.rivals.formats import make_format
from benchmarks.rivals.work import FORMATS, RAW_SIDE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

JPEG_NAMES = (".jpg", ".jpeg")
_MOST_THUMBNAILS = 1000


class SourceError(Exception):
    """The photographs cannot be had."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """How much there is of everything.

    Attributes:
        photos: Photographs that readers read.
        build: Photographs that a build stores.
        raw: Tensors of 64 x 64.
        format: Photographs in another format; as many as there are, at most.
        large: Pictures of 12 megapixels.
    """

    photos: int = 1200
    build: int = 3000
    raw: int = 40_000
    format: int = 300
    large: int = 16


def make_sources(photos: Path, folder: Path, amounts: Amounts, lines: Sequence[str] = ()) -> None:
    """Make everything below ``folder`` unless it is there; of other formats the folders of these lines.

    Raises:
        SourceError: There are no photographs, or ``folder`` holds what was made of others.
    """
    made_of = json.dumps({"folder": str(photos.resolve()), **asdict(amounts)})
    stamp = folder / "made-of.json"
    if stamp.exists() and stamp.read_text() != made_of:
        raise SourceError(f"{folder} was made of {stamp.read_text()}, not of {made_of}; remove it, or name another")
    jpegs = sorted(path for path in photos.rglob("*") if path.suffix.lower() in JPEG_NAMES)
    if not jpegs:
        raise SourceError(f"there are no JPEGs below {photos}")
    folder.mkdir(parents=True, exist_ok=True)
    if not stamp.exists():
        _make_tree(jpegs, folder / "photos", amounts.photos)
        _make_tree(jpegs, folder / "build", amounts.build)
        _make_raw(jpegs[:_MOST_THUMBNAILS], folder, amounts.raw)
        stamp.write_text(made_of)
    for line in FORMATS:
        if line in lines:
            make_format(line, jpegs, folder, amounts.format, amounts.large)


def _make_tree(jpegs: Sequence[Path], tree: Path, count: int) -> None:
    """Link photographs into class folders, and list the links in the order in which all of them number samples."""
    links = []
    for number, path in enumerate(itertools.islice(itertools.cycle(jpegs), count)):
        link = tree / path.parent.name / f"{number:07d}.jpg"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path.resolve())
        links.append(str(link.absolute()))
    tree.with_suffix(".txt").write_text("\n".join(links) + "\n")


def _make_raw(jpegs: Sequence[Path], folder: Path, count: int) -> None:
    """Write the tensors as one NumPy file, and as a tree of PNGs of which Stoker builds its records."""
    pixels = np.lib.format.open_memmap(
        folder / "raw.npy", mode="w+", dtype=np.uint8, shape=(count, RAW_SIDE, RAW_SIDE, 3)
    )
    originals = folder / "thumbnails"
    originals.mkdir(exist_ok=True)
    for number, path in enumerate(jpegs[:count]):
        small = Image.open(path).convert("RGB").resize((RAW_SIDE, RAW_SIDE))
        small.save(originals / f"{number:04d}.png")
        pixels[number :: len(jpegs)] = np.asarray(small)
    pixels.flush()
    for number in range(count):
        link = folder / "raw" / f"{number // 1000:04d}" / f"{number:07d}.png"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to((originals / f"{number % len(jpegs):04d}.png").resolve())
