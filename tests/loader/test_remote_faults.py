"""Reading ahead while servers and networks do wrong: right bytes or a clear error, and never a hang."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from loader.remote_datasets import TRANSFORM, assert_same, copy, epochs, folder_in
from programs import run
from servers.faults import Answer, Fault, Flip, Reset, Stall, Truncate
from stoker.errors import StorageError
from stoker.loader import engine
from stoker.loader.engine import substitutes
from stoker.storage import retrying

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.faults import FaultProxy
    from servers.s3 import S3Server
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

SMALL = stoker.ReadAhead(budget="60KB", connections=4, gap=500, longest="20KB")


@pytest.fixture
def behind_proxy(
    request: pytest.FixtureRequest, faulty_s3: FaultProxy, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> StoreLocation:
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.01)
    return copy(dataset, folder_in("s3", request, monkeypatch, faulty_s3.url))


@pytest.mark.parametrize(
    "action",
    [Answer(503), Answer(429), Reset(), Truncate(1000), Truncate(10, honest=True), Flip(), Flip(3)],
    ids=str,
)
def test_faults_change_nothing(
    behind_proxy: StoreLocation, faulty_s3: FaultProxy, dataset: Path, action: Answer | Reset | Truncate | Flip
) -> None:
    there = stoker.open(behind_proxy, "train")
    often = Fault(action, method="GET", path=".tfrecord", probability=0.3, seed=3)
    # Bytes that are wrong twice running are an error, as they should be.
    twice = [Fault(action, method="GET", path=".tfrecord", nth=nth) for nth in (2, 25)]
    faulty_s3.faults = twice if isinstance(action, Flip) else [often]
    expected = epochs(stoker.open(dataset, "train"), shuffle=True)
    with stoker.Loader(there, batch_size=8, transform=TRANSFORM, seed=5, shuffle=True, read_ahead=SMALL) as loader:
        batches = [[b.images, b.labels, b.indices, b.valid] for _ in range(2) for b in loader]
        rereads = loader._engine.ranges.counts().rereads
    assert_same(batches, expected)
    assert sum(fault.served for fault in faulty_s3.faults) >= 2
    assert (rereads > 0) == isinstance(action, Flip)


def test_bytes_that_are_always_wrong_name_the_record(behind_proxy: StoreLocation, faulty_s3: FaultProxy) -> None:
    there = stoker.open(behind_proxy, "train")
    path, record, offset = there.records.where(7)
    faulty_s3.faults = [Fault(Flip(), method="GET", path=path.rpartition("/")[2], holds=offset)]
    whole = stoker.ReadAhead(longest=1, gap=0)  # each record by itself, so that its middle is what is changed
    with (
        stoker.Loader(there, batch_size=8, transform=TRANSFORM, read_ahead=whole) as loader,
        pytest.raises(stoker.errors.CorruptRecordError) as caught,
    ):
        list(loader)
    assert (caught.value.path, caught.value.record, caught.value.offset) == (path, record, offset)


def test_a_store_that_is_gone_is_an_error_that_says_so(
    behind_proxy: StoreLocation, faulty_s3: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = stoker.open(behind_proxy, "train")
    monkeypatch.setattr(retrying, "_SECONDS", 0.2)
    faulty_s3.faults = [Fault(Answer(503))]
    with stoker.Loader(there, batch_size=8, transform=TRANSFORM) as loader:
        with pytest.raises(StorageError, match=r"cannot read s3://.*503.*see that the store is there"):
            list(loader)
        faulty_s3.faults = []
        assert len(list(loader)) == 5  # and it goes on when the store is back
    shard = (behind_proxy / "train*.tfrecord").matching()[0]
    shard.unlink()
    with (
        stoker.Loader(there, batch_size=8, transform=TRANSFORM) as loader,
        pytest.raises(FileNotFoundError, match="no such"),
    ):
        list(loader)


def test_no_substitutes_are_looked_for_in_a_store_that_is_gone(
    behind_proxy: StoreLocation, faulty_s3: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def counted(*arguments: int) -> Iterator[Any]:
        for slot in substitutes(*arguments):
            tried.append(slot)
            yield slot

    there = stoker.open(behind_proxy, "train")
    monkeypatch.setattr(retrying, "_SECONDS", 0.2)
    monkeypatch.setattr(engine, "substitutes", counted)
    faulty_s3.faults = [Fault(Answer(503))]
    loader = stoker.Loader(there, batch_size=8, transform=TRANSFORM, on_bad="substitute")
    with loader, pytest.raises(StorageError, match=r"cannot read s3://.*503.*see that the store is there"):
        list(loader)
    assert len(tried) == 1


def test_a_shard_that_was_cut_gives_the_records_before_the_cut(behind_proxy: StoreLocation, dataset: Path) -> None:
    there = stoker.open(behind_proxy, "train")
    path, _, offset = there.records.where(17)
    shard = behind_proxy / path.rpartition("/")[2]
    shard.write_atomically(shard.read_bytes()[: offset + 20])
    with stoker.Loader(there, batch_size=17, transform=TRANSFORM) as loader:
        batches = iter(loader)
        assert next(batches).indices.tolist() == list(range(17))
        with pytest.raises(StorageError, match="it has"):
            next(batches)


@pytest.mark.parametrize("where", ["waiting", "between"])
def test_close_ends_at_once_while_requests_hang(behind_proxy: StoreLocation, faulty_s3: FaultProxy, where: str) -> None:
    there = stoker.open(behind_proxy, "train")
    hang = Fault(Stall(20), method="GET", path=".tfrecord", nth=None)
    loader = stoker.Loader(there, batch_size=8, transform=TRANSFORM, read_ahead=SMALL)
    batches = iter(loader)
    if where == "between":
        next(batches)
    faulty_s3.faults = [hang]
    if where == "waiting":
        loader.set_epoch(3)
        batches = iter(loader)
        waiter = threading.Thread(target=_take, args=(batches,))
        waiter.start()
        time.sleep(0.3)
    start = time.monotonic()
    loader.close()
    assert time.monotonic() - start < 5  # a hanging request takes 20
    if where == "waiting":
        waiter.join(1)
        assert not waiter.is_alive()


def _take(batches: object) -> None:
    with pytest.raises(stoker.errors.StokerError):
        next(batches)  # type: ignore[call-overload]


def test_leaving_early_and_going_elsewhere_drops_what_was_asked_for(
    behind_proxy: StoreLocation, faulty_s3: FaultProxy, dataset: Path
) -> None:
    there = stoker.open(behind_proxy, "train")
    expected = epochs(stoker.open(dataset, "train"), shuffle=True)
    with stoker.Loader(there, batch_size=8, transform=TRANSFORM, seed=5, shuffle=True, read_ahead=SMALL) as loader:
        for _ in range(3):
            loader.set_epoch(7)
            next(iter(loader))
        faulty_s3.faults = [Fault(Stall(1), method="GET", path=".tfrecord", count=3)]
        loader.set_epoch(0)
        assert_same([[b.images, b.labels, b.indices, b.valid] for _ in range(2) for b in loader], expected)


def test_a_server_that_restarts_is_waited_for(
    request: pytest.FixtureRequest, s3_server: S3Server, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = stoker.open(copy(dataset, folder_in("s3", request, monkeypatch)), "train")
    expected = epochs(stoker.open(dataset, "train"), 1, shuffle=True)
    with stoker.Loader(there, batch_size=8, transform=TRANSFORM, seed=5, shuffle=True, read_ahead=SMALL) as loader:
        batches = iter(loader)
        received = [next(batches)]
        s3_server.kill()
        restart = threading.Thread(target=s3_server.start)
        restart.start()
        received += list(batches)
        restart.join()
    assert_same([[b.images, b.labels, b.indices, b.valid] for b in received], expected)


def test_a_forked_worker_says_what_to_do_and_a_spawned_one_works(
    request: pytest.FixtureRequest, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch.utils.data import DataLoader  # noqa: PLC0415

    from stoker.torch import MapDataset  # noqa: PLC0415

    there = stoker.open(copy(dataset, folder_in("s3", request, monkeypatch)), "train")
    samples = MapDataset(there, TRANSFORM)
    images, labels = next(iter(DataLoader(samples, batch_size=4)))
    forked = DataLoader(samples, batch_size=4, num_workers=1, multiprocessing_context="fork", timeout=60)
    with pytest.raises(StorageError, match="forked from one"):
        next(iter(forked))
    spawned = DataLoader(samples, batch_size=4, num_workers=1, multiprocessing_context="spawn", timeout=100)
    again, same = next(iter(spawned))
    assert (again == images).all()
    assert (same == labels).all()
    samples.close()


def test_a_program_that_ends_without_close_ends_at_once(
    request: pytest.FixtureRequest, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = copy(dataset, folder_in("s3", request, monkeypatch))
    program = f"""
        import stoker
        loader = stoker.Loader(stoker.open({str(there)!r}, "train"), batch_size=8, transform=stoker.Resize(16))
        batches = iter(loader)
        print(len(next(batches)))
    """
    start = time.monotonic()
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "8\n", "")
    assert time.monotonic() - start < 30
