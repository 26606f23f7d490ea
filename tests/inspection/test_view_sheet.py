"""The sheet of views shows the pixels that a loader gives, and says truly where they come from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from feed.shards import write_annotated
from stoker.cli.main import main
from stoker.errors import ConfigError
from stoker.inspection import tile
from stoker.inspection.seen_views import ViewOfDataset, is_random
from stoker.inspection.view_sheet import ViewSheetSpec, columns_of, write_view_sheet
from stoker.inspection.view_text import NAMED, parse_epochs, parse_views

if TYPE_CHECKING:
    from pathlib import Path

SEED = 23
JITTER = stoker.ColorJitter(0.4, 0.4, 0.4, 0.1)
VIEWS = [
    stoker.RandomResizedCrop(24, hflip=0.5),
    stoker.RandomResizedCrop((20, 32), hflip=0.5, color_jitter=JITTER),
    stoker.CenterCrop(16, 24),
    stoker.Resize(18, hflip=0.5),
    stoker.ObjectCrops(20, hflip=0.5),
]


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("views") / "shard.tfrecord"
    write_annotated(place, 12)
    return place


def loaded(dataset: stoker.Dataset, view: object, epoch: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Pixels and boxes of every sample, by key, from batches of a loader."""
    found = {}
    settings = {"batch_size": 5, "view": view, "seed": SEED, "shuffle": True, "boxes": stoker.BoxOutput()}
    with stoker.Loader(dataset, **settings) as loader:
        loader.set_epoch(epoch)
        for batch in loader:
            for place, key in enumerate(batch.keys.tolist()):
                first, last = batch.boxes.offsets[place : place + 2]
                found[key] = batch.images[place].copy(), batch.boxes.corners[first:last].copy()
    return found


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: type(view).__name__)
@pytest.mark.parametrize("epoch", [0, 3])
def test_what_is_shown_is_what_a_loader_gives(shard: Path, view: object, epoch: int) -> None:
    dataset = stoker.open(shard)
    expected = loaded(dataset, view, epoch)
    shown = {}
    with ViewOfDataset(dataset, view, SEED) as views:
        for key in (7, 0, 11, 6):
            sample = dataset[key]
            height, width = sample.decode().shape[:2]
            for number in range(views.objects(key)):
                seen = views.see(sample, (width, height), epoch, number)
                shown[key, number] = seen
                assert 0 <= seen.region[0] < seen.region[2] <= width
                assert 0 <= seen.region[1] < seen.region[3] <= height
    keys = [key for key, _ in shown]
    if isinstance(view, stoker.ObjectCrops):
        starts = np.cumsum([0, *(max(1, key % 4) for key in range(11))])
        keys = [int(starts[key]) + number for key, number in shown]
    for key, seen in zip(keys, shown.values(), strict=True):
        pixels, boxes = expected[key]
        assert (seen.pixels == pixels).all()
        assert (seen.boxes == boxes).all()


def test_the_region_and_the_mirror_are_those_of_the_pixels(shard: Path) -> None:
    dataset = stoker.open(shard)
    view = stoker.RandomResizedCrop(24, hflip=0.5, filter="nearest")
    with ViewOfDataset(dataset, view, SEED) as views:
        for key in range(6):
            sample = dataset[key]
            pixels = sample.decode()
            seen = views.see(sample, (pixels.shape[1], pixels.shape[0]), 0)
            left, top, right, bottom = map(int, seen.region)
            part = np.asarray(
                Image.fromarray(pixels[top:bottom, left:right]).resize((24, 24), Image.Resampling.NEAREST)
            )
            assert (seen.pixels == (part[:, ::-1] if seen.mirrored else part)).all()


def cell(sheet: np.ndarray, row: int, column: int) -> np.ndarray:
    left, top = 16 + column * (tile.TILE_WIDTH + 16), 104 + row * (tile.TILE_HEIGHT + 16)
    return sheet[top : top + tile.TILE_HEIGHT, left : left + tile.TILE_WIDTH]


