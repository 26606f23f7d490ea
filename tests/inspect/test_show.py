"""Sheets show the right samples at the right position, and the pixels that a loader gives, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFont

import stoker
from loader.shards import write_annotated
from reference import example, pictures, tfrecord
from small_cases import each
from small_datasets import write_dataset
from stoker.errors import ConfigError, DatasetNotFoundError
from stoker.format import ImagenetSchema
from stoker.format.directory import ClassLabel
from stoker.inspect import show as sheets
from stoker.inspect.show import SampleTransformer, SheetSpec, write_sheet
from stoker.loader import Sample
from stoker.loader.pictures import usable_boxes
from transforms.cases import of_any_image
from written_files import write_files

if TYPE_CHECKING:
    from commands import Cli
    from stoker.types import Features


SEED = 23
CROP, CENTER = stoker.RandomResizedCrop(24, hflip=0.5), stoker.CenterCrop(16, 24)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    write_dataset(tmp_path / "birds", {"train": [6, 4], "validation": [3]})
    return tmp_path / "birds"


def shown(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert (image.format, image.mode) == ("PNG", "RGB")
        return np.asarray(image)


def drawn_sample(dataset: stoker.Dataset, key: int, *, boxes: bool = True) -> np.ndarray:
    sample = dataset[key]
    return np.asarray(sheets.draw_sample(sample, sample.decode(), dataset.classes, boxes=boxes))


def tile_of(sheet: np.ndarray, position: int, columns: int) -> np.ndarray:
    row, column = divmod(position, columns)
    left, top = 20 + column * (sheets.TILE_WIDTH + 20), 92 + row * (sheets.TILE_HEIGHT + 20)
    return sheet[top : top + sheets.TILE_HEIGHT, left : left + sheets.TILE_WIDTH]


def test_every_tile_is_the_sample_that_the_report_names(birds: Path, tmp_path: Path) -> None:
    report = write_sheet(birds, tmp_path / "a.png", SheetSpec(count=7, per_row=3))
    sheet = shown(tmp_path / "a.png")
    assert sheet.shape == (report.height, report.width, 3)
    assert report.width == 20 + 3 * (sheets.TILE_WIDTH + 20)
    assert report.height == 92 + 3 * (sheets.TILE_HEIGHT + 20) + 20
    assert (report.split, report.damaged, len(set(report.indices))) == ("train", {}, 7)
    train = stoker.open(birds, split="train")
    for position, key in enumerate(report.indices):
        expected = drawn_sample(train, key)
        assert (tile_of(sheet, position, 3) == expected).all()
    assert (tile_of(sheet, 7, 3) == sheets.BACKGROUND).all()


def test_the_seed_decides_which_samples(birds: Path, tmp_path: Path) -> None:
    def indices(**settings: int) -> tuple[int, ...]:
        return write_sheet(birds, tmp_path / "a.png", SheetSpec(**settings)).indices

    assert indices(count=5) == indices(count=5)
    assert indices(count=5) == indices(count=10)[:5]
    assert indices(count=5) != indices(count=5, seed=18)
    assert sorted(indices(count=600)) == list(range(10))


def test_boxes_are_drawn_where_they_are_and_only_if_asked(birds: Path) -> None:
    train = stoker.open(birds, split="train")
    with_box, without = (drawn_sample(train, 1, boxes=drawn) for drawn in (True, False))
    # 48 x 36 pixels are enlarged fourfold to 192 x 144, in the middle of 240 x 240 pixels behind a margin of 10.
    left, top = 10 + (240 - 192) // 2, 10 + (240 - 144) // 2
    picture = with_box[top : top + 144, left : left + 192]
    amber = (picture == (255, 190, 60)).all(-1)
    columns = np.flatnonzero(amber.any(0))
    rows = np.flatnonzero(amber[:, columns[0]])  # the name of its class stands above, beginning further right
    assert (columns[0], columns[-1]) == (round(0.25 * 191), round(0.75 * 191))
    assert (rows[0], rows[-1]) == (round(0.125 * 143), round(0.5 * 143))
    assert not amber[rows[0] + 2 : rows[-1] - 1, columns[0] + 2 : columns[-1] - 1].any()
    assert not (without == (255, 190, 60)).all(-1).any()
    changed = (with_box != without).any(-1)[: top + 240]
    assert changed[top + rows[0] - 8, left + columns[0] + 4]
    changed[top + rows[0] - 16 : top + rows[-1] + 2, left + columns[0] - 1 : left + columns[-1] + 2] = False
    assert not changed.any()


@pytest.mark.parametrize(("size", "expected"), [((480, 240), (240, 120)), ((30, 90), (80, 240)), ((8, 8), (32, 32))])
def test_the_aspect_is_kept_and_none_enlarged(tmp_path: Path, size: tuple[int, int], expected: tuple[int, int]) -> None:
    record = {"image/encoded": ("bytes", [pictures.encode(Image.new("RGB", size, (0, 200, 0)))])}
    (tmp_path / "a.tfrecord").write_bytes(tfrecord.frame(example.write(record)))
    drawn = drawn_sample(stoker.open(tmp_path), 0).astype(int)
    green = np.abs(drawn - (0, 200, 0)).max(-1) < 8
    assert (green.any(0).sum(), green.any(1).sum()) == expected
    columns = np.flatnonzero(green.any(0))
    assert columns[0] == 10 + (240 - expected[0]) // 2


def test_damaged_samples_have_tiles_that_say_so(birds: Path, tmp_path: Path) -> None:
    path, record, offset = stoker.open(birds, split="train").records.where(4)
    with Path(path).open("r+b") as file:
        file.seek(offset + 200)
        file.write(b"\0\1\2\3")
    report = write_sheet(birds, tmp_path / "a.png", SheetSpec(per_row=5))
    assert list(report.damaged) == [4]
    assert f"record {record} at byte {offset} of {path}" in report.damaged[4]
    sheet = shown(tmp_path / "a.png")
    for position, key in enumerate(report.indices):
        red = (tile_of(sheet, position, 5)[5, 130] == (66, 30, 32)).all()
        assert red == (key == 4)


def test_an_image_that_cannot_be_decoded_is_named_with_its_record(tmp_path: Path) -> None:
    records = [{"image/encoded": ("bytes", [b"no image"])}, {"image/class/label": ("int64", [1])}]
    (tmp_path / "a.tfrecord").write_bytes(b"".join(tfrecord.frame(example.write(record)) for record in records))
    damaged = write_sheet(tmp_path, tmp_path / "a.png", SheetSpec()).damaged
    assert sorted(damaged) == [0, 1]
    assert f"{tmp_path}/a.tfrecord, record 0 at byte 0: " in damaged[0]
    assert "record 1" in damaged[1]
    assert "no bytes under 'image/encoded'" in damaged[1]


def test_a_damaged_file_is_named_without_a_record(tmp_path: Path) -> None:
    write_files(tmp_path, {"cat/0.jpg": pictures.jpeg(64, 48, 0), "cat/1.jpg": pictures.jpeg(64, 48, 1)[:500]})
    damaged = write_sheet(tmp_path, tmp_path / "a.png", SheetSpec()).damaged
    assert damaged[1].startswith(f"{tmp_path}/cat/1.jpg: ")


def with_boxes(sides: dict[str, list[float]]) -> Sample:
    features: Features = {f"image/object/bbox/{side}": ("float", values) for side, values in sides.items()}
    return Sample(0, features, b"", 0, "", ImagenetSchema().info(2))


@given(st.text(max_size=300) | st.text("\ud800\x00\nab W", max_size=600))
def test_any_text_fits_into_its_width(text: str) -> None:
    font = ImageFont.load_default(13)
    line = sheets.fitted(text, font, 100)
    assert font.getlength(line) <= 100
    assert line.isprintable()
    assert line.endswith("…") or [char if char.isprintable() else "\ufffd" for char in text] == list(line)


@given(st.text(max_size=300) | st.text("\ud800\udce9\x1b\x00/ ab", max_size=300), st.text(max_size=200))
def test_any_problem_and_any_class_can_be_drawn(problem: str, name: str) -> None:
    assert sheets.draw_damaged(10**18, problem).size == (sheets.TILE_WIDTH, sheets.TILE_HEIGHT)
    # A line break inside a line would be drawn across the lines below it.
    assert all(line.isprintable() for line in sheets.wrapped(problem, ImageFont.load_default(13), 232, 11))
    lines = sheets.class_lines(1, [ClassLabel("background", ""), ClassLabel("n01\udce9", name)])
    assert lines[0] in (name.partition(",")[0].strip(), "n01\udce9")


@given(st.lists(st.tuples(st.floats(width=32), st.floats(width=32)), max_size=4))
def test_any_numbers_give_boxes_inside_the_image(edges: list[tuple[float, float]]) -> None:
    low, high = [first for first, _ in edges], [last for _, last in edges]
    for box in usable_boxes(with_boxes({"xmin": low, "xmax": high, "ymin": low, "ymax": high}).boxes):
        assert 0 <= box.xmin < box.xmax <= 1
        assert 0 <= box.ymin < box.ymax <= 1


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_box_with_a_corner_that_is_not_finite_is_left_out(odd: float) -> None:
    sides = {"xmin": [0.1, odd, 0.3], "ymin": [0.1] * 3, "xmax": [0.8] * 3, "ymax": [0.8] * 3}
    if odd == float("inf"):
        sides = {"xmin": [0.1, 0.2, 0.3], "ymin": [0.1] * 3, "xmax": [0.8, odd, 0.8], "ymax": [0.8] * 3}
    assert [box.xmin for box in usable_boxes(with_boxes(sides).boxes)] == [0.1, 0.3]


def test_a_class_is_called_by_its_text_or_its_name() -> None:
    classes = [ClassLabel("background", ""), ClassLabel("n01", "red kite, Milvus milvus"), ClassLabel("n02", "")]
    assert sheets.class_lines(1, classes) == ("red kite", "n01  ·  label 1")
    assert sheets.class_lines(2, classes) == ("n02", "label 2")
    assert sheets.class_lines(3, classes) == ("label 3", "")
    assert sheets.class_lines(-1, classes) == ("no label", "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "--count is 0"),
        ({"count": 601}, "--count is 601"),
        ({"per_row": 0}, "--per-row is 0"),
        ({"per_row": 31}, "--per-row is 31"),
        ({"seed": -1}, "--seed is -1"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SheetSpec(**settings)


def test_what_cannot_be_shown_is_refused_and_nothing_is_written(birds: Path, tmp_path: Path) -> None:
    for source, name, split, error, message in (
        (birds, "a.jpg", None, ConfigError, "must end in .png"),
        (birds, "a.png", "test", ConfigError, "no split 'test'"),
        (tmp_path / "none", "a.png", None, DatasetNotFoundError, "is not a dataset"),
    ):
        with pytest.raises(error, match=message):
            write_sheet(source, tmp_path / name, SheetSpec(split=split))
    write_dataset(tmp_path / "empty", {"train": [0]})
    with pytest.raises(ConfigError, match="has no samples"):
        write_sheet(tmp_path / "empty", tmp_path / "a.png", SheetSpec())
    with pytest.raises(FileNotFoundError):
        write_sheet(birds, tmp_path / "nowhere/a.png", SheetSpec())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["birds", "empty"]


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_annotated(tmp_path_factory.mktemp("transforms") / "shard.tfrecord", 12)


def loaded(dataset: stoker.Dataset, transform: object, epoch: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Pixels and boxes of every sample, by key, from batches of a loader."""
    samples = {}
    settings = {"batch_size": 5, "transform": transform, "seed": SEED, "shuffle": True, "boxes": stoker.BoxOutput()}
    with stoker.Loader(dataset, **settings) as loader:
        loader.set_epoch(epoch)
        for batch in loader:
            for position, key in enumerate(batch.indices.tolist()):
                first, last = batch.boxes.offsets[position : position + 2]
                samples[key] = batch.images[position].copy(), batch.boxes.corners[first:last].copy()
    return samples


