"""The views of a benchmark in TensorFlow's ops, on images that are decoded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.measure.task import RATIO, RESIZE, SCALE, SIDE

if TYPE_CHECKING:
    from collections.abc import Callable

_ATTEMPTS = 10


def load_views(view: str) -> Callable[[Any, Any], Any]:
    """Return a function of (pixels uint8 (H, W, 3), corners float32 (N, 4)) to uint8 pixels.

    These are (224, 224, 3), or with ``view="objects"`` (N, 224, 224, 3).
    """
    return {"train": _random_crop, "eval": _center, "objects": _objects}[view]


def _random_crop(image: Any, _corners: Any) -> Any:
    top, left, height, width = tf.unstack(_random_window(tf.shape(image)))
    pixels = _resized(tf.slice(image, [top, left, 0], [height, width, 3]))
    return tf.image.random_flip_left_right(pixels)


def _random_window(shape: Any) -> Any:
    """The crop that torchvision's RandomResizedCrop draws: the first of ten attempts that fits, or all."""
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    area = height * width * tf.random.uniform([_ATTEMPTS], *SCALE)
    aspect = tf.exp(tf.random.uniform([_ATTEMPTS], math.log(RATIO[0]), math.log(RATIO[1])))
    widths, heights = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (widths >= 1) & (heights >= 1) & (widths <= width) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    w, h = tf.where(fits[first], widths[first], width), tf.where(fits[first], heights[first], height)
    place = tf.floor(tf.random.uniform([2]) * tf.stack([height - h + 1, width - w + 1]))
    return tf.cast(tf.concat([place, [h, w]], 0), tf.int32)


def _center(image: Any, _corners: Any) -> Any:
    """What a resize to 256 and the centre 224 see, as one crop."""
    shape = tf.shape(image)
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    side = tf.maximum(1, tf.cast(tf.round(short * (SIDE / RESIZE)), tf.int32))
    top, left = tf.unstack((shape[:2] - side) // 2)
    return _resized(tf.slice(image, [top, left, 0], tf.stack([side, side, 3])))


def _objects(image: Any, corners: Any) -> Any:
    found = tf.image.crop_and_resize(image[None], corners, tf.zeros([tf.shape(corners)[0]], tf.int32), [SIDE, SIDE])
    return tf.ensure_shape(tf.cast(found, tf.uint8), [None, SIDE, SIDE, 3])


def _resized(image: Any) -> Any:
    return tf.ensure_shape(tf.cast(tf.image.resize(image, [SIDE, SIDE], "bilinear"), tf.uint8), [SIDE, SIDE, 3])
