"""Pillow: decode, crop, resize, as a user's own code would: one file at a time, in threads, ahead, and cached."""

from __future__ import annotations

import math
import random
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from stoker.measure.task import RATIO, RESIZE, SCALE, SEED, SIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from stoker.measure.task import Corners, Task

    Pixels = NDArray[np.uint8]

_BATCHES_AHEAD = 2


def decode(file: Any) -> Image.Image:
    """Return the pixels of a path or an open file."""
    with Image.open(file) as image:
        return image.convert("RGB")


def views_of(image: Image.Image, view: str, chance: random.Random, corners: Sequence[Corners]) -> list[Pixels]:
    """Return 224 x 224 pixels: one view of the whole image, or one of each annotated object."""
    if view == "objects":
        return [_object(image, *box) for box in corners]
    if view == "eval":
        return [_center(image)]
    resized = image.crop(_random_box(*image.size, chance)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    pixels: Pixels = np.asarray(resized)
    return [pixels[:, ::-1] if chance.random() < 0.5 else pixels]


def view_of(file: Any, view: str, chance: random.Random) -> Pixels:
    """Return the one view of the image in a file; for readers that know no objects."""
    return views_of(decode(file), view, chance, ())[0]


def _object(image: Image.Image, ymin: float, xmin: float, ymax: float, xmax: float) -> Pixels:
    width, height = image.size
    left, top = math.floor(xmin * width), math.floor(ymin * height)
    box = (left, top, max(left + 1, math.ceil(xmax * width)), max(top + 1, math.ceil(ymax * height)))
    return np.asarray(image.crop(box).resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def _center(image: Image.Image) -> Pixels:
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


def endless_order(size: int, *, shuffled: bool) -> Iterator[int]:
    """Yield numbers below ``size``, epoch after epoch."""
    chance = random.Random(SEED)  # noqa: S311 - an order is no secret
    while True:
        order = list(range(size))
        if shuffled:
            chance.shuffle(order)
        yield from order


def batches(task: Task, form: str) -> Iterator[int]:
    """Read in one of four ways."""
    files = task.files()
    open_image: Callable[[int], Image.Image] = lambda number: decode(files.paths[number])  # noqa: E731
    if form == "cache":
        kept: dict[int, Image.Image] = {}
        read = open_image

        def open_image(number: int) -> Image.Image:
            found = kept.get(number)
            if found is None:
                found = kept[number] = read(number)
            return found

    yield from batches_of(task, form, len(files.paths), open_image, task.threads)


def batches_of(
    task: Task, form: str, size: int, open_image: Callable[[int], Image.Image], threads: int
) -> Iterator[int]:
    """Make batches of images that a function opens by their numbers.

    Args:
        task: What to do.
        form: ``serial``: no threads. ``parallel``: threads, one batch after the other. Otherwise: batches ahead.
        size: How many images there are.
        open_image: Returns the pixels of one.
        threads: Threads, where there are some.
    """
    chance = random.Random(SEED)  # noqa: S311 - crops are no secret
    corners = task.files().corners if task.view == "objects" else ()

    def one(number: int) -> list[Pixels]:
        return views_of(open_image(number), task.view, chance, corners[number] if corners else ())

    order = endless_order(size, shuffled=task.is_shuffled)
    if form == "serial":
        images: Iterator[list[Pixels]] = map(one, order)
    else:
        ahead = 1 if form == "parallel" else 1 + _BATCHES_AHEAD
        images = _in_threads(one, order, task.batch_size, threads, ahead)
    yield from _stacked(images, task.batch_size)


def _in_threads(
    one: Callable[[int], list[Pixels]], order: Iterator[int], batch: int, threads: int, ahead: int
) -> Iterator[list[Pixels]]:
    """Yield images in order; at the start of a batch so many batches are asked for."""
    waiting: deque[list[Future[list[Pixels]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        while True:
            while len(waiting) < ahead:
                waiting.append([pool.submit(one, number) for number in islice(order, batch)])
            for future in waiting.popleft():
                yield future.result()


def _stacked(images: Iterator[list[Pixels]], batch: int) -> Iterator[int]:
    """Make full batches, of which one image of a file may be in this and one in the next."""
    ready: list[Pixels] = []
    for made in images:
        ready += made
        while len(ready) >= batch:
            np.stack(ready[:batch])
            ready = ready[batch:]
            yield batch
