"""What a careful user writes where a rival leaves decoding to its user: the fastest form we found, measured.

simplejpeg with the fast DCT and upsampling (libjpeg-turbo 3.1), then OpenCV's bilinear resize without antialiasing. It
is imported by the rivals that need it, in their environments, and is quicker than ``cv2.imdecode``, torchvision and
Pillow. Large crops may be decoded at a half, a quarter or an eighth of their size.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import simplejpeg

from benchmarks.rivals.work import RATIO, RESIZE, SCALE, SIDE, SMALL_QUALITY, SMALL_SIDE, VIEWS

if TYPE_CHECKING:
    from collections.abc import Callable

Pixels = Any
Box = tuple[int, int, int, int]
"""Top, left, height, width."""

cv2.setNumThreads(0)


def random_box(height: int, width: int, scale: tuple[float, float] = SCALE) -> Box:
    """The crop that torchvision's RandomResizedCrop draws."""
    for _ in range(10):
        area = height * width * random.uniform(*scale)
        aspect = math.exp(random.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    w, h = min(width, round(height * RATIO[1])), min(height, round(width / RATIO[0]))
    return (height - h) // 2, (width - w) // 2, h, w


def center_box(height: int, width: int) -> Box:
    """What a resize to 256 and the centre 224 see of an image, as one crop."""
    side = round(min(height, width) * SIDE / RESIZE)
    return (height - side) // 2, (width - side) // 2, side, side


def decode(encoded: bytes) -> Pixels:
    """RGB pixels of a JPEG by the fast DCT."""
    return simplejpeg.decode_jpeg(encoded, "RGB", fastdct=True, fastupsample=True)


def decode_cv2(encoded: bytes) -> Pixels:
    """RGB pixels of an image by OpenCV."""
    return cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR_RGB)


def decode_smaller(encoded: bytes, factor: int) -> Pixels:
    """RGB pixels of a JPEG at a fraction of its size."""
    height, width = simplejpeg.decode_jpeg_header(encoded)[:2]
    smallest = {"min_height": -(-height // factor), "min_width": -(-width // factor)}
    return simplejpeg.decode_jpeg(encoded, "RGB", fastdct=True, fastupsample=True, **smallest)


def decode_smaller_cv2(encoded: bytes, factor: int) -> Pixels:
    """RGB pixels of a JPEG at a fraction of its size by OpenCV."""
    # The flags of colours in OpenCV's own order refuse to be joined with this one.
    reduced = {1: 0, 2: cv2.IMREAD_REDUCED_GRAYSCALE_2, 4: cv2.IMREAD_REDUCED_GRAYSCALE_4}
    flags = cv2.IMREAD_COLOR_RGB | reduced.get(factor, cv2.IMREAD_REDUCED_GRAYSCALE_8)
    return cv2.imdecode(np.frombuffer(encoded, np.uint8), flags)


def factor_for(height: int, width: int) -> int:
    """By how much a crop may be shrunk while it is decoded."""
    return next((factor for factor in (8, 4, 2) if min(height, width) >= factor * SIDE), 1)


def smaller_transform(decoded: Callable[[bytes, int], Pixels]) -> Callable[[bytes], Pixels]:
    """Return the function from JPEG bytes to a random crop, decoded as small as it may be."""

    def train(encoded: bytes) -> Pixels:
        box = random_box(*simplejpeg.decode_jpeg_header(encoded)[:2])
        factor = factor_for(*box[2:])
        top, left, height, width = (round(part / factor) for part in box)
        image = decoded(encoded, factor)[top : top + height, left : left + width]
        image = cv2.resize(image, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
        return cv2.flip(image, 1) if random.random() < 0.5 else image

    return train


def transform(line: str, decoded: Callable[[bytes], Pixels] = decode) -> Callable[[bytes], Pixels]:
    """Return the function from encoded bytes to the pixels of a line: 224 x 224, or those of all crops."""

    def train(encoded: bytes) -> Pixels:
        image = decoded(encoded)
        return _random_crop(image, SIDE, random_box(*image.shape[:2]))

    def views(encoded: bytes) -> list[Pixels]:
        image = decoded(encoded)
        height, width = image.shape[:2]
        return [_random_crop(image, side, random_box(height, width, scale)) for side, scale in VIEWS]

    def center(encoded: bytes) -> Pixels:
        image = decoded(encoded)
        return _cut(image, SIDE, center_box(*image.shape[:2]))

    return {"train": train, "multi-crop": views, "eval": center}[line]


def make_smaller(encoded: bytes) -> Pixels:
    """Pixels with a shorter side of 256."""
    image = decode(encoded)
    height, width = image.shape[:2]
    scale = SMALL_SIDE / min(height, width)
    size = (max(SMALL_SIDE, round(width * scale)), max(SMALL_SIDE, round(height * scale)))
    return cv2.resize(image, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR)


def payload(line: str, path: str) -> bytes:
    """What a build stores of a photograph: its bytes, or those of the smaller image."""
    with open(path, "rb") as file:  # noqa: PTH123 - half the time of Path.read_bytes, and rivals get the quicker one
        encoded = file.read()
    if line == "keep":
        return encoded
    small: bytes = simplejpeg.encode_jpeg(
        make_smaller(encoded), quality=SMALL_QUALITY, colorspace="RGB", colorsubsampling="420", fastdct=True
    )
    return small


def _random_crop(image: Pixels, side: int, box: Box) -> Pixels:
    crop = _cut(image, side, box)
    return cv2.flip(crop, 1) if random.random() < 0.5 else crop


def _cut(image: Pixels, side: int, box: Box) -> Pixels:
    top, left, height, width = box
    return cv2.resize(image[top : top + height, left : left + width], (side, side), interpolation=cv2.INTER_LINEAR)
