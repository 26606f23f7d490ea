"""Folders with several COCO files: one source of several splits, in which each file is as ``pycocotools`` reads it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pycocotools.coco import COCO

import stoker
from sources.coco_files import check_boxes, drawn_masks, paint, write_json
from sources.making import check_refused, fill, listing, read_back, split_sizes

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

pytestmark = [
    pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning"),
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # of pycocotools' own decode
]

CATEGORIES = [{"id": 18, "name": "dog"}, {"id": 1, "name": "person"}, {"id": 90, "name": "bus"}]
SIZES = {"1.png": (40, 30), "2.png": (25, 50), "3.png": (10, 10)}
SPLITS = {"train": 3, "validation": 2, "test": 1}
"""How many images each split has: they are called alike in all."""

LAYOUTS: dict[str, tuple[dict[str, str], str]] = {
    "roboflow": ({name: f"{name}/_annotations.coco.json" for name in ("train", "valid", "test")}, "{}"),
    "official": ({f"{name}2017": f"annotations/instances_{name}2017.json" for name in ("train", "val", "test")}, "{}"),
    "no annotations": ({f"{name}2017": f"instances_{name}2017.json" for name in ("train", "val", "test")}, "{}"),
    "cvat": ({name: f"annotations/instances_{name}.json" for name in ("Train", "Validation", "Test")}, "images/{}"),
    "small cvat": ({name: f"annotations/instances_{name}.json" for name in ("train", "val", "test")}, "images/{}"),
    "fiftyone": ({name: f"{name}/labels.json" for name in ("train", "validation", "test")}, "{}/data"),
    "supervisely": ({name: f"{name}/annotations/instances.json" for name in ("train", "val", "test")}, "{}/images"),
    "beside": ({name: f"{name}.json" for name in ("train", "val", "test")}, "{}"),
    "without years": ({f"{name}2017": f"lvis_v1_{name}.json" for name in ("train", "val", "test")}, "{}"),
    "openmmlab": ({name: f"annotations/{name}.json" for name in ("train", "val")}, "pictures/{}"),
    "in a folder": ({name: f"export/{name}/_annotations.coco.json" for name in ("train", "valid")}, "export/{}"),
}
"""The file of each folder, and where its images lie."""


def first(count: int) -> dict[str, tuple[int, int]]:
    return dict([*SIZES.items()][:count])


def document(count: int, shift: int = 0, categories: list[dict[str, Any]] = CATEGORIES) -> dict[str, Any]:
    """Images with two objects each, and a crowd; those of different splits differ by a shift."""
    images = [
        {"id": 7 - at, "file_name": name, "width": width, "height": height}
        for at, (name, (width, height)) in enumerate(first(count).items())
    ]
    annotations = [
        {"id": 3 * at + number, "image_id": image["id"], "iscrowd": int(number == 2), "area": 1.0}
        | {"category_id": categories[(at + number + shift) % len(categories)]["id"]}
        | {"bbox": [number + shift, 1.5, 5 + at, 4], "segmentation": [[1 + shift, 1, 6 + number, 1, 6 + number, 7.5]]}
        for at, image in enumerate(images)
        for number in range(3)
    ]
    return {"images": images, "annotations": annotations, "categories": categories}


def make(root: Path, layout: str) -> dict[str, Path]:
    """Write a layout, and return the file of each split."""
    files, folder = LAYOUTS[layout]
    paths = {}
    for shift, ((split, count), (name, file)) in enumerate(zip(SPLITS.items(), files.items(), strict=False)):
        paint(root / folder.format(name), first(count), shift)
        paths[split] = write_json(root / file, document(count, shift))
    return paths


def roboflow(root: Path, **categories: list[tuple[int, str]]) -> Path:
    """Write Roboflow's layout, with the categories of each split."""
    for shift, (name, pairs) in enumerate(categories.items()):
        paint(root / name, first(2), shift)
        own = [{"id": category, "name": text} for category, text in pairs]
        write_json(root / name / "_annotations.coco.json", document(2, 0, own))
    return root


