"""Lists of splits beside images: which are read, as torchvision reads them, and what is reported of the others."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from sources.layouts import pets
from sources.making import check_refused, fill, listing, split_sizes, write_lines

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.sources import Source

NAMES = tuple(f"{number}.jpg" for number in range(12))
WANTED = {"train": {*NAMES[:8]}, "validation": {*NAMES[8:10]}, "test": {*NAMES[10:]}}


def names_of(tree: Source) -> dict[str, set[str]]:
    """The names of the images of each split."""
    paths = {split: [tree.table[row].path.decode() for row in rows] for split, rows in tree.splits.items()}
    return {split: {path.rpartition("/")[2] for path in own} for split, own in paths.items()}


def lists(root: Path, line: str = "{}", **numbers: range) -> Path:
    """A text of each split, with a line for each number."""
    for name, own in (numbers or {"train": range(8), "val": range(8, 10), "test": range(10, 12)}).items():
        write_lines(root / f"{name}.txt", [line.replace("{}", str(number)) for number in own])
    return root


def masks(root: Path) -> Path:
    from sources.test_mask_folders import write as write_pair  # noqa: PLC0415

    for name in NAMES:
        write_pair(root, f"images/{name}", f"masks/{name[:-4]}.png")
    return root


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "{}.jpg",
        "images/{}.jpg",
        "./images/{}",
        "{}.png",
        "images/{}.jpg masks/{}.png",
        "/data/CamVid/images/{}.jpg /data/CamVid/masks/{}.png",
        "D:\\data\\images\\{}.jpg",
        '"{}" 1',
        "{},1",
    ],
)
def test_a_list_names_images_by_any_end_of_their_paths(line: str, tmp_path: Path) -> None:
    with_masks = listing(lists(masks(tmp_path / "masks"), line))
    assert names_of(with_masks) == WANTED
    assert split_sizes(with_masks) == {"train": 8, "validation": 2, "test": 2}
    rest = [message for message in with_masks.warnings if message.startswith("what follows the names in ")]
    assert len(rest) == (3 if " " in line or "," in line else 0)
    bare = listing(lists(fill(tmp_path / "bare", *(f"images/{name}" for name in NAMES)), line))
    if not rest:  # else a table, with a class of each image
        assert names_of(bare) == WANTED


@pytest.mark.parametrize("folder", ["splits", "ImageSets", "ImageSets/Main", "annotations", "Lists"])
def test_lists_lie_in_folders_of_them(folder: str, tmp_path: Path) -> None:
    lists(masks(tmp_path) / folder)
    tree = listing(tmp_path)
    assert names_of(tree) == WANTED
    files = " and ".join(f"{tmp_path}/{folder}/{name}.txt" for name in ("train", "val", "test"))
    assert tree.warnings == (f"the splits are those of {files}",)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torchvision leaves files open
@pytest.mark.usefixtures("torchvision")
def test_pets_are_what_torchvision_reads(tmp_path: Path) -> None:
    from torchvision.datasets import OxfordIIITPet  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    root = pets(tmp_path / "oxford-iiit-pet")
    for split, name in (("trainval", "train"), ("test", "test")):
        theirs = OxfordIIITPet(str(tmp_path), split, target_types="segmentation")
        with pytest.warns(stoker.errors.SourceWarning):
            dataset = stoker.open(root, name)
        ours = {sample.source.rpartition("/")[2]: sample for sample in dataset}
        assert ours.keys() == {path.name for path in theirs._images}
        for path, (image, ids) in zip(theirs._images, theirs, strict=True):
            assert np.array_equal(ours[path.name].decode(), np.asarray(image))
            assert np.array_equal(ours[path.name].fields["mask"], np.asarray(ids))
    tree = listing(root)
    assert tree.ignored == {".mat": 1, ".txt": 3, ".xml": 4, "hidden": 4}
    where = root / "annotations"
    assert tree.warnings == (
        "1 file with no name of an image, not used: Abyssinian_1.mat",
        f"the splits are those of {where}/trainval.txt and {where}/test.txt",
        f"what follows the names in {where}/trainval.txt is not read, as in line 1: 1 1 1",
        f"what follows the names in {where}/test.txt is not read, as in line 1: 1 1 1",
    )


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("torchvision")
def test_food_101_is_what_torchvision_reads(tmp_path: Path) -> None:
    from torchvision.datasets import Food101  # noqa: PLC0415

    root, classes = tmp_path / "food-101", ("apple_pie", "ramen")
    names = [f"{classes[number % 2]}/{number}" for number in range(12)]
    fill(root, *(f"images/{name}.jpg" for name in names))
    for split, own in (("train", names[:8]), ("test", names[8:])):
        write_lines(root / f"meta/{split}.txt", own)
        by_class = {each: [name for name in own if name.startswith(each)] for each in classes}
        (root / f"meta/{split}.json").write_text(json.dumps(by_class))
    tree = listing(root / "images")
    assert tree.classes == (b"apple_pie", b"ramen")
    for split in ("train", "test"):
        theirs = Food101(str(tmp_path), split)
        wanted = {(path.name, label) for path, label in zip(theirs._image_files, theirs._labels, strict=True)}
        items = [tree.table[row] for row in tree.splits[split]]
        assert {(item.name.decode(), item.label) for item in items} == wanted


def test_images_in_no_list_are_left_out_or_in_train(tmp_path: Path) -> None:
    root = lists(masks(tmp_path), train=range(6), test=range(8, 14))
    tree = listing(root)
    assert names_of(tree) == {"train": {*NAMES[:6]}, "test": {*NAMES[8:]}}
    assert tree.ignored == {"in no list of a split": 2}
    assert tree.warnings[1:] == (
        f"{root}/test.txt names 2 images not there: 12, 13",
        "2 images in none of these lists, left out: images/6.jpg, images/7.jpg",
    )
    (root / "train.txt").unlink()
    tree = listing(root)
    assert names_of(tree) == {"train": {*NAMES[:8]}, "test": {*NAMES[8:]}}
    assert tree.warnings[2].startswith("8 images in none of these lists, in train: images/0.jpg, ")


def test_trainval_is_both_or_train_without_validation(tmp_path: Path) -> None:
    root = lists(masks(tmp_path), trainval=range(10), val=range(8, 10), test=range(10, 12))
    assert names_of(listing(root)) == WANTED
    lists(root, train=range(8))
    assert names_of(listing(root)) == WANTED
    for name in ("train", "val"):
        (root / f"{name}.txt").unlink()
    assert names_of(listing(root)) == {"train": {*NAMES[:10]}, "test": {*NAMES[10:]}}


def test_an_image_of_two_splits_and_a_line_of_two_images_are_refused(tmp_path: Path) -> None:
    root = lists(masks(tmp_path), train=range(10), test=range(8, 12))
    message = check_refused(root)
    wanted = f"images/8.jpg is in the lists of two splits, in line 9 of {root}/train.txt and in line 1 of"
    assert message == f"{wanted} {root}/test.txt; delete one of them"
    classes = fill(tmp_path / "classes", *(f"{name}/{number}.jpg" for name in "ab" for number in range(4)))
    lists(classes, train=range(3), test=range(3, 4))
    check_refused(classes, match=r"line 1 of .*train.txt names both a/0.jpg and b/0.jpg; write the path")
    write_lines(classes / "train.txt", ["a/0.jpg", "b/1"])
    write_lines(classes / "test.txt", ["b/2.jpg"])
    tree = listing(classes)
    assert (names_of(tree), tree.classes) == ({"train": {"0.jpg", "1.jpg"}, "test": {"2.jpg"}}, (b"a", b"b"))
    assert tree.table.labels.tolist() == [0, 1, 1]


def test_a_list_is_found_beside_very_many_images(tmp_path: Path) -> None:
    fill(tmp_path, *(f"{number}.jpg" for number in range(3000)))
    lists(tmp_path, train=range(2000), test=range(2000, 3000))
    assert split_sizes(listing(tmp_path)) == {
        "train": 2000,
        "test": 1000,
    }


def test_folders_of_splits_come_before_lists(tmp_path: Path) -> None:
    fill(tmp_path, *(f"train/{name}" for name in NAMES[:8]), *(f"test/{name}" for name in NAMES[8:]))
    lists(tmp_path, train=range(2), test=range(2, 4))
    assert {split: len(own) for split, own in names_of(listing(tmp_path)).items()} == {"train": 8, "test": 4}


def test_lists_that_are_not_used_are_named(tmp_path: Path) -> None:
    root = lists(masks(tmp_path / "numbered"), train1=range(8), test1=range(8, 12), train2=range(4))
    message = f"{root} has lists called after splits that are not used: test1.txt, train1.txt, train2.txt; name the one"
    assert listing(root).warnings == (f"{message} of each split train.txt, val.txt or test.txt to read it",)
    root = lists(masks(tmp_path / "others"), "word {}")
    message = "not read, as their lines begin with no names of images: train.txt, val.txt, test.txt"
    assert listing(root).warnings == (f"{message} in {root}",)
    root = masks(tmp_path / "tables")
    write_lines(root / "train.csv", ["image,mask", "1.jpg,1.png"])
    message = "beside images and masks, not used: train.csv; lists of splits are called train.txt, val.txt and test.txt"
    assert listing(root).warnings == (message,)


def test_a_table_beside_lists_has_their_splits(tmp_path: Path) -> None:
    fill(tmp_path, *(f"images_{number // 6:03d}/images/{name}" for number, name in enumerate(NAMES)))  # as NIH has them
    write_lines(tmp_path / "train_val_list.txt", NAMES[:8])
    write_lines(tmp_path / "test_list.txt", NAMES[8:])
    rows = [f"{name},{at % 3}" for at, name in enumerate(NAMES)]
    write_lines(tmp_path / "Data_Entry_2017.csv", ["Image Index,label", *rows])
    for source in (tmp_path, tmp_path / "Data_Entry_2017.csv"):
        tree = listing(source)
        assert names_of(tree) == {"train": {*NAMES[:8]}, "test": {*NAMES[8:]}}
        for split, first in (("train", 0), ("test", 8)):
            labels = {tree.table[row].name.decode(): tree.table[row].label for row in tree.splits[split]}
            assert labels == {name: at % 3 for at, name in enumerate(NAMES[first : 8 if first == 0 else 12], first)}


@pytest.mark.parametrize("name", ["train_test_split.txt", "train_list.mat", "split_zhou_Pets.json", "setid_train.json"])
def test_files_that_may_say_splits_are_named(name: str, tmp_path: Path) -> None:
    fill(tmp_path, *(f"images/{kind}/{number}.jpg" for kind in ("cat", "dog") for number in range(2)))
    write_lines(tmp_path / name, ["1 0", "2 1"])
    message = f"may say splits, and are not read: {name} in {tmp_path}; write train.txt, val.txt and test.txt, with the"
    warnings = listing(tmp_path / "images").warnings
    assert warnings == ((f"{message} name of an image on each line",) if "setid" not in name else ())


def test_the_folder_above_need_not_be_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = fill(lists(tmp_path), *(f"images/{name}" for name in NAMES)) / "images"
    assert names_of(listing(root)) == WANTED
    listed = os.scandir

    def scandir(path: bytes | str) -> object:
        if os.fsdecode(path) == str(tmp_path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert names_of(listing(root)) == {"train": {*NAMES}}
