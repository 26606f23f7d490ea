"""A JPEG resized in one native call: the bytes of the single steps, or, decoded fast, pixels close to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import pictures
from reference import restart as markers
from reference.strategies import regions
from small_cases import each
from stoker import _native
from stoker.errors import ConfigError, ImageError, ImageTooLargeError
from stoker.recipe import RawEncode, Recipe, convert, parse_encode, parse_resize
from stoker.types import Box

KINDS = {
    "4:4:4": {"subsampling": 0},
    "4:2:0": {"subsampling": 2},
    "progressive": {"progressive": True},
    "markers": {"restart_marker_blocks": 3},
    "grey": {"mode": "L"},
    "cmyk": {"mode": "CMYK"},
    "rgb": {"keep_rgb": True},
}
sides = st.integers(1, 90)


def resizer(**changes: object) -> _native.JpegStoring:
    settings: dict[str, object] = {"filter": "bicubic", "quality": 90, "subsampling": "4:2:0"}
    return _native.JpegStoring(**settings | changes)  # type: ignore[arg-type]


@given(
    st.sampled_from(sorted(KINDS)),
    st.tuples(sides, sides),
    st.tuples(sides, sides),
    st.sampled_from(["nearest", "box", "bilinear", "bicubic", "lanczos"]),
    st.booleans(),
    st.data(),
)
@pytest.mark.slow
def test_one_call_gives_the_bytes_of_its_steps(
    kind: str, size: tuple[int, int], out: tuple[int, int], kernel: str, restart: bool, data: st.DataObject
) -> None:
    source = pictures.jpeg(*size, **KINDS[kind])
    part = data.draw(regions(*size))
    pixels = _native.resize(_native.decode_image(source, part), *out, kernel)
    expected = _native.encode_jpeg(pixels, 80, "4:4:4", restart=restart)
    storing = resizer(filter=kernel, quality=80, subsampling="4:4:4", restart=restart)
    assert storing.reencode(source, part, *out) == expected


@pytest.mark.parametrize("resize", ["short:40", "max:50", "exact:31x64", "square:33"])
@pytest.mark.parametrize("crop", [None, Box(0.1, 0.2, 0.7, 0.95)])
def test_a_recipe_gives_the_same_by_either_way(resize: str, crop: Box | None) -> None:
    source = pictures.jpeg(90, 70)
    recipe = Recipe(parse_resize(resize), parse_encode("jpeg:90"))
    stored = convert(source, recipe, crop)
    assert stored.data == convert(source, Recipe(recipe.resize), crop).data
    same = convert(_native.decode_image(source), recipe, crop)  # pixels take the way of single steps
    assert replace(stored, storing=same.storing) == same


def psnr(first: bytes, second: bytes) -> float:
    """In dB, of RGB with 255 as the peak."""
    error = np.asarray(pictures.rgb(first), np.float64) - np.asarray(pictures.rgb(second), np.float64)
    return float(10 * np.log10(255**2 / np.mean(error**2)))


# On 300 photographs of ImageNet at `short:256`, jpeg:90, both encodings included: mean 47.0 dB, 19 of 20 above 43.2 dB,
# least 30.9 dB. These pictures have far more noise and colour, which suit neither a fast decode nor 4:2:0.
@each(("kind", "least_db"), [("4:4:4", 36), ("4:2:0", 28), ("grey", 40), ("cmyk", 28)])
@each("resize", ["short:100", "short:60", "square:70"])
def test_the_fast_decode_is_close(kind: str, least_db: float, resize: str) -> None:
    source = pictures.jpeg(320, 240, **KINDS[kind])
    exact, fast = (convert(source, Recipe(parse_resize(resize), decode=mode)) for mode in ("exact", "fast"))
    assert (exact.width, exact.height, exact.geometry) == (fast.width, fast.height, fast.geometry)
    assert psnr(exact.data, fast.data) >= least_db
    assert exact.data != fast.data


def test_the_manifest_says_fast_only() -> None:
    recipe = Recipe(parse_resize("short:9"), decode="fast")
    assert recipe.resolved()["decode"] == "fast"
    assert str(recipe) == "short:9 decode fast"
    assert "decode" not in Recipe(parse_resize("short:9")).resolved()


@pytest.mark.parametrize("settings", [{}, {"resize": parse_resize("short:9"), "encode": RawEncode()},
                                       {"resize": parse_resize("short:9"), "encode": parse_encode("png")}])  # fmt: skip
def test_fast_needs_something_to_decode_for(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="decode fast"):
        Recipe(decode="fast", **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("decode", ["exact", "fast"])
def test_damage_and_hostile_sizes_are_errors(decode: str) -> None:
    source, storing = pictures.jpeg(60, 45), resizer(decode=decode, max_pixels=60 * 45)
    with pytest.raises(ImageError):
        storing.reencode(source[: len(source) // 2], (0, 0, 60, 45), 30, 20)
    for part in ((0, 0, 61, 45), (-1, 0, 5, 5), (9, 9, 9, 12), (0, 0, 2**31 - 1, 1)):
        with pytest.raises(ConfigError, match="leaves the image of 60 x 45"):
            storing.reencode(source, part, 30, 20)
    for size in ((0, 5), (5, -1)):
        with pytest.raises(ConfigError, match=r"each side must be 1\.\.65500"):
            storing.reencode(source, (0, 0, 60, 45), *size)
    with pytest.raises(ImageTooLargeError):
        storing.reencode(source, (0, 0, 60, 45), 61, 45)
    with pytest.raises(ImageTooLargeError):
        resizer(decode=decode, max_pixels=60 * 45 - 1).reencode(source, (0, 0, 60, 45), 3, 2)
    assert storing.reencode(source, (0, 0, 60, 45), 30, 20)  # as good as new


@pytest.mark.parametrize("word", [{"filter": "sinc"}, {"subsampling": "4:1:1"}, {"decode": "slow"}])
def test_unknown_words_are_refused(word: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"nknown|decode is"):
        resizer(**word)


def test_encodings_with_markers_say_so() -> None:
    recipe = Recipe(parse_resize("short:60"), parse_encode("jpeg:90:444"), restart=True, decode="fast")
    assert _native.probe_jpeg(convert(pictures.jpeg(320, 240), recipe).data).restart_interval == 1


def huffman_tables(data: bytes) -> bytes:
    return b"".join(body for marker, body in markers.segments(data) if marker == 0xC4)


@pytest.mark.parametrize(("resize", "restart"), [("short:60", False), ("short:60", True), ("off", False)])
def test_standard_tables_are_those_of_others_and_change_no_pixel(resize: str, restart: bool) -> None:
    source = pictures.jpeg(320, 240)
    encodes = (parse_encode(f"jpeg:90{tables}") for tables in ("", ":standard"))
    recipes = (Recipe(parse_resize(resize), encode, restart=restart) for encode in encodes)
    optimal, standard = (convert(source, recipe).data for recipe in recipes)
    assert np.array_equal(pictures.rgb(optimal), pictures.rgb(standard))
    assert len(optimal) < len(standard)
    others = pictures.jpeg(60, 45, quality=90, optimize=False)
    assert huffman_tables(standard) == huffman_tables(others) != huffman_tables(optimal)
