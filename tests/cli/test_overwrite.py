"""``--overwrite``: what is replaced, what is asked, what is never removed, and what a kill leaves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from builder.trees import contents, write_tree
from stoker.builder import destination as destinations
from stoker.format import read_manifest
from terminals import at_terminal
from written_files import write_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands import Cli

OLD = ("--shards", "4", "--seed", "1")
NEW = ("--shards", "2", "--seed", "2")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "source", {"cat": 6, "dog": 6})


@pytest.fixture
def fresh(source: Path, tmp_path: Path, cli: Cli) -> dict[str, bytes]:
    """What the new settings give in an empty directory."""
    cli("build", source, tmp_path / "fresh", *NEW)
    return contents(tmp_path / "fresh")


def test_a_finished_dataset_is_replaced(source: Path, tmp_path: Path, fresh: dict[str, bytes], cli: Cli) -> None:
    out = tmp_path / "out"
    cli("build", source, out, *OLD)
    (out / "README.md").write_text("mine")
    before = contents(out)
    assert "overwrite it" in cli("build", source, out, *NEW, code=2)
    cli("build", source, out, *NEW, "--overwrite", code=2)  # standard input is not a terminal
    dataset = f"dataset {read_manifest(out).dataset_id} of 12 records"
    error, hint = cli.err.splitlines()[-2:]
    assert error == f"stoker: error: --overwrite would remove the {dataset} in {out}; add --yes to allow it"
    assert hint == "see stoker build --help"
    assert contents(out) == before
    cli("build", source, out, *NEW, "--overwrite", "--yes")
    assert contents(out) == fresh | {"README.md": b"mine"}


def test_an_unfinished_build_with_other_settings_is_replaced_and_one_with_the_same_is_resumed(
    source: Path, tmp_path: Path, fresh: dict[str, bytes], cli: Cli
) -> None:
    out = tmp_path / "out"
    (source / "cat/bad.JPEG").write_bytes(b"no image")
    cli("build", source, out, *OLD, code=3)
    (source / "cat/bad.JPEG").unlink()
    assert (out / "build.journal").exists()
    cli("build", source, out, *NEW, code=2)
    cli("build", source, out, *NEW, "--overwrite", code=2)
    assert f"would remove the unfinished build of 4 shards in {out}" in cli.err
    cli("build", source, out, *NEW, "--overwrite", "--yes")
    assert contents(out) == fresh
    (source / "cat/bad.JPEG").write_bytes(b"no image")
    cli("build", source, tmp_path / "other", *NEW, code=3)
    assert "0 images" in cli("build", source, tmp_path / "other", *NEW, "--overwrite", "--max-rejects", "1")


def test_another_layout_leaves_nothing(source: Path, tmp_path: Path, fresh: dict[str, bytes], cli: Cli) -> None:
    for preset in ("tfds", "tiny-imagenet", "dogs-onehot"):
        out = tmp_path / preset
        cli("build", source, out, "--preset", preset)
        cli("build", source, out, *NEW, "--overwrite", "--yes")
        assert contents(out) == fresh, preset


def test_nothing_is_removed_that_stoker_did_not_write(source: Path, tmp_path: Path, cli: Cli) -> None:
    other = write_files(tmp_path / "other", {"thesis.txt": "precious"})
    assert "holds something else (thesis.txt)" in cli("build", source, other, "--overwrite", "--yes", code=2)
    (other / "manifest.json").write_text("{}")
    assert "holds a manifest that cannot be used" in cli("build", source, other, "--overwrite", "--yes", code=2)
    assert sorted(path.name for path in other.iterdir()) == ["manifest.json", "thesis.txt"]


def test_the_source_is_never_removed(source: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    cli("build", source, out, *OLD)
    before = contents(out)
    assert "which would be overwritten" in cli("repack", out / "train-*", out, "--overwrite", "--yes", code=2)
    assert contents(out) == before


def test_a_source_that_cannot_be_used_leaves_the_old_dataset(source: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "out"
    cli("build", source, out, *OLD)
    before = contents(out)
    cli("build", tmp_path / "nothing", out, "--overwrite", "--yes", code=2)
    cli("build", source, out, "--shards", "99", "--overwrite", "--yes", code=2)
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
    cli: Cli,
) -> None:
    old = tmp_path / "old"
    if finished:
        cli("build", source, old, *OLD)
    else:
        (source / "cat/bad.JPEG").write_bytes(b"no image")
        cli("build", source, old, *OLD, code=3)
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
            cli("build", source, out, *NEW, "--overwrite", "--yes", code=None)
        if finished and 0 < count < 8:  # the old shards and their indexes
            assert cli.code == 130
            cli("info", out)  # the manifest is the last to go
            assert "a build has begun here and not ended" in cli.out
            cli("build", source, out, *OLD, code=2)  # what is left does not pass for the old dataset
        cli("build", source, out, *NEW, "--overwrite", "--yes")
        assert contents(out) == fresh, count
        cli("info", out)
        assert "a build has begun" not in cli.out
    assert removed > 8


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
@pytest.mark.slow
def test_a_person_is_asked(source: Path, tmp_path: Path, answer: str, code: int, cli: Cli) -> None:
    out = tmp_path / "out"
    cli("build", source, out, *OLD)
    answers = {b"[y/N] ": f"{answer}\n".encode()}
    ended, shown = at_terminal("-m", "stoker", "build", source, out, *NEW, "--overwrite", answers=answers)
    assert ended == code, shown.decode()
    assert len(read_manifest(out).splits["train"].shards) == (2 if code == 0 else 4)
