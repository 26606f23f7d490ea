"""A saved listing: the same source as was listed, and no damaged file is taken for one."""

from __future__ import annotations

import dataclasses
import re
import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sources.layouts import LAYOUTS
from sources.making import fill, read_back
from stoker import _native
from stoker.errors import SourceError
from stoker.sources import Source, SourceOptions, list_source, read_listing, with_objects
from stoker.storage import location

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.sources import Item
    from stoker.types import Box

TABLE = ("labels", "sizes", "numbers", "objects")


def boxes_of(tree: Source, item: Item, split: str) -> list[Box] | str:
    try:
        return tree.read_boxes(item, split)
    except SourceError as error:
        return str(error)


def loaded(tree: Source, item: Item, split: str) -> tuple[object, str]:
    """The bytes of an image and its other fields, or what is wrong with them."""
    try:
        image = tree.load(item, split)
    except (OSError, SourceError) as error:
        return None, str(error)
    return image.data, str(image.fields)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_source_of_any_layout_comes_back(layout: str, tmp_path: Path) -> None:
    tree = list_source(str(LAYOUTS[layout](tmp_path)))
    again = read_back(tree, tmp_path)
    for field in dataclasses.fields(Source):
        if field.name not in ("table", "splits", "boxes", "reader"):
            assert getattr(again, field.name) == getattr(tree, field.name), field.name
    assert again.table.columns.keys() == tree.table.columns.keys()
    for name in TABLE:
        np.testing.assert_array_equal(getattr(again.table, name), getattr(tree.table, name))
    first, second = ({name: rows.tolist() for name, rows in each.splits.items()} for each in (tree, again))
    assert first == second
    assert again.fingerprint() == tree.fingerprint()
    assert again.stored.to_json() == tree.stored.to_json()
    assert again.boxes.keys() == tree.boxes.keys()
    for split, rows in tree.splits.items():
        for row in rows.tolist():
            item = tree.table[row]
            assert again.table[row] == item
            assert again.table[row].columns == item.columns
            assert boxes_of(again, item, split) == boxes_of(tree, item, split)
            assert again.stored.locate(item) == tree.stored.locate(item)
            assert loaded(again, item, split) == loaded(tree, item, split)
    for objects in (with_objects(again), with_objects(tree)):
        fields = {
            item.key: loaded(tree, item, split)[1]
            for split, rows in tree.splits.items()
            for item in tree.table.take(rows)
        }
        for split, rows in objects.splits.items():
            assert all(loaded(objects, item, split)[1] == fields[item.key] for item in objects.table.take(rows))


def test_boxes_of_a_list_and_objects_come_back(tmp_path: Path) -> None:
    root = fill(tmp_path / "src", "a/1.jpg", "a/2.jpg", "b/3.jpg")
    (tmp_path / "boxes.csv").write_text("1.jpg,0.1,0.2,0.3,0.4\n1.jpg,0,0,1,1\n3.jpg,0.5,0.5,0.75,1\n")
    tree = with_objects(list_source(str(root), SourceOptions(boxes=str(tmp_path / "boxes.csv"))))
    again = read_back(tree, tmp_path)
    assert list(again.table) == list(tree.table)
    assert len(tree.table) == 4
    boxes = [[each.read_boxes(item, "train") for item in each.table] for each in (tree, again)]
    assert boxes[0] == boxes[1]


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("listing")
    read_back(list_source(str(fill(folder / "src", "a/1.jpg", "b/2.jpg", "b/3.jpg"))), folder)
    return folder / "listing"


@given(data=st.data())
def test_a_changed_byte_or_a_cut_is_found(listing: Path, data: st.DataObject) -> None:
    content = bytearray(listing.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] ^= data.draw(st.integers(1, 255))
    else:
        del content[at:]
    changed = location(listing.with_name("changed"))
    changed.write_atomically(bytes(content))
    assert read_listing(changed) is None


@pytest.mark.parametrize(
    "changed",
    [
        (rb'("value": ?)-?[0-9]+', rb"\g<1>-14444444444444444"),
        (rb'("value": ?)-?[0-9]+', rb"\g<1>1000000000000000000000000000000"),
        (rb'("at": ?)[0-9]+(, ?"bytes")', rb"\g<1>1\2"),
        (rb'("type": ?")[^"]+', rb"\g<1>(x,)i4"),
    ],
    ids=["too small a number", "too large a number", "bytes that cannot be mapped", "no type"],
)
def test_what_no_column_holds_is_damage(listing: Path, changed: tuple[bytes, bytes]) -> None:
    content = listing.read_bytes()
    (length,) = struct.unpack("<Q", content[-12:-4])
    columns, text = content[: -12 - length], content[-12 - length : -12]
    changed_text = re.sub(*changed, text)
    assert changed_text != text
    end = struct.pack("<QI", len(changed_text), _native.crc32c(columns + changed_text))
    file = location(listing.with_name("changed"))
    file.write_atomically(columns + changed_text + end)
    assert read_listing(file) is None


def test_no_file_is_no_listing(tmp_path: Path) -> None:
    assert read_listing(location(tmp_path) / "listing") is None
