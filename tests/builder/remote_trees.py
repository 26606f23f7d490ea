"""What lies in a store, and builds that go there and die on the way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from builder.trees import build, settings_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from stoker.builder import BuildReport
    from stoker.storage import StoreLocation

STORES = ("s3", "gs", "hdfs")
_CHANGING = ("put", "create", "delete", "delete_folder")


def run(source: Path, destination: Path | StoreLocation, **settings: Any) -> BuildReport:
    """Build four shards, with one reject allowed."""
    return build(settings_for(source, **{"shards": 4, "max_rejects": 1} | settings), destination)


def stored(remote: StoreLocation) -> dict[str, bytes]:
    """Every object below a folder of a store."""
    below = len(remote.key) + 1
    return {entry.key[below:]: remote.store.read(entry.key) for entry in remote.store.entries(remote.key)}


class Killed(BaseException):
    """Stands for the end of the process."""


class Dying:
    """A client that dies with the nth request that changes something, before or after the server has heard it."""

    def __init__(self, backend: Any, die_at: int, *, heard: bool) -> None:
        self._backend = backend
        self._left = die_at
        self._heard = heard
        self._lock = threading.Lock()
        self.dead = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._backend, name)
        if not callable(method):
            return method

        def request(*arguments: Any) -> Any:
            return self._request(lambda: method(*arguments), changing=name in _CHANGING)

        return request

    def _request(self, method: Callable[[], Any], *, changing: bool) -> Any:
        with self._lock:
            self._left -= changing
            dies = changing and self._left == 0 and not self.dead
            if dies and self._heard:
                method()
            self.dead |= dies
            if self.dead:
                raise Killed
        return method()


def build_and_die(
    source: Path, remote: StoreLocation, monkeypatch: pytest.MonkeyPatch, die_at: int, *, heard: bool
) -> bool:
    """Build until the client dies; return whether it did."""
    with monkeypatch.context() as patch:
        dying = Dying(remote.store._backend, die_at, heard=heard)
        patch.setattr(remote.store, "_backend", dying)
        try:
            run(source, remote, shards=2, threads=1)
        except Killed:
            assert dying.dead
        return dying.dead
