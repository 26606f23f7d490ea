"""The layouts in which ImageNet, Tiny ImageNet and Stanford Dogs come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sources.layouts import ilsvrc
from sources.making import boxes_of, fill, listed, listing, write, xml
from stoker.errors import SourceError
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def kaggle(tmp_path: Path) -> Path:
    box = xml(("n02", "0", "0", "50", "100"), filename="%s")
    write(ilsvrc(tmp_path), {"ILSVRC/Annotations/CLS-LOC/val/ILSVRC2012_val_00000001.xml": box})
    test = "ILSVRC/Data/CLS-LOC/test/ILSVRC2012_test_00000001.JPEG"
    return fill(tmp_path, "ILSVRC/ImageSets/CLS-LOC/train_cls.txt", test)


@pytest.mark.parametrize("given", [".", "ILSVRC", "ILSVRC/Data/CLS-LOC"])
def test_kaggles_layout_is_understood_from_every_folder_on_the_way(kaggle: Path, given: str) -> None:
    tree = listing(kaggle / given)
    assert listed(tree) == [("n01_1.JPEG", "n01"), ("n02_1.JPEG", "n02")]
    assert listed(tree, "validation") == [("ILSVRC2012_val_00000001.JPEG", "n02")]
    assert listed(tree, "test") == [("ILSVRC2012_test_00000001.JPEG", None)]
    assert tree.texts == (b"tench, fish", b"goldfish")
    assert [*boxes_of(tree).values()] == [[Box(0.05, 0.1, 0.25, 0.5)], [], [Box(0.0, 0.0, 0.25, 1.0)], []]
    assert tree.warnings == ()
    assert tree.fingerprint() == listing(kaggle).fingerprint()


def test_the_layout_of_nvidias_download_script(tmp_path: Path) -> None:
    fill(tmp_path, "data/train/n01/n01_1.JPEG", "data/validation/n01/ILSVRC2012_val_00000001.JPEG")
    write(tmp_path, {"bounding_boxes/n01/n01_1.xml": xml(("n01", "0", "0", "100", "50"), filename="%s")})
    for given in (".", "data"):
        tree = listing(tmp_path / given)
        assert listed(tree) == [("n01_1.JPEG", "n01")]
        assert listed(tree, "validation") == [("ILSVRC2012_val_00000001.JPEG", "n01")]
        assert tree.load(tree.table[0], "train").boxes == [Box(0.0, 0.0, 0.5, 0.5)]
        assert tree.load(tree.table[1], "validation").boxes == []


def test_nvidias_csv_is_used_where_no_xml_is_left(tmp_path: Path) -> None:
    fill(tmp_path, "data/train/n01/n01_1.JPEG")
    write(tmp_path, {"bounding_boxes/imagenet_2012_bounding_boxes.csv": "n01_1.JPEG,0.1,0.2,0.3,0.4\n"})
    tree = listing(tmp_path)
    assert tree.load(tree.table[0], "train").boxes == [Box(0.1, 0.2, 0.3, 0.4)]


TINY_BOXES = {"n01": "n01_0.JPEG\t0\t10\t63\t58\nn01_1.JPEG\t5\t5\t1\t1\n", "n02": "n02_0.JPEG\t0\t0\t63\t63\r\n\r\n"}
VAL = [
    "val_0.JPEG\tn02\t4\t0\t60\t55",
    "",
    "val_1.JPEG\tn01\t0\t0\t31\t63",
    "val_1.JPEG\tn01\t0\t0\t31\t63",
    "val_2.JPEG",
]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    for name, boxes in TINY_BOXES.items():
        fill(tmp_path, f"train/{name}/images/{name}_0.JPEG", f"train/{name}/images/{name}_1.JPEG")
        (tmp_path / f"train/{name}/{name}_boxes.txt").write_bytes(boxes.encode())
    fill(tmp_path, *(f"val/images/val_{number}.JPEG" for number in range(4)), "test/images/test_0.JPEG")
    lines = [*VAL, "val_3.JPEG\tn99\t0\t0\t1\t1", ""]
    (tmp_path / "val/val_annotations.txt").write_bytes("\r\n".join(lines).encode())
    write(tmp_path, {"wnids.txt": "n02\nn01\n", "words.txt": "n01\ttench\nn02\tgoldfish\nn77\tother\n\n"})
    return tmp_path


def test_tiny_imagenet(tiny: Path) -> None:
    tree = listing(tiny)
    assert (tree.classes, tree.texts) == ((b"n01", b"n02"), (b"tench", b"goldfish"))  # not the order of wnids.txt
    assert listed(tree) == [(f"{name}_{at}.JPEG", name) for name in ("n01", "n02") for at in (0, 1)]
    assert listed(tree, "validation") == [
        ("val_2.JPEG", None), ("val_3.JPEG", None), ("val_1.JPEG", "n01"), ("val_0.JPEG", "n02"),
    ]  # fmt: skip
    assert listed(tree, "test") == [("test_0.JPEG", None)]
    assert tree.ignored["bad line of labels"] == 1
    assert any("1 line without an image or a class" in warning for warning in tree.warnings)
    assert any("no known class to 2 images" in warning for warning in tree.warnings)


def test_tiny_imagenets_boxes_include_their_last_pixel(tiny: Path) -> None:
    tree = listing(tiny)
    of_splits = [(split, item) for split, rows in tree.splits.items() for item in tree.table.take(rows)]
    boxes = {item.name: tree.read_boxes(item, split) for split, item in of_splits}
    assert boxes[b"n01_0.JPEG"] == [Box(0.0, 10 / 64, 1.0, 59 / 64)]
    assert boxes[b"n01_1.JPEG"] == [Box(1 / 64, 1 / 64, 6 / 64, 6 / 64)]
    assert boxes[b"n02_0.JPEG"] == [Box(0.0, 0.0, 1.0, 1.0)]
    assert boxes[b"val_0.JPEG"] == [Box(4 / 64, 0.0, 61 / 64, 56 / 64)]
    assert boxes[b"val_1.JPEG"] == [Box(0.0, 0.0, 0.5, 1.0)]  # listed twice, one box
    assert boxes[b"val_2.JPEG"] == boxes[b"test_0.JPEG"] == []


def test_labels_of_tiny_imagenet_may_follow_its_own_list(tiny: Path) -> None:
    tree = listing(tiny, labels=str(tiny / "wnids.txt"))
    assert tree.classes == (b"n02", b"n01")
    assert [item.label for item in tree.table.take(tree.splits["train"])] == [0, 0, 1, 1]


@pytest.fixture
def dogs(tmp_path: Path) -> Path:
    for name, breed in (("n02085620", "Chihuahua"), ("n02086240", "Shih-Tzu")):
        fill(tmp_path, f"Images/{name}-{breed}/{name}_1.jpg", f"Images/{name}-{breed}/{name}_10.jpg")
        write(tmp_path, {f"Annotation/{name}-{breed}/{name}_1": xml((breed, "0", "0", "100", "50"), filename="%s")})
    return tmp_path


@pytest.mark.parametrize("given", [".", "Images"])
def test_stanford_dogs(dogs: Path, given: str) -> None:
    tree = listing(dogs / given)
    assert tree.classes == (b"n02085620-Chihuahua", b"n02086240-Shih-Tzu")
    assert tree.texts == (b"Chihuahua", b"Shih-Tzu")
    names = ["n02085620_1.jpg", "n02085620_10.jpg", "n02086240_1.jpg", "n02086240_10.jpg"]
    assert [name for name, _ in listed(tree)] == names
    assert [*boxes_of(tree).values()] == [[Box(0.0, 0.0, 0.5, 0.5)], []] * 2


def test_a_list_of_texts_comes_before_the_name_of_the_folder(dogs: Path) -> None:
    write(dogs, {"words.txt": "n02085620-Chihuahua\tsmall dog\n"})
    assert listing(dogs).texts == (b"small dog", b"Shih-Tzu")


def test_a_class_may_be_called_images(tmp_path: Path) -> None:
    fill(tmp_path, "Images/1.jpg", "Other/2.jpg")
    assert listing(tmp_path).classes == (b"Images", b"Other")
    fill(tmp_path, "Images/deep/3.jpg")
    assert listing(tmp_path).classes == (b"Images", b"Other")


def test_damaged_annotations_do_not_stop_an_image(dogs: Path) -> None:
    write(dogs, {"Annotation/n02085620-Chihuahua/n02085620_1": "<annotation>"})
    tree = listing(dogs)
    image = tree.load(tree.table[0], "train")
    assert image.boxes == ()
    assert "damaged annotation" in str(image.annotation_error)
    with pytest.raises(SourceError, match="damaged annotation"):
        tree.read_boxes(tree.table[0], "train")
