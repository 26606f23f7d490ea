"""Folders and shards of images in every format: the pixels of batches are those that Pillow gives."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from loader.shards import payload
from reference import pictures, tfrecord, transform
from reference.png import KINDS, png

if TYPE_CHECKING:
    from pathlib import Path

SEED = 11
WIDTH, HEIGHT = 60, 44
pytestmark = pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")


def picture(seed: int, mode: str = "RGB", **options: object) -> bytes:
    return pictures.encode(Image.fromarray(pictures.pixels(WIDTH, HEIGHT, seed)).convert(mode), **options)


FILES = {
    **{
        f"png-{color}-{bits}-{interlaced:d}": png(
            WIDTH, HEIGHT, color, bits, interlaced=interlaced, transparent=True, seed=color * 100 + bits
        )
        for color, bits in KINDS
        for interlaced in (False, True)
    },
    "webp": picture(1, format="WEBP", quality=70),
    "webp-alpha": picture(2, "RGBA", format="WEBP", quality=40),
    "webp-lossless": picture(3, format="WEBP", lossless=True),
    "jpeg": picture(4),
    "jpeg-progressive": picture(5, progressive=True),
    "jpeg-cmyk": picture(6, "CMYK"),
    "gif": picture(7, "P", format="GIF"),
    "bmp": picture(8, format="BMP"),
    "tiff": picture(9, format="TIFF", compression="tiff_lzw"),
    "ppm": picture(10, format="PPM"),
    "jpeg2000": picture(11, format="JPEG2000"),
}
NAMES = sorted(FILES, key="{}.JPEG".format)
TRANSFORMS = [
    stoker.RandomResizedCrop(24, hflip=0.5),
    stoker.RandomResizedCrop(32, scale=(0.1, 0.3), filter="bicubic"),
    stoker.CenterCrop(28, resize=32),
    stoker.Resize(40, hflip=1.0, filter="lanczos"),
    stoker.TopLeft(32),
]


def whole(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        if image.mode.startswith("I"):
            grey = np.rint(np.asarray(image, np.float64) / 257).astype(np.uint8)
            return Image.fromarray(np.stack([grey] * 3, axis=-1))
        return image.convert("RGB")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("formats")
    (root / "class").mkdir()
    for name in NAMES:
        (root / "class" / f"{name}.JPEG").write_bytes(FILES[name])  # content decides, never the name
    return root


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shards")
    records = [payload(number, FILES[name]) for number, name in enumerate(NAMES)]
    (root / "train-00000-of-00001.tfrecord").write_bytes(b"".join(map(tfrecord.frame, records)))
    return root


def compare(train: stoker.Dataset, **settings: object) -> None:
    chosen = settings["transform"]
    assert len(train) == len(NAMES)
    with stoker.Loader(train, batch_size=9, seed=SEED, threads=2, **settings) as loader:
        for epoch in range(2):
            for batch in loader:
                for pixels, index in zip(batch.images, batch.indices.tolist(), strict=True):
                    expected = transform.show(whole(FILES[NAMES[index]]), chosen, transform.Draws(SEED, epoch, index))
                    assert (pixels == expected).all(), NAMES[index]


@pytest.mark.parametrize("chosen", TRANSFORMS, ids=str)
def test_a_folder_of_every_format_has_the_pixels_of_pillow(folder: Path, chosen: stoker.transforms.Transform) -> None:
    compare(stoker.open(folder), transform=chosen)


def test_records_of_every_format_have_the_pixels_of_pillow(shards: Path) -> None:
    compare(stoker.open(shards), transform=TRANSFORMS[0])


def test_decoded_images_of_every_format_are_kept(folder: Path) -> None:
    train = stoker.open(folder)
    cache = stoker.MemoryCache("64MB", keep="decoded")
    compare(train, transform=TRANSFORMS[0], cache=cache)
    assert cache.native.counts().hits >= len(NAMES)


def test_one_sample_is_what_batches_show(folder: Path) -> None:
    train = stoker.open(folder)
    for index, name in enumerate(NAMES):
        assert (train[index].decode() == np.asarray(whole(FILES[name]))).all(), name


def test_fast_decoding_shrinks_jpegs_alone(folder: Path) -> None:
    with stoker.Loader(
        stoker.open(folder), batch_size=len(NAMES), transform=stoker.Resize(12), decode="fast"
    ) as loader:
        batch = next(iter(loader))
    for pixels, index in zip(batch.images, batch.indices.tolist(), strict=True):
        expected = transform.show(whole(FILES[NAMES[index]]), stoker.Resize(12), transform.Draws(0, 0, index))
        difference = np.abs(pixels.astype(int) - expected).max()
        assert difference <= (16 if NAMES[index].startswith("jpeg") else 1), NAMES[index]
