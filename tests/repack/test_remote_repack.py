"""Records in stores are repacked as those on a disk are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loader.remote_datasets import copy
from stoker.cli.main import main
from stoker.format.manifest import read_manifest
from stoker.loader import open_records
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from pathlib import Path

    from servers.faults import FaultProxy

pytestmark = pytest.mark.servers

SMALL = ["--resize", "short:40", "--seed", "5", "--shards", "2"]


@pytest.fixture
def repacked(dataset: Path, tmp_path: Path) -> str:
    """The id of what a repack on this machine gives."""
    assert main(["repack", str(dataset), str(tmp_path / "local"), *SMALL]) == 0
    return read_manifest(tmp_path / "local").dataset_id


@pytest.mark.parametrize("kind", ["s3", "gs", "hdfs"])
def test_the_same_dataset(
    kind: str,
    dataset: Path,
    repacked: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remote = store_folder(kind, request, monkeypatch)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    source = copy(dataset, remote / "a")
    assert main(["repack", str(source), str(remote / "b"), *SMALL]) == 0
    assert read_manifest(remote / "b").dataset_id == repacked
    assert not (remote / "b/.stoker-build").exists()
    if kind == "s3":
        assert main(["repack", str(source), str(tmp_path / "down"), *SMALL]) == 0
        assert main(["repack", str(tmp_path / "local"), str(remote / "c"), "--recipe", "keep"]) == 0
        assert read_manifest(tmp_path / "down").dataset_id == repacked
        assert main(["repack", f"{source}/train-*", str(remote / "d"), *SMALL]) == 0
        assert main(["repack", str(source), str(source), *SMALL]) == 2


def test_records_are_listed_in_long_ranges(
    faulty_s3: FaultProxy,
    dataset: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    remote = store_folder("s3", request, monkeypatch, faulty_s3.url)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    source = copy(dataset, remote)
    faulty_s3.forget()
    records = open_records(str(source), None)
    assert records.latency == "store"
    assert len(records.table) == 50
    asked = [seen for seen in faulty_s3.traffic.seen if seen.method == "GET" and ".tfrecord?" not in seen.path]
    assert sum(seen.path.endswith(".tfrecord") for seen in asked) <= 6
    item = records.table[7]
    assert records.load(item, "train") == open_records(str(dataset), None).load(item, "train")


def test_a_damaged_record_is_rejected(
    dataset: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = store_folder("s3", request, monkeypatch)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))
    source = copy(dataset, remote / "a")
    shard = next(iter(sorted(dataset.glob("train-*.tfrecord"))))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    (source / shard.name).write_atomically(data)
    assert main(["repack", str(source), str(remote / "b"), *SMALL]) == 3
    assert main(["repack", str(remote / "nothing"), str(remote / "c"), *SMALL]) == 2
