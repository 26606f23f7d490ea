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


def rgb(data: bytes) -> Image.Image:
    """The whole image as Pillow decodes it."""
    return Image.open(io.BytesIO(data)).convert("RGB")


def whole(data: bytes) -> np.ndarray:
    """The pixels that Stoker gives of a file: those of Pillow, and round(value / 257) of grey of 16 bits."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with Image.open(io.BytesIO(data)) as image:
            if image.mode.startswith("I"):
                grey = np.rint(np.asarray(image, np.float64) / 257).astype(np.uint8)
                return np.stack([grey] * 3, axis=-1)
            return np.asarray(image.convert("RGB"))


def exif(orientation: int) -> bytes:
    """EXIF that says how an image is turned."""
    tags = Image.Exif()
    tags[274] = orientation
    return tags.tobytes()
