"""Datasets that earlier versions wrote: read, verified, resumed and repacked by this one.

Each folder of ``datasets/`` was written by ``scripts/compat_dataset.py`` with the Stoker of its time, and never
changes. If a test here fails, what users have on their disks has become unreadable or something else: fix the code,
and not the folder.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from scripts import compat_dataset
from small_cases import each
from small_datasets import change_manifest
from stoker.cli.main import main
from stoker.errors import NewerManifestError
from stoker.fields import KINDS
from stoker.format import ListedFile, read_manifest
from stoker.inspect import verify_dataset

if TYPE_CHECKING:
    from commands import Cli

DATASETS = Path(__file__).parent / "datasets"
NAMES = sorted(folder.name for folder in DATASETS.iterdir())


def expected(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DATASETS / name / "expected.json").read_text(encoding="utf-8"))
    return content


def test_all_of_them_are_here() -> None:
    first = {"kept", "resized", "raw-one-hot", "dlbs", "nvidia", "one-hot", "gzip", "zlib", "objects"}
    later = {"planes", "background", "restart", "numbered", "tfds", "fast", "version-2", "fields"}
    assert first | later == set(NAMES)
    versions = {name: read_manifest(DATASETS / name / "dataset").version for name in NAMES}
    assert {name for name, version in versions.items() if version == 2} == {"version-2", "fields"}


@each("name", NAMES)
def test_every_record_is_what_it_was(name: str) -> None:
    wanted = expected(name)
    for split, records in wanted["splits"].items():
        dataset = stoker.open(DATASETS / name / "dataset", split=split)
        assert compat_dataset.contents(dataset) == records
        assert [label.name for label in dataset.classes] == wanted["classes"]
        assert dataset.manifest is not None
        assert dataset.manifest.dataset_id == wanted["dataset_id"]


def test_every_field_is_what_it_was() -> None:
    wanted = expected("fields")
    for split, values in wanted["values"].items():
        dataset = stoker.open(DATASETS / "fields" / "dataset", split=split)
        assert {name: field.to_json() for name, field in dataset.fields.items()} == wanted["fields"]
        assert list(dataset.schema.box_names) == wanted["box_names"]
        assert compat_dataset.values(dataset) == values
        with stoker.Loader(dataset, 2, transform=stoker.CenterCrop(8), fields=list(wanted["fields"])) as loader:
            captions = [caption for batch in loader for caption in batch.fields["caption"]]
        assert captions == [record["caption"] for record in values]
    kinds = {field["kind"] for field in wanted["fields"].values()}
    assert kinds | {"boxes"} == {field.kind for field in compat_dataset.KINDS.values()} == set(KINDS)


@each("name", NAMES)
def test_a_run_that_an_earlier_version_stopped_goes_on_as_it_would_have(name: str) -> None:
    wanted = expected(name)
    loader = compat_dataset.loader(stoker.open(DATASETS / name / "dataset", split="train"))
    loader.load_state_dict(wanted["state"])
    assert compat_dataset.batches(loader) == wanted["rest"]


@pytest.mark.parametrize("name", NAMES)
def test_verify_finds_nothing(name: str, cli: Cli) -> None:
    assert json.loads(cli("verify", DATASETS / name / "dataset", "--json"))["problems"] == []


@pytest.mark.parametrize("name", NAMES)
def test_repack_keeps_every_record(name: str, tmp_path: Path) -> None:
    has_fields = "fields" in expected(name)
    options = ["--label-base", "0", *([] if has_fields else ["--preset", "tfds"])]
    assert main(["repack", str(DATASETS / name / "dataset"), str(tmp_path / "new"), *options]) == 0
    base = 1 if expected(name)["classes"][0] == "background" else 0
    assert read_manifest(tmp_path / "new").version == 2
    assert verify_dataset(tmp_path / "new").problems == ()
    for split, records in expected(name)["splits"].items():
        dataset = stoker.open(tmp_path / "new", split=split)
        old = stoker.open(DATASETS / name / "dataset", split=split)
        same = old.schema.image_encoding == "file"  # raw pixels become a JPEG of quality 100
        repacked = [(record["label"], record["pixels"] * same) for record in compat_dataset.contents(dataset)]
        assert sorted(repacked) == sorted((record["label"] - base, record["pixels"] * same) for record in records)
        if has_fields:
            assert sorted(map(str, compat_dataset.values(dataset))) == sorted(map(str, expected(name)["values"][split]))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATASETS / "kept" / "dataset", tmp_path / "dataset"))


def test_a_manifest_of_a_newer_format_is_refused(copied: Path, cli: Cli) -> None:
    change_manifest(copied, version=3, stoker_version="9.9.9")
    message = r"written by a newer Stoker \(format version 3, this one reads up to 2\): install Stoker >= 9\.9\.9"
    with pytest.raises(NewerManifestError, match=message):
        stoker.open(copied, split="train")
    assert re.search(message, cli("verify", copied, code=1))


def test_keys_that_a_later_version_added_are_passed_over(copied: Path) -> None:
    files = {name: ListedFile.of((copied / name).read_bytes()) for name in ("labels.txt", "rejects.jsonl")}
    listed = {name: {"bytes": file.size_bytes, "crc32c": f"{file.crc32c:08x}"} for name, file in files.items()}
    change_manifest(copied, version=2, files=listed, written_on_a="Tuesday", stoker_version="9.9.9")
    assert compat_dataset.contents(stoker.open(copied, split="train")) == expected("kept")["splits"]["train"]


@pytest.mark.parametrize("change", [{"version": 2}, {"weather": "fair"}])
def test_a_state_of_a_newer_format_is_refused(change: dict[str, object]) -> None:
    loader = compat_dataset.loader(stoker.open(DATASETS / "kept" / "dataset", split="train"))
    with pytest.raises(stoker.errors.ConfigError, match="state"):
        loader.load_state_dict(expected("kept")["state"] | change)
