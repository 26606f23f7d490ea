"""The recipe ``restart``: markers in every stored JPEG, from an image to a dataset."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import stoker
from reference import pictures, restart
from stoker.errors import ConfigError, ImageError
from stoker.format import read_manifest
from stoker.recipe import RawEncode, Recipe, convert, parse_encode, parse_resize

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

RESTART = Recipe(restart=True)


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"mode": "L"}, {"subsampling": 0}])
def test_a_jpeg_keeps_its_pixels(options: dict[str, object]) -> None:
    source = pictures.jpeg(90, 70, **options)
    stored = convert(source, RESTART)
    assert (pictures.whole(stored.data) == pictures.whole(source)).all()
    assert restart.markers(stored.data)
    assert (stored.width, stored.height, stored.storing.converted) == (90, 70, None)


@pytest.mark.parametrize("options", [{"format": "PNG"}, {"format": "WEBP"}, {"mode": "CMYK"}, {"format": "BMP"}])
def test_only_jpegs_have_markers(options: dict[str, str]) -> None:
    source = pictures.jpeg(90, 70, **options)
    assert convert(source, RESTART) == convert(source, Recipe())
    assert (convert(source, RESTART).data == source) == (options.get("format") in ("PNG", "WEBP"))


@pytest.mark.parametrize("options", [{"format": "PNG"}, {"mode": "CMYK"}])
def test_what_becomes_a_jpeg_is_what_keep_converts_to_with_markers(options: dict[str, str]) -> None:
    source = pictures.jpeg(90, 70, **options)
    stored, kept = (
        convert(source, Recipe(restart=True, formats=frozenset({"jpeg"}))),
        convert(source, Recipe(formats=frozenset({"jpeg"}))),
    )
    assert (pictures.whole(stored.data) == pictures.whole(kept.data)).all()
    assert restart.markers(stored.data)
    assert not restart.markers(kept.data)
    assert stored.storing.converted == kept.storing.converted


def test_a_picture_that_is_turned_has_markers_too() -> None:
    source = pictures.jpeg(90, 70, exif=pictures.exif(6))
    stored = convert(source, Recipe(restart=True, exif="apply"))
    assert (stored.width, stored.height, stored.storing.converted) == (70, 90, "turned jpeg")
    assert restart.markers(stored.data)
    assert pictures.opened(convert(source, RESTART).data).getexif()[274] == 6


def test_a_progressive_file_that_stops_early_is_refused() -> None:
    source = pictures.jpeg(90, 70, progressive=True)
    cut = source[: source.rindex(b"\xff\xda")] + b"\xff\xd9"  # without its last scan
    with pytest.raises(ImageError, match="scans are missing: component 1 of 3"):
        convert(cut, RESTART)
    with pytest.raises(ImageError):
        convert(source[:-40], RESTART)


@pytest.mark.parametrize("resize", ["short:40", "max:50", "max:500", "square:33"])
@pytest.mark.parametrize("encode", ["jpeg:90:420", "jpeg:80:444"])
def test_with_a_resize_the_encoder_writes_markers(resize: str, encode: str) -> None:
    source = pictures.jpeg(90, 70)
    stored = convert(source, Recipe(parse_resize(resize), parse_encode(encode), restart=True))
    assert restart.markers(stored.data)
    plain = convert(pictures.jpeg(90, 70, format="BMP"), Recipe(parse_resize(resize), parse_encode(encode)))
    assert (stored.width, stored.height) == (plain.width, plain.height)
    subsampling = 2 if "420" in encode else 0
    image = Image.fromarray(pictures.whole(source))
    expected = pictures.encode(image, quality=int(encode[5:7]), subsampling=subsampling)
    if resize == "max:500":  # fits: not resized, but encoded like all others
        assert (pictures.whole(stored.data) == pictures.whole(expected)).all()


def test_the_manifest_says_so() -> None:
    assert RESTART.resolved()["kind"] == str(RESTART) == "restart"
    resized = Recipe(parse_resize("short:9"), restart=True)
    assert (resized.resolved()["kind"], resized.resolved()["restart"]) == ("resize", True)
    assert str(resized) == "short:9 restart"
    assert "restart" not in Recipe(parse_resize("short:9")).resolved()


def test_pixels_have_no_markers() -> None:
    for encode in (RawEncode(), parse_encode("png"), parse_encode("webp:90")):
        with pytest.raises(ConfigError, match="recipe restart needs JPEG"):
            Recipe(parse_resize("short:9"), encode=encode, restart=True)
    with pytest.raises(ConfigError, match="give resize too"):
        Recipe(encode=parse_encode("jpeg:90"), restart=True)


@pytest.mark.slow
def test_build_plan_info_and_repack(photos: Path, tmp_path: Path, cli: Cli) -> None:
    new, old, again = tmp_path / "new", tmp_path / "old", tmp_path / "again"
    cli("build", photos, new, "--recipe", "restart", "--shards", 2)
    cli("build", photos, old, "--shards", 2)
    cli("repack", old, again, "--recipe", "restart", "--shards", 2)
    for before, *after in zip(*(stoker.open(path, "train") for path in (old, new, again)), strict=True):
        for sample in after:
            assert before.encoded[:3] != b"\xff\xd8\xff" or restart.declared_interval(sample.encoded) > 0
            assert (before.decode() == sample.decode()).all()
            assert (before.label, before.source) == (sample.label, sample.source)
    assert read_manifest(new).formats == {"jpeg": {"kept": 48}, "png": {"encoded": 1, "kept": 1}}
    assert "recipe: kind restart" in cli("info", new)
    assert "recipe restart: about" in cli("plan", photos, "--recipe", "restart")
    recipe = json.loads(cli("plan", photos, "--recipe", "restart", "--resize", "short:40", "--json"))["recipe"]
    assert (recipe["resize"], recipe["restart"]) == ("short:40", True)
    cli("verify", new)


@pytest.mark.parametrize(("rows", "others"), [(["photos"], ""), (["photos", "drawn"], ", 1 png kept")])
def test_a_transcoded_jpeg_is_not_called_kept(tmp_path: Path, cli: Cli, rows: list[str], others: str) -> None:
    data = {"photos": ["one.jpg", "two.jpg"], "drawn": ["three.png"]}
    for row in rows:
        (tmp_path / "src" / row).mkdir(parents=True)
        for name in data[row]:
            picture = pictures.jpeg(40, 30, format="PNG" if name.endswith("png") else "JPEG")
            (tmp_path / "src" / row / name).write_bytes(picture)
    line = f"stored: 2 jpeg transcoded without loss{others}\n"
    assert line in cli("plan", tmp_path / "src", "--recipe", "restart")
    assert line in cli("build", tmp_path / "src", tmp_path / "new", "--recipe", "restart")
    assert line in cli("info", tmp_path / "new")


def test_words_that_do_not_fit(photos: Path, tmp_path: Path, cli: Cli) -> None:
    words = ["build", photos, tmp_path / "a", "--recipe", "restart"]
    assert "give --resize too" in cli(*words, "--encode", "jpeg:90", code=2)
    assert "--recipe restart needs JPEG" in cli(*words, "--preset", "dlbs", code=2)
