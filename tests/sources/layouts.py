"""Every layout of a source, small, for properties that hold for all of them.

Tests find a new one by itself: a function marked as a `layout`, and of a kind with boxes one marked as `boxes`.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from sources.making import content, fill, png, tar_bytes, tar_of, train_tar, write, xml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

LAYOUTS: dict[str, Callable[[Path], Path]] = {}
"""Makes the files of a layout below an empty folder, and returns what is the source."""
WARNINGS: dict[str, int] = {}
"""How many warnings its listing has."""


def layout(warnings: int = 0) -> Callable[[Callable[[Path], Path]], Callable[[Path], Path]]:
    """Mark what makes a layout, which is called after it."""

    def add(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
        LAYOUTS[make.__name__], WARNINGS[make.__name__] = make, warnings
        return make

    return add


@dataclass(frozen=True)
class Drawn:
    """An image, and a box that was drawn in it."""

    data: bytes  # a JPEG
    size: tuple[int, int]  # its width and height, as the annotation has them
    edges: tuple[float, float, float, float]  # left, top, right and bottom in pixels


Splits: TypeAlias = "Mapping[str, Mapping[str, Drawn]]"
"""The images of some of train, val and test, by the stems of their names."""


@dataclass(frozen=True)
class Boxes:
    """A kind of source that has boxes.

    Attributes:
        write: Writes images, and the boxes of the class n01 in them, as a folder of the kind.
        row: What its row of docs/reference/sources.md calls ``SOURCE``, if it needs no other files than these.
        states_sizes: Whether its annotations state the size of the image, which tells boxes of upright photographs.
    """

    write: Callable[[Path, Splits], None]
    row: str | None
    states_sizes: bool


BOXES: dict[str, Boxes] = {}
"""Every kind with boxes, by the name of what writes it."""


def boxes(
    row: str | None = None, *, states_sizes: bool = True
) -> Callable[[Callable[[Path, Splits], None]], Callable[[Path, Splits], None]]:
    """Mark what writes a kind with boxes; see `Boxes`."""

    def add(write: Callable[[Path, Splits], None]) -> Callable[[Path, Splits], None]:
        BOXES[write.__name__] = Boxes(write, row, states_sizes)
        return write

    return add


ODD_NAMES = (
    "with blank.jpg",
    "100%.jpg",
    "a#b.jpg",
    "a+b.jpg",
    "%20.jpg",
    "a?b=c&d.jpg",
    "[x]*.jpg",
    "ü日.jpg",
    "~tilde.jpg",
    "semi;colon.jpg",
    "a=b.jpg",
    "quote'\".jpg",
    "no ending",
)
BOX = ("n01", "10", "10", "50", "50")
VALIDATION = "ILSVRC2012_val_0000000"


@layout(warnings=1)
def class_folders(root: Path) -> Path:
    fill(root, *(f"n01/{name}" for name in ODD_NAMES), "n02/deep/er/1.jpg", "n02/2.jpg", "n02/.hidden/3.jpg")
    fill(root, "n02/.hidden/4.jpg", "n02/.5.jpg", "n02/notes.txt", "n02/_SUCCESS", "n01-x/6.jpg", "n01.y/7.jpg")
    return fill(root, "loose.jpg", "README.md", ".git/config")


@layout(warnings=2)
def splits(root: Path) -> Path:
    fill(root, "train/b/1.jpg", "train/a/2.jpg", "val/a/3.jpg", "val/c/4.jpg", "test/5.jpg", "test/6.jpg")
    write(root, {"words.txt": "a\tthe first\nb\tthe second\n"})
    return fill(root, "stray/7.jpg", "lists.csv")


@layout()
def flat_validation(root: Path) -> Path:
    fill(root, "train/n01/1.jpg", "train/n02/2.jpg")
    fill(root, *(f"validation/{VALIDATION}{number}.JPEG" for number in (1, 2, 3)))
    return write(root, {"imagenet_2012_validation_synset_labels.txt": "n02\nn01\nn02\n"})


@layout(warnings=1)
def tiny(root: Path) -> Path:
    fill(root, "train/n01/images/n01_0.JPEG", "train/n02/images/n02_0.JPEG")
    fill(root, "val/images/val_0.JPEG", "val/images/val_1.JPEG", "test/images/test_0.JPEG")
    write(root, {f"train/{name}/{name}_boxes.txt": f"{name}_0.JPEG\t0\t10\t20\t63\n" for name in ("n01", "n02")})
    lines = "val_0.JPEG\tn02\t0\t0\t31\t31\nval_1.JPEG\tn01\tx\t0\t3\t3\n"
    return write(root, {"val/val_annotations.txt": lines, "wnids.txt": "n01\nn02\n"})


@layout()
def ilsvrc(root: Path) -> Path:
    top = "ILSVRC"
    fill(root, f"{top}/Data/CLS-LOC/train/n01/n01_1.JPEG", f"{top}/Data/CLS-LOC/train/n02/n02_1.JPEG")
    fill(root, f"{top}/Data/CLS-LOC/val/{VALIDATION}1.JPEG")
    annotated = ("train/n01/n01_1.xml", f"val/{VALIDATION}1.xml")
    write(root / top / "Annotations/CLS-LOC", dict.fromkeys(annotated, xml(BOX)))
    lists = {"LOC_val_solution.csv": f"ImageId,P\n{VALIDATION}1,n02 1 2 3 4\n"}
    return write(root, lists | {"LOC_synset_mapping.txt": "n01 tench, fish\nn02 goldfish\n"})


@layout(warnings=1)
def dogs(root: Path) -> Path:
    fill(root, "Images/n02-Chihuahua/n02_1.jpg", "Images/n03-Beagle/n03_1.jpg", "lists/train.mat")
    return write(root, {"Annotation/n02-Chihuahua/n02_1": xml(("Chihuahua", "1", "2", "30", "40"))})


@layout()
def nvidia(root: Path) -> Path:
    fill(root, "data/train/n01/1.jpg", "data/train/n02/2.jpg", "data/validation/n01/3.jpg")
    return write(root, {"bounding_boxes/annotations.tar.gz": tar_bytes({"n01/1.xml": xml(BOX).encode()})})


@layout()
def voc_folder(root: Path) -> Path:
    fill(root, "train/n01/1.jpg", "train/n02/2.jpg")
    return write(root / "Annotations", {"1.xml": xml(BOX, ("n02", "1", "1", "5", "5")), "2.xml": "<broken"}).parent


@layout(warnings=1)
def box_list(root: Path) -> Path:
    fill(root, "train/n01/n01_1.JPEG", "val/n01/n01_2.JPEG")
    return write(root, {"imagenet_2012_bounding_boxes.csv": "n01_1.JPEG,0.1,0.2,0.3,0.4\nnonsense\n"})


@layout()
def imagenet_tars(root: Path) -> Path:
    train = train_tar({"n01": ["a.JPEG", "b.JPEG"], "n02": ["c.JPEG"]})
    tars = {"train": train, "val": tar_of(f"{VALIDATION}2.JPEG", f"{VALIDATION}1.JPEG")}
    write(root, {"imagenet_2012_validation_synset_labels.txt": "n02\nn01\n"})
    return write(root, {f"ILSVRC2012_img_{split}.tar": tar for split, tar in tars.items()})


@layout(warnings=1)
def imagenet_download(root: Path) -> Path:
    """What ``stoker download imagenet`` leaves."""
    train = {"n01751748": ["n01751748_1.JPEG"], "n01440764": ["n01440764_7.JPEG", "n01440764_8.JPEG"]}
    kit = tar_bytes({"ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt": b"490\n361\n"})
    box = tar_bytes({"n01440764/n01440764_7.xml": xml(("n01440764", "20", "10", "100", "50")).encode()})
    tars = {
        "ILSVRC2012_img_train.tar": train_tar(train),
        "ILSVRC2012_img_val.tar": tar_of(f"{VALIDATION}1.JPEG"),
        "ILSVRC2012_devkit_t12.tar.gz": gzip.compress(kit),
        "bounding_boxes/annotations.tar.gz": gzip.compress(box),
    }
    return write(root, tars)


@layout()
def one_tar(root: Path) -> Path:
    tar = tar_of("p/cat/1.jpg", "p/dog/2.jpg", "p/dog/notes.txt", "p/.x/3.jpg")
    return write(root, {"photos.tar": tar}) / "photos.tar"


@layout(warnings=3)
def webdataset(root: Path) -> Path:
    """Shards in folders of splits; one sample without a class, one without a caption, and some that are not whole."""
    shards = {
        "train/000000.tar": {"a/1.jpg": content("1.jpg"), "a/1.cls": b"2", "a/1.txt": b"one", "a/1.json": b"[1]"},
        "train/000001.tar": {"2.cls": b"0\n", "2.jpg": content("2.jpg"), "2.txt": "ü日".encode(), "3.cls": b"1"},
        "val/000000.tar": {
            "4.JPG": content("4.JPG"),
            "4.json": b'{"n": 4}',
            "5.png": png("5"),
            "5.jpg": content("5.jpg"),
        },
    }
    return write(root, {name: tar_bytes(members) for name, members in shards.items()})


@layout()
def webdataset_tar(root: Path) -> Path:
    tar = tar_bytes({"1.jpg": content("1.jpg"), "1.txt": b"one", "2.jpg": content("2.jpg")})
    return write(root, {"captions-val.tar": tar}) / "captions-val.tar"


@layout(warnings=1)
def webdataset_braces(root: Path) -> Path:
    """Some of the tars that lie there, by a pattern, with the names of their classes."""
    for number in range(3):
        sample = {
            f"{number}.jpg": content(f"{number}.jpg"),
            f"{number}.cls": b"%d" % number,
            f"{number}.mask.png": png(f"mask {number}", channels=1),
        }
        write(root, {f"{number}.tar": tar_bytes(sample)})
    return write(root, {"labels.txt": "cat\tpet\ndog\neel\n"}) / "{0..1}.tar"


@layout()
def parquet(root: Path) -> Path:
    """Files of two splits; one image is a file beside them, one is nowhere, and one row has nothing."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow.parquet import write_table  # noqa: PLC0415

    fill(root, "data/images/4.jpg")
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    for split, numbers in (("train", range(4)), ("validation", range(4, 8))):
        images: list[object] = [{"bytes": content(f"{number}.jpg"), "path": f"{number}.jpg"} for number in numbers]
        if split == "validation":
            images[:3] = [{"bytes": None, "path": path} for path in ("images/4.jpg", "images/gone.jpg", None)]
        captions = [f"ü{number}" for number in numbers]
        table = {"image": pa.array(images, kind), "label": [number % 3 for number in numbers], "caption": captions}
        write_table(pa.table(table), root / f"data/{split}-00000-of-00001.parquet", row_group_size=3)
    return root


