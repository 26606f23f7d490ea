"""Small images of many formats, and where tests put them: what a folder of somebody's images looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from reference import example, pictures, tfrecord
from reference.png import png
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

WIDTH, HEIGHT = 60, 44
CLASSES = ("cat", "dog", "elk")


def picture(seed: int, mode: str = "RGB", **options: object) -> bytes:
    return pictures.encode(Image.fromarray(pictures.pixels(WIDTH, HEIGHT, seed)).convert(mode), **options)


def with_alpha(kind: str, **options: object) -> bytes:
    """A picture that grows transparent to the left."""
    alpha = np.broadcast_to(np.linspace(0, 255, WIDTH, dtype=np.uint8), (HEIGHT, WIDTH))
    pixels = np.dstack([pictures.pixels(WIDTH, HEIGHT, 12), alpha])
    return pictures.encode(Image.fromarray(pixels), format=kind, **options)


def animation(kind: str) -> bytes:
    frames = [Image.fromarray(pictures.pixels(WIDTH, HEIGHT, seed)) for seed in (30, 31)]
    return pictures.encode(frames[0], format=kind, save_all=True, append_images=frames[1:])


FILES = {
    "plain.jpg": picture(1),
    "progressive.jpg": picture(2, progressive=True),
    "grey.jpg": picture(3, "L"),
    "cmyk.jpg": picture(4, "CMYK"),
    "plain.png": picture(5, format="PNG"),
    "alpha.png": png(WIDTH, HEIGHT, 6, 8, seed=6),
    "palette.png": picture(7, "P", format="PNG"),
    "grey16.png": png(WIDTH, HEIGHT, 0, 16, seed=8),
    "interlaced.png": png(WIDTH, HEIGHT, 2, 8, interlaced=True, seed=9),
    "lossy.webp": picture(10, format="WEBP", quality=70),
    "lossless.webp": picture(11, format="WEBP", lossless=True),
    "alpha.webp": with_alpha("WEBP", quality=40),
    "animated.webp": animation("WEBP"),
    "plain.gif": picture(13, "P", format="GIF"),
    "animated.gif": animation("GIF"),
    "plain.bmp": picture(14, format="BMP"),
    "lzw.tiff": picture(15, format="TIFF", compression="tiff_lzw"),
    "plain.jp2": picture(16, format="JPEG2000"),
    "plain.ppm": picture(17, format="PPM"),
}
"""By name. 4 JPEG, 5 PNG and 4 WebP, which the core decodes, and 6 others."""
COUNTS = {"png": 5, "jpeg": 4, "webp": 4, "gif": 2, "bmp": 1, "tiff": 1, "jpeg2000": 1, "ppm": 1}


def class_of(number: int) -> int:
    """The class of one of `FILES`."""
    return number % len(CLASSES)


def write_folder(root: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """Write files into folders of their classes."""
    named = enumerate(files.items())
    return write_files(root, {f"{CLASSES[class_of(number)]}/{name}": data for number, (name, data) in named})


def write_records(root: Path, files: Mapping[str, bytes] = FILES) -> Path:
    """Write files into one shard, as programs of others write it: without a manifest."""
    records = [
        {
            "image/encoded": ("bytes", [data]),
            "image/class/label": ("int64", [class_of(number)]),
            "image/filename": ("bytes", [name.encode()]),
        }
        for number, (name, data) in enumerate(files.items())
    ]
    shard = b"".join(tfrecord.frame(example.write(record)) for record in records)
    return write_files(root, {"train-00000-of-00001.tfrecord": shard})
