"""The words of a recipe and the sizes they give."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_cases import each
from stoker.errors import ConfigError, ImageTooLargeError
from stoker.recipe import (
    JpegEncode,
    PngEncode,
    RawEncode,
    Recipe,
    StoredSize,
    WebpEncode,
    parse_encode,
    parse_resize,
)

sides = st.integers(1, 5000)

JPEG = frozenset({"jpeg"})


@pytest.mark.parametrize("text", ["short:256", "long:512", "max:512", "exact:300x200", "square:300"])
def test_resize_words_round_trip(text: str) -> None:
    assert str(parse_resize(text)) == text


@pytest.mark.parametrize(
    "text", ["", "short", "short:", "short:0", "short:70000", "exact:300", "short:3x3", "keep:3", "exact:0x3", "max:-3"]
)
def test_other_resize_words_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="resize"):
        parse_resize(text)


def test_encode_words() -> None:
    assert parse_encode("jpeg:85") == JpegEncode(85, "4:2:0")
    assert parse_encode("jpeg:100:444") == JpegEncode(100, "4:4:4")
    assert parse_encode("jpeg:90:standard") == JpegEncode(90, "4:2:0", "standard")
    assert (parse_encode("png"), parse_encode("webp:lossless"), parse_encode("webp:0")) == (
        PngEncode(), WebpEncode(), WebpEncode(0),
    )  # fmt: skip
    for text in ("png", "webp:lossless", "webp:75", "jpeg:90:444", "jpeg:90:420:standard", "raw:CHW"):
        assert str(parse_encode(text)) == text
    assert (parse_encode("raw"), parse_encode("raw:CHW")) == (RawEncode(), RawEncode("CHW"))
    assert parse_resize("off") is None
    assert str(parse_encode("jpeg:90")) == "jpeg:90:420"


OTHER_ENCODES = [
    "", "png:6", "jpeg", "jpeg:0", "jpeg:101", "jpeg:90:411",
    "webp", "webp:", "webp:101", "webp:lossy", "raw:WHC", "raw:",
]  # fmt: skip


@each("text", OTHER_ENCODES)
def test_other_encode_words_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="encode"):
        parse_encode(text)


@given(sides, sides, st.integers(1, 1000))
def test_kept_aspects_are_rounded_to_the_nearest_pixel(width: int, height: int, size: int) -> None:
    for mode, reference in (("short", min(width, height)), ("long", max(width, height))):
        target = StoredSize(mode, size, size).target(width, height)  # type: ignore[arg-type]
        assert (min if mode == "short" else max)(target) == size
        for got, side in zip(target, (width, height), strict=True):
            exact = side * size / reference
            assert abs(got - exact) <= 0.5 or (got == 1 and exact < 1)


@given(sides, sides, st.integers(1, 1000))
def test_max_only_shrinks(width: int, height: int, size: int) -> None:
    target = StoredSize("max", size, size).target(width, height)
    shrunk = StoredSize("long", size, size).target(width, height)
    assert target == ((width, height) if max(width, height) <= size else shrunk)


def test_fixed_sizes() -> None:
    assert parse_resize("exact:300x200").target(17, 4000) == (300, 200)
    assert parse_resize("square:64").target(17, 4000) == (64, 64)


def test_resolved_names_only_what_has_a_meaning() -> None:
    assert Recipe().resolved() == {
        "kind": "keep", "encode": "auto", "check": "header", "exif": "keep", "max_pixels": 2**27,
    }  # fmt: skip
    assert Recipe(formats=JPEG).resolved()["encode"] == "jpeg:100:444"
    png = Recipe(encode=PngEncode())
    assert (png.resolved()["kind"], png.resolved()["encode"], str(png)) == ("encode", "png", "png")
    for recipe, encode in ((Recipe(parse_resize("short:256")), "auto"),
                           (Recipe(parse_resize("short:256"), formats=JPEG), "jpeg:90:420")):  # fmt: skip
        resized = recipe.resolved()
        assert (resized["resize"], resized["filter"], resized["encode"]) == ("short:256", "bicubic", encode)


def test_limits() -> None:
    with pytest.raises(ImageTooLargeError, match="3x3 pixels are more than the limit of 8"):
        Recipe(max_pixels=8).check_pixels(3, 3)
    Recipe(max_pixels=9).check_pixels(3, 3)
