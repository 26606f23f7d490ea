"""Folders that look like a kind which they are not: each is read as people mean it, or refused."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

import stoker
from reference import pictures
from sources.layouts import BOXES, Drawn
from sources.making import check_refused, listing, split_sizes, tar_bytes, write, write_table
from stoker.cli.main import main
from stoker.errors import SourceError, SourceWarning

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from commands import Cli


@functools.cache
def picture(seed: int, mode: str = "RGB", orientation: int = 1) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (24, 32, 3) if mode == "RGB" else (24, 32), np.uint8)
    if mode == "mask":
        pixels = (pixels > 127) * np.uint8(255)
    how = {"exif": pictures.exif(orientation)} if orientation > 1 else {}
    return pictures.encode(Image.fromarray(pixels), format="JPEG" if mode == "RGB" else "PNG", **how)


def images(pattern: str, count: int) -> dict[str, bytes | str]:
    """So many images, each with its number in its path."""
    return {pattern.format(number): picture(number) for number in range(count)}


def images_of(names: Iterable[str]) -> dict[str, bytes | str]:
    """An image at each of these paths."""
    return {name: picture(number) for number, name in enumerate(names)}


def in_folders(names: Iterable[str], count: int) -> dict[str, bytes | str]:
    """So many images in each of these folders."""
    return {f"{name}/{i}.jpg": picture(i) for name in names for i in range(count)}


def coco_of(names: list[str]) -> str:
    images = [{"id": at, "file_name": name, "width": 32, "height": 24} for at, name in enumerate(names)]
    return json.dumps({"images": images, "annotations": [], "categories": [{"id": 1, "name": "cat"}]})


def read_by_name(path: Path, **options: str) -> dict[str, bytes]:
    source = listing(path, **options)
    return {item.key: source.load(item, "train").data for item in source.table}


def type_in(message: str, until: str = "\n") -> str:
    """Do what a message says to type, and give what it says after that."""
    typed, _, rest = message.partition("type: ")[2].partition(until)
    subprocess.run(["sh", "-c", typed], check=True)
    return rest


@pytest.mark.parametrize("names", [("Mask", "No mask"), ("target", "clutter"), ("face", "mask")])
def test_two_classes_of_grey_images_are_no_images_and_masks(tmp_path: Path, names: tuple[str, str]) -> None:
    files = {f"{name}/{i}.png": picture(10 * at + i, "L") for at, name in enumerate(names) for i in range(4)}
    try:
        source = listing(write(tmp_path, files))
    except SourceError as error:
        assert "folders.txt" in str(error)  # noqa: PT017 - either is right
    else:
        assert sorted(source.classes) == sorted(name.encode() for name in names)
        assert len(source.table) == 8


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize(
    ("header", "rows"),
    [
        (",id,label", [f"{i},{7 - i},{'cat' if i % 3 else 'dog'}" for i in range(8)]),
        ("label,img", [f"{i % 2},{i}" for i in range(8)]),
        ("score,img", [f"{7 - i},{i}" for i in range(8)]),
    ],
)
def test_an_index_or_a_class_is_no_name_of_an_image(tmp_path: Path, header: str, rows: list[str]) -> None:
    files = images("images/{}.jpg", 8)
    root = write(tmp_path, {"train.csv": "\n".join([header, *rows]) + "\n", **files})
    label = "score" if "score" in header else "label"
    train = stoker.open(root, label_column=label)
    cells = [dict(zip(header.split(","), row.split(","), strict=True)) for row in rows]
    for number, row in enumerate(cells):
        assert train[number].encoded == files[f"images/{row.get('id') or row['img']}.jpg"]
        assert train.classes[train[number].label].name == row[label]


def test_rows_of_boxes_are_not_rows_of_images(tmp_path: Path) -> None:
    rows = "".join(f"{i // 2}.jpg,32,24,cat,1,1,9,9\n" for i in range(8))
    files = images("images/{}.jpg", 4)
    root = write(tmp_path, {"labels.csv": "filename,width,height,class,xmin,ymin,xmax,ymax\n" + rows, **files})
    assert "are boxes" in check_refused(root)


def test_flags_are_no_classes(tmp_path: Path) -> None:
    rows = "".join(f"{i}.jpg,{i % 2},{1 - i % 2},{i}.5\n" for i in range(8))
    files = images("images/{}.jpg", 8)
    root = write(tmp_path, {"labels.csv": "name,is_train,is_test,score\n" + rows, **files})
    assert "several columns may have the classes" in check_refused(root)


def test_keypoints_are_no_polygons(tmp_path: Path) -> None:
    root = write(tmp_path, {"data.yaml": "names: [a]\nkpt_shape: [2, 3]\ntrain: images\n", "images/0.jpg": picture(0)})
    assert "keypoints" in check_refused(root)


def test_yolo_may_say_valid(tmp_path: Path) -> None:
    text = "names: [a]\ntrain: train/images\nvalid: valid/images\n"
    files = {f"{split}/images/0.jpg": picture(0) for split in ("train", "valid")}
    assert set(listing(write(tmp_path, {"data.yaml": text, **files})).splits) == {"train", "validation"}


@pytest.mark.parametrize(
    "names",
    [
        ("COVID/images", "COVID/masks", "Normal/images", "Normal/masks"),
        ("train_set/cat", "train_set/dog", "test_set/cat", "test_set/dog"),
        ("seg_train/seg_train/sea", "seg_test/seg_test/sea", "seg_pred/seg_pred"),
        ("signs_train/a", "signs_train/b", "signs_test"),
    ],
)
def test_folders_whose_names_say_nothing_of_classes_are_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert "folders.txt" in check_refused(write(tmp_path, in_folders(names, 3)))


def test_masks_beside_their_images_are_no_images_of_the_class(tmp_path: Path) -> None:
    names = [
        f"{name}/{name} ({i}){end}.png" for name in ("benign", "normal") for i in range(3) for end in ("", "_mask")
    ]
    assert "an image and its mask" in check_refused(write(tmp_path, {name: picture(0, "L") for name in names}))


def test_annotations_beside_flat_images_are_not_passed_over_in_silence(tmp_path: Path) -> None:
    files = {
        f"{i}{end}": picture(i) if end == ".jpg" else "0 .5 .5 .1 .1" for i in range(4) for end in (".jpg", ".txt")
    }
    assert any("not read: 4 files beside the images" in text for text in listing(write(tmp_path, files)).warnings)


@pytest.mark.parametrize("name", ["_annotations.createml.json", "via_region_data.json"])
@pytest.mark.parametrize("folders", [("",), ("train/", "valid/")])
def test_annotations_of_other_tools_are_told_once(name: str, folders: tuple[str, ...], tmp_path: Path) -> None:
    files = {f"{folder}{i}.jpg": picture(i) for folder in folders for i in range(3)}
    source = listing(write(tmp_path, files | {folder + name: "[]" for folder in folders}))
    count = "1 file" if len(folders) == 1 else "2 files"
    message = f"not read: {count} beside the images (.json), such as {name}; write boxes as COCO, YOLO or Pascal VOC"
    assert source.warnings == (f"{message}, and labels or captions into metadata.csv, beside file_name",)


@pytest.mark.parametrize("folder", ["", "data/", "train/"])
@pytest.mark.parametrize("ending", ["mask", "trimap"])
def test_masks_beside_images_are_told_with_a_line_that_parts_them(tmp_path: Path, ending: str, folder: str) -> None:
    ends = {".jpg": "RGB", f"_{ending}.png": "L"}
    root = tmp_path / "a b"
    write(root, {f"{folder}{i}{end}": picture(i, mode) for i in range(3) for end, mode in ends.items()})
    message = check_refused(root)
    assert f"0_{ending}.png beside 0.jpg in {(root / folder)}, an image and its mask; to read both, " in message
    if folder == "train/":
        assert "move the masks to a folder masks/ beside images/" in message
        return
    given = type_in(message, "; and give ")
    source = listing(root / folder)
    assert given.startswith(str(root / folder))
    assert ([*source.fields], len(source.table)) == (["mask"], 3)


def test_pairs_of_folders_of_other_names_are_told_with_a_line_that_names_them(tmp_path: Path) -> None:
    folders = {"x": "RGB", "y": "L"}
    write(tmp_path, {f"{name}/{i}.png": picture(i, mode) for name, mode in folders.items() for i in range(3)})
    type_in(check_refused(tmp_path).partition("if these are masks, ")[2], "; if its folders")
    source = listing(tmp_path)
    assert ([*source.fields], len(source.table)) == (["mask"], 3)


def test_a_folder_called_after_masks_at_its_end_has_masks(tmp_path: Path) -> None:
    folders = {"Training_Data/{}.jpg": "RGB", "Training_GroundTruth/{}_segmentation.png": "mask"}
    files = {name.format(i): picture(i, mode) for name, mode in folders.items() for i in range(3)}
    source = listing(write(tmp_path, files))
    assert (source.classes, len(source.table)) == ((), 3)


@pytest.mark.parametrize("splits", [("train", "val", "test"), ("Train", "Val", "Test"), ("training", "dev", "testing")])
def test_splits_in_a_folder_alone_in_another_are_splits(tmp_path: Path, splits: tuple[str, ...]) -> None:
    names = [f"x/{split}/{name}/{split}.jpg" for split in splits for name in ("normal", "ill")]
    root = write(tmp_path, {name: picture(0) for name in names})
    source = listing(root)
    assert (sorted(source.splits), len(source.classes)) == (["test", "train", "validation"], 2)
    assert source.fingerprint() == listing(root / "x").fingerprint()


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("splits", [("train", "valid"), ("train",)])
def test_tables_in_folders_of_splits_say_the_classes(tmp_path: Path, splits: tuple[str, ...]) -> None:
    files = in_folders(("train", "valid"), 4)
    rows = ["filename, cat, dog", *(f"{i}.jpg, {i % 2}, {1 - i % 2}" for i in range(4))]
    tables = {f"{split}/_classes.csv": "\n".join(rows) for split in splits}
    root = write(tmp_path, {**files, **tables})
    data = stoker.open(root, "train")
    assert [data.classes[data[i].label].name for i in range(4)] == ["dog", "cat", "dog", "cat"]
    rows = [f"{i}.jpg,32,24,a,1,1,9,9" for i in range(4)]
    boxes = "\n".join(["filename,width,height,class,xmin,ymin,xmax,ymax", *rows])
    write(root, dict.fromkeys(tables, boxes))
    assert "are boxes" in check_refused(root)


@pytest.mark.parametrize("name", ["images/0.jpg", "0.jpg"])
def test_a_coco_file_beside_its_images_is_read(tmp_path: Path, name: str) -> None:
    text = f'{{"images": [{{"id": 0, "file_name": "{name}", "width": 32, "height": 24}}], "annotations": []}}'
    root = write(tmp_path, {"result.json": text, "images/0.jpg": picture(0)})
    assert [*listing(root).table] == [*listing(root / "result.json").table]
    assert len(listing(root).table) == 1


ANNOTATION = """<annotation><size><width>32</width><height>24</height></size><object><name>cat</name><bndbox>
<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>"""


def test_a_split_without_annotations_takes_no_boxes_from_the_others(tmp_path: Path) -> None:
    root = write(tmp_path, {**in_folders(("train", "test"), 2), **{f"train/{i}.xml": ANNOTATION for i in range(2)}})
    with pytest.warns(stoker.errors.SourceWarning, match="2 images without an annotation"):
        train = stoker.open(root, "train")
    assert [len(train[number].boxes) for number in range(2)] == [1, 1]


@pytest.mark.parametrize(
    ("lists", "train", "validation"),
    [
        ({"trainval": "012", "val": "2"}, 2, 1),
        ({"train": "01", "trainval": "012"}, 2, 0),
        ({"train": "01", "val": "2", "trainval": "012"}, 2, 1),
    ],
)
def test_splits_of_voc_share_no_image(tmp_path: Path, lists: dict[str, str], train: int, validation: int) -> None:
    files: dict[str, bytes | str] = images("JPEGImages/{}.jpg", 3)
    files |= {f"Annotations/{i}.xml": ANNOTATION for i in range(3)}
    files |= {f"ImageSets/Main/{name}.txt": "\n".join(text) + "\n" for name, text in lists.items()}
    splits = listing(write(tmp_path, files)).splits
    assert [len(splits.get(name, ())) for name in ("train", "validation")] == [train, validation]


@pytest.mark.parametrize("kind", ["result.json", "labels.csv", "metadata.csv"])
@pytest.mark.parametrize(
    "names", [r"photos\{}.jpg", "/data/photos/{}.jpg", r"C:\u\photos\{}.jpg", "../x/photos/{}.jpg"]
)
def test_paths_of_another_computer_name_the_files_here(kind: str, names: str, tmp_path: Path) -> None:
    files = images("photos/{}.jpg", 6)
    paths = [names.format(i) for i in range(6)]
    column = "file_name" if kind == "metadata.csv" else "path"
    rows = [f"{column},label", *(f"{path},{'ab'[i % 2]}" for i, path in enumerate(paths))]
    root = write(tmp_path, {kind: coco_of(paths) if kind == "result.json" else "\n".join(rows) + "\n", **files})
    assert read_by_name(root / kind if kind == "result.json" else root) == files


def test_paths_of_another_computer_name_no_file_that_is_not_certain(tmp_path: Path) -> None:
    paths = ["/u/train/0.jpg", "/u/train/1.jpg", "/u/val/2.jpg", "/v/a/3.jpg", "/v/b/3.jpg"]
    files = {"train/0.jpg": picture(0), "2.jpg": picture(2), "3.jpg": picture(3), "other/0.jpg": picture(4)}
    root = write(tmp_path, {"result.json": coco_of(paths), **files})
    source = listing(root / "result.json")
    assert {item.key for item in source.table if item.size_bytes} == {"train/0.jpg"}
    paths = [r"x\0.jpg", r"x\1.jpg"]
    root = write(tmp_path / "b", {"result.json": coco_of(paths), "a/0.jpg": picture(0), "b/0.jpg": picture(0)})
    with pytest.raises(SourceError, match="give the folder in which they lie as image_root"):
        read_by_name(root / "result.json")
    with pytest.raises(SourceError, match=r"may be a/0\.jpg or b/0\.jpg; give the folder of the images as image_root"):
        read_by_name(root / "result.json", image_root=str(root))
    write(tmp_path, {"c/9.jpg": picture(0)})
    with pytest.raises(SourceError, match=r"no image that .* names, such as x\\0.jpg, is in .*/c, which has 9.jpg"):
        read_by_name(root / "result.json", image_root=str(tmp_path / "c"))


SIDEWAYS = {
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""What makes the stored image of one that is seen upright, by orientation."""


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_a_few_photos_annotated_upright_among_many_are_turned_back(tmp_path: Path) -> None:
    images = {}
    for number in range(300):
        exif = Image.Exif()
        exif[0x112] = 6 if number in (17, 100, 203) else 1
        size = (12, 16) if exif[0x112] == 6 else (16, 12)
        images[f"{number:03}"] = Drawn(pictures.encode(Image.new("RGB", (16, 12)), exif=exif), size, (1, 2, 7, 9))
    BOXES["boxes_of_coco"].write(tmp_path, {"train": images})
    opened = stoker.open(tmp_path, exif="keep")
    with pytest.warns(SourceWarning, match="as their EXIF orientation shows them.*: 3, such as"):
        opened.load_boxes()
    with stoker.Loader(opened, 300, transform=stoker.Resize((12, 16)), boxes=stoker.BoxOutput()) as loader:
        corners = next(iter(loader)).boxes.corners
    boxes = [box.corners for sample in opened for box in sample.boxes]
    np.testing.assert_allclose(corners, np.array(boxes) * [16, 12, 16, 12], atol=1e-4)


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize(
    ("kind", "sees_upright"),
    [(name, seen) for name, boxes in BOXES.items() for seen in (False, True)[: 1 + boxes.states_sizes]],
)
def test_boxes_of_photos_annotated_upright_lie_in_the_image(tmp_path: Path, kind: str, *, sees_upright: bool) -> None:
    source, images = tmp_path / "photos", {}
    for orientation, back in SIDEWAYS.items():
        upright = Image.new("RGB", (48, 64))
        upright.paste((255, 255, 255), (8, 16, 24, 56))
        stored, exif = upright.transpose(back), Image.Exif()
        exif[0x112] = orientation
        seen = upright if sees_upright else stored
        data = pictures.encode(stored, quality=95, exif=exif)
        images[str(orientation)] = Drawn(data, seen.size, seen.convert("L").getbbox())
    BOXES[kind].write(source, {"train": images})
    assert not BOXES[kind].states_sizes or "state no size" not in str(listing(source).warnings)
    for exif in ("keep", "apply"):
        stoker.build(source, tmp_path / exif, exif=exif)
        opened = [stoker.open(source, exif=exif), stoker.open(tmp_path / exif)]
        for sample in (sample for dataset in opened for sample in dataset):
            pixels = sample.decode()
            height, width, _ = pixels.shape
            (box,) = sample.boxes
            area = np.zeros((height, width), bool)
            area[
                round(box.ymin * height) : round(box.ymax * height), round(box.xmin * width) : round(box.xmax * width)
            ] = True
            assert np.array_equal(area, pixels[..., 0] > 127)
        for dataset in opened:
            whole = stoker.Resize(96)
            with stoker.Loader(dataset, 4, transform=whole, boxes=stoker.BoxOutput(pad_to=1)) as loader:
                batch = next(iter(loader))
            for pixels, ((left, top, right, bottom),) in zip(
                batch.images, batch.boxes.corners.round().astype(int), strict=True
            ):
                assert pixels[top + 2 : bottom - 2, left + 2 : right - 2].min() > 127
                assert int((pixels[..., 0] > 127).sum()) <= (right - left + 4) * (bottom - top + 4)


