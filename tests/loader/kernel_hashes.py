"""A program: hashes of what the core makes of JPEGs, to be compared between levels of kernels and processors.

    python kernel_hashes.py DATASET JPEG...

It prints a hash a line. Of DATASET, what `stoker.open` takes: all batches of one epoch, in every transform. Of the
JPEGs: pixels, parts, what is encoded again and what is transcoded. Of numbers alone: checksums, orders, resized
pictures, changed colours, positions of crops.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import stoker
from stoker import _native

if TYPE_CHECKING:
    from collections.abc import Iterator

FILTERS = ("nearest", "box", "bilinear", "bicubic", "lanczos")
JITTER = stoker.ColorJitter(brightness=0.4, contrast=(0.2, 1.9), saturation=0.7, hue=0.3)
TRANSFORMS = {
    **{f"crop {name}": stoker.RandomResizedCrop(96, hflip=0.5, filter=name) for name in FILTERS},  # type: ignore[arg-type]
    **{f"center {name}": stoker.CenterCrop(61, resize=73, filter=name) for name in FILTERS},  # type: ignore[arg-type]
    **{f"resize {name}": stoker.Resize((83, 170), hflip=0.5, filter=name) for name in FILTERS},  # type: ignore[arg-type]
    "colours": stoker.RandomResizedCrop((64, 48), color_jitter=JITTER),
    "whole": stoker.TopLeft(16, hflip=0.5),
    "several": stoker.MultiCrop(stoker.RandomResizedCrop(40), stoker.Resize(224), stoker.CenterCrop(33, resize=35)),
}
OUTPUTS = {
    "uint8 planes": stoker.Output(layout="NCHW"),
    "float16": stoker.Output(dtype="float16", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
    "float32 planes": stoker.Output(dtype="float32", layout="NCHW"),
}


def hash_of(*parts: object) -> str:
    """The SHA-256 of arrays, bytes and numbers."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(
            part.tobytes()
            if isinstance(part, np.ndarray)
            else bytes(part)
            if isinstance(part, bytes)
            else repr(part).encode()
        )
    return digest.hexdigest()


def of_batches(folder: str, transform: stoker.transforms.Transform, **settings: object) -> str:
    parts: list[object] = []
    with stoker.Loader(
        stoker.open(folder), batch_size=5, transform=transform, shuffle=True, seed=2**63 + 11, threads=2, **settings
    ) as loader:
        for batch in loader:
            images = batch.images if isinstance(batch.images, tuple) else (batch.images,)
            parts += [*images, batch.labels, batch.indices]
    return hash_of(*parts)


def of_jpeg(data: bytes) -> Iterator[tuple[str, str]]:
    pixels = _native.decode_image(data)
    height, width = pixels.shape[:2]
    yield "pixels", hash_of(pixels)
    box = (width // 3, height // 4, width - width // 5, height - height // 7)
    yield "part", hash_of(_native.decode_image(data, box))
    for quality, subsampling in ((50, "4:2:0"), (95, "4:4:4")):
        yield f"encoded {quality}", hash_of(_native.encode_jpeg(pixels, quality, subsampling, restart=quality == 50))
    yield "transcoded", hash_of(_native.transcode_jpeg(data) or b"")
    resizer = _native.JpegStoring(filter="bicubic", quality=90, subsampling="4:2:0")
    yield "smaller", hash_of(resizer.reencode(data, (0, 0, width, height), max(width // 3, 1), max(height // 2, 1)))


def of_numbers() -> Iterator[tuple[str, str]]:
    rng = np.random.default_rng(5)
    noise = rng.integers(0, 256, 100_003, np.uint8)
    yield (
        "crc32c",
        hash_of([_native.crc32c(noise[start:stop].tobytes()) for start in range(9) for stop in (9, 700, 100_003)]),
    )
    yield (
        "permute",
        hash_of(_native.permute(0, 5000, 5000, 2**64 - 3, 7), _native.permute_blocks(0, 5000, 5000, 64, 9, 3, 1)),
    )
    yield "philox", hash_of(_native.philox([1, 2, 3, 4], [5, 6]))
    picture = rng.integers(0, 256, (61, 87, 3), np.uint8)
    for name in FILTERS:
        sizes = ((87, 61), (200, 15), (13, 130), (44, 61), (1, 1))
        yield f"resampled {name}", hash_of(*(_native.resize(picture, *size, name, flip=size[0] > 50) for size in sizes))
    for corners in (False, True):
        yield f"tf1 {corners}", hash_of(_native.resize_tf1(picture, 50, 70, align_corners=corners))
    jitter = stoker.ColorJitter((0.3, 1.7), (0.3, 1.7), (0.1, 2.5), (-0.5, 0.5))
    changed = stoker.RawTensor((61, 87), color_jitter=jitter).native()
    steps = [changed.plan(87, 61, 3, 0, index)[-1] for index in range(40)]
    yield "colours", hash_of(*(changed.apply(picture, 3, 0, index) for index in range(40)), *steps)
    crops = stoker.RandomResizedCrop((30, 20), scale=(0.08, 1.0), ratio=(0.75, 1.5), hflip=0.5).native()
    yield "crops", hash_of([crops.plan(500, 375, 9, 0, index) for index in range(2000)])


def lines(folder: str, jpegs: list[str]) -> Iterator[str]:
    for name, digest in of_numbers():
        yield f"{name} {digest}"
    for path in jpegs:
        try:
            for name, digest in of_jpeg(Path(path).read_bytes()):
                yield f"{Path(path).name} {name} {digest}"
        except stoker.errors.ImageError as error:
            yield f"{Path(path).name} refused: {error}"
    for name, transform in TRANSFORMS.items():
        yield f"batches {name} {of_batches(folder, transform)}"
    for name, output in OUTPUTS.items():
        yield f"batches {name} {of_batches(folder, TRANSFORMS['crop bilinear'], output=output)}"
    yield f"batches fast {of_batches(folder, stoker.RandomResizedCrop(24), decode='fast')}"


if __name__ == "__main__":
    for line in lines(sys.argv[1], sys.argv[2:]):
        sys.stdout.write(line + "\n")
