"""The table of docs/reference/sources.md: each command is typed for files of the library that the row is about.

A row is found by what it calls ``SOURCE``: write its files in `MAKERS`, and say which classes they have. Those of a
kind with boxes may be what `BOXES` of tests/sources/layouts.py writes.
"""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import datasets
import numpy as np
import pandas as pd
import pytest
import webdataset as wds
from PIL import Image
from pycocotools import mask as masks
from pycocotools.coco import COCO

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of TensorFlow's own modules, while they are imported
    import tensorflow as tf

import stoker
from reference import pictures
from repository.checkout import ROOT
from sources.layouts import BOXES, Drawn
from sources.making import tar_bytes, write, xml
from sources.photo_server import serving
from stoker.errors import StokerError
from storage.store_folders import copy, store_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from commands import Cli
    from sources.layouts import Boxes

PAGE = ROOT / "docs" / "reference" / "sources.md"
SIDES = (32, 24)
NAMES = ("cat", "dog", "eel")
WITH_RECORDS = ("records", "generator")
"""What a row of records calls them: they are given to `stoker.build`, by no path."""

SERVERS = ExitStack()
"""Run until the tests of this module have ended."""

Classes = dict[str, Counter[str | None]]
"""How many images each split has of each class; None for none."""


def jpeg(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 255, (SIDES[1], SIDES[0], 3), dtype=np.uint8)
    return pictures.encode(Image.fromarray(pixels))


def mask(number: int) -> Image.Image:
    return Image.fromarray(np.full((SIDES[1], SIDES[0]), number % 3, np.uint8))


def images(root: Path, *names: str) -> list[str]:
    write(root, {name: jpeg(number) for number, name in enumerate(names)})
    return list(names)


def written(split: str, **classes: int) -> Callable[[Path], Classes]:
    """What a row says of files that another one writes: how many images are of each class, or of none."""
    return lambda _: {split: Counter({None if name == "none" else name: count for name, count in classes.items()})}


def class_folders(root: Path) -> Classes:
    images(root / "photos", *(f"train/{NAMES[number % 2]}/{number}.jpg" for number in range(8)))
    images(root / "photos", *(f"val/cat/{number}.jpg" for number in range(4)))
    return {"train": Counter(cat=4, dog=4), "validation": Counter(cat=4)}


def flat_folder(root: Path) -> Classes:
    images(root / "phone", *(f"IMG_{number:04d}.JPG" for number in range(6)))
    return {"train": Counter({None: 6})}


def labelled_list(root: Path) -> Classes:
    paths = images(root, *(f"all/{name}.jpg" for name in "abcdef"))
    lines = [f"{path} {NAMES[number % 3]}" for number, path in enumerate(paths)]
    (root / "list.txt").write_text("\n".join(lines))
    return {"train": Counter(dict.fromkeys(NAMES, 2))}


def list_of_paths(root: Path) -> Classes:
    lines = images(root, *(f"more/{NAMES[number % 2]}/{number}.jpg" for number in range(6)))
    (root / "paths.txt").write_text("\n".join(lines))
    return {"train": Counter(cat=3, dog=3)}


def described_images(root: Path) -> pd.DataFrame:
    names = images(root, *(f"{number}.jpg" for number in range(6)))
    for number in range(6):
        mask(number).save(root / f"{number}.png")
    table = {
        "file_name": names,
        "label": [NAMES[number % 3] for number in range(6)],
        "caption": [f"number {number}, été" for number in range(6)],
        "mask_file_name": [f"{number}.png" for number in range(6)],
    }
    return pd.DataFrame(table)


def metadata(root: Path) -> Classes:
    described_images(root / "meta").to_csv(root / "meta/metadata.csv", index=False)
    return {"train": Counter(dict.fromkeys(NAMES, 2))}


def metadata_parquet(root: Path) -> Classes:
    described_images(root / "more-meta").to_parquet(root / "more-meta/metadata.parquet", index=False)
    return {"train": Counter(dict.fromkeys(NAMES, 2))}


