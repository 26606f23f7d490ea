"""What a download prints at its end: commands that build what it has fetched, and that work as they are printed."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import io
import json
import shlex
import shutil
import zipfile
from typing import TYPE_CHECKING

import pytest

import stoker
from builder.trees import picture
from sources.making import tar_bytes, xml
from stoker.cli import download as command
from stoker.cli.main import main
from stoker.download import DATASETS, DEVKIT

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli
    from download.faulty_server import FaultyServer

VALIDATION = {1: "n01751748", 2: "n09193705", 5: "n03125729"}
TRAIN = ("n01440764", "n01751748", "n03125729", "n09193705")
BREEDS = ("n02085620-Chihuahua", "n02086240-Shih-Tzu")


def imagenet() -> dict[str, bytes]:
    numbers = "490\n361\n171\n822\n297\n"
    kit = tar_bytes({"ILSVRC2012_devkit_t12/data/ILSVRC2012_validation_ground_truth.txt": numbers.encode()})
    classes = {f"{name}.tar": tar_bytes({f"{name}_1.JPEG": picture(seed)}) for seed, name in enumerate(TRAIN)}
    box = xml(("n01440764", "4", "3", "20", "15"), size=("40", "30")).encode()
    return {
        "ILSVRC2012_devkit_t12.tar.gz": gzip.compress(kit),
        "ILSVRC2012_bbox_train_v2.tar.gz": gzip.compress(tar_bytes({"n01440764/n01440764_1.xml": box})),
        "ILSVRC2012_img_val.tar": tar_bytes({f"ILSVRC2012_val_{n:08d}.JPEG": picture(n) for n in VALIDATION}),
        "ILSVRC2012_img_train.tar": tar_bytes(classes),
    }


def tiny_imagenet() -> dict[str, bytes]:
    size = (64, 64)
    members = {
        "wnids.txt": b"n01443537\nn01629819\n",
        "words.txt": b"n01443537\tgoldfish\nn01629819\tsalamander\n",
        "val/val_annotations.txt": b"val_0.JPEG\tn01629819\t0\t0\t9\t9\n",
        "val/images/val_0.JPEG": picture(1, size=size),
        "test/images/test_0.JPEG": picture(2, size=size),
    }
    for seed, name in enumerate(("n01443537", "n01629819")):
        members[f"train/{name}/images/{name}_0.JPEG"] = picture(seed + 3, size=size)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, data in members.items():
            archive.writestr(f"tiny-imagenet-200/{path}", data)
    return {"tiny-imagenet-200.zip": buffer.getvalue()}


def stanford_dogs() -> dict[str, bytes]:
    images = {f"Images/{breed}/{breed[:9]}_7.jpg": picture(seed) for seed, breed in enumerate(BREEDS)}
    note = xml(("Chihuahua", "4", "3", "20", "15"), size=("40", "30"), folder="02085620").encode()
    return {
        "lists.tar": tar_bytes({"file_list.mat": b"x"}),
        "annotation.tar": tar_bytes({f"Annotation/{BREEDS[0]}/{BREEDS[0][:9]}_7": note}),
        "images.tar": tar_bytes(images),
    }


MADE = {"imagenet": imagenet, "tiny-imagenet": tiny_imagenet, "stanford-dogs": stanford_dogs}


@pytest.fixture
def served(server: FaultyServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue, with small files of the same names and of the same kinds, at the server."""
    server.files.clear()
    datasets = {}
    for name, make in MADE.items():
        server.files |= make()
        files = tuple(
            dataclasses.replace(
                file, size_bytes=None, checksum="md5:" + hashlib.md5(server.files[file.name]).hexdigest()
            )
            for file in DATASETS[name].files
        )
        datasets[name] = dataclasses.replace(DATASETS[name], base_urls=(server.url,), files=files)
    monkeypatch.setattr(command, "DATASETS", datasets)
    monkeypatch.setattr(command, "DEVKIT", datasets["imagenet"].files[0])
    assert datasets["imagenet"].files[0].name == DEVKIT.name


