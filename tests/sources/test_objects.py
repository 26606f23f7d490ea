"""One row for each object; loading what has changed since it was listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from sources.making import content, fill, listing, tar_of, write, xml
from stoker.errors import SourceError
from stoker.sources import Item, ItemTableBuilder, with_objects

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path, "train/n01/1.jpg", "train/n01/2.jpg", "train/n02/3.jpg", "val/n01/4.jpg", "val/n02/5.jpg")
    annotations = {
        "train/n01/2": xml(("n01", "0", "0", "9", "9"), ("n02", "0", "0", "9", "9"), ("n01", "0", "0", "50", "50")),
        "train/n02/3": xml(("n02", "0", "0", "9", "9")),
        "val/n01/4": "<annotation>",
        "val/n02/5": xml(*[("n02", "0", "0", "9", "9")] * 3),
    }
    return write(tmp_path, {f"Annotations/{name}.xml": text for name, text in annotations.items()})


def test_each_object_is_a_row(root: Path) -> None:
    tree = listing(root)
    reported = []
    objects = with_objects(tree, lambda **numbers: reported.append((numbers["done"], numbers["total"])))
    assert [(item.name.decode(), item.object) for item in objects.table] == [
        ("1.jpg", -1), ("2.jpg", 0), ("2.jpg", 1), ("3.jpg", 0),
        ("4.jpg", -1), ("5.jpg", 0), ("5.jpg", 1), ("5.jpg", 2),
    ]  # fmt: skip
    assert {split: rows.tolist() for split, rows in objects.splits.items()} == {
        "train": [0, 1, 2, 3],
        "validation": [4, 5, 6, 7],
    }
    assert objects.classes == tree.classes
    assert objects.table[2].label == tree.table[1].label
    assert len(objects.load(objects.table[2], "train").boxes) == 2  # `object` says which of them is meant
    assert objects.fingerprint() != tree.fingerprint()
    assert reported[0] == (0, 5)


def test_rows_of_tars_keep_their_offsets(tmp_path: Path) -> None:
    (tmp_path / "some.tar").write_bytes(tar_of("a/1.jpg", "b/2.jpg"))
    objects = with_objects(listing(tmp_path / "some.tar"))
    assert [objects.load(item, "train").data for item in objects.table] == [content("1.jpg"), content("2.jpg")]


def test_a_tar_that_became_shorter_is_an_error_of_the_image(tmp_path: Path) -> None:
    path = tmp_path / "some.tar"
    path.write_bytes(tar_of("a/1.jpg", "b/2.jpg"))
    tree = listing(path)
    with path.open("r+b") as file:
        file.truncate(tree.table[1].columns["offset"] + 3)
    assert tree.load(tree.table[0], "train").data == content("1.jpg")
    with pytest.raises(SourceError, match="has become shorter since it was listed"):
        tree.load(tree.table[1], "train")


def test_an_image_larger_than_a_record_can_be_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, "a/1.jpg")
    tree = listing(tmp_path)
    with pytest.raises(SourceError, match="larger than"):
        tree.load(Item(b"a/1.jpg", 0, 2**31), "train")


@pytest.mark.slow
def test_a_table_keeps_every_column(tmp_path: Path) -> None:
    items = [Item(b"%d.jpg" % n, n % 3 - 1, n * 7, n * 2**33, n % 4 - 1, {"offset": n}) for n in range(40_000)]
    builder = ItemTableBuilder()
    for item in items:
        builder.add(item)
    table = builder.finish()
    assert list(table) == items
    assert [item.columns for item in table] == [item.columns for item in items]
    rows = np.random.default_rng(1).permutation(len(items))
    assert list(table.take(rows)) == [items[row] for row in rows.tolist()]