def check_split(dataset: stoker.Dataset, path: Path) -> None:
    """Compare labels, boxes and masks with those of ``pycocotools``."""
    theirs, names = COCO(str(path)), [each.name for each in dataset.classes]
    check_boxes(dataset, theirs)
    numbers = {each["id"]: names.index(each["name"]) + 1 for each in theirs.loadCats(theirs.getCatIds())}
    masks = drawn_masks(theirs, numbers)
    for sample in dataset:
        mask = masks[sample.source.rpartition("/")[2]]
        assert np.array_equal(np.asarray(sample.fields["mask"]), mask)
        assert mask.any()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_split_is_that_of_pycocotools(tmp_path: Path, layout: str) -> None:
    paths = make(tmp_path / "source", layout)
    stoker.build(tmp_path / "source", tmp_path / "out", masks=True, progress=False)
    for shift, (split, path) in enumerate(paths.items()):
        for dataset in (
            stoker.open(tmp_path / "source", split=split, masks=True),
            stoker.open(tmp_path / "out", split=split),
        ):
            assert [each.name for each in dataset.classes] == ["person", "dog", "bus"]
            check_split(dataset, path)
            assert {int(sample.decode()[0, 0, 1]) for sample in dataset} == {shift}


def test_images_of_all_splits_may_lie_in_one_folder(tmp_path: Path) -> None:
    paint(tmp_path / "images", first(3), 0)
    train, validation = document(3), document(3)
    train["images"], validation["images"] = train["images"][:2], validation["images"][2:]
    write_json(tmp_path / "train_annotations.json", train)
    write_json(tmp_path / "val_annotations.json", validation)
    tree = listing(tmp_path)
    keys = {split: [tree.table[row].key for row in rows] for split, rows in tree.splits.items()}
    assert keys == {"train": ["1.png", "2.png"], "validation": ["3.png"]}
    assert "not in the COCO file" not in tree.ignored


@pytest.mark.parametrize("folder", ["", "annotations/"])
def test_images_of_lvis_lie_where_their_urls_say(tmp_path: Path, folder: str) -> None:
    for shift, name in enumerate(("train2017", "val2017")):
        paint(tmp_path / name, first(2), shift)
    for name, folders in (("train", ("train2017", "train2017")), ("val", ("train2017", "val2017"))):
        content = document(2)
        for image, part in zip(content["images"], folders, strict=True):
            image["coco_url"] = f"http://images.cocodataset.org/{part}/{image.pop('file_name')}"
        write_json(tmp_path / f"{folder}lvis_v1_{name}.json", content)
    for tree in (listing(tmp_path), listing(tmp_path / f"{folder}lvis_v1_val.json")):
        keys = [tree.table[row].key for row in tree.splits["validation"]]
        assert keys == ["train2017/1.png", "val2017/2.png"]
        assert all(tree.table.sizes)


def test_an_image_of_two_splits_is_told(tmp_path: Path) -> None:
    paint(tmp_path / "images", first(3), 0)
    train = write_json(tmp_path / "train.json", document(3))
    validation = write_json(tmp_path / "val.json", document(1))
    tree = listing(tmp_path)
    assert tree.warnings[1] == f"{train} and {validation} name the same images, which are items of each split: 1.png"
    assert split_sizes(tree) == {"train": 3, "validation": 1}


