"""Compares cutting, resizing and mirroring with Pillow's, over as many random cases as you ask for.

    python scripts/fuzz_resample.py CASES [SEED]

A case has random pixels of random size, a box in them, a size, a filter, a window of the result, and a mirror or none.
One case in eight begins with a JPEG, of which only the box is decoded. Prints the number of cases and the largest
difference, and ends with 1 if there is any; a case that differs is printed with what makes it again.
"""

from __future__ import annotations

import io
import random
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from stoker import _native

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_SECONDS = 10.0  # between two lines of progress


@dataclass(frozen=True, slots=True)
class Case:
    """One comparison: boxes are (left, top, right, bottom)."""

    source: tuple[int, int]
    kind: str
    box: tuple[int, int, int, int]
    size: tuple[int, int]
    name: str
    window: tuple[int, int, int, int]
    flip: bool
    jpeg: bool


def some_side(dice: random.Random) -> int:
    """Return a side: often tiny, now and then hundreds of pixels."""
    return dice.randint(1, dice.choice((3, 20, 90, 90, 300, 700)))


def some_box(dice: random.Random, width: int, height: int) -> tuple[int, int, int, int]:
    """Return a box of whole pixels; in one case of three everything."""
    if dice.random() < 1 / 3:
        return 0, 0, width, height
    left, top = dice.randrange(width), dice.randrange(height)
    return left, top, dice.randint(left + 1, width), dice.randint(top + 1, height)


def some_case(dice: random.Random) -> Case:
    """Draw a case."""
    source, size = (some_side(dice), some_side(dice)), (some_side(dice), some_side(dice))
    return Case(
        source,
        dice.choice(("noise", "noise", "edges", "waves")),
        some_box(dice, *source),
        size,
        dice.choice(sorted(FILTERS)),
        some_box(dice, *size),
        dice.random() < 0.5,
        dice.random() < 1 / 8,
    )


def pixels_of(case: Case, random_pixels: np.random.Generator) -> Pixels:
    """Return uint8 (height, width, 3)."""
    width, height = case.source
    if case.kind == "waves":
        y, x = np.mgrid[0:height, 0:width]
        waves = np.stack([np.sin(x / (3 + c)) + np.cos(y / (4 + c)) for c in range(3)], axis=-1)
        return (waves * 60 + 128).astype(np.uint8)
    values = random_pixels.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return values if case.kind == "noise" else np.where(values < 128, np.uint8(0), np.uint8(255))


def difference(case: Case, seed: int) -> int:
    """Return the largest difference of any byte of a case."""
    pixels = pixels_of(case, np.random.default_rng(seed))
    image = Image.fromarray(pixels)
    left, top, right, bottom = case.box
    part = np.ascontiguousarray(pixels[top:bottom, left:right])
    if case.jpeg:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=seed % 100 + 1, subsampling=seed % 3)
        image = Image.open(file).convert("RGB")
        part = _native.decode_image(file.getvalue(), case.box)
    resized = _native.resize(part, *case.size, case.name, window=case.window, flip=case.flip)
    expected = image.crop(case.box).resize(case.size, FILTERS[case.name]).crop(case.window)
    if case.flip:
        expected = expected.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return int(np.abs(resized.astype(np.int16) - np.asarray(expected, np.int16)).max())


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(cases: int, seed: int) -> int:
    """Compare; return 1 if anything differs."""
    worst, differing, reported = 0, 0, time.monotonic()
    for number in range(cases):
        case = some_case(random.Random(seed * 1_000_003 + number))
        off = difference(case, seed + number)
        worst = max(worst, off)
        if off:
            differing += 1
            say(f"case {number} of seed {seed} differs by {off}: {case}")
        if time.monotonic() - reported > _SECONDS:
            reported = time.monotonic()
            say(f"{number + 1} of {cases} cases, largest difference {worst}")
    say(f"{cases} cases, {differing} of them differ, largest difference {worst}")
    return 1 if differing else 0


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