@pytest.mark.parametrize(
    ("stated", "is_told"), [((48, 80), True), ((80, 80), True), ((40, 24), False), ((160, 95), False)]
)
@pytest.mark.parametrize("kind", ["boxes_of_coco", "boxes_of_voc"])
def test_annotations_of_images_of_another_shape_are_told(
    tmp_path: Path, cli: Cli, kind: str, stated: tuple[int, int], *, is_told: bool
) -> None:
    image = pictures.encode(Image.new("RGB", (80, 48)))
    names = [f"{number:02}" for number in range(40)]
    write_boxes = BOXES[kind].write
    write_boxes(tmp_path / "all", {"train": {name: Drawn(image, stated, (1, 1, 9, 9)) for name in names}})
    (message,) = [text for text in listing(tmp_path / "all").warnings if "of other shapes" in text] or [""]
    assert (re.search(rf"00.* is 80x48, not {stated[0]}x{stated[1]}", message) is not None) is is_told
    sizes = {name: stated if name == "01" else (80, 48) for name in names}  # of which opening sees every other
    write_boxes(tmp_path / "few", {"train": {name: Drawn(image, size, (1, 1, 9, 9)) for name, size in sizes.items()}})
    assert ("merely stretched: 1, such as" in cli("build", tmp_path / "few", tmp_path / "out")) is is_told


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize(
    ("labels", "classes", "warning"),
    [
        (["007", "07", "7", "1"], {"7": 3, "1": 1}, "labels that are the same number are one class: 007, 07, 7"),
        (
            ["-1", "1", "1", "-1"],
            {"-1": 2, "1": 2},
            "the labels are -1 and 1, so these are the names of the classes 0 and 1",
        ),
        (["-1", "0", "1", "1"], {None: 1, "0": 1, "1": 2}, "1 row without a label"),
    ],
)
def test_numbers_are_classes(tmp_path: Path, labels: list[str], classes: dict[str | None, int], warning: str) -> None:
    rows = [{"image": f"{i}.jpg", "label": label} for i, label in enumerate(labels)]
    files = images("{}.jpg", 4)
    text = "image,label\n" + "".join(f"{row['image']},{row['label']}\n" for row in rows)
    source = listing(write(tmp_path, {"train.csv": text, **files}))
    assert Counter(source.classes[item.label].decode() if item.label >= 0 else None for item in source.table) == classes
    assert any(warning in text for text in source.warnings)


