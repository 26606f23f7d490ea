"""A path of this machine and an object in a store give the same answers."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from stoker.storage import LocalLocation
from storage.store_folders import STORES, store_folder
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from stoker.storage import Location


REAL = [pytest.param(kind, marks=pytest.mark.servers) for kind in STORES if kind != "az"]


@pytest.fixture(params=["local", "az", *REAL])
def folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Location:
    if request.param == "local":
        return LocalLocation(tmp_path)
    return store_folder(request.param, request, monkeypatch)


def write(folder: Location, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.make_directory()
        path.write_atomically(name.encode())


def test_listing(folder: Location) -> None:
    write(folder, "b/2", "b/1", "a/x/y", "c.txt", "bb")
    children = folder.children()
    assert [(child.name, child.is_folder, child.is_file) for child in children] == [
        (b"a", True, False),
        (b"b", True, False),
        (b"bb", False, True),
        (b"c.txt", False, True),
    ]
    assert {child[:2] for child in folder.some_children()} == {child[:2] for child in children}
    assert folder.folders() == [b"a", b"b"]
    assert sorted(folder.files_below()) == [(b"a/x/y", 5), (b"b/1", 3), (b"b/2", 3), (b"bb", 2), (b"c.txt", 5)]
    assert sorted(folder.files_below(folder=b"a")) == [(b"x/y", 5)]
    assert sorted((folder / "b").files_below()) == [(b"1", 3), (b"2", 3)]
    assert not folder.leads_back(b"a/x")
    assert folder.is_same(folder / "")
    assert not folder.is_same(folder / "a")
    assert (folder / "*" / "[12]").matching() == [folder / "b/1", folder / "b/2"]
    assert (folder / "**" / "y").matching() == [folder / "a/x/y"]
    assert (folder / "*" / "?" / "y").matching() == [folder / "a/x/y"]
    assert (folder / "**" / "[2y]").matching() == [folder / "a/x/y", folder / "b/2"]
    assert ((folder / "b/1").matching(), (folder / "b").matching()) == ([folder / "b/1"], [])
    assert (folder / "bb").matching(regular=True) == [folder / "bb"]
    assert (folder / "*").matching() == [folder / "bb", folder / "c.txt"]


def test_what_is_there(folder: Location) -> None:
    write(folder, "a/file")
    path = folder / "a" / "file"
    assert (path.is_file(), path.is_dir(), path.exists(), path.lexists()) == (True, False, True, True)
    assert ((folder / "a").is_file(), (folder / "a").is_dir(), (folder / "a").exists()) == (False, True, True)
    assert not (folder / "no").exists()
    look_up = folder.snapshot()
    info = look_up("a/file")
    assert info is not None
    assert info.size_bytes == path.size() == 6
    alone = path.info()
    assert alone is not None
    assert (alone.size_bytes, bool(alone.stamp)) == (6, bool(info.stamp))
    assert (folder / "no").info() is None
    assert look_up("a") is None
    assert look_up("no") is None
    assert path.lies_in(folder)
    assert path.lies_in(path)
    assert not folder.lies_in(path)
    assert path.beside("other") == (folder / "a" / "other").resolve()
    assert path.beside("s3://bucket/key").parts == ("s3://bucket", "key")


def test_reading(folder: Location) -> None:
    data = os.urandom(10_000)
    path = folder / "object"
    path.write_atomically(data)
    assert path.read_bytes() == path.read_at_most(10_000) == data
    assert path.read_head(20_000) == data
    assert path.read_range(5, 100, known_size=10_000) == path.read_range(5, 100) == data[5:105]
    assert path.read_range(9_990, 100, known_size=10_090) == data[9_990:]
    assert path.read_range(20_000, 1) == b""
    with path.reader() as file:
        file.seek(9_000)
        assert file.read() == data[9_000:]
    with path.local_copy() as copy:
        copy.fetch()
        assert copy.path.read_bytes() == data
    with pytest.raises(OSError, match="is larger than 9999 bytes") as too_large:
        path.read_at_most(9_999)
    assert too_large.value.filename == str(path)
    (folder / "empty").write_atomically(b"")
    assert ((folder / "empty").read_bytes(), (folder / "empty").size()) == (b"", 0)
    missing = folder / "no"
    for request in (
        missing.size, missing.read_bytes, missing.unlink,
        lambda: missing.read_at_most(9), lambda: missing.read_range(3, 4),
    ):  # fmt: skip
        with pytest.raises(FileNotFoundError) as caught:
            request()
        assert caught.value.filename == str(missing)
    missing.unlink(missing_ok=True)


def test_writing(folder: Location) -> None:
    staged = folder.stage("set/shard", threading.Event())
    staged.write([b"ab", b"c"])
    assert not (folder / "set/shard").exists()
    staged.publish(("set/shard.idx", b"index"))
    assert (folder / "set/shard").read_bytes() == b"abc"
    assert (folder / "set/shard.idx").read_bytes() == b"index"
    given_up = folder.stage("set/other")
    given_up.write([b"x"])
    given_up.discard()
    write(folder, "set/left.tmp-1-ab")
    folder.remove_temporaries()
    write(folder, "run.tmp-7/set/file")
    (folder / "run.tmp-7/set").remove_temporaries()
    (folder / "run.tmp-7/set/file").unlink()
    assert sorted(folder.files_below()) == [(b"set/shard", 3), (b"set/shard.idx", 5)]
    assert (folder / "one").create(b"1")
    assert not (folder / "one").create(b"2")
    assert (folder / "one").read_bytes() == b"1"
    (folder / "one").unlink()
    (folder / "set").remove_folder()
    (folder / "set").remove_folder()
    assert list(folder.files_below()) == []


def test_a_name_that_is_too_long_for_a_disk_is_not_there() -> None:
    path = LocalLocation("a" * 300)
    assert (path.is_file(), path.is_dir(), path.exists(), path.lexists()) == (False,) * 4


def test_links_of_a_disk(tmp_path: Path) -> None:
    write_files(tmp_path, {"top/deep/file": b"x", "elsewhere/file": b"xy"})
    (tmp_path / "top/circle").symlink_to(tmp_path / "top")
    (tmp_path / "top/nowhere").symlink_to("gone")
    os.mkfifo(tmp_path / "top/pipe")
    top = LocalLocation(tmp_path / "top")
    assert sorted(top.files_below()) == [(b"deep/file", 1), (b"nowhere", 0), (b"pipe", None)]
    (tmp_path / "top/link").symlink_to(tmp_path / "elsewhere")
    entered: list[tuple[bytes, bool]] = []

    def enters(path: bytes, leads_back: bool) -> bool:
        entered.append((path, leads_back))
        return True

    files = [(b"deep/file", 1), (b"link/file", 2), (b"nowhere", 0), (b"pipe", None)]
    assert sorted(top.files_below(enters)) == files
    assert sorted(entered) == [(b"circle", True), (b"deep", False), (b"link", False)]
    assert list(top.files_below(enters, b"link")) == [(b"file", 2)]
    assert (top.leads_back(b"circle"), top.leads_back(b"link"), top.leads_back(b"deep")) == (True, False, False)
    assert (top.is_same(top / "circle"), top.is_same(top / "link"), top.is_same(top / "gone")) == (True, False, False)
    assert {child.name for child in top.children() if child.is_link} == {b"circle", b"link", b"nowhere"}
    assert (top / "*").matching(regular=True) == []
    assert (top / "*").matching() == [top / "nowhere", top / "pipe"]
    assert (top / "nowhere").lexists()
    assert not (top / "nowhere").exists()
    with pytest.raises(OSError, match="is a pipe or a device"):
        (top / "pipe").read_range(0, 1)
