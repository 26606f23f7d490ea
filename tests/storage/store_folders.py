"""A folder in each store, of its own for each test."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from stoker.storage import StoreLocation, location, stores

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SERVERS = {"gs": "gcs", "az": "azure"}
STORES = ("s3", "gs", "az")


def store_folder(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, proxy: str = ""
) -> StoreLocation:
    """Return an empty folder of a store; reached through the proxy at that URL, if one is given."""
    server = request.getfixturevalue(f"{SERVERS.get(kind, kind)}_server")
    if kind == "hdfs":
        folder = location(f"{server.url}/{uuid.uuid4().hex}")
    else:
        for name, value in server.environment(proxy).items():
            monkeypatch.setenv(name, value)
        folder = location(f"{kind}://{server.make_bucket()}/folder")
    monkeypatch.setattr(stores._stores.get(), "opened", {})  # an earlier test had another server or proxy
    assert isinstance(folder, StoreLocation)
    return folder


def copy(local: Path, remote: StoreLocation) -> StoreLocation:
    """Put every file below a folder into a store, under the same names; return where."""
    names = [path.relative_to(local).as_posix() for path in local.rglob("*") if path.is_file()]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: (remote / name).write_atomically((local / name).read_bytes()), names))
    return remote


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what a new process would not have."""
    monkeypatch.setattr(stores._stores.get(), "opened", {})
    monkeypatch.setattr(stores, "given", stores.Given())
