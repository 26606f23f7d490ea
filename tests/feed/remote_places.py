"""Datasets of this machine copied into stores, for the tests of reading from there."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

import stoker
from stoker.storage import RemotePath, location, stores

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

VIEW = stoker.RandomResizedCrop(16, hflip=0.5)


def folder_in(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, proxy: str = ""
) -> RemotePath:
    """An empty folder of a store, reached through the proxy at that URL, if one is given; with a cache of its own."""
    monkeypatch.setenv("STOKER_CACHE_DIR", str(request.getfixturevalue("tmp_path") / "user-cache"))
    server = request.getfixturevalue({"s3": "s3_server", "gs": "gcs_server", "hdfs": "hdfs_server"}[kind])
    if kind == "hdfs":
        found = location(f"{server.url}/{uuid.uuid4().hex}")
    else:
        for name, value in server.environment(proxy).items():
            monkeypatch.setenv(name, value)
        found = location(f"{kind}://{server.make_bucket()}/folder")
    monkeypatch.setattr(stores, "_opened", {})  # whoever was here before had another server or proxy
    assert isinstance(found, RemotePath)
    return found


def copy(local: Path, remote: RemotePath) -> RemotePath:
    for path in sorted(path for path in local.rglob("*") if path.is_file()):
        (remote / path.relative_to(local).as_posix()).write_bytes(path.read_bytes())
    return remote


def epochs(dataset: stoker.Dataset | stoker.Mix, count: int = 2, **settings: Any) -> list[list[np.ndarray[Any, Any]]]:
    """All that some epochs give: images, labels, keys and the mark of what is valid, batch by batch."""
    with stoker.Loader(dataset, **({"batch_size": 8, "view": VIEW, "seed": 5, "threads": 3} | settings)) as loader:
        found = []
        for _ in range(count):
            found += [[batch.images, batch.labels, batch.keys, batch.valid] for batch in loader]
        return found


def assert_same(first: list[list[np.ndarray[Any, Any]]], second: list[list[np.ndarray[Any, Any]]]) -> None:
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        for array, like in zip(one, other, strict=True):
            np.testing.assert_array_equal(array, like)