@pytest.mark.parametrize("name", ["data.csv", "data.tsv", "data.jsonl"])
def test_a_table_of_any_kind_beside_flat_images_says_their_classes(tmp_path: Path, name: str) -> None:
    rows = [{"image": f"{i}.jpg", "label": "ab"[i % 2]} for i in range(4)]
    between = "\t" if name.endswith("tsv") else ","
    lines = [between.join(row.values()) for row in (dict.fromkeys(rows[0], ""), *rows)]
    lines[0] = between.join(rows[0])
    lines = list(map(json.dumps, rows)) if name.endswith("jsonl") else lines
    files = images("{}.jpg", 4)
    assert listing(write(tmp_path, {name: "\n".join(lines) + "\n", **files})).classes == (b"a", b"b")


@pytest.mark.parametrize(
    ("pattern", "count", "classes"),
    [
        ("*/*.{jpg,png}", 4, (b"cat", b"dog")),
        ("{cat,cow}/*.jpg", 1, (b"cat",)),
        ("{cat,dog}/{0,1}.png", 2, (b"cat", b"dog")),
        ("cat/0.{jpg,png}", 2, ()),
    ],
)
def test_braces_stand_for_names_of_images(tmp_path: Path, pattern: str, count: int, classes: tuple[bytes, ...]) -> None:
    files = {f"{name}/0.{end}": picture(0) for name in ("cat", "dog") for end in ("jpg", "png")}
    source = listing(write(tmp_path, {**files, "cat/0.txt": "no image"}) / pattern)
    assert (len(source.table), source.classes) == (count, classes)


@pytest.mark.parametrize(
    ("names", "inner"),
    [
        (("a/b/cat", "a/b/dog"), "a/b"),
        (("cats/train/tabby", "cats/val/tabby", "dogs/train/pug", "dogs/val/pug"), "cats"),
    ],
)
def test_a_folder_around_a_data_set_is_no_class(tmp_path: Path, names: tuple[str, ...], inner: str) -> None:
    check_refused(write(tmp_path, in_folders(names, 2)), match=rf"give {tmp_path}/{inner}; .*folders\.txt")
    assert len(listing(tmp_path / inner).table) > 1


def test_data_sets_of_yolo_side_by_side_are_not_joined(tmp_path: Path) -> None:
    files = {f"v{i}/train/images/{i}.jpg": picture(i) for i in (1, 2)}
    files |= {f"v{i}/data.yaml": "names: [a]\ntrain: train/images\n" for i in (1, 2)}
    check_refused(write(tmp_path, files), match=r"v1/data\.yaml and .*/v2/data\.yaml; give the folder of one")


@pytest.mark.parametrize(
    ("text", "is_reported"), [('{"0": "a", "1": "b", "2": "c"}', True), ('{"0": "a"}', False), ("[1]", False)]
)
def test_names_of_class_ids_beside_a_table_are_reported(tmp_path: Path, text: str, *, is_reported: bool) -> None:
    table = "image,label\n" + "".join(f"{i}.jpg,{i % 2}\n" for i in range(4))
    root = write(tmp_path, {"train.csv": table, "names.json": text, **images("{}.jpg", 4)})
    hints = [text for text in listing(root).warnings if "names the class ids" in text]
    assert len(hints) == is_reported
    if hints:
        assert hints[0].endswith(f"labels={str(root / 'names.json')!r}")
        assert listing(root, labels=str(root / "names.json")).classes == (b"a", b"b", b"c")


def test_a_list_that_an_option_names_is_no_table_of_the_images(tmp_path: Path) -> None:
    table = "image,label,x\n" + "".join(f"im/{i}.jpg,{i % 2},a\n" for i in range(4))
    files = {"train.csv": table, "names.csv": "id,name\n0,a\n1,b\n2,c\n", **images("im/{}.jpg", 4)}
    source = listing(write(tmp_path, files), labels=str(tmp_path / "names.csv"))
    assert source.classes == (b"a", b"b", b"c")
    assert not [text for text in source.warnings if "not read" in text]


def test_boxes_of_yolo_are_counted_by_class(tmp_path: Path) -> None:
    files = {"data.yaml": "names: [a, b, c]\ntrain: images\n", "labels/0.txt": "0 .5 .5 .2 .2\n2 .5 .5 .1 .1\n"}
    files |= {"labels/1.txt": "damaged", "labels/2.txt": "2 .5 .5 .2 .2\n"}
    root = write(tmp_path, {**files, **images("images/{}.jpg", 4)})
    assert listing(root).box_counts() == {"train": [1, 0, 2]}


def test_folders_of_patients_are_no_classes(tmp_path: Path) -> None:
    names = [f"CheXpert/{'train' if i < 6 else 'valid'}/patient{i:05d}/study1/view1.jpg" for i in range(8)]
    rows = [[f"{name},{i % 2}" for i, name in enumerate(names)][part] for part in (slice(6), slice(6, 8))]
    tables = dict(zip(("train.csv", "valid.csv"), ("\n".join(["Path,Edema", *own]) for own in rows), strict=True))
    inner = {f"CheXpert/{name}": text for name, text in tables.items()}
    root = write(tmp_path, {**inner, **images_of(names)})
    for source in (root, root / "CheXpert", root / "CheXpert" / "train.csv"):
        tree = listing(source)
        assert tree.classes == (b"0", b"1")
        items = {item.path.decode(): item.label for item in tree.table}
        wanted = {name.removeprefix("CheXpert/"): i % 2 for i, name in enumerate(names)}
        assert items == (wanted if source.suffix == "" else {k: v for k, v in wanted.items() if k.startswith("train")})
    for table in inner:
        (root / table).unlink()
    assert "folders whose names are no classes (patient00000, patient00001" in check_refused(root)


def test_numbers_before_names_are_no_classes(tmp_path: Path) -> None:
    names = [f"{'ab'[i % 2]}/{i}.jpg" for i in range(8)]
    write(tmp_path, {f"images/{name}": picture(at) for at, name in enumerate(names)})
    write(tmp_path, {"images.txt": "".join(f"{at + 1} {name}\n" for at, name in enumerate(names))})  # as CUB-200 has it
    assert f"give {tmp_path}/images; if its folders are classes" in check_refused(tmp_path)
    assert listing(tmp_path / "images").classes == (b"a", b"b")


def test_columns_of_zeros_and_ones_that_may_say_splits_are_named(tmp_path: Path) -> None:
    rows = [f"{i}.jpg,{'ab'[i % 2]},{i // 6},{i % 3}" for i in range(8)]
    write(tmp_path, images("images/{}.jpg", 8))
    for name, is_named in (("is_test", True), ("in_train", True), ("partition", True), ("is_male", False)):
        write(tmp_path, {"data.csv": "\n".join([f"image,label,{name},fold", *rows])})
        message = f"{tmp_path}/data.csv: {name!r} may say the splits, and is a field; to have these, "
        message += f"give split_column={name!r}" if name == "is_test" else "write train, val or"
        assert any(text.startswith(message) for text in listing(tmp_path).warnings) is is_named


@pytest.mark.parametrize("name", ["labels.csv", "metadata.csv"])
@pytest.mark.parametrize("column", ["fold", "Usage", "data_split", "train_test", "group", "mode", "type"])
def test_a_column_of_words_of_splits_is_told_whatever_it_is_called(column: str, name: str, tmp_path: Path) -> None:
    words = ("train", " Valid", "test")
    rows = "".join(f"{i}.jpg,{'ab'[i % 2]},{words[i % 3]},{words[0]}\n" for i in range(12))
    write(tmp_path, {name: f"file_name,label,{column},other\n{rows}", **images("{}.jpg", 12)})
    message = f"{tmp_path / name}: {column!r} may say the splits, and is a field; to have these, give"
    assert [each for each in listing(tmp_path).warnings if "may say" in each] == [f"{message} split_column={column!r}"]
    source = listing(tmp_path, split_column=column)
    assert split_sizes(source) == dict.fromkeys(source.splits, 4)
    assert len(source.splits) == 3
    assert not [each for each in source.warnings if "may say" in each]


@pytest.mark.parametrize(
    ("column", "words", "others"),
    [
        ("split", ("train", "", "val", "train"), "''"),
        ("split", ("train", "unlabeled", "train", "train"), "'unlabeled'"),
        ("part", ("train", "nan", "val", "test"), "'nan'"),
        ("Usage", ("Training", "PublicTest", "Training", "PrivateTest"), "'PrivateTest', 'PublicTest'"),
    ],
)
def test_rows_without_a_split_are_told(column: str, words: tuple[str, ...], others: str, tmp_path: Path) -> None:
    rows = "".join(f"{i}.jpg,{'ab'[i % 2]},{word}\n" for i, word in enumerate(words))
    write(tmp_path, {"labels.csv": f"id,label,{column}\n{rows}", **images("{}.jpg", 4)})
    message = f"{tmp_path}/labels.csv: {column!r} may say the splits, and is a field; to have these, write train, val"
    message += f" or test into a column, in place of {others}, and give split_column='COLUMN'"
    assert message in listing(tmp_path).warnings