@layout(warnings=2)
def file_list(root: Path) -> Path:
    fill(
        root, "all/cat/1.jpg", "all/cat/ 2.jpg", *(f"all/dog/{number}.jpg" for number in range(12)), "fox/images/3.jpg"
    )
    lines = ["all/cat/1.jpg", "all/cat/ 2.jpg ", "", "all/../all/dog/missing.jpg", "fox/images/3.jpg", "all/cat/1.jpg"]
    lines += [f"all/dog/{number}.jpg" for number in (*range(11), 99)]
    return write(root, {"list.txt": "\n".join(lines)}) / "list.txt"


@layout(warnings=2)
def labelled_list(root: Path) -> Path:
    fill(root, "all/1.jpg", "all/2.jpg", *(f"more/{number}.jpg" for number in range(12)), "3.jpg")
    lines = ["all/1.jpg,7", "all/2.jpg,-1", "all/missing.jpg,0", "3.jpg,2"]
    lines += [f"more/{number}.jpg,{number % 3}" for number in range(11)]
    return write(root, {"list.txt": "\n".join(lines)}) / "list.txt"


@layout(warnings=3)
def metadata(root: Path) -> Path:
    fill(root, "train/all/1.jpg", "train/all/2.jpg", "train/.3.jpg", "test/4.jpg", "test/unused.jpg")
    train = 'file_name,label,caption,depth_file_name\nall/1.jpg,cat,"one, two",all/2.jpg\nall/2.jpg,dog,ü日,gone.jpg\n'
    train += ".3.jpg,,,all/1.jpg\nall/missing.jpg,cat,x,y\n"
    test = "file_name,caption,depth_file_name\n4.jpg,four,4.jpg\n"
    return write(root, {"train/metadata.csv": train, "test/metadata.csv": test})


