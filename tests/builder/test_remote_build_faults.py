"""What becomes of a build when its store does wrong: the right bytes, or a clear error and a build to resume."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from builder.remote_trees import run, stored
from builder.trees import contents, write_tree
from servers.faults import Answer, CutUpload, Fault, FaultProxy, FlipUpload, Request, Reset, Truncate
from stoker.errors import StorageError
from stoker.storage import retrying
from storage.store_folders import store_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from commands import Cli
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

COMMAND = [sys.executable, "-m", "stoker.cli.main", "build"]


@dataclass
class Gone(Fault):
    """Goes wrong at every request that agrees, after so many of them."""

    after: int = 0

    def strikes(self, request: Request) -> bool:
        self.met += self._agrees(request)
        return self._agrees(request) and self.met > self.after


@pytest.fixture(params=["s3", "gs"])
def faulty(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[FaultProxy, StoreLocation]]:
    proxy: FaultProxy = request.getfixturevalue({"s3": "faulty_s3", "gs": "faulty_gcs"}[request.param])
    monkeypatch.setattr(retrying, "_FIRST_WAIT", 0.02)
    yield proxy, store_folder(request.param, request, monkeypatch, proxy.url)
    proxy.faults = []


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("faults") / "src", {"a": 40, "b": 24}, "b/text.JPEG")


@pytest.fixture(scope="module")
def whole(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("faults") / "out"
    run(source, out)
    return contents(out)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(Answer(503), probability=0.4, seed=1),
        Fault(Reset(), probability=0.4, seed=4),
        Fault(Reset(served=True), probability=0.4, seed=5),
        Fault(Truncate(30), probability=0.4, seed=6),
        Fault(CutUpload(2000), at_least=2001, probability=0.6, seed=7),
    ],
    ids=lambda fault: str(fault.action),
)
def test_what_passes_changes_nothing(
    faulty: tuple[FaultProxy, StoreLocation], source: Path, whole: dict[str, bytes], fault: Fault
) -> None:
    proxy, folder = faulty
    proxy.faults = [fault]
    assert run(source, folder, max_rejects=0).outcome == "withheld"
    assert run(source, folder).resumed_shards == 4
    assert fault.served >= 3
    proxy.faults = []
    assert stored(folder) == whole


def test_a_store_that_has_gone_for_good(
    faulty: tuple[FaultProxy, StoreLocation],
    source: Path,
    whole: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    proxy, folder = faulty
    monkeypatch.setattr(retrying, "_SECONDS", 1.0)
    words = ["build", str(source), str(folder), "--shards", "4", "--max-rejects", "1", "--threads", "1"]
    proxy.faults = [Gone(Reset(), at_least=100, after=5)]
    stderr = cli(*words, code=1)
    assert f"cannot write {folder}/" in stderr
    assert "; tried " in stderr
    assert "run the same command again to resume" in stderr
    assert os.environ.get("AWS_SECRET_ACCESS_KEY", "no secret") not in stderr
    proxy.faults = []
    left = stored(folder)
    assert {name: data for name, data in left.items() if not name.startswith(".")}.items() <= whole.items()
    assert "manifest.json" not in left
    cli(*words)
    assert stored(folder) == whole


def test_a_store_that_refuses(
    faulty: tuple[FaultProxy, StoreLocation],
    source: Path,
    whole: dict[str, bytes],
    cli: Cli,
) -> None:
    proxy, folder = faulty
    words = ["build", str(source), str(folder), "--shards", "4", "--max-rejects", "1"]
    proxy.faults = [Fault(Answer(403), path="train-00002", method="PUT"), Fault(Answer(403), method="POST", nth=5)]
    stderr = cli(*words, code=1)
    assert f"{folder}/" in stderr
    assert "the store does not allow to" in stderr
    assert "give credentials" in stderr
    assert "run the same command again to resume" in stderr
    proxy.faults = []
    cli(*words)
    assert stored(folder) == whole


def test_an_interrupt_does_not_wait_for_a_store_that_is_gone(
    faulty: tuple[FaultProxy, StoreLocation], source: Path, whole: dict[str, bytes]
) -> None:
    proxy, folder = faulty
    command = [*COMMAND, str(source), str(folder), "--shards", "4", "--max-rejects", "1"]
    proxy.faults = [Fault(Reset(), at_least=2000)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    with process:
        while not proxy.traffic.faults and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        _, stderr = process.communicate(timeout=20)
    assert time.monotonic() - began < 10
    assert process.returncode == 130, stderr
    assert "run the same command again to resume" in stderr
    proxy.faults = []
    run(source, folder)
    assert stored(folder) == whole


def test_a_full_scratch_disk(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    source: Path,
    whole: dict[str, bytes],
    cli: Cli,
) -> None:
    folder = store_folder("s3", request, monkeypatch)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    words = ["build", str(source), str(folder), "--shards", "4", "--max-rejects", "1"]
    resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, before[1]))  # stands for the disk
    try:
        cli(*words, code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    stderr = cli.err
    assert os.strerror(errno.EFBIG) in stderr
    assert "set TMPDIR to a folder with more space" in stderr
    assert "run the same command again to resume" in stderr
    cli(*words)
    assert stored(folder) == whole


def test_kills_at_random_times(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    proxy: FaultProxy = request.getfixturevalue("faulty_s3")
    folder = store_folder("s3", request, monkeypatch, proxy.url)
    source = write_tree(tmp_path / "src", {"a": 100, "b": 100})
    command = [*COMMAND, str(source), str(folder), "--shards", "20", "--threads", "2", "--json"]
    rng = random.Random(6)
    killed = 0
    monkeypatch.setattr(proxy, "latency", 0.05)  # so that a shard takes longer than it is waited for
    while killed < 3:
        before = len(list(folder.store.entries(folder.key)))
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while len(list(folder.store.entries(folder.key))) == before and process.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.1))
        process.kill()
        if process.wait() != -signal.SIGKILL:
            break
        killed += 1
    assert killed >= 2
    proxy.latency = 0
    last = subprocess.run(command, capture_output=True, check=True, timeout=60)
    run(source, tmp_path / "whole", shards=20)
    assert stored(folder) == contents(tmp_path / "whole")
    assert json.loads(last.stdout)["dataset_id"] == json.loads(stored(folder)["manifest.json"])["dataset_id"]


def test_a_server_that_restarts_meanwhile(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, source: Path, whole: dict[str, bytes]
) -> None:
    folder = store_folder("s3", request, monkeypatch)
    server = request.getfixturevalue("s3_server")
    assert folder.store.create("known", b"")
    server.kill()
    start = threading.Timer(1.0, server.start)
    start.start()
    run(source, folder)
    start.join()
    assert stored(folder) == whole


def test_a_silent_store_is_left(source: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    folder = store_folder("s3", request, monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(retrying, "_UNANSWERED_SECONDS", 0.5)
    with pytest.raises(StorageError, match=r"cannot .* s3://.*; tried \d+ times"):
        run(source, folder)


def test_wrong_bytes_uploaded(faulty: tuple[FaultProxy, StoreLocation], source: Path, whole: dict[str, bytes]) -> None:
    proxy, folder = faulty
    proxy.faults = [Fault(FlipUpload(), at_least=2000, count=3)]
    run(source, folder)
    assert proxy.traffic.faults["FlipUpload"] == 3
    assert stored(folder) == whole
