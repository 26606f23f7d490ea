"""Images that Pillow decodes and that are converted a few rows at a time have the pixels of Pillow's own conversion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from reference import pictures
from stoker.recipe import Recipe, check, decode, image_formats

SIZE = 521, 761  # more pixels than are converted at a time


def picture(mode: str) -> Image.Image:
    rng = np.random.default_rng(1)
    if mode.startswith("I;16"):
        wide = Image.fromarray(rng.integers(0, 2**16, SIZE[::-1], np.uint16))
        return wide if mode == "I;16" else wide.convert("I").convert(mode)
    pixels = Image.fromarray(rng.integers(0, 256, (*SIZE[::-1], 4), np.uint8))
    return pixels.convert("RGB").quantize(77) if mode == "P" else pixels.convert("RGB").convert(mode)


@pytest.mark.parametrize(
    ("mode", "kind", "settings"),
    [
        ("P", "GIF", {}),
        ("P", "GIF", {"transparency": 5}),
        ("P", "BMP", {}),
        ("L", "GIF", {}),
        ("RGB", "PPM", {}),
        *((mode, "TIFF", {"compression": "tiff_lzw"}) for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK")),
        ("YCbCr", "TIFF", {}),
        ("RGB", "TIFF", {"compression": "jpeg", "tiffinfo": {274: 6}}),
    ],
)
@pytest.mark.parametrize("wanted", ["RGB", "L", "RGBA"])
@pytest.mark.slow
def test_the_pixels_are_those_of_pillow(mode: str, kind: str, settings: dict[str, Any], wanted: Any) -> None:
    data = pictures.encode(picture(mode), format=kind, **settings)
    image = pictures.opened(data)
    image.load()
    expected = np.asarray(image.convert(wanted))
    decoded = decode(data, 2**20, wanted)
    assert (decoded == expected.reshape(decoded.shape)).all()


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_grey_of_16_bits(mode: str) -> None:
    data = pictures.encode(picture(mode), format="TIFF", compression="tiff_deflate")
    expected = np.asarray(picture("I;16"))[:, :, None]
    assert (decode(data, 2**20, "I;16") == expected).all()
    assert (decode(data, 2**20, "L") == (expected.astype(np.uint32) * 255 + 32_767) // 65_535).all()


@pytest.mark.parametrize(
    ("kind", "side", "settings"),
    [
        ("JPEG2000", (750, 750), {}),
        ("JPEG2000", (750, 750), {"tile_size": (512, 512), "no_jp2": True}),
        ("TIFF", (30_000, 500), {"compression": "group4", "tiffinfo": {278: 500}}),
    ],
)
def test_one_colour_takes_hardly_any_bytes(
    kind: str, side: tuple[int, int], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_formats, "_MIN_LIMIT_BYTES", 2**20)  # so that an image of 1.7 MB is a large one
    data = pictures.encode(Image.new("1" if kind == "TIFF" else "RGB", side), format=kind, **settings)
    assert check(data, Recipe()).source == kind.lower()