def urls(root: Path) -> Classes:
    server = SERVERS.enter_context(serving({f"{number}.jpg": jpeg(number) for number in range(6)}))
    table = {
        "url": [server.url(f"{number}.jpg", number) for number in range(6)],
        "caption": [f"number {number}, été" for number in range(6)],
        "label": [NAMES[number % 3] for number in range(6)],
    }
    pd.DataFrame(table).to_csv(root / "urls.csv", index=False)
    return {"train": Counter(dict.fromkeys(NAMES, 2))}


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def shards(root: Path) -> Classes:
    for split, first in (("train", 0), ("val", 6)):
        (root / "shards").mkdir(exist_ok=True)
        with wds.ShardWriter(str(root / f"shards/{split}-%06d.tar"), maxcount=3, verbose=0) as writer:
            for number in range(first, first + 6):
                annotations = {
                    "cls": number % 2,
                    "txt": f"number {number}",
                    "json": {"n": number},
                    "mask.png": mask(number),
                }
                writer.write({"__key__": f"{number:03d}", "jpg": jpeg(number), **annotations})
    return {"train": Counter({"0": 3, "1": 3}), "validation": Counter({"0": 3, "1": 3})}


def parquet(root: Path) -> Classes:
    features = datasets.Features(
        {
            "image": datasets.Image(),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "caption": datasets.Value("string"),
            "mask": datasets.Image(),
        }
    )
    (root / "hub/data").mkdir(parents=True)
    for split, count in (("train", 6), ("validation", 2)):
        table = {
            "image": [{"bytes": jpeg(number), "path": None} for number in range(count)],
            "label": [number % 2 for number in range(count)],
            "caption": [f"number {number}" for number in range(count)],
            "mask": [mask(number) for number in range(count)],
        }
        dataset = datasets.Dataset.from_dict(table, features=features)
        dataset.to_parquet(root / f"hub/data/{split}-00000-of-00001.parquet")
    return {"train": Counter(cat=3, dog=3), "validation": Counter(cat=1, dog=1)}


def tar(root: Path) -> Classes:
    images(root / "pets", *(f"{NAMES[number % 2]}/{number}.jpg" for number in range(4)))
    subprocess.run(["tar", "-cf", "pets.tar", "pets"], cwd=root, check=True)
    return {"train": Counter(cat=2, dog=2)}


def imagenet(root: Path) -> Classes:
    inner = {}
    for name in ("n01440764", "n01443537"):
        inner[name] = tar_bytes({f"{name}_1.JPEG": jpeg(1), f"{name}_2.JPEG": jpeg(2)})
    tar = tar_bytes({f"{name}.tar": data for name, data in inner.items()})
    write(root, {"imagenet/ILSVRC2012_img_train.tar": tar})
    return {"train": Counter(n01440764=2, n01443537=2)}


def coco(root: Path) -> Classes:
    names = images(root / "coco/val2017", *(f"{number:012d}.jpg" for number in range(5)))
    document = {
        "images": [
            {"id": number, "file_name": name, "width": SIDES[0], "height": SIDES[1]}
            for number, name in enumerate(names)
        ],
        "annotations": [
            {"id": number, "image_id": number, "category_id": 1 + number % 2, "iscrowd": 0, **coco_object(number)}
            for number in range(5)
        ],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }
    captions = [{"id": number, "image_id": number % 5, "caption": f"caption {number}"} for number in range(10)]
    documents = {"instances": document, "captions": {"images": document["images"], "annotations": captions}}
    write(root / "coco/annotations", {f"{name}_val2017.json": json.dumps(own) for name, own in documents.items()})
    assert len(COCO(str(root / "coco/annotations/instances_val2017.json")).imgs) == len(names)
    return {"validation": Counter({None: 5})}


def coco_object(number: int) -> dict[str, Any]:
    """The mask of an object, and its box, as the library has them."""
    pixels = np.zeros((SIDES[1], SIDES[0]), np.uint8, "F")
    pixels[number : number + 9, 2:12] = 1
    rle = masks.encode(pixels)
    return {"bbox": masks.toBbox(rle).tolist(), "segmentation": rle | {"counts": rle["counts"].decode()}}


