"""Folders that look like class folders and are none are refused, with lines that work as they are typed."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from sources.layouts import LAYOUTS as SOURCES
from sources.layouts import WARNINGS
from sources.making import fill, listing, refused, write, write_lines
from stoker.errors import LabelWarning, SourceError
from storage.store_folders import copy, store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

NAMES = ("cat", "dog")


def image(path: Path, mode: str = "RGB") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(len(str(path))).integers(0, 255, (20, 24, 3), dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)


def images(root: Path, *patterns: str, mode: str = "RGB") -> None:
    """Six images for each pattern, with a number in it."""
    for pattern in patterns:
        for number in range(6):
            image(root / pattern.format(number), mode)


def table(path: Path, header: str, row: str) -> Path:
    """A table of six rows, each with the number of an image and the name of a class in it."""
    return write_lines(path, [header, *(row.format(number, NAMES[number % 2]) for number in range(6))])


def planned(cli: Cli, *typed: object) -> dict[str, int]:
    """The classes that ``stoker plan`` counts."""
    cli("plan", *typed, "--json")
    return {known["name"]: known["items"] for known in cli.json["classes"]}


def type_line(message: str, number: int, cwd: Path) -> str:
    """Type one of the lines that a message says, and return what it says to give then."""
    typed, _, given = message.split("type: ")[1:][number].partition("; and give ")
    assert subprocess.run(typed, shell=True, check=True, cwd=cwd, capture_output=True).stderr == b""
    return re.split("; if its folders| \\(for stoker", given)[0]


TABLES = {
    "beside images": ("images/{}.jpg", "labels.csv", "file,label", "{}.jpg,{}"),
    "without extension": ("it's images/im{}.jpg", "labels.csv", "id;breed", "im{};{}"),
    "of Kaggle": ("train/{}.jpg", "train.csv", '"id","breed"', '"{}","{}"'),
    "one deeper": (
        "data/train_images/{}.png",
        "data/train.csv",
        "image,width,breed,stars",
        "train_images/{0}.png,24,{1},{0}",
    ),
    "images deeper": ("train/train/{}.jpg", "train.tsv", "number\timage_id\tclass", "{0}0\t{0}.jpg\t{1}"),
    "in no folder": ("{}.jpg", "labels.csv", "\ufeffid,breed", "{},{}"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_names_the_images_is_not_passed_over(name: str, tmp_path: Path, cli: Cli) -> None:
    root, (pattern, path, header, row) = tmp_path / "some photos", TABLES[name]
    images(root, pattern)
    named = table(root / path, header, row)
    if name == "of Kaggle":
        images(root, "test/{}.jpg")
        table(root / "sample_submission.csv", "id,breed", "{},cat")
    more = ("--label-column", "breed") if name == "one deeper" else ()
    if more:
        assert "give --image-column image --label-column breed, or --label-column none" in refused(root)
    for source in (root, named):
        assert planned(cli, named if more else source, *more) == {"cat": 3, "dog": 3}


def test_images_of_a_table_in_several_folders(tmp_path: Path) -> None:
    images(tmp_path, "HAM10000_images_part_1/{}.jpg", "HAM10000_images_part_2/1{}.jpg")
    (tmp_path / "HAM10000_metadata.csv").write_text("image_id,dx\n0,bkl\n10,nv\n1,nv\n11,mel\n")
    tree = listing(tmp_path)
    assert {item.path.decode(): item.label for item in tree.table} == {
        "HAM10000_images_part_1/0.jpg": 0,
        "HAM10000_images_part_1/1.jpg": 2,
        "HAM10000_images_part_2/10.jpg": 2,
        "HAM10000_images_part_2/11.jpg": 1,
    }


def test_a_table_of_other_classes_than_the_folders_is_refused(tmp_path: Path, cli: Cli) -> None:
    """Of folders of patients, beside and in which no image is called after its class."""
    images(tmp_path, *(f"train/{name}/{{}}.jpg" for name in ("ann", "ben", "cy")))
    rows = [f"train/{name}/{number}.jpg,{NAMES[number % 2]}\n" for name in ("ann", "ben", "cy") for number in range(6)]
    (tmp_path / "train.csv").write_text("path,label\n" + "".join(rows))
    message = refused(tmp_path)
    assert "the classes may be its 'label', or the folders, such as that of train/ann/0.jpg; give" in message
    given = message.partition("; give ")[2].partition(";")[0].split(" with ")
    assert planned(cli, given[0], *given[1].split()) == {"cat": 9, "dog": 9}
    type_line(message, 0, tmp_path)
    assert planned(cli, tmp_path, "--labels", tmp_path / "folders.txt") == {"ann": 6, "ben": 6, "cy": 6}


def test_a_folder_of_tables_is_no_class(tmp_path: Path, cli: Cli) -> None:
    """As of ISIC 2018."""
    images(tmp_path, "Lesion_Input/ISIC_{}.jpg")
    rows = [f"ISIC_{number},{number % 2}.0,{1 - number % 2}.0\n" for number in range(6)]
    write(tmp_path, {"Lesion_GroundTruth/truth.csv": "image,MEL,NV\n" + "".join(rows)})
    table, given = refused(tmp_path).partition("; give ")[2].partition(";")[0].split(" with ")
    assert planned(cli, table, *given.split()) == {"MEL": 3, "NV": 3}


def test_a_table_that_says_the_folders_and_more_is_named(tmp_path: Path) -> None:
    """As of Imagenette, whose other columns have wrong labels on purpose."""
    images(tmp_path, "train/cat/{}.jpg", "train/dog/1{}.jpg")
    paths = [*(f"train/cat/{number}.jpg" for number in range(6)), *(f"train/dog/1{number}.jpg" for number in range(6))]
    rows = [f"{path},{path.split('/')[1]},{NAMES[at % 2]}\n" for at, path in enumerate(paths)]
    table = tmp_path / "noisy.csv"
    table.write_text("path,noisy_labels_0,noisy_labels_50\n" + "".join(rows))
    source = listing(tmp_path)
    assert source.classes == (b"cat", b"dog")
    assert source.warnings == (f"not read: {table}, which names the images; the classes are their folders",)


@pytest.mark.parametrize(
    ("folders", "name", "rows"),
    [
        (("cat", "dog"), "train.csv", "id,breed\n0,cat\n1,dog\n"),
        (("cat_images", "dog_images"), "labels.csv", "id,breed\n0.jpg,cat\n1.jpg,dog\n"),
        (("train/cat", "train/dog"), "train.csv", "id,breed\n0,cat\n1,dog\n"),
        (("n01440764",), "imagenet_2012_bounding_boxes.csv", "0.jpg,0.1,0.2,0.3,0.4\n1.jpg,0.1,0.2,0.3,0.4\n"),
    ],
)
def test_other_tables_change_nothing(folders: tuple[str, ...], name: str, rows: str, tmp_path: Path) -> None:
    """Folders give the classes, or the rows name no images, or the table is one of ImageNet's."""
    fill(tmp_path, *(f"{folder}/{number}.jpg" for folder in folders for number in range(6)))
    before = listing(tmp_path)
    (tmp_path / name).write_text(rows)
    after = listing(tmp_path)
    assert (after.classes, after.warnings) == (before.classes, before.warnings)
    assert name == "imagenet_2012_bounding_boxes.csv" or after.fingerprint() == before.fingerprint()


