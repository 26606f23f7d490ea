"""What an audit measures of pixels, from its definition: slow, and shares no code with the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

GRID = 32


def overlaps(pixels: int) -> NDArray[np.int64]:
    """Return how much of each pixel (columns) lies in each cell (rows), a pixel being 32 wide: int64 (32, pixels)."""
    cell, pixel = np.arange(GRID)[:, None], np.arange(pixels)
    ends = np.minimum((cell + 1) * pixels, (pixel + 1) * GRID)
    return np.maximum(0, ends - np.maximum(cell * pixels, pixel * GRID))


def image_hash(rgb: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the signs of the lowest frequencies of the grey cells, and which of them are larger than half of them.

    The two-dimensional DCT is made whole.
    """
    height, width = rgb.shape[:2]
    grey = rgb.astype(np.int64) @ np.array([77, 150, 29])
    cells = overlaps(height) @ grey @ overlaps(width).T * 16 // (width * height)
    frequency, column = np.arange(GRID)[:, None], np.arange(GRID)
    waves = np.rint(np.cos((2 * column + 1) * frequency * np.pi / (2 * GRID)) * 2**14).astype(np.int64)
    coefficients = waves @ cells @ waves.T
    chosen = [coefficients[bit // 8, bit % 8] for bit in range(64)]
    chosen[0] = coefficients[0, 8]
    middle = sorted(map(abs, chosen))[31]
    signs = sum(1 << bit for bit, coefficient in enumerate(chosen) if coefficient > 0)
    return signs, sum(1 << bit for bit, coefficient in enumerate(chosen) if abs(coefficient) > middle)


def measure(rgb: NDArray[np.uint8]) -> tuple[int, int, tuple[int, ...], tuple[int, ...], int, int]:
    """Return width, height, sums of the channels and of their squares, the hash, and its strong bits."""
    flat = rgb.reshape(-1, 3).astype(np.int64)
    sums, squares = (tuple(values.sum(0).tolist()) for values in (flat, flat**2))
    return rgb.shape[1], rgb.shape[0], sums, squares, *image_hash(rgb)
