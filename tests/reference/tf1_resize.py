"""TensorFlow 1's bilinear resize, in float32 as its CPU kernel computes it: whole arrays at a time, nothing of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _taps(size: int, out: int, align_corners: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    f32 = np.float32
    scale = f32(size - 1) / f32(out - 1) if align_corners and out > 1 else f32(size) / f32(out)
    at = np.arange(out, dtype=np.float32) * scale
    lower = np.minimum(np.floor(at).astype(np.int64), size - 1)
    return lower, np.minimum(lower + 1, size - 1), (at - np.floor(at)).astype(np.float32)


def resize_tf1(pixels: NDArray[np.uint8], width: int, height: int, *, align_corners: bool) -> NDArray[np.uint8]:
    """Resize uint8 (H, W, 3) to (height, width, 3)."""
    top, bottom, down = _taps(pixels.shape[0], height, align_corners)
    left, right, along = _taps(pixels.shape[1], width, align_corners)
    values = pixels.astype(np.float32)
    along, down = along[None, :, None], down[:, None, None]

    def across(rows: NDArray[np.int64]) -> NDArray[np.float32]:
        near, far = values[rows][:, left], values[rows][:, right]
        return np.asarray(near + (far - near) * along, np.float32)

    above, below = across(top), across(bottom)
    return (above + (below - above) * down).astype(np.uint8)
