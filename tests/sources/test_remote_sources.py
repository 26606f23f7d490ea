"""A source is the same wherever it lies: on this machine, in S3, in Google Cloud Storage, in HDFS."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from builder.trees import write_tree
from sources.layouts import LAYOUTS
from sources.making import listing
from sources.uploading import copied
from stoker.errors import SourceError
from stoker.sources import with_objects
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.sources import Source
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers


@pytest.fixture(params=["s3", "gs", "hdfs"])
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return store_folder(request.param, request, monkeypatch)


def content(tree: Source, top: str) -> dict[str, Any]:
    """Everything that a source tells, without where it lies."""
    rows = range(len(tree.table))
    split_of = {row: split for split, members in tree.splits.items() for row in members.tolist()}
    return {
        "classes": tree.classes,
        "texts": tree.texts,
        "items": [str(tree.table[row]).replace(top, "TOP") for row in rows],
        "splits": split_of,
        "ignored": tree.ignored,
        "warnings": [warning.replace(top, "TOP") for warning in tree.warnings],
        "boxes": {split: boxes.where.replace(top, "TOP") for split, boxes in tree.boxes.items()},
        "images": [str(_image(tree, row, split_of[row])).replace(top, "TOP") for row in rows],
        "fingerprint": tree.fingerprint(),
        "objects": with_objects(tree).fingerprint(),
    }


def _image(tree: Source, row: int, split: str) -> object:
    try:
        return tree.load(tree.table[row], split)
    except (OSError, SourceError) as error:  # whose words are the store's
        return type(error)


def test_an_unfinished_build_below_the_images_is_not_listed(tmp_path: Path, folder: StoreLocation) -> None:
    source = write_tree(tmp_path / "src", {"a": 2, "b": 1})
    url = copied(source, source, folder)
    (folder / "out/train-00000-of-00002").write_atomically(b"a shard that is finished")
    assert listing(url).classes == (b"a", b"b", b"out")
    (folder / "out/.stoker-build/settings.json").write_atomically(b"{}")
    there, here = listing(url), listing(source)
    assert (there.fingerprint(), there.ignored, there.warnings) == (here.fingerprint(), {"dataset": 1}, ())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_source_is_the_same_in_every_store(tmp_path: Path, folder: StoreLocation, layout: str) -> None:
    source = LAYOUTS[layout](tmp_path)
    url = copied(source, tmp_path, folder)
    here, there = listing(source), listing(url)
    assert there.latency == "store"
    assert here.latency == "disk"
    assert there.root == url
    expected = content(here, os.path.realpath(tmp_path))
    for what, actual in content(there, str(folder)).items():
        assert actual == expected[what], what
