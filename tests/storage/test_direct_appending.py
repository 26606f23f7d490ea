"""Files that are written past the page cache hold what was written to them, also where the system refuses a part."""

from __future__ import annotations

import errno
import fcntl
import os
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.storage import location

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BUFFER = 2**22
DIRECT = getattr(os, "O_DIRECT", 0)


def noise(size: int) -> bytes:
    return np.random.default_rng(size).bytes(size)


def staged(folder: Path, parts: Sequence[bytes | memoryview]) -> bytes:
    file = location(folder).stage("file")
    for part in parts:
        file.write([part])
    file.publish()
    return (folder / "file").read_bytes()


def is_direct(file: int) -> bool:
    return bool(DIRECT and fcntl.fcntl(file, fcntl.F_GETFL) & DIRECT)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([0, 1, 4095, 4096, 2**20 + 7, BUFFER - 1, BUFFER, 2 * BUFFER + 3]), max_size=5))
@pytest.mark.slow
def test_all_bytes_arrive_in_order(tmp_path_factory: pytest.TempPathFactory, sizes: list[int]) -> None:
    parts = [noise(size) for size in sizes]
    assert staged(tmp_path_factory.mktemp("out"), [memoryview(part) for part in parts]) == b"".join(parts)


@pytest.mark.parametrize("whole_writes", [0, 1])
def test_what_the_file_system_refuses_or_cuts_short_goes_through_the_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole_writes: int
) -> None:
    def test(refuse: Callable[[int, memoryview], int]) -> bytes:
        calls = []

        def limited(file: int, data: memoryview) -> int:
            calls.append(is_direct(file))
            return write(file, data) if len(calls) <= whole_writes or not calls[-1] else refuse(file, data)

        monkeypatch.setattr(os, "write", limited)
        stored = staged(tmp_path, [data])
        monkeypatch.undo()
        assert calls.count(True) <= whole_writes + 1, "direct writes go on after one was refused"
        return stored

    def refuse(_file: int, _data: memoryview) -> int:
        raise OSError(errno.EINVAL, "other blocks")

    def cut(file: int, data: memoryview) -> int:
        return write(file, data[:8192])

    write = os.write
    data = noise(3 * BUFFER + 5)
    assert test(refuse) == data
    assert test(cut) == data


def test_file_systems_without_direct_writes_get_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control = fcntl.fcntl

    def without(file: int, command: int, flags: int = 0) -> int:
        if command == fcntl.F_SETFL and flags & DIRECT:
            raise OSError(errno.EINVAL, "no direct writes")
        return control(file, command, flags)

    monkeypatch.setattr(fcntl, "fcntl", without)
    data = noise(2 * BUFFER + 5)
    assert staged(tmp_path, [data[:100], data[100:]]) == data


def test_other_errors_of_the_disk_have_the_final_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int, _data: memoryview) -> int:
        raise OSError(errno.ENOSPC, "full")

    file = location(tmp_path).stage("file")
    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(os, "writev", full)
    with pytest.raises(OSError, match="full") as caught:
        file.write([noise(BUFFER)])
    monkeypatch.undo()
    file.discard()
    assert caught.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []
