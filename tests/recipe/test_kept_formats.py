"""PNG and WebP kept byte for byte; what cannot be kept becomes PNG, and nothing lossless becomes lossy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from reference import pictures
from reference.pictures import opened
from reference.png import KINDS, png
from small_cases import each
from stoker import _native
from stoker.errors import ImageError
from stoker.recipe import Recipe, check, convert, parse_encode, parse_resize
from stoker.recipe.image_formats import decode_with_pillow, is_lossy_webp, is_whole_png
from stoker.types import Box

WIDTH, HEIGHT = 40, 30
CROP = Box(0.25, 0.1, 0.75, 0.9)
pytestmark = pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")


def image(mode: str, seed: int = 1) -> Image.Image:
    return pictures.of_mode(mode, WIDTH, HEIGHT, seed)


def save(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    return pictures.encode(image(mode), format=kind, **options)


FRAMES = {"save_all": True, "append_images": [image("RGB", 2), image("RGB", 3)]}
KEPT = {
    "PNG": save("PNG"),
    "PNG of 16-bit grey": save("PNG", "I;16"),
    "PNG with alpha": save("PNG", "RGBA"),
    "PNG with a colour that is transparent": save("PNG", transparency=(1, 2, 3)),
    "animated PNG": save("PNG", **FRAMES),
    "PNG with an orientation": save("PNG", exif=pictures.exif(6)),
    "PNG without its end": save("PNG")[:-12],
    "PNG with bytes behind its end": save("PNG") + b"behind",
    "lossy WebP": save("WEBP", quality=70),
    "lossy WebP with alpha": save("WEBP", "RGBA", quality=70),
    "lossless WebP": save("WEBP", lossless=True),
    "lossless WebP with alpha": save("WEBP", "RGBA", lossless=True),
    "animated WebP": save("WEBP", **FRAMES),
    "animated lossless WebP": save("WEBP", lossless=True, **FRAMES),
    "WebP with a profile": save("WEBP", icc_profile=b"none", exif=pictures.exif(3)),
    **{
        f"PNG of colour type {color} and {bits} bits{', interlaced' * interlaced}": png(
            WIDTH, HEIGHT, color, bits, interlaced=interlaced, transparent=True
        )
        for color, bits in KINDS
        for interlaced in (False, True)
    },
}


@each("name", KEPT)
@each("settings", [{}, {"check": "entropy"}, {"check": "decode"}, {"restart": True}])
def test_png_and_webp_are_kept_byte_for_byte(name: str, settings: dict[str, Any]) -> None:
    data, recipe = KEPT[name], Recipe(**settings)
    stored = convert(data, recipe)
    assert stored.data == data
    assert (stored.width, stored.height, stored.storing.converted) == (WIDTH, HEIGHT, None)
    assert stored.storing.format == ("png" if name.startswith(("PNG", "animated PNG")) else "webp")
    assert check(data, recipe) == stored.storing
    assert stored.storing.method == "kept"
    small = Recipe(resize=parse_resize("max:40"), **{key: words for key, words in settings.items() if key == "restart"})
    assert convert(data, small) == stored
    lossless = parse_encode("png" if stored.storing.format == "png" else "webp:lossless")
    if "restart" not in settings:
        assert convert(data, Recipe(encode=lossless, **settings)) == stored


LOSSLESS = {
    "BMP": save("BMP"),
    "grey BMP": save("BMP", "L"),
    "BMP of two colours": save("BMP", "1"),
    "BMP with a palette": save("BMP", "P"),
    "GIF": save("GIF", "P"),
    "GIF with a colour that is transparent": save("GIF", "P", transparency=int(np.asarray(image("P"))[0, 0])),
    "animated GIF": save("GIF", **FRAMES),
    "TIFF": save("TIFF"),
    "TIFF with alpha": save("TIFF", "RGBA"),
    "grey TIFF with alpha": save("TIFF", "LA"),
    "16-bit TIFF": save("TIFF", "I;16"),
    "compressed TIFF": save("TIFF", compression="tiff_lzw"),
    "TIFF of several pages": save("TIFF", **FRAMES),
    "CMYK TIFF": save("TIFF", "CMYK"),
    "TIFF of two colours": save("TIFF", "1"),
    "PPM": save("PPM"),
    "PGM of 16 bits": save("PPM", "I;16"),
    "JPEG 2000": save("JPEG2000"),
    "grey JPEG 2000": save("JPEG2000", "L"),
    "JPEG 2000 with alpha": save("JPEG2000", "RGBA"),
    "CMYK JPEG": save("JPEG", "CMYK"),
}


def own_mode(data: bytes) -> str:
    """What the stored image of a lossless source has to hold."""
    with opened(data) as frame:
        if frame.mode.startswith("I"):
            return "I;16"
        grey = frame.mode in ("1", "L", "LA")
        return {(True, True): "LA", (True, False): "L", (False, True): "RGBA", (False, False): "RGB"}[
            grey, frame.has_transparency_data
        ]


@pytest.mark.decodes("png")
@each("name", LOSSLESS)
@each("settings", [{}, {"restart": True}, {"encode": parse_encode("png")}])
def test_what_cannot_be_kept_becomes_a_png_of_the_same_pixels(name: str, settings: dict[str, Any]) -> None:
    data, recipe = LOSSLESS[name], Recipe(**settings)
    stored, mode = convert(data, recipe), own_mode(LOSSLESS[name])
    assert (opened(stored.data).format, opened(stored.data).mode) == ("PNG", mode)
    assert (pictures.whole(stored.data, mode) == pictures.whole(data, mode)).all()
    assert (_native.decode_image(stored.data) == pictures.whole(data, "RGB")).all()
    assert (stored.storing.format, stored.storing.method) == ("png", "encoded")
    assert stored.storing.converted == stored.storing.source
    assert check(data, recipe) == stored.storing
    assert convert(stored.data, Recipe()).data == stored.data


ANY = {**LOSSLESS, **{name: data for name, data in KEPT.items() if "lossy" not in name and "WebP with a" not in name}}


@each("name", [name for name in ANY if "animated WebP" not in name and "CMYK" not in name])
@each(
    ("recipe", "crop"),
    [
        (Recipe(), None),
        (Recipe(), CROP),
        (Recipe(exif="apply"), None),
        (Recipe(parse_resize("short:20")), None),
        (Recipe(parse_resize("square:20"), exif="apply"), CROP),
        (Recipe(parse_resize("max:20"), restart=True), None),
        (Recipe(parse_resize("exact:9x8"), filter="tf1-legacy"), None),
        (Recipe(encode=parse_encode("webp:lossless")), CROP),
    ],
)
def test_nothing_lossless_becomes_lossy(name: str, recipe: Recipe, crop: Box | None) -> None:
    """Whatever is done to them, the pixels stored are those of the single steps by Pillow."""
    stored = convert(ANY[name], recipe, crop)
    with opened(stored.data) as reopened:
        assert (reopened.size, reopened.format) == ((stored.width, stored.height), stored.storing.format.upper())
        assert reopened.format == "PNG" or (reopened.format == "WEBP" and not is_lossy_webp(stored.data))
        mode = reopened.mode if stored.storing.method == "encoded" else own_mode(ANY[name])
    if recipe.filter == "tf1-legacy":
        assert mode == "RGB"
        return
    expected = pictures.shown(ANY[name], mode)
    if crop is not None:
        expected = expected.crop((10, 3, 30, 27))
    if recipe.exif == "apply" and name == "PNG with an orientation":
        expected = expected.transpose(Image.Transpose.ROTATE_270)
    if recipe.resize is not None and recipe.resize.mode == "square":
        expected = pictures.square(expected)
    if recipe.resize is not None:
        expected = expected.resize((stored.width, stored.height), Image.Resampling.BICUBIC)
    assert (pictures.whole(stored.data, mode) == pictures.channels_last(expected)).all()


@each(
    ("data", "settings", "expected"),
    [
        (save("JPEG"), {"resize": parse_resize("short:9")}, "jpeg"),
        (save("JPEG", "CMYK"), {"resize": parse_resize("short:9")}, "jpeg"),
        (KEPT["lossy WebP"], {"resize": parse_resize("short:9")}, "jpeg"),
        (KEPT["animated WebP"], {"resize": parse_resize("short:9")}, "jpeg"),
        (KEPT["lossy WebP with alpha"], {"resize": parse_resize("short:9")}, "png"),
        (KEPT["lossless WebP"], {"resize": parse_resize("short:9")}, "png"),
        (KEPT["animated lossless WebP"], {"resize": parse_resize("short:9")}, "png"),
        (KEPT["WebP with a profile"], {"exif": "apply"}, "jpeg"),
        (save("JPEG", exif=pictures.exif(3)), {"exif": "apply"}, "jpeg"),
        (save("PNG", exif=pictures.exif(3)), {"exif": "apply"}, "png"),
        (KEPT["lossless WebP"], {"exif": "apply"}, "webp"),
    ],
)
def test_the_source_decides_what_is_written(data: bytes, settings: dict[str, Any], expected: str) -> None:
    stored = convert(data, Recipe(**settings))
    assert opened(stored.data).format == expected.upper()
    assert check(data, Recipe(**settings)) == stored.storing
    if stored.storing.format == "jpeg":
        quality = {"quality": 100, "subsampling": 0} if "exif" in settings else {"quality": 90}
        wanted = opened(pictures.encode(Image.new("RGB", (16, 16)), **quality))
        assert opened(stored.data).quantization == wanted.quantization


ENCODES = ("jpeg:80", "jpeg:80:444", "png", "webp:0", "webp:80", "webp:lossless", "raw", "raw:CHW")


@each("encode", ENCODES)
@each("name", ["JPEG", "grey JPEG", *KEPT, *LOSSLESS])
def test_encode_decides_for_all(name: str, encode: str) -> None:
    data = {"JPEG": save("JPEG"), "grey JPEG": save("JPEG", "L"), **KEPT, **LOSSLESS}[name]
    recipe = Recipe(encode=parse_encode(encode))
    stored = convert(data, recipe)
    assert stored.storing.format == encode.partition(":")[0]
    assert check(data, recipe) == stored.storing
    assert (stored.width, stored.height) == (WIDTH, HEIGHT)
    if encode in ("png", "webp:lossless"):
        assert (pictures.whole(stored.data, "RGB") == pictures.whole(data, "RGB")).all()
    if encode.startswith("webp"):
        assert is_lossy_webp(stored.data) <= (encode != "webp:lossless" or "WebP" in name)
        seen_through = "A" in own_mode(data) and (pictures.whole(data, "RGBA")[:, :, 3] < 255).any()
        assert opened(stored.data).has_transparency_data == seen_through


def test_for_readers_of_jpeg_encode_decides_too() -> None:
    for data in (KEPT["PNG"], KEPT["lossy WebP"]):
        assert convert(data, Recipe(formats=frozenset({"jpeg"}))).storing.format == "jpeg"
        assert convert(data, Recipe(formats=frozenset({"jpeg"}), encode=parse_encode("png"))).storing.format == "png"
    assert convert(KEPT["PNG"], Recipe(formats=frozenset({"jpeg"}), encode=parse_encode("png"))).data == KEPT["PNG"]


def test_for_readers_of_jpeg_and_png_nothing_is_lost() -> None:
    recipe = Recipe(formats=frozenset({"jpeg", "png"}))
    assert convert(KEPT["PNG"], recipe).data == KEPT["PNG"]
    for name in ("lossless WebP", "lossy WebP"):
        stored = convert(KEPT[name], recipe)
        assert stored.storing.format == "png"
        assert (pictures.whole(stored.data, "RGB") == pictures.whole(KEPT[name], "RGB")).all()


@pytest.mark.decodes("png")
@pytest.mark.parametrize("name", ["PNG", "PNG with alpha", "lossy WebP", "lossless WebP", "animated WebP"])
def test_a_file_that_is_cut_is_not_kept(name: str) -> None:
    """Wherever it is cut; nor is a PNG in which a byte has changed."""
    data = KEPT[name]
    for size in range(len(data) - 12 if "PNG" in name else len(data)):
        with pytest.raises(ImageError):
            convert(data[:size], Recipe())
    if "PNG" not in name:
        return
    assert is_whole_png(data)
    for at in range(8, len(data), 7):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert not is_whole_png(changed), at
        try:
            stored = convert(changed, Recipe())
        except ImageError:
            continue
        assert (_native.decode_image(stored.data) == _native.decode_image(data)).all(), at


def test_the_same_pixels_give_the_same_bytes_whatever_the_file_says_beside_them() -> None:
    plain, full = save("TIFF"), save("TIFF", description="words", dpi=(300, 300), compression="tiff_lzw")
    for encode in ("png", "webp:lossless", "webp:75"):
        recipe = Recipe(encode=parse_encode(encode))
        assert convert(plain, recipe).data == convert(full, recipe).data
        assert not opened(convert(full, recipe).data).info.keys() & {"dpi", "exif", "Description", "icc_profile"}


def test_the_colours_of_transparent_pixels_stay() -> None:
    pixels = np.dstack([pictures.pixels(WIDTH, HEIGHT), np.zeros((HEIGHT, WIDTH), np.uint8)])
    data = pictures.encode(Image.fromarray(pixels), format="TIFF")
    for encode in ("png", "webp:lossless"):
        stored = convert(data, Recipe(encode=parse_encode(encode))).data
        assert (np.asarray(opened(stored)) == pixels).all()


@pytest.mark.parametrize("mode", ["L", "LA", "RGB", "RGBA", "I;16"])
def test_pixels_come_in_the_mode_that_the_image_has(mode: str) -> None:
    data = save("PNG", mode)
    pixels, _ = decode_with_pillow(data, "png", lambda *_: None, frozenset({"L", "LA", "RGB", "RGBA", "I;16"}))
    assert (pixels.squeeze() == np.asarray(opened(data))).all()
    narrow, _ = decode_with_pillow(data, "png", lambda *_: None, frozenset({"RGB", "RGBA"}))
    assert narrow.shape == (HEIGHT, WIDTH, 4 if "A" in mode else 3)
