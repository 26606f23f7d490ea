"""Masks of COCO's annotations: those of ``pycocotools``, and what is wrong with annotations."""

from __future__ import annotations

import json
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO

import stoker
from small_cases import each
from sources.coco_files import CATEGORIES, IMAGES, drawn_masks, paint, write_json
from sources.making import listing
from stoker import fields
from stoker.errors import ConfigError, SourceError, SourceWarning, TooManyRejectsError
from stoker.sources import SourceOptions, list_source
from stoker.sources.drawn_masks import CocoMask

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = [
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),  # of pycocotools' own decode
]

SQUARE = [[5, 5, 20, 5, 20.5, 21.25, 5, 20]]


def runs_of(mask: NDArray[Any]) -> dict[str, Any]:
    """Return RLE as a list of lengths."""
    flat = np.concatenate([[0], mask.flatten(order="F"), [2]])
    edges = np.flatnonzero(np.diff(flat))
    return {"size": list(mask.shape), "counts": np.diff(np.concatenate([[0], edges])).tolist()}


def text_of(mask: NDArray[Any]) -> dict[str, Any]:
    """Return RLE as text, made by pycocotools."""
    rle = coco_mask.encode(np.asfortranarray(mask.astype(np.uint8)))
    return {"size": list(mask.shape), "counts": rle["counts"].decode()}


def stripes(height: int, width: int) -> NDArray[Any]:
    return (np.add.outer(np.arange(height), 2 * np.arange(width)) % 7 < 3).astype(np.uint8)


SEGMENTATIONS = [
    (70, 3, 0, [[-10, -3.5, 70.2, 4, 33, 55.5], [1, 1, 9.5, 2, 4, 8]]),
    (70, 90, 0, SQUARE),
    (70, 1, 0, [[12, 12, 39.99, 12, 39.99, 30, 12, 30]]),
    (70, 3, 0, [[8, 8, 12, 8, 12, 12, 8, 12]]),
    (70, 1, 0, [[8, 8, 12, 8, 12, 12, 8, 12]]),
    (69, 90, 0, text_of(stripes(50, 25))),
    (69, 3, 0, [[100, 100, 200, 100, 200, 200]]),
    (68, 1, 1, runs_of(np.ones((64, 64), np.uint8))),
    (68, 90, 1, runs_of(stripes(64, 64))),
    (68, 3, 0, [[3, 3, 3, 3, 3, 3]]),
]


def document(**changed: Any) -> dict[str, Any]:
    annotations = [
        {"id": 10 + number, "image_id": image, "category_id": category, "iscrowd": crowd, "segmentation": what}
        | {"bbox": [0, 0, 5, 5], "area": 1.0}
        for number, (image, category, crowd, what) in enumerate(SEGMENTATIONS)
    ]
    return {"annotations": annotations, "images": IMAGES, "categories": CATEGORIES} | changed


def write(root: Path, content: dict[str, Any]) -> Path:
    paint(root / "val2017")
    return write_json(root / "annotations/instances_val2017.json", content)


def wanted_masks(path: Path) -> dict[str, NDArray[Any]]:
    theirs = COCO(str(path))
    return drawn_masks(theirs, {category: number for number, category in enumerate(sorted(theirs.getCatIds()), 1)})


def stored_masks(path: Path) -> dict[str, NDArray[Any]]:
    return {sample.source: np.asarray(sample.fields["mask"]) for sample in stoker.open(path, "val")}


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_masks_are_those_of_pycocotools(tmp_path: Path) -> None:
    path = write(tmp_path, document())
    report = stoker.build(path, tmp_path / "out", masks=True, progress=False)
    assert report.manifest.schema.fields == {"mask": fields.Mask()}
    wanted, stored = wanted_masks(path), stored_masks(tmp_path / "out")
    assert wanted.keys() == stored.keys()
    for name, mask in wanted.items():
        assert np.array_equal(stored[name], mask), name
        assert stored[name].dtype == np.uint8
    assert set(np.unique(wanted["b.png"])) == {0, 1, 2, 3}
    assert not wanted["empty.png"].any()
    assert stoker.open(tmp_path / "out", "val")[0].boxes


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_masks_follow_a_resize_to_the_nearest_pixel(tmp_path: Path) -> None:
    path = write(tmp_path, document())
    stoker.build(path, tmp_path / "out", masks=True, resize="exact:20x15", progress=False)
    for name, mask in stored_masks(tmp_path / "out").items():
        wanted = Image.fromarray(wanted_masks(path)[name].astype(np.uint8)).resize((20, 15), Image.Resampling.NEAREST)
        assert np.array_equal(mask, np.asarray(wanted)), name


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_without_the_option_segmentations_change_nothing(tmp_path: Path) -> None:
    with_masks, without = document(), document()
    for annotation in without["annotations"]:
        del annotation["segmentation"]
    first = stoker.build(write(tmp_path / "a", with_masks), tmp_path / "one", progress=False)
    second = stoker.build(write(tmp_path / "b", without), tmp_path / "two", progress=False)
    assert first.manifest.dataset_id == second.manifest.dataset_id
    assert not first.manifest.schema.fields


