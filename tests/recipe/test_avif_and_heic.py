"""AVIF by Pillow, and HEIC by its plug-in: their pixels, their limits, and the message without the plug-in."""

from __future__ import annotations

import resource
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image, ImageOps, features

import stoker
from reference import pictures
from stoker.cli.main import main
from stoker.errors import ImageError, ImageTooLargeError
from stoker.recipe import Recipe, check, convert, decode, parse_encode, parse_resize, sniff
from stoker.sources import list_source
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from commands import Cli

WIDTH, HEIGHT = 40, 30


@cache
def encoded(kind: str, mode: str = "RGB", orientation: int = 1) -> bytes:
    image = pictures.of_mode(mode, WIDTH, HEIGHT)
    options: dict[str, Any] = {} if orientation == 1 else {"exif": pictures.exif(orientation)}
    if kind == "avif":
        return pictures.encode(image, format="AVIF", quality=90, speed=9, **options)
    return pictures.heic(image, **options)


def by_pillow(data: bytes, mode: str) -> NDArray[np.uint8]:
    return np.asarray(pictures.opened(data).convert(mode))


@pytest.mark.parametrize("kind", ["avif", "heif"])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L"])
def test_they_become_pngs_of_the_same_pixels(kind: str, mode: str) -> None:
    assert features.check("avif")
    data = encoded(kind, mode)
    assert sniff(data) == sniff(data[:32]) == kind
    stored = convert(data, Recipe())
    assert check(data, Recipe()) == stored.storing
    assert (stored.storing.converted, stored.storing.format) == (kind, "png")
    assert (stored.width, stored.height) == (WIDTH, HEIGHT)
    png = pictures.opened(stored.data)
    assert png.mode == mode
    assert (np.asarray(png) == by_pillow(data, mode)).all()
    assert (decode(data, 2**20) == by_pillow(data, "RGB")).all()
    small = pictures.opened(convert(data, Recipe(parse_resize("short:9"))).data)
    assert (small.format, small.mode) == ("PNG", mode)
    assert convert(data, Recipe(encode=parse_encode("raw"))).data == by_pillow(data, "RGB").tobytes()


@pytest.mark.parametrize("orientation", range(2, 9))
def test_an_avif_is_turned_if_asked(orientation: int) -> None:
    data = encoded("avif", "RGB", orientation)
    upright = np.asarray(ImageOps.exif_transpose(pictures.opened(data)))
    for words, expected in (("apply", upright), ("keep", by_pillow(data, "RGB"))):
        assert (np.asarray(pictures.opened(convert(data, Recipe(exif=words)).data)) == expected).all()


@pytest.mark.parametrize("kind", ["avif", "heif"])
def test_damage_and_claims_are_refused(kind: str) -> None:
    data = encoded(kind)
    for size in range(32, len(data), 13):
        with pytest.raises(ImageError, match=f"damaged {kind}|cut short"):
            convert(data[:size], Recipe())
    with pytest.raises(ImageTooLargeError, match="40x30 pixels are more than the limit"):
        convert(data, Recipe(max_pixels=WIDTH * HEIGHT - 1))


def test_a_blank_avif_of_many_pixels_is_read_and_a_larger_one_takes_no_memory() -> None:
    data = pictures.encode(Image.new("RGB", (3000, 3000), (7, 7, 7)), format="AVIF", speed=10, quality=10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    message = r"avif of 3000x3000 pixels takes as much memory as a larger image: 6000x3000 pixels are more than the"
    with pytest.raises(ImageTooLargeError, match=message):
        convert(data, Recipe(max_pixels=2 * 3000 * 3000 - 1))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 << 10, "KiB"
    assert decode(data, 2 * 3000 * 3000).shape == (3000, 3000, 3)


def test_major_brands() -> None:
    assert sniff(b"\0\0\0\x20ftypmif1\0\0\0\0mif1miafavif") == "avif"
    assert sniff(b"\0\0\0\x18ftypmif1\0\0\0\0mif1heic") == "heif"
    assert sniff(b"\0\0\0\x18ftypisom\0\0\0\0isommp41") == "unknown"


def folder(root: Path) -> Path:
    """Two images of each kind, under their names."""
    names = [("avif", "avif"), ("heif", "HEIC")]
    modes = enumerate(("RGB", "L"))
    return write_files(root, {f"{kind}/{n}.{end}": encoded(kind, mode) for n, mode in modes for kind, end in names})


def test_a_folder_of_them_is_opened_built_and_read(tmp_path: Path, cli: Cli) -> None:
    source = folder(tmp_path / "src")
    assert len(list_source(str(source)).table) == 4
    planned = cli("plan", source)
    assert "stored: 2 avif to png, 2 heif to png\n" in planned
    assert "odd file" not in planned
    cli("build", source, tmp_path / "out")
    by_name = {sample.source: sample.decode() for sample in stoker.open(tmp_path / "out", "train")}
    for path in (source, tmp_path / "out"):
        for batch in stoker.Loader(stoker.open(path), 4, transform=stoker.Resize((HEIGHT, WIDTH))):
            for pixels, index in zip(batch.images, batch.indices, strict=True):
                assert (pixels == by_name[stoker.open(path)[int(index)].source.rpartition("/")[2]]).all()


def test_a_missing_plug_in_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    source = folder(tmp_path / "src")
    with pytest.raises(ImageError, match="run pip install pillow-heif, or convert the image"):
        convert(encoded("heif"), Recipe())
    assert main(["build", str(source), str(tmp_path / "out"), "--max-rejects", "2"]) == 0
    assert "pip install pillow-heif" in (tmp_path / "out/rejects.jsonl").read_text()
    with pytest.raises(ImageError, match="pip install pillow-heif"):
        next(iter(stoker.Loader(stoker.open(source), 4, transform=stoker.Resize(8))))
