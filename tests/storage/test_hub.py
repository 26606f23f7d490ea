"""Datasets of the Hugging Face Hub: read as their copies are, at one commit, listed once."""

from __future__ import annotations

import pickle
import traceback
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from reference import pictures
from stoker.errors import ConfigError, StorageError
from stoker.forks import PerProcess
from stoker.storage import from_uri, location, retrying, stores, web
from storage import hub_server
from storage.store_folders import forget
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from storage.hub_server import Hub

HOME = f"hf://datasets/{hub_server.REPOSITORY}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(web, "_client", PerProcess(web._Client))
    for name in ("HF_TOKEN", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    forget(monkeypatch)
    with hub_server.serving() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def photos(names: tuple[str, ...]) -> dict[str, bytes]:
    files = {"README.md": b"# Pets\n"}
    for number, name in enumerate(names):
        pixels = np.random.default_rng(number).integers(0, 256, (20 + 20 * (number % 2), 30, 3), np.uint8)
        files[f"data/train/{name}"] = pictures.encode(Image.fromarray(pixels))
    return files


NAMES = tuple(f"{kind}/a photo #{number}?100%.jpg" for kind in ("cat", "dog") for number in range(5))


def test_a_dataset_is_that_of_its_copy(tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    files = photos(NAMES)
    sizes = [len(data) for data in files.values()]
    assert min(sizes) < hub_server.LARGE < max(sizes)
    sha = hub.commit(files)
    here = stoker.open(write_files(tmp_path / "copy", files) / "data", "train")
    there = stoker.open(f"{HOME}/data", "train")
    assert [sample.encoded for sample in there] == [sample.encoded for sample in here]
    assert there.identity == here.identity
    assert there.path == f"{HOME}@{sha}/data"
    pages = [path for path in hub.requests if "/tree/" in path]
    assert len(pages) == len(set(pages)) == -(-(len(files) + 4) // hub_server.PAGE)
    # A process that opens it later reads the same commit.
    sent = pickle.dumps(there)
    hub.commit(photos(NAMES[:3]))
    forget(monkeypatch)
    assert len(pickle.loads(sent)) == len(NAMES)
    forget(monkeypatch)
    assert len(stoker.open(f"{HOME}/data", "train")) == 3
    assert len(stoker.open(f"{HOME}@{sha}/data", "train")) == len(NAMES)
    reports = [
        stoker.build(source, tmp_path / name, progress=False).manifest
        for source, name in ((f"{HOME}@{sha}/data", "there"), (tmp_path / "copy/data", "here"))
    ]
    assert reports[0].dataset_id == reports[1].dataset_id


def test_a_file_is_asked_for_where_it_was_last(hub: Hub) -> None:
    data = bytes(range(256)) * 16
    hub.commit({"shard.tar": data}, "refs/convert/parquet")
    tar = location(f"{HOME}@refs/convert/parquet/shard.tar")
    assert [tar.read_range(start, 100, len(data)) for start in (0, 700)] == [data[:100], data[700:800]]
    assert sum("/resolve/" in path for path in hub.requests) == 1
    hub.signatures = ["Signature=s2"]  # the other has ended
    assert tar.read_range(9, 9, len(data)) == data[9:18]
    assert tar.read_bytes() == data
    assert sum("/resolve/" in path for path in hub.requests) == 2
    assert from_uri(tar.to_uri()) == tar


def test_the_token_is_for_the_hub_alone(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hub.is_private = True
    hub.commit({"small": b"s", "large": b"l" * 2000})
    with pytest.raises(PermissionError, match="private or gated; see HF_TOKEN") as caught:
        location(f"{HOME}/small")
    file = location(f"{HOME}/large", token=hub_server.TOKEN)
    assert file.read_bytes() == b"l" * 2000  # of a server that refuses the token
    sent = pickle.dumps(file)
    forget(monkeypatch)
    assert pickle.loads(sent).read_bytes() == b"l" * 2000
    forget(monkeypatch)
    write_files(tmp_path, {"home/token": f"{hub_server.TOKEN}\n"})
    assert location(f"{HOME}/small").read_bytes() == b"s"
    assert hub_server.TOKEN not in f"{file!r}{stores.given!r}{traceback.format_exception(caught.value)}"


def test_what_cannot_be_read_is_told(hub: Hub) -> None:
    hub.commit({f"{number}": b"x" for number in range(12)})
    with pytest.raises(FileNotFoundError, match="no such dataset or revision"):
        location(f"{HOME}@v9/x")
    with pytest.raises(FileNotFoundError):
        location(f"{HOME}/nothing").read_bytes()
    with pytest.raises(StorageError, match="only read"):
        location(f"{HOME}/x").write_atomically(b"")
    hub.endless = True
    hub.commit({f"{number}": b"y" for number in range(12)})
    stores._stores.get().opened.clear()
    with pytest.raises(StorageError, match="do not end"):
        location(f"{HOME}@{hub.branches['main']}").children()
    for url in ("hf://datasets/pets", "hf://owner/model/x"):
        with pytest.raises(ConfigError, match="write"):
            location(url)


def test_the_stand_in_is_one_for_their_client_too(hub: Hub) -> None:
    import huggingface_hub as client  # noqa: PLC0415 - an optional package

    files = photos(NAMES)
    sha = hub.commit(files)
    api = client.HfApi(endpoint=hub.url, token=False)
    listed = api.list_repo_tree(hub_server.REPOSITORY, recursive=True, repo_type="dataset", revision=sha)
    theirs = {entry.path: entry.size for entry in listed if hasattr(entry, "size")}
    ours = {entry.key: entry.size_bytes for entry in location(HOME).store.entries("")}
    assert ours == theirs == {name: len(data) for name, data in files.items()}
    assert api.dataset_info(hub_server.REPOSITORY).sha == location(HOME).root.rpartition("@")[2]
