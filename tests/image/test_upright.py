"""`exif="apply"`: pixels are those of Pillow's `exif_transpose`, also of parts, whose regions alone are decoded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngInfo

from reference import pictures
from reference.strategies import regions
from reference.transform import FILTERS
from small_cases import each
from stoker import image
from stoker.errors import ConfigError, ImageError
from stoker.recipe import is_turned

XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="%d"/></x:xmpmeta>'
OPTIONS: dict[str, dict[str, Any]] = {
    "4:2:0": {"format": "JPEG", "quality": 80, "subsampling": "4:2:0"},
    "4:2:2": {"format": "JPEG", "quality": 80, "subsampling": "4:2:2"},
    "4:4:4": {"format": "JPEG", "quality": 95, "subsampling": "4:4:4"},
    "progressive": {"format": "JPEG", "quality": 80, "progressive": True},
    "png": {"format": "PNG"},
    "lossy webp": {"format": "WEBP", "quality": 70},
    "lossless webp": {"format": "WEBP", "lossless": True},
    "tiff": {"format": "TIFF"},
    "avif": {"format": "AVIF", "quality": 80, "speed": 10},
}


def photo(kind: str, orientation: int, width: int = 31, height: int = 22, *, xmp: bool = False) -> bytes:
    """A picture that says how it is seen upright."""
    metadata: dict[str, Any] = {"exif": pictures.exif(orientation)}
    if xmp and kind == "png":
        metadata = {"pnginfo": PngInfo()}
        metadata["pnginfo"].add_itxt("XML:com.adobe.xmp", (XMP % orientation).decode(), zip=orientation % 2 == 0)
    elif xmp:
        metadata = {"xmp": XMP % orientation}
    return pictures.encode(Image.fromarray(pictures.pixels(width, height, orientation)), **OPTIONS[kind], **metadata)


def upright(data: bytes, mode: str = "RGB") -> Image.Image:
    """What Pillow makes of it."""
    return ImageOps.exif_transpose(pictures.opened(data)).convert(mode)


@given(data=st.data(), kind=st.sampled_from(sorted(OPTIONS)), orientation=st.integers(1, 8))
def test_parts_are_those_of_pillow(data: st.DataObject, kind: str, orientation: int) -> None:
    mode, name = data.draw(st.sampled_from(["RGB", "L", "RGBA"])), data.draw(st.sampled_from(sorted(FILTERS)))
    file = photo(kind, orientation, data.draw(st.integers(1, 70)), data.draw(st.integers(1, 70)))
    expected = upright(file, mode)
    region = data.draw(regions(*expected.size))
    expected = expected.crop(region)
    size = data.draw(st.none() | st.tuples(st.integers(1, 60), st.integers(1, 60)))
    if size is not None:
        expected = expected.resize(size[::-1], FILTERS[name])
    decoded = image.decode(file, region=region, size=size, mode=mode, filter=name, exif="apply")
    assert (decoded == np.asarray(expected).reshape(decoded.shape)).all()


@each("kind", ["4:2:0", "png", "lossy webp", "avif"])
@each("orientation", range(1, 9))
def test_xmp_says_it_where_exif_does_not(kind: str, orientation: int) -> None:
    file = photo(kind, orientation, xmp=True)
    assert is_turned(file) == (orientation != 1)
    assert image.info(file).orientation == orientation
    assert (image.decode(file, exif="apply") == np.asarray(upright(file))).all()


def test_exif_goes_before_xmp() -> None:
    file = pictures.jpeg(20, 10, exif=pictures.exif(3), xmp=XMP % 6)
    assert (image.decode(file, exif="apply") == np.asarray(upright(file))).all()
    assert image.info(file).orientation == 3


@each("orientation", range(1, 9))
@each(("width", "height"), [(256, 192), (253, 190)])
def test_fast_decoding_is_near_it(orientation: int, width: int, height: int) -> None:
    """An image that is decoded smaller begins at another edge."""
    file = photo("4:2:0", orientation, width, height)
    for size in ((24, 20), (50, 41)):
        fast, exact = (image.decode(file, size=size, decode=how, exif="apply") for how in ("fast", "exact"))
        as_stored = size[::-1] if orientation > 4 else size
        kept, kept_exact = (image.decode(file, size=as_stored, decode=how) for how in ("fast", "exact"))
        assert np.abs(fast.astype(int) - exact).mean() < 1 + 1.2 * np.abs(kept.astype(int) - kept_exact).mean()


def test_words_and_regions_are_checked() -> None:
    file = photo("4:2:0", 6)
    assert image.decode(file, exif="keep").shape == (22, 31, 3)
    assert image.decode(file, region=(0, 0, 22, 31), exif="apply").shape == (31, 22, 3)
    with pytest.raises(ConfigError, match="leaves the image of 22 x 31"):
        image.decode(file, region=(0, 0, 31, 22), exif="apply")
    with pytest.raises(ConfigError, match="exif is 'turn'"):
        image.decode(file, exif="turn")  # type: ignore[arg-type]
    for length in (0, 1, 2, 30, 100, len(file) // 2):
        with pytest.raises(ImageError):
            image.decode(file[:length], exif="apply")