def test_any_segmentation_changes_the_fingerprint_and_no_other_form_of_the_file_does(tmp_path: Path) -> None:
    options = SourceOptions(masks=True)
    path = write(tmp_path, document())
    before = list_source(str(path), options).fingerprint()
    assert before != listing(path).fingerprint()
    path.write_text(json.dumps(document(), indent=3))
    assert list_source(str(path), options).fingerprint() == before
    changed = document()
    changed["annotations"][1]["segmentation"] = [[*SQUARE[0][:-1], 20.5]]
    assert list_source(str(write(tmp_path, changed)), options).fingerprint() != before


@pytest.mark.parametrize(("categories", "bits"), [(255, 8), (256, 16)])
def test_more_than_255_categories_take_16_bits(categories: int, bits: int, tmp_path: Path) -> None:
    named = [{"id": number, "name": f"{number:04d}"} for number in range(categories)]
    annotation = {"id": 1, "image_id": 70, "category_id": categories - 1, "bbox": [0, 0, 5, 5], "segmentation": SQUARE}
    path = write(tmp_path, document(categories=named, annotations=[annotation]))
    stoker.build(path, tmp_path / "out", masks=True, progress=False)
    assert stoker.open(tmp_path / "out", "val").fields == {"mask": fields.Mask(bits)}
    assert set(np.unique(stored_masks(tmp_path / "out")["b.png"])) == {0, categories}


