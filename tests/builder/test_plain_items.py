"""Plain JPEGs become records in one call of the core: the same as one step after another makes, without the GIL."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import pytest

from builder.trees import picture, settings_for, write_tree
from mixed_images import FILES
from other_threads import ticks_during
from stoker import _native
from stoker.builder import PRESETS, BuildOptions, ItemConverter, open_source
from stoker.format import nested_counts
from stoker.recipe import JpegEncode, PngEncode, Recipe, StoredSize, plain_storing
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from stoker.builder.convert import Outcome
    from stoker.builder.settings import PresetName
    from stoker.sources import Item

TURNED = b"\xff\xe1\x00\x22Exif\x00\x00" + struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 274, 3, 1, 6, 0)
PLAIN = picture(1)
ODD = {
    "empty.jpg": b"",
    "two bytes.jpg": PLAIN[:2],
    "no third byte.jpg": PLAIN[:2] + b"\0" + PLAIN[2:],
    "cut.jpg": PLAIN[: len(PLAIN) // 2],
    "behind its end.jpg": PLAIN + b"more",
    "damaged.jpg": PLAIN[:-200] + bytes(100) + PLAIN[-100:],
    "turned.jpg": PLAIN[:2] + TURNED + PLAIN[2:],
    "text.jpg": b"no image",
    "long.jpg": picture(2, size=(400, 3)),
    "restart.jpg": _native.transcode_jpeg(PLAIN) or b"",
}
RECIPES = {
    "keep": Recipe(),
    "keep, turned": Recipe(exif="apply"),
    "keep, few pixels": Recipe(max_pixels=60 * 44 - 1),
    "check": Recipe(check="entropy"),
    "restart": Recipe(restart=True),
    "encode": Recipe(encode=JpegEncode(50)),
    "short": Recipe(StoredSize("short", 20, 20), JpegEncode(70, "4:4:4"), exif="apply"),
    "long, restart": Recipe(StoredSize("long", 33, 33), restart=True, filter="lanczos"),
    "max": Recipe(StoredSize("max", 50, 50), JpegEncode(80)),
    "max, check": Recipe(StoredSize("max", 50, 50), check="decode"),
    "max, restart": Recipe(StoredSize("max", 60, 60), restart=True),
    "exact, fast": Recipe(StoredSize("exact", 9, 7), decode="fast", filter="box"),
    "standard": Recipe(StoredSize("short", 20, 20), JpegEncode(70, tables="standard")),
    "square": Recipe(StoredSize("square", 16, 16), JpegEncode(), filter="nearest"),
    "png": Recipe(StoredSize("square", 16, 16), PngEncode()),
    "of TensorFlow": Recipe(StoredSize("exact", 20, 20), JpegEncode(), filter="tf1-legacy"),
    "too long": Recipe(StoredSize("short", 600, 600), JpegEncode()),
}


def write_images(folder: Path, files: dict[str, bytes]) -> Path:
    return write_files(folder, {f"class{at % 3}/{name}": data for at, (name, data) in enumerate(files.items())})


def what_became(outcomes: Iterable[Outcome]) -> tuple[object, ...]:
    outcome, *others = outcomes
    for other in others:
        outcome.add(other)
    records = [bytes(frame) for record in outcome.records for frame in record.frames()]
    assert all(record.crc32c == _native.crc32c(bytes(record.data)) for record in outcome.records)
    return records, outcome.rejects, nested_counts(outcome.formats), outcome.converted, outcome.labels


def assert_steps_agree(converter: ItemConverter, items: list[Item]) -> int:
    """Compare with what is made of images that are loaded one by one; return how many records there are."""
    step_by_step = [converter.convert([item], "train", None, converter.source.load) for item in items]
    expected = what_became(step_by_step)
    assert what_became([converter.convert(items, "train")]) == expected
    records = expected[0]
    assert isinstance(records, list)
    return len(records)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_one_call_makes_what_the_steps_make(tmp_path: Path, recipe: Recipe) -> None:
    tree = open_source(settings_for(write_images(tmp_path, FILES | ODD)))
    converter = ItemConverter(tree, recipe, PRESETS["tfds"].schema())
    assert assert_steps_agree(converter, list(tree.table)) >= 5


@pytest.mark.parametrize("preset", PRESETS)
def test_every_layout_is_the_same(tmp_path: Path, preset: PresetName) -> None:
    source = write_images(tmp_path, {f"{number}.jpg": picture(number) for number in range(7)})
    settings = BuildOptions(preset=preset).settings(str(source))
    tree = open_source(settings)
    assert assert_steps_agree(ItemConverter(tree, settings.recipe, settings.schema), list(tree.table)) == 7


def test_what_is_not_plain_is_left() -> None:
    assert all(plain_storing(RECIPES[name]) is None for name in ("check", "restart", "encode", "max, check", "png"))
    assert all(plain_storing(RECIPES[name]) is not None for name in ("keep", "short", "max", "max, restart", "square"))


def test_files_that_are_none(tmp_path: Path) -> None:
    """A pipe is not waited for; a file that has gone, or has grown, is as the steps find it."""
    source = write_tree(tmp_path / "src", {"a": 6})
    tree = open_source(settings_for(source))
    paths = sorted((source / "a").iterdir())
    paths[0].unlink()
    paths[1].unlink()
    os.mkfifo(paths[1])
    paths[2].write_bytes(picture(7, size=(300, 200)))
    paths[3].unlink()
    paths[3].mkdir()
    converter = ItemConverter(tree, Recipe(), PRESETS["tfds"].schema())
    assert assert_steps_agree(converter, list(tree.table)) == 3


def test_templates_are_not_kept_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.builder.convert._TEMPLATE_BYTES", 10_000)
    tree = open_source(settings_for(write_tree(tmp_path, {f"class{number}": 2 for number in range(9)})))
    converter = ItemConverter(tree, Recipe(), PRESETS["dogs-onehot"].schema())
    assert assert_steps_agree(converter, [*tree.table, *tree.table]) == 36


def test_other_threads_run_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(picture(3, size=(600, 400)))
    template = _native.RecordTemplate({}, {"image": "image"})
    files = [(os.fsencode(path), 0, template)] * 16
    storing = plain_storing(RECIPES["short"])
    assert storing is not None
    assert ticks_during(lambda: _native.build_records(files, storing)) > 0
