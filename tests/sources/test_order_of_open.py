"""Unshuffled, `stoker.open` reads lists, tables, tars and Parquet in their own order; a build has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import stoker
from reference import pictures
from sources.coco_files import write_json
from sources.layouts import LAYOUTS
from sources.making import content, fill, listing, write
from stoker.errors import ConfigError, StokerError
from stoker.loader.feed import RunIdentity
from stoker.order import Position
from stoker.sources import with_objects

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from stoker.sources import Source

MORE = [f"{number}.jpg" for number in range(11)]
ORDERS: dict[tuple[str, str], list[tuple[str | None, int]]] = {
    ("imagenet_tars", "validation"): [("ILSVRC2012_val_00000002.JPEG", 0), ("ILSVRC2012_val_00000001.JPEG", 1)],
    ("imagenet_download", "train"): [("n01751748_1.JPEG", 1), ("n01440764_7.JPEG", 0), ("n01440764_8.JPEG", 0)],
    ("one_tar", "train"): [("1.jpg", 1), ("2.jpg", 2), ("3.jpg", 0)],
    ("webdataset", "train"): [("1.jpg", 2), ("2.jpg", 0)],
    ("webdataset_tar", "validation"): [("1.jpg", -1), ("2.jpg", -1)],
    ("webdataset_braces", "train"): [("0.jpg", 0), ("1.jpg", 1)],
    ("parquet", "train"): [("0.jpg", 0), ("1.jpg", 1), ("2.jpg", 2), ("3.jpg", 0)],
    ("parquet", "validation"): [("4.jpg", 1), (None, 2), (None, 0), ("7.jpg", 1)],
    ("file_list", "train"): [
        *[("1.jpg", 0), (" 2.jpg", 0), (None, 1), ("3.jpg", 2), ("1.jpg", 0)],
        *[(name, 1) for name in MORE],
        (None, 1),
    ],
    ("labelled_list", "train"): [
        *[("1.jpg", 7), ("2.jpg", -1), (None, 0), ("3.jpg", 2)],
        *[(name, number % 3) for number, name in enumerate(MORE)],
    ],
    ("metadata", "train"): [("1.jpg", 0), ("2.jpg", 1), (".3.jpg", -1), (None, 0)],
    ("metadata_lines", "train"): [(f"{number}.jpg", number % 3) for number in range(5)],
    ("coco_boxes", "validation"): [("2.jpg", -1), ("1.jpg", -1), (None, -1), (".hidden.jpg", -1)],
    ("coco_splits", "train"): [("2.jpg", -1), (None, -1), ("1.jpg", -1)],
    ("roboflow_coco", "train"): [("2.jpg", -1), ("1.jpg", -1)],
    ("mapped_list", "train"): [("1.jpg", 0), ("2.jpg", 1)],
    ("pipeline_config", "train"): [("1.jpg", 0), ("2.jpg", 1)],
}
"""Name, None where there is no image, and label of what is opened of each layout that has an order."""
NAMES = {content(name): name for rows in ORDERS.values() for name, _ in rows if name}


def seen(dataset: stoker.Dataset, index: int) -> tuple[str | None, int]:
    """The name that the content of an image tells, and its label."""
    try:
        data = dataset.records.read(index)
    except (OSError, StokerError):
        data = b""
    return NAMES.get(data), int(dataset.labels[index])


@pytest.mark.filterwarnings("ignore::stoker.errors.SourceWarning")
@pytest.mark.parametrize(("layout", "split"), ORDERS)
def test_a_source_with_an_order_is_opened_in_it(tmp_path: Path, layout: str, split: str) -> None:
    dataset = stoker.open(LAYOUTS[layout](tmp_path / "source"), split)
    assert [seen(dataset, index) for index in range(len(dataset))] == ORDERS[layout, split]


@pytest.mark.parametrize("layout", sorted(LAYOUTS.keys() - {layout for layout, _ in ORDERS}))
def test_folders_are_opened_class_by_class(tmp_path: Path, layout: str) -> None:
    tree = listing(LAYOUTS[layout](tmp_path / "source"))
    assert all(tree.rows_as_listed(split) is rows for split, rows in tree.splits.items())


LABELS = [1, 0, 2, 1, 0, 2]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table whose rows are ordered neither by class nor by name."""
    root = tmp_path / "table"
    rows = ["file_name,label,caption"]
    for row, label in enumerate(LABELS):
        fill(root, name := f"images/{9 - row}.jpg")
        (root / name).write_bytes(pictures.jpeg(16, 16, row))
        rows.append(f"{name},{label},row {row}")
    (root / "metadata.csv").write_text("\n".join(rows))
    return root


