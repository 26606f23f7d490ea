"""Builds from images of every format: the same bytes however they are made, and what `plan` said beforehand."""

from __future__ import annotations

import io
import json
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import PIL
import pytest
from PIL import Image, features

import stoker
from builder.test_engines import PickledTasks
from builder.trees import build, contents, picture, pixels, settings_for, write_tree
from reference import pictures
from stoker.builder import forecast, open_source
from stoker.format import read_manifest
from stoker.recipe import Recipe, parse_encode, parse_resize

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from stoker.format import Manifest

RECIPES = [
    Recipe(),
    Recipe(exif="apply", check="entropy"),
    Recipe(restart=True),
    Recipe(parse_resize("short:20")),
    Recipe(parse_resize("max:40"), parse_encode("webp:80")),
    Recipe(encode=parse_encode("png")),
    Recipe(encode=parse_encode("webp:lossless")),
    Recipe(formats=frozenset({"jpeg"})),
]


def sixteen_bits() -> bytes:
    return pictures.encode(Image.fromarray(pixels(9)[:, :, 0].astype(np.uint16) * 257), format="PNG")


def mixed_tree(root: Path) -> Path:
    """Every format, some under another name, some turned, and a file that is damaged."""
    source = write_tree(root, {"a": 9, "b": 7})
    exif = Image.Exif()
    exif[274] = 6
    frames = {"save_all": True, "append_images": [Image.fromarray(pixels(90))]}
    odd: list[tuple[str, str, dict[str, Any]]] = [
        ("PNG", "RGB", {}), ("PNG", "RGBA", {}), ("PNG", "P", {}), ("PNG", "RGB", {"exif": exif}), ("WEBP", "RGB", {}),
        ("WEBP", "RGB", {"lossless": True}), ("WEBP", "RGB", frames), ("WEBP", "RGB", {"exif": exif}),
        ("JPEG", "CMYK", {}), ("JPEG", "RGB", {"exif": exif}), ("GIF", "P", {}), ("BMP", "RGB", {}), ("TIFF", "LA", {}),
        ("PPM", "L", {}), ("JPEG2000", "RGB", {}),
    ]  # fmt: skip
    for number, (kind, mode, options) in enumerate(odd):
        (source / "ab"[number % 2] / f"{number}.{'jpg' if number % 3 else kind.lower()}").write_bytes(
            picture(number, kind, mode, **options)
        )
    (source / "a/deep.png").write_bytes(sixteen_bits())
    (source / "b/cut.png").write_bytes(picture(5, "PNG")[:-30])
    return source


def settings(source: Path, recipe: Recipe, **more: Any) -> Any:
    return settings_for(source, recipe=recipe, shards=4, max_rejects=1, **more)


@pytest.mark.filterwarnings("ignore:readers of preset")
@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_same_bytes_and_the_numbers_of_the_plan(tmp_path: Path, recipe: Recipe) -> None:
    source = mixed_tree(tmp_path / "src")
    expected = forecast(open_source(settings(source, recipe)), settings(source, recipe))
    built = build(settings(source, recipe, threads=1), tmp_path / "one")
    build(settings(source, recipe, threads=4), tmp_path / "four")
    build(settings(source, recipe, threads=2), tmp_path / "parts", engine=PickledTasks)
    assert contents(tmp_path / "one") == contents(tmp_path / "four") == contents(tmp_path / "parts")

    manifest = read_manifest(tmp_path / "one")
    assert manifest == built.manifest
    rejects = [[reject.key for reject in each] for each in (built.rejects, expected.survey.rejects)]
    assert rejects == [["b/cut.png"]] * 2
    planned: Counter[tuple[str, str]] = Counter()
    converted: Counter[str] = Counter()
    for storing, count in expected.survey.storings.items():
        planned[storing.format, storing.method] += count
        converted.update({storing.converted: count} if storing.converted else {})
    assert planned == {(name, how): n for name, counts in manifest.formats.items() for how, n in counts.items()}
    assert converted == manifest.converted
    check_records(tmp_path / "one", manifest)


