"""Patterns of image files: what matches, and which splits and classes it has, as the folders themselves would."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

import pytest

import stoker
from sources.making import check_refused, fill, listed, listing
from stoker.errors import DatasetNotFoundError, LabelWarning

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli


@pytest.mark.parametrize("pattern", ["*.jpg", "[0-4].*", "**/*.jpg", "*/*.jpg", "cat/?.jpg", "**/deep/*", "**"])
def test_what_matches_is_what_the_standard_library_finds(pattern: str, tmp_path: Path) -> None:
    fill(tmp_path, "1.jpg", "2.JPG", ".3.jpg", "cat/4.jpg", "cat/12.jpg", "dog/deep/5.jpg", ".no/6.jpg", "dog/7.png")
    matching = glob.glob(os.fspath(tmp_path / pattern), recursive=True)  # noqa: PTH207 - it has the semantics
    paths = sorted(path for path in matching if os.path.isfile(path))  # noqa: PTH113
    tree = listing(tmp_path / pattern)
    assert sorted(tree.stored.locate(item).decode() for item in tree.table) == paths


@pytest.mark.parametrize(
    ("files", "pattern"),
    [
        (("cat/1.jpg", "dog/deep/2.jpg"), "**/*.jpg"),
        (("train/cat/1.jpg", "train/dog/2.jpg", "val/dog/3.jpg"), "*/*/*.jpg"),
        (("1.jpg", "2.jpg"), "*"),
        (("2026/07/1.jpg", "2026/08/2.jpg"), "**/*.jpg"),
        (("train/1.jpg", "test/2.jpg"), "*/*.jpg"),
    ],
)
def test_splits_and_classes_are_those_of_the_folder(files: tuple[str, ...], pattern: str, tmp_path: Path) -> None:
    whole, some = listing(fill(tmp_path, *files)), listing(tmp_path / pattern)
    there, here = ({split: listed(each, split) for split in each.splits} for each in (some, whole))
    assert there == here
    assert some.fingerprint() == whole.fingerprint()


def test_images_in_folders_and_beside_them_have_no_classes(tmp_path: Path) -> None:
    fill(tmp_path, "1.jpg", "cat/2.jpg", "clip.mp4", "cat/notes.txt")
    with pytest.warns(LabelWarning, match="images beside folders of images, such as cat/, so the images have no cla"):
        assert stoker.open(tmp_path / "**/*.jpg").labels.tolist() == [-1, -1]
    assert listing(f"{tmp_path}/**").warnings[0] == "1 file with no name of an image, not used: clip.mp4"


def test_names_with_brackets_are_names_where_they_are_there(tmp_path: Path) -> None:
    fill(tmp_path, "photos [2026]/1.jpg", "photos 2/2.jpg")
    assert listed(listing(f"{tmp_path}/photos [2026]/*.jpg")) == [("1.jpg", None)]
    assert listed(listing(f"{tmp_path}/photos [2]/*.jpg")) == [("2.jpg", "photos 2")]


def test_commands_take_patterns_in_quotes_and_say_what_a_shell_does_without(tmp_path: Path, cli: Cli) -> None:
    fill(tmp_path, "1.jpg", "2.jpg", "3.png")
    for command in (["plan"], ["info"], ["build", str(tmp_path / "out")]):
        assert "2 " in cli(command[0], f"{tmp_path}/*.jpg", *command[1:])
    assert len(stoker.open(tmp_path / "out")) == 2
    for command, extra in (("plan", []), ("build", ["out"])):
        paths = [f"{tmp_path}/{name}" for name in ("1.jpg", "2.jpg", "3.png")]
        assert "put a pattern into quotes, as in 'photos/*.jpg'" in cli(command, *paths, *extra, code=2)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("*.png", r"\*.png: no file matches; give a pattern such as"),
        ("none/*.png", r"none/\*.png: no file matches"),
        ("*.mp4", "1 file with no name of an image; give"),
        ("{images,masks}", "stands, is not a file"),
        ("[im]*/*", "images/ beside masks/"),
    ],
)
def test_what_is_no_pattern_of_images_is_refused(pattern: str, problem: str, tmp_path: Path) -> None:
    fill(tmp_path, "images/1.jpg", "masks/2.png", "clip.mp4")
    check_refused(f"{tmp_path}/{pattern}", match=problem)
    with pytest.raises(DatasetNotFoundError):
        stoker.open(f"{tmp_path}/{pattern}")