def test_numbers_mean_rows_in_batches_parts_and_fields(table: Path) -> None:
    dataset = stoker.open(table)
    with stoker.Loader(dataset, batch_size=6, transform=stoker.Resize(8), fields=["caption"]) as loader:
        batch = next(iter(loader))
    assert (batch.indices.tolist(), batch.labels.tolist()) == (list(range(6)), LABELS)
    assert list(batch.fields["caption"]) == [f"row {row}" for row in range(6)]
    assert [sample.source for sample in dataset[2:4]] == ["images/7.jpg", "images/6.jpg"]
    assert dataset.filter(labels=[0]).numbers == range(1, 7, 3)
    halves = dataset.random_split([0.5, 0.5])
    assert sorted(number for half in halves for number in half.numbers) == list(range(6))


def state_before(tree: Source) -> dict[str, object]:
    """What a loader of all 6 images of train saved after 4 when the order of the table was that of all sources."""
    return RunIdentity(f"{tree.fingerprint()}-6/train", 0, False, 6).state_at(Position(0, 4))


def test_states_of_another_order_are_refused(table: Path) -> None:
    opened = stoker.open(table)
    with stoker.Loader(opened, batch_size=2, transform=stoker.Resize(8)) as loader:
        with pytest.raises(ConfigError, match="the samples and their order"):
            loader.load_state_dict(state_before(listing(table)))
        loader.load_state_dict(loader.state_dict())
    lines = (table / "metadata.csv").read_text().splitlines()
    (table / "metadata.csv").write_text("\n".join([lines[0], *lines[:0:-1]]))
    turned = stoker.open(table)
    assert turned.labels.tolist() == LABELS[::-1]
    assert turned.identity != opened.identity


def test_states_of_a_folder_stay_valid(tmp_path: Path) -> None:
    write(tmp_path, {f"{number % 2}/{number}.jpg": pictures.jpeg(16, 16, number) for number in range(6)})
    with stoker.Loader(stoker.open(tmp_path), batch_size=2, transform=stoker.Resize(8)) as loader:
        loader.load_state_dict(state_before(listing(tmp_path)))
        assert [batch.indices.tolist() for batch in loader] == [[4, 5]]


def captions(root: Path) -> Path:
    fill(root, "train2017/a.jpg", "train2017/b.jpg", "train2017/c.jpg")
    images = [{"id": at, "file_name": f"{name}.jpg", "width": 80, "height": 60} for at, name in enumerate("cab")]
    values: list[dict[str, object]] = [{"image_id": at, "caption": f"of {at}"} for at in range(3)]
    values += [{"image_id": at % 2, "category_id": 1, "bbox": [at, 2, 30, 40]} for at in range(3)]
    document = {"images": images, "annotations": values, "categories": [{"id": 1, "name": "x"}]}
    return write_json(root / "annotations/instances_train2017.json", document)


def urls(root: Path) -> Path:
    rows = "".join(f"https://x.y/{3 - n},{n % 2},c{n}\n" for n in range(3))
    return write(root, {"urls.csv": "url,label,caption\n" + rows}) / "urls.csv"


@pytest.mark.parametrize(
    ("make", "fingerprints"),
    [
        (LAYOUTS["metadata"], {"22641bafefecbfe5d7df72dcfcb2e85c"}),
        (LAYOUTS["metadata_lines"], {"e982712ff25c6be7b2c9cbf39fee7e4d"}),
        (captions, {"d170285af24918c60ffe4703a6fcb020", "cd536fb53a51aa7b9d770457c7f98c66"}),
        (urls, {"2cf8108d9b8f983664b2f3e05e6e354e"}),
    ],
)
def test_fingerprints_are_in_build_order(tmp_path: Path, make: Callable[[Path], Path], fingerprints: set[str]) -> None:
    """Those of images and of objects, as they were when values were stored in the order of the table."""
    source = make(tmp_path / "source")
    for image in (tmp_path / "source").rglob("*.jpg"):
        image.write_bytes(image.name.encode() * 3)  # as they were then
    tree = listing(source)
    assert {tree.fingerprint(), with_objects(tree).fingerprint()} == fingerprints