@pytest.mark.parametrize("name", ["t.csv", "metadata.csv"])
@pytest.mark.parametrize(
    ("late", "message", "settings"),
    [
        (
            "a|b",
            "1,000 rows, 'label' has 'a|b', which may be several classes; give label_separator='|', or label_sep",
            "|",
        ),
        ("a b", "'a b', which may be several classes; give label_separator=' '", " "),
        ("0.5", "'0.5' is no class id, and all are numbers; give label_column='none' to have them as a field", None),
    ],
)
def test_unlike_late_rows_are_told(late: str, message: str, settings: str | None, name: str, tmp_path: Path) -> None:
    files = [f"{i}.jpg" for i in range(4)]
    early = "01" if settings is None else "ab"
    rows = [f"{files[i % 4]},{early[i % 2]}" for i in range(1200)] + [f"0.jpg,{late}"]
    write(tmp_path, {name: "\n".join(["file_name,label", *rows]), **images_of(files)})
    assert message in check_refused(tmp_path)
    if settings is None:
        source = listing(tmp_path, label_column=())
        assert source.fields["label"] == stoker.fields.Float()
        return
    source = listing(tmp_path, label_separator=settings)
    assert isinstance(source.fields["label"], stoker.fields.Labels)
    assert late.encode() in listing(tmp_path, label_separator="none").classes


@pytest.mark.parametrize("column", ["split", "caption"])
def test_columns_of_a_table_that_agrees_with_folders_are_told(column: str, tmp_path: Path) -> None:
    names = [f"{name}/{i}.jpg" for name in ("cat", "dog") for i in range(4)]
    rows = [f"{name},{name[:3]},{('train', 'test')[at % 2]}" for at, name in enumerate(names)]
    write(tmp_path, {"t.csv": "\n".join([f"file,label,{column}", *rows]), **dict.fromkeys(names, picture(0))})
    unread = f"not read: {tmp_path}/t.csv, which names the images; the classes are their folders"
    message = f"{unread}; to have {column!r}, too, give {tmp_path} with label_column='label'"
    assert message in listing(tmp_path).warnings
    source = listing(tmp_path, label_column=("label",))
    expected = ({"train", "test"}, set()) if column == "split" else ({"train"}, {"caption"})
    assert (set(source.splits), set(source.fields)) == expected
    rows = [row.replace(",cat,", ",").replace(",dog,", ",") for row in rows]
    write(tmp_path, {"t.csv": "\n".join(["file,split", *rows])})
    assert f"{unread}; to have the splits of 'split', write train.txt, val.txt" in "".join(listing(tmp_path).warnings)
    write(tmp_path, {"t.csv": "\n".join(["file,label", *(f"{name},{name[:3]}" for name in names)])})
    assert not listing(tmp_path).warnings


def test_numbers_to_predict_that_are_followed_by_texts_are_refused(tmp_path: Path) -> None:
    rows = "".join(f"{i % 4}.jpg,{0.5 if i < 1100 else 'cat'}\n" for i in range(1101))
    write(tmp_path, {"t.csv": f"id,label\n{rows}", **images("{}.jpg", 4)})
    told = "after the first 1,000 rows, 'label' has other values than numbers; mend them, or give"
    assert told in check_refused(tmp_path)
    assert listing(tmp_path, label_column=()).fields["label"] == stoker.fields.Text()


@pytest.mark.parametrize(
    ("between", "labels", "is_told"),
    [
        (" ", "haze primary;clear primary;clear water primary;haze water primary;clear water;clear", True),
        (",", "cat,dog;dog;cat;dog,bird,cat", True),
        ("/", "cat/dog;dog;cat;cat/bird", True),
        (" ", "golden retriever;labrador retriever;pug;german shepherd", False),
        (" ", "pug ;pug;lab;lab ", False),
    ],
)
def test_cells_that_combine_few_words_are_told(between: str, labels: str, is_told: bool, tmp_path: Path) -> None:
    rows = "".join(f'{i}.jpg,"{label}"\n' for i, label in enumerate(labels.split(";") * 2))
    write(tmp_path, {"t.csv": f"id,tags\n{rows}", **images("{}.jpg", 12)})
    told = [text for text in listing(tmp_path).warnings if "if they are several" in text]
    assert all(text.endswith(f"give label_separator={between!r}") for text in told)
    assert len(told) == is_told
    if is_told:
        source = listing(tmp_path, label_separator=between)
        assert isinstance(source.fields["tags"], stoker.fields.Labels)


@pytest.mark.parametrize(("column", "split"), [("is_valid", "validation"), ("in test set", "test")])
def test_a_column_says_whether_an_image_is_of_a_split(column: str, split: str, tmp_path: Path) -> None:
    """As fastai's: ``is_valid`` is True or False."""
    write(tmp_path, images("images/{}.jpg", 8))
    rows = [f"{i}.jpg,{'ab'[i % 2]},{i > 5}" for i in range(8)]
    write(tmp_path, {"data.csv": "\n".join([f"image,label,{column}", *rows])})
    assert split_sizes(listing(tmp_path, split_column=column)) == {"train": 6, split: 2}


def test_boxes_by_their_width_are_no_images(tmp_path: Path) -> None:
    write(tmp_path, images("stage_2_train_images/p{}.jpg", 4))
    rows = [f"p{i},1,2,3,4,{i % 2}" for i in (0, 0, 1, 2, 3)]
    write(tmp_path, {"stage_2_train_labels.csv": "\n".join(["patientId,x,y,width,height,Target", *rows])})
    assert "are boxes, several of which may belong to one image" in check_refused(tmp_path)


def test_boxes_without_a_header_are_no_images(tmp_path: Path) -> None:
    """As of Keras' RetinaNet, where an image without boxes has empty cells."""
    write(tmp_path, images("images/{}.jpg", 4))
    rows = [*(f"images/{i}.jpg,1,2,30.5,40,{'ab'[i % 2]}" for i in (0, 0, 1, 2)), "images/3.jpg,,,,,"]
    write(tmp_path, {"train.csv": "\n".join(rows)})
    assert "are boxes, several of which may belong to one image" in check_refused(tmp_path)


def test_files_beside_folders_of_splits_are_named(tmp_path: Path) -> None:
    files = in_folders(("train", "test"), 2)
    write(tmp_path, {**files, "train_annotations.json": '{"images": []}', "sample_submission.csv": "id\n1\n"})
    assert listing(tmp_path).warnings == ("beside the splits and not used: train_annotations.json",)


def test_paths_with_the_name_of_the_folder_of_the_images(tmp_path: Path) -> None:
    """The table lies elsewhere."""
    write(tmp_path, images("photos/{}.jpg", 4))
    write(tmp_path, {"tables/a.csv": "\n".join(["path,label", *(f"photos/{i}.jpg,{'ab'[i % 2]}" for i in range(4))])})
    source = listing(tmp_path / "tables" / "a.csv", image_root=str(tmp_path / "photos"))
    assert [(item.path, item.label) for item in source.table] == [(b"%d.jpg" % i, i % 2) for i in (0, 2, 1, 3)]


MISSING = "images that are missing or empty, or links that lead nowhere"
ROOT = "; if their paths are relative to another folder, give image_root='FOLDER'"


def test_images_that_are_not_there_are_told_where_they_are_listed(tmp_path: Path) -> None:
    write(tmp_path / "photos", {"cats/1.jpg": picture(1), "dogs/2.jpg": picture(2)})
    paths = "cats/1.jpg\ndogs/2.jpg\n"
    path = write(tmp_path / "lists", {"all.txt": paths}) / "all.txt"
    of_lists = f"such as cats/1.jpg, dogs/2.jpg in {tmp_path / 'lists'}{ROOT}"
    assert listing(path).warnings == (f"{MISSING}: 2 of 2, {of_lists}",)
    there = listing(path, image_root=str(tmp_path / "photos"))
    assert (there.warnings, there.load(there.table[0], "train").data) == ((), picture(1))
    table = write(tmp_path / "lists", {"metadata.csv": "file_name,label\n" + paths.replace(".jpg", ".jpg,1")})
    assert listing(table).warnings[-1] == f"{MISSING}: 2 of 2, {of_lists}"
    (tmp_path / "photos/cats/9.jpg").symlink_to("gone.jpg")
    assert listing(tmp_path / "photos").warnings == (f"{MISSING}: 1 of 3, such as cats/9.jpg in {tmp_path / 'photos'}",)


def test_a_loader_replaces_what_a_broken_link_stands_for(tmp_path: Path) -> None:
    write(tmp_path, in_folders(("cat", "dog"), 3))
    (tmp_path / "cat/9.jpg").symlink_to("gone.jpg")
    with pytest.warns(stoker.errors.SourceWarning, match=r"1 of 7, such as cat/9\.jpg"):
        train = stoker.open(tmp_path)
    settings = {"batch_size": 7, "transform": stoker.Resize(8), "shuffle": False}
    with stoker.Loader(train, **settings, on_bad="substitute") as loader:
        with pytest.warns(stoker.errors.BadSampleWarning, match=r"cat/9\.jpg"):
            assert [len(batch) for batch in loader] == [7]
        assert [bad.index for bad in loader.bad_samples.samples] == [3]
    with stoker.Loader(train, **settings) as loader, pytest.raises(FileNotFoundError, match=r"cat/9\.jpg"):
        next(iter(loader))


@pytest.mark.parametrize("name", ["train.csv", "metadata.csv"])
def test_a_table_that_names_no_image_says_where_it_looked(name: str, tmp_path: Path) -> None:
    table = write(tmp_path, {name: "path,label\ncats/1.jpg,cat\ndogs/2.jpg,dog\n"}) / name
    problem = f"no column of a table names images below {tmp_path}: {table} has the columns path, label; its first row"
    assert check_refused(table).startswith(f"{problem} is cats/1.jpg")
    assert check_refused(table).endswith("image_root")
    if name == "train.csv":
        assert check_refused(tmp_path) == f"{check_refused(table)}, or a pattern such as '*.jpg' to read no classes"