SINGLE_CLASS_TABLES = {
    ("results.csv", "epoch,loss\n100,0.5\n200,0.4\n"): "the first row of {} names no image there: its 'epoch' is '100'",
    ("notes.csv", "0.jpg\n1.jpg\n"): "not read are the files beside them: notes.csv",
    ("empty.csv", ""): "{} has no rows",
    ("damaged.csv", '"a\x00b,c\n'): "{} is not read: line 1 of {}: unexpected end of data",
    (
        "labels.csv",
        "file,label\n 0.jpg,a\n 1.jpg,b\n",
    ): "its 'file' is ' 0.jpg', and the first file is 0.jpg; write",
    ("bär.csv", "file,label\nü.jpg,b\n".encode("latin-1")): "{} is not read: line 2 of {}: it is not UTF-8 at byte 0",
    ("labels.xlsx", "PK"): "{} is not read; save it as CSV in UTF-8",
    ("train.csv.zip", "PK"): "{} is not read; unpack it",
}


@pytest.mark.parametrize(("table", "problem"), SINGLE_CLASS_TABLES.items(), ids=lambda each: str(each)[:20])
def test_a_table_beside_a_single_class_is_told(table: tuple[str, str | bytes], problem: str, tmp_path: Path) -> None:
    fill(tmp_path, *(f"flowers/{number}.jpg" for number in range(6)))
    before = listing(tmp_path)
    after = listing(write(tmp_path, dict([table])))
    assert (before.warnings, after.classes, after.fingerprint()) == ((), before.classes, before.fingerprint())
    (warning,) = after.label_warnings
    assert warning.startswith(f"all images of {tmp_path} are of one class, 'flowers', the name of their folder; ")
    assert problem.replace("{}", str(tmp_path / table[0])) in warning
    (tmp_path / "classes.txt").write_text("flowers")
    assert listing(tmp_path, labels=str(tmp_path / "classes.txt")).label_warnings == ()


