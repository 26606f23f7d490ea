"""Pillow: decode, crop, resize, as a user's own code would: one file at a time, in threads, and cached."""

from __future__ import annotations

import functools
import math
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from stoker.inspect.bench.cases import RATIO, SCALE, SEED
from stoker.inspect.measuring import RESIZE, SIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker.inspect.bench.cases import BenchSpec, Case
    from stoker.inspect.bench.images import BenchImages


def batches(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Read without end, in the way of a case; yield the images of each batch."""
    chance = random.Random(SEED)  # noqa: S311 - crops are not a secret
    opened = functools.cache(decode) if case.keeps else decode

    def prepared(path: str) -> NDArray[np.uint8]:
        return random_crop(opened(path), chance) if spec.transform == "train" else center(opened(path))

    order = _endless_order(images.files(), shuffled=spec.is_shuffled)
    with ThreadPoolExecutor(spec.threads) as pool:
        apply = map if case.key == "python-serial" else pool.map
        while True:
            np.stack(list(apply(prepared, islice(order, spec.batch_size))))
            yield spec.batch_size


def decode(path: str) -> Image.Image:
    """Return the pixels of a file."""
    with Image.open(path) as image:
        return image.convert("RGB")


def random_crop(image: Image.Image, chance: random.Random) -> NDArray[np.uint8]:
    """Return uint8 (224, 224, 3): a random crop, resized and perhaps mirrored."""
    cropped = image.crop(_random_box(*image.size, chance))
    pixels = np.asarray(cropped.resize((SIDE, SIDE), Image.Resampling.BILINEAR))
    return pixels[:, ::-1] if chance.random() < 0.5 else pixels


def center(image: Image.Image) -> NDArray[np.uint8]:
    """Return uint8 (224, 224, 3): the centre of the image with a shorter side of 256."""
    width, height = image.size
    scale = RESIZE / min(width, height)
    size = (max(RESIZE, int(width * scale)), max(RESIZE, int(height * scale)))
    left, top = round((size[0] - SIDE) / 2), round((size[1] - SIDE) / 2)
    resized = image.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(resized.crop((left, top, left + SIDE, top + SIDE)))


def _endless_order(paths: list[str], *, shuffled: bool) -> Iterator[str]:
    chance = random.Random(SEED)  # noqa: S311 - an order is not a secret
    while True:
        if shuffled:
            chance.shuffle(paths)
        yield from paths


def _random_box(width: int, height: int, chance: random.Random) -> tuple[int, int, int, int]:
    """The crop that torchvision's RandomResizedCrop draws: the first of ten attempts that fits, or all."""
    for _ in range(10):
        area = width * height * chance.uniform(*SCALE)
        aspect = math.exp(chance.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = chance.randint(0, width - w), chance.randint(0, height - h)
            return left, top, left + w, top + h
    return 0, 0, width, height