def test_captions_and_masks_of_one_file(tmp_path: Path) -> None:
    captions = [{"image_id": image["id"], "id": 900, "caption": f"ü {image['id']}"} for image in IMAGES]
    annotation = {"id": 1, "image_id": 70, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": SQUARE}
    tree = listing(write(tmp_path, document(annotations=[*captions, annotation])), masks=True)
    assert list(tree.fields) == ["caption", "captions", "mask"]
    (item,) = [item for item in tree.table if item.key == "b.png"]
    values = tree.load(item, "validation").fields
    assert (values["caption"], values["captions"]) == ("ü 70", ["ü 70"])
    assert values["mask"].draw((40, 30)).sum() > 0


@each(
    ("segmentation", "problem"),
    [
        (None, "it is missing, neither a list of polygons nor size and counts"),
        (5, "it is 5, neither"),
        ([], "it has no polygon"),
        ([[1, 2, 3, 4, 5, 6, 7]], "polygon 0 is list of 7 elements, not x and y of three points or more"),
        ([[1, 1, 9, 9]], "it has no polygon"),
        ([*SQUARE, [[1, 2], [3, 4], [5, 6]] * 2], "polygon 1 has [1, 2] among its coordinates"),
        ([1, 2, 3, 4, 5, 6], "polygon 0 is 1, not x and y of three points or more"),
        ([[1, 2, "3", 4, 5, 6]], "polygon 0 has '3' among its coordinates"),
        ([[1, 2, True, 4, 5, 6]], "polygon 0 has True among its coordinates"),
        ([[1, 2, None, 4, 5, 6]], "polygon 0 has missing among its coordinates"),
        ([[1, 2, float("inf"), 4, 5, 6]], "polygon 0 has the coordinate inf, too far outside the image"),
        ([[1, 2, 10**400, 4, 5, 6]], "polygon 0 has the coordinate 1000"),
        ([[1, 2, 2**27, 4, 5, 6]], "polygon 0 has the coordinate 134217728, too far"),
        ([[1, 2, -(2**26), 4, 5, 6]], "polygon 0 is longer than 1048576 pixels"),
        ([[0, 0, 2**19 - 9, 0, 5, 6]] * 17, "the polygons of its image are longer than 16777216 pixels together"),
        ({"counts": [1200]}, "it is dict of 1 element, neither"),
        ({"size": [40, 30], "counts": [1200]}, "size is [40, 30], but the image has the height 30, width 40"),
        ({"size": [2**31, 2**31], "counts": [1]}, "size is [2147483648, 2147483648], but the image has the height 30"),
        ({"size": [30.0, 40], "counts": [1200]}, "size is [30.0, 40], but"),
        ({"size": [30, 40], "counts": {}}, "counts are dict of 0 elements, neither a text nor a list of whole numbers"),
        ({"size": [30, 40], "counts": [1199]}, "counts add up to 1199, but the image has 1200 pixels"),
        ({"size": [30, 40], "counts": [1199, 2]}, "counts add up to 1201, but"),
        ({"size": [30, 40], "counts": []}, "counts add up to 0, but"),
        ({"size": [30, 40], "counts": [1201, -1]}, "counts are [1201, -1], neither"),
        ({"size": [30, 40], "counts": [1200.0]}, "counts are [1200.0], neither"),
        ({"size": [30, 40], "counts": [2**32 + 1200]}, "counts are [4294968496], neither"),
        ({"size": [30, 40], "counts": ""}, "counts add up to 0, but"),
        ({"size": [30, 40], "counts": "`U!1"}, "counts have the character '!' at 2"),
        ({"size": [30, 40], "counts": "1p"}, "counts have the character 'p' at 1"),
        ({"size": [30, 40], "counts": "1\ud800"}, "counts have the character '\\ud800' at 1"),
        ({"size": [30, 40], "counts": "1P"}, "counts end within a number"),
        ({"size": [30, 40], "counts": "P" * 100_000 + "1"}, "counts have a number of 100001 characters"),
        ({"size": [30, 40], "counts": "@"}, "a count is -16, of 1200 pixels"),
        ({"size": [30, 40], "counts": "ooooo?"}, "a count is 536870911, of 1200 pixels"),
    ],
)
def test_a_damaged_segmentation_is_a_reject(segmentation: Any, problem: str) -> None:
    mask = CocoMask("i.json", 40, 30, [[1, 7, 42, 3, SQUARE], [2, 9, 43, 3, segmentation]])
    with pytest.raises(SourceError) as caught:
        mask.draw((40, 30))
    assert str(caught.value).startswith(f"i.json: annotations[9] with the id 43: segmentation: {problem}")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"segmentation": [[*SQUARE[0], 3]]}, "annotations[1] with the id 11: segmentation: polygon 0 is list of 9"),
        ({"category_id": 7}, "annotations[1] with the id 11: category_id is 7, which no category has"),
        ({"category_id": None}, "annotations[1] with the id 11: category_id is missing, which no category has"),
        ({"id": [5]}, None),
    ],
)
def test_rejects_name_file_annotation_and_field(changed: dict[str, Any], problem: str | None, tmp_path: Path) -> None:
    content = document()
    content["annotations"][1] |= changed
    path = write(tmp_path, content)
    with pytest.warns(SourceWarning):
        report = stoker.build(path, tmp_path / "out", masks=True, max_rejects=1, progress=False)
    if problem is None:
        assert not report.rejects
        return
    (reject,) = report.rejects
    assert reject.key == "b.png"
    assert reject.reason.startswith(f"field 'mask': {path}: {problem}")


def test_annotations_without_a_polygon_are_left_out_and_counted(tmp_path: Path) -> None:
    """LabelMe and Label Studio write rectangles as two points or as nothing, on which pycocotools fails."""
    content = document()
    undrawn = [None, [], [[]], [[5, 5]], [[5, 5, 20, 20]], [[5, 5, 20, 20], [1, 2, 3, 4]], [[1, 2, 3]]]
    content["annotations"] += [
        {"id": 100 + number, "image_id": 70, "category_id": 3, "bbox": [5, 5, 15, 15], "segmentation": segmentation}
        for number, segmentation in enumerate(undrawn)
    ]
    del content["annotations"][-1]["segmentation"]
    with_lines = [*SQUARE, [12, 12], [2, 2, 38, 28], [2, 2, 38, 28, 3], []]
    content["annotations"].append({**content["annotations"][1], "id": 200, "segmentation": with_lines})
    path = write(tmp_path, content)
    with pytest.warns(SourceWarning) as caught:
        stoker.build(path, tmp_path / "out", masks=True, progress=False)
    message = f"{path}: 7 annotations without a polygon or RLE: their pixels are background in the masks"
    assert message in [str(warning.message) for warning in caught]
    for annotation in content["annotations"][len(SEGMENTATIONS) : -1]:
        with pytest.raises(Exception, match=r"."):
            COCO(str(path)).annToMask(annotation)
    content["annotations"] = [*content["annotations"][: len(SEGMENTATIONS)], content["annotations"][-1]]
    wanted = wanted_masks(write(tmp_path, content))
    stored = stored_masks(tmp_path / "out")
    assert all(np.array_equal(stored[name], mask) for name, mask in wanted.items())


