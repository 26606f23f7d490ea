"""YOLO's folders: the boxes of label files, the classes of ``data.yaml``, and what is refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from sources.layouts import yolo
from sources.making import boxes_of, check_refused, fill, listing, write
from stoker.sources import with_objects
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from stoker.sources import Source


def dataset(root: Path, yaml: str, *images: str, **labels: str) -> Path:
    """A folder with a ``data.yaml``, images, and texts in ``labels/train``."""
    fill(root, *images)
    (root / "labels/train").mkdir(parents=True, exist_ok=True)
    return write(root, {f"labels/train/{name}.txt": text for name, text in labels.items()} | {"data.yaml": yaml})


def test_boxes_and_classes_of_a_folder_and_of_its_file(tmp_path: Path) -> None:
    root = yolo(tmp_path)
    tree = listing(root)
    assert tree.classes == (b"cat", b"dog")
    assert boxes_of(tree) == {
        "train images/train/1.jpg": [Box(0.375, 0.25, 0.625, 0.75, 1), Box(0.125, 0.25, 0.5, 0.75, 0)],
        "train images/train/2.jpg": f"damaged annotation: {root}/labels/train/2.txt, line 1: there is no class 2",
        "validation images/val/3.jpg": [],
    }
    assert listing(root / "data.yaml").fingerprint() == tree.fingerprint()
    cropped = with_objects(tree)
    assert [cropped.load(item, "train").label for item in cropped.table.take(cropped.splits["train"])] == [1, 0, None]


def test_an_image_without_a_suffix_has_its_text(tmp_path: Path) -> None:
    text = {"1": "0 0.5 0.5 0.25 0.5\n"}
    root = dataset(tmp_path, "names: [cat]\ntrain: images/train\n", "images/train/1", **text)
    assert boxes_of(listing(root)) == {"train images/train/1": [Box(0.375, 0.25, 0.625, 0.75, 0)]}


def test_classes_may_be_written_as_fractions(tmp_path: Path) -> None:
    """As ``numpy.savetxt`` has them."""
    text = {"1": "1.000000000000000000e+00 5.0e-01 0.5 0.25 0.5\n0.0 0.5 0.5 0.25 0.5\n"}
    root = dataset(tmp_path, "names: [cat, dog]\ntrain: images/train\n", "images/train/1.jpg", **text)
    own = [Box(0.375, 0.25, 0.625, 0.75, label) for label in (1, 0)]
    assert boxes_of(listing(root)) == {"train images/train/1.jpg": own}


@pytest.mark.parametrize(
    ("images", "classes"),
    [
        ("images/{}", "classes.txt"),
        ("images/{}", "labels/classes.txt"),
        ("images/{}", "labels/train/classes.txt"),
        ("{}/images", "classes.txt"),
        ("{}/images", "train/labels/classes.txt"),
    ],
)
def test_splits_are_folders_of_images_beside_a_text_of_classes(images: str, classes: str, tmp_path: Path) -> None:
    for split, text in (("train", "1 0.5 0.5 0.25 0.5\n"), ("val", "")):
        top = images.format(split)
        fill(tmp_path, f"{top}/1.jpg", f"{(labels := top.replace('images', 'labels'))}/1.txt")
        (tmp_path / labels / "1.txt").write_text(text)
    (tmp_path / classes).write_text("cat\ndog\n")
    tree = listing(tmp_path)
    assert tree.classes == (b"cat", b"dog")
    own = {f"train {images.format('train')}/1.jpg": [Box(0.375, 0.25, 0.625, 0.75, 1)]}
    assert boxes_of(tree) == {**own, f"validation {images.format('val')}/1.jpg": []}


def test_plan_and_info_name_the_folder_once(tmp_path: Path, cli: Cli) -> None:
    root = dataset(tmp_path, "names: [cat]\ntrain: images/train\nval: images/val\n")
    for split in ("train", "val"):
        (root / f"images/{split}").mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(root / f"images/{split}/1.png")
    for command in ("plan", "info"):
        shown = cli(command, root)
        assert shown.count(str(root)) == 1
        assert "boxes: train, validation\n" in shown
    write(root, {"labels/val/1.txt": "7 0.5 0.5 0.1 0.1\n"})
    problem = f"damaged annotation: {root}/labels/val/1.txt, line 1: there is no class 7"
    assert f"annotation of images/val/1.png: {problem}\n" in cli("plan", root)
    assert f"boxes: {root} for train, validation\n" in cli("plan", root / "data.yaml")


def test_label_studio_names_classes_in_a_text(tmp_path: Path) -> None:
    root = dataset(tmp_path / "a", "names: [cat, dog]\ntrain: images\n", "images/1.jpg")
    (root / "labels/1.txt").write_text("1 0.5 0.5 0.25 0.5\n")
    (root / "labels/train").rmdir()
    expected = listing(root).fingerprint()
    (root / "data.yaml").unlink()
    (root / "notes.json").write_text('{"categories": [{"id": 0, "name": "cat"}]}')
    check_refused(root, match=r"classes\.txt or data\.yaml beside them has to name the classes")
    (root / "classes.txt").write_text("cat\r\ndog\r\n\r\n")
    assert listing(root).fingerprint() == expected
    (root / "classes.txt").write_text("cat\n\ndog\n")
    check_refused(root, match=r"names\[1\] is '', which cannot be")
    (root / "labels/1.txt").unlink()
    for path in ("images/1.jpg", "labels/1.png"):
        Image.new("L", (32, 24)).save(root / path)
    assert [*listing(root).fields] == ["mask"]


def test_another_class_of_a_box_is_another_source(tmp_path: Path) -> None:
    yaml = "names: [cat, dog]\ntrain: images\n"
    prints = set()
    for label in (0, 1):
        root = dataset(tmp_path, yaml, "images/1.jpg")
        (root / "labels/1.txt").write_text(f"{label} 0.5 0.5 0.1 0.1\n")
        prints.add(listing(root).fingerprint())
    assert len(prints) == 2


@pytest.mark.parametrize(
    ("yaml", "images"),
    [
        ("names: [a]\ntrain: ../train/images\nval: ../valid/images\n", "train/images"),  # Roboflow's
        ("names: {0: a}\npath: ../datasets/other\ntrain: [train, more]\n", "train"),
        ("names: [1]\npath: inner\ntrain: ./images/\nval:\n", "inner/images"),
        ("names: [a]\npath: C:\\data\ntrain: images\\train\n", "images/train"),
    ],
)
def test_folders_are_found_as_programs_write_them(yaml: str, images: str, tmp_path: Path) -> None:
    tree = listing(dataset(tmp_path, yaml, f"{images}/1.jpg"))
    train = tree.table.take(tree.splits["train"])
    assert [str(path) for path in tmp_path.rglob("1.jpg")] == [tree.stored.locate(item).decode() for item in train]


def split_paths(tree: Source) -> dict[str, list[str]]:
    return {split: [item.key for item in tree.table.take(rows)] for split, rows in tree.splits.items()}


def test_splits_are_lists_of_files(tmp_path: Path) -> None:
    """Lines are relative to the dataset, after ``./`` to the list, or absolute; each is an item."""
    yaml = "names: [a, b]\ntrain: [lists/train.txt, more/images]\nval: val.txt\ntest: gone.txt\n"
    fill(tmp_path, *(f"images/{number}.jpg" for number in range(5)), "lists/images/8.jpg", "more/images/9.jpg")
    root = dataset(tmp_path, yaml, "lists/images/7.jpg")
    (root / "lists/train.txt").write_text("images/1.jpg\r\n./images/7.jpg\n\nimages/0.jpg\nimages/1.jpg\n")
    (root / "val.txt").write_text(f"./images/2.jpg\n{root}/images/3.jpg\nimages/gone.jpg")
    boxes = {"labels/1.txt": 1, "lists/labels/7.txt": 0, "labels/3.txt": 1}
    write(root, {path: f"{label} 0.5 0.5 0.5 0.5\n" for path, label in boxes.items()})
    tree = listing(root)
    train = ["images/0.jpg", "images/1.jpg", "images/1.jpg", "lists/images/7.jpg", "more/images/9.jpg"]
    assert sorted(split_paths(tree)["train"]) == train
    named = [f"{root}/images/3.jpg", "images/2.jpg", "images/gone.jpg"]
    assert sorted(split_paths(tree)["validation"]) == sorted(named)
    labels = {item.name: [box.label for box in tree.read_boxes(item, "train")] for item in tree.table}
    boxed = {b"1.jpg": [1], b"7.jpg": [0], b"3.jpg": [1]}
    assert labels == boxed | {name: [] for name in (b"0.jpg", b"9.jpg", b"2.jpg", b"gone.jpg")}
    assert tree.ignored == {"in no list": 3}
    assert tree.warnings == (
        f"{root}/data.yaml: test is 'gone.txt', a list that is not there",
        "images that a line names again: 1; each line is an item of its own",
        f"images that are missing or empty, or links that lead nowhere: 1 of 8, such as images/gone.jpg in {root}",
    )
    assert {item.name: item.size_bytes > 0 for item in tree.table}.pop(b"gone.jpg") is False
    (root / "val.txt").write_text("images/1.jpg\n../1.jpg\n")
    check_refused(root, match=r"val.txt, line 2: '../1.jpg' is no file in")


@pytest.mark.parametrize(("before", "is_file"), [("data/", True), ("data/", False), ("coco8/", True), ("", True)])
def test_lists_of_exports_begin_with_the_folder_itself(before: str, is_file: bool, tmp_path: Path) -> None:
    """CVAT writes ``data/`` in ``data.yaml`` and before each line; no such folder is in the archive."""
    yaml = f"names: [a, b]\npath: .\ntrain: {before if not is_file else ''}train.txt\n"
    text = {"1": "1 0.5 0.5 0.25 0.5\n"}
    root = dataset(tmp_path / "coco8", yaml, "images/train/1.jpg", "images/train/2.jpg", **text)
    (root / "train.txt").write_text(f"{before}images/train/1.jpg\n{before}images/train/2.jpg\n")
    tree = listing(root)
    assert split_paths(tree) == {"train": ["images/train/1.jpg", "images/train/2.jpg"]}
    assert [len(tree.read_boxes(item, "train")) for item in tree.table] == [1, 0]
    assert tree.warnings == ()


@pytest.mark.parametrize("line", ["other/images/1.jpg", "/other/images/1.jpg", "data/images/gone.jpg"])
def test_a_list_whose_images_are_not_there_is_refused(line: str, tmp_path: Path) -> None:
    root = dataset(tmp_path, "names: [a]\ntrain: train.txt\n", "images/1.jpg")
    (root / "train.txt").write_text(f"\n{line}\n")
    problem = f"{root}/train.txt, line 2: {line!r} is no file in {root}; give paths relative to that"
    check_refused(root, match=re.escape(problem))


def test_a_file_of_any_name_counts_where_it_is_the_only_one(tmp_path: Path) -> None:
    fill(tmp_path, "images/train/1.jpg", "big.yaml")
    own = "path: ../datasets/coco128\ntrain: images/train\nnc: 2\n"
    write(tmp_path, {"coco128.yaml": own, "hyp.yml": "train: {lr: 1}\nnames: x\n", "broken.yaml": "["})
    tree = listing(tmp_path)
    assert (tree.classes, split_paths(tree)) == ((b"class_0", b"class_1"), {"train": ["images/train/1.jpg"]})
    (tmp_path / "other.yaml").write_text("train: images/train\nnames: [a]\n")
    check_refused(tmp_path, match=r"several files of YOLO's: .*coco128.yaml and .*other.yaml; give one of them")
    assert listing(tmp_path / "other.yaml").classes == (b"a",)
    (tmp_path / "data.yaml").write_text("train: images/train\nnames: [b]\n")
    assert listing(tmp_path).classes == (b"b",)


def polygon(label: int, left: int, top: int, right: int, bottom: int) -> str:
    """A rectangle of an image of 20 x 10 pixels."""
    points = ((left, top), (right, top), (right, bottom), (left, bottom))
    return f"{label} " + " ".join(f"{x / 20} {y / 10}" for x, y in points)


def test_masks_are_drawn_of_polygons(tmp_path: Path) -> None:
    """Of two objects at a pixel the smaller one counts: here the later one."""
    root = dataset(tmp_path, "names: [a, b]\ntrain: images/train\n")
    pixels = np.zeros((10, 20, 3), np.uint8)
    (root / "images/train").mkdir(parents=True)
    for name in "123":
        Image.fromarray(pixels).save(root / f"images/train/{name}.png")
    rectangles = ((0, 2, 1, 12, 9), (1, 8, 3, 17, 6))
    (root / "labels/train/1.txt").write_text("\n".join(polygon(*each) for each in rectangles))
    (root / "labels/train/2.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    expected = np.zeros((10, 20), np.uint8)
    for label, left, top, right, bottom in rectangles:
        for y in range(top, bottom):
            for x in range(left, right):
                expected[y, x] = label + 1
    opened = stoker.open(root, masks=True)
    assert (opened[0].fields["mask"] == expected).all()
    assert not opened[2].fields["mask"].any()
    (reject,) = stoker.build(root, tmp_path / "out", masks=True, progress=False, max_rejects=1).rejects
    assert f"{root}/labels/train/2.txt, line 1: a box, but masks are drawn of polygons" in reject.reason
    built = stoker.open(tmp_path / "out")
    masks = {sample.source.rpartition("/")[2]: sample.fields["mask"] for sample in built}
    assert (masks["1.png"] == expected).all()
    assert listing(root).fields == {}


def test_a_folder_that_is_not_there_is_a_warning(tmp_path: Path) -> None:
    root = dataset(tmp_path, "names: [a]\ntrain: images\ntest: images/test\n", "images/1.jpg", "labels/1.txt")
    assert listing(root).warnings == (f"{root}/data.yaml: test is 'images/test', a folder that is not there",)


def test_boxes_without_area_are_told_where_they_are_read(tmp_path: Path, cli: Cli) -> None:
    text = {"1": "0 0.5 0.5 0 0\n0 0.5 0.5 0.1 0.1\n0 0 0 0.5 0\n"}
    root = dataset(tmp_path, "names: [a]\ntrain: images/train\n", "images/train/1.jpg", **text)
    assert "boxes without area inside the image: 2, such as" in cli("build", root, tmp_path / "out")


@pytest.mark.parametrize(
    ("folder", "names", "warnings"),
    [
        ("labels", ["1.txt", "classes.txt"], []),
        ("labels", ["1.txt", "3.txt"], ["annotations of images that are not there: labels/3.txt"]),
        (
            "lables",
            ["1.txt"],
            ["no image has boxes, as none of their texts is there: labels/1.txt, labels/2.txt; call them so"],
        ),
    ],
)
def test_texts_and_images_without_each_other_are_told(
    folder: str, names: list[str], warnings: list[str], tmp_path: Path
) -> None:
    root = dataset(tmp_path, "names: [a]\ntrain: images\n", "images/1.jpg", "images/2.jpg")
    write(root, {f"{folder}/{name}": "0 0.5 0.5 0.1 0.1\n" for name in names})
    assert list(listing(root).warnings) == warnings


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0 0.5 0.5 0.1", "4 words, not a class and 4 numbers, or 3 or more points"),
        ("0 0.5 0.5 0.1 0.1 0.9", "6 words, not a class and 4 numbers, or 3 or more points"),
        ("0 0.5 0.5 0.1 nan", "nan is no fraction of the image's sides, from 0 to 1"),
        ("0 320 240 64 48", "320 is no fraction of the image's sides, from 0 to 1"),
        ("-1 0.5 0.5 0.1 0.1", "there is no class -1"),
        ("0.5 0.5 0.5 0.1 0.1", "there is no class 0.5"),
        ("nan 0.5 0.5 0.1 0.1", "there is no class nan"),
        ("cat 0.5 0.5 0.1 0.1", "not a number: 'cat'"),
        ("0 0.5 0.5 0.1 x", "not a number: 'x'"),
    ],
)
def test_a_damaged_line_is_named_with_its_file(line: str, problem: str, tmp_path: Path) -> None:
    text = f"0 0.5 0.5 1 1\r\n\n{line}\n"
    root = dataset(tmp_path, "names: [a]\ntrain: images/train\n", "images/train/1.jpg", **{"1": text})
    where = f"{root}/labels/train/1.txt"
    assert boxes_of(listing(root)) == {"train images/train/1.jpg": f"damaged annotation: {where}, line 3: {problem}"}


@pytest.mark.parametrize(
    ("yaml", "problem"),
    [
        ("names: [a\n", "is not YAML: "),
        ("names: [yes]\ntrain: images\n", "names[0] is of type bool, not text; put it into quotes"),
        ("names: [a, b, a]\ntrain: images\n", "names has 'a' 2 times"),
        ("names: {1: a}\ntrain: images\n", "names has 1 classes, but none with the number 0"),
        ("names: cat\ntrain: images\n", "names is no list of 1 to "),
        ("names: ['a\\tb', \"a\\tb\"]\ntrain: images\n", "cannot be the name of a class"),
        ("names: [a]\ntrain: 7\n", "train is of type int, not the path of a folder or a list"),
        ("names: [a]\ntrain: images/1.jpg\n", "'images/1.jpg' is a file; give the folder of the images, or a list"),
        ("nc: 2\nnames: [a]\ntrain: images\n", "nc is 2, but names has 1 classes"),
        ("nc: many\ntrain: images\n", "nc is 'many', not 1 to "),
        ("names: [a]\ntrain: ../..\n", "'../..' is no folder in"),
        ("names: [a]\ntrain: /nowhere\n", "'/nowhere' is no folder in"),
        ("names: [a]\ntrain: nowhere\n", "none of the folders and lists that it names is in"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nnames: [*b]\ntrain: images\n", "names[0] is of type list"),
        ("[" * 100_000, "is not YAML: "),
    ],
)
def test_what_cannot_be_used_is_refused(yaml: str, problem: str, tmp_path: Path) -> None:
    root = dataset(tmp_path, yaml, "images/1.jpg", "list.txt")
    message = check_refused(root)
    assert message.startswith(f"{root}/data.yaml ")
    assert problem in message


def test_another_data_yaml_is_none_of_its_files(tmp_path: Path) -> None:
    root = fill(tmp_path, "cat/1.jpg", "dog/1.jpg")
    before = listing(root).fingerprint()
    (root / "data.yaml").write_text("version: 3\n")
    assert listing(root).fingerprint() == before
    check_refused(root / "data.yaml", match="it lacks names and nc, or each of train, val, test")
