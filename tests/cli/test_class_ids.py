"""Class ids are the same whichever way images are read, and start at 0 unless a preset or the user says otherwise."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

import pytest

import stoker
from reference import pictures
from stoker.format import read_labels
from written_files import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

NAMES = ["cat", "dog", "owl"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    names = [f"{name}/{name}{image}.jpg" for name in NAMES for image in range(2)]
    return write_files(tmp_path / "photos", {path: pictures.jpeg(40, 30, seed) for seed, path in enumerate(names)})


def ids(dataset: stoker.Dataset) -> dict[str, int]:
    """The class of each image by its name, as samples and as `labels` have it."""
    assert [sample.label for sample in dataset] == dataset.labels.tolist()
    return {sample.source.rpartition("/")[2][:3]: sample.label for sample in dataset}


def as_folder(photos: Path) -> Path:
    return photos


def as_list(photos: Path) -> Path:
    paths = sorted(str(path) for path in photos.rglob("*.jpg"))
    (photos.parent / "list.txt").write_text("\n".join(paths))
    return photos.parent / "list.txt"


def as_config(photos: Path) -> Path:
    as_list(photos)
    (photos.parent / "ilsvrc.json").write_text(json.dumps({"data": {"train_filelist": "list.txt"}}))
    return photos.parent / "ilsvrc.json"


def as_tar(photos: Path) -> Path:
    with tarfile.open(photos.parent / "photos.tar", "w") as tar:
        tar.add(photos, "photos")
    return photos.parent / "photos.tar"


@pytest.mark.parametrize("make", [as_folder, as_list, as_config, as_tar])
def test_every_path_gives_the_same_ids(photos: Path, tmp_path: Path, make: object, cli: Cli) -> None:
    source = make(photos)  # type: ignore[operator]
    opened = stoker.open(source)
    cli("build", source, tmp_path / "built")
    built = stoker.open(tmp_path / "built")
    assert ids(opened) == ids(built) == {"cat": 0, "dog": 1, "owl": 2}
    assert [label.name for label in opened.classes] == [label.name for label in built.classes] == NAMES
    assert len(read_labels(tmp_path / "built")) == len(NAMES)
    cli("verify", tmp_path / "built")


@pytest.mark.parametrize("preset", ["dlbs", "tiny-imagenet", "dogs-onehot", "tfds"])
def test_presets_whose_ids_start_at_0(photos: Path, tmp_path: Path, preset: str, cli: Cli) -> None:
    cli("build", photos, tmp_path / "built", "--preset", preset)
    built = stoker.open(tmp_path / "built")
    assert sorted(set(built.labels.tolist())) == [0, 1, 2]
    assert [label.name for label in built.classes] == NAMES
    assert "start at" not in repr(built)


@pytest.mark.parametrize("preset", ["imagenet", "imagenet-nvidia"])
def test_presets_whose_ids_start_at_1_say_so(photos: Path, tmp_path: Path, preset: str, cli: Cli) -> None:
    note = f"labels start at 1 (preset {preset})"
    assert f"3 classes, {note}\n" in cli("build", photos, tmp_path / "built", "--preset", preset)
    built = stoker.open(tmp_path / "built")
    assert sorted(set(built.labels.tolist())) == [1, 2, 3]
    assert [label.name for label in built.classes] == ["background", *NAMES]
    assert f"3 classes, {note}" in repr(built)
    assert f"3 classes, {note}" in built._repr_html_()
    assert f"classes: 3, {note}\n" in cli("info", tmp_path / "built")
    assert (tmp_path / "built/labels.txt").read_text() == "0:background\n1:cat\n2:dog\n3:owl\n"
    cli("verify", tmp_path / "built")


def test_nothing_is_said_about_ids_that_start_at_0(photos: Path, tmp_path: Path, cli: Cli) -> None:
    printed = cli("build", photos, tmp_path / "built") + cli("info", tmp_path / "built")
    assert "\n3 classes\n" in printed
    assert "\nclasses: 3\n" in printed
    assert "start at" not in printed + repr(stoker.open(tmp_path / "built"))


def test_the_base_can_be_chosen(photos: Path, tmp_path: Path, cli: Cli) -> None:
    for base, preset in ((1, []), (0, ["--preset", "imagenet"])):
        to = tmp_path / f"built{base}"
        document = json.loads(cli("build", photos, to, *preset, "--label-base", base, "--json"))
        assert (document["classes"], document["label_base"]) == (3, base)
        assert ids(stoker.open(to)) == {name: base + number for number, name in enumerate(NAMES)}


def test_repacking_without_a_preset_keeps_the_ids(photos: Path, tmp_path: Path, cli: Cli) -> None:
    for number, options in enumerate(([], ["--preset", "imagenet"])):
        built, packed = tmp_path / f"built{number}", tmp_path / f"packed{number}"
        cli("build", photos, built, *options)
        cli("repack", built, packed)
        assert ids(stoker.open(packed)) == ids(stoker.open(built))
        assert stoker.open(packed).classes == stoker.open(built).classes
    cli("repack", built, tmp_path / "zero", "--label-base", "0")
    assert ids(stoker.open(tmp_path / "zero")) == {"cat": 0, "dog": 1, "owl": 2}


def test_shards_without_a_manifest_have_classes_of_the_numbered_list(photos: Path, tmp_path: Path, cli: Cli) -> None:
    cli("build", photos, tmp_path / "built", "--preset", "imagenet")
    built = stoker.open(tmp_path / "built")
    (tmp_path / "built/manifest.json").unlink()
    opened = stoker.open(tmp_path / "built")
    assert opened.classes == built.classes
    assert ids(opened) == ids(built) == {"cat": 1, "dog": 2, "owl": 3}
    assert "3 classes, labels start at 1" in repr(opened)
