"""One source file to one stored JPEG: what is kept, what is converted, what is refused."""

from __future__ import annotations

import struct
import threading
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from reference import pictures
from reference.jpeg import in_frame, resized
from small_cases import each
from stoker.errors import ImageError, ImageTooLargeError
from stoker.recipe import Recipe, StoredImage, convert, parse_encode, parse_resize, sniff
from stoker.recipe.geometry import Geometry
from stoker.types import Box

KEEP = Recipe()
JPEG_ONLY = Recipe(formats=frozenset({"jpeg"}))


def pixels(width: int = 48, height: int = 36) -> np.ndarray:
    y, x = np.mgrid[:height, :width]
    return np.stack([x * 5 % 256, y * 7 % 256, (x + y) * 3 % 256], axis=2).astype(np.uint8)


def save(kind: str, mode: str = "RGB", size: tuple[int, int] = (48, 36), **options: Any) -> bytes:
    return pictures.encode(Image.fromarray(pixels(*size)).convert(mode), format=kind, **options)


@each(
    "data",
    [
        save("JPEG"),
        save("JPEG", progressive=True),
        save("JPEG", "L"),
        save("JPEG", subsampling=0),
        save("JPEG", keep_rgb=True),
        save("JPEG", exif=pictures.exif(6)),
        save("JPEG") + b"trailing bytes",
    ],
)
@each("check", ["header", "decode"])
def test_keep_stores_the_very_bytes_of_a_plain_jpeg(data: bytes, check: Any) -> None:
    assert convert(data, Recipe(check=check)) == StoredImage(data, 48, 36, source_size=(48, 36))


@each(
    ("kind", "options"),
    [
        ("PNG", {}), ("PNG", {"mode": "L"}), ("PNG", {"mode": "1"}), ("PNG", {"mode": "P"}),
        ("PNG", {"mode": "RGBA"}), ("PNG", {"mode": "LA"}), ("GIF", {"mode": "P"}), ("BMP", {}),
        ("WEBP", {"lossless": True}), ("TIFF", {}), ("TIFF", {"mode": "CMYK"}), ("PPM", {}), ("JPEG2000", {}),
    ],
)  # fmt: skip
def test_for_readers_of_jpeg_other_formats_become_jpegs_of_the_same_pixels(kind: str, options: dict[str, Any]) -> None:
    data = save(kind, **options)
    stored = convert(data, JPEG_ONLY)
    assert (stored.width, stored.height, stored.storing.converted) == (48, 36, kind.lower())
    assert pictures.opened(stored.data).format == "JPEG"
    assert pictures.opened(stored.data).layer == [(1, 1, 1, 0), (2, 1, 1, 1), (3, 1, 1, 1)]  # 4:4:4, two tables
    difference = np.abs(pictures.whole(stored.data).astype(int) - pictures.whole(data))
    assert difference.max() <= 6
    assert difference.mean() < 1


@pytest.mark.parametrize("adobe_inverted", [True, False])
def test_cmyk_jpegs_become_rgb(adobe_inverted: bool) -> None:
    data = save("JPEG", "CMYK", quality=95)
    if not adobe_inverted:  # without the Adobe marker, inks are stored upright
        start = data.index(b"\xff\xee")
        data = data[:start] + data[start + 2 + int.from_bytes(data[start + 2 : start + 4]) :]
    stored = convert(data, KEEP)
    assert stored.storing.converted == "cmyk jpeg"
    assert (pictures.opened(stored.data).format, pictures.opened(stored.data).mode) == ("PNG", "RGB")
    assert (pictures.whole(stored.data) == pictures.whole(data)).all()
    lossy = convert(data, JPEG_ONLY)
    assert (lossy.storing.converted, pictures.opened(lossy.data).mode) == ("cmyk jpeg", "RGB")
    assert np.abs(pictures.whole(lossy.data).astype(int) - pictures.whole(stored.data)).mean() < 2


def test_sixteen_bit_grey_is_scaled_not_clipped() -> None:
    values = np.linspace(0, 65535, 48 * 36).round().astype(np.uint16).reshape(36, 48)
    out = pictures.encode(Image.fromarray(values), format="PNG")
    stored = pictures.whole(convert(out, JPEG_ONLY).data)
    assert np.abs(stored[:, :, 1].astype(int) - np.round(values / 257)).max() <= 2