@each("transform", of_any_image(40, 30))
@pytest.mark.parametrize("epoch", [0, 3])
def test_what_is_shown_is_what_a_loader_gives(shard: Path, transform: object, epoch: int) -> None:
    dataset = stoker.open(shard)
    expected = loaded(dataset, transform, epoch)
    shown = {}
    with SampleTransformer(dataset, transform, SEED) as transforms:
        for key in (7, 0, 11, 6):
            sample = dataset[key]
            height, width = sample.decode().shape[:2]
            for number in range(transforms.objects(key)):
                seen = transforms.apply(sample, (width, height), epoch, number)
                shown[key, number] = seen
                assert 0 <= seen.region[0] < seen.region[2] <= width
                assert 0 <= seen.region[1] < seen.region[3] <= height
    keys = [key for key, _ in shown]
    if isinstance(transform, stoker.ObjectCrops):
        starts = np.cumsum([0, *(max(1, key % 4) for key in range(11))])
        keys = [int(starts[key]) + number for key, number in shown]
    for key, seen in zip(keys, shown.values(), strict=True):
        pixels, boxes = expected[key]
        assert (seen.pixels == pixels).all()
        assert (seen.boxes == boxes).all()


def test_the_region_and_the_mirror_are_those_of_the_pixels(shard: Path) -> None:
    dataset = stoker.open(shard)
    transform = stoker.RandomResizedCrop(24, hflip=0.5, filter="nearest")
    with SampleTransformer(dataset, transform, SEED) as transforms:
        for key in range(6):
            sample = dataset[key]
            pixels = sample.decode()
            seen = transforms.apply(sample, (pixels.shape[1], pixels.shape[0]), 0)
            left, top, right, bottom = map(int, seen.region)
            region = Image.fromarray(pixels[top:bottom, left:right])
            part = np.asarray(region.resize((24, 24), Image.Resampling.NEAREST))
            assert (seen.pixels == (part[:, ::-1] if seen.mirrored else part)).all()