def test_the_pixels_are_in_the_picture_as_they_are(shard: Path, tmp_path: Path) -> None:
    view = stoker.RandomResizedCrop(60, hflip=0.5)
    spec = ViewSheetSpec((view,), epochs=(0, 4), count=3, seed=SEED, boxes=False)
    report = write_view_sheet(shard, tmp_path / "a.png", spec)
    with Image.open(tmp_path / "a.png") as image:
        sheet = np.asarray(image)
    assert sheet.shape == (report.height, report.width, 3)
    for column, epoch in enumerate(spec.epochs, 1):
        expected = loaded(stoker.open(shard), view, epoch)
        for row, key in enumerate(report.keys):
            shown = cell(sheet, row, column)[10:250, 10:250]
            enlarged = expected[key][0].repeat(4, 0).repeat(4, 1)  # 240 pixels; the corners are round
            assert (shown[10:-10] == enlarged[10:-10]).all()


def test_a_damaged_sample_costs_only_its_row(tmp_path: Path) -> None:
    place = tmp_path / "shard.tfrecord"
    write_annotated(place, 6)
    path, _, offset = stoker.open(place).records.where(2)
    with place.open("r+b") as file:
        file.seek(offset + 100)
        file.write(b"\0\1\2\3")
    report = write_view_sheet(place, tmp_path / "a.png", ViewSheetSpec((NAMED["train"], NAMED["eval"]), count=6))
    assert list(report.damaged) == [2]
    assert str(path) in report.damaged[2]


def test_columns() -> None:
    spec = ViewSheetSpec(parse_views("train,eval,objects,Resize(32,hflip=1.0)"), epochs=(2, 5))
    assert [(c.view, c.epoch, c.object) for c in columns_of(spec, 2)] == [
        (0, 2, 0),
        (0, 5, 0),
        (1, 2, 0),
        (2, 2, 0),
        (2, 2, 1),
        (3, 2, 0),
    ]
    assert [is_random(view) for view in spec.views] == [True, False, False, False]
    assert is_random(stoker.Resize(3, color_jitter=JITTER))


@pytest.mark.parametrize("view", [*NAMED.values(), *VIEWS, stoker.TopLeft(9), stoker.RawTensor((8, 9), hflip=0.5)])
def test_a_view_can_be_typed_as_it_shows_itself(view: object) -> None:
    assert parse_views(repr(view)) == (view,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "train,,eval",
        "nonsense",
        "RandomResizedCrop",
        "RandomResizedCrop()",
        "RandomResizedCrop(0)",
        "RandomResizedCrop(2**80)",
        "MultiView(train)",
        "CenterCrop(**{})",
        "ColorJitter(0.4)",
        "__import__('os').system('true')",
        "Resize(8).native()",
        "(" * 300,
        "3",
        "Resize('a')",
        "train" + " " * 3000,
    ],
)
def test_other_texts_are_errors_that_say_what_to_type(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_views(text)


def test_epochs() -> None:
    assert parse_epochs("0-3") == (0, 1, 2, 3)
    assert parse_epochs("7, 0,5-6") == (7, 0, 5, 6)
    for text in ("", "a", "3-1", "-1", "0-999999999999", "1,,2", "0-40"):
        with pytest.raises(ConfigError):
            parse_epochs(text)


def test_the_command(shard: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "a.png")
    words = ["show", str(shard), "--out", out, "--views", "train,eval", "--epochs", "1,9", "--count", "2", "--json"]
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["width"], len(report["keys"])) == (16 + 4 * (tile.TILE_WIDTH + 16), 2)
    assert main(["show", str(shard), "--out", out, "--epochs", "1"]) == 2
    assert main(["show", str(shard), "--out", out, "--views", "train", "--columns", "2"]) == 2
    assert main(["show", str(shard), "--out", out, "--views", "train", "--count", "200"]) == 2
    assert main(["show", str(shard), "--out", str(tmp_path / "a.jpg"), "--views", "train"]) == 2
