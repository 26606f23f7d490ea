"""Fields of sources that are opened without a build: equal to those of the dataset that is built of the same source."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from loader.resuming import check_resume
from reference import pictures
from sources.coco_files import write_json
from sources.making import tar_bytes
from stoker import _native, fields
from stoker.errors import BadSampleWarning, ConfigError, ExampleError, TooManyRejectsError
from stoker.inspect import dataset_info, show
from stoker.types import Box
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.types import Field

COUNT = 14
SEED = 5
CROP = stoker.RandomResizedCrop(13, scale=(0.2, 1.0), hflip=0.5)


def size(number: int) -> tuple[int, int]:
    return 20 + 3 * number, 44 - 2 * number


def mask(number: int) -> Image.Image:
    """Class ids as grey or, of every other, as indices into a palette that is not grey."""
    width, height = size(number)
    ids = np.random.default_rng(number).integers(0, 6, (height, width), np.uint8)
    image = Image.fromarray(ids)
    if number % 2:
        image.putpalette(list(range(255, 237, -1)))
    return image


def write_metadata(root: Path) -> Path:
    """A folder with a table, as Hugging Face has it: every kind of column."""
    (root / "images").mkdir(parents=True)
    rows = []
    for number in range(COUNT):
        suffix = "bmp" if number % 3 else "png"
        (root / f"images/{number}.jpg").write_bytes(pictures.jpeg(*size(number), number))
        mask(number).save(root / f"images/{number}_mask.png")
        pictures.rgb(pictures.jpeg(*size(number), 99 - number)).save(root / f"images/{number}_right.{suffix}")
        rows.append(
            {
                "file_name": f"images/{number}.jpg",
                "label": ["cat", "dog", "owl"][number % 3],
                "caption": f'"{number}", ü日',
                "age": number - 3,
                "weight": number / 7,
                "mask_file_name": f"images/{number}_mask.png",
                "right_file_name": f"images/{number}_right.{suffix}",
            }
        )
    with (root / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return root


def write_json_lines(root: Path) -> Path:
    """The same with JSON lines, whose values may be lists and objects."""
    lines = []
    for number in range(COUNT):
        image = pictures.encode(pictures.rgb(pictures.jpeg(*size(number), number)))
        value = {"file_name": f"{number}.png", "caption": f"n {number}", "objects": {"ids": [number, None, "x"]}}
        write_files(root, {f"train/{number}.png": image})
        lines.append(json.dumps(value))
    return write_files(root, {"train/metadata.jsonl": "\n".join(lines)})


def write_webdataset(root: Path) -> Path:
    """Two tars with texts and JSON."""
    for shard in range(2):
        members = {}
        for number in range(shard, COUNT, 2):
            members[f"{number:04}.txt"] = f"text {number}".encode()
            members[f"{number:04}.jpg"] = pictures.jpeg(*size(number), number)
            members[f"{number:04}.cls"] = str(number % 4).encode()
            members[f"{number:04}.json"] = json.dumps({"b": number, "a": [1, 2.5]}).encode()
        write_files(root, {f"{shard:06}.tar": tar_bytes(members)})
    return root


def write_coco(root: Path) -> Path:
    """COCO's boxes and captions of the same images, in one file."""
    images, annotations = [], []
    for number in range(COUNT):
        width, height = size(number)
        write_files(root, {f"train2017/{number}.jpg": pictures.jpeg(width, height, number)})
        images.append({"id": 50 - number, "file_name": f"{number}.jpg", "width": width, "height": height})
        for nth in range(number % 4):
            left, top, wide, high = bbox = [1.5 * nth, 2.25, 7.1 + number, 11.3]
            polygon = [left, top, left + wide, top + nth, left + 3, top + high]
            box = {"image_id": 50 - number, "category_id": 3 * nth, "bbox": bbox, "segmentation": [polygon]}
            annotations.append({"id": len(annotations), **box})
        for nth in range(1 + number % 2):
            caption = {"id": len(annotations), "image_id": 50 - number, "caption": f"{nth} of {number}"}
            annotations.append(caption)
    categories = [{"id": 3 * category, "name": f"c{category}"} for category in range(4)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    return write_json(root / "annotations/instances_train2017.json", document)


SOURCES: dict[str, Callable[[Path], Path]] = {
    "metadata.csv": write_metadata,
    "metadata.jsonl": write_json_lines,
    "webdataset": write_webdataset,
    "coco": write_coco,
    "masks of coco": write_coco,
}
KINDS: dict[str, dict[str, Field]] = {
    "metadata.csv": {
        "caption": fields.Text(),
        "age": fields.Int(),
        "weight": fields.Float(),
        "mask": fields.Mask(),
        "right": fields.Image(),
    },
    "metadata.jsonl": {"caption": fields.Text(), "objects": fields.Json()},
    "webdataset": {"txt": fields.Text(), "json": fields.Json()},
    "coco": {"caption": fields.Text(), "captions": fields.Json()},
    "masks of coco": {"caption": fields.Text(), "captions": fields.Json(), "mask": fields.Mask()},
}


@pytest.fixture(scope="module", params=list(SOURCES))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any, Any, Any]:
    """A source that is opened, the dataset built of it, and the records of that in the order of the source."""
    root = tmp_path_factory.mktemp("pair")
    source = SOURCES[request.param](root / "src")
    masks = request.param == "masks of coco"
    stoker.build(source, root / "out", masks=masks, progress=False)
    opened, built = stoker.open(source, masks=masks), stoker.open(root / "out")
    number_of = {built[number].source: number for number in range(COUNT)}
    order = [number_of[sample.source.rpartition("/")[2]] for sample in (opened[number] for number in range(COUNT))]
    (root / "records").write_bytes(b"".join(_native.frame_record(built.records.read(number)) for number in order))
    return request.param, opened, built[order], stoker.open(root / "records")


