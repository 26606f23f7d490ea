"""Tars read in place: the same source as the folders they would unpack to."""

from __future__ import annotations

import gzip
import tarfile
from typing import TYPE_CHECKING

import pytest

from sources.making import check_refused, content, fill, listed, listing, tar_bytes, tar_of, train_tar, write, xml
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.sources import Source

TRAIN = {
    "n02": ["n02_9.JPEG", "n02_10.JPEG", "n02_100.JPEG"],
    "n01": ["n01_2.JPEG", "n01_1.JPEG"],
    "n03": ["n03_1.JPEG"],
}
VAL = {"ILSVRC2012_val_00000002.JPEG": "n01", "ILSVRC2012_val_00000001.JPEG": "n02"}
TEST = ["ILSVRC2012_test_00000002.JPEG", "ILSVRC2012_test_00000001.JPEG"]
BOXES = {
    "n01/n01_1.xml": xml(("n01", "1", "2", "77", "33"), ("n02", "0", "0", "9", "9"), size=("301", "97")),
    "n01/n01_2.xml": xml(("Scottish_deerhound", "-3", "90", "5.5", "7"), size=("301", "97"), filename="%s"),
    "n02/n02_9.xml": "<annotation>",
    "n02/n02_10.xml": xml(),
}
WORDS = "n01\ttench\nn02\tgoldfish\n"
SYNSETS = "n02\nn01\n"


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    root = tmp_path / "unpacked"
    fill(root, *(f"train/{name}/{file}" for name, files in TRAIN.items() for file in files))
    fill(root, *(f"val/{name}/{file}" for file, name in VAL.items()), *(f"test/{file}" for file in TEST))
    return write(root, {f"bounding_boxes/{name}": text for name, text in BOXES.items()} | {"words.txt": WORDS})


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    boxes = tar_bytes({name: text.encode() for name, text in BOXES.items()})
    tars = {
        "img_train.tar": train_tar(TRAIN),
        "img_val.tar": tar_of(*VAL),
        "img_test_v10102019.tar": tar_of("test/" + TEST[0], "test/" + TEST[1]),
        "bbox_train_v2.tar.gz": gzip.compress(boxes),
    }
    write(tmp_path / "packed", {"words.txt": WORDS, "imagenet_2012_validation_synset_labels.txt": SYNSETS})
    return write(tmp_path / "packed", {f"ILSVRC2012_{name}": data for name, data in tars.items()})


def everything(tree: Source) -> dict[str, list[tuple[object, ...]]]:
    """All that can get into a dataset, in its order."""
    items: dict[str, list[tuple[object, ...]]] = {}
    for split, rows in tree.splits.items():
        items[split] = []
        for item in tree.table.take(rows):
            image = tree.load(item, split)
            damaged = image.annotation_error is not None
            items[split].append((image.filename, image.data, item.label, list(image.boxes), damaged))
    return items


def test_tars_are_the_same_source_as_the_folders_they_unpack_to(unpacked: Path, packed: Path) -> None:
    tars, folders = listing(packed), listing(unpacked)
    assert tars.classes == folders.classes == (b"n01", b"n02", b"n03")
    assert tars.texts == folders.texts == (b"tench", b"goldfish", b"")
    assert everything(tars) == everything(folders)
    assert [name for name, *_ in everything(tars)["train"]] == [
        b"n01_1.JPEG", b"n01_2.JPEG", b"n02_10.JPEG", b"n02_100.JPEG", b"n02_9.JPEG", b"n03_1.JPEG",
    ]  # fmt: skip
    assert any(damaged for *_, damaged in everything(tars)["train"])
    assert tars.fingerprint() == folders.fingerprint()
    assert tars.warnings == folders.warnings


def test_nvidias_tars_have_their_boxes_in_a_folder(unpacked: Path, packed: Path) -> None:
    (packed / "bounding_boxes").mkdir()
    (packed / "ILSVRC2012_bbox_train_v2.tar.gz").rename(packed / "bounding_boxes/annotations.tar.gz")
    assert everything(listing(packed)) == everything(listing(unpacked))


def test_an_image_is_one_slice_of_the_outermost_tar(packed: Path) -> None:
    tree = listing(packed)
    raw = (packed / "ILSVRC2012_img_train.tar").read_bytes()
    for item in tree.table.take(tree.splits["train"]):
        assert tree.stored.locate(item) == bytes(packed / "ILSVRC2012_img_train.tar")
        assert raw[item.columns["offset"] : item.columns["offset"] + item.size_bytes] == content(item.key)
        assert tree.load(item, "train").data == content(item.key)
    assert tree.table[0].key == "n01.tar/n01_1.JPEG"


def test_one_tar_may_be_the_source(packed: Path) -> None:
    train = listing(packed / "ILSVRC2012_img_train.tar")
    assert list(train.splits) == ["train"]
    assert train.load(train.table[0], "train").boxes
    validation = listing(packed / "ILSVRC2012_img_val.tar")
    assert listed(validation, "validation") == [
        ("ILSVRC2012_val_00000002.JPEG", "n01"), ("ILSVRC2012_val_00000001.JPEG", "n02"),
    ]  # fmt: skip
    (packed / "imagenet_2012_validation_synset_labels.txt").unlink()
    check_refused(packed / "ILSVRC2012_img_val.tar", match="validation_labels")


def test_folders_come_before_tars(packed: Path) -> None:
    fill(packed, "train/a/1.jpg")
    assert listing(packed).classes == (b"a",)