def cell(sheet: np.ndarray, row: int, column: int) -> np.ndarray:
    left, top = 20 + column * (sheets.TILE_WIDTH + 20), 156 + row * (sheets.TILE_HEIGHT + 20)
    return sheet[top : top + sheets.TILE_HEIGHT, left : left + sheets.TILE_WIDTH]


def test_the_pixels_are_in_the_picture_as_they_are(shard: Path, tmp_path: Path) -> None:
    transform = stoker.RandomResizedCrop(60, hflip=0.5)
    spec = SheetSpec(transforms=(transform,), epochs=(0, 4), count=3, seed=SEED, boxes=False)
    report = write_sheet(shard, tmp_path / "a.png", spec)
    with Image.open(tmp_path / "a.png") as image:
        sheet = np.asarray(image)
    assert sheet.shape == (report.height, report.width, 3)
    for column, epoch in enumerate(spec.epochs, 1):
        expected = loaded(stoker.open(shard), transform, epoch)
        for row, key in enumerate(report.indices):
            shown = cell(sheet, row, column)[10:250, 10:250]
            enlarged = expected[key][0].repeat(4, 0).repeat(4, 1)  # 240 pixels; the corners are round
            assert (shown[10:-10] == enlarged[10:-10]).all()


def test_a_damaged_sample_costs_only_its_row(tmp_path: Path) -> None:
    shard_file = write_annotated(tmp_path / "shard.tfrecord", 6)
    path, _, offset = stoker.open(shard_file).records.where(2)
    with shard_file.open("r+b") as file:
        file.seek(offset + 100)
        file.write(b"\0\1\2\3")
    report = write_sheet(shard_file, tmp_path / "a.png", SheetSpec(transforms=(CROP, CENTER), count=6))
    assert list(report.damaged) == [2]
    assert str(path) in report.damaged[2]