@pytest.mark.parametrize("segmentation", [[], None, [[1, 1, 9, 9]]])
def test_boxes_alone_make_no_masks(segmentation: Any, tmp_path: Path) -> None:
    box = {"id": 1, "image_id": 70, "category_id": 1, "bbox": [0, 0, 5, 5], "segmentation": segmentation}
    path = write(tmp_path, document(annotations=[box]))
    problem = r"has no segmentations, which masks=True needs; give instances_\*.json, or omit it"
    with pytest.raises(ConfigError, match=problem):
        listing(path, masks=True)


@pytest.mark.parametrize("size", [(0, 30), (None, 30), (2**40, 30), (40.0, 30), ([1], 30), (2**30, 30)])
def test_a_size_that_is_not_that_of_the_image_is_a_reject(size: tuple[Any, Any], tmp_path: Path) -> None:
    images = [{**IMAGES[0], "width": size[0], "height": size[1]}, *IMAGES[1:]]
    path = write(tmp_path, document(images=images))
    tracemalloc.start()
    try:
        with (
            pytest.warns(SourceWarning),
            pytest.raises(TooManyRejectsError, match=r"b.png: field 'mask': .*json: the width of the image"),
        ):
            stoker.build(path, tmp_path / "out", masks=True, progress=False)
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def test_annotations_that_are_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, document())
    depth = sys.getrecursionlimit() - 62
    path.write_text(path.read_text().replace(json.dumps(SQUARE), "[[0,0,0,0,0," + "[" * depth + "]" * depth + "]]"))
    try:
        tree = listing(path, masks=True)
    except SourceError as error:
        assert "nested too deeply" in str(error)  # noqa: PT017 - Pythons differ in how deep is too deep
    else:
        (item,) = [item for item in tree.table if item.key == "b.png"]
        with pytest.raises(SourceError):
            tree.load(item, "validation").fields["mask"].draw((40, 30))


def test_sources_without_masks_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, document(categories=[], annotations=[]))
    problem = r"has no categories, which masks=True needs; give instances_\*.json, or omit"
    with pytest.raises(ConfigError, match=problem):
        listing(path, masks=True)
    with pytest.raises(ConfigError, match=r"masks=True has no effect on .*, which is read as folder of class folders"):
        stoker.build(tmp_path / "val2017", tmp_path / "out", masks=True)
    with pytest.raises(ConfigError, match="masks=True has no effect where the source is records; omit it"):
        stoker.build([{"image": "a.png"}], tmp_path / "out", masks=True)


def test_without_pycocotools_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, document())
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(ConfigError, match=r"no module 'pycocotools'; run pip install 'stoker\[coco\]'"):
        listing(path, masks=True)


COORDINATES = st.floats(-30, 90) | st.integers(-30, 90)
POLYGONS = st.lists(
    st.lists(st.tuples(COORDINATES, COORDINATES), min_size=3, max_size=8).map(lambda points: [*sum(points, ())]),
    min_size=1,
    max_size=3,
)


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_objects_are_drawn_as_pycocotools_draws_them(data: st.DataObject) -> None:
    height, width = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    pixels = st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).random((height, width)) < 0.7)
    shapes = data.draw(st.lists(POLYGONS | pixels.map(text_of) | pixels.map(runs_of), max_size=4))
    theirs = COCO()
    theirs.imgs = {0: {"height": height, "width": width}}
    drawn = [theirs.annToMask({"image_id": 0, "segmentation": shape}) for shape in shapes]
    wanted = np.zeros((height, width), np.int64)
    for number, mask in sorted(enumerate(drawn, 255), key=lambda pair: -int(pair[1].sum())):
        wanted[mask == 1] = number
    objects = [[number, number, number, 1, shape] for number, shape in enumerate(shapes, 255)]
    assert np.array_equal(CocoMask("i.json", width, height, objects).draw((width, height)), wanted)


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_masks_are_not_merged_with_those_of_other_classes(tmp_path: Path) -> None:
    others = [{"id": 0, "name": "aeroplane"}, *CATEGORIES]
    for number, categories in enumerate((CATEGORIES, CATEGORIES, others)):
        content = document(categories=categories)
        content["annotations"][0]["bbox"][0] = number
        path = write(tmp_path / f"coco-{number}", content)
        stoker.build(path, tmp_path / f"{number}", masks=True, progress=False)
    merged = stoker.merge([tmp_path / "0", tmp_path / "1"], tmp_path / "same")
    assert merged.manifest.records == 2 * len(IMAGES)
    problem = r"boxes in .*2 would have other ids, but not those in its masks, the field 'm"
    with pytest.raises(ConfigError, match=problem):
        stoker.merge([tmp_path / "0", tmp_path / "2"], tmp_path / "none")
