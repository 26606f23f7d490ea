"""Every store behaves as the others do: real servers, real clients."""

from __future__ import annotations

import io
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from stoker.errors import StorageError
from storage.store_folders import STORES, store_folder

if TYPE_CHECKING:
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

NAMES = ("plain.bin", "a b.jpg", "100%25.jpg", "hash#and?question.jpg", "plus+é.jpg", "deep/er/still.txt")


@pytest.fixture(params=STORES)
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return store_folder(request.param, request, monkeypatch)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read(folder: StoreLocation, name: str) -> None:
    data = os.urandom(70_000)
    path = folder / name
    assert (folder.children(), folder.is_dir(), path.exists()) == ([], False, False)
    path.write_atomically(data)
    assert path.read_bytes() == data
    assert path.size() == len(data)
    assert (path.is_file(), path.is_dir()) == (True, False)
    assert [entry.key for entry in folder.store.entries(folder.key)] == [path.key]
    path.write_atomically(b"anew")
    assert path.read_bytes() == b"anew"
    path.unlink()
    assert not folder.exists()


def test_parts_of_an_object(folder: StoreLocation) -> None:
    data = os.urandom(10_000)
    path = folder / "object"
    path.write_atomically(data)
    store = folder.store
    for start, length in ((0, 1), (0, 10_000), (9_999, 1), (123, 4_567), (5, 0)):
        assert store.read(path.key, start, length) == data[start : start + length]
    with pytest.raises(StorageError, match=r"instead of 2; it has 10000 bytes") as caught:
        store.read(path.key, 9_999, 2)
    assert caught.value.path == str(path)
    with pytest.raises(StorageError):
        store.read(path.key, 20_000, 1)


def test_more_than_a_page(folder: StoreLocation) -> None:
    names = [f"{number:05}" for number in range(1203)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: (folder / name).write_atomically(b""), names))
    assert sorted(entry.key for entry in folder.store.entries(folder.key)) == [(folder / name).key for name in names]
    assert [child.name.decode() for child in folder.children()] == names


def test_one_of_many_creates(folder: StoreLocation) -> None:
    won: list[int] = []

    def create(number: int) -> None:
        if folder.store.create((folder / "one").key, b"%d" % number):
            won.append(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(8)))
    assert len(won) == 1
    assert (folder / "one").read_bytes() == b"%d" % won[0]


def test_an_object_as_a_file(folder: StoreLocation) -> None:
    data = os.urandom(9 * 2**20 + 17)  # more than two chunks
    path = folder / "long"
    path.write_atomically(data)
    with path.reader() as file:
        assert file.read() == data
        assert file.read() == b""
        for offset in (0, 5_000_000, 4_999_990, len(data) - 3):
            file.seek(offset)
            assert file.read(10) == data[offset : offset + 10]
        file.seek(-4, io.SEEK_END)
        assert file.read(100) == data[-4:]


def test_a_forked_process_gets_an_error(folder: StoreLocation) -> None:
    (folder / "here").write_atomically(b"x")
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe()
    process = context.Process(target=_read_in_child, args=(folder, writer))
    process.start()
    assert reader.poll(30)
    assert "forked" in reader.recv()
    process.join(10)
    assert process.exitcode == 0


def _read_in_child(folder: StoreLocation, answers: object) -> None:
    try:
        answers.send((folder / "here").read_bytes())  # type: ignore[attr-defined]
    except StorageError as error:
        answers.send(str(error))  # type: ignore[attr-defined]
