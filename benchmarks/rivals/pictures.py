"""What a careful user writes where a rival leaves decoding to its user: the fastest form we found, measured.

simplejpeg with the fast DCT (libjpeg-turbo 3.1), then OpenCV's bilinear resize without antialiasing. It is imported by
the rivals that need it, in their environments, and is quicker than ``cv2.imdecode``, torchvision and Pillow.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import simplejpeg

from benchmarks.rivals.work import RATIO, RESIZE, SCALE, SIDE, SMALL_QUALITY, SMALL_SIDE

if TYPE_CHECKING:
    from collections.abc import Callable

Pixels = Any
Box = tuple[int, int, int, int]
"""Top, left, height, width."""

cv2.setNumThreads(0)


def random_box(height: int, width: int) -> Box:
    """The crop that torchvision's RandomResizedCrop draws."""
    for _ in range(10):
        area = height * width * random.uniform(*SCALE)
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
    return simplejpeg.decode_jpeg(encoded, "RGB", fastdct=True)


def decode_cv2(encoded: bytes) -> Pixels:
    """RGB pixels of a JPEG by OpenCV."""
    return cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR_RGB)


def transform(line: str, decoded: Callable[[bytes], Pixels] = decode) -> Callable[[bytes], Pixels]:
    """Return the function from JPEG bytes to the 224 x 224 pixels of a line."""

    def train(encoded: bytes) -> Pixels:
        image = _cut(decoded(encoded), random_box)
        return cv2.flip(image, 1) if random.random() < 0.5 else image

    def center(encoded: bytes) -> Pixels:
        return _cut(decoded(encoded), center_box)

    return train if line == "train" else center


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


def _cut(image: Pixels, box: Callable[[int, int], Box]) -> Pixels:
    top, left, height, width = box(*image.shape[:2])
    return cv2.resize(image[top : top + height, left : left + width], (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
