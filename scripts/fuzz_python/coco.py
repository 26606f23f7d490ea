"""COCO files: refused, or items whose boxes lie in their images, and whose masks hold their classes."""

from __future__ import annotations

import contextlib

from scripts.fuzz_python.scratch import folder
from stoker.errors import ConfigError, SourceError
from stoker.sources import SourceOptions, list_source
from stoker.sources.drawn_masks import CocoMask

_SIZE = (40, 30)
_MOST_PIXELS = 2**20
_FOLDER = folder()
_FILE = _FOLDER / "instances_train2017.json"
for _name in ("a.jpg", "b.jpg"):
    (_FOLDER / _name).write_bytes(b"x")


def one_input(data: bytes) -> None:
    """Read any bytes as the elements of a COCO file."""
    _FILE.write_bytes(b'{"images": [' + data)
    tree = list_source(str(_FILE))
    assert 0 < len(tree.table) <= data.count(b"{")
    for item in tree.table:
        try:
            boxes = tree.read_boxes(item, "train")
        except SourceError:
            continue
        for box in boxes:
            assert 0 <= box.xmin < box.xmax <= 1
            assert 0 <= box.ymin < box.ymax <= 1
            assert box.label is not None
            assert box.label < len(tree.classes)
    with contextlib.suppress(ConfigError):  # without categories
        _draw_masks()


def _draw_masks() -> None:
    tree = list_source(str(_FILE), SourceOptions(masks=True))
    for item in tree.table:
        mask = tree.load(item, "train").fields["mask"]
        assert isinstance(mask, CocoMask)
        for size in (_SIZE, (mask.width, mask.height)):
            if isinstance(size[0], int) and isinstance(size[1], int) and 0 < size[0] * size[1] < _MOST_PIXELS:
                with contextlib.suppress(SourceError):
                    pixels = mask.draw(size)
                    assert pixels.shape == size[::-1]
                    assert pixels.max() <= len(tree.classes)


def seeds() -> list[bytes]:
    """Return the inputs that fuzzing starts from."""
    image = b'{"id": 7, "file_name": "a.jpg", "width": 40, "height": 30}'
    box = b'{"image_id": 7, "category_id": 1, "bbox": [1, -2.5, 30, 1e2], "iscrowd": 0}'
    polygons = b', "category_id": 1, "id": 5, "segmentation": [[1, -2.5, 30, 1e2, 5, 6], [0, 0, 9, 0, 9, 9]]}'
    runs = b', "category_id": 1, "id": 6, "iscrowd": 1, "segmentation": {"size": [30, 40], "counts": '
    objects = b", ".join(
        b'{"image_id": 7, "bbox": [1, 2, 3, 4]' + rest
        for rest in (polygons, runs + b"[600, 500, 100]}}", runs + b'"hb0d?T3"}}')
    )
    caption = b'{"image_id": 7, "caption": "a \\u0041"}'
    return [
        image + b'], "annotations": [' + box + b'], "categories": [{"id": 1, "name": "cat"}]}',
        image + b'], "annotations": [' + objects + b'], "categories": [{"id": 1, "name": "cat"}]}',
        image + b'], "annotations": [' + caption + b", " + caption + b"]}",
    ]
