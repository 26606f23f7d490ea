"""What `info`, `verify` and `index` say of a dataset in a store is what they say of its copy on a disk."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import stoker
from loader.remote_datasets import copy
from loader.shards import write_shards
from small_datasets import write_dataset
from stoker.errors import IndexMismatchError, ManifestError
from stoker.format.index import write_index
from stoker.inspect import verify_dataset
from storage.store_folders import store_folder
from written_files import flip_bit, write_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands import Cli
    from stoker.storage import StoreLocation

pytestmark = pytest.mark.servers

STORES = ("s3", "gs", "hdfs")
FIRST = "train-00000-of-00002.tfrecord"
SECOND = "train-00001-of-00002.tfrecord"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from stoker import _native  # noqa: PLC0415

    root = tmp_path_factory.mktemp("remote") / "whole"
    write_dataset(root, {"train": [6, 5], "validation": [4]})
    for shard in root.glob("*.tfrecord"):
        write_index(shard, _native.scan_shard(str(shard)))
    return root


@pytest.fixture
def local(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "local")


@pytest.fixture
def s3(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoreLocation:
    return store_folder("s3", request, monkeypatch)


@pytest.mark.parametrize("name", ["manifest.json", "labels.txt", "rejects.jsonl", f"{FIRST}.idx"])
def test_a_changed_byte_of_a_text_file_is_found(
    s3: StoreLocation, local: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy(local, s3)
    text = (local / name).read_bytes()
    for number, at in enumerate(range(1, len(text), max(2, len(text) // 7))):
        (s3 / name).write_atomically(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
        assert verify_dataset(s3).problems
        monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / f"cache{number}"))  # which keeps indexes
        if name == "rejects.jsonl":
            assert len(stoker.open(s3, split="train")) == 11
        else:
            with pytest.raises((ManifestError, IndexMismatchError), match=name):
                stoker.open(s3, split="train")


def code_and_document(cli: Cli, command: str, path: Path | StoreLocation, *more: str) -> tuple[int, Any]:
    """The exit code and the JSON document of a command, without its path and its time."""
    cli(command, f"{path}{''.join(more)}", "--json", code=None)
    text = cli.out.replace(str(path), "PATH")
    assert "/proc/" not in text
    document = json.loads(text)
    document.pop("seconds", None)
    document.pop("exif_orientation", None)  # in a store no image is looked at for it
    return cli.code, document


def mirror(local: Path, remote: StoreLocation, before: Path) -> None:
    """Change a copy of ``before`` in a store as ``local`` was changed."""
    names = {path.relative_to(root).as_posix() for root in (local, before) for path in root.rglob("*")}
    for name in sorted(names):
        if not (local / name).exists():
            (remote / name).unlink()
        elif not (before / name).exists() or (local / name).read_bytes() != (before / name).read_bytes():
            (remote / name).write_atomically((local / name).read_bytes())


def change(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_bytes(text.encode("utf-8", "surrogateescape"))


def remove(name: str) -> Callable[[Path], object]:
    return lambda root: (root / name).unlink()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "first byte": lambda root: flip_bit(root / FIRST, 0),
    "a byte of an image": lambda root: flip_bit(root / FIRST, 0.5),
    "last byte": lambda root: flip_bit(root / FIRST, 0.9999),
    "cut": lambda root: os.truncate(root / FIRST, (root / FIRST).stat().st_size - 100),
    "another shard": lambda root: shutil.copy(root / SECOND, root / FIRST),
    "missing shard": remove(FIRST),
    "wrong index": change(f"{FIRST}.idx", "0 99\n"),
    "index of another": lambda root: shutil.copy(root / f"{SECOND}.idx", root / f"{FIRST}.idx"),
    "missing index": remove(f"{FIRST}.idx"),
    "damaged manifest": lambda root: flip_bit(root / "manifest.json", 0.4),
    "missing manifest": remove("manifest.json"),
    "damaged labels": change("labels.txt", "background\nn01\n"),
    "missing labels": remove("labels.txt"),
    "damaged rejects": change("rejects.jsonl", '{"key": "\udcff"}\n'),
    "missing rejects": remove("rejects.jsonl"),
}


@pytest.mark.parametrize("kind", STORES)
def test_a_whole_dataset(
    kind: str,
    local: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
) -> None:
    remote = copy(local, store_folder(kind, request, monkeypatch))
    for command in ("verify", "info", "index"):
        code, document = code_and_document(cli, command, remote)
        assert (code, document) == code_and_document(cli, command, local)
        assert code == 0
    for damage in ("a byte of an image", "missing index", "missing rejects"):
        DAMAGE[damage](local)
    mirror(local, remote, request.getfixturevalue("written"))
    code, document = code_and_document(cli, "verify", remote)
    assert (code, document) == code_and_document(cli, "verify", local)
    assert (code, len(document["problems"]) > 3) == (4, True)


def test_every_damage_is_found(s3: StoreLocation, written: Path, tmp_path: Path, cli: Cli) -> None:
    copy(written, s3)
    for name, damage in DAMAGE.items():
        local = shutil.copytree(written, tmp_path / name)
        damage(local)
        mirror(local, s3, written)
        code, document = code_and_document(cli, "verify", s3)
        assert (name, code, document) == (name, *code_and_document(cli, "verify", local))
        assert (name, code, bool(document["problems"])) == (name, 4, True)
        if name not in ("damaged manifest", "missing manifest"):
            assert (name, *code_and_document(cli, "info", s3)) == (name, *code_and_document(cli, "info", local))
        mirror(written, s3, local)
    assert verify_dataset(s3).problems == ()


def test_leftovers_are_named(s3: StoreLocation, local: Path, written: Path, cli: Cli) -> None:
    copy(written, s3)
    extra = ("train-00007-of-00009.tfrecord", "idx/a.tmp-1")
    write_files(local, dict.fromkeys(extra, b"x"))
    for name in extra:
        (s3 / name).write_atomically(b"x")
    code, document = code_and_document(cli, "verify", s3)
    assert (code, document) == code_and_document(cli, "verify", local)
    assert (code, len(document["warnings"])) == (0, 2)
    (s3 / ".stoker-build/settings.json").write_atomically(b"{}")
    assert len(code_and_document(cli, "verify", s3)[1]["warnings"]) == 3


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_an_unfinished_build_and_other_shapes(
    compression: str, s3: StoreLocation, photos: Path, tmp_path: Path, cli: Cli
) -> None:
    shutil.copytree(photos, tmp_path / "photos")
    (next((tmp_path / "photos").rglob("n*/*.JPEG"))).write_bytes(b"no image")
    options = ["--shards", "2", "--compression", compression, "--json"]
    for path in (tmp_path / "local", s3):
        cli("build", tmp_path / "photos", path, *options, code=3)
    code, document = code_and_document(cli, "info", s3)
    assert (code, document) == code_and_document(cli, "info", tmp_path / "local")
    assert (document["state"], document["rejects"]) == ("unfinished", 1)
    cli("verify", s3, code=2)
    for path in (tmp_path / "local", s3):
        cli("build", tmp_path / "photos", path, *options, "--max-rejects", "1")
    for command in ("info", "verify", "index"):
        assert code_and_document(cli, command, s3) == code_and_document(cli, command, tmp_path / "local")
    flip_bit(tmp_path / "local/train-00000-of-00002.tfrecord", 0.6)
    mirrored = tmp_path / "local/train-00000-of-00002.tfrecord"
    (s3 / mirrored.name).write_atomically(mirrored.read_bytes())
    assert code_and_document(cli, "verify", s3) == code_and_document(cli, "verify", tmp_path / "local")


@pytest.mark.parametrize("kind", STORES)
def test_records_of_other_origin(
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cli: Cli,
) -> None:
    remote = store_folder(kind, request, monkeypatch)
    local = tmp_path / "foreign"
    local.mkdir()
    shards = write_shards(local, 8, 3)
    copy(local, remote)
    for more in ("", "/train-*", f"/{shards[1].name}", "/nothing*", "/nothing"):
        for command in ("info", "verify", "index"):
            assert (command, more, *code_and_document(cli, command, remote, more)) == (
                command,
                more,
                *code_and_document(cli, command, local, more),
            )
    stored = {child.name.decode() for child in (remote / "idx").children()}
    assert stored == {path.name for path in (local / "idx").iterdir()}
    name = f"idx/{shards[0].name}.idx"
    assert (remote / name).read_bytes() == (local / name).read_bytes()
    flip_bit(shards[1], 0.3)
    (remote / shards[1].name).write_atomically(shards[1].read_bytes())
    for command in ("info", "verify", "index"):
        assert code_and_document(cli, command, remote) == code_and_document(cli, command, local)


def test_a_full_disk_is_no_damage(s3: StoreLocation, written: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    copy(written, s3)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    for command in ("verify", "index"):
        printed = cli(command, s3, code=1)
        assert "set TMPDIR to a folder with more space" in printed
        assert "No space left on device" in printed


def nameless_files() -> int:
    """How many files without a name this process has open."""
    return sum(fd.is_symlink() and "(deleted)" in str(fd.readlink()) for fd in Path("/proc/self/fd").iterdir())


def test_a_copy_has_the_bytes_and_leaves_nothing(s3: StoreLocation) -> None:
    data = os.urandom(9_000_000)
    (s3 / "long").write_atomically(data)
    before = nameless_files()
    with (s3 / "long").local_copy() as held:
        held.fetch(10)
        assert held.path.read_bytes()[:4_000_000] == data[:4_000_000]
        held.fetch()
        assert held.path.read_bytes() == data
        assert nameless_files() == before + 1
    assert nameless_files() == before


def test_what_works_only_on_this_machine_says_so(s3: StoreLocation, cli: Cli) -> None:
    assert "caches are on this machine" in cli("cache", "--dir", "s3://bucket/set", code=2)
    assert "no file matches it" in cli("index", f"{s3}/*/a.tfrecord", code=2)