@pytest.mark.parametrize("name", ["valid.csv", "val.csv", "dev.csv", "images_val.txt", "test.csv", "images_test.txt"])
@pytest.mark.parametrize("is_given", [True, False])
def test_a_table_alone_is_the_split_in_its_name(name: str, is_given: bool, tmp_path: Path) -> None:
    split = "test" if "test" in name else "validation"
    rows = "".join(f"images/{i}.jpg,{'ab'[i % 2]}\n" for i in range(8))
    write(tmp_path, {**images("images/{}.jpg", 8), name: "path,label\n" + rows})
    source = listing(tmp_path / name if is_given else tmp_path)
    assert {split: len(numbers) for split, numbers in source.splits.items() if len(numbers)} == {split: 8}
    assert f"{tmp_path / name} is the split {split}, by its name" in source.warnings
    write(tmp_path, {re.sub("valid|val|dev|test", "train", name): "path,label\n" + rows})
    assert split_sizes(listing(tmp_path)) == {"train": 8, split: 8}


def test_a_list_of_sound_images_is_no_validation(tmp_path: Path) -> None:
    write(tmp_path, {**images("a/{}.jpg", 3), "valid_images.txt": "a/0.jpg\na/2.jpg\n"})
    assert [*listing(tmp_path / "valid_images.txt").splits] == ["train"]


def test_one_of_several_columns_may_have_minus_one_where_the_others_are_one_hot(tmp_path: Path) -> None:
    rows = [f"{i}.jpg,{i % 2},{1 - i % 2},{i % 3 - 1}" for i in range(6)]
    write(tmp_path, {**images("{}.jpg", 6), "t.csv": "\n".join(["file,cat,dog,tone", *rows])})
    source = listing(tmp_path)
    assert ([*source.classes], [*source.fields]) == ([b"cat", b"dog"], ["tone"])


def test_marks_of_minus_one_are_asked_for(tmp_path: Path) -> None:
    """CheXpert's: -1 is uncertain, and nothing is not mentioned."""
    write(tmp_path, images("p{}.jpg", 8))
    rows = [f"p{i}.jpg,{40 + i},{('', '0.0', '1.0', '-1.0')[i % 4]},{('', '1.0')[i % 2]}" for i in range(8)]
    write(tmp_path, {"train.csv": "\n".join(["Path,Age,Edema,No Finding", *rows])})
    assert "'Edema' has '-1.0'; write 0 or 1 in its place, or give label_column='none'" in check_refused(tmp_path)
    source = listing(tmp_path, label_column="none")
    gaps = "'Edema' has no value in 2 rows, 'No Finding' has no value in 4 rows: nan there"
    assert source.warnings[1:] == (f"{tmp_path / 'train.csv'}: {gaps}",)


@pytest.mark.parametrize("between", ["-", "_", "."])
def test_splits_in_names_are_told_with_a_line_that_writes_their_lists(between: str, tmp_path: Path) -> None:
    root = tmp_path / "a b"
    words = {"train": "train", "val": "validation", "test": "test"}
    write(root, {f"{word}{between}{i}.jpg": picture(i) for word in words for i in range(3)})
    (message,) = listing(root).warnings
    assert message.startswith("the names of images begin with test, train, val, and all are train; if these are splits")
    type_in(message)
    source = listing(root)
    for word, split in words.items():
        names = {source.table[row].name.decode() for row in source.splits[split].tolist()}
        assert names == {f"{word}{between}{i}.jpg" for i in range(3)}


def test_classes_in_names_are_told_with_a_line_that_writes_them(tmp_path: Path) -> None:
    """As of dogs-vs-cats."""
    names = [*(f"{name}.{i}.jpg" for name in ("cat", "dog") for i in range(3)), "great_cat_1.jpg", "great_cat_2.jpg"]
    root = write(tmp_path / "its photos", images_of(names))
    source = listing(root)
    (message,) = source.label_warnings
    assert message.startswith("the names of images begin with cat, dog, great_cat; if these are classes, type: ")
    type_in(message)
    source = listing(root)
    assert source.classes == (b"cat", b"dog", b"great_cat")
    assert Counter(source.table.labels.tolist()) == {0: 3, 1: 3, 2: 2}


def test_directions_with_numbers_of_their_own_may_be_classes(tmp_path: Path) -> None:
    names = ("left_1.jpg", "left_2.jpg", "right_3.jpg", "right_4.jpg")
    (message,) = listing(write(tmp_path, images_of(names))).label_warnings
    assert message.startswith("the names of images begin with left, right; if these are classes, type: ")


def test_numbers_at_the_beginning_of_names_are_told_with_a_line_that_writes_them(tmp_path: Path) -> None:
    """As of UTKFace, in its folder and given alone, and of Market-1501."""
    ages = (25, 26, 25, 7)
    names = [f"UTKFace/{age}_{i % 2}_2_201701{i}.jpg" for i, age in enumerate(ages)]
    folder = write(tmp_path, images_of(names)) / "UTKFace"
    message = f"all images of {tmp_path} are of one class, 'UTKFace', the name of their folder"
    assert listing(tmp_path).label_warnings == (f"{message}; to read them without classes give {folder}",)
    (message,) = listing(folder).label_warnings
    told = "the names of images begin with numbers, as 25_0_2_2017010.jpg does; if these are classes, type: "
    assert message.startswith(told)
    type_in(message)
    assert sorted(listing(folder).table.labels.tolist()) == sorted(ages)


@pytest.mark.parametrize(
    "names",
    [
        ("IMG_1.jpg", "IMG_2.jpg", "DSC_1.jpg", "DSC_2.jpg"),
        ("a_1.jpg", "b_1.jpg"),
        ("a_1.jpg", "a_2.jpg", "b.jpg"),
        ("left_1.jpg", "left_2.jpg", "right_1.jpg", "right_2.jpg"),
        ("left_1.jpg", "left_2.jpg", "right_1.jpg", "right_2.jpg", "right_3.jpg"),
        ("cam_left_1.png", "cam_left_2.png", "cam_right_1.png", "cam_right_2.png"),
        ("2024_05_a.jpg", "2024_05_b.jpg", "2025_06_a.jpg", "2025_06_b.jpg"),
        ("1_a_x.jpg", "2_b_y.jpg", "3_c_z.jpg"),
    ],
)
def test_other_names_are_no_classes(names: tuple[str, ...], tmp_path: Path) -> None:
    assert listing(write(tmp_path, images_of(names))).warnings == ()


@pytest.mark.parametrize(
    ("files", "given", "typed"),
    [
        (("cifar-10-batches-py/data_batch_1",), "", "CIFAR10('{}')"),
        (("cifar-10-batches-py/data_batch_1",), "cifar-10-batches-py", "CIFAR10('{}')"),
        (("c/train", "c/test", "c/meta", "c/file.txt~"), "c", "CIFAR100('{}')"),
        (("FashionMNIST/raw/train-images-idx3-ubyte.gz",), "", "FashionMNIST('{}')"),
        (("FashionMNIST/raw/train-images-idx3-ubyte",), "FashionMNIST/raw", "FashionMNIST('{}')"),
        (("train_32x32.mat",), "", "SVHN('{}')"),
    ],
)
def test_arrays_of_torchvision_are_no_classes(files: tuple[str, ...], given: str, typed: str, tmp_path: Path) -> None:
    write(tmp_path, dict.fromkeys(files, b"\x80\x04"))
    assert check_refused(tmp_path / given).endswith(f"give stoker.open(torchvision.datasets.{typed.format(tmp_path)})")


def test_arrays_beside_splits_of_images_are_passed_over(tmp_path: Path) -> None:
    files = {f"{split}/{name}/{i}.png": picture(i) for split in ("train", "test") for name in "ab" for i in (1, 2)}
    write(tmp_path, {**files, "MNIST/raw/train-images-idx3-ubyte": b"\x00\x00"})
    assert split_sizes(listing(tmp_path)) == {"train": 4, "test": 4}


@pytest.mark.parametrize("second", ["val", "validation_2", "test"])
def test_parts_of_a_data_set_are_no_classes(second: str, tmp_path: Path) -> None:
    """iNaturalist 2021's."""
    folders = [(part, name) for part in ("train_mini", second) for name in "ab"]
    files = {f"{part}/{name}/{part}{i}.jpg": picture(i) for part, name in folders for i in (1, 2)}
    assert "has folders whose names are no classes" in check_refused(write(tmp_path, files))


@pytest.mark.parametrize(
    ("names", "warning"),
    [
        (("Art/clock", "Art/bag", "Real/clock", "Real/bag"), "the classes are Art, Real, not the folders in them"),
        (("a/abbey", "b/bakery", "b/shop"), "the classes are a, b, not the folders in them, such as {}/a/abbey"),
        (("Aves/17", "Aves/5", "Plantae/3", "Plantae/4"), "the classes are Aves, Plantae, not the folders in them"),
        (("bow/v_bow_1", "bow/v_bow_2", "run/v_run_1", "run/v_run_2"), None),
        (("cat/2024-01", "cat/2024-02", "dog/2025-01", "dog/2025-02"), None),
        (("cat/batch1", "cat/batch2", "dog/batch3", "dog/batch4"), None),
        (("benign/s/x/1", "benign/s/x/2", "malignant/s/y/1", "malignant/s/y/2"), None),
        (("cat/001", "cat/002", "dog/001", "dog/002"), None),
        (("cat/x", "cat/y", "dog/z", "dog/y"), None),
    ],
)
def test_folders_of_the_same_folders_are_told(names: tuple[str, ...], warning: str | None, tmp_path: Path) -> None:
    """As of Office-Home, SUN397, and iNaturalist."""
    warnings = listing(write(tmp_path, in_folders(names, 2))).warnings
    if warning is None:
        assert warnings == ()
        return
    assert warnings[0].startswith(warning.format(tmp_path))
    tmp_path.with_suffix(".txt").write_text("\n".join({name.split("/", 1)[0] for name in names}))
    assert listing(tmp_path, labels=str(tmp_path.with_suffix(".txt"))).warnings == ()
    assert f"type: stoker list '{tmp_path}/*/*/*.jpg' --out inner.txt" in warnings[0]