@pytest.mark.parametrize(
    ("train", "valid", "names", "warnings"),
    [
        ([(1, "cat"), (7, "dog")], [(7, "dog"), (1, "cat")], b"cat dog", []),
        ([(1, "cat"), (7, "dog")], [(3, "bus"), (7, "dog")], b"cat bus dog", ["lacks", "lacks"]),
        ([(1, "cat"), (2, "dog")], [(1, "dog"), (2, "cat")], b"cat dog", ["other ids"]),
        ([(1, "cat"), (2, "dog")], [(1, "dog")], b"cat dog", ["other ids", "lacks"]),
        ([(1, "cat"), (2, "dog")], [(1, "dog"), (2, "bus")], b"cat dog bus", ["lacks", "other ids", "lacks"]),
        ([(1, "cat")], [(5, "cat")], b"cat", ["other ids"]),
    ],
)
def test_categories_are_one_table_by_their_names(
    tmp_path: Path, train: list[tuple[int, str]], valid: list[tuple[int, str]], names: bytes, warnings: list[str]
) -> None:
    root = roboflow(tmp_path, train=train, valid=valid)
    tree = listing(root, masks=True)
    assert tree.classes == tuple(names.split())
    assert [next(what for what in ("lacks", "other ids") if what in text) for text in tree.warnings[1:-2]] == warnings
    for split, folder in (("train", "train"), ("validation", "valid")):
        check_split(stoker.open(root, split=split, masks=True), root / folder / "_annotations.coco.json")


def test_files_that_disagree_on_a_category_are_refused(tmp_path: Path) -> None:
    root = roboflow(tmp_path, train=[(1, "cat"), (2, "dog")], valid=[(1, "cat"), (2, "wolf")])
    problem = f"the category 2 is 'wolf' in {root}/valid/_annotations.coco.json, but 'dog' in {root}/train/_annotations"
    check_refused(root, match=re.escape(problem))
    assert listing(root / "valid/_annotations.coco.json").classes == (b"cat", b"wolf")


def test_what_is_not_used_is_told(tmp_path: Path) -> None:
    make(tmp_path, "official")
    write_json(tmp_path / "annotations/captions_val2017.json", document(2))
    fill(tmp_path, "more/1.png", "images/test2014/1.png", "train2017/more.png", ".cache/1.png")
    files = " and ".join(f"ROOT/{path}" for path in LAYOUTS["official"][0].values())
    tree = listing(tmp_path)
    assert [text.replace(f"{tmp_path}", "ROOT") for text in tree.warnings[1:4]] == [
        "COCO files in ROOT that are not used: annotations/captions_val2017.json; each may be given by itself",
        "folders in ROOT that are not used: images, more",
        f"{files} do not name these files: train2017/more.png",
    ]
    assert tree.ignored["with iscrowd"] == sum(SPLITS.values())


def test_a_split_whose_images_are_elsewhere_is_refused(tmp_path: Path) -> None:
    paths = make(tmp_path, "roboflow")
    for image in (tmp_path / "valid").glob("*.png"):
        image.unlink()
    check_refused(tmp_path, match=re.escape(f"the images that {paths['validation']} names, such as 1.png"))


def test_images_of_all_splits_lie_in_the_folder_that_is_given(tmp_path: Path) -> None:
    paths = make(tmp_path / "source", "roboflow")
    paint(tmp_path / "images", first(3), 9)
    tree = listing(tmp_path / "source", image_root=str(tmp_path / "images"))
    assert {item.path for item in tree.table} == {b"1.png", b"2.png", b"3.png"}
    assert [boxes.where for boxes in tree.boxes.values()] == [str(path) for path in paths.values()]


def test_paths_of_another_computer_are_files_of_their_split(tmp_path: Path) -> None:
    for path in make(tmp_path, "roboflow").values():
        content = json.loads(path.read_text())
        for image in content["images"]:
            image["file_name"] = "C:\\photos\\" + image["file_name"]
        write_json(path, content)
    tree = listing(tmp_path)
    assert {item.path for item in tree.table if item.size_bytes} == {
        *(b"train/%d.png" % number for number in (1, 2, 3)),
        *(b"valid/%d.png" % number for number in (1, 2)),
        b"test/1.png",
    }


def test_a_damaged_segmentation_names_its_file(tmp_path: Path) -> None:
    paths = make(tmp_path / "source", "roboflow")
    content = json.loads(paths["validation"].read_text())
    content["annotations"][0]["segmentation"] = [[5] * 7]
    write_json(paths["validation"], content)
    report = stoker.build(tmp_path / "source", tmp_path / "out", masks=True, max_rejects=1, progress=False)
    (reject,) = report.rejects
    assert (reject.key, str(paths["validation"]) in reject.reason) == ("valid/1.png", True)