@layout()
def metadata_lines(root: Path) -> Path:
    fill(root, *(f"{number}.jpg" for number in range(5)))
    lines = ({"file_name": f"{number}.jpg", "label": number % 3, "tags": [number]} for number in range(5))
    return write(root, {"metadata.jsonl": "".join(json.dumps(line) + "\n" for line in lines)})


@layout(warnings=3)
def coco_boxes(root: Path) -> Path:
    fill(root, "val2017/2.jpg", "val2017/1.jpg", "val2017/unused.jpg", "val2017/.hidden.jpg")
    names = enumerate(("2.jpg", "1.jpg", "missing.jpg", ".hidden.jpg"))
    images = [{"id": number, "file_name": name, "width": 80, "height": 60} for number, name in names]
    boxes = [{"image_id": number % 3, "category_id": 7 - number, "bbox": [number, 2, 30, 40]} for number in range(5)]
    categories = [{"id": number, "name": f"class {-number}"} for number in range(4, 8)]
    document = json.dumps({"images": images, "annotations": boxes, "categories": categories})
    return write(root, {"annotations/instances_val2017.json": document}) / "annotations/instances_val2017.json"


@layout(warnings=8)
def coco_splits(root: Path) -> Path:
    """The official layout, with captions that are not used, a category that one file lacks, and a folder of none."""
    fill(root, "train2017/2.jpg", "train2017/1.jpg", "val2017/1.jpg", "val2017/unused.jpg", "test2017/3.jpg")
    fill(root, "stuff/1.png")
    categories = [{"id": 18, "name": "dog"}, {"id": 17, "name": "cat"}, {"id": 90, "name": "bus"}]
    for subject, year, names, count in (
        ("instances", "train2017", ("2.jpg", "missing.jpg", "1.jpg"), 3),
        ("instances", "val2017", ("1.jpg",), 2),
        ("image_info", "test2017", ("3.jpg",), 2),
        ("captions", "val2017", ("1.jpg",), 0),
    ):
        images = [{"id": at, "file_name": name, "width": 80, "height": 60} for at, name in enumerate(names)]
        boxes = [{"image_id": 0, "category_id": 18, "bbox": [1, 2, 30, 40]}] * (subject == "instances")
        document = {"images": images, "annotations": boxes, "categories": categories[:count]}
        write(root, {f"annotations/{subject}_{year}.json": json.dumps(document)})
    return root


