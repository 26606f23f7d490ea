"""Small pictures for tests, made with Pillow."""

from __future__ import annotations

import functools
import io
import warnings

import numpy as np
from PIL import Image


def pixels(width: int, height: int, seed: int = 0) -> np.ndarray:
    """Smooth waves with some noise: RGB uint8 (height, width, 3)."""
    return _pixels(width, height, seed).copy()


@functools.lru_cache(1000)
def _pixels(width: int, height: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [127 + 80 * np.sin(x * rng.uniform(0.02, 0.4) + y * rng.uniform(0.02, 0.4) + c) for c in range(3)]
    noisy = np.stack(waves, -1) + rng.normal(0, 12, (height, width, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def encode(image: Image.Image, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, options.pop("format", "JPEG"), **options)
    return out.getvalue()


def jpeg(width: int, height: int, seed: int = 0, mode: str = "RGB", **options: object) -> bytes:
    return encode(Image.fromarray(pixels(width, height, seed)).convert(mode), **{"quality": 92, **options})


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


def rgb(data: bytes) -> Image.Image:
    """The whole image as Pillow decodes it."""
    return opened(data).convert("RGB")


def square(image: Image.Image) -> Image.Image:
    """The part in the middle of an image."""
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def in_mode(image: Image.Image, mode: str) -> Image.Image:
    """What Stoker makes of an image in a mode: what Pillow does, and of grey of 16 bits round(value / 257).

    Raises:
        ValueError: Pillow has no such pixels.
    """
    if not image.mode.startswith("I"):
        return image.convert(mode)
    values, clear = np.asarray(image), image.info.get("transparency")
    if mode == "I;16":
        return Image.fromarray(values.astype("<u2"))
    scaled = Image.fromarray(np.rint(values / 257).astype(np.uint8)).convert(mode)
    if mode == "RGBA" and clear is not None:
        scaled.putalpha(Image.fromarray(np.where(values == clear, 0, 255).astype(np.uint8)))
    return scaled


def channels_last(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array if array.ndim == 3 else array[:, :, None]


def whole(data: bytes) -> np.ndarray:
    """The pixels that Stoker gives of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with opened(data) as image:
            return np.asarray(in_mode(image, "RGB"))


def exif(orientation: int) -> bytes:
    """EXIF that says how an image is turned."""
    tags = Image.Exif()
    tags[274] = orientation
    return tags.tobytes()
