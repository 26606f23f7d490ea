"""Annotations: Google's rules, found folders, damaged files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from small_cases import each
from sources.making import check_refused, fill, listing, xml
from stoker.errors import SourceError
from stoker.sources import read_boxes
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path

CLASSES = frozenset({b"n01", b"n02"})


def boxes_of(tmp_path: Path, text: str) -> list[Box]:
    path = tmp_path / "a.xml"
    path.write_text(text)
    return read_boxes(bytes(path), b"n01", CLASSES)


SAME = Box(0.1, 0.1, 0.5, 0.5)


@each(
    ("objects", "boxes"),
    [
        ([("n01", "20", "10", "100", "50"), ("n01", "100", "50", "20.0", "10")], [SAME, SAME]),  # ordered
        ([("n01", "-5", "-1", "999", "100")], [Box(0.0, 0.0, 1.0, 1.0)]),  # clamped
        ([("n01", "1e308", "-1e308", "5", "5")], [Box(0.025, 0.0, 1.0, 0.05)]),
        ([("n01", "5", "5", "5", "9"), ("n01", "300", "5", "400", "9")], []),  # empty
        ([("n02", "0", "0", "10", "10"), ("Scottish_deerhound", "0", "0", "20", "20")], [Box(0.0, 0.0, 0.1, 0.2)]),
    ],
)
def test_boxes_are_fractions_of_this_class_or_of_an_unknown_one(tmp_path: Path, objects: Any, boxes: list[Box]) -> None:
    assert boxes_of(tmp_path, xml(*objects)) == boxes


def test_an_image_without_annotation_has_no_boxes(tmp_path: Path) -> None:
    assert read_boxes(bytes(tmp_path / "none.xml"), b"n01", CLASSES) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no element"),
        ("<annotation>", "damaged annotation"),
        ("<annotation/>", "no <size/width>"),
        (xml(size=("0", "10")), "size is 0 x 10"),
        (xml(("n01", "nan", "0", "1", "1")), "<xmin> is 'nan', which is not a finite number"),
        (xml(("n01", "0", "0", "inf", "1")), "<xmax> is 'inf'"),
        (xml().replace("</ann", "<object><name>n01</name><polygon><x1>1</x1></polygon></object></ann"), "but polygon"),
        (xml().replace("</ann", "<object><name>n01</name></object></ann"), "'n01' has no <bndbox>, but no other"),
        (xml(("n01", "x" * 10_000, "0", "1", "1")), "<xmin> is '" + "x" * 40 + "', which"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><annotation>&b;</annotation>', "EntitiesForbidden"),
        ("<a>" + " " * 2**22 + "</a>", "bytes of XML"),
    ],
)
def test_damaged_annotations_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        boxes_of(tmp_path, text)
    assert caught.value.path == str(tmp_path / "a.xml")


@pytest.mark.parametrize(
    ("annotation", "image"),
    [
        ("bounding_boxes/n01/n01_1.xml", "train/n01/n01_1.JPEG"),
        ("Annotations/train/n01/n01_1.xml", "train/n01/n01_1.JPEG"),
        ("annotations/n01/n01_1.xml", "n01/sub/n01_1.JPEG"),
        ("Annotations/train/n01_1.xml", "train/n01/n01_1.JPEG"),
    ],
)
def test_annotations_beside_the_images_are_found(tmp_path: Path, annotation: str, image: str) -> None:
    tree = listing(fill(tmp_path, annotation, image))
    assert tree.boxes["train"].locate(b"n01", tree.table.paths[0]) == bytes(tmp_path / annotation)


def test_annotations_are_found_in_the_layout_of_ilsvrc_and_where_the_user_says(tmp_path: Path) -> None:
    root, usual = tmp_path / "Data/CLS-LOC", "Annotations/CLS-LOC/train/n01/n01_1.xml"
    fill(tmp_path, "Data/CLS-LOC/train/n01/n01_1.JPEG", usual, "mine/n01/n01_1.xml")
    for tree, path in ((listing(root), usual), (listing(root, boxes=str(tmp_path / "mine")), "mine/n01/n01_1.xml")):
        assert tree.boxes["train"].locate(b"n01", b"train/n01/n01_1.JPEG") == bytes(tmp_path / path)
    check_refused(root, match="boxes", boxes=str(tmp_path / "nowhere"))
