"""Views in TensorFlow's ops: which window of a JPEG is decoded and resized to what."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from stoker.errors import ConfigError
from stoker.views import CenterCrop, RandomResizedCrop, Resize, native_views

if TYPE_CHECKING:
    from collections.abc import Callable

    from stoker.views import View

_ATTEMPTS = 10


def pixels_of(view: View) -> Callable[[Any, Any], Any]:
    """Return a function of (JPEG as a string, int64 () of random bits) to pixels, uint8 (H, W, 3).

    Raises:
        ConfigError: The view, or one of its settings, has no counterpart in TensorFlow's ops.
    """
    window_of, hflip = _window_of(view)
    height, width = _extent(view)

    def pixels(encoded: Any, chance: Any) -> Any:
        shape = tf.image.extract_jpeg_shape(encoded)
        window = window_of(shape, chance)
        cropped = tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_FAST")
        resized = tf.cast(tf.image.resize(cropped, [height, width], "bilinear"), tf.uint8)
        if hflip:
            mirrored = tf.random.stateless_uniform([], [chance, 1]) < hflip
            resized = tf.cond(mirrored, lambda: tf.reverse(resized, [1]), lambda: resized)
        return tf.ensure_shape(resized, [height, width, 3])

    return pixels


def _window_of(view: View) -> tuple[Callable[[Any, Any], Any], float]:
    """Function of (shape, random bits) to top, left, height and width of what is decoded; and the share mirrored."""
    # Comparing with a view of these settings alone finds every other one, also those that views will have one day.
    if isinstance(view, RandomResizedCrop) and view == RandomResizedCrop(view.size, view.scale, view.ratio, view.hflip):
        return partial(_random_window, view), view.hflip
    if isinstance(view, CenterCrop) and view == CenterCrop(view.size, view.resize):
        return partial(_center_window, view), 0.0
    if isinstance(view, Resize) and view == Resize(view.size, view.hflip):
        return lambda shape, _: tf.stack([0, 0, shape[0], shape[1]]), view.hflip
    can = "RandomResizedCrop, CenterCrop and Resize, bilinear, with crop and mirror image alone"
    raise ConfigError(f"TensorFlow's ops cannot do {view!r}, only {can}; use stoker.tensorflow.dataset")


def _extent(view: View) -> tuple[int, int]:
    (height, width, _), *_ = (spec.shape for spec in native_views(view))
    return height, width


def _random_window(view: RandomResizedCrop, shape: Any, chance: Any) -> Any:
    """The crop that torchvision's RandomResizedCrop draws: the first of ten attempts that fits, or the centre."""
    least, most = view.ratio
    height, width = tf.cast(shape[0], tf.float32), tf.cast(shape[1], tf.float32)
    drawn = tf.random.stateless_uniform([2, _ATTEMPTS], [chance, 0])
    area = height * width * (view.scale[0] + drawn[0] * (view.scale[1] - view.scale[0]))
    aspect = tf.exp(math.log(least) + drawn[1] * (math.log(most) - math.log(least)))
    widths, heights = tf.round(tf.sqrt(area * aspect)), tf.round(tf.sqrt(area / aspect))
    fits = (widths >= 1) & (heights >= 1) & (widths <= width) & (heights <= height)
    first = tf.argmax(tf.cast(fits, tf.int32))
    crop_width = tf.where(fits[first], widths[first], tf.minimum(width, tf.round(height * most)))
    crop_height = tf.where(fits[first], heights[first], tf.minimum(height, tf.round(width / least)))
    room = tf.stack([height - crop_height, width - crop_width])
    place = tf.random.stateless_uniform([2], [chance, 2])
    place = tf.where(fits[first], tf.floor(place * (room + 1)), tf.floor(room / 2))
    return tf.cast(tf.concat([place, [crop_height, crop_width]], 0), tf.int32)


def _center_window(view: CenterCrop, shape: Any, _chance: Any) -> Any:
    """The part of the source that becomes the centre after the resize."""
    height, width = _extent(view)
    short = tf.cast(tf.minimum(shape[0], shape[1]), tf.float32)
    sides = tf.cast(tf.round(short * tf.constant([height / view.resize, width / view.resize])), tf.int32)
    sides = tf.maximum(sides, 1)
    return tf.concat([(shape[:2] - sides) // 2, sides], 0)
