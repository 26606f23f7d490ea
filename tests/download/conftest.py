"""A server for each test, and no proxy between it and the client."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from download import faulty_server as does
from download.faulty_server import Recorder, Transfer, running
from stoker.download import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from download.faulty_server import FaultyServer

BODY = random.Random(7).randbytes(600_000)


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    for name in ("IMAGENET_USERNAME", "IMAGENET_ACCESS_KEY", "IMAGENET_OUT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TRIES", does.TRIES)
    monkeypatch.setattr(fetch, "CONNECTING_TRIES", does.CONNECTING_TRIES)
    monkeypatch.setattr(fetch, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(fetch, "_LONGEST_WAIT", 0.05)
    monkeypatch.setattr(fetch, "TIMEOUT", does.TIMEOUT)
    monkeypatch.setattr(fetch, "LONGEST_RETRY_AFTER", does.LONGEST_RETRY_AFTER)


@pytest.fixture
def body() -> bytes:
    return BODY


@pytest.fixture
def server(body: bytes) -> Iterator[FaultyServer]:
    with running({"a.tar": body}) as faulty:
        yield faulty


@pytest.fixture
def watcher() -> Recorder:
    return Recorder()


@pytest.fixture
def transfer(tmp_path: Path, server: FaultyServer, watcher: Recorder, body: bytes) -> Transfer:
    return Transfer(tmp_path, server, watcher, body)
