"""One case in a process of its own: ``python -m stoker.inspect.bench_reading CASE FOLDER``, the first as JSON.

It warms up for as long as a turn takes, a second at most, and then takes turns; see `stoker.inspect.measuring`. Cases
share no threads, imports or memory, and are not started again for each round.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from stoker.inspect.bench import LIMIT, SEED, BenchImages, BenchSpec, Case
from stoker.inspect.measuring import RESIZE, SIDE, Meter, decode_endlessly, drop_from_page_cache, endless, loader_alone
from stoker.loader import MemoryCache, open_dataset

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SCALE = (0.08, 1.0)
RATIO = (3 / 4, 4 / 3)
_MOST_IMAGES = 4096  # kept in memory by the codec alone; enough that the processor's caches do not help
_IMAGES_A_RUN = 512  # of the codec: its threads are started again each run, so a run is long compared with that
_CACHE_BUDGET = 2**40  # whether there is enough memory was checked before


def batches(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Return the images of each batch of a case, which reads without end."""
    if case.module:
        other: Iterator[int] = importlib.import_module(case.module).batches(spec, images, case)
        return other
    if case.key == LIMIT.key:
        return _codec_alone(spec, images)
    return _with_stoker(spec, images, case) if case.group == "stoker" else _with_pillow(spec, images, case)


def turn(meter: Meter, seconds: float, images: int, cold: list[Path] | None) -> dict[str, Any]:
    """Take one turn; a cold one is one pass over the images at most, because a second would not be cold."""
    meter.lead_in(seconds)
    if cold is None:
        return meter.measure(seconds)
    # Here and not in the process that hands out the turns: the line above has just read some of the files.
    still_cached = drop_from_page_cache(cold)
    return {**meter.measure(seconds, images), "still_cached": still_cached}


def main(case_json: str, folder: str) -> None:
    """Serve one case until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what libraries print must not look like an answer
    case, images = Case(**json.loads(case_json)), BenchImages.read(folder)
    spec = images.spec
    meter = Meter(batches(spec, images, case))
    count = images.read_by(case)
    meter.warm_up(spec.seconds, count if case.keeps else 0)
    cold = images.files_read_by(case) if spec.cold else None
    answers.write("{}\n")
    for line in sys.stdin:
        answers.write(json.dumps(turn(meter, float(line), count, cold)) + "\n")
    os._exit(0)  # threads of libraries would be waited for, some of them for ever


# Pillow.


def _with_pillow(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Decode, crop, resize, as a user's own code would: one file at a time, in threads, and cached."""
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


# Stoker.


def _with_stoker(spec: BenchSpec, images: BenchImages, case: Case) -> Iterator[int]:
    """Load each form of the images, and the user's data where they lie."""
    is_own = case.needs == "own"
    settings = {
        "batch_size": spec.batch_size,
        "transform": spec.crop,
        "decode": "fast" if case.key == "stoker-fast" else "exact",
        "shuffle": spec.is_shuffled,
        "seed": SEED,
        "threads": spec.threads,
        "tail": "wrap",
        "cache": MemoryCache(_CACHE_BUDGET, keep="decoded") if case.keeps else None,
        # Only the user's own data may hold images that cannot be decoded.
        "on_bad": "substitute" if is_own else "raise",
    }
    dataset = images.open_own() if is_own else open_dataset(images.path_of(case.needs), "train")
    with loader_alone(dataset, **settings) as loader:
        yield from map(len, endless(loader))


def _codec_alone(spec: BenchSpec, images: BenchImages) -> Iterator[int]:
    """Decode and resize the regions that the loader decodes, from memory, in the loader's order."""
    dataset = open_dataset(images.path_of("plain"), "train")
    encoded = [dataset[i].encoded for i in range(min(len(dataset), _MOST_IMAGES))]
    return decode_endlessly(encoded, spec.crop, spec.threads, _IMAGES_A_RUN, seed=SEED if spec.is_shuffled else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
