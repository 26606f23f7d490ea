"""The text files of a dataset, written by somebody who wishes us ill: each is refused by name, or does no harm."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from small_datasets import list_again, manifest_text
from stoker.cli.main import main
from stoker.errors import ManifestError, StokerError
from stoker.format import read_rejects
from stoker.format.directory import read_labels
from stoker.format.journal import parse_result, parse_settings, with_checksum
from stoker.format.manifest import read_manifest
from stoker.loader.caches import _read_about

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from commands import Cli

READERS: dict[str, Callable[[Path], object]] = {
    "manifest.json": read_manifest,
    "labels.txt": read_labels,
    "rejects.jsonl": read_rejects,
}
SHARD = "train-00000-of-00002.tfrecord"


@pytest.fixture
def copied(dataset: Path, tmp_path: Path) -> Path:
    return shutil.copytree(dataset, tmp_path / "copied")


def no_file(path: Path, kind: str) -> None:
    """Put something that is no file in the place of a file."""
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to({"device": "/dev/zero", "link to nowhere": "/nowhere/at/all", "link to itself": path}[kind])


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "link to nowhere", "link to itself"])
@pytest.mark.parametrize("name", list(READERS))
def test_what_is_not_a_file_is_neither_waited_for_nor_read(copied: Path, name: str, kind: str) -> None:
    """A reader of a pipe waits for ever, and one of ``/dev/zero`` takes all memory."""
    no_file(copied / name, kind)
    with pytest.raises(ManifestError, match=name) as caught:
        READERS[name](copied)
    assert caught.value.path == str(copied / name)


@pytest.mark.parametrize("name", list(READERS))
def test_a_terabyte_of_zeros_is_not_read(copied: Path, name: str) -> None:
    with (copied / name).open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ManifestError, match=rf"{name} is larger than \d+ bytes"):
        READERS[name](copied)


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "link to nowhere", "link to itself"])
def test_a_manifest_that_is_not_a_file_makes_no_foreign_dataset(copied: Path, photos: Path, kind: str) -> None:
    """Without its manifest the directory would be opened as shards of other origin, and be built over."""
    shard = (copied / SHARD).read_bytes()
    no_file(copied / "manifest.json", kind)
    with pytest.raises(ManifestError, match=r"manifest\.json"):
        stoker.open(copied, split="train")
    assert main(["build", str(photos), str(copied), "--shards", "1"]) == 2
    assert (copied / SHARD).read_bytes() == shard


@pytest.mark.parametrize("name", ["labels.txt", SHARD, f"{SHARD}.idx", "build.journal"])
def test_a_pipe_among_the_files_of_a_dataset(copied: Path, photos: Path, name: str, cli: Cli) -> None:
    (copied / ("manifest.json" if name == "build.journal" else name)).unlink()
    os.mkfifo(copied / name)
    with pytest.raises((StokerError, OSError)):
        stoker.open(copied, split="train")
    assert main(["verify", str(copied)]) != 0
    if name in (SHARD, "build.journal"):
        assert name in cli("build", photos, copied, "--shards", "2", code=2)


def edited(copied: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest, and its ``dataset_id`` and checksum with it, as a liar would."""
    content = json.loads((copied / "manifest.json").read_text())
    change(content)
    text = "".join(
        f"{name}\n" + "".join(f"{s['name']} {s['records']} {s['bytes']} {s['crc32c']}\n" for s in split["shards"])
        for name, split in sorted(content["splits"].items())
    )
    content["dataset_id"] = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
    (copied / "manifest.json").write_bytes(manifest_text(content))


NAMES = ["../x", "/etc/passwd", "a/../../x", "", ".", "s3://bucket/x", "a\0b", "a\\b", "\ud800", "\udcff"]


@pytest.mark.parametrize("name", NAMES, ids=map(ascii, NAMES))
def test_a_shard_lies_below_its_manifest(copied: Path, name: str) -> None:
    edited(copied, lambda content: content["splits"]["train"]["shards"][0].update(name=name))
    with pytest.raises(ManifestError, match=r"splits\.train\.shards\[0\]\.name .* is not the name of a file below"):
        read_manifest(copied)


def test_a_split_whose_name_is_not_text(copied: Path) -> None:
    edited(copied, lambda content: content["splits"].update({"\ud800": content["splits"].pop("train")}))
    with pytest.raises(ManifestError, match=r"splits has the name .*which is not text"):
        read_manifest(copied)