def load(dataset: Any, wanted: Any, **settings: Any) -> list[stoker.Batch]:
    settings = {"batch_size": 5, "transform": CROP, "shuffle": True, "seed": SEED, **settings}
    with stoker.Loader(dataset, fields=wanted, **settings) as loader:
        return list(loader)


def same(actual: Any, expected: Any) -> None:
    """Check fields, or batches without their origin."""
    if isinstance(expected, stoker.Batch):
        for name in ("images", "labels", "indices", "valid", "seeds"):
            assert np.array_equal(getattr(actual, name), getattr(expected, name)), name
        assert actual.position == expected.position
        same(actual.boxes, expected.boxes)
        same(dict(actual.fields), dict(expected.fields))
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        for name, value in expected.items():
            same(actual[name], value)
    elif isinstance(expected, stoker.Boxes):
        for name in ("corners", "labels", "objects", "offsets"):
            same(getattr(actual, name), getattr(expected, name))
    elif isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype
        assert np.array_equal(actual, expected)
    elif isinstance(expected, list) and expected and isinstance(expected[0], stoker.Batch):
        assert len(actual) == len(expected)
        for batch, other in zip(actual, expected, strict=True):
            same(batch, other)
    else:
        assert actual == expected


def rounded(box: Box) -> Box:
    """The box as records hold it."""
    return Box(*(float(np.float32(edge)) for edge in (box.xmin, box.ymin, box.xmax, box.ymax)), box.label)


def test_fields_and_values_are_those_of_the_dataset(pair: tuple[str, Any, Any, Any]) -> None:
    kind, opened, built, _ = pair
    assert dict(opened.fields) == dict(built.fields) == KINDS[kind]
    for number in range(COUNT):
        sample = opened[number]
        assert sample.problems == {}
        same(sample.fields, built[number].fields)
        assert [rounded(box) for box in sample.boxes] == built[number].boxes
        first = next(iter(opened.fields))
        same(sample.field(first), built[number].field(first))
    with pytest.raises(ConfigError, match="there is no field 'absent'; there are"):
        opened[0].field("absent")


def test_batches_are_those_of_the_records(pair: tuple[str, Any, Any, Any]) -> None:
    kind, opened, _, records = pair
    boxes = {"boxes": stoker.BoxOutput()} if "coco" in kind else {}
    same(load(opened, list(KINDS[kind]), threads=3, **boxes), load(records, KINDS[kind], threads=1, **boxes))


