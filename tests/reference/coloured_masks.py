"""Masks in colours: the number of each pixel, looked up pixel by pixel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def ids_of_colours(path: Path, numbers: dict[tuple[int, int, int], int]) -> NDArray[np.int64]:
    """The number of each pixel of a file, (H, W), as ``numbers`` has it; ``KeyError`` of another colour."""
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    width, height = image.size
    return np.array([[numbers[image.getpixel((x, y))] for x in range(width)] for y in range(height)], np.int64)