def commands(printed: str) -> list[list[str]]:
    lines = printed[printed.index("next: ") :].splitlines()
    typed = [shlex.split(line[6:]) for line in lines]
    assert all(words[0] == "stoker" for words in typed)
    return [words[1:] for words in typed]


@pytest.mark.parametrize("name", list(MADE))
@pytest.mark.parametrize("directory", ["it's here/{}", "."])
def test_the_printed_commands_build_what_was_fetched(
    tmp_path: Path, served: None, name: str, directory: str,
    cli: Cli, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    plan, build, other = commands(cli("download", name, directory.format(name)))
    cli(*plan)
    assert main(build) == 0
    keeps = "" if name == "stanford-dogs" else "validation"
    classes = {"imagenet": 4, "tiny-imagenet": 2, "stanford-dogs": 2}[name]
    built = stoker.open(build[2], split="train")
    assert (len(built), len(built.classes), built.schema.label_base) == (classes, classes, 0)
    assert not keeps or len(stoker.open(build[2], split=keeps)) == len(VALIDATION if name == "imagenet" else "1")
    assert other[:3] == build
    shutil.rmtree(build[2])
    cli(*other)
    assert stoker.open(build[2], split="train").schema.preset == DATASETS[name].preset


def test_a_downloaded_imagenet_has_googles_numbers_texts_and_boxes(tmp_path: Path, served: None, cli: Cli) -> None:
    words = shlex.split(json.loads(cli("download", "imagenet", tmp_path / "in", "--json"))["next"][2])
    cli(*words[1:])
    for split, wanted in {"train": TRAIN, "validation": VALIDATION.values()}.items():
        dataset = stoker.open(words[3], split=split)
        stored = {}
        for index in range(len(dataset)):
            features = dataset[index].features
            values = [features[f"image/class/{key}"][1][0] for key in ("label", "synset", "text")]
            stored[values[1].decode()] = (values[0], values[2].decode().split(",")[0])
            boxes = features["image/object/bbox/xmin"][1]
            assert boxes == ([pytest.approx(0.1)] if values[1] == b"n01440764" else [])
        known = {
            "n01440764": (1, "tench"), "n01751748": (66, "sea snake"), "n03125729": (517, "cradle"),
            "n09193705": (971, "alp"),
        }  # fmt: skip
        assert stored == {name: known[name] for name in wanted}
    assert len(dataset.classes) == 1001


def test_the_devkit_alone_is_fetched_and_the_possible_command_is_next(tmp_path: Path, served: None, cli: Cli) -> None:
    root = tmp_path / "in"
    (again,) = commands(cli("download", "imagenet", root, "--devkit"))
    assert [path.name for path in root.iterdir()] == [DEVKIT.name]
    assert again == ["download", "imagenet", str(root)]
    cli(*again)
    (root / DEVKIT.name).unlink()
    error = cli("plan", root, code=2)
    assert DEVKIT.name in error
    plan, *_ = commands(cli(*shlex.split(error.split("run '", 1)[1].split("' to fetch", 1)[0])[1:]))
    cli(*plan)


@pytest.mark.usefixtures("served")
def test_a_folder_to_which_a_tar_is_still_to_come_is_refused(server: FaultyServer, tmp_path: Path, cli: Cli) -> None:
    train, server.files["ILSVRC2012_img_train.tar"] = server.files["ILSVRC2012_img_train.tar"], b"damaged"
    words = ["download", "imagenet", str(tmp_path / "in")]
    cli(*words, code=1)
    assert (tmp_path / "in/ILSVRC2012_img_val.tar").is_file()
    assert "run 'stoker download' again" in cli("plan", tmp_path / "in", code=2)
    server.files["ILSVRC2012_img_train.tar"] = train
    cli(*words)
    cli("plan", tmp_path / "in")
    assert not list((tmp_path / "in").rglob("*.part"))
