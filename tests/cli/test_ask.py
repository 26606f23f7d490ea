"""``stoker build --ask``: NVIDIA's questions, answered by variables or by a person."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from stoker.cli.main import main
from stoker.format.manifest import read_manifest
from terminals import at_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Cli

VARIABLES = ("DATA_DIR", "IMAGENET_DATA_DIR", "PROTO_OUT_DIR", "RESIZE_IMAGES", "NEW_HEIGHT", "NEW_WIDTH", "JPEG_Q")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def answer(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_variables_answer_everything(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    size = {"NEW_HEIGHT": "40", "NEW_WIDTH": "60", "JPEG_Q": "80"}
    answer(monkeypatch, DATA_DIR=str(photos), PROTO_OUT_DIR=str(out), RESIZE_IMAGES="y", **size)
    assert main(["build", "--ask", "--num-images", "6"]) == 0
    manifest = read_manifest(out)
    assert manifest.schema.preset == "imagenet-nvidia"
    assert (manifest.recipe["resize"], manifest.recipe["encode"]) == ("exact:60x40", "jpeg:80:420")


def test_no_means_no(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, IMAGENET_DATA_DIR=str(photos), PROTO_OUT_DIR=str(tmp_path / "out"), RESIZE_IMAGES="n")
    assert main(["build", "--ask", "--num-images", "6"]) == 0
    assert read_manifest(tmp_path / "out").recipe["kind"] == "keep"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("RESIZE_IMAGES", "maybe", "neither yes nor no"),
        ("NEW_WIDTH", "wide", "NEW_WIDTH is 'wide'"),
        ("JPEG_Q", "0", "quality"),
    ],
)
def test_invalid_answers(
    photos: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Cli,
    name: str,
    value: str,
    message: str,
) -> None:
    good = {"RESIZE_IMAGES": "Y", "NEW_HEIGHT": "8", "NEW_WIDTH": "8", "JPEG_Q": "90"}
    answer(monkeypatch, DATA_DIR=str(photos), PROTO_OUT_DIR=str(tmp_path / "out"), **good | {name: value})
    assert message in cli("build", "--ask", code=2)
    assert not (tmp_path / "out").exists()


def test_standard_input_without_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    with open(os.devnull) as nothing:  # noqa: PTH123 - a file object is what sys.stdin is
        monkeypatch.setattr(sys, "stdin", nothing)
        cli("build", "--ask", code=2)
    assert "cannot ask for 'ImageNet data dir'" in cli.err
    assert "or --ask" in cli("build", code=2)


def test_a_person_answers_and_enter_means_what_is_offered(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answers = {b"ImageNet data dir: ": f"{photos}\n{out}\n\n30\n\n\n".encode()}
    code, shown = at_terminal("-m", "stoker.cli.main", "build", "--ask", "--num-images", 4, answers=answers)
    assert code == 0, shown.decode()
    assert b"Resize images to one size [Y]" in shown
    recipe = read_manifest(out).recipe
    assert (recipe["resize"], recipe["encode"]) == ("exact:352x30", "jpeg:90:420")
