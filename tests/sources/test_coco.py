"""COCO's JSON files, as ``pycocotools`` reads them, and what is wrong with them."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pycocotools.coco import COCO

import stoker
from sources.coco_files import CATEGORIES, IMAGES, SIZES, check_boxes, paint, write_json
from sources.making import check_refused, fill, listing, others_than_of_shapes
from stoker import fields
from stoker.errors import TooManyRejectsError
from stoker.format import read_manifest
from stoker.inspect import dataset_info
from stoker.sources import with_objects
from stoker.storage import location

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from stoker.builder import BuildReport
    from stoker.sources import Source

BOXES = [
    (69, 3, [1.5, 2.25, 10.1, 20.7]),
    (70, 90, [0, 0, 40, 30]),
    (70, 1, [-5, 10, 15, 100]),
    (68, 1, [12.3, 45.6, 7.8, 9.1]),
    (70, 3, [39.99, 29.99, 0.01, 0.01]),
]


def annotations(**changed: Any) -> dict[str, Any]:
    boxes = [
        {"id": 10 + number, "image_id": image, "category_id": category, "bbox": bbox, "iscrowd": 0, "area": 1.0}
        for number, (image, category, bbox) in enumerate(BOXES)
    ]
    crowd = {"id": 9, "image_id": 68, "category_id": 1, "bbox": [0, 0, 64, 64], "iscrowd": 1, "area": 1.0}
    return {"info": {}, "annotations": [*boxes, crowd], "images": IMAGES, "categories": CATEGORIES} | changed


def listed(path: Path, document: object) -> Source:
    fill(path, *SIZES)
    return listing(write_json(path / "instances_train2017.json", document))


def refused(path: Path, document: object) -> str:
    fill(path, *SIZES)
    return check_refused(write_json(path / "instances_train2017.json", document))


@pytest.mark.parametrize("folder", ["val2017", "images/val2017", "images", "annotations"])
def test_boxes_are_those_of_pycocotools(tmp_path: Path, folder: str) -> None:
    paint(tmp_path / folder)
    path = write_json(tmp_path / "annotations/instances_val2017.json", annotations())
    with pytest.warns(stoker.errors.SourceWarning, match="1 annotation of crowds"):
        report = stoker.build(path, tmp_path / "out", progress=False)
    assert report.manifest.source.ignored["with iscrowd"] == 1
    dataset = stoker.open(tmp_path / "out", "val")
    assert [known.name for known in dataset.classes] == ["person", "car", "toothbrush"]
    check_boxes(dataset, COCO(str(path)))


def test_captions_are_fields(tmp_path: Path) -> None:
    paint(tmp_path / "train2017")
    captions = {70: ["ein Hut, ü日", "a hat"], 69: ["two"], 67: ["nothing"]}
    pairs = [(image, text) for image, texts in captions.items() for text in texts]
    entries = [{"id": number, "image_id": image, "caption": text} for number, (image, text) in enumerate(pairs)]
    path = write_json(tmp_path / "annotations/captions_train2017.json", {"images": IMAGES, "annotations": entries})
    tree = listing(path)
    assert (tree.fields, tree.classes, tree.boxes) == (
        {"caption": fields.Text(), "captions": fields.Json()},
        (),
        {},
    )
    with pytest.raises(TooManyRejectsError, match=r"sub/c.png: field 'caption'") as caught:
        stoker.build(path, tmp_path / "out", progress=False)
    assert [reject.key for reject in caught.value.report.rejects] == ["sub/c.png"]
    stoker.build(path, tmp_path / "out", progress=False, max_rejects=1)
    stored = {sample.source: dict(sample.fields) for sample in stoker.open(tmp_path / "out", "train")}
    expected = {70 - image: {"caption": texts[0], "captions": texts} for image, texts in captions.items()}
    assert stored == {IMAGES[at]["file_name"]: values for at, values in expected.items()}
    theirs = COCO(str(path))
    assert [annotation["caption"] for annotation in theirs.loadAnns(theirs.getAnnIds(imgIds=[70]))] == captions[70]


def test_images_that_are_not_there_are_rejects_and_others_are_named(tmp_path: Path) -> None:
    paint(tmp_path / "train2017")
    (tmp_path / "train2017/a.png").unlink()
    fill(tmp_path / "train2017", "more.png")
    path = write_json(tmp_path / "annotations/instances_train2017.json", annotations())
    tree = listing(path)
    assert tree.ignored == {"with iscrowd": 1, "not in the COCO file": 1}
    assert any(warning.endswith("does not name these files: more.png") for warning in tree.warnings)
    with pytest.warns(stoker.errors.SourceWarning), pytest.raises(TooManyRejectsError, match=r"a.png: the file is not"):
        stoker.build(path, tmp_path / "out", progress=False)


def test_objects_that_are_cut_out_have_their_classes(tmp_path: Path) -> None:
    paint(tmp_path / "train2017")
    path = write_json(tmp_path / "annotations/instances_train2017.json", annotations())
    assert len(with_objects(listing(path)).table) == len(BOXES) + 1
    with pytest.warns(stoker.errors.SourceWarning):
        report = stoker.build(path, tmp_path / "out", crop_objects=True, max_rejects=9, progress=False)
    assert not report.rejects
    assert report.manifest.splits["train"].class_counts == (2, 2, 1)
    assert report.manifest.splits["train"].unlabelled == 1  # the image without boxes


def test_any_box_changes_the_fingerprint(tmp_path: Path) -> None:
    before = listed(tmp_path, annotations()).fingerprint()
    assert listed(tmp_path, annotations()).fingerprint() == before
    changed = annotations()
    changed["annotations"][0]["bbox"][0] += 0.5
    assert listed(tmp_path, changed).fingerprint() != before
    changed = annotations()
    changed["annotations"][0]["category_id"] = 1
    assert listed(tmp_path, changed).fingerprint() != before


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"bbox": [1, 2, 3]}, "annotations[0]: bbox is [1, 2, 3], not [x, y, width, height] in pixels"),
        ({"bbox": [1, 2, -3, 4]}, "annotations[0]: bbox is [1, 2, -3, 4], not"),
        ({"bbox": [1, 2, "3", 4]}, "annotations[0]: bbox is [1, 2, '3', 4], not"),
        ({"bbox": [1, 2, 1e999, 4]}, "annotations[0]: bbox is [1, 2, inf, 4]"),
        ({"bbox": [1, 2, 10**300, 4]}, "annotations[0]: bbox is [1, 2, 1000"),
        ({"bbox": None}, "annotations[0]: bbox is missing"),
        ({"category_id": 7}, "annotations[0]: there is no category 7"),
        ({"category_id": "car"}, "annotations[0]: category_id is 'car', not a whole number"),
    ],
)
def test_a_damaged_annotation_is_one_of_its_image(changed: dict[str, Any], problem: str, tmp_path: Path) -> None:
    document = annotations()
    document["annotations"][0] |= changed
    tree = listed(tmp_path, json.dumps(document).replace("Infinity", "1e999"))
    items = {item.key: item for item in tree.table}
    assert str(tree.load(items["a.png"], "train").annotation_error).startswith(f"damaged annotation: {problem}")
    assert len(tree.load(items["b.png"], "train").boxes) == 3


def test_a_size_that_is_none_is_one_of_its_image(tmp_path: Path) -> None:
    tree = listed(tmp_path, annotations(images=[{**IMAGES[0], "width": 0}, *IMAGES[1:]]))
    (item,) = [item for item in tree.table if item.key == "b.png"]
    problem = "damaged annotation: the width of the image is 0, its height 30"
    assert tree.load(item, "train").annotation_error == problem


def test_boxes_that_belong_nowhere_are_counted(tmp_path: Path) -> None:
    document = annotations()
    document["annotations"] += [
        {"id": 1, "image_id": 5, "category_id": 1, "bbox": [0, 0, 1, 1]},
        {"id": 2, "image_id": 70, "category_id": 1, "bbox": [50, 0, 1, 1]},
        {"id": 3, "image_id": 70, "category_id": 1, "bbox": [5, 5, 0, 1]},
    ]
    warnings = others_than_of_shapes(listed(tmp_path, document))
    assert [warning.partition(": ")[2] for warning in warnings] == [
        "1 box of images that it does not name",
        "2 boxes without area inside the image",
        "1 annotation of crowds: no box of them",
    ]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (annotations(images=[]), "it names no images"),
        (annotations(images=[1]), "images[0] is 1, not an object"),
        (annotations(images=[{**IMAGES[0], "id": "7"}]), "images[0]: id is '7', not a whole number of 64 bits"),
        (annotations(images=[{**IMAGES[0], "id": True}]), "images[0]: id is True"),
        (annotations(images=[{**IMAGES[0], "id": 2**63}]), "images[0]: id is 9223372036854775808"),
        (annotations(images=[IMAGES[0], {**IMAGES[1], "id": 70}]), "images[1] has the id 70, which another image has"),
        (annotations(images=[IMAGES[0], {**IMAGES[0], "id": 1}]), "images[1] has the file_name 'b.png', which the ima"),
        (annotations(images=[{**IMAGES[0], "file_name": ["a"]}]), "images[0]: file_name is ['a'], not a t"),
        (annotations(images=[{**IMAGES[0], "file_name": "a\0"}]), "images[0]: file_name is 'a\\x00', which has a NUL"),
        (annotations(images=[{**IMAGES[0], "file_name": "./"}]), "images[0]: file_name is './', not the name of a fil"),
        (annotations(images=[{**IMAGES[0], "file_name": "\ud800"}]), "images[0]: file_name is '\\ud800', which UTF-8"),
        (annotations(categories=[{"id": 1}]), "categories[0]: name is missing, not a text"),
        (annotations(categories=[{"id": 1, "name": "a\nb"}]), "categories[0] has a control character in its name"),
        (annotations(categories=[*CATEGORIES, {"id": 4, "name": "car"}]), "categories[3], 'car' with the id 4, has t"),
        (annotations(annotations=[{"id": 1}]), "annotations[0]: image_id is missing, not a whole number of 64 bits"),
    ],
)
def test_what_is_no_use_is_refused(document: object, problem: str, tmp_path: Path) -> None:
    problem = f"{tmp_path}/instances_train2017.json is not a COCO file that can be used: {problem}"
    assert refused(tmp_path, document).startswith(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"images": [', "is damaged at character 12: Expecting value"),
        ('{"images": [{}', "is not a COCO file that can be used: images[0]: id is missing"),
        ('{"images": []', "is damaged at character 13: ',' is missing"),
        ('{"images": []} x', "is damaged at character 15: something follows the end"),
        ('{"images": [], "images": []}', "is damaged at character 23: the key 'images' comes twice"),
        ('{"images": [], "annotations": {}}', "is damaged at character 30: '[' is missing"),
        ('[{"images": []}]', "is damaged at character 0: '{' is missing"),
        ('{"images": [NaN]}', "is damaged at character 12: NaN is not a number of JSON"),
        ('{"images": [' + "9" * 5000 + "]}", "is damaged at character 12: Exceeds the limit"),
        ('{"images": [' + "[" * 200_000, "is nested too deeply at character 12"),
        ('{"info": ' + '{"a":' * 200_000 + '"images": [', "is nested too deeply at character 9"),
    ],
)
def test_what_is_damaged_is_refused(text: str, problem: str, tmp_path: Path) -> None:
    assert refused(tmp_path, text).startswith(f"{tmp_path}/instances_train2017.json {problem}")


def test_every_folder_that_images_may_lie_in_is_named(tmp_path: Path) -> None:
    path = write_json(tmp_path / "annotations/instances_val2017.json", annotations())
    names = ("/val2017", "/images/val2017", "/images", "/annotations", "/annotations/images", "")
    folders = ", ".join(f"{tmp_path}{name}" for name in names)
    check_refused(path, match=re.escape(f"such as b.png, are in none of {folders}; give the folder"))


def test_images_may_be_missing_from_the_first_on(tmp_path: Path) -> None:
    images = [{"id": number, "file_name": f"{number}.png", "width": 9, "height": 9} for number in range(30)]
    path = write_json(tmp_path / "annotations/instances_val2017.json", annotations(images=images, annotations=[]))
    fill(tmp_path, "val2017/29.png")
    sizes = {item.key: item.size_bytes for item in listing(path).table}
    assert len(sizes) == 30
    assert [key for key, size in sizes.items() if size] == ["29.png"]


def test_a_folder_of_coco_is_no_folder_of_classes(tmp_path: Path) -> None:
    root = tmp_path / "coco"
    fill(root, "val2017/b.png", "train2017/1.png")
    write_json(root / "annotations/captions_val2017.json", annotations())
    path = write_json(root / "annotations/instances_val2017.json", annotations())
    assert list(listing(root).splits) == ["validation"]
    other = write_json(root / "annotations/instances_val.json", annotations())
    message = f"several COCO files, which are in no folders of classes; give one file: {root}/annotations/captions_val"
    check_refused(root, match=re.escape(message))
    write_json(path, "[]")
    other.unlink()
    path.with_name("captions_val2017.json").unlink()
    check_refused(root, match="whose names are no classes")
    classes = tmp_path / "classes"
    fill(classes, "train/cat/1.png", "val/cat/2.png")
    write_json(classes / "annotations/instances_train.json", annotations())
    tree = listing(classes)
    assert tree.classes == (b"cat",)
    assert tree.warnings[0].startswith("COCO files that are not used: annotations/instances_train.json; give one")


@pytest.mark.parametrize(("folder", "split"), [("train", "train"), ("valid", "validation"), ("test", "test")])
def test_files_of_roboflow_have_the_split_of_their_folder(tmp_path: Path, folder: str, split: str) -> None:
    fill(tmp_path, f"{folder}/b.png")
    path = write_json(tmp_path / folder / "_annotations.coco.json", annotations())
    assert list(listing(path).splits) == [split]
    assert list(listing(tmp_path).splits) == [split]
    fill(tmp_path, "more/b.png")
    assert listing(tmp_path).warnings[1] == f"folders in {tmp_path} that are not used: more"


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_boxes_are_counted_by_class(tmp_path: Path, cli: Cli) -> None:
    paint(tmp_path / "val2017")
    path = write_json(tmp_path / "annotations/instances_val2017.json", annotations())
    theirs = COCO(str(path))
    counts = [len(theirs.getAnnIds(catIds=[category], iscrowd=False)) for category in sorted(theirs.getCatIds())]
    assert counts == [2, 2, 1]
    assert f"{path}: 3 classes, 5 boxes, 4 items, " in cli("plan", path)
    classes = json.loads(cli("plan", path, "--json"))["classes"]
    assert [(known["name"], known["items"], known["boxes"]) for known in classes] == [
        ("person", 0, 2),
        ("car", 0, 2),
        ("toothbrush", 0, 1),
    ]
    report = stoker.build(path, tmp_path / "out", label_base=1, shards=2, progress=False)
    assert report.manifest.splits["validation"].box_counts == {1: 2, 2: 2, 3: 1}
    assert read_manifest(location(tmp_path / "out")) == report.manifest
    for source in (path, tmp_path / "out"):
        shown = cli("info", source)
        assert "classes of 5 boxes: 3" in shown
        assert "without records" not in shown
        info = json.loads(cli("info", source, "--json"))
        totals = {known["name"]: known["total"] for known in info["box_classes"]}
        assert totals == dict(zip(("person", "car", "toothbrush"), counts, strict=True))


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_boxes_of_shards_from_an_earlier_run_are_counted(tmp_path: Path) -> None:
    paint(tmp_path / "val2017")
    path = write_json(tmp_path / "annotations/instances_val2017.json", annotations())

    def build(*, stops: bool) -> BuildReport:
        def stop(*, done: int, **_: int) -> None:
            if stops and done > 2:
                raise KeyboardInterrupt

        return stoker.build(path, tmp_path / "out", shards=4, threads=1, progress=stop)

    with pytest.raises(KeyboardInterrupt):
        build(stops=True)
    report = build(stops=False)
    assert report.resumed_shards
    assert report.manifest.splits["validation"].box_counts == {0: 2, 1: 2, 2: 1}


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_merged_boxes_are_counted_by_their_new_classes(tmp_path: Path) -> None:
    for name, categories in (
        ("a", CATEGORIES),
        ("b", [{"id": 1, "name": "boat"}, {"id": 2, "name": "kite"}, *CATEGORIES[::2]]),
    ):
        paint(tmp_path / name / "val2017")
        path = write_json(tmp_path / name / "instances_val2017.json", annotations(categories=categories))
        path = path.rename(tmp_path / name / "val2017" / path.name)
        stoker.build(path, tmp_path / f"out-{name}", progress=False)
    stoker.merge([tmp_path / "out-a", tmp_path / "out-b"], tmp_path / "all")
    counted = {known.name: known.total for known in dataset_info(tmp_path / "all").box_histogram}
    assert counted == {"person": 2, "car": 4, "toothbrush": 2, "boat": 2, "kite": 0}
    dataset = stoker.open(tmp_path / "all", "val")
    labels = [dataset.classes[box.label].name for sample in dataset for box in sample.boxes]
    assert Counter(labels) == Counter(counted)
