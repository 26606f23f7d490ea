"""``stoker list``: sorted, absolute, reproducible; a list that can be a source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sources.making import fill, listing
from stoker.cli.main import main

if TYPE_CHECKING:
    from commands import Cli


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fill(tmp_path, "b/2.jpg", "a/x/3.jpg", "a/10.jpg", "a/9.jpg", "a/.hidden.jpg", "a/9.xml")
    Path(os.fsdecode(bytes(tmp_path) + b"/a/\xff.jpg")).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def absolute(root: Path, *names: bytes) -> bytes:
    return b"".join(bytes(root) + b"/" + name + b"\n" for name in names)


def test_paths_are_absolute_and_in_order_of_their_bytes(files: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["list", "b/*.jpg", "a/*.jpg", "a/9*"]) == 0
    expected = absolute(files, b"a/10.jpg", b"a/9.jpg", b"a/9.xml", b"a/\xff.jpg", b"b/2.jpg")
    assert capfdbinary.readouterr().out == expected
    assert main(["list", "**/*.jpg"]) == 0
    expected = absolute(files, b"a/10.jpg", b"a/9.jpg", b"a/x/3.jpg", b"a/\xff.jpg", b"b/2.jpg")
    assert capfdbinary.readouterr().out == expected


def test_a_list_is_written_whole_and_is_a_source(files: Path) -> None:
    for _ in range(2):  # the second time the list is there and matches
        assert main(["list", "**", "--out", "b/list.jpg"]) == 0
    assert (files / "b/list.jpg").read_bytes().count(b"\n") == 6
    assert b"list.jpg" not in (files / "b/list.jpg").read_bytes()
    assert sorted(path.name for path in (files / "b").iterdir()) == ["2.jpg", "list.jpg"]
    assert listing("b/list.jpg").classes == (b"a", b"b", b"x")


def test_the_order_is_seeded(files: Path) -> None:
    def lines(*words: str) -> list[bytes]:
        assert main(["list", "**/*.jpg", "--out", "list", *words]) == 0
        return (files / "list").read_bytes().splitlines()

    straight, shuffled = lines(), lines("--shuffle")
    assert sorted(shuffled) == straight != shuffled
    assert lines("--shuffle", "--seed", "0") == shuffled
    assert lines("--shuffle", "--seed", "5") != shuffled


def test_links_to_folders_are_followed_but_not_back(files: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Each image was listed 40 times."""
    (files / "c").symlink_to("b")
    (files / "a/x/up").symlink_to(files / "a")
    (files / "a/.git").symlink_to(files)
    assert main(["list", "**/*.jpg"]) == 0
    printed = capfdbinary.readouterr()
    assert printed.out == absolute(files, b"a/10.jpg", b"a/9.jpg", b"a/x/3.jpg", b"a/\xff.jpg", b"b/2.jpg", b"c/2.jpg")
    message = f"{files}/a/x/up is a link to {files}/a, a folder that it lies in: not followed again"
    assert printed.err.count(message.encode()) == 1
    assert main(["list", "b/**", "a/**/.hidden.jpg"]) == 0
    assert capfdbinary.readouterr().out == absolute(files, b"a/.hidden.jpg", b"b/2.jpg")


def test_usage_errors(files: Path, cli: Cli) -> None:
    assert "no file matches none/*.jpg" in cli("list", "none/*.jpg", code=2)
    told = "a is a folder: 'a/**' matches its files; images in tars are in no list"
    assert told in cli("list", "a", "--out", "list", code=2)
    assert not (files / "list").exists()
    assert "--shuffle" in cli("list", "a/*", "--seed", "3", code=2)
    cli("list", "a/*", "--shuffle", "--seed", "-1", code=2)
    (files / "a/line\nbreak.jpg").touch()
    assert "line break in its name" in cli("list", "a/*", code=2)
