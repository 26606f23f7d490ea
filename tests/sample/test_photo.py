"""Artificial photographs: natural spectrum, boxes around what was painted, classes that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from stoker.sample import _enlarged, _landscape, paint

if TYPE_CHECKING:
    from numpy.typing import NDArray


def difference_to_landscape(pixels: NDArray[np.uint8], seed: tuple[int, ...]) -> NDArray[np.float32]:
    """How far each pixel is from the landscape without objects, which the same seed begins with."""
    height, width = pixels.shape[:2]
    image, _ = _landscape((width + 1) // 2, (height + 1) // 2, np.random.default_rng(seed))
    difference: NDArray[np.float32] = np.abs(pixels - _enlarged(image, width, height).astype(np.float32)).max(2)
    return difference


@pytest.mark.parametrize("size", [(320, 240), (240, 320), (200, 150)])
@pytest.mark.parametrize("class_id", [*range(10), 57])
@pytest.mark.slow
def test_every_box_fits_an_object_that_was_painted(class_id: int, size: tuple[int, int]) -> None:
    width, height = size
    seed = (3, class_id)
    pixels, boxes = paint(width, height, class_id, seed)
    changed = difference_to_landscape(pixels, seed) > 40
    outside = changed.copy()
    assert 1 <= len(boxes) <= 3
    for box in boxes:
        edges = (box.xmin * width, box.ymin * height, box.xmax * width, box.ymax * height)
        left, top, right, bottom = map(round, edges)
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
        assert changed[top:bottom, left:right].mean() > 0.25
        outside[max(0, top - 3) : bottom + 3, max(0, left - 3) : right + 3] = False
    assert outside.mean() < 0.05  # shadows


def test_the_spectrum_is_that_of_photographs() -> None:
    slopes, chroma = [], []
    for i in range(8):
        pixels = paint(256, 256, i, (5, i))[0].astype(float)
        luma = pixels @ [0.299, 0.587, 0.114]
        power = np.abs(np.fft.fft2(luma - luma.mean())) ** 2
        frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(256), np.fft.fftfreq(256)))
        rings = [(f, power[(frequency >= f) & (frequency < 1.5 * f)].mean()) for f in 0.01 * 1.5 ** np.arange(9)]
        slopes.append(np.polyfit(*np.log(rings).T, 1)[0])
        chroma.append((pixels[..., 2] - luma).std() / luma.std())
    assert -3.2 < np.mean(slopes) < -1.8  # power falls with about the square of the frequency
    assert 0.2 < np.mean(chroma) < 1.0  # colour varies less than brightness


@pytest.mark.slow
def test_the_colours_of_objects_tell_the_class() -> None:
    def colour(class_id: int, i: int) -> NDArray[np.float64]:
        pixels, boxes = paint(160, 120, class_id, (7, class_id, i))
        box = boxes[-1]  # the nearest, which nothing hides
        x, y = int(80 * (box.xmin + box.xmax)), int(60 * (box.ymin + box.ymax))
        middle: NDArray[np.float64] = pixels[y - 9 : y + 9, x - 9 : x + 9].mean((0, 1))
        return middle

    known = np.array([np.mean([colour(c, i) for i in range(6)], axis=0) for c in range(10)])
    right = [np.argmin(np.linalg.norm(known - colour(c, i), axis=1)) == c for c in range(10) for i in range(6, 9)]
    assert np.mean(right) > 0.5


def test_a_photograph_is_a_function_of_its_arguments() -> None:
    (first, boxes), (second, same), (other, _) = (paint(64, 48, 1, seed) for seed in ((1, 2), (1, 2), (1, 3)))
    assert boxes == same
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    assert first.shape == (48, 64, 3)
    assert first.dtype == np.uint8