def test_masks_of_a_saved_listing_are_of_their_file(tmp_path: Path) -> None:
    paths = make(tmp_path / "source", "roboflow")
    again = read_back(listing(tmp_path / "source", masks=True), tmp_path)
    rows = {split: int(rows[0]) for split, rows in again.splits.items()}
    masks = {split: again.load(again.table[row], split).fields["mask"] for split, row in rows.items()}
    assert {split: mask.where for split, mask in masks.items()} == {split: str(path) for split, path in paths.items()}


def test_the_dummy_category_of_roboflow_is_a_class_without_boxes(tmp_path: Path) -> None:
    categories = [{"id": 0, "name": "pets", "supercategory": "none"}, {"id": 1, "name": "cat", "supercategory": "pets"}]
    content = document(1, 0, categories)
    for annotation in content["annotations"]:
        annotation["category_id"] = 1
    for name in ("train", "valid"):
        paint(tmp_path / name, first(1), 0)
        write_json(tmp_path / name / "_annotations.coco.json", content)
    for source in (tmp_path, tmp_path / "valid/_annotations.coco.json"):
        tree = listing(source)
        assert tree.classes == (b"pets", b"cat")
        assert tree.box_counts()["validation"] == [0, 2]


@pytest.mark.parametrize("command", ["plan", "info", "audit"])
def test_commands_take_the_folder(tmp_path: Path, command: str, cli: Cli) -> None:
    make(tmp_path, "roboflow")
    shown = cli(command, tmp_path)
    assert all(split in shown for split in SPLITS)


@pytest.mark.parametrize("has_instances", [True, False])
def test_panoptic_masks_beside_instances_are_not_read_and_alone_refused(has_instances: bool, tmp_path: Path) -> None:
    root = tmp_path / "coco"
    paths = make(root, "official")
    boxes = split_sizes(listing(root))
    for path in paths.values():
        panoptic = json.loads(path.read_text())
        for annotation in panoptic["annotations"]:
            annotation["segments_info"] = [{"id": 1, "category_id": 1, "bbox": annotation.pop("bbox")}]
        name = path.name.replace("instances", "panoptic")
        write_json(path.with_name(name), panoptic)
        fill(root, *(f"annotations/{name[:-5]}/{image['file_name']}" for image in panoptic["images"]))
        if not has_instances:
            path.unlink()
    if has_instances:
        assert split_sizes(listing(root)) == boxes
        return
    check_refused(root, match=r"annotations\[0\] has segments_info, of panoptic masks, which are not read")


@pytest.mark.parametrize("prefix", ["", "JPEGImages/"])
@pytest.mark.parametrize("file", ["annotations.json", "_annotations.coco.json", "annotations/instances_default.json"])
@pytest.mark.parametrize("folder", ["", "JPEGImages"])
def test_a_file_beside_images_or_their_only_folder_is_read(folder: str, file: str, prefix: str, tmp_path: Path) -> None:
    """As labelme2coco and Roboflow without splits write it."""
    root = tmp_path / "pets"
    paint(root / folder, first(3), 0)
    content = document(3)
    for image in content["images"]:
        image["file_name"] = (prefix if folder else "") + image["file_name"]
    write_json(root / file, content)
    tree = listing(root)
    assert (tree.classes, len(tree.table)) == ((b"person", b"dog", b"bus"), 3)
    assert [len(tree.load(item, "train").boxes) for item in tree.table] == [2, 2, 2]
    (root / "other").mkdir()
    paint(root / "other", first(1), 9)
    if folder and file.startswith("annotations/"):
        message = f"of COCO's {root / file}, give image_root={str(root / folder)!r}; to read the images alone, give"
        assert f"{message} {root / folder}; if" in check_refused(root)
        if not prefix:
            tree = listing(root, image_root=str(root / folder))
            assert [len(tree.load(item, "train").boxes) for item in tree.table] == [2, 2, 2]