def check_records(directory: Path, manifest: Manifest) -> None:
    """Every record says which format its image has, and how large it is; the manifest counts them."""
    formats: Counter[str] = Counter()
    for sample in stoker.open(directory, "train"):
        with Image.open(io.BytesIO(sample.encoded)) as image:
            assert sample.features["image/format"] == ("bytes", [image.format.encode()])
            assert sample.features["image/width"][1] + sample.features["image/height"][1] == list(image.size)
            formats[image.format.lower()] += 1
            if not image.mode.startswith("I"):
                assert (sample.decode() == np.asarray(image.convert("RGB"))).all()
    assert formats == {name: sum(counts.values()) for name, counts in manifest.formats.items()}
    encoded = any("encoded" in counts for name, counts in manifest.formats.items() if name != "jpeg")
    versions = {"Pillow": PIL.__version__, "libwebp": features.version("webp"), "zlib-ng": features.version("zlib_ng")}
    assert manifest.encoders == (versions if encoded else {})
    text = json.loads((directory / "manifest.json").read_text())
    jsonschema.validate(text, json.loads((files("stoker.format") / "manifest.schema.json").read_text()))


def test_what_only_decoding_finds_damaged_is_not_planned_as_stored(tmp_path: Path) -> None:
    source = write_tree(tmp_path / "src", {"a": 3})
    whole = picture(8)
    (source / "a/damaged.JPEG").write_bytes(whole[: len(whole) * 9 // 10] + whole[-2:])
    for recipe, stored in ((Recipe(), 4), (Recipe(parse_resize("short:20")), 3)):
        survey = forecast(open_source(settings_for(source)), settings_for(source, recipe=recipe)).survey
        assert (sum(survey.storings.values()), len(survey.rejects)) == (stored, 4 - stored)


def test_an_interrupted_build_of_mixed_formats_ends_with_the_same_bytes(tmp_path: Path) -> None:
    source = mixed_tree(tmp_path / "src")
    build(settings(source, Recipe()), tmp_path / "whole")

    class Stop(Exception):  # noqa: N818 - not an error
        pass

    for items in range(1, 33, 6):

        def progress(*, done: int, limit: int = items, **_: int) -> None:
            if done >= limit:
                raise Stop

        with pytest.raises(Stop):
            build(settings(source, Recipe(), threads=1), tmp_path / f"out{items}", progress)
        assert build(settings(source, Recipe()), tmp_path / f"out{items}").outcome == "built"
        assert contents(tmp_path / f"out{items}") == contents(tmp_path / "whole")


def test_plan_build_and_info_name_what_becomes_of_the_images(tmp_path: Path, cli: Cli) -> None:
    source = mixed_tree(tmp_path / "src")
    (source / "b/cut.png").unlink()

    kept = "stored: 17 jpeg kept, 5 png kept, 4 webp kept, 1 bmp to png, 1 cmyk jpeg to png, 1 gif to png"
    assert kept in cli("plan", source)
    planned = json.loads(cli("plan", source, "--json"))["stored"]
    assert {"source": "png", "format": "png", "method": "kept", "images": 5} in planned
    assert {"source": "bmp", "format": "png", "method": "encoded", "images": 1} in planned
    assert sum(entry["images"] for entry in planned) == 32
    assert "5 png to jpeg, 4 webp to jpeg" in cli("plan", source, "--preset", "imagenet")
    assert "5 png kept, 4 webp to png" in cli("plan", source, "--preset", "tfds")
    assert "5 png to raw" in cli("plan", source, "--preset", "dlbs", "--resize", "square:9")
    stored = "stored: 17 jpeg kept, 6 png encoded, 5 png kept, 4 webp kept\n"
    line = "converted: 1 bmp, 1 cmyk jpeg, 1 gif, 1 jpeg2000, 1 ppm, 1 tiff\n"
    out = cli("build", source, tmp_path / "out")
    assert stored in out
    assert line in out
    out = cli("info", tmp_path / "out")
    assert stored in out
    assert line in out
    assert f"encoded by: Pillow {PIL.__version__}, " in out
    out = cli("build", source, tmp_path / "webp", "--encode", "webp:80", "--json")
    assert json.loads(out)["formats"] == {"webp": {"encoded": 32}}