def test_the_first_frame_of_an_animation_is_stored() -> None:
    frames = [Image.fromarray(np.full((8, 8, 3), level, np.uint8)) for level in (40, 200)]
    for kind in ("GIF", "WEBP", "TIFF", "PNG"):
        out = pictures.encode(frames[0], format=kind, save_all=True, append_images=frames[1:])
        assert abs(int(pictures.whole(convert(out, KEEP).data)[4, 4, 0]) - 40) <= 3, kind


@each("orientation", range(1, 9))
@each("kind", ["JPEG", "PNG", "TIFF"])
def test_exif_orientation_is_applied_when_asked(kind: str, orientation: int) -> None:
    data = save(kind, exif=pictures.exif(orientation))
    stored = convert(data, Recipe(exif="apply"))
    upright = np.asarray(ImageOps.exif_transpose(pictures.rgb(data)))
    assert (stored.height, stored.width) == upright.shape[:2]
    assert np.abs(pictures.whole(stored.data).astype(int) - upright).mean() < (1.5 if kind == "JPEG" else 1e-9)
    turned = None if orientation == 1 else f"turned {kind.lower()}"
    assert stored.storing.converted == {"JPEG": turned, "PNG": turned}.get(kind, kind.lower())
    assert stored.storing.format == ("jpeg" if kind == "JPEG" else "png")
    assert stored.data == data or pictures.opened(stored.data).getexif().get(274, 1) == 1


def test_boxes_follow_a_square_crop() -> None:
    stored = convert(save("PNG", size=(200, 100)), Recipe(resize=parse_resize("square:50")))
    assert stored.geometry == Geometry(1, (0.25, 0.0, 0.75, 1.0))
    boxes = [Box(0.0, 0.1, 0.2, 0.2), Box(0.0, 0.0, 0.5, 0.5), Box(0.5, 0.5, 1.0, 1.0)]
    assert stored.geometry.place(boxes) == [Box(0.0, 0.0, 0.5, 0.5), Box(0.5, 0.5, 1.0, 1.0)]


@each(
    ("words", "size"),
    [("short:24", (32, 24)), ("short:72", (96, 72)), ("long:24", (24, 18)), ("max:24", (24, 18)),
     ("exact:20x50", (20, 50)), ("square:20", (20, 20))],
)  # fmt: skip
@each("kind", ["JPEG", "PNG"])
def test_resized_pixels_are_those_of_pillow(kind: str, words: str, size: tuple[int, int]) -> None:
    data = save(kind)
    stored = convert(data, Recipe(resize=parse_resize(words), encode=parse_encode("jpeg:100:444")))
    image = pictures.opened(data).convert("RGB")
    if words.startswith("square"):
        image = image.crop((6, 0, 42, 36))
    expected = pictures.encode(image.resize(size, Image.Resampling.BICUBIC), quality=100, subsampling=0)
    assert (stored.width, stored.height) == size
    assert stored.storing.converted == (None if kind == "JPEG" else "png")
    assert np.abs(pictures.whole(stored.data).astype(int) - pictures.whole(expected)).max() <= 1


def test_resized_images_have_the_encoding_asked_for() -> None:
    data = convert(save("JPEG", subsampling=0), Recipe(resize=parse_resize("short:24"))).data
    assert pictures.opened(data).layer[0][1:3] == (2, 2)


def test_max_keeps_small_jpegs_byte_for_byte_and_encodes_the_rest() -> None:
    recipe = Recipe(resize=parse_resize("max:48"))
    data = save("JPEG", "L")
    assert convert(data, recipe) == StoredImage(data, 48, 36, source_size=(48, 36))
    assert convert(save("JPEG", "CMYK"), recipe).storing.converted == "cmyk jpeg"
    assert convert(save("PNG"), recipe).data == save("PNG")
    for other in (
        Recipe(resize=recipe.resize, encode=parse_encode("jpeg:90")),
        Recipe(recipe.resize, formats=frozenset({"jpeg"})),
    ):
        assert convert(data, other).data == data
        assert convert(save("PNG"), other).storing.converted == "png"
    with pytest.raises(ImageError):
        convert(data[:-2], recipe)


def png_header(width: int, height: int) -> bytes:
    data = bytearray(save("PNG"))
    data[16:24] = struct.pack(">II", width, height)
    data[29:33] = struct.pack(">I", zlib.crc32(bytes(data[12:29])))
    return bytes(data)


