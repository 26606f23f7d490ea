"""``stoker cache``: what it lists, what it removes, and what it leaves alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import stoker
from loader.shards import behind, write_shards
from stoker import _native
from stoker.format.index import INDEXES_FOLDER, CachedIndex
from stoker.loader.caches import NodeCache

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from commands import Cli


def fill(cache: NodeCache, folder: Path, records: int) -> None:
    folder.mkdir()
    write_shards(folder, records, 1)
    source = behind(cache, stoker.open(folder))
    for number in range(records):
        source.read(number)


def document(cli: Cli, *words: object) -> Any:
    return json.loads(cli("cache", "--json", *words))


def test_entries_are_listed_and_cleared_unless_in_use(tmp_path: Path, cli: Cli) -> None:
    directory = tmp_path / "cache"
    fill(NodeCache(directory, "10MB"), tmp_path / "old", 12)
    busy = NodeCache(directory, "10MB")
    fill(busy, tmp_path / "busy", 6)
    idle, used = document(cli, "--dir", directory)["entries"]
    assert (idle["dataset"], idle["split"], idle["samples"], idle["in_use"]) == (
        str(tmp_path / "old"),
        "train",
        12,
        False,
    )
    assert (used["dataset"], used["in_use"]) == (str(tmp_path / "busy"), True)
    assert idle["bytes"] == sum(p.stat().st_blocks * 512 for p in directory.glob(f"{idle['key']}.samples"))
    out = cli("cache", "--dir", directory)
    assert "2 datasets" in out
    assert str(tmp_path / "old") in out
    stranger = directory / "notes.txt"
    stranger.write_text("not of this cache")
    removed = document(cli, "--dir", directory, "--clear")["removed"]
    assert [entry["key"] for entry in removed] == [idle["key"]]
    assert [entry["key"] for entry in document(cli, "--dir", directory)["entries"]] == [used["key"]]
    assert stranger.exists()
    assert busy.stats().errors == 0
    assert (tmp_path / "old").is_dir()


def test_without_a_directory_it_is_the_users(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "user"))
    assert document(cli)["indexes"] == {"files": 0, "bytes": 0}
    (shard,) = write_shards(tmp_path, 5, 1)
    rows = _native.scan_shard(str(shard), check=False)
    cached = CachedIndex.of(shard)
    cached.write(rows)
    assert cached.path is not None
    size = cached.path.stat().st_size
    assert document(cli)["indexes"] == {"files": 1, "bytes": size}
    fill(NodeCache(tmp_path / "user", "10MB"), tmp_path / "samples", 3)  # both may share the directory
    assert len(document(cli)["entries"]) == 1
    assert document(cli, "--clear")["indexes"]["files"] == 2  # with that of the samples
    assert list((tmp_path / "user" / INDEXES_FOLDER).iterdir()) == []
    assert document(cli)["entries"] == []


def test_what_is_not_a_cache_is_refused(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "notes.txt").write_text("not of a cache")
    for folder in (tmp_path, tmp_path / "nowhere"):
        assert "is not a Stoker cache" in cli("cache", "--dir", folder, "--clear", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_entry_without_description_is_still_listed(tmp_path: Path, cli: Cli) -> None:
    fill(NodeCache(tmp_path / "cache", "10MB"), tmp_path / "old", 4)
    (about,) = (tmp_path / "cache").glob("*.json")
    for damage in (b"", b"{}", b"[1]", b"\xff", b'{"dataset": 1, "split": 2, "samples": "x"}'):
        about.write_bytes(damage)
        (entry,) = document(cli, "--dir", tmp_path / "cache")["entries"]
        assert (entry["dataset"], entry["samples"]) == (None, None)
        cli("cache", "--dir", tmp_path / "cache")
        assert f"unknown ({entry['key']})" in cli.out