def test_numbers_of_names_without_their_zeros_are_asked_about(tmp_path: Path) -> None:
    fill(tmp_path, *(f"scans/{number:05d}.jpg" for number in range(12)))
    table = tmp_path / "train.csv"
    table.write_text("id,label,note\n" + "".join(f"{number},{'ab'[number % 2]},x\n" for number in range(12)))
    (warning,) = listing(tmp_path).warnings
    assert f"the first row of {table} names no image there: its 'id' is '0', and the first file is 00000.jpg" in warning
    subprocess.run(["sh", "-c", warning.partition("type: ")[2]], check=True)
    source = listing(tmp_path)
    assert (source.classes, source.table.labels.tolist()) == ((b"a", b"b"), [0] * 6 + [1] * 6)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_table_of_utf_16_needs_no_byte_order_mark(encoding: str, tmp_path: Path) -> None:
    fill(tmp_path, *(f"bilder/ü{number}.jpg" for number in range(4)))
    text = "file,label\n" + "".join(f"ü{number}.jpg,{'ab'[number % 2]}\n" for number in range(4))
    (tmp_path / "labels.csv").write_bytes(text.encode(encoding))
    assert listing(tmp_path).classes == (b"a", b"b")


def test_lists_for_training_beside_images_are_read_as_lists(tmp_path: Path) -> None:
    """As of Caffe: paths with labels."""
    fill(tmp_path, *(f"train/{number}.jpg" for number in range(6)))
    (tmp_path / "train.txt").write_text("".join(f"train/{number}.jpg {number % 2}\n" for number in range(6)))
    assert listing(tmp_path / "train.txt").classes == (b"0", b"1")