@layout(warnings=2)
def roboflow_coco(root: Path) -> Path:
    """As Roboflow exports it, whose first category is the name of the data set and has no boxes."""
    categories = [{"id": 0, "name": "pets", "supercategory": "none"}, {"id": 1, "name": "cat", "supercategory": "pets"}]
    for split, names in (("train", ("2.jpg", "1.jpg")), ("valid", ("1.jpg",)), ("test", ("3.jpg",))):
        fill(root / split, *names)
        images = [{"id": at, "file_name": name, "width": 80, "height": 60} for at, name in enumerate(names)]
        boxes = [{"image_id": 0, "category_id": 1, "bbox": [len(split), 2, 30, 40]}]
        document = {"images": images, "annotations": boxes, "categories": categories}
        write(root, {f"{split}/_annotations.coco.json": json.dumps(document)})
    return fill(root, "README.roboflow.txt")


@layout()
def mapped_list(root: Path) -> Path:
    fill(root, "Data/train/n01/1.jpg", "Data/train/n02/2.jpg")
    write(root, {"Annotations/train/n01/1.xml": xml(BOX)})
    return write(root, {"list.txt": "Data/train/n01/1.jpg\nData/train/n02/2.jpg\n"}) / "list.txt"


@layout(warnings=1)
def pipeline_config(root: Path) -> Path:
    fill(root, "photos/n01/1.jpg", "photos/n02/2.jpg", "photos/n01/3.jpg")
    write(root, {"lists/train.txt": "../photos/n01/1.jpg\n../photos/n02/2.jpg\n", "test.txt": "photos/n01/3.jpg\n"})
    config = {"train_filelist": "lists/train.txt", "test_filelist": "test.txt", "num_classes": 3}
    return write(root, {"ilsvrc.json": json.dumps({"data": config})}) / "ilsvrc.json"


