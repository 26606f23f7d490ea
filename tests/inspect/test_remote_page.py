"""The page about what lies in a store is that about its copy on a disk."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import stoker
from builder.trees import write_tree
from page_checks import checked
from small_datasets import write_dataset
from stoker import _native
from stoker.cli.main import main
from stoker.format.index import write_index
from stoker.inspect import SheetSpec, write_sheet
from stoker.inspect.page import dataset_portrait, info_page
from storage.store_folders import copy, store_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.servers


@pytest.mark.parametrize("kind", ["dataset", "files"])
def test_the_page(kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    local = tmp_path / "birds"
    if kind == "dataset":
        write_dataset(local, {"train": [6, 5], "validation": [4]})
        for shard in local.glob("*.tfrecord"):
            write_index(shard, _native.scan_shard(str(shard)))
    else:
        write_tree(local, {"ant": 4, "bee": 4}, "ant/notes.jpg")
    remote = copy(local, store_folder("s3", request, monkeypatch))
    there, here = dataset_portrait(str(remote)), dataset_portrait(local)
    assert there.kind == kind
    same = {"path": "", "measured": here.measured, "rejects": here.rejects, "manifest": None}
    assert replace(there, **same) == replace(here, path="", manifest=None)
    assert [image.size_bytes for image in there.measured.seen] == [image.size_bytes for image in here.measured.seen]
    galleries = [[replace(shown, problem="") for shown in each.rejects.gallery] for each in (here, there)]
    assert galleries[0] == galleries[1]
    checked(info_page(there))
    assert main(["info", str(remote), "--html", str(tmp_path / "a.html")]) == 0
    assert re.search(r"<img src=\"data:", (tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "<img" not in stoker.open(str(remote), split="train")._repr_html_()
    spec = SheetSpec(transforms=(stoker.CenterCrop(32, 40), stoker.ObjectCrops(32)), count=2)
    write_sheet(str(remote), tmp_path / "there.png", spec)
    write_sheet(local, tmp_path / "here.png", spec)
    assert (tmp_path / "there.png").stat().st_size > 10_000
