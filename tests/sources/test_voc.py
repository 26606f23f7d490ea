"""Pascal VOC's folders as VOC, CVAT, Roboflow and LabelImg have them; boxes, names and masks are torchvision's."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from sources.layouts import cvat_voc, labelimg, roboflow_voc, voc
from sources.making import boxes_of, check_refused, fill, listing, others_than_of_shapes, split_sizes, write, xml
from stoker.errors import ConfigError
from stoker.sources import with_objects
from stoker.types import Box

if TYPE_CHECKING:
    from pathlib import Path


NAMES = ("sheep", "cat", "aeroplane")
SIDES = (60, 40)


def test_all_years_of_a_devkit_are_one_source(tmp_path: Path) -> None:
    root = voc(tmp_path)
    boxes = [Box(0.05, 0.1, 0.25, 0.5, 11), Box(0.1, 0.0, 1.0, 0.3, 0)]
    damaged = "damaged annotation: VOCdevkit/VOC2012/Annotations/3.xml: unclosed token: line 1, column 0"
    tree = listing(root)
    assert (len(tree.classes), tree.classes[0], tree.classes[11]) == (20, b"aeroplane", b"dog")
    assert boxes_of(tree) == {
        "train VOCdevkit/VOC2007/JPEGImages/1.jpg": boxes,
        "train VOCdevkit/VOC2012/JPEGImages/1.jpg": boxes,
        "train VOCdevkit/VOC2012/JPEGImages/2.jpg": boxes,
        "validation VOCdevkit/VOC2012/JPEGImages/3.jpg": damaged,
        "validation VOCdevkit/VOC2012/JPEGImages/9.jpg": None,
        "test VOCdevkit/VOC2007/JPEGImages/2.jpg": boxes,
    }
    assert tree.ignored == {"in no list of ImageSets": 3}
    assert boxes_of(listing(root / "VOCdevkit")).keys() == {name.replace("VOCdevkit/", "") for name in boxes_of(tree)}
    year = listing(root / "VOCdevkit/VOC2012")
    assert (len(year.table), year.classes) == (4, tree.classes)


def test_classes_are_those_of_the_label_map_of_cvat(tmp_path: Path) -> None:
    fill(cvat_voc(tmp_path), "ImageSets/Main/fox_default.txt")
    tree = listing(tmp_path)
    assert (tree.classes, others_than_of_shapes(tree)) == ((b"fox", b"dog"), [])
    other, frame = boxes_of(tree).values()
    assert frame == [Box(0.0, 0.0, 0.1025, 0.3, 1)]
    assert other == "damaged annotation: Annotations/a/2.xml: labelmap.txt has no class 'zebra'"
    (tmp_path / "labelmap.txt").write_text("dog:0,0,0::\ndog:1,1,1::\n")
    check_refused(tmp_path, match=r"labelmap.txt names a class twice")
    shutil.rmtree(tmp_path / "JPEGImages")
    check_refused(tmp_path, match=r"no images; export it with its images, or put them into .*/JPEGImages")


def test_images_beside_their_xml_as_roboflow_and_labelimg_write_them(tmp_path: Path) -> None:
    tree = listing(roboflow_voc(tmp_path / "a"))
    assert (tree.classes, list(tree.splits)) == ((b"head", b"helmet"), ["train", "validation"])
    assert others_than_of_shapes(tree) == []
    assert [tree.load(item, "train").boxes[0].label for item in tree.table.take(tree.splits["train"])] == [1, 0]
    tree = listing(labelimg(tmp_path / "b"))
    assert boxes_of(tree) == {"train images/1.jpg": [Box(0.005, 0.01, 0.5, 0.5, 0)], "train images/2.jpg": []}
    assert others_than_of_shapes(tree) == [
        "1 image without an annotation, and so without boxes",
        "1 annotation of images that are not there",
    ]
    flat = fill(tmp_path / "c", "1.jpg", "2.JPG", "classes.txt")
    write(flat, {"1.xml": xml(("cat", "1", "1", "100", "50"), ("cat", "7", "1", "7", "50"))})
    assert "1 box without area inside the image" in listing(flat).warnings
    assert boxes_of(listing(flat)) == {"train 1.jpg": [Box(0.005, 0.01, 0.5, 0.5, 0)], "train 2.JPG": []}


def test_xml_below_a_folder_of_any_name_is_read_or_told(tmp_path: Path) -> None:
    for name in ("pics", "raw"):
        write(fill(tmp_path / name, f"{name}/1.jpg"), {f"{name}/1.xml": xml(("cat", "1", "1", "100", "50"))})
    assert listing(tmp_path / "pics").classes == (b"cat",)
    (message,) = listing(tmp_path / "raw").warnings
    assert message.endswith(f"not read are the files beside them: 1.xml; Pascal VOC's are read with {tmp_path}/raw/raw")
    write(tmp_path, {"raw/raw/1.xml": xml(("", "1", "1", "100", "50"))})
    check_refused(tmp_path / "raw/raw", match=r"1\.xml: an object has no name; write its class into <name>")


@pytest.mark.parametrize(
    "paths",
    [
        ("cat/1.jpg", "cat/1.xml", "dog/2.jpg", "dog/2.xml"),
        ("train/cat/1.jpg", "train/cat/1.xml", "train/dog/2.jpg"),
        ("Annotations/1.xml", "cat/1.jpg", "dog/2.jpg"),
    ],
)
def test_xml_of_class_folders_leaves_them_class_folders(paths: tuple[str, ...], tmp_path: Path) -> None:
    fill(tmp_path, *paths)
    write(tmp_path, {path: xml(("cat", "1", "1", "100", "50")) for path in paths if path.endswith(".xml")})
    assert listing(tmp_path).classes == (b"cat", b"dog")


LISTS: list[tuple[dict[str, str], dict[str, int] | str]] = [
    ({"Main/trainval": "1\n2", "Main/test": "3"}, {"train": 2, "test": 1}),
    ({"Main/Train": "1", "Main/Validation": "2\n2", "Main/default": "3"}, {"train": 1, "validation": 1}),
    ({"Main/cat_train": "1 1", "Segmentation/train": "1\n2\n3"}, {"train": 3}),
    ({"train": "1\n2"}, {"train": 2}),
    ({"Main/train": "1.jpg\n2.jpg", "Main/val": "3.jpg"}, {"train": 2, "validation": 1}),
    ({"Main/cat_train": "1 1"}, "ImageSets has no list of a split, such as Main/train.txt"),
    ({"Main/train": "1\n../2"}, "Main/train.txt, line 2: '../2' is not the name of an image"),
]


@pytest.mark.parametrize(("lists", "expected"), LISTS)
def test_splits_are_lists_of_image_sets(lists: dict[str, str], expected: dict[str, int] | str, tmp_path: Path) -> None:
    fill(tmp_path, *(f"JPEGImages/{number}.jpg" for number in (1, 2, 3)), "Annotations/readme.txt")
    write(tmp_path / "ImageSets", {f"{name}.txt": lines for name, lines in lists.items()})
    if isinstance(expected, str):
        assert expected in check_refused(tmp_path)
        return
    tree = listing(tmp_path)
    assert split_sizes(tree) == expected
    assert not any("missing" in warning for warning in tree.listing_warnings)
    assert any("not used: default" in warning for warning in tree.warnings) == ("Main/default" in lists)


def test_names_have_braces_and_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    root = tmp_path / "a{0}\udcff"
    fill(root, "JPEGImages/1.jpg", "Annotations/readme.txt")
    write(root / "ImageSets", dict.fromkeys(("train.txt", "odd{x}\udcff.txt"), "1"))
    tree = listing(root)
    assert len(tree.splits["train"]) == 1
    assert f"lists of no split in {root}/ImageSets, not used: odd{{x}}\udcff" in tree.warnings


@pytest.fixture
def devkit(tmp_path: Path) -> Path:
    """Images with two objects each, masks of two of them with void pixels, as VOC has them."""
    root = tmp_path / "VOCdevkit/VOC2012"
    draws = np.random.default_rng(0)
    for folder in ("JPEGImages", "Annotations", "SegmentationClass"):
        (root / folder).mkdir(parents=True)
    for number in range(4):
        pixels = draws.integers(0, 255, (*SIDES[::-1], 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / f"JPEGImages/{number}.jpg")
        corners = [(draws.integers(1, 20, 2), draws.integers(21, 40, 2)) for _ in range(2)]
        objects = [(NAMES[(number + at) % 3], *map(str, (*low, *high))) for at, (low, high) in enumerate(corners)]
        text = xml(*objects, size=(str(SIDES[0]), str(SIDES[1])), filename=f"{number}.jpg")
        flags = f"<truncated>{number % 2}</truncated><difficult>{int(number > 2)}</difficult>"
        (root / f"Annotations/{number}.xml").write_text(text.replace("<bndbox>", f"{flags}<bndbox>"))
    for number in (1, 3):
        ids = draws.integers(0, 21, SIDES[::-1], dtype=np.uint8)
        ids[0] = 255
        mask = Image.fromarray(ids, "P")
        mask.putpalette(bytes(range(256)) * 3)
        mask.save(root / f"SegmentationClass/{number}.png")
    lists = {"Main/train": "0\n1\n2\n", "Main/val": "3\n", "Segmentation/train": "1\n", "Segmentation/val": "3\n"}
    write(root / "ImageSets", {f"{name}.txt": lines for name, lines in lists.items()})
    return tmp_path


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.usefixtures("torchvision")
def test_boxes_names_and_masks_are_those_of_torchvision(devkit: Path) -> None:
    from torchvision.datasets import VOCDetection, VOCSegmentation  # noqa: PLC0415 - slow to import

    for split, image_set in (("train", "train"), ("validation", "val")):
        opened = stoker.open(devkit, split)
        detection = VOCDetection(str(devkit), image_set=image_set)
        assert len(opened) == len(detection) > 0
        for sample, (_, target) in zip(opened, detection, strict=True):
            objects = target["annotation"]["object"]
            assert [opened.classes[box.label].name for box in sample.boxes] == [each["name"] for each in objects]
            corners = [[float(each["bndbox"][side]) for side in ("xmin", "ymin", "xmax", "ymax")] for each in objects]
            read = [(box.xmin, box.ymin, box.xmax, box.ymax) for box in sample.boxes]
            np.testing.assert_allclose(np.array(read) * (*SIDES, *SIDES), corners, rtol=1e-6)
            for flag in ("difficult", "truncated"):
                assert sample.fields[flag].tolist() == [int(each[flag]) for each in objects]
        opened = stoker.open(devkit, split, masks=True)
        segmentation = VOCSegmentation(str(devkit), image_set=image_set)
        assert len(opened) == len(segmentation) == 1
        assert (opened[0].fields["mask"] == np.asarray(segmentation[0][1])).all()


def test_masks_are_read_where_they_are_asked_for_or_there_are_no_boxes(devkit: Path) -> None:
    root = devkit / "VOCdevkit/VOC2012"
    message = f"{root}/SegmentationClass is not used: masks=True reads the masks of ImageSets/Segmentation"
    assert listing(root).warnings == (message,)
    (root / "Annotations").rename(devkit / "moved")
    tree = listing(root)
    assert (split_sizes(tree), [*tree.fields]) == (
        {"train": 1, "validation": 1},
        ["mask"],
    )
    stoker.build(root, devkit / "out", progress=False)
    with Image.open(root / "SegmentationClass/1.png") as mask:
        assert (stoker.open(devkit / "out", "train")[0].fields["mask"] == np.asarray(mask)).all()
    (root / "SegmentationClass").rename(devkit / "masks")
    with pytest.raises(ConfigError, match=r"has no SegmentationClass, which masks=True needs; omit it"):
        listing(root, masks=True)


def test_objects_have_the_classes_of_their_boxes(devkit: Path) -> None:
    objects = with_objects(listing(devkit))
    labels = [objects.load(item, "train").label for item in objects.table.take(objects.splits["train"])]
    assert labels == [16, 7, 7, 0, 0, 16]