@pytest.mark.parametrize("inner", ["images", "1"])
def test_folders_of_the_same_folders_below_others_are_told(inner: str, tmp_path: Path) -> None:
    """As of Office-31 and of ImageNet-C."""
    names = [f"{first}/{inner}/{name}" for first in ("fog", "snow") for name in ("bike", "mug")]
    (message,) = listing(write(tmp_path, {f"{name}/1.jpg": picture(i) for i, name in enumerate(names)})).warnings
    assert f"the classes are fog, snow, not the folders in them, such as {tmp_path}/fog/{inner}/bike;" in message
    typed = message.partition("type: stoker list '")[2].partition("' --out")[0]
    assert main(["list", typed, "--out", str(tmp_path / "inner.txt")]) == 0
    assert listing(tmp_path / "inner.txt").classes == (b"bike", b"mug")


@pytest.mark.parametrize("names", [("A", "B"), ("clean", "noisy"), ("train/image_left", "train/image_right")])
def test_folders_of_views_are_told_with_a_line_that_joins_them(names: tuple[str, str], tmp_path: Path) -> None:
    write(tmp_path, {f"{name}/{i}.jpg": picture(10 * at + i) for at, name in enumerate(names) for i in range(3)})
    (message,) = listing(tmp_path).label_warnings
    assert "with images of the same names, such as 0.jpg; if they belong together, type: " in message
    type_in(message)
    assert [*listing(tmp_path).fields] == ["second"]


@pytest.mark.parametrize("names", [("cat/1.jpg", "dog/1.jpg"), ("left/1.jpg", "right/2.jpg")])
def test_other_folders_of_the_same_or_other_images_are_classes(names: tuple[str, str], tmp_path: Path) -> None:
    assert listing(write(tmp_path, images_of(names))).warnings == ()


@pytest.mark.parametrize(
    "names",
    [("images_001/images", "images_002/images"), ("labeled/cat", "unlabeled"), ("clip_1", "clip_2"), ("0000", "0100")],
)
def test_folders_that_say_nothing_are_refused_with_a_remedy(names: tuple[str, str], tmp_path: Path) -> None:
    """As of ChestX-ray14, and of FFHQ."""
    message = check_refused(write(tmp_path, {f"{name}/{i}.jpg": picture(i) for i, name in enumerate(names)}))
    type_in(message.partition("to read all without classes, ")[2], "; if its")
    source = listing(tmp_path)
    assert (source.classes, len(source.table)) == ((), 2)


def test_sides_of_unpaired_images_are_no_classes(tmp_path: Path) -> None:
    """As of CycleGAN."""
    names = [f"{split}{side}/1.jpg" for split in ("train", "test") for side in "AB"]
    told = "has folders whose names are no classes (testA, testB, trainA, trainB)"
    assert told in check_refused(write(tmp_path, images_of(names)))


def test_a_table_of_test_images_beside_class_folders_is_told(tmp_path: Path) -> None:
    """As of GTSRB."""
    files = {f"Train/{name}/{i}.png": picture(i) for name in "ab" for i in range(2)} | {"Test/7.png": picture(7)}
    write(tmp_path, {**files, "Test.csv": "ClassId,Path\n0,Test/7.png\n", "results.csv": "epoch,loss\n1,2\n"})
    message = "not used is Test.csv, though images of test have no classes; give it to read it"
    assert listing(tmp_path).warnings == (message,)


def test_texts_beside_images_in_class_folders_are_told(tmp_path: Path) -> None:
    write(tmp_path, {**in_folders(("cat", "dog"), 2), "cat/0.txt": "a cat", "cat/notes.txt": "x"})
    (message,) = listing(tmp_path).warnings
    assert message.startswith("not read beside the images of the classes: 0.txt; write boxes as COCO, YOLO or Pascal")


def test_boxes_of_kaggle_and_of_hugging_face_are_told(tmp_path: Path) -> None:
    solution = "ImageId,PredictionString\nn01440764_0,n01440764 1 2 3 4 \n"
    root = write(tmp_path / "kaggle", {"n01440764/n01440764_0.JPEG": picture(0), "LOC_train_solution.csv": solution})
    assert listing(root).warnings[0].startswith(f"{root / 'LOC_train_solution.csv'} has boxes, which are not read")
    of_the_hub = {"objects": {"bbox": [[1, 2, 3, 4]], "categories": [0]}}
    for columns in (of_the_hub, {"boxes": [{"xmin": 0, "ymin": 0, "xmax": 1, "ymax": 1, "label": 0}]}):
        (name,) = columns
        row = json.dumps({"file_name": "1.jpg", **columns})
        root = write(tmp_path / name, {"1.jpg": picture(1), "metadata.jsonl": row})
        assert listing(root).warnings[0].startswith(f"'{name}' is a field of JSON; docs/how-to")
    row = '1.jpg,9,{},2,0,"{""name"":""rect""}",{}'
    header = "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    root = write(tmp_path / "via", {"1.jpg": picture(1), "via.csv": f"{header}\n{row}\n{row.replace(',0,', ',1,')}\n"})
    assert "are boxes, several of which may belong to one image" in check_refused(root)


def test_classes_of_images_in_a_coco_file_are_refused(tmp_path: Path) -> None:
    """iNaturalist's."""
    write(tmp_path, {f"{name}.jpg": picture(at) for at, name in enumerate("ab")})
    annotations = [{"id": at, "image_id": at, "category_id": at} for at in range(2)]
    images = [{"id": at, "file_name": f"{name}.jpg", "width": 32, "height": 24} for at, name in enumerate("ab")]
    categories = [{"id": at, "name": name} for at, name in enumerate(("bird", "fern"))]
    coco = {"images": images, "annotations": annotations, "categories": categories}
    write(tmp_path, {"train.json": json.dumps(coco)})
    assert "its annotations are classes of images, and have no bbox" in check_refused(tmp_path / "train.json")
    annotations[0]["bbox"] = [1, 2, 3, 4]
    write(tmp_path, {"train.json": json.dumps(coco)})
    assert len(listing(tmp_path / "train.json").table) == 2


def test_lists_of_videos_are_told(tmp_path: Path) -> None:
    """UCF101's, beside a frame of each video."""
    frames = {f"{name}/v_{name}_{i}.jpg": picture(i) for name in ("Archery", "Diving") for i in range(2)}
    lists = {f"{split}list01.txt": "Archery/v_Archery_0.avi 1\n" for split in ("train", "test")}
    (message,) = listing(write(tmp_path, {**frames, **lists})).warnings
    assert message.startswith("not read, as their lines begin with no names of images: testlist01.txt, trainlist01.txt")


def test_the_example_of_a_column_is_one_called_like_classes(tmp_path: Path) -> None:
    """As of ChestX-ray14."""
    rows = [f"{i}.png,{i // 2},{('Edema|Mass', 'Mass')[i % 2]},PA" for i in range(8)]
    write(tmp_path, images("images/{}.png", 8))
    write(tmp_path, {"data.csv": "\n".join(["Image,Patient,Finding Labels,View", *rows])})
    assert "give image_column='Image' label_column='Finding Labels'" in check_refused(tmp_path / "data.csv")
    assert "Finding Labels" in listing(tmp_path / "data.csv", label_column="Finding Labels").fields


NAMES = ("Bär", "Tür", "Öl")
_LABELLED = "".join(f"images/{i}.jpg{{}}{NAMES[i % 3]}\n" for i in range(6))
_CATEGORIES = '"images": [{"id": 1, "file_name": "0.jpg"}], "annotations": [], "categories": [{"id": 1, "name": "Bär"}]'
LATIN_1 = {
    "labels.csv": (
        "labels.csv",
        "file,label\n" + _LABELLED.replace("{}", ","),
        "line 2 of {}: it is not UTF-8 at byte 14",
    ),
    "list.txt": ("list.txt", _LABELLED.replace("{}", " "), "line 1 of {}: it is not UTF-8 at byte 14"),
    "classes.txt": ("", "\n".join(NAMES), "line 1 of {}: it is not UTF-8 at byte 1"),
    "data.yaml": ("", "train: images\nnames:\n- a\n- Bär\n", "line 4 of {}: it is not UTF-8 at byte 3"),
    "annotations.json": ("", "{" + _CATEGORIES + "}", "{} is not UTF-8 at byte 100"),
    "labelmap.txt": ("", "# name:colour\nBär:1,2,3::\n", "line 2 of {}: it is not UTF-8 at byte 1"),
}
"""What is given, the content of the file, and what is wrong with it."""


@pytest.mark.parametrize(("name", "given"), LATIN_1.items(), ids=[*LATIN_1])
def test_names_of_classes_that_are_not_utf_8_are_refused_with_what_converts_them(
    name: str, given: tuple[str, str, str], tmp_path: Path
) -> None:
    start, text, problem = given
    files = images("images/{}.jpg", 6)
    files |= {f"labels/{i}.txt": b"0 .5 .5 .2 .2\n" for i in range(6) if name in ("classes.txt", "data.yaml")}
    if name == "labelmap.txt":
        files = {f"{folder}/0.png": picture(0, "L") for folder in ("JPEGImages", "SegmentationClass")}
    file = write(tmp_path, {**files, name: text.encode("latin-1")}) / name
    with pytest.raises(SourceError) as raised:
        listing(tmp_path / start)
    assert f"{problem.replace('{}', str(file))}; " in str(raised.value)
    type_in(str(raised.value))
    assert file.read_text() == text
    assert listing(tmp_path / start).classes


def test_a_label_map_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    root = write(tmp_path / "images", in_folders(NAMES, 2))
    (tmp_path / "names.txt").write_bytes("\n".join(NAMES).encode("latin-1"))
    assert "it is not UTF-8 at byte 1; if it is Windows-1252" in check_refused(root, labels=str(tmp_path / "names.txt"))
    (tmp_path / "texts.txt").write_bytes("".join(f"{name}\tB\xe4r\n" for name in "ab").encode("latin-1"))
    root = write(tmp_path / "photos", in_folders("ab", 2))
    told = "it is not UTF-8 at byte 3; if it is Windows-1252"
    assert told in check_refused(root, class_names=str(tmp_path / "texts.txt"))