def voc(root: Path) -> Classes:
    top = root / "VOCdevkit/VOC2012"
    images(top, *(f"JPEGImages/{number}.jpg" for number in range(6)))
    for number in range(6):
        (top / "Annotations").mkdir(exist_ok=True)
        text = xml(("cat", "1", "1", "20", "20"), size=("32", "24"))
        flags = "<difficult>1</difficult><truncated>1</truncated>"
        (top / f"Annotations/{number}.xml").write_text(text.replace("<bndbox>", f"{flags}<bndbox>"))
        (top / "SegmentationClass").mkdir(exist_ok=True)
        mask(number).save(top / f"SegmentationClass/{number}.png")
    for name, lines in (("Main/train", "0 1 2 3"), ("Main/val", "4 5"), ("Segmentation/train", "0 1 2 3 4")):
        write(top, {f"ImageSets/{name}.txt": lines.replace(" ", "\n")})
    return {"train": Counter({None: 4}), "validation": Counter({None: 2})}


def with_boxes(kind: Boxes) -> Callable[[Path], Classes]:
    def make(root: Path) -> Classes:
        drawn = [Drawn(jpeg(number), SIDES, (number, 1, 20, 20)) for number in range(6)]
        names = {"train": range(4), "val": range(4, 6)}
        kind.write(root / str(kind.row), {split: {str(n): drawn[n] for n in own} for split, own in names.items()})
        return {"train": Counter({None: 4}), "validation": Counter({None: 2})}

    return make