@pytest.mark.parametrize("recipe", [KEEP, Recipe(resize=parse_resize("short:24")), Recipe(exif="apply")])
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the file is empty"),
        (b"Not found: no such image\n", "not an image but text: it starts with 'Not found: no su'"),
        (b"<html><body>", "text"),
        (bytes(range(200, 256)), "not an image of a known format"),
        (b"%PDF-1.4 ...", "pdf is not read"),
        (b"\0\0\0\x20ftypavif" + bytes(20), "damaged avif"),
        (b"\0\0\0\x20ftypheic" + bytes(20), "damaged heif"),
        (save("JPEG")[:-200], "JPEG"),
        (save("JPEG")[:-2], "JPEG"),
        (save("JPEG")[:30], "JPEG"),
        pytest.param(
            save("PNG")[:60], "PNG cannot be decoded whole: the file is cut short", marks=pytest.mark.decodes("png")
        ),
        pytest.param(save("PNG")[:20], "damaged png: it ends inside its header", marks=pytest.mark.decodes("png")),
        (save("GIF")[:60], "damaged gif"),
        pytest.param(
            save("WEBP")[:60], "WebP cannot be decoded whole: the file is cut short", marks=pytest.mark.decodes("webp")
        ),
        pytest.param(save("WEBP")[:20], "damaged webp: it ends inside its header", marks=pytest.mark.decodes("webp")),
        (save("TIFF")[:60], "damaged tiff"),
        (save("BMP")[:60], "damaged bmp"),
    ],
)
def test_what_is_not_an_image_is_refused_with_a_reason(data: bytes, reason: str, recipe: Recipe) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ImageError, match=reason):
            convert(data, recipe)


@pytest.mark.parametrize("recipe", [KEEP, Recipe(resize=parse_resize("short:24"))])
@pytest.mark.parametrize(
    "data",
    [
        resized(save("JPEG"), 60_000, 60_000),
        png_header(60_000, 60_000),
        save("WEBP", size=(60, 60))[:12] + b"VP8X\x0a\0\0\0\0\0\0\0" + b"\xff\xff\xff" * 2,
    ],
    ids=["jpeg", "png", "webp"],
)
def test_huge_sizes_are_refused_before_memory_is_taken(data: bytes, recipe: Recipe) -> None:
    with pytest.raises(ImageTooLargeError, match="more than the limit of 134217728"):
        convert(data, recipe)


def test_jpegs_that_few_readers_decode_are_refused_with_the_reason() -> None:
    data = save("JPEG")
    with pytest.raises(ImageError, match="12 bits"):
        convert(in_frame(in_frame(data, 1, b"\xc1"), 4, b"\x0c"), KEEP)
    with pytest.raises(ImageError, match="lossless"):
        convert(in_frame(data, 1, b"\xc3"), KEEP)


def test_thirty_two_bit_tiffs_have_no_defined_form() -> None:
    out = pictures.encode(Image.fromarray(np.ones((4, 4), np.float32)), format="TIFF")
    with pytest.raises(ImageError, match="32-bit samples"):
        convert(out, KEEP)


def test_a_resize_that_no_jpeg_can_hold_is_refused() -> None:
    with pytest.raises(ImageError, match="sides of a JPEG end at 65500"):
        convert(save("PNG", size=(300, 1)), Recipe(resize=parse_resize("short:300"), formats=frozenset({"jpeg"})))
    with pytest.raises(ImageError, match="sides of a WebP end at 16383"):
        convert(save("PNG", size=(300, 1)), Recipe(parse_resize("short:60"), parse_encode("webp:90")))
    assert convert(save("PNG", size=(300, 1)), Recipe(resize=parse_resize("short:300"))).width == 90_000
    with pytest.raises(ImageTooLargeError):
        convert(save("PNG", size=(300, 3)), Recipe(resize=parse_resize("short:600"), max_pixels=1000_000))


def test_pillows_own_limit_does_not_interfere_and_nothing_leaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        palette = pictures.encode(Image.fromarray(pixels()).convert("P"), format="PNG", transparency=bytes(range(200)))
        threads = [threading.Thread(target=convert, args=(palette, KEEP)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert convert(save("BMP"), KEEP).storing.converted == "bmp"
        assert warnings.filters == before
    assert seen == []


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xff\xd8\xff", "jpeg"),
        (b"\xff\xd8", "unknown"),
        (b"", "empty"),
        (b"BM is how this text starts", "text"),
        (b"\x00\x01", "unknown"),
    ],
)
def test_sniff(data: bytes, kind: str) -> None:
    assert sniff(data) == kind