def test_two_tars_of_one_split_are_refused(packed: Path) -> None:
    (packed / "ILSVRC2012_img_test.tar").write_bytes(tar_of("1.JPEG"))
    check_refused(packed, match="both of them the split test")


def test_the_tars_of_stanford_dogs(tmp_path: Path) -> None:
    name = "Images/n02085620-Chihuahua/n02085620_{}.jpg"
    names = (name.format(7), "Images/n02086240-Shih-Tzu/n02086240_3.jpg", name.format(5))
    (tmp_path / "images.tar").write_bytes(tar_of(*names))
    annotation = xml(("Chihuahua", "0", "0", "100", "50"), folder="02085620").encode()
    boxes = {"Annotation": None, "Annotation/n02085620-Chihuahua/n02085620_5": annotation}
    (tmp_path / "annotation.tar").write_bytes(tar_bytes(boxes))
    tree = listing(tmp_path)
    assert listed(tree) == [
        ("n02085620_5.jpg", "n02085620-Chihuahua"),
        ("n02085620_7.jpg", "n02085620-Chihuahua"),
        ("n02086240_3.jpg", "n02086240-Shih-Tzu"),
    ]
    assert tree.texts == (b"Chihuahua", b"Shih-Tzu")
    assert [tree.load(item, "train").boxes for item in tree.table] == [[Box(0.0, 0.0, 0.5, 0.5)], [], []]


@pytest.mark.parametrize(
    ("members", "expected", "loose"),
    [
        (["./b/1.jpg", "./a/x/0.jpg", "./a/1.jpg"], {"train": [("1.jpg", "a"), ("0.jpg", "a"), ("1.jpg", "b")]}, 0),
        (["top/deep/a/1.jpg", "top/deep/b/2.jpg"], {"train": [("1.jpg", "a"), ("2.jpg", "b")]}, 0),
        (["n01/1.jpg", "n01/2.jpg"], {"train": [("1.jpg", "n01"), ("2.jpg", "n01")]}, 0),
        (["a/1.jpg", "b/2.jpg", "3.jpg"], {"train": [("1.jpg", "a"), ("2.jpg", "b")]}, 1),
        (["d/train/a/1.jpg", "d/val/a/2.jpg"], {"train": [("1.jpg", "a")], "validation": [("2.jpg", "a")]}, 0),
        (["train/1.jpg", "car/2.jpg"], {"train": [("2.jpg", "car"), ("1.jpg", "train")]}, 0),
    ],
)
def test_folders_in_a_tar(
    tmp_path: Path, members: list[str], expected: dict[str, list[tuple[str, str]]], loose: int
) -> None:
    path = tmp_path / "some.tar"
    path.write_bytes(tar_of(*members))
    tree = listing(path)
    assert {split: listed(tree, split) for split in tree.splits} == expected
    assert tree.ignored.get("outside a class folder", 0) == loose


def test_a_class_in_a_tar_without_images_is_refused_unless_a_label_map_names_it(tmp_path: Path) -> None:
    path = tmp_path / "some.tar"
    path.write_bytes(tar_bytes({"Images": None, "Images/a": None, "Images/b": None, "Images/b/1.jpg": b"x"}))
    check_refused(path, match=r"some\.tar has classes without images in any split: a; .*labels='FILE'")
    (tmp_path / "classes").write_text("a\nb\n")
    assert listing(path, labels=str(tmp_path / "classes")).table[0].label == 1


def test_folders_that_programs_leave_in_tars_are_no_classes(tmp_path: Path) -> None:
    path = tmp_path / "some.tar"
    junk = ["p/.ipynb_checkpoints/1.jpg", "p/@eaDir/1.jpg", "__MACOSX/p/cat/._1.jpg", "p/dog/__MACOSX/2.jpg"]
    path.write_bytes(tar_of("p/cat/1.jpg", "p/dog/2.jpg", *junk))
    tree = listing(path)
    assert (listed(tree), tree.ignored) == ([("1.jpg", "cat"), ("2.jpg", "dog")], {"junk": 4})
    path.write_bytes(tar_bytes({"1.jpg": b"x", "1.cls": b"0", "__MACOSX": None, "__MACOSX/2.jpg": b"x"}))
    tree = listing(path)
    assert (len(tree.table), tree.ignored) == (1, {"junk": 2})


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_odd_names(tmp_path: Path, kind: int) -> None:
    long = "x" * (90 if kind == tarfile.USTAR_FORMAT else 200) + ".jpg"
    names = [f"{'d' * 100}/a/{long}", "b/\udcff.jpg", "b/é ü.jpg"]
    path = tmp_path / "some.tar"
    path.write_bytes(tar_bytes({name: name.encode("utf-8", "surrogateescape") for name in names}, kind))
    tree = listing(path)
    assert {item.path for item in tree.table} == {name.encode("utf-8", "surrogateescape") for name in names}
    assert all(tree.load(item, "train").data == item.path for item in tree.table)


def test_of_two_members_of_one_name_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "some.tar"
    both = tar_bytes({"a/1.jpg": b"old"})[:1024] + tar_bytes({"b/1.jpg": b"other", "a/1.jpg": b"new"})
    path.write_bytes(both)
    tree = listing(path)
    assert [tree.load(item, "train").data for item in tree.table] == [b"new", b"other"]
    assert any("come again under the same name" in warning for warning in tree.warnings)
