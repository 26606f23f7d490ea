"""Every kind of file in every mode: the pixels of batches are Pillow's, and what the page about images says.

``pytest -s`` prints how many cases were compared and the largest difference, for each kind of file, mode and transform.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stoker
from loader.shards import payload
from reference import pictures, tfrecord, transform
from reference.png import KINDS, png
from repository.checkout import ROOT
from stoker.cli.main import main
from stoker.loader import FILE_SCHEMA
from stoker.recipe import Recipe, decode_with_pillow, sniff
from transforms.cases import any_transform
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from PIL import Image

SEED = 5
WIDTH, HEIGHT = 60, 44
MODES = {"RGB": 3, "L": 1, "RGBA": 4, "I;16": 1}
"""The channels of each."""
pytestmark = pytest.mark.filterwarnings("ignore:Palette images with Transparency:UserWarning")


def image(mode: str, seed: int = 0) -> Image.Image:
    return pictures.of_mode(mode, WIDTH, HEIGHT, seed)


def file(mode: str, seed: int = 0, **options: object) -> bytes:
    return pictures.encode(image(mode, seed), **options)


def pngs(color: int, bits: int) -> dict[str, bytes]:
    """All PNGs of a kind: in passes or not, with a chunk tRNS where there may be one."""
    transparent = (False, True) if color in (0, 2, 3) else (False,)
    return {
        f"{interlaced:d}{clear:d}": png(
            WIDTH, HEIGHT, color, bits, interlaced=interlaced, transparent=clear, seed=bits + color
        )
        for interlaced in (False, True)
        for clear in transparent
    }


COLORS = {0: "grey", 2: "RGB", 3: "palette", 4: "grey and alpha", 6: "RGBA"}
ROWS: dict[str, dict[str, bytes]] = {
    **{f"PNG, {COLORS[color]}, {bits}": pngs(color, bits) for color, bits in KINDS},
    "WebP, RGB, 8": {
        "lossy": file("RGB", 1, format="WEBP", quality=70),
        "lossless": file("RGB", 2, format="WEBP", lossless=True),
        "grey": file("L", 3, format="WEBP", lossless=True),
        "frames": file("RGB", 25, format="WEBP", save_all=True, append_images=[image("RGB", 26)]),
    },
    "WebP, RGBA, 8": {
        "lossy": file("RGBA", 4, format="WEBP", quality=40),
        "lossless": file("RGBA", 5, format="WEBP", lossless=True, exact=True),
    },
    "JPEG, YCbCr, 8": {
        "420": file("RGB", 6, subsampling=2),
        "444": file("RGB", 7, subsampling=0),
        "progressive": file("RGB", 8, progressive=True),
        "rgb": file("RGB", 9, keep_rgb=True),
    },
    "JPEG, grey, 8": {"baseline": file("L", 10), "progressive": file("L", 11, progressive=True)},
    "JPEG, CMYK, 8": {"baseline": file("CMYK", 12)},
    "GIF, palette, 8": {
        "colors": file("P", 13, format="GIF"),
        "clear": file("P", 14, format="GIF", transparency=3),
        "grey": file("L", 15, format="GIF"),
        "frames": file("P", 27, format="GIF", save_all=True, append_images=[image("P", 28)]),
    },
    "BMP, 1 to 8": {mode: file(mode, 16, format="BMP") for mode in ("1", "L", "RGB")},
    "BMP, palette, 8": {"P": file("P", 17, format="BMP")},
    "TIFF, 1 to 8": {mode: file(mode, 18, format="TIFF") for mode in ("1", "L", "LA", "RGB", "RGBA", "CMYK", "YCbCr")},
    "TIFF, pages, 8": {"RGB": file("RGB", 29, format="TIFF", save_all=True, append_images=[image("RGB", 30)])},
    "TIFF, palette, 8": {"P": file("P", 19, format="TIFF")},
    "TIFF, grey, 16": {mode: file(mode, 20, format="TIFF") for mode in ("I;16", "I;16B")},
    "JPEG 2000, 8": {mode: file(mode, 21, format="JPEG2000") for mode in ("L", "LA", "RGB", "RGBA")},
    "JPEG 2000, grey, 16": {"I;16": file("I;16", 22, format="JPEG2000")},
    "AVIF, 8": {mode: file(mode, 31, format="AVIF", quality=90, speed=9) for mode in ("L", "RGB", "RGBA")},
    "HEIC, 8": {mode: pictures.heic(image(mode, 32)) for mode in ("L", "RGB", "RGBA")},
    "PPM, 1 to 8": {mode: file(mode, 23, format="PPM") for mode in ("1", "L", "RGB")},
    "PPM, grey, 16": {"I;16": file("I;16", 24, format="PPM")},
}
FILES = {f"{row}, {name}": (row, data) for row, files in ROWS.items() for name, data in files.items()}

FILTERS = sorted(transform.FILTERS)
TRANSFORMS: dict[str, list[Any]] = {
    "none": [stoker.RawTensor((HEIGHT, WIDTH))],
    "crop": [stoker.TopLeft(32), stoker.RandomResizedCrop(20, scale=(0.1, 0.4), filter="nearest")],
    "flip": [stoker.RawTensor((HEIGHT, WIDTH), hflip=1.0), stoker.TopLeft(17, hflip=0.5)],
    **{
        name: [
            stoker.RandomResizedCrop(24, hflip=0.5, filter=name),
            stoker.Resize(40, filter=name),
            stoker.CenterCrop(28, resize=32, filter=name),
        ]
        for name in FILTERS
    },
}


def is_refused(data: bytes, mode: str) -> bool:
    try:
        pictures.shown(data, mode)
    except ValueError:
        return True
    return False


KINDS_OF_MODES = {
    **dict.fromkeys(("1", "L"), "grey, 1 to 8 bits"),
    **dict.fromkeys(("I;16", "I;16B", "I"), "grey, 16 bits"),
    **dict.fromkeys(("LA", "RGBA"), "alpha"),
    "RGB": "RGB or YCbCr",
    "YCbCr": "YCbCr of TIFF",
    "CMYK": "CMYK or YCCK",
    "P": "palette",
    "F": "32 bits",
}


def stored(data: bytes) -> tuple[str, str, dict[str, Any]]:
    """What kind of image is in a file, its format, and its values as they lie there: grey or colours, and alpha."""
    with pictures.opened(data) as opened:
        own, clear, form = np.asarray(opened).astype(np.int64), opened.info.get("transparency"), opened.format or ""
        kind, mode = KINDS_OF_MODES[opened.mode], opened.mode
        palette = np.array(opened.getpalette() or ()).reshape(-1, 3)
        rgb = np.asarray(opened.convert("RGB")).astype(int) if mode == "YCbCr" else own
    if kind == "palette":
        return kind, form, looked_up(own, palette, clear)
    if kind == "CMYK or YCCK":
        light = 255 - own[:, :, 3:]
        rgb = light - np.rint(own[:, :, :3] * light / 255).astype(int)
    if own.ndim == 2:
        rgb = np.stack([own * (255 if mode == "1" else 1)] * 3, axis=-1)
    elif mode == "LA":
        rgb = np.repeat(own[:, :, :1], 3, axis=2)
    values = {"v": rgb[:, :, 0], "y": own[..., 0], **{name: rgb[:, :, i] for i, name in enumerate("rgb")}}
    if kind == "alpha":
        values["a"] = own[:, :, -1]
    elif clear is not None:
        values["a"] = np.where((rgb == clear).all(axis=2), 0, 255)
        kind = "one transparent value of 16 bits" if kind == "grey, 16 bits" else "one transparent colour"
    return kind, form, values


def looked_up(own: np.ndarray[Any, Any], palette: np.ndarray[Any, Any], clear: int | bytes | None) -> dict[str, Any]:
    colors = np.concatenate([palette, np.zeros((256 - len(palette), 3), int)])[own]
    alphas = np.full(256, 255)
    if isinstance(clear, int):
        alphas[clear] = 0
    elif clear:
        alphas[: len(clear)] = list(clear)
    return {"a": alphas[own], **{name: colors[:, :, i] for i, name in enumerate("rgb")}}


def names_in(mode: str) -> list[str]:
    """The files that have pixels in a mode, as a folder lists them."""
    return sorted((name for name, (_, data) in FILES.items() if not is_refused(data, mode)), key="{}.bin.JPEG".format)


def write_folder(folder: Path, names: list[str]) -> Path:
    """Content decides, never the name."""
    return write_files(folder, {f"class/{name}.bin.JPEG": FILES[name][1] for name in names})


def write_shards(folder: Path, names: list[str]) -> Path:
    records = [payload(number, FILES[name][1]) for number, name in enumerate(names)]
    return write_files(folder, {"train-00000-of-00001.tfrecord": b"".join(map(tfrecord.frame, records))})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """A folder and shards of all files, for each mode."""
    by_mode = {}
    for mode, channels in MODES.items():
        root = tmp_path_factory.mktemp(f"mode-{channels}")
        by_mode[mode] = (write_folder(root / "folder", names_in(mode)), write_shards(root / "shards", names_in(mode)))
    return by_mode


@pytest.fixture(scope="module")
def table() -> Iterator[dict[tuple[str, str], dict[str, list[int]]]]:
    """Differences by (kind of file, mode), then by transform; printed at the end."""
    differences: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    yield differences
    heads = ["kind of file, bits", "mode", *TRANSFORMS, "cases", "largest difference"]
    lines = [heads, ["---"] * len(heads)]
    for (row, mode), columns in differences.items():
        cells = [f"{len(column)}: {max(column)}" for column in columns.values()]
        every = [value for column in columns.values() for value in column]
        lines.append([row, mode, *cells, f"{len(every):,}", str(max(every))])
    sys.stdout.write("\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines))


@pytest.mark.slow
@pytest.mark.parametrize("column", TRANSFORMS)
@pytest.mark.parametrize("mode", MODES)
def test_batches_of_a_folder_and_of_shards_have_the_pixels_of_pillow(
    folders: dict[str, tuple[Path, Path]],
    table: dict[tuple[str, str], dict[str, list[int]]],
    mode: Any,
    column: str,
) -> None:
    names = names_in(mode)
    wholes = {name: pictures.shown(FILES[name][1], mode) for name in names}
    dtype = np.uint16 if mode == "I;16" else np.uint8
    worst: dict[str, int] = {}
    for chosen in TRANSFORMS[column]:
        expected = {
            name: pictures.channels_last(transform.show(wholes[name], chosen, transform.Draws(SEED, 0, index)))
            for index, name in enumerate(names)
        }
        for folder in folders[mode]:
            train = stoker.open(folder, mode=mode)
            assert len(train) == len(names)
            with stoker.Loader(train, batch_size=16, transform=chosen, seed=SEED, threads=2) as loader:
                for batch in loader:
                    assert batch.images.dtype == dtype
                    assert batch.images.shape[3] == MODES[mode]
                    for pixels, index in zip(batch.images, batch.indices.tolist(), strict=True):
                        name = names[index]
                        difference = int(np.abs(pixels.astype(int) - expected[name]).max())
                        table[FILES[name][0], mode][column].append(difference)
                        worst[f"{name}, {chosen}"] = difference
    assert {case: difference for case, difference in worst.items() if difference} == {}


def test_decoded_images_of_every_kind_are_cached(folders: dict[str, tuple[Path, Path]]) -> None:
    names, chosen = names_in("RGB"), stoker.RandomResizedCrop(24, hflip=0.5)
    for folder in folders["RGB"]:
        cache = stoker.MemoryCache("64MB", keep="decoded")
        with stoker.Loader(stoker.open(folder), 16, transform=chosen, seed=SEED, threads=2, cache=cache) as loader:
            for epoch, batch in ((epoch, batch) for epoch in range(2) for batch in loader):
                for pixels, index in zip(batch.images, batch.indices.tolist(), strict=True):
                    shown = pictures.shown(FILES[names[index]][1], "RGB")
                    expected = transform.show(shown, chosen, transform.Draws(SEED, epoch, index))
                    assert (pixels == expected).all(), names[index]
        assert cache.native.counts().hits >= len(names)


def test_fast_decoding_shrinks_jpegs_alone(folders: dict[str, tuple[Path, Path]]) -> None:
    names, chosen = names_in("RGB"), stoker.Resize(12)
    with stoker.Loader(stoker.open(folders["RGB"][0]), len(names), transform=chosen, decode="fast") as loader:
        batch = next(iter(loader))
    for pixels, index in zip(batch.images, batch.indices.tolist(), strict=True):
        row, data = FILES[names[index]]
        expected = transform.show(pictures.shown(data, "RGB"), chosen, transform.Draws(0, 0, index))
        assert np.abs(pixels.astype(int) - expected).max() <= (16 if row.startswith("JPEG,") else 1), names[index]


@pytest.mark.parametrize("mode", MODES)
def test_one_sample_is_what_batches_show(folders: dict[str, tuple[Path, Path]], mode: Any) -> None:
    for folder in folders[mode]:
        train = stoker.open(folder, mode=mode)
        for index, name in enumerate(names_in(mode)):
            assert (train[index].decode() == pictures.whole(FILES[name][1], mode)).all(), name


@pytest.mark.parametrize("mode", MODES)
def test_a_build_without_decoders_has_the_same_pixels_from_pillow(mode: Any) -> None:
    seen = 0
    for name in names_in(mode):
        data = FILES[name][1]
        if (kind := sniff(data)) != "jpeg":
            pixels, _ = decode_with_pillow(data, kind, Recipe().check_pixels, mode)
            expected = pictures.whole(data, mode)
            assert pixels.dtype == expected.dtype
            assert pixels.flags.c_contiguous
            assert (pixels == expected).all(), name
            seen += 1
    assert seen > 50


def test_what_pillow_does_not_convert_is_refused(tmp_path: Path) -> None:
    refused = {(mode, FILES[name][0]) for mode in MODES for name in FILES if is_refused(FILES[name][1], mode)}
    assert refused == {("I;16", row) for row in ROWS if "palette" in row}
    names = sorted((name for name in FILES if "palette" in name), key="{}.bin.JPEG".format)
    for folder in (write_folder(tmp_path / "folder", names), write_shards(tmp_path / "shards", names)):
        train = stoker.open(folder, mode="I;16")
        for index in range(len(train)):
            with pytest.raises(stoker.errors.ImageError, match=r"palette|'P'"):
                train[index].decode()
        with stoker.Loader(train, batch_size=1, transform=stoker.Resize(8)) as loader:
            for index in range(len(train)):
                loader.load_state_dict(loader.state_dict() | {"consumed": index})
                with pytest.raises(stoker.errors.ImageError, match=r"palette|'P'"):
                    next(iter(loader))


sides = st.integers(1, 70)


@st.composite
def any_file(draw: st.DrawFn, width: int, height: int) -> bytes:
    seed = draw(st.integers(0, 9))
    if draw(st.integers(0, 3)):
        color, bits = draw(st.sampled_from(KINDS))
        interlaced, clear = draw(st.booleans()), draw(st.booleans())
        return png(width, height, color, bits, interlaced=interlaced, transparent=clear, seed=seed)
    mode, options = draw(
        st.sampled_from(
            [
                ("RGB", {"format": "JPEG", "quality": 80}),
                ("L", {"format": "JPEG"}),
                ("RGB", {"format": "JPEG", "progressive": True}),
                ("RGB", {"format": "WEBP"}),
                ("RGBA", {"format": "WEBP", "quality": 50}),
                ("RGBA", {"format": "WEBP", "lossless": True}),
                ("I;16B", {"format": "TIFF"}),
            ]
        )
    )
    return pictures.encode(pictures.of_mode(mode, width, height, seed), **options)


@pytest.mark.slow
@given(data=st.data(), width=sides, height=sides, mode=st.sampled_from(list(MODES)), seed=st.integers(0, 2**64 - 1))
@settings(max_examples=250)
def test_any_size_and_crop_has_the_pixels_of_pillow(
    shard_file: Path, data: st.DataObject, width: int, height: int, mode: Any, seed: int
) -> None:
    encoded, chosen = data.draw(any_file(width, height)), data.draw(any_transform(width, height, mode))
    shard_file.unlink(missing_ok=True)
    shard_file.write_bytes(tfrecord.frame(payload(0, encoded)))
    train = stoker.open(shard_file, mode=mode)
    with stoker.Loader(train, batch_size=1, transform=chosen, seed=seed, threads=1) as loader:
        if is_refused(encoded, mode):
            with pytest.raises(stoker.errors.ImageError):
                next(iter(loader))
            return
        pixels = next(iter(loader)).images[0]
    expected = transform.show(pictures.shown(encoded, mode), chosen, transform.Draws(seed, 0, 0))
    assert (pixels == pictures.channels_last(expected)).all()


PAGE = (ROOT / "docs" / "reference" / "images.md").read_text(encoding="utf-8")
SECTION = PAGE.split("\n## Modes\n")[1].split("\n## ")[0]
LINES = [[cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line[:1] == "|"]
MEANINGS = dict(re.findall(r"`([wl]) = ([^`]+)`", SECTION))
"""What the letters that are not in the file mean, as Python."""


def on_the_page(cell: str, values: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The pixels that a cell of the table says: (H, W, C)."""
    known = {"round": np.rint}
    meant = {name: eval(text, known, values) for name, text in MEANINGS.items() if uses(text) <= set(values)}
    pixels = eval(cell.strip("`"), known, values | meant)
    channels = pixels if isinstance(pixels, tuple) else (pixels,)
    return np.stack(np.broadcast_arrays(*channels), axis=-1)