def camvid(root: Path) -> Classes:
    for split, first in (("train", 0), ("val", 4)):
        for name in images(root / "camvid" / split, *(f"{n}.jpg" for n in range(first, first + 4 - first // 2))):
            path = root / f"camvid/{split}_labels/{name.removesuffix('.jpg')}_L.png"
            path.parent.mkdir(exist_ok=True)
            mask(7).save(path)
    return {"train": Counter({None: 4}), "validation": Counter({None: 2})}


def tfrecords(root: Path) -> Classes:
    (root / "old").mkdir()
    feature = tf.train.Feature
    for shard in range(2):
        with tf.io.TFRecordWriter(str(root / f"old/train-{shard:05d}-of-00002")) as writer:
            for number in range(3):
                features = {
                    "image/encoded": feature(bytes_list=tf.train.BytesList(value=[jpeg(number)])),
                    "image/class/label": feature(int64_list=tf.train.Int64List(value=[number])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
    return {"train": Counter({"0": 2, "1": 2, "2": 2})}


def sequence(root: Path) -> Classes:
    images(root / "own", *(f"{number}.jpg" for number in range(6)))
    return {"train": Counter(cat=3, dog=3)}


def iterable(root: Path) -> Classes:
    images(root / "streamed", *(f"{number}.jpg" for number in range(6)))
    return {"train": Counter({"0": 3, "1": 3})}


MAKERS: dict[str, Callable[[Path], Classes]] = {
    "photos": class_folders,
    "phone": flat_folder,
    "photos/train/*/?.jpg": written("train", cat=4, dog=4),
    "list.txt": labelled_list,
    "paths.txt": list_of_paths,
    "meta": metadata,
    "more-meta": metadata_parquet,
    "urls.csv": urls,
    "shards": shards,
    "shards/train-{000000..000001}.tar": written("train", **{"0": 3, "1": 3}),
    "hub": parquet,
    "pets.tar": tar,
    "imagenet": imagenet,
    "coco/annotations/instances_val2017.json": coco,
    "coco/annotations/instances_val2017.json --masks": written("validation", none=5),
    "coco/annotations/captions_val2017.json": written("validation", none=5),
    "VOCdevkit": voc,
    "VOCdevkit --masks": written("train", none=5),
    "camvid": camvid,
    "old": tfrecords,
    "records": sequence,
    "generator": iterable,
} | {boxes.row: with_boxes(boxes) for boxes in BOXES.values() if boxes.row is not None}
"""Write the files of a row below a folder, and say what they hold."""


def records_of(name: str, root: object) -> Any:
    """The records of a row without a path; their images lie below a root."""
    if name == "generator":
        return ({"image": f"{root}/streamed/{number}.jpg", "label": number % 2, "n": number} for number in range(6))
    names = datasets.ClassLabel(names=["cat", "dog"])
    features = datasets.Features(
        {"image": datasets.Value("string"), "label": names, "caption": datasets.Value("string")}
    )
    columns = {
        "image": [f"{root}/own/{number}.jpg" for number in range(6)],
        "label": [0, 1] * 3,
        "caption": list("abcdef"),
    }
    return datasets.Dataset.from_dict(columns, features=features)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    source: str
    images: int
    plan: bool
    open: bool
    fields: frozenset[str]


def rows() -> Iterator[Row]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 6 and cells[1].startswith("`") and cells[1] != "`SOURCE`":
            images, *words = re.split(r"\W+", cells[2])
            fields = frozenset(re.findall(r"`(\w+)`", cells[4]))
            yield Row(cells[1].strip("`"), int(images), "plan" not in words, "open" not in words, fields)


ROWS = list(rows())


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sources")


@pytest.fixture(scope="module")
def expected_classes(here: Path) -> Iterator[dict[str, Classes]]:
    with SERVERS:
        yield {name: make(here) for name, make in MAKERS.items()}


def classes_of(splits: dict[str, stoker.Dataset]) -> Classes:
    return {
        split: Counter(
            (dataset.classes[label].name if dataset.classes else str(label)) if label >= 0 else None
            for label in dataset.labels.tolist()
        )
        for split, dataset in splits.items()
    }


def check_classes(root: Any, want: Classes, *, masks: bool = False) -> frozenset[str]:
    """Compare the classes in every split of what lies at a root, decode an image of each, and return the fields."""
    splits = {split: stoker.open(root, split, masks=masks) for split in want}
    assert classes_of(splits) == want
    assert all(dataset[0].decode().shape == (SIDES[1], SIDES[0], 3) for dataset in splits.values())
    return frozenset(name for dataset in splits.values() for name in dataset.fields)


def check_row(row: Row, root: Any, want: Classes, out: Path, cli: Cli) -> None:
    """Type the commands of a row for what lies at a root."""
    source, *options = row.source.split()
    typed, images = str(root / source), sum(count.total() for count in want.values())
    assert row.images == images
    if row.source in WITH_RECORDS:
        stoker.build(records_of(row.source, root), out, progress=False)
        if not row.open:
            with pytest.raises(StokerError):
                stoker.open(records_of(row.source, root))
        else:
            assert check_classes(records_of(row.source, root), want) == row.fields
    else:
        cli("plan", typed, *options, "--json", code=0 if row.plan else 2)
        assert not row.plan or cli.json["items"] == images
        cli("build" if row.plan else "repack", typed, out, *options, "-q")
        if not row.open:
            with pytest.raises(StokerError):
                stoker.open(typed)
        else:
            assert check_classes(typed, want, masks="--masks" in options) == (row.fields if row.plan else frozenset())
    assert check_classes(out, want) == row.fields


def test_the_table_has_a_row_for_each_source() -> None:
    assert sorted(row.source for row in ROWS) == sorted(MAKERS)


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.source)
def test_a_row_here(row: Row, here: Path, expected_classes: dict[str, Classes], tmp_path: Path, cli: Cli) -> None:
    check_row(row, here, expected_classes[row.source], tmp_path / "out", cli)


@pytest.mark.servers
@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
def test_rows_in_a_store(
    here: Path,
    expected_classes: dict[str, Classes],
    tmp_path: Path,
    cli: Cli,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = copy(here, store_folder("s3", request, monkeypatch))
    for number, row in enumerate(ROWS):
        check_row(row, root, expected_classes[row.source], tmp_path / str(number), cli)
