"""Folders of images that are not baseline JPEGs of a usual size, one for each line that reads one.

All are made of the photographs by Pillow: PNG and WebP with its default settings, progressive JPEGs with the tables of
the photograph, thumbnails, and pictures of 12 megapixels put together of several photographs: either enlarged, with the
noise of a sensor, as a camera's, or as they are, with much more detail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from PIL import Image

from benchmarks.rivals.work import THUMBNAIL_SIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

WIDTH, HEIGHT = 4000, 3000
_ENLARGED, _AS_THEY_ARE = 3, 8  # photographs in a row of a large picture
_NOISE = 3.0  # standard deviation
_THUMBNAILS = 16  # of each photograph


class UnsavedImage(NamedTuple):
    """What becomes a file.

    Attributes:
        image: The picture.
        suffix: Of the file's name; it decides the format.
        settings: Pillow's for this format.
    """

    image: Image.Image
    suffix: str
    settings: dict[str, Any]


def progressive(photo: Path) -> UnsavedImage:
    """A photograph encoded again with its own tables; what is named .jpg and is another format has none."""
    image = Image.open(photo)
    if image.format != "JPEG":
        return UnsavedImage(image.convert("RGB"), ".jpg", {"quality": 95, "progressive": True})
    return UnsavedImage(image, ".jpg", {"quality": "keep", "progressive": True})


def large(photos: Sequence[Path], number: int, row: int, *, progressive: bool) -> UnsavedImage:
    """A picture of 12 megapixels with so many photographs in each row and column."""
    picture = Image.new("RGB", (WIDTH, HEIGHT))
    width, height = -(-WIDTH // row), -(-HEIGHT // row)
    for tile in range(row * row):
        photo = Image.open(photos[(number * row * row + tile) % len(photos)]).convert("RGB")
        if row == _ENLARGED:
            photo = photo.resize((width, height), Image.Resampling.LANCZOS)
        elif photo.width < width or photo.height < height:
            photo = photo.resize((max(width, photo.width), max(height, photo.height)))
        picture.paste(photo.crop((0, 0, width, height)), (tile % row * width, tile // row * height))
    if row == _ENLARGED:
        noise = np.random.default_rng(number).normal(0, _NOISE, (HEIGHT, WIDTH, 1))
        picture = Image.fromarray(np.clip(np.asarray(picture) + noise, 0, 255).astype(np.uint8))
    return UnsavedImage(picture, ".jpg", {"quality": 92, "subsampling": "4:2:0", "progressive": progressive})


def thumbnail(photos: Sequence[Path], number: int) -> UnsavedImage:
    """A sixteenth of a photograph."""
    image, part = Image.open(photos[number // _THUMBNAILS % len(photos)]).convert("RGB"), number % _THUMBNAILS
    width, height = image.width / 4, image.height / 4
    left, top = part % 4 * width, part // 4 * height
    box = (left, top, left + width, top + height)
    return UnsavedImage(image.resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE), box=box), ".png", {})


MAKERS: dict[str, Callable[[Sequence[Path], int], UnsavedImage]] = {
    "png": lambda photos, number: UnsavedImage(Image.open(photos[number]).convert("RGB"), ".png", {}),
    "webp": lambda photos, number: UnsavedImage(Image.open(photos[number]).convert("RGB"), ".webp", {}),
    "progressive": lambda photos, number: progressive(photos[number]),
    "camera": lambda photos, number: large(photos, number, _ENLARGED, progressive=False),
    "camera-progressive": lambda photos, number: large(photos, number, _ENLARGED, progressive=True),
    "dense": lambda photos, number: large(photos, number, _AS_THEY_ARE, progressive=False),
    "dense-progressive": lambda photos, number: large(photos, number, _AS_THEY_ARE, progressive=True),
    "thumbnails": thumbnail,
}
"""What the images of each line are, of the photographs and a number."""


def make_format(line: str, photos: Sequence[Path], folder: Path, photo_count: int, large_count: int) -> None:
    """Make the folder of a line, and the list of its images, unless they are there."""
    listed = folder / f"{line}.txt"
    if listed.exists():
        return
    count = min(photo_count, len(photos))
    if line == "thumbnails":
        count *= _THUMBNAILS
    elif line.startswith(("camera", "dense")):
        count = large_count
    paths = []
    for number in range(count):
        image, suffix, settings = MAKERS[line](photos, number)
        path = folder / line / f"{number % 10}" / f"{number:07d}{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path, **settings)
        paths.append(str(path.absolute()))
    listed.write_text("\n".join(paths) + "\n")