LAYOUTS = {
    "ADE20K": (("images/ADE/train/a/{}.jpg", "images/ADE/train/a/{}_seg.png"), "0_seg.png beside 0.jpg"),
    "COCO-Stuff": (("images/train2017/{}.jpg", "stuffthingmaps/train2017/{}.png"), "images/ beside stuffthingmaps/"),
    "DOTA": (("train/images/{}.png", "train/labelTxt/{}.txt"), "images/ beside labelTxt/"),
    "Supervisely": (
        ("ds0/img/{}.jpg", "ds0/ann/{}.jpg.json", "ds1/img/{}.jpg", "ds1/ann/{}.jpg.json"),
        "img/ beside ann/",
    ),
    "KITTI": (
        ("image_2/{}.png", "semantic/{}.png", "semantic_rgb/{}.png", "instance/{}.png"),
        "image_2/ beside instance/",
    ),
    "YOLO": (("images/train/{}.jpg", "labels/train/{}.txt"), "images/ beside labels/"),
    "YOLO in splits": (
        ("train/images/{}.jpg", "train/labels/{}.txt", "valid/images/{}.jpg", "valid/labels/{}.txt"),
        "images/ beside labels/",
    ),
    "Cityscapes": (
        ("leftImg8bit/train/ulm/{}_leftImg8bit.png", "gtFine/train/ulm/{}_gtFine_color.png"),
        "leftImg8bit/ beside gtFine/",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_known_layouts_are_refused_unless_a_label_map_insists(name: str, tmp_path: Path, cli: Cli) -> None:
    patterns, seen = LAYOUTS[name]
    root = tmp_path / "photos"
    fill(root, *(pattern.format(number) for pattern in patterns for number in range(6)))
    message = refused(root)
    assert f"holds {seen}" in message
    option, file = type_line(message, -1, tmp_path).split()
    classes = (tmp_path / file).read_text().split()
    assert list(planned(cli, root, option, tmp_path / file)) == classes


@pytest.mark.parametrize(
    ("patterns", "seen"),
    [
        (("Image_{}L.jpg", "Image_{}L_1stHO.png", "Image_{}L_2ndHO.png"), "Image_0L_1stHO.png beside Image_0L.jpg"),
        (("train/{}_sat.jpg", "train/{}_mask.png"), "0_mask.png beside 0_sat.jpg"),
    ],
)
def test_images_among_their_masks_are_refused(patterns: tuple[str, ...], seen: str, tmp_path: Path) -> None:
    """CHASE and DeepGlobe."""
    fill(tmp_path, *(pattern.format(number) for pattern in patterns for number in range(6)))
    assert f"holds {seen}" in refused(tmp_path)


def test_equal_names_count_where_one_folder_alone_has_images_of_one_channel(tmp_path: Path) -> None:
    images(tmp_path, "photo/{}.jpg")
    images(tmp_path, "outline/{}.png", mode="P")
    assert "files in outline/ with the names of those in photo/" in refused(tmp_path)
    image(tmp_path / "photo/3.jpg", "L")
    assert listing(tmp_path).classes == (b"outline", b"photo")


@pytest.mark.parametrize(
    "patterns",
    [
        ("Cat/{}.jpg", "Dog/{}.jpg"),
        ("mask/{}.jpg", "no_mask/{}.jpg"),
        ("with_mask/{}.jpg", "without_mask/{}.jpg"),
        ("mask/a{}.jpg", "hat/b{}.jpg"),
        ("label_0/{}.jpg", "label_1/{}.jpg"),
        ("2025/{}.jpg", "2026/{}.jpg"),
        ("1/{}.jpg", "2/{}.jpg", "10/{}.jpg"),
        ("2011/01/{}.jpg", "cat/{}.jpg"),
        ("camera/{}.jpg", "100/{}.jpg"),
        ("valid/{}.jpg", "invalid/{}.jpg"),
        ("valid/a/{}.jpg", "invalid/b/{}.jpg"),
    ],
    ids=str,
)
def test_class_folders_are_read_without_a_word(patterns: tuple[str, ...], tmp_path: Path) -> None:
    images(tmp_path, *patterns)
    tree = listing(tmp_path)
    assert tree.classes == tuple(sorted(pattern.partition("/")[0].encode() for pattern in patterns))
    assert (list(tree.splits), tree.warnings) == (["train"], ())


@pytest.mark.parametrize("name", ["images", "train_images", "2026", "JPEGImages", "data"])
def test_a_single_class_with_a_name_that_says_nothing_is_told(name: str, tmp_path: Path) -> None:
    images(tmp_path, f"{name}/{{}}.jpg")
    warning = f"all images of {tmp_path} are of one class, '{name}', the name of their folder"
    warning += f"; to read them without classes give {tmp_path / name}"
    assert listing(tmp_path).warnings == (warning,)
    with pytest.warns(LabelWarning, match="are of one class"):
        assert len(stoker.open(tmp_path)) == 6
    (tmp_path / "classes.txt").write_text(name)
    assert listing(tmp_path, labels=str(tmp_path / "classes.txt")).warnings == ()


@pytest.mark.parametrize("name", SOURCES)
def test_sources_that_are_read_rightly_are_not_refused(name: str, tmp_path: Path) -> None:
    assert len(listing(SOURCES[name](tmp_path)).warnings) == WARNINGS[name]


@pytest.mark.servers
def test_layouts_in_a_store(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    images(tmp_path / "table", "images/{}.jpg")
    table(tmp_path / "table/labels.csv", "file,label", "{}.jpg,{}")
    images(tmp_path, "masks/photo/{}.jpg", "classes/cat/{}.jpg", "classes/dog/{}.jpg")
    images(tmp_path, "masks/outline/{}.png", mode="L")
    remote = copy(tmp_path, store_folder("s3", request, monkeypatch))
    here, there = (listing(root / "table") for root in (tmp_path, remote))
    assert (there.classes, there.fingerprint()) == ((b"cat", b"dog"), here.fingerprint())
    with pytest.raises(SourceError, match="files in outline/ with the names of those in photo/"):
        listing(remote / "masks")
    assert listing(remote / "classes").classes == (b"cat", b"dog")


@pytest.mark.parametrize(
    ("files", "named", "beside", "give"),
    [
        (("images/train/{}.jpg", "labels/train/{}.txt", "data.yaml"), "images", "labels/ beside images/", ""),
        (("images/train/{}.jpg", "labels/train/{}.txt"), "images/train", "labels/ beside images/", ""),
        (
            ("train2017/{}.jpg", "annotations/instances_train2017.json"),
            "train2017",
            "annotations/ beside train2017/",
            "",
        ),
        (("JPEGImages/{}.jpg", "Annotations/{}.xml"), "JPEGImages", "Annotations/ beside JPEGImages/", ""),
        (("images/{}.jpg", "result.json", "a.json"), "images", "result.json beside images/", ""),
        (("images/{}.jpg", "masks/{}.png"), "images", "masks/ beside images/", ""),
        (("train/images/{}.jpg", "train/labels/{}.txt"), "train/images", "labels/ beside images/", "/train"),
    ],
)
def test_what_may_belong_to_images_that_are_named_alone_is_told(
    files: tuple[str, ...], named: str, beside: str, give: str, tmp_path: Path
) -> None:
    root = tmp_path / "photos"
    fill(root, *(pattern.format(number) for pattern in files for number in range(3)))
    if (root / "result.json").exists():
        (root / "result.json").write_text('{"images": []}')
    tree = listing(root / named)
    told = f"not read: {beside}, which may belong to its images: give {root}{give} to read them"
    assert (tree.warnings, tree.classes) == ((told,), ())


@pytest.mark.parametrize("named", ["photos", "images/cats", "data/cats/1"])
def test_folders_beside_others_are_read_without_a_word(named: str, tmp_path: Path) -> None:
    fill(tmp_path, f"{named}/1.jpg", "data/2.txt", "images/dogs/2.jpg", "cats/3.jpg")
    assert listing(tmp_path / named).warnings == ()


@pytest.mark.parametrize("named", ["cityscapes", "cityscapes/leftImg8bit", "cityscapes/leftImg8bit/train"])
@pytest.mark.parametrize("has_masks", [True, False])
def test_images_of_cityscapes_alone_are_refused(named: str, has_masks: bool, tmp_path: Path) -> None:
    root = tmp_path / "cityscapes"
    names = [f"train/{city}/{city}_{number:06d}_000019" for city in ("ulm", "jena") for number in range(3)]
    fill(root, *(f"leftImg8bit/{name}_leftImg8bit.png" for name in names))
    if has_masks and named != "cityscapes":
        fill(root, *(f"gtFine/{name}_gtFine_labelIds.png" for name in names))
    message = refused(tmp_path / named)
    assert "holds images of Cityscapes in folders of cities, such as " in message
    assert (f"give {root} to read them" in message) is (has_masks and named != "cityscapes")
    assert message.endswith("type: printf '%s\\n' jena ulm > folders.txt; and give --labels folders.txt")
    (tmp_path / "folders.txt").write_text("jena\nulm\n")
    assert listing(tmp_path / named, labels=str(tmp_path / "folders.txt")).classes == (b"jena", b"ulm")


@pytest.mark.parametrize(
    ("files", "given"),
    [
        (("batch_1/1.jpg", "batch_2/1.jpg", "annotations.json"), "annotations.json"),  # TACO
        (("train/patch0/1.jpg", "train/patch1/1.jpg", "annotations/o_train.json"), "annotations/o_train.json"),
    ],
)
def test_a_coco_file_beside_other_folders_is_named(files: tuple[str, ...], given: str, tmp_path: Path) -> None:
    fill(tmp_path, *files, "other.json")
    (tmp_path / given).write_text('{"images": [], "annotations": []}')
    assert f"splits are called train, validation, test; for boxes give a COCO file: {given}; " in refused(tmp_path)
