"""Every store behaves as the others do: real servers, real clients."""

from __future__ import annotations

import io
import multiprocessing
import os
import threading
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
    assert not path.exists()
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


def test_an_empty_object(folder: StoreLocation) -> None:
    (folder / "empty").write_atomically(b"")
    assert (folder / "empty").read_bytes() == b""
    assert (folder / "empty").size() == 0


def test_what_is_not_there(folder: StoreLocation) -> None:
    for request in (
        (folder / "no").read_bytes,
        lambda: folder.store.read((folder / "no").key, 3, 4),
        (folder / "no").size,
        (folder / "no").unlink,
    ):
        with pytest.raises(FileNotFoundError) as caught:
            request()
        assert caught.value.filename == str(folder / "no")
    (folder / "no").unlink(missing_ok=True)
    assert folder.children() == []
    assert not folder.is_dir()


def test_folders_and_patterns(folder: StoreLocation) -> None:
    for name in ("b/2", "b/1", "a/x/y", "c.txt", "bb"):
        (folder / name).write_atomically(name.encode())
    assert [child.name for child in folder.children()] == [b"a", b"b", b"bb", b"c.txt"]
    assert folder.folders() == [b"a", b"b"]
    assert (folder / "b").is_dir()
    assert not (folder / "b").is_file()
    assert [path.name for path in (folder / "b" / "[12]").matching()] == ["1", "2"]
    assert (folder / "*" / "?" / "y").matching() == [folder / "a/x/y"]
    assert (folder / "**" / "[2y]").matching() == [folder / "a/x/y", folder / "b/2"]
    assert (folder / "b/1").matching() == [folder / "b/1"]
    assert (folder / "b").matching() == []
    assert sorted(entry.key for entry in folder.store.entries((folder / "b").key)) == [
        (folder / "b" / "1").key,
        (folder / "b" / "2").key,
    ]
    assert {entry.size_bytes for entry in folder.store.entries(folder.key)} == {2, 3, 5}


def test_more_than_a_page(folder: StoreLocation) -> None:
    names = [f"{number:05}" for number in range(1203)]
    threads = [threading.Thread(target=_write_all, args=(folder, names[part::16])) for part in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.key for entry in folder.store.entries(folder.key)) == [(folder / name).key for name in names]
    assert [child.name.decode() for child in folder.children()] == names


def _write_all(folder: StoreLocation, names: list[str]) -> None:
    for name in names:
        (folder / name).write_atomically(b"")


def test_one_of_many_creates(folder: StoreLocation) -> None:
    won: list[int] = []

    def create(number: int) -> None:
        if folder.store.create((folder / "one").key, b"%d" % number):
            won.append(number)

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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
