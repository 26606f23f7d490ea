"""``--overwrite``: what is replaced, what is asked, what is never removed, and what a kill leaves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builder.trees import contents, write_tree
from stoker.builder import destination as destinations
from stoker.cli.main import main
from stoker.format import read_manifest
from terminals import at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable

OLD = ("--shards", "4", "--seed", "1")
NEW = ("--shards", "2", "--seed", "2")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "source", {"cat": 6, "dog": 6})


def build(source: Path, out: Path, *words: str) -> int:
    return main(["build", str(source), str(out), *words])


@pytest.fixture
def fresh(source: Path, tmp_path: Path) -> dict[str, bytes]:
    """What the new settings give in an empty directory."""
    assert build(source, tmp_path / "fresh", *NEW) == 0
    return contents(tmp_path / "fresh")


def test_a_finished_dataset_is_replaced(
    source: Path, tmp_path: Path, fresh: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert build(source, out, *OLD) == 0
    (out / "README.md").write_text("mine")
    before = contents(out)
    capsys.readouterr()
    assert build(source, out, *NEW) == 2
    assert "overwrite it" in capsys.readouterr().err
    assert build(source, out, *NEW, "--overwrite") == 2  # standard input is not a terminal
    dataset = f"dataset {read_manifest(out).dataset_id} of 12 records"
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error == f"stoker: error: --overwrite would remove the {dataset} in {out}; add --yes to allow it"
    assert hint == "see stoker build --help"
    assert contents(out) == before
    assert build(source, out, *NEW, "--overwrite", "--yes") == 0
    assert contents(out) == fresh | {"README.md": b"mine"}


def test_an_unfinished_build_with_other_settings_is_replaced_and_one_with_the_same_is_resumed(
    source: Path, tmp_path: Path, fresh: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    (source / "cat/bad.JPEG").write_bytes(b"no image")
    assert build(source, out, *OLD) == 3
    (source / "cat/bad.JPEG").unlink()
    assert (out / "build.journal").exists()
    assert build(source, out, *NEW) == 2
    assert build(source, out, *NEW, "--overwrite") == 2
    assert f"would remove the unfinished build of 4 shards in {out}" in capsys.readouterr().err
    assert build(source, out, *NEW, "--overwrite", "--yes") == 0
    assert contents(out) == fresh
    (source / "cat/bad.JPEG").write_bytes(b"no image")
    assert build(source, tmp_path / "other", *NEW) == 3
    assert build(source, tmp_path / "other", *NEW, "--overwrite", "--max-rejects", "1") == 0
    assert "0 images" in capsys.readouterr().out


def test_a_dataset_of_another_layout_leaves_nothing(source: Path, tmp_path: Path, fresh: dict[str, bytes]) -> None:
    for preset in ("tfds", "tiny-imagenet", "dogs-onehot"):
        out = tmp_path / preset
        assert build(source, out, "--preset", preset) == 0
        assert build(source, out, *NEW, "--overwrite", "--yes") == 0
        assert contents(out) == fresh, preset


def test_nothing_is_removed_that_stoker_did_not_write(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    assert build(source, other, "--overwrite", "--yes") == 2
    assert "holds something else (thesis.txt)" in capsys.readouterr().err
    (other / "manifest.json").write_text("{}")
    assert build(source, other, "--overwrite", "--yes") == 2
    assert "holds a manifest that cannot be used" in capsys.readouterr().err
    assert sorted(path.name for path in other.iterdir()) == ["manifest.json", "thesis.txt"]


def test_the_source_is_never_removed(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert build(source, out, *OLD) == 0
    before = contents(out)
    assert main(["repack", str(out / "train-*"), str(out), "--overwrite", "--yes"]) == 2
    assert "which would be overwritten" in capsys.readouterr().err
    assert contents(out) == before


def test_a_source_that_cannot_be_used_leaves_the_old_dataset(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(source, out, *OLD) == 0
    before = contents(out)
    assert build(tmp_path / "nothing", out, "--overwrite", "--yes") == 2
    assert build(source, out, "--shards", "99", "--overwrite", "--yes") == 2
    assert contents(out) == before


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.slow
def test_an_overwrite_that_is_killed_anywhere_is_finished_by_the_same_command(
    *,
    finished: bool,
    source: Path,
    tmp_path: Path,
    fresh: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = tmp_path / "old"
    if finished:
        assert build(source, old, *OLD) == 0
    else:
        (source / "cat/bad.JPEG").write_bytes(b"no image")
        assert build(source, old, *OLD) == 3
        (source / "cat/bad.JPEG").unlink()
    removed = 0

    def killed_after(count: int, unlink: Callable[..., None]) -> Callable[..., None]:
        done = 0

        def remove(self: Path, *, missing_ok: bool = False) -> None:
            nonlocal done, removed
            if done == count:
                raise KeyboardInterrupt
            done += 1
            removed = max(removed, done)
            unlink(self, missing_ok=missing_ok)

        return remove

    monkeypatch.setattr(destinations, "_REMOVED_AT_ONCE", 1)
    for count in range(13):
        out = tmp_path / f"out{count}"
        shutil.copytree(old, out)
        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", killed_after(count, Path.unlink))
            code = build(source, out, *NEW, "--overwrite", "--yes")
        if finished and 0 < count < 8:  # the old shards and their indexes
            assert code == 130
            assert main(["info", str(out)]) == 0  # the manifest is the last to go
            assert "a build has begun here and not ended" in capsys.readouterr().out
            assert build(source, out, *OLD) == 2  # what is left does not pass for the old dataset
        assert build(source, out, *NEW, "--overwrite", "--yes") == 0
        assert contents(out) == fresh, count
        assert main(["info", str(out)]) == 0
        assert "a build has begun" not in capsys.readouterr().out
    assert removed > 8


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
@pytest.mark.slow
def test_a_person_is_asked(source: Path, tmp_path: Path, answer: str, code: int) -> None:
    out = tmp_path / "out"
    assert build(source, out, *OLD) == 0
    answers = {b"[y/N] ": f"{answer}\n".encode()}
    ended, shown = at_terminal("-m", "stoker", "build", source, out, *NEW, "--overwrite", answers=answers)
    assert ended == code, shown.decode()
    assert len(read_manifest(out).splits["train"].shards) == (2 if code == 0 else 4)