def test_ranks_and_a_resumed_epoch_have_the_same_fields(pair: tuple[str, Any, Any, Any]) -> None:
    kind, opened, _, _ = pair
    check_resume(opened, [(1, 3), (2, 4)], transform=CROP, fields=list(KINDS[kind]), every=3)


def test_objects_are_those_of_the_records(tmp_path: Path) -> None:
    source = write_coco(tmp_path / "src")
    stoker.build(source, tmp_path / "out", progress=False)
    opened, built = stoker.open(source), stoker.open(tmp_path / "out")
    number_of = {built[number].source: number for number in range(COUNT)}
    built = built[[number_of[opened[number].source] for number in range(COUNT)]]
    assert opened.object_counts.tolist() == built.object_counts.tolist()
    assert [known.name for known in opened.classes] == [known.name for known in built.classes]
    settings = {"transform": stoker.ObjectCrops(9), "shuffle": False, "boxes": stoker.BoxOutput()}
    batches = [load(dataset, ["caption"], **settings) for dataset in (opened, built)]
    for batch, expected in zip(*batches, strict=True):
        same(batch.images, expected.images)
        same(batch.boxes, expected.boxes)
        same(dict(batch.fields), dict(expected.fields))
    labels = np.concatenate([batch.boxes.labels for batch in load(opened, (), **settings)])
    assert set(labels.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("make", ["memory", "decoded", "node"])
def test_caches_keep_no_field_back(tmp_path: Path, make: str) -> None:
    opened = stoker.open(write_metadata(tmp_path / "src"))
    wanted = list(KINDS["metadata.csv"])
    cache: Any = stoker.MemoryCache("64MB", keep="decoded" if make == "decoded" else "encoded")
    if make == "node":
        cache = stoker.NodeCache(tmp_path / "cache", "64MB")
    expected = load(opened, wanted)
    for _ in range(2):
        same(load(opened, wanted, cache=cache), expected)
    assert cache.stats().hits == COUNT


def test_a_mix_of_a_source_and_a_dataset_has_the_fields_of_both(tmp_path: Path) -> None:
    source = write_json_lines(tmp_path / "src")
    stoker.build(source, tmp_path / "out", progress=False)
    mix = stoker.mix([stoker.open(source), stoker.open(tmp_path / "out")])
    captions = [text for batch in load(mix, ["caption"]) for text in batch.fields["caption"]]
    assert {*captions} == {f"n {number}" for number in range(COUNT)}


def broken(root: Path, name: str, change: Callable[[Path, list[dict[str, Any]]], None]) -> Path:
    """The folder with a table in which the field of image 4 has something wrong."""
    write_metadata(root)
    with (root / "metadata.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    change(root, rows)
    with (root / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert name in rows[0] or f"{name}_file_name" in rows[0]
    return root


def emptied(column: str) -> Callable[[Path, list[dict[str, Any]]], None]:
    return lambda _, rows: rows[4].update({column: ""})


def coloured(root: Path, _: list[dict[str, Any]]) -> None:
    mask(4).convert("RGB").save(root / "images/4_mask.png")


def smaller(root: Path, _: list[dict[str, Any]]) -> None:
    mask(4).resize((5, 7)).save(root / "images/4_mask.png")


def removed(root: Path, _: list[dict[str, Any]]) -> None:
    (root / "images/4_mask.png").unlink()


BROKEN: list[tuple[str, Callable[[Path, list[dict[str, Any]]], None], str]] = [
    ("mask", emptied("mask_file_name"), "field 'mask' is None; every record needs it"),
    ("mask", coloured, "field 'mask': its pixels are RGB, but those of a mask are one number each"),
    ("mask", removed, "images/4_mask.png: No such file or directory"),
    ("mask", smaller, "field 'mask': the mask has 5x7 pixels, but the image of the record 32x36"),
]


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize(("name", "change", "message"), BROKEN)
def test_what_a_build_rejects_is_a_bad_sample(
    tmp_path: Path, name: str, change: Callable[[Path, list[dict[str, Any]]], None], message: str
) -> None:
    source = broken(tmp_path / "src", name, change)
    with pytest.raises(TooManyRejectsError) as rejected:
        stoker.build(source, tmp_path / "out", progress=False)
    (reject,) = rejected.value.report.rejects
    assert reject.key == "images/4.jpg"
    assert message in reject.reason
    opened = stoker.open(source)
    with pytest.raises(ExampleError) as caught:
        load(opened, [name])
    assert str(caught.value).startswith(f"{source}/images/4.jpg: ")
    assert caught.value.path == f"{source}/images/4.jpg"
    assert str(caught.value).endswith(f": {reject.reason}")
    with pytest.warns(BadSampleWarning, match="1 bad samples were replaced"):
        expected = load(opened, [name], on_bad="substitute", threads=1, seed=0)
    with pytest.warns(BadSampleWarning):
        same(load(opened, [name], on_bad="substitute", threads=4, seed=0), expected)
    assert sorted(index for batch in expected for index in batch.indices.tolist()) != list(range(COUNT))
    assert sum(map(len, load(opened, [other for other in opened.fields if other != name]))) == COUNT
    sample = next(opened[number] for number in range(COUNT) if opened[number].source == "images/4.jpg")
    assert sample.problems == {name: reject.reason}
    with pytest.raises(ExampleError) as caught:
        sample.fields.keys()
    assert str(caught.value) == f"sample {sample.index} (images/4.jpg): {reject.reason}"


def test_fields_that_are_not_wanted_are_not_read(tmp_path: Path) -> None:
    source = write_metadata(tmp_path / "src")
    opened = stoker.open(source)
    expected = load(opened, ["caption"])
    for path in (source / "images").glob("*_*"):
        path.unlink()
    same(load(opened, ["caption"]), expected)


def test_info_lists_fields_and_show_draws_them(tmp_path: Path) -> None:
    source = write_metadata(tmp_path / "src")
    info = dataset_info(source)
    assert info.fields == stoker.open(source).fields
    assert info.examples == {
        "caption": '"\\"0\\", ü日"',
        "age": "-3",
        "weight": "0.0",
        "mask": info.examples["mask"],
        "right": info.examples["right"],
    }
    assert info.examples["mask"].startswith("png, 20 x 44, ")
    report = show.write_sheet(source, tmp_path / "sheet.png", show.SheetSpec(count=1))
    assert report.damaged == {}
    assert report.width == 20 + 3 * (show.TILE_WIDTH + 20)


def test_damage_in_a_tar_is_that_of_the_field_alone(tmp_path: Path) -> None:
    source = write_webdataset(tmp_path / "src")
    tar = source / "000000.tar"
    data = tar.read_bytes()
    offset = data.index(b'{"b": 4, ')
    opened = stoker.open(source)
    expected = load(opened, ["txt"])
    tar.write_bytes(data[:offset] + b"[" + data[offset + 1 :])
    same(load(opened, ["txt"]), expected)
    with pytest.raises(ExampleError, match=r"at byte [0-9]+ \(0004.jpg\): the json of 0004.jpg in .* damaged"):
        load(opened, ["json"])
    (damaged,) = (sample for sample in map(opened.__getitem__, range(COUNT)) if sample.problems)
    assert (damaged.source, damaged.field("txt")) == ("0004.jpg", "text 4")
    assert damaged.problems.keys() == {"json"}


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("cells", [["a|b", "b", "a"], ["0.25", "1.5", "2.75"]], ids=["several labels", "a target"])
def test_a_field_called_as_the_class_is_no_class(tmp_path: Path, cells: list[str]) -> None:
    images = {f"{number}.jpg": pictures.jpeg(40, 30, number) for number in range(len(cells))}
    rows = [f"{name},{cell}" for name, cell in zip(images, cells, strict=True)]
    source = write_files(tmp_path / "source", images | {"labels.csv": "\n".join(["file,label", *rows])})
    opened = stoker.open(source)
    stoker.build(source, tmp_path / "built", progress=False)
    built = {sample.source: sample for sample in stoker.open(tmp_path / "built")}
    assert [sample.label for sample in opened] == opened.labels.tolist() == [-1, -1, -1]
    for sample in opened:
        stored = built[sample.source.rpartition("/")[2]]
        assert stored.label == -1
        np.testing.assert_array_equal(sample.field("label"), stored.field("label"))
    assert not show.write_sheet(source, tmp_path / "sheet.png", show.SheetSpec()).damaged
