"""Pillow: decode, crop, resize, as a user's own code would: one file at a time, in threads, ahead, and cached."""

from __future__ import annotations

import functools
import io
import math
import random
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from stoker.inspect.bench.cases import RATIO, RESIZE, SCALE, SEED, SIDE
from stoker.inspect.bench.images import ImageList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from stoker.inspect.bench.cases import Task
    from stoker.inspect.bench.images import Corners

    Pixels = NDArray[np.uint8]

_BATCHES_AHEAD = 2
_BUCKET_THREADS_A_CPU = 8


def batches(task: Task, form: str) -> Iterator[int]:
    """Read without end, in the way that a form names; yield the images of each batch."""
    size, open_image = _opener(task, form)
    chance = random.Random(SEED)  # noqa: S311 - crops are not a secret
    corners = ImageList.read(task).corners if task.transform == "objects" else ()

    def one(number: int) -> list[Pixels]:
        return transforms_of(open_image(number), task.transform, chance, corners[number] if corners else ())

    order = _endless_order(size, shuffled=task.is_shuffled)
    if form.endswith("serial"):
        images: Iterator[list[Pixels]] = map(one, order)
    else:
        ahead = 1 if form.endswith("parallel") else 1 + _BATCHES_AHEAD
        threads = task.threads * (_BUCKET_THREADS_A_CPU if form.startswith("bucket") else 1)
        images = _in_threads(one, order, task.batch_size, threads, ahead)
    ready: list[Pixels] = []
    for made in images:  # an image with several objects may begin in one batch and end in the next
        ready += made
        while len(ready) >= task.batch_size:
            np.stack(ready[: task.batch_size])
            ready = ready[task.batch_size :]
            yield task.batch_size


def decode(file: Any) -> Image.Image:
    """Return the pixels of a path or an open file."""
    with Image.open(file) as image:
        return image.convert("RGB")


def transforms_of(
    image: Image.Image, transform: str, chance: random.Random, corners: Sequence[Corners]
) -> list[Pixels]:
    """Return 224 x 224 pixels: one transform of the whole image, or one of each annotated object."""
    if transform == "objects":
        return [_object(image, *box) for box in corners]
    if transform == "eval":
        return [_center(image)]
    pixels = _resized(image.crop(_random_box(*image.size, chance)))
    return [pixels[:, ::-1] if chance.random() < 0.5 else pixels]


def _opener(task: Task, form: str) -> tuple[int, Callable[[int], Image.Image]]:
    """Return how many images there are, and a function that opens one by its number."""
    images = ImageList.read(task)
    if form.startswith("bucket"):
        dataset = images.open_own()
        is_raw = dataset.schema.image_encoding == "raw"

        def fetched(number: int) -> Image.Image:
            sample = dataset[number]
            return Image.fromarray(sample.decode()) if is_raw else decode(io.BytesIO(sample.encoded))

        return len(dataset), fetched
    files = images.files(task)

    def opened(number: int) -> Image.Image:
        return decode(files[number])

    return len(files), functools.cache(opened) if form == "cache" else opened


def _endless_order(size: int, *, shuffled: bool) -> Iterator[int]:
    chance = random.Random(SEED)  # noqa: S311 - an order is not a secret
    while True:
        order = list(range(size))
        if shuffled:
            chance.shuffle(order)
        yield from order


def _in_threads(
    one: Callable[[int], list[Pixels]], order: Iterator[int], batch: int, threads: int, ahead: int
) -> Iterator[list[Pixels]]:
    """Yield images in order; when a batch begins, ``ahead`` batches have been asked for."""
    waiting: deque[list[Future[list[Pixels]]]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        while True:
            while len(waiting) < ahead:
                waiting.append([pool.submit(one, number) for number in islice(order, batch)])
            for future in waiting.popleft():
                yield future.result()


def _resized(image: Image.Image) -> Pixels:
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def _object(image: Image.Image, ymin: float, xmin: float, ymax: float, xmax: float) -> Pixels:
    width, height = image.size
    left, top = math.floor(xmin * width), math.floor(ymin * height)
    right, bottom = max(left + 1, math.ceil(xmax * width)), max(top + 1, math.ceil(ymax * height))
    return _resized(image.crop((left, top, right, bottom)))


def _center(image: Image.Image) -> Pixels:
    width, height = image.size
    scale = RESIZE / min(width, height)
    size = (max(RESIZE, int(width * scale)), max(RESIZE, int(height * scale)))
    left, top = round((size[0] - SIDE) / 2), round((size[1] - SIDE) / 2)
    resized = image.resize(size, Image.Resampling.BILINEAR)
    return np.asarray(resized.crop((left, top, left + SIDE, top + SIDE)))


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