@layout()
def yolo(root: Path) -> Path:
    fill(root, "images/train/2.jpg", "images/train/1.jpg", "images/val/3.jpg")
    texts = {
        "data.yaml": "path: .\ntrain: images/train\nval: images/val\nnames:\n  0: cat\n  1: dog\n",
        "labels/train/1.txt": "1 0.5 0.5 0.25 0.5\n0 0.125 0.25 0.5 0.25 0.5 0.75\n",
        "labels/train/2.txt": "2 0.5 0.5 0.25 0.5\n",
    }
    return write(root, texts)


@layout()
def roboflow(root: Path) -> Path:
    """As Roboflow exports it, whose paths lead one folder too high."""
    fill(root, "train/images/2.jpg", "train/images/1.jpg", "valid/images/3.jpg")
    yaml = "path: ../datasets/cats\ntrain: ../train/images\nval: ../valid/images\nnc: 1\nnames: ['cat']\n"
    return write(root, {"data.yaml": yaml, "train/labels/1.txt": "0 0.5 0.5 0.25 0.5\n"})


@layout(warnings=1)
def yolo_lists(root: Path) -> Path:
    fill(root, *(f"images/{name}" for name in ("2.jpg", "1.jpg", "3.jpg", "unused.jpg")))
    texts = {
        "coco.yaml": "train: train.txt\nval: val.txt\nnames: [cat]\n",
        "train.txt": "./images/2.jpg\n./images/1.jpg\n",
        "val.txt": "images/3.jpg\nimages/gone.jpg\n",
        "labels/1.txt": "0 0.5 0.5 0.25 0.5\n",
    }
    return write(root, texts)


@layout(warnings=3)
def mask_folders(root: Path) -> Path:
    """Images without a mask, a mask without an image, and one that has a suffix."""
    fill(root, *(f"train/images/{name}" for name in ("2.jpg", "1.jpg", "ü日.png", "alone.jpg", ".hidden.jpg")))
    fill(root, "valid/images/3.jpg", "test/images/4.jpg", "train/masks/notes.txt")
    paths = ("train/masks/1.png", "train/masks/2_mask.png", "train/masks/ü日.png", "valid/masks/3.png")
    write(root, {"valid/masks/unused.png": png("unused", channels=1)})
    return write(root, {path: png(path, channels=1) for path in paths})


@layout()
def cityscapes(root: Path) -> Path:
    for city, split in (("ulm", "train"), ("bonn", "train"), ("bern", "val")):
        name = f"{city}_000000_000019"
        fill(root, f"leftImg8bit/{split}/{city}/{name}_leftImg8bit.png")
        folder = root / f"gtFine/{split}/{city}"
        fill(folder, f"{name}_gtFine_color.png", f"{name}_gtFine_polygons.json")
        masks = {what: png(f"{what} {city}", channels=1) for what in ("labelIds", "instanceIds")}
        write(folder, {f"{name}_gtFine_{what}.png": mask for what, mask in masks.items()})
    return root


@layout(warnings=4)
def pets(root: Path) -> Path:
    """Oxford-IIIT pets: masks, and the split of each image in a list with its class."""
    names = ("Abyssinian_1", "Abyssinian_2", "american_bulldog_10", "american_bulldog_11")
    for name in names:
        fill(root, f"images/{name}.jpg", f"annotations/xmls/{name}.xml", f"annotations/trimaps/._{name}.png")
        write(root, {f"annotations/trimaps/{name}.png": png(name, channels=1)})
    fill(root, "images/Abyssinian_1.mat")
    lines = [f"{name} {at // 2 + 1} {at // 2 + 1} 1\n" for at, name in enumerate(names)]
    texts = {"trainval": lines[::2], "test": lines[1::2], "list": ["#Image CLASS-ID SPECIES BREED ID\n", *lines]}
    return write(root, {f"annotations/{name}.txt": "".join(own) for name, own in texts.items()})


