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


def png(pixels: Image.Image | np.ndarray, **options: object) -> bytes:
    return encode(Image.fromarray(pixels) if isinstance(pixels, np.ndarray) else pixels, format="PNG", **options)


def jpeg(width: int, height: int, seed: int = 0, mode: str = "RGB", **options: object) -> bytes:
    return encode(Image.fromarray(pixels(width, height, seed)).convert(mode), **{"quality": 92, **options})


def of_mode(mode: str, width: int, height: int, seed: int = 0) -> Image.Image:
    """A picture in one of Pillow's modes, its transparency and its 16 bits at random."""
    rng = np.random.default_rng(seed)
    picture = Image.fromarray(pixels(width, height, seed))
    if mode.startswith("I;16"):
        values = rng.integers(0, 1 << 16, (height, width)).astype(">u2" if mode == "I;16B" else "<u2")
        return Image.frombytes(mode, (width, height), values.tobytes())
    picture = picture.convert("L").convert(mode) if mode in ("LA", "1") else picture.convert(mode)
    if mode in ("LA", "RGBA"):
        picture.putalpha(Image.fromarray(rng.integers(0, 256, (height, width), dtype=np.uint8)))
    return picture


def heic(image: Image.Image, **options: object) -> bytes:
    import pillow_heif  # noqa: PLC0415

    out = io.BytesIO()
    pillow_heif.from_pillow(image).save(out, quality=90, **options)
    return out.getvalue()


def opened(data: bytes) -> Image.Image:
    if data[4:11] == b"ftyphei":
        import pillow_heif  # noqa: PLC0415

        return pillow_heif.HeifImageFile(io.BytesIO(data))
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


def shown(data: bytes, mode: str = "RGB") -> Image.Image:
    """What Stoker makes of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return in_mode(opened(data), mode)


def whole(data: bytes, mode: str = "RGB") -> np.ndarray:
    """Its pixels: (H, W, C), or (H, W, 1) of grey."""
    return channels_last(shown(data, mode))


def exif(orientation: int) -> bytes:
    """EXIF that says how an image is turned."""
    tags = Image.Exif()
    tags[274] = orientation
    return tags.tobytes()