def test_names_of_files_need_not_be_utf_8(tmp_path: Path) -> None:
    root = write(tmp_path, images("{}.jpg", 4))
    for i in range(4):
        (root / f"{i}.jpg").rename(root / f"\udce4{i}.jpg")
    (root / "list.txt").write_bytes(b"".join(b"\xe4%d.jpg,%s\n" % (i, (b"a", b"b")[i % 2]) for i in range(4)))
    assert listing(root / "list.txt").classes == (b"a", b"b")


def test_metadata_that_is_not_utf_8_is_told_beside_folders(tmp_path: Path) -> None:
    files = in_folders("ab", 2)
    rows = "".join(f'{{"file_name": "a/{i}.jpg", "text": "Bär"}}\n' for i in range(2))
    root = write(tmp_path, {**files, "metadata.jsonl": rows.encode("latin-1")})
    (warning,) = [each for each in listing(root).warnings if "not used: line" in each]
    told = f"{root}/metadata.jsonl is not used: line 1 of {root}/metadata.jsonl: it is not UTF-8 at byte 35; if it is"
    assert warning.startswith(told)
    type_in(warning)
    with pytest.warns(stoker.errors.SourceWarning):
        assert "text" in stoker.open(root).fields


@pytest.mark.parametrize("orientation", [1, 6])
def test_boxes_of_yolo_of_images_that_exif_turns_are_told(orientation: int, tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {
        f"images/{i}.jpg": picture(0, orientation=orientation if i == 7 else 1) for i in range(8)
    }
    files |= {f"labels/{i}.txt": "0 .5 .5 .2 .4\n" for i in range(8)} | {"images/8.jpg": b"", "classes.txt": "a"}
    write(tmp_path, files)
    told = [each for each in listing(tmp_path).warnings if "EXIF" in each]
    message = (
        f"EXIF turns images, such as {tmp_path}/images/7.jpg, and their boxes state no size of the image; they are"
    )
    message += " read as of images as stored; if they were drawn on upright ones, save the images upright, for example"
    assert [each.startswith(message) for each in told] == [True] * (orientation == 6)


def test_yolo_lists_may_have_paths_of_windows(tmp_path: Path) -> None:
    files = in_folders(("images/a", "images/b"), 3)
    texts = {f"labels/{folder}/{i}.txt": "0 .5 .5 .2 .4\n" for folder in "ab" for i in range(3)}
    for start in ("C:\\data\\photos\\images\\", "images\\"):
        rows = "".join(f"{start}{folder}\\{i}.jpg\r\n" for folder in "ab" for i in range(3))
        write(tmp_path, {**files, **texts, "train.txt": rows, "data.yaml": "train: train.txt\nnames: [x]\n"})
        source = listing(tmp_path)
        assert sorted(source.table.paths) == sorted(map(str.encode, files))
        (warning,) = [each for each in source.warnings if "another computer" in each]
        assert f"6 paths of another computer, read as files here: {start}a\\0.jpg is images/a/0.jpg" in warning
    write(tmp_path, {"train.txt": "images\\a\\9.jpg\n"})
    assert "is no file in" in check_refused(tmp_path)


def test_names_of_classes_in_webdatasets_are_refused_with_a_line_that_reads_them(tmp_path: Path) -> None:
    names = {f"{i}": ("cat", "great dog")[i % 2] for i in range(4)}
    samples = [((f"{i}.jpg", picture(int(i))), (f"{i}.cls", name.encode())) for i, name in names.items()]
    members = dict(member for sample in samples for member in sample)
    write(tmp_path, {"a.tar": tar_bytes(members)})
    typed = check_refused(tmp_path).partition("type: ")[2]
    subprocess.run(["sh", "-c", f"mkdir photos && cd photos && tar -xf ../a.tar && {typed}"], check=True, cwd=tmp_path)
    source = listing(tmp_path / "photos")
    labels = {path[:1].decode(): label for path, label in zip(source.table.paths, source.table.labels, strict=True)}
    assert source.classes == (b"cat", b"great dog")
    assert labels == {name: names[name] == "great dog" for name in names}


def test_only_what_is_not_read_of_a_list_of_a_split_is_told(tmp_path: Path) -> None:
    rows = "".join(f"A_{i} {1 + i % 2} 2 2\n" for i in range(4))
    root = write(tmp_path, {"trainval.txt": rows, **images("A_{}.jpg", 6)})
    source = listing(root, label_column=("column_2",))
    assert [each for each in source.warnings if "what follows" in each] == []
    assert [name for name, _ in source.fields.items()] == ["column_3", "column_4"]
    write(tmp_path, {"labels.csv": "image,kind\n" + "".join(f"A_{i}.jpg,{i % 2}\n" for i in range(6))})
    message = f"what follows the names in {root}/trainval.txt is not read, as in line 1: 1 2 2"
    assert message in listing(root, image_column="image").warnings


def test_tables_of_pandas_and_of_images_in_several_folders_are_told_as_they_are(tmp_path: Path) -> None:
    rows = "".join(f"{i},{i}.jpg,{'ab'[i % 2]},{i % 3}\n" for i in range(8))
    root = write(tmp_path / "own", {"t.csv": f",image,species,fold\n{rows}", **images("{}.jpg", 8)})
    assert "may have the classes (species, fold); for example" in check_refused(root)
    root = tmp_path / "folders"
    write(root, {f"train_images/{'blast' if i % 2 else 'normal'}/{i}.jpg": picture(i) for i in range(8)})
    write(root, {"t.csv": "image,label\n" + "".join(f"{i}.jpg,{'ab'[i % 2]}\n" for i in range(8))})
    assert listing(root).warnings == (f"{root}/t.csv: the images are 'image', some in blast/; the classes are 'label'",)


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("folder", ["data/train", "photos/train", "data/train/train", "data/images"])
def test_a_table_above_the_folder_of_the_splits_has_the_classes(tmp_path: Path, folder: str) -> None:
    files = {f"{folder}/{i}.jpg": picture(i) for i in range(6)}
    rows = "".join(f"{i}.jpg,{'cat' if i % 2 else 'dog'}\n" for i in range(6))
    source = listing(write(tmp_path, {"train.csv": "id,breed\n" + rows, **files}))
    assert source.classes == (b"cat", b"dog")
    paths = [source.table.paths[row] for row in range(6)]
    assert [int(path[-5:-4]) % 2 for path in paths] == [1 - label for label in source.table.labels.tolist()]


def test_the_folder_to_give_is_that_with_the_table(tmp_path: Path) -> None:
    files = {f"ds/ds/{split}/{i}.jpg": picture(i) for i, split in enumerate(("train", "test"))}
    write(tmp_path, {"ds/train.csv": "id,breed\n0.jpg,cat\n", **files})
    assert f"give {tmp_path / 'ds'};" in check_refused(tmp_path)


def test_a_table_beside_images_of_dogs_is_asked_for(tmp_path: Path) -> None:
    files = {f"Images/{'a' if i < 3 else 'b'}/{i}.jpg": picture(i) for i in range(6)}
    rows = "".join(f"{i}.jpg,{'cat' if i % 2 else 'dog'}\n" for i in range(6))
    write(tmp_path, {"labels.csv": "id,breed\n" + rows, **files})
    assert f"give {tmp_path} with label_column='breed'" in check_refused(tmp_path)
    with pytest.warns(SourceWarning, match="the classes are 'breed'"):
        assert [each.name for each in stoker.open(tmp_path, label_column="breed").classes] == ["cat", "dog"]


def test_run_lengths_are_no_classes(tmp_path: Path) -> None:
    rows = "".join(f"{i}.jpg,{'' if i % 2 else '1 3 10 5'}\n" for i in range(6))
    write(tmp_path, images("train/{}.jpg", 6) | {"train.csv": "ImageId,EncodedPixels\n" + rows})
    with pytest.warns(SourceWarning) as caught:
        train = stoker.open(tmp_path)
    assert any("'EncodedPixels' seems to have masks as run lengths" in str(each.message) for each in caught)
    assert train.classes == ()
    assert train[0].fields["EncodedPixels"] == "1 3 10 5"


def test_words_behind_the_numbers_of_images_may_be_classes(tmp_path: Path) -> None:
    write(tmp_path, {f"{i}_{('frog', 'cat')[i % 2]}.jpg": picture(i) for i in range(6)})
    with pytest.warns(SourceWarning, match="the names of images end with cat, frog; if these are classes") as caught:
        stoker.open(tmp_path)
    type_in(next(str(each.message) for each in caught if "end with" in str(each.message)))
    assert [each.name for each in stoker.open(tmp_path).classes] == ["cat", "frog"]


def test_a_copy_of_the_classes_among_them_is_no_class(tmp_path: Path) -> None:
    root = tmp_path / "cells"
    for number, folder in enumerate(("", "cells/")):
        write(root, {f"{folder}{name}/{i}.png": picture(10 * number + i) for name in ("A", "Z") for i in range(3)})
    assert f"{root / 'cells'} with the folders in it that lie beside it" in check_refused(root)


def test_of_several_tables_the_one_without_boxes_is_read_and_the_others_are_told(tmp_path: Path) -> None:
    tables = {
        "bbox.csv": "image_id,x_1,y_1,width,height\n" + "".join(f"{i}.jpg,1,{i},3,{i}\n" for i in range(8)),
        "attr.csv": "image_id,Male,Young\n" + "".join(f"{i}.jpg,{(-1, 1)[i % 2]},1\n" for i in range(8)),
        "partition.csv": "image_id,partition\n" + "".join(f"{i}.jpg,{i // 3}\n" for i in range(8)),
    }
    write(tmp_path, images("img_align/{}.jpg", 8) | tables)
    with pytest.warns(SourceWarning) as caught:
        train = stoker.open(tmp_path)
    assert any("though they name the images: bbox.csv, partition.csv" in str(each.message) for each in caught)
    assert train[1].fields["labels"].tolist() == [0, 1]


def test_boxes_of_images_without_endings_are_told(tmp_path: Path) -> None:
    rows = "".join(f'{i}a,40,"[1.0, 2.0, 3.0, 4.0]",usask\n' for i in range(6) for _ in range(3))
    files = images("train/{}a.jpg", 6)
    check_refused(
        write(tmp_path, {"train.csv": "image_id,width,bbox,source\n" + rows, **files}),
        match=r"the rows of .*train.csv are boxes, several of which",
    )


@pytest.mark.parametrize(
    ("train", "test"), [("seg_train/seg_train", "seg_test/seg_test"), ("training_set", "test_set/it")]
)
def test_folders_with_a_split_in_their_names_are_read_as_told(tmp_path: Path, train: str, test: str) -> None:
    files = {f"{folder}/{c}/{i}.jpg": picture(i) for folder in (train, test) for c in ("bay", "sea") for i in range(2)}
    message = check_refused(write(tmp_path, files), match="to read them as splits, type: ")
    rest = type_in(message, "; and give ")
    source = listing(tmp_path / "splits")
    assert rest.startswith(f"{tmp_path / 'splits'};")
    assert split_sizes(source) == {"train": 4, "test": 4}
    assert source.classes == (b"bay", b"sea")


def test_a_list_of_classes_is_no_table_of_images_beside_one_of_boxes(tmp_path: Path) -> None:
    boxes = "".join(f"train/{i}.jpg,1,2,30,20,{name}\n" for i in range(4) for name in ("cat", "dog"))
    files = images("train/{}.jpg", 4)
    write(tmp_path, {"annotations.csv": boxes, "classes.csv": "cat,0\ndog,1\n", **files})
    check_refused(tmp_path, match=r"the rows of .*annotations.csv are boxes")


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_a_list_of_mxnet_is_a_table(tmp_path: Path) -> None:
    rows = "".join(f"{i}\t{i % 2}.000000\timg/{i}.jpg\n" for i in range(8))
    write(tmp_path, {"train.lst": rows, **images("img/{}.jpg", 8)})
    assert "give image_column='column_3' label_column='column_2', or" in check_refused(tmp_path)
    train = stoker.open(tmp_path / "train.lst", image_column="column_3", label_column="column_2")
    assert train.labels.tolist() == [0, 1] * 4


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_a_table_of_paths_in_parquet_has_the_classes(tmp_path: Path) -> None:
    files = images("img/{}.jpg", 6)
    write_table(write(tmp_path, files) / "train.parquet", {"image_path": [*files], "cls": ["cat", "dog"] * 3})
    train = stoker.open(tmp_path)
    assert [each.name for each in train.classes] == ["cat", "dog"]
    assert train.labels.tolist() == [0, 1] * 3


@pytest.mark.parametrize("name", ["metadata.csv", "train.parquet"])
def test_a_column_of_few_repeated_names_may_have_the_classes(name: str, tmp_path: Path) -> None:
    root, files = tmp_path / "photos", images("{}.jpg", 6)
    columns: dict[str, Any] = {"species": ["ape", "bee"] * 3, "text": [*"abcdef"]}
    if name == "metadata.csv":
        columns["file_name"] = [*files]
        write(root, files)
    else:
        columns["image"] = [*files.values()]
    write_table(root / name, columns)
    told = "'species' may have the classes, and is a field; to have these, give label_"
    with pytest.warns(SourceWarning, match=told):
        assert stoker.open(root).classes == ()
    assert [each.name for each in stoker.open(root, label_column="species").classes] == ["ape", "bee"]
    stoker.open(root, label_column="none")


def test_a_table_with_other_endings_than_the_files_is_refused(tmp_path: Path) -> None:
    rows = "".join(f"images/{i}.jpg,{'cat' if i % 2 else 'dog'}\n" for i in range(6))
    write(tmp_path, {f"images/{i}.png": picture(i, "L") for i in range(6)} | {"train.csv": "file,label\n" + rows})
    message = check_refused(tmp_path, match=r"train.csv names images/0.jpg, and the file is 0.png; write the names of")
    assert len(listing(message.partition(" or give '")[2].partition("'")[0]).table) == 6


@pytest.mark.parametrize("cell", ["\"['cat', 'dog']\"", '"[0, 1]"', "['cat' 'dog']", "{cat}"])
def test_lists_written_as_text_are_no_names_of_classes(tmp_path: Path, cell: str) -> None:
    rows = "".join(f"{i}.jpg,{cell}\n" for i in range(6))
    write(tmp_path, images("images/{}.jpg", 6) | {"train.csv": "file,label\n" + rows})
    check_refused(tmp_path, match=r"'label' has lists written as text, such as .*; write what is in them with")
    tree = listing(tmp_path, label_column=())
    assert (tree.classes, [*tree.fields]) == ((), ["label"])


def test_words_for_missing_labels_are_told_where_they_are_classes(tmp_path: Path) -> None:
    rows = "".join(f"{i}.jpg,{('cat', 'NaN', 'None')[i % 3]}\n" for i in range(6))
    write(tmp_path, images("images/{}.jpg", 6) | {"train.csv": "file,label\n" + rows})
    tree = listing(tmp_path)
    assert tree.classes == (b"NaN", b"None", b"cat")
    assert any("'NaN', 'None' are taken for names of classes; a cell without" in text for text in tree.warnings)


@pytest.mark.parametrize(
    ("cells", "labels", "told"),
    [
        (["0", "1", " 10", "2"], [0, 1, 10, 2], ""),
        ([" 0 ", " 1 ", " 10 ", "+2"], [0, 1, 10, 2], ""),
        (
            ["0", "1", "10", "?"],
            [0, 1, 2, 3],
            "'?' is taken for the name of a class, so numbers such as '10' are names, too",
        ),
        (
            ["0", "10", "2", "NA"],
            [0, 1, 2, 3],
            "'NA' is taken for the name of a class, so numbers such as '10' are names",
        ),
        (["1st", "2nd", "b", "b"], [0, 1, 2, 2], ""),
        (["1", "a", "b", "c"], [0, 1, 2, 3], ""),
    ],
)
@pytest.mark.parametrize("is_list", [False, True])
def test_a_blank_or_a_word_among_ids_renumbers_none_in_silence(
    tmp_path: Path, cells: list[str], labels: list[int], told: str, *, is_list: bool
) -> None:
    rows = "".join(f"images/{i}.jpg,{cell}\n" for i, cell in enumerate(cells))
    write(tmp_path, images("images/{}.jpg", 4) | {"train.csv": "file,label\n" + rows})
    tree = listing(tmp_path / "train.csv" if is_list else tmp_path)
    assert [item.label for item in sorted(tree.table, key=lambda item: item.path)] == labels
    assert any(told in text for text in tree.warnings) if told else not any("taken" in text for text in tree.warnings)
    write(tmp_path, {"train.csv": "file,label\n" + rows.replace("images/0.jpg,", "images/0.jpg, 0.5\nimages/0.jpg,")})
    if cells[3] == "2":
        assert listing(tmp_path).fields == {"label": stoker.fields.Float()}


def test_a_table_with_bare_names_in_many_class_folders_is_compared_with_them(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"train/{'abcdefgh'[i % 8]}/{i}.png": picture(i, "L") for i in range(24)}
    for shift in (0, 1):
        rows = "".join(f"{i}.png,{'abcdefgh'[(i + shift) % 8]}\n" for i in reversed(range(24)))
        write(tmp_path, files | {"train.csv": "file,label\n" + rows})
        if not shift:
            assert listing(tmp_path).warnings == ()
    check_refused(tmp_path, match=r"or the folders, such as that of 19.png; write the paths of the images below the")
    paths = "".join(f"{name},b\n" for name in files)
    tree = listing(write(tmp_path, {"train.csv": "file,label\n" + paths}), label_column=("label",))
    assert (len(tree.table), tree.classes) == (24, (b"b",))


@pytest.mark.parametrize("rows", ["4.png,b\n", "a/0.png,b\nb/1.png,b\n", "train/a/4.png,b\n"])
def test_a_table_with_another_class_than_the_folder_is_refused(tmp_path: Path, rows: str) -> None:
    files = {f"train/{'ab'[i % 2]}/{i}.png": picture(i, "L") for i in range(6)}
    write(tmp_path, files | {"train.csv": "file,label\n" + rows})
    check_refused(tmp_path, match=rf"may be its 'label', or the folders, such as that of {rows[: rows.index(',')]}")
    write(tmp_path, {"train.csv": "file,label\n" + rows.replace(",b", ",a").replace("1.png,a", "1.png,b")})
    assert split_sizes(listing(tmp_path)) == {"train": 6}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('image,label\n0.png,"a\n1.png,b\n', "line 2 of .*: unexpected end of data; is a quote not closed"),
        ("image,label,label\n0.png,a,x\n1.png,b,y\n", "line 1 of .*: it names the column 'label' twice"),
        ("# by me\nimage,label\n0.png,a\n1.png,b\n", "line 2 of .*: it has 2 cells, but there are 1 columns"),
    ],
)
def test_a_damaged_table_of_images_is_refused_whatever_line_is_damaged(tmp_path: Path, text: str, problem: str) -> None:
    write(tmp_path, images("images/{}.png", 2) | {"train.csv": text})
    check_refused(tmp_path, match=f"{problem}.*; mend the table, or give .*images/[*].png")


def test_names_in_another_unicode_form_are_those_of_the_files(tmp_path: Path) -> None:
    files: dict[str, bytes | str] = {f"images/cafe\u0301{i}.png": picture(i) for i in range(4)}
    rows = "".join(f"caf\u00e9{i}.png,{i % 2}\n" for i in range(4))
    tree = listing(write(tmp_path, files | {"train.csv": "image,label\n" + rows}))
    assert [item.label for item in sorted(tree.table, key=lambda item: item.path)] == [0, 1, 0, 1]
    assert any("differ in case or Unicode form from the table's: 4, images/cafe" in text for text in tree.warnings)
