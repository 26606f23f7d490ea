"""Pillow: decode, crop, resize, as a user's own code would, one image or as a pool of threads."""

from __future__ import annotations

import io
import math
import random
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from stoker.feed import open_dataset
from stoker.measure.task import RATIO, RESIZE, SCALE, SEED, SIDE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stoker.measure.task import Task

_BATCHES_AHEAD = 2


def transform(encoded: bytes, view: str, chance: random.Random) -> NDArray[np.uint8]:
    """Return the 224 x 224 pixels of one image."""
    image = Image.open(io.BytesIO(encoded)).convert("RGB")
    if view == "eval":
        return _center(image)
    resized = image.crop(_random_box(*image.size, chance)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    pixels: NDArray[np.uint8] = np.asarray(resized)
    return pixels[:, ::-1] if chance.random() < 0.5 else pixels


def _center(image: Image.Image) -> NDArray[np.uint8]:
    width, height = image.size
    scale = RESIZE / min(width, height)
    size = (max(RESIZE, int(width * scale)), max(RESIZE, int(height * scale)))
    left, top = round((size[0] - SIDE) / 2), round((size[1] - SIDE) / 2)
    resized = image.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(resized.crop((left, top, left + SIDE, top + SIDE)))


def _random_box(width: int, height: int, chance: random.Random) -> tuple[int, int, int, int]:
    for _ in range(10):
        area = width * height * chance.uniform(*SCALE)
        aspect = math.exp(chance.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = chance.randint(0, width - w), chance.randint(0, height - h)
            return left, top, left + w, top + h
    return 0, 0, width, height


def batches(task: Task) -> Iterator[int]:
    """Keep ``task.threads`` threads busy; the next batches are worked on while one is put together."""
    dataset = open_dataset(task.dataset, task.split)
    chance = random.Random(SEED)  # noqa: S311 - crops are no secret

    def one(index: int) -> NDArray[np.uint8]:
        return transform(dataset[index].encoded, task.view, chance)

    order = _endless_order(len(dataset), task.view, chance)
    waiting: deque[list[Future[NDArray[np.uint8]]]] = deque()
    with ThreadPoolExecutor(task.threads) as pool:
        while True:
            while len(waiting) <= _BATCHES_AHEAD:
                waiting.append([pool.submit(one, index) for index in islice(order, task.batch_size)])
            yield len(np.stack([future.result() for future in waiting.popleft()]))


def _endless_order(size: int, view: str, chance: random.Random) -> Iterator[int]:
    while True:
        order = list(range(size))
        if view == "train":
            chance.shuffle(order)
        yield from order
