"""Folders of images without classes: what is read so, with which commands, and what is still something else."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

import stoker
from sources.making import check_refused, fill, listed, listing
from stoker.config import settings_as_options
from stoker.errors import LabelWarning
from stoker.sources import SourceOptions, list_source

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    root.mkdir()
    for number in range(12):
        pixels = np.random.default_rng(number).integers(0, 255, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(root / f"IMG_{number:04d}.JPG")
    return root


def test_every_command_takes_images_without_classes(photos: Path, tmp_path: Path, cli: Cli) -> None:
    built = str(tmp_path / "built")
    for words, wanted in (
        (("plan", str(photos)), f"{photos}: no classes, 12 items, "),
        (("info", str(photos)), "no classes\n"),
        (("show", str(photos), "--out", str(tmp_path / "1.png")), "12 samples of train"),
        (("doctor", str(photos), "--seconds", "0.1"), f"{photos}: 12 images, "),
        (("build", str(photos), built), "12 records"),
        (("info", built), "no classes\n"),
        (("verify", built), "12"),
        (("export", built, str(tmp_path / "out"), "--to", "folder"), "12 records"),
        (("plan", str(tmp_path / "out")), f"{tmp_path}/out: no classes, 12 items, "),
    ):
        cli(*words)
        assert wanted in cli.out, words
        assert "warning" not in cli.out + cli.err, words


def test_batches_have_no_labels_in_the_order_of_names(photos: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = stoker.open(photos)
    assert [sample.source for sample in dataset] == sorted(p.name for p in photos.iterdir())
    with stoker.Loader(dataset, 12, transform=stoker.TopLeft((24, 32)), shuffle=False) as loader:
        batch = next(iter(loader))
    assert batch.labels.tolist() == [-1] * 12
    for pixels, path in zip(batch.images, sorted(photos.iterdir()), strict=True):
        with Image.open(path) as image:
            assert np.array_equal(pixels, np.asarray(image))


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        (("2.jpg", "10.jpg"), {"train": ["10.jpg", "2.jpg"]}),
        (("train/1.jpg",), {"train": ["1.jpg"]}),
        (
            ("train/1.jpg", "valid/2.jpg", "test/3.jpg"),
            {"train": ["1.jpg"], "validation": ["2.jpg"], "test": ["3.jpg"]},
        ),
        (("val/2.jpg", "test/3.jpg"), {"validation": ["2.jpg"], "test": ["3.jpg"]}),
        (("1.jpg", "x.ipynb", "clip.MP4", "a.html", ".ipynb_checkpoints/2.jpg"), {"train": ["1.jpg"]}),
    ],
)
def test_images_in_no_folder_or_in_splits(files: tuple[str, ...], splits: dict[str, list[str]], tmp_path: Path) -> None:
    tree = listing(fill(tmp_path, *files))
    expected = {split: [(name, None) for name in names] for split, names in splits.items()}
    assert {split: listed(tree, split) for split in tree.splits} == expected
    others = sum(count for name, count in tree.ignored.items() if name in (".mp4", ".ipynb"))
    warning = "2 files with no name of an image, not used: clip.MP4, x.ipynb"
    assert tree.warnings == ((warning,) if others else ())


@pytest.mark.parametrize(
    ("files", "seen"),
    [
        (("2025/12/1.jpg", "2026/07/2.jpg", "3.jpg"), "folders called after dates, such as 2025/12/"),
        (("2026-06/1.jpg", "2026-07-31 at home/2.jpg"), "folders called after dates, such as 2026-06/"),
        (("train/2026_06/1.jpg", "test/2026_07/2.jpg"), "folders called after dates, such as 2026_0"),
        (("DCIM/100APPLE/1.jpg", "Pictures/2.jpg"), "the folders of a camera, such as DCIM/"),
        (("100APPLE/1.jpg", "101APPLE/2.jpg"), "the folders of a camera, such as 100APPLE/"),
        (("Photos from 2025/1.jpg", "Photos from 2026/2.jpg"), "the folders of a camera, such as Photos from 2025/"),
    ],
)
def test_folders_of_dates_and_of_cameras_are_no_classes(files: tuple[str, ...], seen: str, tmp_path: Path) -> None:
    root = fill(tmp_path / "phone", *files)
    with settings_as_options():
        tree = listing(root)
    assert (tree.classes, len(tree.table)) == ((), len(files))
    (warning,) = tree.warnings
    assert warning.startswith(f"{root} holds {seen}")
    assert warning.endswith("> folders.txt; and give --labels folders.txt")
    with pytest.warns(LabelWarning, match="so its images have no classes; if its folders are classes, type: printf"):
        stoker.open(root, next(iter(tree.splits)))
    names = sorted({path.split("/")[-2] if path[:2] == "te" else path.split("/")[0] for path in files if "/" in path})
    if not files[0].startswith("train"):
        (tmp_path / "classes.txt").write_text("\n".join(names))
        insisting = SourceOptions(labels=str(tmp_path / "classes.txt"))
        assert list_source(str(root), insisting).classes == tuple(map(str.encode, names))


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        (("a.csv", "b.txt"), "holds no class folder"),
        (("notes.pdf", "clip.mp4"), "its files are no images: clip.mp4, notes.pdf"),
        (("1.txt",), "put the images of each class, or links to them, into a folder named after it"),
        (("train/1.jpg", "val/2.jpg", "valid/3.jpg"), "holds both val/ and valid/"),
        (("train/b/1.jpg", "validation/b/2.jpg", "val/b/3.jpg"), "both val/ and validation/"),
        (("a\nb/1.jpg",), "control character"),
        (("1.JPEG", "imagenet_2012_validation_synset_labels.txt"), "holds no class folder"),
    ],
)
def test_what_is_none_is_refused(files: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    check_refused(fill(tmp_path, *files), match=problem)


def test_a_dataset_that_is_built_among_the_images_is_none_of_them(photos: Path) -> None:
    before = listing(photos).fingerprint()
    stoker.build(photos, photos / "out", progress=False)
    tree = listing(photos)
    assert (tree.fingerprint(), tree.ignored) == (before, {"dataset": 1})
