"""What servers and networks do wrong, and what becomes of it."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from servers.faults import Answer, CutUpload, Fault, FaultProxy, Flip, Reset, Stall, Truncate
from stoker.errors import ClosedError, StorageError
from stoker.storage import objects, retrying
from storage.store_folders import SERVERS, STORES, store_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.azure import AzureServer
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

DATA = os.urandom(300_000)


@pytest.fixture(params=STORES)
def faulty(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[FaultProxy, StoreLocation]]:
    proxy: FaultProxy = request.getfixturevalue(f"faulty_{SERVERS.get(request.param, request.param)}")
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.02)
    yield proxy, store_folder(request.param, request, monkeypatch, proxy.url)
    proxy.faults = []


@pytest.mark.parametrize("action", [Answer(503), Answer(429), Answer(500), Reset(), Truncate(1000)], ids=str)
def test_reading_goes_on(faulty: tuple[FaultProxy, StoreLocation], action: Answer | Reset | Truncate | Flip) -> None:
    proxy, folder = faulty
    path = folder / "object"
    path.write_atomically(DATA)
    proxy.faults = [Fault(action, method="GET", path="object", count=3)]
    assert path.read_bytes() == DATA
    assert sum(proxy.traffic.faults.values()) == 3


@pytest.mark.parametrize("faulty", [store for store in STORES if store != "az"], indirect=True)  # which names no MD5
@pytest.mark.parametrize("action", [Truncate(1000, honest=True), Flip()], ids=str)
def test_what_a_digest_shows_is_read_again(faulty: tuple[FaultProxy, StoreLocation], action: Truncate | Flip) -> None:
    test_reading_goes_on(faulty, action)


@pytest.mark.parametrize("action", [Answer(503), Reset(), Truncate(100_000), Truncate(5, honest=True)], ids=str)
def test_reading_a_part_goes_on(faulty: tuple[FaultProxy, StoreLocation], action: Answer | Reset | Truncate) -> None:
    proxy, folder = faulty
    path = folder / "object"
    path.write_atomically(DATA)
    proxy.faults = [Fault(action, method="GET", path="object", count=3)]
    assert folder.store.read(path.key, 50_000, 200_000) == DATA[50_000:250_000]
    assert sum(proxy.traffic.faults.values()) == 3


@pytest.mark.parametrize("wrong", ["whole", "other part", "shorter part"])
@pytest.mark.parametrize(("start", "length"), [(0, 1), (0, 100), (300, 100)])
def test_another_answer_is_not_taken_for_the_part(
    azure_server: AzureServer,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    wrong: str,
    start: int,
    length: int,
) -> None:
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.01)
    file = store_folder("az", request, monkeypatch) / "object"
    file.write_atomically(DATA[:1024])
    azure_server.faults = ["busy", wrong, wrong]
    assert file.read_range(start, length, 1024) == DATA[start : start + length]
    assert azure_server.faults == []


@pytest.mark.parametrize("action", [Answer(503), Answer(500), Reset(), Reset(served=True), CutUpload(1000)], ids=str)
def test_writing_goes_on(faulty: tuple[FaultProxy, StoreLocation], action: Answer | Reset | CutUpload) -> None:
    proxy, folder = faulty
    proxy.faults = [Fault(action, at_least=len(DATA), count=2)]
    (folder / "object").write_atomically(DATA)
    proxy.faults = []
    assert (folder / "object").read_bytes() == DATA
    assert [entry.key for entry in folder.store.entries(folder.key)] == [(folder / "object").key]


def test_what_stalls_is_asked_again(faulty: tuple[FaultProxy, StoreLocation], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(objects.READING, "timeout", "1s")
    monkeypatch.setitem(objects.WRITING, "timeout", "1s")
    monkeypatch.setattr(objects, "_SECONDS_OF_A_REQUEST", 1.0)
    proxy, folder = faulty
    proxy.faults = [Fault(Stall(30), path="object", count=1)]
    (folder / "object").write_atomically(DATA)
    proxy.faults = [Fault(Stall(30, at=1000), method="GET", path="object", count=2)]
    assert (folder / "object").read_bytes() == DATA
    assert folder.store.read((folder / "object").key, 5, 1000) == DATA[5:1005]
    assert proxy.traffic.faults["Stall"] >= 2


def test_listing_goes_on(faulty: tuple[FaultProxy, StoreLocation]) -> None:
    proxy, folder = faulty
    for number in range(5):
        (folder / str(number)).write_atomically(b"")
    proxy.faults = [Fault(Answer(503), method="GET", count=3)]
    assert len(list(folder.store.entries(folder.key))) == 5
    proxy.faults = [Fault(Truncate(20), method="GET", count=3)]
    assert len(folder.children()) == 5


def test_a_storm_slows_down_and_passes(faulty: tuple[FaultProxy, StoreLocation]) -> None:
    proxy, folder = faulty
    (folder / "object").write_atomically(b"x" * 1000)
    store = folder.store
    proxy.faults = [Fault(Answer(503), method="GET", probability=0.3, seed=3, count=60)]
    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(lambda _: store.read((folder / "object").key), range(240))} == {b"x" * 1000}
    assert proxy.faults[0].served == 60


def test_a_lost_store_is_given_up(faulty: tuple[FaultProxy, StoreLocation], monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, folder = faulty
    (folder / "object").write_atomically(DATA)
    monkeypatch.setattr(retrying, "_SECONDS", 0.5)
    proxy.faults = [Fault(Answer(503))]
    problem = r"cannot read .*object.*503.*; tried \d+ times; see that the store"
    with pytest.raises(StorageError, match=problem) as caught:
        (folder / "object").read_bytes()
    assert caught.value.path == str(folder / "object")
    secret = os.environ.get("AWS_SECRET_ACCESS_KEY", "no secret is set")
    assert secret not in str(caught.value)


def test_what_is_forbidden_is_not_tried_again(faulty: tuple[FaultProxy, StoreLocation]) -> None:
    proxy, folder = faulty
    (folder / "object").write_atomically(DATA)
    proxy.forget()
    proxy.faults = [Fault(Answer(403))]
    with pytest.raises(PermissionError, match="credentials") as caught:
        (folder / "object").read_bytes()
    assert caught.value.filename == str(folder / "object")
    assert sum(proxy.traffic.faults.values()) == 1


def test_a_wait_can_be_stopped(faulty: tuple[FaultProxy, StoreLocation]) -> None:
    proxy, folder = faulty
    (folder / "object").write_atomically(DATA)
    proxy.faults = [Fault(Answer(503))]
    stop = threading.Event()
    store = folder.store.stoppable(stop)
    threading.Timer(0.5, stop.set).start()
    began = time.monotonic()
    with pytest.raises(ClosedError):
        store.read((folder / "object").key)
    assert time.monotonic() - began < 5
    with pytest.raises(ClosedError):
        store.read((folder / "object").key)


def test_a_server_that_restarts_is_waited_for(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    server = request.getfixturevalue("s3_server")
    folder = store_folder("s3", request, monkeypatch)
    (folder / "object").write_atomically(DATA)
    restart = threading.Thread(target=server.restart)
    restart.start()
    time.sleep(0.2)
    for _ in range(20):
        assert (folder / "object").read_bytes() == DATA
    (folder / "other").write_atomically(DATA)
    restart.join()
    assert (folder / "other").read_bytes() == DATA
