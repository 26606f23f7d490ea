"""A small data set of COCO, and how ``pycocotools`` reads such files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray
    from pycocotools.coco import COCO

    import stoker

SIZES = {"b.png": (40, 30), "a.png": (25, 50), "sub/c.png": (64, 64), "empty.png": (10, 10)}
IMAGES = [
    {"id": 70 - number, "file_name": name, "width": size[0], "height": size[1]}
    for number, (name, size) in enumerate(SIZES.items())
]
CATEGORIES = [
    {"id": 90, "name": "toothbrush", "supercategory": "indoor"},
    {"id": 1, "name": "person"},
    {"id": 3, "name": "car"},
]


def write_json(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def paint(folder: Path, sizes: Mapping[str, tuple[int, int]] = SIZES, green: int = 50) -> Path:
    for number, (name, size) in enumerate(sizes.items()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (number, green, 200)).save(folder / name)
    return folder


def check_boxes(dataset: stoker.Dataset, theirs: COCO) -> None:
    """Compare the boxes of all images, and their classes, with those of ``pycocotools``."""
    names = [known.name for known in dataset.classes]
    classes = {category["id"]: category["name"] for category in theirs.loadCats(theirs.getCatIds())}
    images = {image["file_name"].rpartition("/")[2]: image for image in theirs.loadImgs(theirs.getImgIds())}
    assert len(dataset) == len(images) > 0
    for sample in dataset:
        image = images[sample.source.rpartition("/")[2]]
        wanted = theirs.loadAnns(theirs.getAnnIds(imgIds=[image["id"]], iscrowd=False))
        assert sample.label == -1
        assert [names[box.label] for box in sample.boxes] == [classes[each["category_id"]] for each in wanted]
        for box, each in zip(sample.boxes, wanted, strict=True):
            x, y, width, height = each["bbox"]
            corners = np.array([x, y, x + width, y + height]) / ([image["width"], image["height"]] * 2)
            exact = np.clip(corners, 0, 1).astype(np.float32)
            assert np.array_equal(np.float32([box.xmin, box.ymin, box.xmax, box.ymax]), exact)


def drawn_masks(theirs: COCO, numbers: Mapping[int, int]) -> dict[str, NDArray[Any]]:
    """What ``pycocotools`` draws: the objects of each image from many pixels to few, with the numbers of categories."""
    masks = {}
    for image in theirs.loadImgs(theirs.getImgIds()):
        mask = np.zeros((image["height"], image["width"]), np.int64)
        drawn = [(annotation, theirs.annToMask(annotation)) for annotation in theirs.imgToAnns[image["id"]]]
        for annotation, pixels in sorted(drawn, key=lambda pair: -int(pair[1].sum())):
            mask[pixels == 1] = numbers[annotation["category_id"]]
        masks[image["file_name"].rpartition("/")[2]] = mask
    return masks