@layout(warnings=2)
def flat_folder(root: Path) -> Path:
    fill(root, *ODD_NAMES, ".hidden.jpg", "notes.txt", "clip.mp4", "__MACOSX/1.jpg")
    return fill(root, "tags.json")


@layout()
def flat_splits(root: Path) -> Path:
    return fill(root, "train/2.jpg", "train/1.jpg", "test/3.png", "train/readme.md")


@layout(warnings=2)
def camera(root: Path) -> Path:
    fill(root, "DCIM/100APPLE/IMG_2.JPG", "DCIM/101APPLE/IMG_1.JPG", "DCIM/101APPLE/IMG_1.MOV")
    return fill(root, "Pictures/Screenshots/3.png", "4.jpg")


@layout(warnings=4)
def voc(root: Path) -> Path:
    """Two years of Pascal VOC below one devkit; a damaged annotation, a missing one, and a missing image."""
    for year, lists in (
        ("VOC2007", {"Main/train": "1", "Main/test": "2"}),
        (
            "VOC2012",
            {"Main/train": "1\n2", "Main/val": "3\n9", "Main/trainval": "1\n2\n3", "Main/dog_train": "1  1\n2 -1"},
        ),
    ):
        top = root / f"VOCdevkit/{year}"
        fill(top, *(f"JPEGImages/{number}.jpg" for number in (3, 2, 1, 4)), "SegmentationClass/1.png")
        text = xml(("dog", "10", "10", "50", "50"), ("aeroplane", "20", "0", "200", "30"))
        text = text.replace("<name>dog", "<truncated>1</truncated><difficult>0</difficult><name>dog")
        write(top / "Annotations", {"1.xml": text, "2.xml": text, "3.xml": "<broken"})
        write(top, {f"ImageSets/{name}.txt": lines + "\n" for name, lines in lists.items()})
    return root


@layout(warnings=1)
def cvat_voc(root: Path) -> Path:
    """As CVAT exports it, with a name with a blank, a class without objects, and one that its list lacks."""
    fill(root, "JPEGImages/frame 1.png", "JPEGImages/a/2.png")
    texts = {
        "Annotations/frame 1.xml": xml(("dog", "0", "0", "20.5", "30")),
        "Annotations/a/2.xml": xml(("zebra", "0", "0", "20.5", "30")),
        "ImageSets/Main/default.txt": '"frame 1"\na/2\n',
        "labelmap.txt": "# label:color_rgb:parts:actions\nbackground:0,0,0::\nfox:128,0,0::\ndog:0,128,0::\n",
    }
    return write(root, texts)


@layout(warnings=1)
def roboflow_voc(root: Path) -> Path:
    fill(root, "train/1_jpg.rf.0a.jpg", "train/2_jpg.rf.0b.jpg", "valid/3_jpg.rf.0c.jpg", "README.dataset.txt")
    names = (("train/1_jpg.rf.0a", "helmet"), ("train/2_jpg.rf.0b", "head"), ("valid/3_jpg.rf.0c", "helmet"))
    return write(root, {f"{name}.xml": xml((of, "1", "1", "100", "50")) for name, of in names})


@layout(warnings=3)
def labelimg(root: Path) -> Path:
    """Images and XML in two folders; one of each lacks the other."""
    fill(root, *(f"images/{number}.jpg" for number in (1, 2)))
    return write(root, {f"annotations/{number}.xml": xml(("cat", "1", "1", "100", "50")) for number in (1, 3)})


@layout(warnings=1)
def labelimg_voc(root: Path) -> Path:
    """Images and XML in one folder below the source."""
    fill(root, *(f"images/{number}.jpg" for number in (1, 2)))
    boxed = {f"images/{number}.xml": xml((of, "1", "1", "100", "50")) for number, of in ((1, "dog"), (2, "cat"))}
    return write(root, boxed)


