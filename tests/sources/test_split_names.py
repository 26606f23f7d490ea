"""What people call the split validation, in every kind of source that has splits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import stoker
from sources.making import check_refused, fill, listing, split_sizes, tar_bytes, write
from stoker.builder import BuildOptions
from stoker.format import parse_shard_name

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPLITS = {"train": 2, "validation": 1, "test": 1}


def class_folders(root: Path, name: str) -> Path:
    return fill(root, "train/cat/1.jpg", "train/dog/2.jpg", f"{name}/cat/3.jpg", "test/dog/4.jpg")


def metadata_in_splits(root: Path, name: str) -> Path:
    class_folders(root, name)
    rows = {"train": "cat/1.jpg,0\ndog/2.jpg,1", name: "cat/3.jpg,0", "test": "dog/4.jpg,1"}
    return write(root, {f"{split}/metadata.csv": f"file_name,label\n{own}\n" for split, own in rows.items()})


def metadata_above(root: Path, name: str) -> Path:
    paths = ("train/cat/1.jpg", "train/dog/2.jpg", f"{name}/cat/3.jpg", "test/dog/4.jpg")
    return write(fill(root, *paths), {"metadata.csv": "file_name,label\n" + "".join(f"{path},0\n" for path in paths)})


def webdataset(root: Path, name: str) -> Path:
    for split, keys in {"train": "ab", name: "c", "test": "d"}.items():
        members = {f"{key}.{end}": b"0" for key in keys for end in ("jpg", "cls")}
        write(root, {f"{split}/0.tar": tar_bytes(members)})
    return root


def shards(root: Path, name: str) -> Path:
    webdataset(root, name)
    for split in ("train", name, "test"):
        (root / split / "0.tar").rename(root / f"{split}-0.tar")
        (root / split).rmdir()
    return root


def tar_of_splits(root: Path, name: str) -> Path:
    root.mkdir(exist_ok=True)
    paths = ("train/cat/1.jpg", "train/dog/2.jpg", f"{name}/cat/3.jpg", "test/dog/4.jpg")
    path = root / "photos.tar"
    path.write_bytes(tar_bytes(dict.fromkeys(paths, b"x")))
    return path


@pytest.mark.parametrize("name", ["val", "valid", "dev"])
@pytest.mark.parametrize(
    "make",
    [class_folders, metadata_in_splits, metadata_above, webdataset, shards, tar_of_splits],
    ids=lambda m: m.__name__,
)
def test_names_of_validation_beside_train(make: Callable[[Path, str], Path], name: str, tmp_path: Path) -> None:
    tree = listing(make(tmp_path, name))
    assert split_sizes(tree) == SPLITS
    assert not any("not used" in warning for warning in tree.warnings)


@pytest.mark.parametrize(
    "names", [("Train", "Validation", "Test"), ("TRAIN", "VAL", "TEST"), ("Training", "dev", "Testing")]
)
@pytest.mark.parametrize("make", [class_folders, metadata_in_splits, webdataset], ids=lambda write: write.__name__)
def test_names_in_other_letters(make: Callable[[Path, str], Path], names: tuple[str, ...], tmp_path: Path) -> None:
    known = listing(make(tmp_path, "val"))
    for old, new in zip(("train", "val", "test"), names, strict=True):
        (tmp_path / old).rename(tmp_path / new)
    tree = listing(tmp_path)
    assert (tree.classes, len(tree.warnings)) == (known.classes, len(known.warnings))
    assert split_sizes(tree) == SPLITS
    assert len(listing(tmp_path / names[0]).splits["train"]) == 2


@pytest.mark.parametrize("make", [class_folders, webdataset, tar_of_splits], ids=lambda write: write.__name__)
def test_two_names_of_validation_are_refused(make: Callable[[Path, str], Path], tmp_path: Path) -> None:
    make(tmp_path, "valid")
    if make is tar_of_splits:
        paths = ("train/cat/1.jpg", "dev/cat/3.jpg", "valid/dog/4.jpg")
        (tmp_path / "photos.tar").write_bytes(tar_bytes(dict.fromkeys(paths, b"x")))
        tmp_path = tmp_path / "photos.tar"
    elif make is webdataset:
        write(tmp_path, {"dev/0.tar": (tmp_path / "valid/0.tar").read_bytes()})
    else:
        fill(tmp_path, "dev/cat/5.jpg")
    check_refused(tmp_path, match="holds both dev/ and valid/; keep one of them")


def test_two_tables_of_validation_are_refused(tmp_path: Path) -> None:
    metadata_in_splits(tmp_path, "valid")
    fill(tmp_path, "val/cat/5.jpg")
    (tmp_path / "val/metadata.csv").write_text("file_name,label\ncat/5.jpg,0\n")
    check_refused(tmp_path, match=r"val/metadata\.csv and .*valid/metadata\.csv")


@pytest.mark.parametrize("name", ["val", "valid", "dev", "Val"])
def test_names_of_validation_as_a_setting(name: str, tmp_path: Path) -> None:
    class_folders(tmp_path, "validation")
    assert len(stoker.open(tmp_path, split=name)) == 1
    record = {"image": np.zeros((4, 4, 3), np.uint8), "label": 0}
    stoker.build({"train": [record] * 2, name: [record]}, tmp_path / "out", progress=False)
    assert len(stoker.open(tmp_path / "out", split="validation")) == 1
    assert BuildOptions(split_fraction=f"{name}=0.5").settings(None).held_out == ("validation", 0.5)


@pytest.mark.parametrize("names", [("training", "testing"), ("Train", "TEST")])
def test_names_of_folders_as_settings(names: tuple[str, str], tmp_path: Path) -> None:
    class_folders(tmp_path, "val")
    assert [len(stoker.open(tmp_path, split=name)) for name in names] == [2, 1]


def test_names_of_validation_in_names_of_shards() -> None:
    names = {"valid": "validation", "dev": "validation", "my-val": "validation", "invalid": "train", "device": "train"}
    for name, split in names.items():
        parsed = parse_shard_name(f"{name}-00000-of-00002")
        assert parsed is not None
        assert parsed.split == split


def test_names_that_are_no_splits_without_train(tmp_path: Path) -> None:
    fill(tmp_path, "valid/a/1.jpg", "invalid/b/2.jpg", "valid/3.jpg", "invalid/4.jpg")
    (tmp_path / "metadata.csv").write_text("file_name\nvalid/3.jpg\ninvalid/4.jpg\n")
    tree = listing(tmp_path)
    assert (tree.classes, list(tree.splits)) == ((b"invalid", b"valid"), ["train"])
