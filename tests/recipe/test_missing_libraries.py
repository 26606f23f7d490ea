"""A build without libpng or libwebp: the same pixels, by Pillow, and one warning that says how to get the decoder."""

from __future__ import annotations

import warnings

import pytest
from PIL import Image

from reference import pictures
from stoker.recipe import Recipe, check, convert, image_formats, parse_encode, stored_image

RAW = Recipe(encode=parse_encode("raw"))


@pytest.mark.parametrize("kind", ["png", "webp"])
def test_without_its_library_pillow_decodes_a_format_with_a_warning(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = pictures.encode(Image.fromarray(pictures.pixels(20, 14)), format=kind, lossless=True)
    expected = convert(data, RAW)
    for module in (image_formats, stored_image):
        monkeypatch.setattr(module, "NATIVE_FORMATS", frozenset({"jpeg"}))
    image_formats._warn_of_pillow.cache_clear()
    with pytest.warns(UserWarning, match=f"built without lib{kind}.*install lib{kind}-dev .*{kind}.*then Stoker again"):
        assert convert(data, RAW) == expected
    with warnings.catch_warnings(action="error"):  # the warning comes once
        check(data, RAW)
    image_formats._warn_of_pillow.cache_clear()
