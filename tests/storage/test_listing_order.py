"""Listings lose nothing, in whatever order a store keeps its keys, and go on where they broke off."""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING, Any

import pytest

from stoker.errors import ClosedError
from stoker.storage import RetryingStore, stop_waiting_when
from stoker.storage.backend import Entry, StoreError
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

KEYS = ("a/1.jpg", "a-b/2.jpg", "a.jpg", "a/b/3.jpg", "z.jpg", "b/4.jpg", "b/c.jpg", "b/c/5.jpg")


@pytest.fixture(params=["s3", "gs", "hdfs"])
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return store_folder(request.param, request, monkeypatch)


def test_everything_is_listed_and_from_any_key_on(folder: StoreLocation) -> None:
    keys = [f"{folder.key}/{key}" for key in KEYS if "." in key]
    for key in keys:
        if key.endswith("b/c/5.jpg") and folder.root.startswith("hdfs"):
            continue  # a file and a folder cannot have one name there
        (folder / key.removeprefix(f"{folder.key}/")).write_atomically(b"x")
    listed = [entry.key for entry in folder.store.entries(folder.key)]
    assert sorted(listed) == sorted(set(listed))
    assert set(keys) - set(listed) <= {f"{folder.key}/b/c/5.jpg"}
    for at, key in enumerate(listed):
        rest = [entry.key for entry in folder.store._backend.entries(folder.key, key)]
        assert [other for other in rest if other != key] == listed[at + 1 :]


class Breaking:
    """A store that keeps an order of its own, and breaks off after every second entry."""

    name = "test://"
    has_listings = True

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys

    def entries(self, prefix: str, after: str | None) -> Iterator[Entry]:  # noqa: ARG002
        start = 0 if after is None else self.keys.index(after)  # it comes again
        for number, key in enumerate(self.keys[start:]):
            if number == 2:
                raise StoreError("broke off")
            yield Entry(key, 1)


def test_a_listing_goes_on_where_it_broke_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.storage.retrying._FIRST_WAIT", 0.0)
    keys = ["c", "a/1", "a.b", "b", "0", "x"]
    backend: Any = Breaking(keys)
    assert [entry.key for entry in RetryingStore(backend).entries("")] == keys


def test_a_listing_stops_when_it_is_closed() -> None:
    stop = threading.Event()
    backend: Any = Breaking(["a", "b"])
    listing = RetryingStore(backend).stoppable(stop).entries("")
    assert next(listing).key == "a"
    stop.set()
    with pytest.raises(ClosedError, match="stopped while listing test://"):
        next(listing)


def test_a_long_object_is_read_ahead(folder: StoreLocation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.storage.copies._CHUNK_BYTES", 1000)
    data = bytes(range(256)) * 100
    (folder / "long").write_atomically(data)
    with (folder / "long").reader() as file:
        for at in (0, 10, 990, 1500, 2100, 3300, 9000, 4000, 25_590, 0):
            file.seek(at)
            assert file.read(700) == data[at : at + 700]


def test_an_object_that_is_too_long_is_not_read(folder: StoreLocation) -> None:
    path = folder / "long"
    path.write_atomically(bytes(100))
    assert len(path.store.read(path.key, limit=100)) == 100
    with pytest.raises(OSError, match="100 bytes, more than 99") as caught:
        path.store.read(path.key, limit=99)
    assert caught.value.errno == errno.EFBIG


def test_a_thread_stops_waiting(folder: StoreLocation) -> None:
    path = folder / "object"
    path.write_atomically(b"x")
    stop = threading.Event()
    results: list[object] = []

    def read() -> None:
        stop_waiting_when(stop)
        results.append(path.read_bytes())
        stop.set()
        try:
            path.read_bytes()
        except ClosedError as error:
            results.append(type(error))

    thread = threading.Thread(target=read)
    thread.start()
    thread.join(20)
    assert results == [b"x", ClosedError]
    assert path.read_bytes() == b"x"  # in another thread