NUMBERS = [-1, 2**63, 1.5, True, None, "1", [], {}, [[[]]]]


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("field", ["records", "bytes", "rejects", "unlabelled"])
def test_a_count_is_a_count(copied: Path, field: str, value: object) -> None:
    edited(copied, lambda content: content["splits"]["train"].update({field: value}))
    with pytest.raises(ManifestError, match=rf"splits\.train\.{field}"):
        read_manifest(copied)


TEXTS: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda _: b"", "line 1, column 1"),
    "zeros": (lambda _: bytes(100), "line 1, column 1"),
    "half of it": (lambda text: text[: len(text) // 2], "line"),
    "something behind it": (lambda text: text + b"x", "Extra data"),
    "a byte order mark": (lambda text: b"\xef\xbb\xbf" + text, "BOM"),
    "UTF-16": (lambda text: text.decode().encode("utf-16"), "utf-8"),
    "Latin-1": (lambda text: text.replace(b"stoker-dataset", b"st\xf8ker"), "utf-8"),
    "a list": (lambda _: b"[1]", "not an object"),
    "a million brackets": (lambda _: b"[" * 10**6, "nested"),
    "a million braces": (lambda _: b'{"a":' * 10**6, "nested"),
    "a hundred brackets": (lambda text: seed(text, b"[" * 100 + b"]" * 100), "nested"),
    "five thousand digits": (lambda text: seed(text, b"9" * 5000), "digits"),
    "a number that is infinite": (lambda text: seed(text, b"1e400"), "1e400 is too large"),
    "no number": (lambda text: seed(text, b"NaN"), "NaN is not a number"),
    "a key twice": (lambda text: seed(text, b'0, "seed": 1'), "'seed' twice"),
}


def seed(text: bytes, value: bytes) -> bytes:
    assert b'"seed": 0' in text
    return text.replace(b'"seed": 0', b'"seed": ' + value)


@pytest.mark.parametrize("case", list(TEXTS))
def test_what_readers_could_understand_differently_is_not_a_manifest(copied: Path, case: str) -> None:
    change, problem = TEXTS[case]
    path = copied / "manifest.json"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ManifestError, match=problem) as caught:
        stoker.open(copied, split="train")
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("change", ["", "a\n" * 3, "\x00" * 99, None], ids=["empty", "too few", "zeros", "too many"])
def test_classes_are_as_many_as_the_manifest_counts(copied: Path, change: str | None) -> None:
    path = copied / "labels.txt"
    path.write_text(path.read_text() * 2 if change is None else change)
    with pytest.raises(ManifestError, match=r"labels\.txt was changed or damaged after the build"):
        stoker.open(copied, split="train")
    list_again(copied, "labels.txt")
    with pytest.raises(ManifestError, match=r"labels\.txt names \d+ classes, but the manifest counts 5"):
        stoker.open(copied, split="train")


def test_millions_of_classes_are_not_made(copied: Path) -> None:
    """Two bytes of file would become a hundred of memory each."""
    (copied / "labels.txt").write_bytes(b"x\n" * (2**22 + 1))
    with pytest.raises(ManifestError, match="more than 4194304 lines"):
        read_labels(copied)


LINES = [b"[" * 10**6, b"9" * 5000, b"\0", b"{}", b"1", b'{"key": "x", "split": 1e400, "reason": "y"}', b"\xff"]


@pytest.mark.parametrize("line", LINES, ids=lambda line: ascii(line[:20]))
def test_a_line_that_is_not_a_reject_is_named(copied: Path, line: bytes) -> None:
    path = copied / "rejects.jsonl"
    path.write_bytes(b'{"key": "x", "split": "train", "reason": "y"}\n' + line + b"\n")
    with pytest.raises(ManifestError, match=r"rejects\.jsonl line 2 is not a reject") as caught:
        read_rejects(copied)
    assert caught.value.record == 1
    assert main(["verify", str(copied)]) == 4


LYING_LINES = [
    *LINES,
    b'{"shard": "x", "records": 1e400}',
    b'{"version": ' + b"9" * 5000 + b"}",
    b'{"dataset": "d", "split": "s", "samples": 1e999}',
]


@pytest.mark.parametrize("line", LYING_LINES, ids=lambda line: ascii(line[:20]))
def test_lines_of_a_journal_or_a_cache_that_lie(tmp_path: Path, line: bytes) -> None:
    """They are thrown away as if nobody had written them; a journal that does not say its settings is refused."""
    for settings, entry in ((line, line), (with_checksum(line), with_checksum(line, {}))):
        assert isinstance(parse_settings(settings), str)
        assert parse_result(entry, {}) is None
    about = tmp_path / "about.json"
    about.write_bytes(line)
    assert _read_about(about)[0] is None