@layout()
def labelimg_yolo(root: Path) -> Path:
    """Texts beside the images, in a folder whose name would be replaced; one image has none."""
    fill(root, *(f"images/{number}.jpg" for number in (1, 2, 3)))
    boxes = ("1 0.5 0.5 0.25 0.5\n", "0 0.5 0.5 0.25 0.5\n1 0.25 0.25 0.25 0.5\n")
    return write(root, {"images/1.txt": boxes[0], "images/2.txt": boxes[1], "images/classes.txt": "cat\ndog\n"})


@layout(warnings=1)
def darknet(root: Path) -> Path:
    """As its guide says; all paths begin with the folder itself, and one image is not there."""
    fill(root, *(f"data/obj/{number}.jpg" for number in (1, 2, 3)))
    lists = "train  = data/train.txt\nvalid = data/test.txt\nnames = data/obj.names\n"
    texts = {
        "obj/2.txt": "1 0.5 0.5 0.25 0.5\n",
        "obj.names": "cat\ndog\n",
        "obj.data": f"classes = 2\n{lists}backup = backup/\n",
        "train.txt": "data/obj/2.jpg\ndata/obj/1.jpg\n",
        "test.txt": "data/obj/3.jpg\ndata/obj/gone.jpg\n",
    }
    return write(root / "data", texts).parent


@layout()
def pattern(root: Path) -> Path:
    fill(root, *(f"all/train/cat/{name}" for name in ODD_NAMES), "all/train/dog/deep/2.jpg", "all/test/dog/3.jpg")
    fill(root, "all/train/cat/no.png", "all/train/cat/.hidden.jpg", "all/test/no.txt", "all/cow/4.gif")
    return root / "all/t*/**/*.jpg"


def annotations(images: Mapping[str, Drawn]) -> dict[str, str]:
    """The XML of images, by the names of the files."""
    texts = {}
    for name, drawn in images.items():
        (width, height), (left, top, right, bottom) = (map(str, numbers) for numbers in (drawn.size, drawn.edges))
        texts[f"{name}.xml"] = xml(("n01", left, top, right, bottom), size=(width, height))
    return texts


def write_images(folder: Path, images: Mapping[str, Drawn]) -> None:
    write(folder, {f"{name}.jpg": drawn.data for name, drawn in images.items()})


@boxes("pets")
def boxes_of_coco(root: Path, splits: Splits) -> None:
    for split, images in splits.items():
        write_images(root / "images" / split, images)
        rows, objects = [], []
        for at, (name, drawn) in enumerate(images.items()):
            left, top, right, bottom = drawn.edges
            rows.append({"id": at, "file_name": f"{name}.jpg", "width": drawn.size[0], "height": drawn.size[1]})
            objects.append({"image_id": at, "category_id": 1, "bbox": [left, top, right - left, bottom - top]})
        document = {"images": rows, "annotations": objects, "categories": [{"id": 1, "name": "n01"}]}
        write(root, {f"instances_{split}.json": json.dumps(document)})


@boxes("coco8", states_sizes=False)
def boxes_of_yolo(root: Path, splits: Splits) -> None:
    for split, images in splits.items():
        write_images(root / "images" / split, images)
        for name, drawn in images.items():
            (width, height), (left, top, right, bottom) = drawn.size, drawn.edges
            centre, sides = ((left + right) / 2 / width, (top + bottom) / 2 / height), (right - left, bottom - top)
            line = f"0 {centre[0]} {centre[1]} {sides[0] / width} {sides[1] / height}"
            write(root, {f"labels/{split}/{name}.txt": line})
    folders = "".join(f"{split}: images/{split}\n" for split in splits)
    write(root, {"data.yaml": f"path: .\nnames: [n01]\n{folders}"})


@boxes()
def boxes_of_voc(root: Path, splits: Splits) -> None:
    for split, images in splits.items():
        write_images(root / "JPEGImages", images)
        write(root / "Annotations", annotations(images))
        write(root, {f"ImageSets/Main/{split}.txt": "\n".join(images)})


@boxes(states_sizes=False)  # annotators of ImageNet saw images of other sizes
def boxes_of_class_folders(root: Path, splits: Splits) -> None:
    for split, images in splits.items():
        write_images(root / split / "n01", images)
        write(root / "Annotations" / split / "n01", annotations(images))
