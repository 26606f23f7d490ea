"""Texts beside images, as data sets and tools have them: read as torchvision has them, or refused with a hint."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from sources.layouts import darknet
from sources.making import fill, listing, refused, split_sizes, write_lines
from stoker.errors import SourceError
from stoker.sources.tables import table_rows
from stoker.storage import location

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.sources import Source

NAMES = [f"{number:06d}.jpg" for number in range(1, 13)]


def labels(tree: Source, split: str = "train") -> dict[str, int]:
    """The label of each image by its name, without its folder."""
    items = (tree.table[row] for row in tree.rows_as_listed(split))
    return {item.path.decode().rpartition("/")[2]: item.label for item in items}


ATTRIBUTES = ("5_o_Clock_Shadow", "Male", "Smiling")


@pytest.fixture
def celeba(tmp_path: Path) -> Path:
    root = tmp_path / "celeba"
    fill(root / "img_align_celeba", *NAMES)
    marks = np.random.default_rng(0).choice([-1, 1], (len(NAMES), len(ATTRIBUTES)))
    rows = [f"{name} {' '.join(f'{mark:2d}' for mark in row)}" for name, row in zip(NAMES, marks, strict=True)]
    write_lines(root / "list_attr_celeba.txt", [str(len(NAMES)), " ".join(ATTRIBUTES) + " ", *rows])
    write_lines(root / "identity_CelebA.txt", [f"{name} {2880 + at % 5}" for at, name in enumerate(NAMES)])
    write_lines(root / "list_eval_partition.txt", [f"{name} {at // 8}" for at, name in enumerate(NAMES)])
    boxes = [f"{name}    95  71 226  313" for name in NAMES]
    write_lines(root / "list_bbox_celeba.txt", [str(len(NAMES)), "image_id x_1 y_1 width height", *boxes])
    points = "lefteye_x lefteye_y righteye_x righteye_y"
    write_lines(
        root / "list_landmarks_align_celeba.txt", [str(len(NAMES)), points, *(f"{name} 1 2 3 4" for name in NAMES)]
    )
    return root


@pytest.mark.usefixtures("torchvision")
def test_celeba_is_refused_and_its_texts_read_as_torchvision_does(
    celeba: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision.datasets import CelebA  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    message = refused(celeba)
    assert f"several texts in {celeba} name the images (identity_CelebA.txt, list_attr_celeba.txt, " in message
    assert f"give the one that has the classes, such as {celeba}/identity_CelebA.txt, or a pattern" in message
    monkeypatch.setattr(CelebA, "_check_integrity", lambda _: True)
    for text, target in (("identity_CelebA", "identity"), ("list_attr_celeba", "attr")):
        known = CelebA(str(celeba.parent), "all", target)
        tree = listing(celeba / f"{text}.txt")
        rows = [(tree.table[row], tree.load(tree.table[row], "train").fields) for row in tree.rows_as_listed("train")]
        assert [item.path.decode() for item, _ in rows] == [f"img_align_celeba/{name}" for name in known.filename]
        if target == "identity":
            assert [item.label for item, _ in rows] == known.identity[:, 0].tolist()
        else:
            assert tree.fields == {"labels": stoker.fields.Labels(list(ATTRIBUTES))}
            marked = [
                [name in fields["labels"] or at in fields["labels"] for at, name in enumerate(ATTRIBUTES)]
                for _, fields in rows
            ]
            assert marked == known.attr.bool().tolist()


VARIANTS = ("707-320", "Cessna 172", "737-200", "A300B4")


@pytest.mark.usefixtures("torchvision")
def test_each_text_of_fgvc_aircraft_is_what_torchvision_reads(tmp_path: Path) -> None:
    from torchvision.datasets import FGVCAircraft  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    root = tmp_path / "fgvc-aircraft-2013b/data"
    ids = [f"{1025794 + 37 * at}" for at in range(24)]
    fill(root / "images", *(f"{name}.jpg" for name in ids))
    for level, names in (("variant", VARIANTS), ("manufacturer", ("Boeing", "Cessna", "Boeing", "Airbus Industrie"))):
        for at, split in enumerate(("train", "val", "test")):
            lines = [f"{name} {names[number % 4]}" for number, name in enumerate(ids) if number % 3 == at]
            write_lines(root / f"images_{level}_{split}.txt", lines)
        write_lines(root / ("variants.txt" if level == "variant" else "manufacturers.txt"), sorted({*names}))
    write_lines(root / "images_box.txt", [f"{name} 3 144 998 431" for name in ids])
    assert f"such as {root}/images_manufacturer_train.txt" in refused(root)
    for level in ("variant", "manufacturer"):
        for split in ("train", "val", "test"):
            known = FGVCAircraft(str(tmp_path), split, level)
            tree = listing(root / f"images_{level}_{split}.txt")
            assert [name.decode() for name in tree.classes] == known.classes
            names = [path.rpartition("/")[2] for path in map(str, known._image_files)]
            own = {"val": "validation"}.get(split, split)
            assert labels(tree, own) == dict(zip(names, known._labels, strict=True))
    for path in [*root.glob("images_manufacturer_*"), root / "images_box.txt"]:
        path.unlink()
    tree = listing(root)  # the splits of one level
    assert split_sizes(tree) == {"train": 8, "validation": 8, "test": 8}


@pytest.mark.usefixtures("torchvision")
def test_classes_in_folders_beside_texts_are_those_of_torchvision(tmp_path: Path) -> None:
    from torchvision.datasets import DTD, Food101  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    food, dtd = tmp_path / "food-101", tmp_path / "dtd/dtd"
    for root in (food, dtd):
        stems = [f"{name}/{name}_{number}" for name in ("apple_pie", "banded", "braided") for number in range(4)]
        fill(root / "images", *(f"{stem}.jpg" for stem in stems))
    by_class = {name: [stem for stem in stems if stem.startswith(name)] for name in ("apple_pie", "banded", "braided")}
    write_lines(food / "meta/train.json", [json.dumps(by_class)])
    write_lines(food / "meta/train.txt", stems)
    write_lines(dtd / "imdb/imdb.mat", ["MATLAB"])
    write_lines(dtd / "labels/train1.txt", [f"{stem}.jpg" for stem in stems])
    write_lines(dtd / "labels/labels_joint_anno.txt", [f"{stem}.jpg {stem.partition('/')[0]} " for stem in stems])
    for root, known in ((food, Food101(str(tmp_path), "train")), (dtd, DTD(str(tmp_path), "train"))):
        assert f"which may be the data set; give {root}/images; if its folders" in refused(root)
        tree = listing(root / "images")
        assert [name.decode() for name in tree.classes] == known.classes
        assert labels(tree) == dict(zip((path.name for path in known._image_files), known._labels, strict=True))


@pytest.mark.usefixtures("torchvision")
def test_pets_are_what_torchvision_reads_counted_from_1(tmp_path: Path) -> None:
    from torchvision.datasets import OxfordIIITPet  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    root = tmp_path / "oxford-iiit-pet"
    pets = [f"{name}_{number}" for name in ("Abyssinian", "american_bulldog") for number in range(1, 5)]
    fill(root / "images", *(f"{name}.jpg" for name in pets))
    fill(root / "annotations/trimaps", *(f"{name}.png" for name in pets))
    write_lines(
        root / "annotations/trainval.txt", [f"{name} {1 + at // 4} {2 - at // 4} 1" for at, name in enumerate(pets)]
    )
    known = OxfordIIITPet(str(tmp_path), "trainval")
    text = root / "annotations/trainval.txt"
    assert "give the folder of its images with --image-root" in refused(text)
    tree = listing(text, image_root=str(root / "images"), label_column="column_2")
    expected = {path.name: label + 1 for path, label in zip(known._images, known._labels, strict=True)}
    assert labels(tree) == expected


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("form", ["csv", "bars", "token"])
@pytest.mark.usefixtures("torchvision")
def test_captions_are_those_that_torchvision_reads(form: str, tmp_path: Path) -> None:
    from torchvision.datasets import Flickr30k  # noqa: PLC0415 - beside PyTorch, once the fixture lets it

    photos = tmp_path / "flickr/Images"
    fill(photos, "1000092795.jpg", "10002456.jpg")
    captions = {
        name: [f"A dog , {number} .", "Two dogs .", f"{number} dogs in {name}"]
        for number, name in enumerate(("1000092795.jpg", "10002456.jpg"))
    }
    token = [f"{name}#{at}\t{text}" for name, texts in captions.items() for at, text in enumerate(texts)]
    write_lines(tmp_path / "results.token", token)
    known = Flickr30k(str(photos), str(tmp_path / "results.token"))
    several = [(name, at, text) for name, texts in captions.items() for at, text in enumerate(texts)]
    several.insert(1, several.pop(-1))  # no order is asked for
    if form == "csv":
        write_lines(
            tmp_path / "flickr/captions.txt", ["image,caption", *(f'{name},"{text}"' for name, _, text in several)]
        )
    elif form == "bars":
        lines = [f"{name}| {at}|  {text}" for name, at, text in several]
        write_lines(tmp_path / "flickr/results.csv", ["image_name| comment_number| comment", *lines])
    else:
        write_lines(tmp_path / "flickr/Flickr8k.token.txt", [f"{name}#{at}\t{text}" for name, at, text in several])
    opened = stoker.open(tmp_path / "flickr", "train")
    assert len(opened) == len(known) == 2
    assert opened.classes == ()
    stored_fields = {sample.source.rpartition("/")[2]: sample.fields for sample in opened}
    for name, texts in known.annotations.items():
        assert sorted(stored_fields[name]["captions"]) == sorted(map(str.strip, texts))
        assert stored_fields[name]["caption"] == stored_fields[name]["captions"][0]


@pytest.mark.parametrize(
    ("lines", "rows"),
    [
        (["1.jpg cat", "2.jpg dog"], [["1.jpg", "cat"], ["2.jpg", "dog"]]),
        (["1.jpg  big cat ", "", "2.jpg dog"], [["1.jpg", "big cat"], ["2.jpg", "dog"]]),
        (["# of ours", "#", "1 5 7", "2\t6 8"], [["1", "5", "7"], ["2", "6", "8"]]),
        (["2", "male old ", "1.jpg -1  1", "2.jpg  1 -1"], [["1.jpg", "-1", "1"], ["2.jpg", "1", "-1"]]),
        (["image_id label", "1 big cat", "2 dog"], [["1", "big cat"], ["2", "dog"]]),
        (["1.jpg\tbig cat", "2.jpg\tdog"], [["1.jpg", "big cat"], ["2.jpg", "dog"]]),
        (["image,caption", '1.jpg,"a, b"'], [["1.jpg", "a, b"]]),
        (["1.jpg#0\ta b", "2.jpg#1\tc"], [["1.jpg", "a b"], ["2.jpg", "c"]]),
        (["a.jpg", "b c.jpg"], [["a.jpg"], ["b c.jpg"]]),
        (["1.jpg"], [["1.jpg"]]),
        (["5"], [["5"]]),
        (["", " "], []),
        ([], []),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_rows_of_a_text(lines: list[str], rows: list[list[str]], encoding: str, tmp_path: Path) -> None:
    """Each line is a row, unless it is blank, a comment or a header."""
    path = tmp_path / "t.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding=encoding)
    read = list(table_rows(location(path)))
    assert [list(row.values()) for _, row in read] == rows
    if rows and rows[-1][-1] != "c":
        assert [number for number, _ in read] == [at for at, line in enumerate(lines, 1) if line][-len(rows) :]


def test_a_line_with_other_columns_is_refused_and_not_lost(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.txt", ["1.jpg 5 6", *("2.jpg 5 6" for _ in range(9000)), "3.jpg 5"])
    with pytest.raises(SourceError, match=f"line 9002 of {path}: it has 2 cells, but there are 3 columns"):
        list(table_rows(location(path)))
    with pytest.raises(SourceError, match="it names the column 'male' twice"):
        list(table_rows(location(write_lines(path, ["1", "male male", "1.jpg 1 1"]))))


def test_a_csv_without_a_header_loses_no_row(tmp_path: Path) -> None:
    fill(tmp_path / "photos", *NAMES)
    write_lines(tmp_path / "labels.csv", [f"{name},{'cat' if at % 2 else 'dog'}" for at, name in enumerate(NAMES)])
    assert labels(listing(tmp_path)) == {name: 1 - at % 2 for at, name in enumerate(NAMES)}


def test_lists_of_splits_beside_images(tmp_path: Path) -> None:
    fill(tmp_path / "images", *NAMES)
    for split, part in (("train", NAMES[:8]), ("val", NAMES[8:])):
        write_lines(tmp_path / f"{split}.txt", [f"images/{name} {int(name[:-4]) % 2}" for name in part])
    tree = listing(tmp_path)
    assert {split: labels(tree, split) for split in tree.splits} == {
        "train": {name: int(name[:-4]) % 2 for name in NAMES[:8]},
        "validation": {name: int(name[:-4]) % 2 for name in NAMES[8:]},
    }


@pytest.mark.parametrize("folder", ["", "photographs"])
def test_a_text_that_names_images_is_not_passed_over(folder: str, tmp_path: Path) -> None:
    fill(tmp_path / folder, *NAMES)
    write_lines(tmp_path / "notes.txt", [f"no {at}: [{name}] shows a cat" for at, name in enumerate(NAMES)])
    assert f"{tmp_path}/notes.txt names the images, and is no table that can be read; write" in refused(tmp_path)
    write_lines(tmp_path / "notes.txt", ["Photographs of cats", "by Ann"])
    assert len(listing(tmp_path).table) == len(NAMES)


def test_files_beside_a_single_class_that_says_nothing_are_named(tmp_path: Path) -> None:
    fill(tmp_path / "jpg", *NAMES)
    write_lines(tmp_path / "imagelabels.mat", ["MATLAB"])
    advice = f"give {tmp_path / 'jpg'}; not read are the files beside them: imagelabels.mat; write boxes as COCO"
    assert advice in listing(tmp_path).warnings[-1]


def boxes_of(root: Path) -> dict[str, list[tuple[str, float]]]:
    """The class and the left side of each box of each image."""
    tree = listing(root)
    read = {}
    for split in tree.splits:
        for row in tree.rows_as_listed(split):
            item = tree.load(tree.table[row], split)
            read[tree.table[row].path.decode().rpartition("/")[2]] = [
                (tree.classes[box.label].decode(), round(box.xmin, 3)) for box in item.boxes
            ]
    return read


@pytest.mark.parametrize(
    ("folder", "texts", "names"),
    [
        ("", "", "classes.txt"),
        ("images/", "images/", "images/classes.txt"),
        ("images/", "images/", "classes.txt"),
        ("photos/", "photos/", "classes.txt"),
        ("images/", "labels/", "labels/classes.txt"),
        ("images/", "labels/", "classes.txt"),
        ("train/", "train/", "train/_darknet.labels"),
        ("obj_train_data/", "obj_train_data/", "obj.names"),
    ],
)
def test_yolo_beside_images_as_tools_write_it(folder: str, texts: str, names: str, tmp_path: Path) -> None:
    fill(tmp_path, *(f"{folder}{number}.jpg" for number in (1, 2, 3)))
    write_lines(tmp_path / f"{texts}1.txt", ["1 0.5 0.5 0.25 0.5"])
    write_lines(tmp_path / f"{texts}2.txt", ["0 0.5 0.5 0.5 0.5", "1 0.25 0.5 0.25 0.5"])
    write_lines(tmp_path / names, ["cat", "dog"])
    expected = {"1.jpg": [("dog", 0.375)], "2.jpg": [("cat", 0.25), ("dog", 0.125)], "3.jpg": []}
    assert boxes_of(tmp_path) == expected
    tree = listing(tmp_path)
    saved = tree.boxes["train"].from_json(json.loads(json.dumps(tree.boxes["train"].to_json())), tree.table, 2)
    assert saved == tree.boxes["train"]


@pytest.mark.parametrize("source", ["", "data", "data/obj.data"])
def test_darknet_reads_its_own_paths(source: str, tmp_path: Path) -> None:
    darknet(tmp_path)
    (tmp_path / "data/test.txt").write_text("data/obj/3.jpg\n")
    assert boxes_of(tmp_path / source) == {"1.jpg": [], "2.jpg": [("dog", 0.375)], "3.jpg": []}
    assert split_sizes(listing(tmp_path / source)) == {"train": 2, "validation": 1}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("classes = 3", "nc is 3, but names has 2 classes"),
        ("classes = " + "9" * 5000, "nc is 999999999, but names has 2 classes"),
        ("names = data/none.names", "names is 'data/none.names', and there is no such file beside it"),
        ("names = ../\0", "and there is no such file beside it"),
        ("train = ../../train.txt", "is no folder in"),
    ],
)
def test_what_darknet_cannot_mean_is_refused(line: str, problem: str, tmp_path: Path) -> None:
    darknet(tmp_path)
    with (tmp_path / "data/obj.data").open("a") as file:
        file.write(line + "\n")
    assert problem in refused(tmp_path / "data")


def test_texts_of_boxes_without_names_are_told(tmp_path: Path) -> None:
    fill(tmp_path, "1.jpg", "2.jpg")
    write_lines(tmp_path / "1.txt", ["0 0.5 0.5 0.25 0.5"])
    assert f"name the classes in {tmp_path}/classes.txt, one a line" in listing(tmp_path).warnings[-1]
    write_lines(tmp_path / "classes.txt", ["cat"])
    assert listing(tmp_path).boxes


@pytest.mark.parametrize("text", ["a photo of a cat", "1 cat", ""])
def test_other_texts_beside_images_are_no_boxes(text: str, tmp_path: Path) -> None:
    fill(tmp_path, "1.jpg", "2.jpg")
    for name in ("1.txt", "2.txt"):
        write_lines(tmp_path / name, [text])
    write_lines(tmp_path / "classes.txt", ["cat"])
    assert not listing(tmp_path).boxes