def test_columns() -> None:
    spec = SheetSpec(transforms=(CROP, CENTER, stoker.ObjectCrops(24), stoker.Resize(32, hflip=1.0)), epochs=(2, 5))
    assert [(c.transform, c.epoch, c.object) for c in sheets.columns_of(spec, 2)] == [
        (0, 2, 0), (0, 5, 0), (1, 2, 0), (2, 2, 0), (2, 2, 1), (3, 2, 0),
    ]  # fmt: skip
    assert [sheets.is_random(transform) for transform in spec.transforms] == [True, False, False, False]
    assert sheets.is_random(stoker.Resize(3, color_jitter=stoker.ColorJitter(0.4)))


def test_the_command(shard: Path, tmp_path: Path, cli: Cli) -> None:
    out = str(tmp_path / "a.png")
    words = [
        "show", str(shard), "--out", out, "--transforms", "train,eval", "--epochs", "1,9", "--count", "2", "--json",
    ]  # fmt: skip
    report = json.loads(cli(*words))
    assert (report["width"], len(report["indices"])) == (20 + 4 * (sheets.TILE_WIDTH + 20), 2)
    cli("show", shard, "--out", out, "--epochs", "1", code=2)
    cli("show", shard, "--out", out, "--transforms", "train", "--per-row", "2", code=2)
    cli("show", shard, "--out", out, "--transforms", "train", "--count", "200", code=2)
    cli("show", shard, "--out", tmp_path / "a.jpg", "--transforms", "train", code=2)