def uses(text: str) -> set[str]:
    return set(re.findall(r"\b[a-z]\b", text))


def test_the_page_says_which_pixels_come_out_of_every_kind_of_file() -> None:
    heads, _, *rows = LINES
    assert [re.sub(r"[`(]|default|\)", "", head).strip() for head in heads[2:]] == list(MODES)
    page = {kind: (set(formats.split(", ")), cells) for kind, formats, *cells in rows}
    seen: dict[str, set[str]] = defaultdict(set)
    deep = pictures.encode(image("L").convert("F"), format="TIFF")
    for name, data in [*((name, data) for name, (_, data) in FILES.items()), ("TIFF, 32", deep)]:
        kind, form, values = stored(data)
        seen[kind].add({"JPEG2000": "JPEG 2000", "WEBP": "WebP", "HEIF": "HEIC"}.get(form, form))
        for mode, cell in zip(MODES, page[kind][1], strict=True):
            sample = stoker.Sample(0, {}, data, -1, "", FILE_SCHEMA, mode)
            if cell == "refused":
                with pytest.raises(stoker.errors.ImageError):
                    sample.decode()
            else:
                assert (sample.decode() == on_the_page(cell, values)).all(), f"{name}: {cell}"
    assert seen == {kind: formats for kind, (formats, _) in page.items()}


def test_what_a_build_keeps_has_the_same_pixels_in_every_mode(tmp_path: Path) -> None:
    names = sorted(FILES, key="{}.bin.JPEG".format)
    folder = write_folder(tmp_path / "folder", names)
    assert main(["build", str(folder), str(tmp_path / "built"), "--shards", "1", "--quiet"]) == 0
    differing = set()
    for mode in MODES:
        by_name = {sample.source: sample for sample in stoker.open(tmp_path / "built", mode=mode)}
        for name in names_in(mode):
            stored_, expected = (
                by_name[f"{name}.bin.JPEG"].decode(),
                pictures.whole(FILES[name][1], mode),
            )
            if (stored_ != expected).any():
                differing.add((mode, name))
    assert differing == {("L", "TIFF, 1 to 8, YCbCr")}  # what is not kept becomes RGB, without the luma of its file
